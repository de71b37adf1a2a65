//! The settings of the layer `VK_LAYER_LAVASCOPE_inspect`.
//!
//! A setting comes, weakest first, from its default, from `vk_layer_settings.txt`, from the environment, or from what
//! the application chains into `vkCreateInstance`. Wherever it comes from, our name for it and the names that users of
//! the Khronos validation layer know both count; ours is the stronger of the two within one source.
//!
//! ```
//! use lavascope_settings::{Sources, resolve};
//!
//! let environment = vec![("LAVASCOPE_PRINT".into(), "calls.txt".into()), ("VK_LAYER_VALIDATE_SYNC".into(), "0".into())];
//! let (settings, problems) = resolve(&Sources { environment, ..Sources::default() });
//! assert!(!settings.sync);
//! assert!(problems.is_empty());
//! ```
//!
//! Where to look:
//!
//! - `table`: every setting, once; the fields of [`Settings`], the parsing and `docs/settings.md` follow from it.
//! - `value`: the kinds of values, how they are read from text, and their types.
//! - `file`, `environment`, `application`: what each source looks like; all three hand keys and text to `resolve`.
//! - `resolve`: which source wins, and what is said about settings that this version cannot fulfil yet.
//! - `manifest`: the same table as the layer's manifest has it.
//! - `crashed_shaders`: the list of shaders that the layer leaves unchecked, because the driver crashed at them.
//! - [`sources`]: the only module that touches the system.
//!
//! Laws:
//!
//! - Nothing here fails or panics: what cannot be used is a [`Problem`], and the setting keeps its weaker value.
//! - What may belong to another layer is passed over in silence; what is addressed to us and not understood is not.
//! - The same sources give the same settings and the same problems in the same order.

#![forbid(unsafe_code)]

mod application;
mod crashed_shaders;
mod document;
mod environment;
mod file;
mod manifest;
mod problem;
mod resolve;
pub mod sources;
mod table;
mod value;

pub use application::{ApplicationSettings, LayerSetting, SettingValues};
pub use crashed_shaders::{CrashedShader, DriverVersion, crashed_shaders_path};
pub use document::document;
pub use file::{FILE_SIZE_BYTES_MAX, SettingsFile};
pub use manifest::manifest_features;
pub use problem::{MessageSeverity, PROBLEMS_MAX, Problem, SettingSource};
pub use resolve::{ExplainedSetting, Sources, resolve};
pub use table::{Alias, SETTINGS, Setting, Settings};
pub use value::{
    BacktraceMode, CaptureMemory, CaptureTrigger, Compression, DebugAction, FrameRange, MessageId, OutputTarget,
    ReportFlag, SettingKind, SettingValue, SyncMode,
};

/// The layer's own name, and the one it also answers to.
pub const OWN_LAYER: &str = "VK_LAYER_LAVASCOPE_inspect";
pub const KHRONOS_LAYER: &str = "VK_LAYER_KHRONOS_validation";
