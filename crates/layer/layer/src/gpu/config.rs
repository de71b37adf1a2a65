//! What is checked and shown, from the settings.

use lavascope_instrument::{Checks, RecordedFault};
use lavascope_settings::Settings;

use crate::gpu::pipeline::selection::ShaderSelection;
use crate::gpu::pipeline::shader_cache::ShaderCache;
use crate::gpu::report_unusable;
use crate::report::messages::Messages;

/// Words for the records of one draw.
const RECORD_WORDS: u32 = 256;

/// What the user wants to know of shaders.
pub(crate) struct ChecksConfig {
    /// Checks that shaders get.
    pub(super) checks: Checks,
    /// Which of what they find is told.
    descriptors: bool,
    buffers: bool,
    /// Whether faults that robust access makes harmless are told, as warnings.
    pub(super) warns_robust: bool,
    /// Whether instances are looked at before acceleration structures are built.
    pub(super) checks_instances: bool,
    pub(super) prints: Option<PrintConfig>,
    /// Whether shaders keep what they touch, for the search for hazards.
    pub(super) feedback: bool,
    pub(super) selection: ShaderSelection,
    /// Where shaders with checks are kept from run to run.
    pub(super) cache: Option<ShaderCache>,
}

/// How what shaders print is shown.
#[derive(Clone, Copy)]
pub(super) struct PrintConfig {
    /// On standard output, and no messages are made of it.
    pub(super) to_stdout: bool,
    /// With all that is known of where it was printed.
    pub(super) is_verbose: bool,
    /// What there is for one draw or dispatch.
    words: u32,
}

impl ChecksConfig {
    /// None where nothing is wanted of shaders.
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

    /// The setting that asks for all this, for messages.
    pub(crate) fn setting(&self) -> &'static str {
        if self.checks == Checks::NONE && !self.checks_instances { "setting printf" } else { "setting gpu" }
    }

    /// Words for the records of one draw; the first one counts them.
    pub(super) fn record_words(&self, prints: bool) -> u32 {
        let faults = if self.checks == Checks::NONE { 1 } else { RECORD_WORDS };
        self.prints.filter(|_| prints).map_or(faults, |it| it.words.saturating_add(faults))
    }

    /// Whether such a fault is told.
    pub(super) fn reports(&self, error: &RecordedFault) -> bool {
        match error {
            RecordedFault::IndexOutOfBounds { .. } | RecordedFault::Uninitialized { .. } => self.descriptors,
            RecordedFault::BufferOutOfBounds { .. } | RecordedFault::TexelOutOfBounds { .. } => self.buffers,
            // Without the setting there are no such checks.
            RecordedFault::AddressOutOfBounds { .. } => true,
        }
    }
}
