//! Asks the loader everything, in the order in which things may go wrong.

use lavascope_abi as abi;
use lavascope_platform::library::VULKAN_LOADER;

use crate::calls::{Loader, LoaderInstance, LoaderPhysicalDevice};
use crate::info::{DeviceInfo, ExtensionInfo, LayerInfo, LoaderError, LoaderInfo, QueryStep, Version};

/// The loader's file name on this system.
pub const LIBRARY: &str = VULKAN_LOADER;

const VENDOR_NVIDIA: u32 = 0x10de;

/// Queries the loader, and calls `watch` before each step.
///
/// This runs the code of every driver and implicit layer. If a device cannot be queried, the other results are still
/// returned, and [`LoaderInfo::devices_error`] has the reason.
pub fn query(watch: &mut dyn FnMut(QueryStep)) -> Result<LoaderInfo, LoaderError> {
    watch(QueryStep::OpenLoader);
    let loader = Loader::open(LIBRARY)?;
    let version = loader.version()?;
    watch(QueryStep::ListLayers);
    let layers = loader.layers()?.iter().map(layer_info).collect();
    watch(QueryStep::ListExtensions);
    let extensions: Vec<_> = loader.extensions()?.iter().map(extension_info).collect();
    let mut info =
        LoaderInfo { library: LIBRARY.to_owned(), version, layers, extensions, devices: vec![], devices_error: None };
    watch(QueryStep::CreateInstance);
    match create_instance(&loader, &info) {
        Ok(instance) => {
            info.devices_error = devices(&instance, &mut info.devices, watch).err();
            watch(QueryStep::DestroyInstance);
            drop(instance);
        }
        Err(error) => info.devices_error = Some(error),
    }
    Ok(info)
}

/// Makes a logical device of each physical device and destroys it, for layers that look at devices. Calls `watch` before
/// each step.
pub fn try_devices(watch: &mut dyn FnMut(QueryStep)) -> Result<(), LoaderError> {
    watch(QueryStep::OpenLoader);
    let loader = Loader::open(LIBRARY)?;
    let (version, extensions) = (loader.version()?, loader.extensions()?);
    let (library, extensions) = (LIBRARY.to_owned(), extensions.iter().map(extension_info).collect());
    let info = LoaderInfo { library, version, layers: vec![], extensions, devices: vec![], devices_error: None };
    watch(QueryStep::CreateInstance);
    let instance = create_instance(&loader, &info)?;
    watch(QueryStep::ListDevices);
    for (index, physical_device) in instance.physical_devices()?.iter().enumerate() {
        watch(QueryStep::CreateDevice { index });
        physical_device.try_device()?;
    }
    watch(QueryStep::DestroyInstance);
    Ok(())
}

fn create_instance<'a>(loader: &'a Loader, info: &LoaderInfo) -> Result<LoaderInstance<'a>, LoaderError> {
    // Without it the loader hides drivers that are not fully conformant, such as MoltenVK.
    let portability = c"VK_KHR_portability_enumeration";
    if info.extensions.iter().any(|it| it.name.as_bytes() == portability.to_bytes()) {
        loader.create_instance(info.version, &[portability], abi::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR)
    } else {
        loader.create_instance(info.version, &[], abi::InstanceCreateFlags::default())
    }
}

fn devices(
    instance: &LoaderInstance<'_>,
    found: &mut Vec<DeviceInfo>,
    watch: &mut dyn FnMut(QueryStep),
) -> Result<(), LoaderError> {
    watch(QueryStep::ListDevices);
    for (index, device) in instance.physical_devices()?.iter().enumerate() {
        watch(QueryStep::QueryDevice { index });
        found.push(device_info(device)?);
    }
    Ok(())
}

fn device_info(device: &LoaderPhysicalDevice<'_>) -> Result<DeviceInfo, LoaderError> {
    let properties = device.properties()?;
    let api_version = Version::from_packed(properties.api_version);
    let driver = if has_driver_properties(device, api_version)? { device.driver_properties() } else { None };
    Ok(DeviceInfo {
        name: text(&properties.device_name),
        kind: device_type_name(properties.device_type),
        api_version,
        driver_version: driver_version(properties.vendor_id, properties.driver_version),
        vendor_id: properties.vendor_id,
        device_id: properties.device_id,
        driver_name: driver.map(|it| text(&it.driver_name)).filter(|it| !it.is_empty()),
        driver_info: driver.map(|it| text(&it.driver_info)).filter(|it| !it.is_empty()),
    })
}

fn has_driver_properties(device: &LoaderPhysicalDevice<'_>, version: Version) -> Result<bool, LoaderError> {
    if version.is_at_least(1, 2) {
        return Ok(true);
    }
    // A device of 1.0 has no core command to ask with.
    Ok(version.is_at_least(1, 1)
        && device.extensions()?.iter().any(|it| text(&it.extension_name) == "VK_KHR_driver_properties"))
}

fn layer_info(layer: &abi::LayerProperties) -> LayerInfo {
    LayerInfo {
        name: text(&layer.layer_name),
        spec_version: Version::from_packed(layer.spec_version),
        implementation_version: layer.implementation_version,
        description: text(&layer.description),
    }
}

fn extension_info(extension: &abi::ExtensionProperties) -> ExtensionInfo {
    ExtensionInfo { name: text(&extension.extension_name), spec_version: extension.spec_version }
}

fn device_type_name(ty: abi::PhysicalDeviceType) -> String {
    match ty {
        abi::PhysicalDeviceType::INTEGRATED_GPU => "integrated GPU".to_owned(),
        abi::PhysicalDeviceType::DISCRETE_GPU => "discrete GPU".to_owned(),
        abi::PhysicalDeviceType::VIRTUAL_GPU => "virtual GPU".to_owned(),
        abi::PhysicalDeviceType::CPU => "CPU".to_owned(),
        abi::PhysicalDeviceType::OTHER => "other".to_owned(),
        abi::PhysicalDeviceType(other) => format!("device type {other}"),
    }
}

/// Vendors may pack their version as they like, and NVIDIA does.
fn driver_version(vendor_id: u32, packed: u32) -> String {
    if vendor_id == VENDOR_NVIDIA {
        return format!("{}.{}.{}.{}", packed >> 22, packed >> 14 & 0xff, packed >> 6 & 0xff, packed & 0x3f);
    }
    Version::from_packed(packed).to_string()
}

/// The text up to its zero.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|it| *it == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_zero_or_with_the_array() {
        assert_eq!(text(b"abc\0def"), "abc");
        assert_eq!(text(b"abc"), "abc");
        assert_eq!(text(b"\xff\0"), "\u{fffd}");
    }

    #[test]
    fn nvidia_packs_four_numbers() {
        assert_eq!(driver_version(VENDOR_NVIDIA, 550 << 22 | 54 << 14 | 15 << 6), "550.54.15.0");
        assert_eq!(driver_version(0x10005, Version::new(22, 3, 6).packed()), "22.3.6");
    }
}
