//! What the application chains into `vkCreateInstance`: `VK_EXT_layer_settings`, `VK_EXT_validation_features` and
//! `VK_EXT_validation_flags`, as plain values.

use std::cmp::Reverse;
use std::ffi::OsStr;

use crate::problem::{MessageSeverity, Problem, SettingSource, quoted};
use crate::resolve::{Collector, Namespace, Rank};
use crate::table::{KeyMeaning, SETTINGS, key_meaning};
use crate::{KHRONOS_LAYER, OWN_LAYER};

/// What was found in the chain; each list may be empty.
#[derive(Clone, Debug, Default)]
pub struct ApplicationSettings {
    /// `pSettings` of each `VkLayerSettingsCreateInfoEXT`, in the order of the chain.
    pub layer_settings: Vec<Vec<LayerSetting>>,
    /// `pEnabledValidationFeatures` of `VkValidationFeaturesEXT`.
    pub enabled_features: Vec<i32>,
    /// `pDisabledValidationFeatures` of `VkValidationFeaturesEXT`.
    pub disabled_features: Vec<i32>,
    /// `pDisabledValidationChecks` of `VkValidationFlagsEXT`.
    pub disabled_checks: Vec<i32>,
}

/// `VkLayerSettingEXT`.
#[derive(Clone, Debug)]
pub struct LayerSetting {
    pub layer: String,
    pub name: String,
    pub values: SettingValues,
}

/// `pValues` by `VkLayerSettingTypeEXT`.
#[derive(Clone, Debug)]
pub enum SettingValues {
    Bool32(Vec<u32>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Uint32(Vec<u32>),
    Uint64(Vec<u64>),
    Float32(Vec<f32>),
    Float64(Vec<f64>),
    String(Vec<String>),
    /// A type that is not known, so that the values could not be read.
    Unknown(i32),
}

/// An enumeration of features that became words of a list.
struct FeatureList {
    name: &'static str,
    member: &'static str,
    /// The key of that list.
    key: &'static str,
    /// By value.
    words: &'static [&'static str],
}

const ENABLES: FeatureList = FeatureList {
    name: "VkValidationFeatureEnableEXT",
    member: "VkValidationFeaturesEXT pEnabledValidationFeatures",
    key: "enables",
    words: &[
        "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT",
        "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT",
        "VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT",
        "VK_VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT",
        "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT",
    ],
};

const DISABLES: FeatureList = FeatureList {
    name: "VkValidationFeatureDisableEXT",
    member: "VkValidationFeaturesEXT pDisabledValidationFeatures",
    key: "disables",
    words: &[
        "VK_VALIDATION_FEATURE_DISABLE_ALL_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_SHADERS_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_THREAD_SAFETY_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_API_PARAMETERS_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_OBJECT_LIFETIMES_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT",
        "VK_VALIDATION_FEATURE_DISABLE_SHADER_VALIDATION_CACHE_EXT",
    ],
};

/// Older than the others; its two values say the same as two of theirs.
const CHECKS: FeatureList = FeatureList {
    name: "VkValidationCheckEXT",
    member: "VkValidationFlagsEXT pDisabledValidationChecks",
    key: "disables",
    words: &["VK_VALIDATION_FEATURE_DISABLE_ALL_EXT", "VK_VALIDATION_FEATURE_DISABLE_SHADERS_EXT"],
};

pub(crate) fn collect(application: &ApplicationSettings, collector: &mut Collector) {
    collect_features(&CHECKS, &application.disabled_checks, collector);
    collect_features(&DISABLES, &application.disabled_features, collector);
    collect_features(&ENABLES, &application.enabled_features, collector);
    let mut order = 0;
    for (structure, settings) in application.layer_settings.iter().enumerate() {
        let which = if structure == 0 { String::new() } else { format!("#{} ", structure + 1) };
        for (at, setting) in settings.iter().enumerate() {
            let place = SettingSource::Application(format!("VkLayerSettingsCreateInfoEXT {which}pSettings[{at}]"));
            collect_setting(setting, Reverse(order), &place, collector);
            order += 1;
        }
    }
}

fn collect_features(features: &FeatureList, numbers: &[i32], collector: &mut Collector) {
    for (at, number) in numbers.iter().enumerate() {
        let place = SettingSource::Application(format!("{}[{at}]", features.member));
        match usize::try_from(*number).ok().and_then(|it| features.words.get(it)) {
            Some(word) => {
                let meaning = KeyMeaning::Words(features.key);
                let rank = Rank::Features(Reverse(at));
                collector.add(Namespace::Khronos, meaning, OsStr::new(word), rank, &place);
            }
            None => {
                let problem =
                    Problem::new(MessageSeverity::Warning, &place, format!("{number} is not a {}", features.name));
                collector.report(problem.allowed(format!("0 to {}", features.words.len() - 1)));
            }
        }
    }
}

fn collect_setting(setting: &LayerSetting, order: Reverse<usize>, place: &SettingSource, collector: &mut Collector) {
    let LayerSetting { layer, name, values } = setting;
    let namespace = match layer.as_str() {
        OWN_LAYER => Namespace::Own,
        KHRONOS_LAYER => Namespace::Khronos,
        _ => return,
    };
    let Some(meaning) = key_meaning(namespace, name) else {
        if namespace == Namespace::Own {
            collector.report_unknown(place, name, name, str::to_owned);
        } else {
            let text = setting_text(values, KeyMeaning::Words("")).unwrap_or_default();
            collector.note_foreign(place, name, &text);
        }
        return;
    };
    match setting_text(values, meaning) {
        Ok(text) => {
            let rank = Rank::LayerSettings(namespace, order);
            collector.add(namespace, meaning, OsStr::new(&text), rank, place);
        }
        Err(why) => {
            let allowed = match meaning {
                KeyMeaning::Setting(at, _) => SETTINGS[at].kind.allowed(),
                KeyMeaning::Words(_) => "strings".to_owned(),
            };
            let message = format!("{} {why}", quoted(name));
            collector.report(Problem::new(MessageSeverity::Error, place, message).allowed(allowed));
        }
    }
}

/// The values as they would stand in a file.
fn setting_text(values: &SettingValues, meaning: KeyMeaning) -> Result<String, String> {
    fn all<T: ToString>(values: &[T]) -> Vec<String> {
        values.iter().map(T::to_string).collect()
    }
    let texts = match values {
        SettingValues::Bool32(items) => items.iter().map(|it| if *it == 0 { "off" } else { "on" }.to_owned()).collect(),
        SettingValues::Int32(items) => all(items),
        SettingValues::Int64(items) => all(items),
        SettingValues::Uint32(items) => all(items),
        SettingValues::Uint64(items) => all(items),
        SettingValues::Float32(items) => all(items),
        SettingValues::Float64(items) => all(items),
        SettingValues::String(string) => string.clone(),
        SettingValues::Unknown(number) => return Err(format!("has the type {number}, which is not known")),
    };
    let is_list = match meaning {
        KeyMeaning::Setting(at, _) => SETTINGS[at].kind.is_list(),
        KeyMeaning::Words(_) => true,
    };
    match &texts[..] {
        _ if is_list => Ok(texts.join(",")),
        [one] => Ok(one.clone()),
        _ => Err(format!("has {} values, and needs one", texts.len())),
    }
}
