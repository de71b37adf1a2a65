//! Selects the shaders that are checked: by name, by create info, and by sampling.
//!
//! A name may be that of a module, an entry point, a source file or a pipeline. Pipelines get their names after they are
//! created; a pipeline that is selected then is created again (`later_selection`).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lavascope_abi::*;
use lavascope_settings::Settings;
use lavascope_spirv::Module;
use regex::Regex;

use super::recipe::ShaderSource;
use crate::gpu::{ChecksState, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::loader::proc_addr::c_str;

/// The selection of the user.
#[derive(Default)]
pub(crate) struct ShaderSelection {
    /// Whether only named or marked shaders are checked.
    is_limited: bool,
    shaders: Vec<ShaderPattern>,
    /// One of this many pipelines is checked.
    sample_interval: u64,
    /// How many there were. Relaxed: only the number counts.
    planned: AtomicU64,
}

/// A pattern of the user.
struct ShaderPattern {
    regex: Regex,
    /// Whether it has matched a name. Relaxed: it is set once, and orders nothing.
    has_matched: AtomicBool,
}

impl ShaderPattern {
    fn matches(&self, name: &str) -> bool {
        let is_match = self.regex.is_match(name);
        if is_match {
            self.has_matched.store(true, Ordering::Relaxed);
        }
        is_match
    }
}

impl ShaderSelection {
    /// An invalid regular expression is reported with the name of its setting.
    pub(crate) fn from_settings(settings: &Settings, complain: &mut impl FnMut(&str, String)) -> ShaderSelection {
        let mut compile = |pattern: &String| {
            let regex =
                Regex::new(pattern).map_err(|why| complain("gpu_shaders", format!("`{pattern}`: {why}"))).ok()?;
            Some(ShaderPattern { regex, has_matched: AtomicBool::new(false) })
        };
        ShaderSelection {
            is_limited: settings.gpu_select || !settings.gpu_shaders.is_empty(),
            shaders: settings.gpu_shaders.iter().filter_map(&mut compile).collect(),
            sample_interval: settings.gpu_sample.max(1),
            planned: AtomicU64::new(0),
        }
    }

    /// Whether the next pipeline is in the sample.
    pub(crate) fn take_next_sample(&self) -> bool {
        self.planned.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.sample_interval.max(1))
    }

    /// Whether shaders may be left out because of their names.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// Whether a name selects shaders.
    pub(crate) fn selects_name(&self, name: &str) -> bool {
        self.selects_names(&[name.to_owned()])
    }

    /// The patterns that have matched nothing, once each.
    pub(crate) fn take_unmatched(&self) -> Vec<String> {
        let is_new = |it: &&ShaderPattern| !it.has_matched.swap(true, Ordering::Relaxed);
        self.shaders.iter().filter(is_new).map(|it| it.regex.as_str().to_owned()).collect()
    }

    /// Notes whether a shader is checked.
    ///
    /// # Safety
    ///
    /// The info must be that of a stage of a valid call that has not returned.
    pub(crate) unsafe fn select_stage(
        &self,
        state: &ChecksState,
        info: &PipelineShaderStageCreateInfo,
        mut source: ShaderSource,
    ) -> Option<ShaderSource> {
        if self.is_limited {
            let is_known = state.requested_modules.contains(&info.module.0);
            // SAFETY: the contract of this function: the chain of a stage of a valid call.
            let is_requested = is_known || unsafe { requests_checks(info.p_next) };
            // SAFETY: the contract of this function, which is that of `shader_names`.
            let names = || unsafe { shader_names(state, info, &source.words) };
            source.is_selected = is_requested || self.selects_names(&names());
        }
        Some(source)
    }

    fn selects_names(&self, names: &[String]) -> bool {
        // All of them are tried, so that each pattern knows whether it has matched.
        let matches = |pattern: &ShaderPattern| names.iter().filter(|it| pattern.matches(it)).count() > 0;
        self.shaders.iter().filter(|it| matches(it)).count() > 0
    }
}

/// Whether the creation of a shader asks for checks.
///
/// # Safety
///
/// The chain must be that of an info of a valid call that has not returned.
pub(crate) unsafe fn requests_checks(chain: Ptr<Opaque>) -> bool {
    let ty = StructureType::VALIDATION_FEATURES_EXT;
    // SAFETY: the contract of this function: a valid chain; the type is that of the structure.
    let Some(found) = (unsafe { find_in_chain::<ValidationFeaturesEXT>(chain, ty) }) else { return false };
    // SAFETY: a structure of the chain, which stays until the call returns.
    let found = unsafe { &*found.as_ptr() };
    // SAFETY: VUID-VkValidationFeaturesEXT-pEnabledValidationFeatures-parameter: as many as it says.
    let features = unsafe { slice(found.p_enabled_validation_features, found.enabled_validation_feature_count) };
    features.contains(&ValidationFeatureEnableEXT::GPU_ASSISTED_EXT)
}

/// The names of a shader: its module, its entry point, and its source files.
///
/// # Safety
///
/// The info must be that of a stage of a valid call that has not returned.
unsafe fn shader_names(state: &ChecksState, info: &PipelineShaderStageCreateInfo, words: &[u32]) -> Vec<String> {
    let ty = StructureType::DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
    // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pNext-pNext, by the contract of this function: a valid chain; the
    // type is that of the structure.
    let chained = unsafe { find_in_chain::<DebugUtilsObjectNameInfoEXT>(info.p_next, ty) };
    // SAFETY: a structure of the chain. VUID-VkDebugUtilsObjectNameInfoEXT-pObjectName-parameter: null or
    // null-terminated.
    let chained = chained.and_then(|it| unsafe { c_str((*it.as_ptr()).p_object_name) });
    // SAFETY: VUID-VkPipelineShaderStageCreateInfo-pName-parameter, by the contract of this function: null-terminated.
    let entry = unsafe { c_str(info.p_name) };
    let own = state.names.get(ObjectType::SHADER_MODULE, info.module.0);
    let named = [entry, chained].into_iter().flatten().map(|it| it.to_string_lossy().into_owned());
    let sources = Module::parse(words).map(|it| it.sources()).unwrap_or_default();
    let files = sources.into_iter().map(|it| it.0).filter(|it| !it.is_empty());
    named.chain(own).chain(files).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(change: impl FnOnce(&mut Settings)) -> (ShaderSelection, Vec<String>) {
        let (mut settings, mut warnings) = (Settings::default(), Vec::new());
        change(&mut settings);
        let scope =
            ShaderSelection::from_settings(&settings, &mut |setting, text| warnings.push(format!("{setting}: {text}")));
        (scope, warnings)
    }

    #[test]
    fn shaders_are_chosen_by_any_of_their_names() {
        let (all, _) = scope(|_| ());
        assert!(!all.is_limited);
        let (some, warnings) = scope(|it| it.gpu_shaders = vec!["^sky".into(), "(".into()]);
        assert!(some.is_limited && some.selects_names(&["main".into(), "skybox.frag".into()]));
        assert!(!some.selects_names(&["main".into(), "blue-sky.frag".into()]));
        assert!(warnings.len() == 1 && warnings[0].starts_with("gpu_shaders: `(`: "), "{warnings:?}");
        let (none, _) = scope(|it| it.gpu_select = true);
        assert!(none.is_limited && !none.selects_names(&["main".into()]));
    }

    #[test]
    fn a_pattern_without_a_match_is_reported_once() {
        let (some, _) = scope(|it| it.gpu_shaders = vec!["sky".into(), "sea".into(), "skybox".into()]);
        assert!(some.selects_name("skybox.frag"));
        assert_eq!((some.take_unmatched(), some.take_unmatched()), (vec!["sea".to_owned()], Vec::new()));
    }

    #[test]
    fn pipelines_are_chosen_by_counting() {
        let (all, _) = scope(|_| ());
        assert!(all.take_next_sample() && all.take_next_sample());
        assert!(all.take_unmatched().is_empty());
        let (third, _) = scope(|it| it.gpu_sample = 3);
        let taken: Vec<bool> = (0..7).map(|_| third.take_next_sample()).collect();
        assert_eq!(taken, [true, false, false, true, false, false, true]);
    }
}
