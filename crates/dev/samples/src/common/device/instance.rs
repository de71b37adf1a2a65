//! The loader and an instance.

use std::ffi::CStr;

use ash::{ext, vk};

use crate::failure::Failure;

/// Layer settings that the sample passes itself, like programs that know the Khronos layer: `settings`, or names
/// separated by commas.
const ENABLES_VARIABLE: &str = "LAVASCOPE_SAMPLE_ENABLES";

/// The version of Vulkan that the sample asks for, else 1.3: `1.0` to `1.3`, or `none` for no application info at all.
const API_VARIABLE: &str = "LAVASCOPE_SAMPLE_API";

/// The version that is asked for; none if there is no application info.
fn wanted_version() -> Option<u32> {
    match std::env::var(API_VARIABLE).unwrap_or_default().as_str() {
        "none" => None,
        "1.0" => Some(vk::API_VERSION_1_0),
        "1.1" => Some(vk::API_VERSION_1_1),
        "1.2" => Some(vk::API_VERSION_1_2),
        _ => Some(vk::API_VERSION_1_3),
    }
}

fn feature(name: &str) -> Option<vk::ValidationFeatureEnableEXT> {
    match name {
        "gpu" => Some(vk::ValidationFeatureEnableEXT::GPU_ASSISTED),
        "slot" => Some(vk::ValidationFeatureEnableEXT::GPU_ASSISTED_RESERVE_BINDING_SLOT),
        "printf" => Some(vk::ValidationFeatureEnableEXT::DEBUG_PRINTF),
        _ => None,
    }
}

/// A setting of the Khronos layer that is switched on.
fn enabled_setting(name: &CStr) -> vk::LayerSettingEXT<'_> {
    const ON: [u8; 4] = 1u32.to_ne_bytes();
    let setting = vk::LayerSettingEXT::default().layer_name(c"VK_LAYER_KHRONOS_validation").setting_name(name);
    // One value of four bytes.
    vk::LayerSettingEXT { value_count: 1, ..setting.ty(vk::LayerSettingTypeEXT::BOOL32).values(&ON) }
}

/// An instance, with names and labels where the system has them.
pub(crate) struct SampleInstance {
    pub(crate) entry: ash::Entry,
    pub(crate) handle: ash::Instance,
    pub(crate) has_debug_utils: bool,
    /// The version of Vulkan that it was asked for.
    pub(crate) api_version: u32,
}

impl SampleInstance {
    pub(crate) fn new(extensions: &[&'static CStr]) -> Result<SampleInstance, Failure> {
        // SAFETY: the initializers of the loader have no preconditions, and `Entry` keeps the library open.
        let entry = unsafe { ash::Entry::load() };
        let entry =
            entry.map_err(|error| Failure::Unsupported(format!("the Vulkan loader cannot be opened: {error}")))?;
        let offered = SampleInstance::offered(&entry)?;
        if let Some(missing) = extensions.iter().find(|it| !offered.iter().any(|have| have.as_c_str() == **it)) {
            return Err(Failure::Unsupported(format!("no driver has the extension {}", missing.to_string_lossy())));
        }
        let has_debug_utils = offered.iter().any(|it| it.as_c_str() == ext::debug_utils::NAME);
        let mut names: Vec<_> = extensions.iter().map(|it| it.as_ptr()).collect();
        if has_debug_utils {
            names.push(ext::debug_utils::NAME.as_ptr());
        }
        let version = wanted_version();
        let application = vk::ApplicationInfo::default()
            .application_name(c"lavascope-samples")
            .application_version(1)
            .api_version(version.unwrap_or_default());
        let info = vk::InstanceCreateInfo::default().enabled_extension_names(&names);
        let info = if version.is_some() { info.application_info(&application) } else { info };
        let wanted = std::env::var(ENABLES_VARIABLE).unwrap_or_default();
        let enables: Vec<_> = wanted.split(',').filter_map(feature).collect();
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(&enables);
        let settings = [enabled_setting(c"gpuav_enable"), enabled_setting(c"gpuav_reserve_binding_slot")];
        let mut settings = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
        let info = match wanted.as_str() {
            "" => info,
            "settings" => info.push_next(&mut settings),
            _ => info.push_next(&mut features),
        };
        // SAFETY: `info` and what it points to live until the call returns.
        let handle = unsafe { entry.create_instance(&info, None) };
        let handle = handle.map_err(|error| match error {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => Failure::Unsupported("there is no Vulkan driver".to_owned()),
            other => Failure::from(other),
        })?;
        let api_version = version.unwrap_or(vk::API_VERSION_1_0);
        Ok(SampleInstance { entry, handle, has_debug_utils, api_version })
    }

    /// Whether this extension could be asked for.
    pub(crate) fn offers(extension: &CStr) -> Result<bool, Failure> {
        // SAFETY: the initializers of the loader have no preconditions, and `Entry` keeps the library open.
        let Ok(entry) = (unsafe { ash::Entry::load() }) else { return Ok(false) };
        Ok(SampleInstance::offered(&entry)?.iter().any(|it| it.as_c_str() == extension))
    }

    fn offered(entry: &ash::Entry) -> Result<Vec<std::ffi::CString>, Failure> {
        // SAFETY: a global command of the loader, which takes no handle; no layer name means the loader's own list.
        let properties = unsafe { entry.enumerate_instance_extension_properties(None) }?;
        Ok(properties.iter().filter_map(|it| it.extension_name_as_c_str().ok()).map(CStr::to_owned).collect())
    }
}

impl Drop for SampleInstance {
    fn drop(&mut self) {
        // SAFETY: `Gpu` owns the instance and drops it after its device; surfaces borrow the `Gpu`. So no child is left
        // (VUID-vkDestroyInstance-instance-00629).
        unsafe { self.handle.destroy_instance(None) };
    }
}
