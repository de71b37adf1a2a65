//! The checks and reports that the settings select.

use lavascope_instrument::{Checks, RecordedFault};
use lavascope_settings::{MessageSeverity, Settings};

use crate::gpu::pipeline::selection::ShaderSelection;
use crate::gpu::pipeline::shader_cache::ShaderCache;
use crate::gpu::report_unusable;
use crate::loader::instance::report_setting_problem;
use crate::report::messages::Messages;

/// Number of words for the fault records of one draw.
const RECORD_WORDS: u32 = 256;

/// The settings for shaders.
pub(crate) struct ChecksConfig {
    /// The checks that shaders get.
    pub(super) checks: Checks,
    /// Which of their findings are reported.
    descriptors: bool,
    buffers: bool,
    /// Whether faults that robust access makes harmless are reported, as warnings.
    pub(super) warns_robust: bool,
    /// Whether instances are checked before acceleration structures are built.
    pub(super) checks_instances: bool,
    pub(super) prints: Option<PrintConfig>,
    /// Whether shaders record their accesses for synchronization validation.
    pub(super) feedback: bool,
    pub(super) selection: ShaderSelection,
    /// The folder that keeps instrumented shaders between runs.
    pub(super) cache: Option<ShaderCache>,
}

/// How the output of `debugPrintfEXT` is shown.
#[derive(Clone, Copy)]
pub(super) struct PrintConfig {
    /// Print to standard output, without messages.
    pub(super) to_stdout: bool,
    /// Add everything known about the place of the print.
    pub(super) is_verbose: bool,
    /// Number of words for the prints of one draw or dispatch.
    words: u32,
}

impl ChecksConfig {
    /// None if no check of shaders is on.
    pub(crate) fn from_settings(settings: &Settings, messages: &Messages) -> Option<ChecksConfig> {
        if !settings.gpu && !settings.printf {
            return None;
        }
        let (descriptors, buffers) = (settings.gpu_descriptors, settings.gpu_buffer_bounds);
        let checks = Checks { descriptors: descriptors || buffers, addresses: settings.gpu_device_address };
        let mut complain = |setting: &str, text: String| {
            report_unusable(messages, &format!("setting {setting}"), &text);
        };
        let cache = settings.gpu_cache.then(|| ShaderCache::open(settings.gpu_cache_folder.as_deref()));
        let cache = cache.and_then(|it| it.map_err(|why| complain("gpu_cache", why)).ok());
        let words = settings.printf_buffer_size.div_ceil(4).min(u64::from(u32::MAX)) as u32;
        let (to_stdout, is_verbose) = (settings.printf_to_stdout, settings.printf_verbose);
        let checks = if settings.gpu && settings.gpu_shader_checks { checks } else { Checks::NONE };
        if settings.gpu && checks == Checks::NONE && !settings.gpu_acceleration_structures {
            complain("gpu", "nothing is checked: other settings switch off every check".to_owned());
        }
        Some(ChecksConfig {
            checks,
            feedback: settings.sync && settings.sync_submit_time && checks.descriptors,
            descriptors,
            buffers,
            warns_robust: settings.gpu_warn_robust,
            checks_instances: settings.gpu && settings.gpu_acceleration_structures,
            prints: settings.printf.then_some(PrintConfig { to_stdout, is_verbose, words }),
            selection: ShaderSelection::from_settings(settings, &mut complain),
            cache,
        })
    }

    /// Reports patterns of the user that have matched nothing, once each.
    pub(crate) fn report_unmatched(&self, messages: &Messages) {
        for pattern in self.selection.take_unmatched() {
            let text = format!("`{pattern}` matches no module, entry point, source file or pipeline");
            report_setting_problem(messages, MessageSeverity::Warning, "setting gpu_shaders", &text);
        }
    }

    /// The setting that asks for all this, for messages.
    pub(crate) fn setting(&self) -> &'static str {
        if self.checks == Checks::NONE && !self.checks_instances { "setting printf" } else { "setting gpu" }
    }

    /// Words for the records of one draw; the first one counts them, and the last one marks sites.
    pub(super) fn record_words(&self, prints: bool) -> u32 {
        let faults = if self.checks == Checks::NONE { 2 } else { RECORD_WORDS };
        self.prints.filter(|_| prints).map_or(faults, |it| it.words.saturating_add(faults))
    }

    /// Whether such a fault is reported.
    pub(super) fn reports(&self, error: &RecordedFault) -> bool {
        match error {
            RecordedFault::IndexOutOfBounds { .. } | RecordedFault::Uninitialized { .. } => self.descriptors,
            RecordedFault::BufferOutOfBounds { .. } | RecordedFault::TexelOutOfBounds { .. } => self.buffers,
            // These checks exist only with their setting.
            RecordedFault::AddressOutOfBounds { .. } => true,
        }
    }
}
