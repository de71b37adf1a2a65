//! Every setting, once.
//!
//! A row becomes a field of [`Settings`], an entry of [`SETTINGS`] and a line of `docs/settings.md`. A new setting is a
//! new row; `exists` becomes true with the first line of code that obeys it.

use std::path::PathBuf;

use crate::resolve::{Namespace, Resolved};
use crate::value::{
    BacktraceMode, CaptureMemory, CaptureTrigger, Compression, DebugAction, FrameRange, MessageId, OutputTarget,
    ReportFlag, SettingField, SettingKind, SyncMode,
};

/// What is known of a setting before anybody sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: &'static str,
    pub kind: SettingKind,
    /// As text of that kind.
    pub default: &'static str,
    /// Whether this version obeys it.
    pub exists: bool,
    /// One sentence.
    pub help: &'static str,
    pub aliases: &'static [Alias],
}

/// How the Khronos layer says it, today or formerly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alias {
    /// A key whose value is ours.
    Key(&'static str),
    /// A word in the list of this key means this value of ours.
    Word(&'static str, &'static str, &'static str),
}

/// Words that are neither ours nor a mistake. Asking for one is noted; not wanting one is not.
pub(crate) const FOREIGN_WORDS: &[(&str, &[&str])] = &[
    (
        "enables",
        &[
            "VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT",
            "VALIDATION_CHECK_ENABLE_VENDOR_SPECIFIC_ALL",
            "VALIDATION_CHECK_ENABLE_VENDOR_SPECIFIC_AMD",
            "VALIDATION_CHECK_ENABLE_VENDOR_SPECIFIC_ARM",
            "VALIDATION_CHECK_ENABLE_VENDOR_SPECIFIC_IMG",
            "VALIDATION_CHECK_ENABLE_VENDOR_SPECIFIC_NVIDIA",
        ],
    ),
    (
        "disables",
        &[
            "VK_VALIDATION_FEATURE_DISABLE_SHADERS_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_THREAD_SAFETY_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_API_PARAMETERS_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_OBJECT_LIFETIMES_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT",
            "VK_VALIDATION_FEATURE_DISABLE_SHADER_VALIDATION_CACHE_EXT",
            "VALIDATION_CHECK_DISABLE_COMMAND_BUFFER_STATE",
            "VALIDATION_CHECK_DISABLE_IMAGE_LAYOUT_VALIDATION",
            "VALIDATION_CHECK_DISABLE_OBJECT_IN_USE",
            "VALIDATION_CHECK_DISABLE_QUERY_VALIDATION",
        ],
    ),
];

/// What a key of a settings file, an environment variable or the application means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyMeaning {
    /// A setting, by its index in [`SETTINGS`], and the name by which it was called.
    Setting(usize, &'static str),
    /// A key whose list of words is understood by [`Alias::Word`].
    Words(&'static str),
}

/// Under our own name, our names and the aliases count; under the Khronos one only the aliases.
pub(crate) fn key_meaning(namespace: Namespace, key: &str) -> Option<KeyMeaning> {
    let is = |name: &str| name.eq_ignore_ascii_case(key);
    let own = SETTINGS.iter().position(|it| namespace == Namespace::Own && is(it.name));
    own.map(|at| KeyMeaning::Setting(at, SETTINGS[at].name)).or_else(|| {
        aliases().find_map(|(at, alias)| match alias {
            Alias::Key(name) if is(name) => Some(KeyMeaning::Setting(at, name)),
            Alias::Word(name, ..) if is(name) => Some(KeyMeaning::Words(name)),
            Alias::Key(_) | Alias::Word(..) => None,
        })
    })
}

/// Every alias with the index of its setting.
pub(crate) fn aliases() -> impl Iterator<Item = (usize, Alias)> {
    SETTINGS.iter().enumerate().flat_map(|(at, it)| it.aliases.iter().map(move |alias| (at, *alias)))
}

macro_rules! settings {
    ($($name:ident: $type:ty {
        kind: $kind:expr, default: $default:literal, exists: $exists:literal,
        help: $help:literal,
        aliases: [$($alias:expr),* $(,)?],
    })*) => {
        /// What the layer shall do, and where each answer comes from.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $(#[doc = $help] pub $name: $type,)*
            /// In the order of [`SETTINGS`].
            pub(crate) resolved: Vec<Resolved>,
        }

        /// All settings, in the order of `docs/settings.md`.
        pub const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            kind: $kind,
            default: $default,
            exists: $exists,
            help: $help,
            aliases: &[$($alias),*],
        },)*];

        impl Settings {
            /// There must be one value per setting, in the order of [`SETTINGS`].
            pub(crate) fn new(resolved: Vec<Resolved>) -> Settings {
                assert_eq!(resolved.len(), SETTINGS.len(), "every setting has one value");
                let mut rest = &resolved[..];
                let mut next = || rest.split_off_first().map(|it| &it.value).expect("counted above");
                Settings { $($name: SettingField::from_value(next()),)* resolved }
            }
        }
    };
}

use Alias::{Key, Word};

settings! {
    sync: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Find synchronization hazards; with `capture`, only if this setting is set.",
        aliases: [
            Key("validate_sync"),
            Word("enables", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT", "on"),
            Word("enables", "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION", "on"),
            Word("disables", "VK_VALIDATION_FEATURE_DISABLE_ALL_EXT", "off"),
        ],
    }
    sync_mode: SyncMode {
        kind: SettingKind::Choice(SyncMode::WORDS), default: "inline", exists: true,
        help: "Where calls are checked: inside of each call, or on a thread of the layer; `lavascope run` sets `async`.",
        aliases: [],
    }
    sync_stream_mib: u64 {
        kind: SettingKind::Int { min: 1, max: 65_536 }, default: "256", exists: true,
        help: "Megabytes of queued calls in the async mode; if there are more, the application waits.",
        aliases: [],
    }
    sync_submit_time: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Also find hazards between command buffers and between queues, when they are submitted.",
        aliases: [
            Key("syncval_submit_time_validation"),
            Key("sync_queue_submit"),
            Word("enables", "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", "on"),
            Word("disables", "VALIDATION_CHECK_DISABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT", "off"),
        ],
    }
    sync_host_writes: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Also find writes of the host to mapped memory that the device may still use; the driver imports memory of the layer for it where it can.",
        aliases: [],
    }
    sync_shader_heuristic: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Also report hazards as errors that depend on what shaders do at run time; those of array elements still need `possible`.",
        aliases: [Key("syncval_shader_accesses_heuristic")],
    }
    backtrace: BacktraceMode {
        kind: SettingKind::Level(BacktraceMode::WORDS), default: "off", exists: true,
        help: "Keep the call stacks of commands, or only the callers of Vulkan, and show those of findings.",
        aliases: [],
    }
    break_on_hazard: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Stop a debugger inside of the call that completes a hazard, once for each finding; implies the inline mode.",
        aliases: [],
    }
    break_first: Vec<String> {
        kind: SettingKind::Texts, default: "", exists: true,
        help: "Stop a debugger inside of the calls that make the earlier access of these findings, by fingerprint; implies the inline mode.",
        aliases: [],
    }
    possible: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Also report what may be a fault, but is not certain to be one.",
        aliases: [],
    }
    caches: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Reuse the results of earlier calls; off is slow, reports the same, and helps to find a bug in the layer.",
        aliases: [],
    }

    gpu: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Check on the GPU what shaders access; with `sync`, what they touch decides hazards.",
        aliases: [
            Key("gpuav_enable"),
            Word("enables", "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT", "on"),
            Word("validate_gpu_based", "GPU_BASED_GPU_ASSISTED", "on"),
            Word("validate_gpu_based", "GPU_BASED_DEBUG_PRINTF", "off"),
            Word("validate_gpu_based", "GPU_BASED_NONE", "off"),
        ],
    }
    gpu_reserve_binding_slot: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Reserve one descriptor set for the layer: the application sees a limit that is lower by one.",
        aliases: [
            Key("gpuav_reserve_binding_slot"),
            Key("reserve_binding_slot"),
            Word("enables", "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT", "on"),
        ],
    }
    gpu_descriptors: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Check that indices into descriptor arrays are in bounds and that the descriptors were written.",
        aliases: [Key("gpuav_descriptor_checks"), Key("gpuav_descriptor_indexing")],
    }
    gpu_buffer_bounds: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Check that accesses to uniform, storage and texel buffers stay inside the bound range.",
        aliases: [Key("gpuav_buffer_oob")],
    }
    gpu_warn_robust: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Report accesses out of bounds even where robust buffer access makes them harmless.",
        aliases: [Key("gpuav_warn_on_robust_oob"), Key("warn_on_robust_oob")],
    }
    gpu_device_address: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Check that accesses through device addresses hit a live buffer.",
        aliases: [Key("gpuav_buffer_address_oob")],
    }
    gpu_acceleration_structures: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Check the bottom level references of acceleration structure builds.",
        aliases: [Key("gpuav_acceleration_structures_builds")],
    }
    gpu_vertex_fetch: bool {
        kind: SettingKind::Flag, default: "on", exists: false,
        help: "Check that vertex attributes are fetched from inside their buffers.",
        aliases: [Key("gpuav_vertex_attribute_fetch_oob")],
    }
    gpu_index_buffers: bool {
        kind: SettingKind::Flag, default: "on", exists: false,
        help: "Check the contents of index buffers.",
        aliases: [Key("gpuav_index_buffers")],
    }
    gpu_indirect_draws: bool {
        kind: SettingKind::Flag, default: "on", exists: false,
        help: "Check the parameters of indirect draws.",
        aliases: [Key("gpuav_indirect_draws_buffers"), Key("validate_draw_indirect")],
    }
    gpu_indirect_dispatches: bool {
        kind: SettingKind::Flag, default: "on", exists: false,
        help: "Check the parameters of indirect dispatches.",
        aliases: [Key("gpuav_indirect_dispatches_buffers"), Key("validate_dispatch_indirect")],
    }
    gpu_indirect_trace_rays: bool {
        kind: SettingKind::Flag, default: "on", exists: false,
        help: "Check the parameters of indirect ray tracing.",
        aliases: [Key("gpuav_indirect_trace_rays_buffers")],
    }
    gpu_shader_checks: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Add checks to shaders; without them, the setting `gpu` checks nothing.",
        aliases: [Key("gpuav_shader_instrumentation")],
    }
    gpu_select: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Check only the shaders that `gpu_shaders` names, and those whose creation asks for it.",
        aliases: [Key("gpuav_select_instrumented_shaders"), Key("select_instrumented_shaders")],
    }
    gpu_shaders: Vec<String> {
        kind: SettingKind::Texts, default: "", exists: true,
        help: "Check only the shaders of these names, as regular expressions: of modules, entry points, source files and pipelines.",
        aliases: [Key("gpuav_shaders_to_instrument")],
    }
    gpu_sample: u64 {
        kind: SettingKind::Int { min: 1, max: 1 << 32 }, default: "1", exists: true,
        help: "Check only one in this number of pipelines.",
        aliases: [],
    }
    gpu_cache: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Keep shaders with checks on disk for the next run.",
        aliases: [Key("gpuav_cache_instrumented_shaders"), Key("cache_instrumented_shaders")],
    }
    gpu_cache_folder: Option<PathBuf> {
        kind: SettingKind::Path, default: "", exists: true,
        help: "Where shaders with checks are kept; else in `lavascope` below `XDG_CACHE_HOME` or `~/.cache`.",
        aliases: [],
    }

    printf: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Show what shaders print with `debugPrintfEXT`.",
        aliases: [
            Key("printf_enable"),
            Key("printf_only_preset"),
            Word("enables", "VK_VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT", "on"),
            Word("validate_gpu_based", "GPU_BASED_GPU_ASSISTED", "off"),
            Word("validate_gpu_based", "GPU_BASED_DEBUG_PRINTF", "on"),
            Word("validate_gpu_based", "GPU_BASED_NONE", "off"),
        ],
    }
    printf_to_stdout: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Print to standard output instead of making messages.",
        aliases: [Key("printf_to_stdout")],
    }
    printf_verbose: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Add shader and line to each print.",
        aliases: [Key("printf_verbose")],
    }
    printf_buffer_size: u64 {
        kind: SettingKind::Int { min: 64, max: 1 << 30 }, default: "1024", exists: true,
        help: "Bytes that the prints of one draw or dispatch may take.",
        aliases: [Key("printf_buffer_size")],
    }

    capture: Option<PathBuf> {
        kind: SettingKind::Path, default: "", exists: true,
        help: "Record every call into this file.",
        aliases: [],
    }
    capture_frames: Option<FrameRange> {
        kind: SettingKind::Frames, default: "", exists: true,
        help: "End the capture behind these frames, and mark them for `lavascope trim`.",
        aliases: [],
    }
    capture_submits: Option<FrameRange> {
        kind: SettingKind::Frames, default: "", exists: true,
        help: "The same by submissions, for programs without frames.",
        aliases: [],
    }
    capture_trigger: CaptureTrigger {
        kind: SettingKind::Choice(CaptureTrigger::WORDS), default: "off", exists: true,
        help: "A signal that begins the captured part, and ends it when it comes again.",
        aliases: [],
    }
    capture_compression: Compression {
        kind: SettingKind::Choice(Compression::WORDS), default: "zstd", exists: true,
        help: "How the file is compressed.",
        aliases: [],
    }
    capture_memory: CaptureMemory {
        kind: SettingKind::Choice(CaptureMemory::WORDS), default: "auto", exists: true,
        help: "How host writes to mapped memory are found: by pages that the system reports as written, by the same pages in a copy that the program gets, by page faults, or by comparing with a copy.",
        aliases: [],
    }
    capture_results: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Also capture what the device writes into host visible memory, so that a replay can be compared with it; all of that memory is read after each wait.",
        aliases: [],
    }
    unseen_surfaces: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Offer surfaces without a window (VK_EXT_headless_surface) in place of the driver's: their swapchains are plain images, and only a capture shows what is presented; `lavascope replay --recapture` sets it.",
        aliases: [],
    }
    capture_flush_ms: u64 {
        kind: SettingKind::Int { min: 1, max: 60_000 }, default: "100", exists: true,
        help: "The most milliseconds until a captured call is safe from a loss of power.",
        aliases: [],
    }

    screenshot: Vec<FrameRange> {
        kind: SettingKind::FrameRanges, default: "", exists: true,
        help: "Write what is presented in these frames, counted from 0, as pictures (PNG).",
        aliases: [],
    }
    screenshots: Option<PathBuf> {
        kind: SettingKind::Path, default: "", exists: true,
        help: "The folder for pictures of frames; else the current one.",
        aliases: [],
    }

    print: Option<OutputTarget> {
        kind: SettingKind::Output, default: "", exists: true,
        help: "Print every call into this file.",
        aliases: [],
    }
    stats: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Count calls by command, and print the counts at exit.",
        aliases: [],
    }
    report: Option<PathBuf> {
        kind: SettingKind::Path, default: "", exists: true,
        help: "The folder for the findings of each process, as `lavascope run` reads them.",
        aliases: [],
    }

    message_id_filter: Vec<MessageId> {
        kind: SettingKind::MessageIds, default: "", exists: true,
        help: "Messages to hide, by code, short code or number.",
        aliases: [Key("message_id_filter")],
    }
    ignore: Vec<String> {
        kind: SettingKind::Rules, default: "", exists: true,
        help: "Findings to hide, by code or short code, by the debug labels around them, or by the name of an object; they are counted.",
        aliases: [],
    }
    enable_message_limit: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "Send messages of one cause at most `duplicate_message_limit` times.",
        aliases: [Key("enable_message_limit")],
    }
    duplicate_message_limit: u64 {
        kind: SettingKind::Int { min: 0, max: u32::MAX as u64 }, default: "10", exists: true,
        help: "How often messages of one cause are sent; 0 means no limit.",
        aliases: [Key("duplicate_message_limit")],
    }
    message_extra_properties: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "End each message with its properties as `key = value` lines.",
        aliases: [Key("syncval_message_extra_properties")],
    }
    message_format_json: bool {
        kind: SettingKind::Flag, default: "off", exists: true,
        help: "Send messages as JSON.",
        aliases: [Key("message_format_json")],
    }
    report_flags: Vec<ReportFlag> {
        kind: SettingKind::Choices(ReportFlag::WORDS), default: "error,warn", exists: true,
        help: "Which messages are logged.",
        aliases: [Key("report_flags")],
    }
    debug_action: Vec<DebugAction> {
        kind: SettingKind::Choices(DebugAction::WORDS), default: "VK_DBG_LAYER_ACTION_DEFAULT", exists: true,
        help: "What happens to a message: by default, callbacks receive it, and without callbacks it is logged; a break stops a debugger.",
        aliases: [Key("debug_action")],
    }
    summary: bool {
        kind: SettingKind::Flag, default: "on", exists: true,
        help: "At exit, log one line about what was checked, if messages are logged to standard error.",
        aliases: [],
    }
    log_filename: OutputTarget {
        kind: SettingKind::Output, default: "stderr", exists: true,
        help: "Where messages are logged.",
        aliases: [Key("log_filename")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_default_is_a_value_and_shows_as_itself() {
        for setting in SETTINGS {
            let value = setting.kind.parse(setting.default).expect(setting.name);
            assert_eq!(value.to_string(), setting.default, "{}", setting.name);
        }
    }

    #[test]
    fn names_and_aliases_lead_to_one_setting() {
        let mut names: HashSet<&str> = SETTINGS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        for (at, alias) in aliases() {
            match alias {
                Key(key) => {
                    assert!(names.insert(key) || key == SETTINGS[at].name, "{key} is taken");
                    assert_eq!(key_meaning(Namespace::Own, key), Some(KeyMeaning::Setting(at, key)));
                    assert_eq!(key_meaning(Namespace::Khronos, key), Some(KeyMeaning::Setting(at, key)));
                }
                Word(key, word, value) => {
                    assert_eq!(key_meaning(Namespace::Khronos, key), Some(KeyMeaning::Words(key)));
                    assert!(SETTINGS[at].kind.parse(value).is_ok(), "{word}");
                    assert!(!FOREIGN_WORDS.iter().any(|it| it.1.contains(&word)), "{word}");
                }
            }
        }
        assert_eq!(key_meaning(Namespace::Khronos, "sync"), None);
        assert_eq!(key_meaning(Namespace::Own, "nothing"), None);
    }

    #[test]
    fn help_is_one_sentence() {
        for setting in SETTINGS {
            assert!(
                setting.help.ends_with('.') && setting.help.matches(". ").count() == 0,
                "{}: {}",
                setting.name,
                setting.help
            );
        }
    }
}
