//! What the application says in the chain of `vkCreateInstance`: settings, and who wants messages.

use lavascope_abi::*;
use lavascope_settings::{ApplicationSettings, LayerSetting, SettingValues};

use crate::loader::instance::has_extension;
use crate::loader::proc_addr::c_str;
use crate::report::messages::Messenger;

/// Chains longer than this are not read to their end; a cyclic chain would never end.
const CHAIN_MAX: usize = 1024;

/// What was found.
#[derive(Default)]
pub(crate) struct InstanceChainInfo {
    pub(crate) settings: ApplicationSettings,
    /// For the time of creation and destruction only.
    pub(crate) messengers: Vec<Messenger>,
    pub(crate) has_debug_utils: bool,
    pub(crate) has_debug_report: bool,
    /// The version of Vulkan that it is written for.
    pub(crate) api_version: u32,
}

/// The beginning of every structure of a chain.
#[repr(C)]
struct BaseStructure {
    s_type: StructureType,
    p_next: Ptr<BaseStructure>,
}

impl InstanceChainInfo {
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateInstance` that has not returned. Its callbacks must stay callable for
    /// as long as the messengers that are found are used.
    pub(crate) unsafe fn read(info: &InstanceCreateInfo) -> InstanceChainInfo {
        let mut wishes = InstanceChainInfo {
            // SAFETY: the contract of this function: the info of a valid `vkCreateInstance`.
            has_debug_utils: unsafe { has_extension(info, c"VK_EXT_debug_utils") },
            // SAFETY: the contract of this function: the info of a valid `vkCreateInstance`.
            has_debug_report: unsafe { has_extension(info, c"VK_EXT_debug_report") },
            // SAFETY: VUID-VkInstanceCreateInfo-pApplicationInfo-parameter: null or valid.
            api_version: unsafe { info.p_application_info.as_ptr().as_ref() }.map_or(0, |it| it.api_version),
            ..InstanceChainInfo::default()
        };
        let mut next = info.p_next.cast::<BaseStructure>();
        for _ in 0..CHAIN_MAX {
            // SAFETY: VUID-VkInstanceCreateInfo-pNext-pNext: every structure of the chain begins like this, and stays
            // until the call returns.
            let Some(base) = (unsafe { next.as_ptr().as_ref() }) else { break };
            // SAFETY: a structure of the chain, with its type. The contract of this function says the rest.
            unsafe { wishes.read_structure(base.s_type, next) };
            next = base.p_next;
        }
        wishes
    }

    /// # Safety
    ///
    /// `base` must lead to a structure of this type, in the chain of a valid `vkCreateInstance` that has not returned.
    /// If it has a callback, that must stay callable for as long as the messenger is used.
    unsafe fn read_structure(&mut self, s_type: StructureType, base: Ptr<BaseStructure>) {
        match s_type {
            StructureType::LAYER_SETTINGS_CREATE_INFO_EXT => {
                // SAFETY: the contract of this function: the structure of this type.
                let create_info = unsafe { &*base.cast::<LayerSettingsCreateInfoEXT>().as_ptr() };
                // SAFETY: VUID-VkLayerSettingsCreateInfoEXT-pSettings-parameter: there are `setting_count` settings.
                let settings = unsafe { slice_of(create_info.p_settings, create_info.setting_count) };
                // SAFETY: the same VUID makes each setting valid.
                self.settings.layer_settings.push(settings.iter().map(|it| unsafe { layer_setting(it) }).collect());
            }
            StructureType::VALIDATION_FEATURES_EXT => {
                // SAFETY: the contract of this function: the structure of this type.
                let validation_features = unsafe { &*base.cast::<ValidationFeaturesEXT>().as_ptr() };
                // SAFETY: VUID-VkValidationFeaturesEXT-pEnabledValidationFeatures-parameter: as many as the count says.
                let enabled = unsafe {
                    slice_of(
                        validation_features.p_enabled_validation_features,
                        validation_features.enabled_validation_feature_count,
                    )
                };
                // SAFETY: VUID-VkValidationFeaturesEXT-pDisabledValidationFeatures-parameter: as many as the count
                // says.
                let disabled = unsafe {
                    slice_of(
                        validation_features.p_disabled_validation_features,
                        validation_features.disabled_validation_feature_count,
                    )
                };
                self.settings.enabled_features.extend(enabled.iter().map(|it| it.0));
                self.settings.disabled_features.extend(disabled.iter().map(|it| it.0));
            }
            StructureType::VALIDATION_FLAGS_EXT => {
                // SAFETY: the contract of this function: the structure of this type.
                let validation_flags = unsafe { &*base.cast::<ValidationFlagsEXT>().as_ptr() };
                // SAFETY: VUID-VkValidationFlagsEXT-pDisabledValidationChecks-parameter: as many as the count says.
                let disabled = unsafe {
                    slice_of(
                        validation_flags.p_disabled_validation_checks,
                        validation_flags.disabled_validation_check_count,
                    )
                };
                self.settings.disabled_checks.extend(disabled.iter().map(|it| it.0));
            }
            StructureType::DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT => {
                // SAFETY: the contract of this function: the structure of this type.
                let create_info = unsafe { &*base.cast::<DebugUtilsMessengerCreateInfoEXT>().as_ptr() };
                // SAFETY: VUID-VkDebugUtilsMessengerCreateInfoEXT-pfnUserCallback-parameter, and the contract of this
                // function for how long the callback can be called.
                self.messengers.push(unsafe { Messenger::from_debug_utils(0, create_info) });
            }
            StructureType::DEBUG_REPORT_CALLBACK_CREATE_INFO_EXT => {
                // SAFETY: the contract of this function: the structure of this type.
                let create_info = unsafe { &*base.cast::<DebugReportCallbackCreateInfoEXT>().as_ptr() };
                // SAFETY: VUID-VkDebugReportCallbackCreateInfoEXT-pfnCallback-parameter, and the contract of this
                // function for how long the callback can be called.
                self.messengers.push(unsafe { Messenger::from_debug_report(0, create_info) });
            }
            // The rest of a chain is not ours.
            _ => {}
        }
    }
}

/// The first structure of a type in a chain.
///
/// # Safety
///
/// `first` must be the `pNext` of a structure that a command was called with, while that has not returned, or null, and
/// `T` must be the structure of that type. What the result leads to may be used for as long as the command may.
pub(crate) unsafe fn find_in_chain<T>(first: Ptr<Opaque>, s_type: StructureType) -> Option<Ptr<T>> {
    let mut next = first.cast::<BaseStructure>();
    for _ in 0..CHAIN_MAX {
        // SAFETY: the contract of this function. By the `pNext-pNext` VUID of the structure that has the chain, each of
        // its structures begins like this.
        let base = unsafe { next.as_ptr().as_ref() }?;
        if base.s_type == s_type {
            return Some(next.cast());
        }
        next = base.p_next;
    }
    None
}

/// All structures of a chain, each with its type.
///
/// # Safety
///
/// `first` must be the `pNext` of a structure that a command was called with, while that has not returned, or null.
pub(crate) unsafe fn chain_types(first: Ptr<Opaque>) -> Vec<(StructureType, Ptr<Opaque>)> {
    let (mut next, mut all) = (first.cast::<BaseStructure>(), Vec::new());
    for _ in 0..CHAIN_MAX {
        // SAFETY: the contract of this function. By the `pNext-pNext` VUID of the structure that has the chain, each of
        // its structures begins like this.
        let Some(base) = (unsafe { next.as_ptr().as_ref() }) else { break };
        all.push((base.s_type, next.cast()));
        next = base.p_next;
    }
    all
}

/// # Safety
///
/// `first` must be null or lead to `count` elements, which stay unchanged while `'a` lasts.
unsafe fn slice_of<'a, T>(first: Ptr<T>, count: u32) -> &'a [T] {
    if first.is_null() {
        return &[];
    }
    // SAFETY: the contract of this function, for a pointer that is not null.
    unsafe { std::slice::from_raw_parts(first.as_ptr(), count as usize) }
}

/// # Safety
///
/// The setting must be one of a `VkLayerSettingsCreateInfoEXT` in the chain of a valid `vkCreateInstance` that has not
/// returned.
unsafe fn layer_setting(setting: &LayerSettingEXT) -> LayerSetting {
    // SAFETY: VUID-VkLayerSettingEXT-pLayerName-parameter and VUID-VkLayerSettingEXT-pSettingName-parameter, by the
    // contract of this function: both are null-terminated.
    let (layer, name) = unsafe { (owned_text(setting.p_layer_name), owned_text(setting.p_setting_name)) };
    // SAFETY: VUID-VkLayerSettingEXT-pValues-parameter and the VUIDs of its members for each type, by the contract of
    // this function: there are `value_count` values of the type that `type_` says; strings are null-terminated.
    let values = unsafe {
        match setting.type_ {
            LayerSettingTypeEXT::BOOL32_EXT => {
                SettingValues::Bool32(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::INT32_EXT => {
                SettingValues::Int32(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::INT64_EXT => {
                SettingValues::Int64(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::UINT32_EXT => {
                SettingValues::Uint32(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::UINT64_EXT => {
                SettingValues::Uint64(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::FLOAT32_EXT => {
                SettingValues::Float32(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::FLOAT64_EXT => {
                SettingValues::Float64(slice_of(setting.p_values.cast(), setting.value_count).to_vec())
            }
            LayerSettingTypeEXT::STRING_EXT => {
                let texts = slice_of::<Ptr<u8>>(setting.p_values.cast(), setting.value_count);
                SettingValues::String(texts.iter().map(|it| owned_text(*it)).collect())
            }
            LayerSettingTypeEXT(other) => SettingValues::Unknown(other),
        }
    };
    LayerSetting { layer, name, values }
}

/// # Safety
///
/// `name` must be null or lead to a null-terminated text.
unsafe fn owned_text(name: Ptr<u8>) -> String {
    // SAFETY: the contract of this function; the text is copied before this returns.
    unsafe { c_str(name) }.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_messengers_are_found_in_the_chain() {
        let value = Bool32(1);
        let mut setting = LayerSettingEXT::zeroed();
        setting.p_layer_name = Ptr::to(&c"VK_LAYER_LAVASCOPE_inspect".to_bytes_with_nul()[0]);
        setting.p_setting_name = Ptr::to(&c"stats".to_bytes_with_nul()[0]);
        setting.type_ = LayerSettingTypeEXT::BOOL32_EXT;
        setting.value_count = 1;
        setting.p_values = Ptr::to(&value).cast();
        let mut settings = LayerSettingsCreateInfoEXT::zeroed();
        settings.s_type = StructureType::LAYER_SETTINGS_CREATE_INFO_EXT;
        settings.setting_count = 1;
        settings.p_settings = Ptr::to(&setting);
        let mut messenger = DebugUtilsMessengerCreateInfoEXT::zeroed();
        messenger.s_type = StructureType::DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
        messenger.p_next = Ptr::to(&settings).cast();
        let extension = Ptr::<u8>::to(&c"VK_EXT_debug_utils".to_bytes_with_nul()[0]);
        let mut info = InstanceCreateInfo::zeroed();
        info.p_next = Ptr::to(&messenger).cast();
        info.enabled_extension_count = 1;
        info.pp_enabled_extension_names = Ptr::to(&extension);
        // SAFETY: the structures above are what a `vkCreateInstance` may be called with, and nobody calls the callback.
        let wishes = unsafe { InstanceChainInfo::read(&info) };
        assert_eq!((wishes.messengers.len(), wishes.has_debug_utils, wishes.has_debug_report), (1, true, false));
        let setting = &wishes.settings.layer_settings[0][0];
        assert_eq!((setting.layer.as_str(), setting.name.as_str()), ("VK_LAYER_LAVASCOPE_inspect", "stats"));
        assert!(matches!(&setting.values, SettingValues::Bool32(values) if values[..] == [1]));
    }
}
