//! Why an instance or a device is not created: which extension or feature is missing.
//!
//! A layer or an instance extension that is missing never comes this far: the loader refuses it first.

use lavascope_abi::desc::{Layout, Ty};
use lavascope_abi::*;
use lavascope_settings::MessageSeverity;

use crate::capture::device_metadata::text_of;
use crate::loader::instance::{InstanceData, report_problem};
use crate::loader::interface::{out, out_slice};
use crate::loader::pnext_chain::chain_types;
use crate::loader::proc_addr::c_str;
use crate::report::messages::Messages;

/// Names of extensions and features in one message.
const NAMES_MAX: usize = 8;
/// The core features that `vkCreateDevice` gets without a chain.
const CORE_FEATURES: &str = "VkPhysicalDeviceFeatures";
const FEATURES_2: StructureType = StructureType::PHYSICAL_DEVICE_FEATURES_2;

/// Reports that `vkCreateInstance` failed.
pub(crate) fn report_instance(messages: &Messages, result: Result) {
    let why = match result {
        Result::ERROR_INCOMPATIBLE_DRIVER => "no driver supports what the program asks for; see `lavascope doctor`",
        Result::ERROR_EXTENSION_NOT_PRESENT => "a driver does not have an instance extension that the program enables",
        Result::ERROR_LAYER_NOT_PRESENT => "a layer that the program enables is not installed",
        _ => "the driver, or a layer below this one, gives no reason",
    };
    report(messages, "vkCreateInstance", result, why);
}

/// Reports that `vkCreateDevice` failed, with what the physical device does not have.
///
/// # Safety
///
/// The parameters must be those of a valid `vkCreateDevice` on a physical device of the instance, which has not
/// returned to the application.
pub(crate) unsafe fn report_device(instance: &InstanceData, params: &CreateDeviceParams, result: Result) {
    // SAFETY: VUID-vkCreateDevice-pCreateInfo-parameter, by the contract of this function; null is none.
    let Some(info) = (unsafe { params.p_create_info.as_ptr().as_ref() }) else { return };
    // SAFETY: the contract of this function: a valid info, and a physical device of this instance.
    let (extensions, features) = unsafe {
        let missing = missing_extensions(instance, params.physical_device, info);
        (missing, missing_features(instance, params.physical_device, info))
    };
    // SAFETY: the contract of this function: a physical device of this instance.
    let device = unsafe { device_name(instance, params.physical_device) };
    let parts: Vec<String> = [("extension", extensions), ("feature", features)]
        .into_iter()
        .filter_map(|it| names_text(it.0, &it.1))
        .collect();
    let why = match parts.is_empty() {
        true => "the device has all extensions and features that the program enables".to_owned(),
        false => format!("{device} does not have the {}", parts.join(", nor the ")),
    };
    report(&instance.messages, "vkCreateDevice", result, &why);
}

fn report(messages: &Messages, function: &str, result: Result, why: &str) {
    let text = format!("{}: {why}", result_name(result));
    report_problem(messages, MessageSeverity::Warning, c"LAVASCOPE-Creation", (function, &text));
}

/// `extensions VK_KHR_a, VK_KHR_b`; none if there are none.
fn names_text(word: &str, names: &[String]) -> Option<String> {
    let plural = if names.len() == 1 { "" } else { "s" };
    let more = names.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let shown = names.iter().take(NAMES_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| format!("{word}{plural} {shown}{more}"))
}

fn result_name(result: Result) -> String {
    let known = RESULT_ENUM.values.iter().find(|it| it.0 == i64::from(result.0));
    known.map_or_else(|| format!("VkResult {}", result.0), |it| it.1.to_owned())
}

/// # Safety
///
/// The physical device must be one of the instance, and be alive until this returns.
unsafe fn device_name(instance: &InstanceData, physical_device: PhysicalDevice) -> String {
    let Some(ask) = instance.table.get_physical_device_properties else { return "the device".to_owned() };
    let mut properties = PhysicalDeviceProperties::zeroed();
    // SAFETY: the contract of this function, for a function of the instance; the place is ours.
    unsafe { ask(physical_device, out(&mut properties)) };
    text_of(&properties.device_name)
}

/// The extensions that are enabled and that the device does not have.
///
/// # Safety
///
/// As for [`report_device`].
unsafe fn missing_extensions(
    instance: &InstanceData,
    physical_device: PhysicalDevice,
    info: &DeviceCreateInfo,
) -> Vec<String> {
    let Some(ask) = instance.table.enumerate_device_extension_properties else { return Vec::new() };
    let mut count = 0_u32;
    // SAFETY: the contract of this function, for a function of the instance; the place is ours.
    let result = unsafe { ask(physical_device, Ptr::NULL, out(&mut count), Ptr::NULL) };
    let mut supported = vec![ExtensionProperties::zeroed(); count as usize];
    // SAFETY: as for the first call; there is room for as many as the count says.
    let filled = unsafe { ask(physical_device, Ptr::NULL, out(&mut count), out_slice(&mut supported)) };
    if result != Result::SUCCESS || filled != Result::SUCCESS {
        return Vec::new();
    }
    let supported: Vec<String> = supported.iter().map(|it| text_of(&it.extension_name)).collect();
    // SAFETY: VUID-VkDeviceCreateInfo-ppEnabledExtensionNames-parameter, by the contract of this function: so many
    // names, each null-terminated.
    let names = (0..info.enabled_extension_count as usize).filter_map(|at| unsafe {
        let name = info.pp_enabled_extension_names.as_ptr().add(at).as_ref()?;
        c_str(*name)
    });
    names.map(|it| it.to_string_lossy().into_owned()).filter(|it| !supported.contains(it)).collect()
}

/// A structure of features, as words: what the program enables, and what the device has.
struct FeatureStructure {
    layout: &'static Layout,
    enabled: Vec<u32>,
    supported: Vec<u64>,
}

impl FeatureStructure {
    /// The names of features that are enabled and not supported.
    fn missing(&self) -> Vec<String> {
        let supported: Vec<u32> = self.supported.iter().flat_map(|it| [*it as u32, (*it >> 32) as u32]).collect();
        let flags = self.layout.fields.iter().filter_map(|field| match field.ty {
            Ty::Bool32 => Some((self.layout.name, field.name, field.at)),
            _ => None,
        });
        // `VkPhysicalDeviceFeatures2` has the core features inside.
        let inner = self.layout.fields.iter().flat_map(|field| match field.ty {
            Ty::Struct(inner) => inner.fields.iter().map(|it| (inner.name, it.name, field.at + it.at)).collect(),
            _ => Vec::new(),
        });
        let is_missing = |at: u32| {
            let at = at as usize / 4;
            self.enabled.get(at).is_some_and(|it| *it != 0) && supported.get(at).is_none_or(|it| *it == 0)
        };
        flags.chain(inner).filter(|it| is_missing(it.2)).map(|it| format!("{} of {}", it.1, it.0)).collect()
    }
}

/// The features that are enabled and that the device does not have.
///
/// # Safety
///
/// As for [`report_device`].
unsafe fn missing_features(
    instance: &InstanceData,
    physical_device: PhysicalDevice,
    info: &DeviceCreateInfo,
) -> Vec<String> {
    let mut all = Vec::new();
    // SAFETY: the contract of this function: the chain of a valid info.
    for (ty, at) in unsafe { chain_types(info.p_next) } {
        let layout = structure_by_type(ty.0).filter(|it| it.name.contains("Features") && it.size >= 16);
        let Some(layout) = layout else { continue };
        // SAFETY: the structure of this type is so large, and by the contract of this function it may be read.
        let enabled = unsafe { std::slice::from_raw_parts(at.cast::<u32>().as_ptr(), layout.size as usize / 4) };
        let mut supported = vec![0_u64; (layout.size as usize).div_ceil(8)];
        supported[0] = u64::from(ty.0.cast_unsigned());
        all.push(FeatureStructure { layout, enabled: enabled.to_vec(), supported });
    }
    let mut missing = Vec::new();
    if let Some(ask) = instance.table.get_physical_device_features2 {
        let mut first = PhysicalDeviceFeatures2::zeroed();
        first.s_type = FEATURES_2;
        // Each structure leads to the one before it; the second word of every structure is `pNext`.
        let mut next: Ptr<Opaque> = Ptr::NULL;
        for structure in all.iter_mut().filter(|it| it.layout.s_type() != Some(FEATURES_2.0)) {
            structure.supported[1] = next.0;
            next = out_slice(&mut structure.supported).cast();
        }
        first.p_next = next;
        // SAFETY: the contract of this function, for the function of the instance. The structures are ours, and by
        // VUID-VkPhysicalDeviceFeatures2-pNext-pNext structures of features may be in this chain.
        unsafe { ask(physical_device, out(&mut first)) };
        for structure in all.iter_mut().filter(|it| it.layout.s_type() == Some(FEATURES_2.0)) {
            structure.supported = words_of(&first.features, 2);
        }
        missing.extend(all.iter().flat_map(FeatureStructure::missing));
    }
    // SAFETY: VUID-VkDeviceCreateInfo-pEnabledFeatures-parameter, by the contract of this function; null is none.
    let core = unsafe { info.p_enabled_features.as_ptr().as_ref() };
    if let (Some(core), Some(ask), Some(layout)) =
        (core, instance.table.get_physical_device_features, structure_by_name(CORE_FEATURES))
    {
        let mut features = PhysicalDeviceFeatures::zeroed();
        // SAFETY: the contract of this function, for a function of the instance; the place is ours.
        unsafe { ask(physical_device, out(&mut features)) };
        let enabled = words_of(core, 0).iter().flat_map(|it| [*it as u32, (*it >> 32) as u32]).collect();
        missing.extend(FeatureStructure { layout, enabled, supported: words_of(&features, 0) }.missing());
    }
    missing
}

/// The words of core features, behind some others.
fn words_of(features: &PhysicalDeviceFeatures, offset: usize) -> Vec<u64> {
    const WORDS: usize = size_of::<PhysicalDeviceFeatures>() / 4;
    // SAFETY: a structure of flags alone is made of so many words of four bytes, all of them initialized.
    let flags = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(features).cast::<u32>(), WORDS) };
    let pair = |it: &[u32]| u64::from(it[0]) | it.get(1).map_or(0, |it| u64::from(*it) << 32);
    std::iter::repeat_n(0, offset).chain(flags.chunks(2).map(pair)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_names() {
        assert_eq!(result_name(Result::ERROR_FEATURE_NOT_PRESENT), "VK_ERROR_FEATURE_NOT_PRESENT");
        assert_eq!(result_name(Result(-77)), "VkResult -77");
    }

    #[test]
    fn what_is_enabled_and_not_supported_is_named() {
        let mut core = PhysicalDeviceFeatures::zeroed();
        core.geometry_shader = Bool32(1);
        core.inherited_queries = Bool32(1);
        let mut has = PhysicalDeviceFeatures::zeroed();
        has.inherited_queries = Bool32(1);
        let layout = structure_by_name(CORE_FEATURES).expect("it is known");
        let enabled = words_of(&core, 0).iter().flat_map(|it| [*it as u32, (*it >> 32) as u32]).collect();
        let own = FeatureStructure { layout, enabled, supported: words_of(&has, 0) };
        assert_eq!(own.missing(), ["geometryShader of VkPhysicalDeviceFeatures"]);
        let layout = structure_by_type(FEATURES_2.0).expect("it is known");
        let enabled = words_of(&core, 2).iter().flat_map(|it| [*it as u32, (*it >> 32) as u32]).collect();
        let own = FeatureStructure { layout, enabled, supported: words_of(&has, 2) };
        assert_eq!(own.missing(), ["geometryShader of VkPhysicalDeviceFeatures"]);
    }

    #[test]
    fn long_lists_are_cut() {
        let names: Vec<String> = (0..10).map(|it| format!("f{it}")).collect();
        assert_eq!(names_text("feature", &names[..1]), Some("feature f0".to_owned()));
        assert_eq!(
            names_text("feature", &names),
            Some("features f0, f1, f2, f3, f4, f5, f6, f7 and 2 more".to_owned())
        );
        assert_eq!(names_text("feature", &[]), None);
    }
}
