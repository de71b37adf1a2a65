//! Shaders at which the driver crashes: which ones were found in earlier runs, and what it compiles now.
//!
//! Only shaders with our code are marked. The list of earlier runs is read once, when the device is created.

use std::path::Path;

use lavascope_abi::{PhysicalDeviceProperties, ShaderStageFlags};
use lavascope_platform::files;
use lavascope_settings::{CrashedShader, DriverVersion, crashed_shaders_path};
use rustc_hash::FxHashSet;
use xxhash_rust::xxh3::xxh3_128;

use super::plan::PipelinePlan;
use super::variants::InstrumentedStage;
use crate::gpu::DeviceChecks;
use crate::report::compile_marks::{self, CompileMark};

/// A longer list is not read.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// Why such a shader is not checked.
pub(crate) const DRIVER_CRASHED: &str =
    "the driver crashed in an earlier run when it compiled a shader with checks: this shader is not checked";

/// What is known of the driver's crashes.
pub(crate) struct CrashGuard {
    driver: DriverVersion,
    /// The hashes of shaders at which this driver crashed.
    crashed: FxHashSet<u128>,
}

impl CrashGuard {
    /// Reads the list of the user's folder for state, for the driver of a device.
    pub(crate) fn new(properties: &PhysicalDeviceProperties) -> CrashGuard {
        compile_marks::open();
        let uuid = &properties.pipeline_cache_uuid;
        let driver = DriverVersion::new(properties.vendor_id, uuid, properties.driver_version);
        let path = crashed_shaders_path(|it| std::env::var_os(it));
        let crashed = path.map_or_else(FxHashSet::default, |it| read_list(&it, &driver));
        CrashGuard { driver, crashed }
    }

    /// Whether the driver crashed at a shader, by the hash of its words.
    pub(crate) fn has_crashed(&self, hash: u128) -> bool {
        self.crashed.contains(&hash)
    }

    fn line(&self, stage: &InstrumentedStage, name: String) -> String {
        let (hash, layer) = (hash_of(&stage.original), env!("CARGO_PKG_VERSION").to_owned());
        CrashedShader { hash, driver: self.driver.clone(), layer, name }.to_line()
    }
}

impl DeviceChecks {
    /// Marks the shaders with checks of some plans until the result goes away, for the time of the driver's call.
    pub(crate) fn mark_compilation<'a>(
        &self,
        plans: impl IntoIterator<Item = &'a PipelinePlan>,
    ) -> Option<CompileMark> {
        self.mark_stages(plans.into_iter().flat_map(|it| &it.stages))
    }

    /// The same for stages, such as those of shader objects.
    pub(crate) fn mark_stages<'a>(
        &self,
        stages: impl IntoIterator<Item = &'a InstrumentedStage>,
    ) -> Option<CompileMark> {
        let mut stages = stages.into_iter().peekable();
        stages.peek()?;
        compile_marks::mark(|| stages.map(|it| self.crash_guard.line(it, self.mark_name(it))).collect())
    }

    /// How a shader is called: the debug name of its module, else its source file, and the stage.
    fn mark_name(&self, stage: &InstrumentedStage) -> String {
        let hash = hash_of(&stage.original);
        let name = stage.name.get().or_else(|| self.state().source_names.get(&hash).cloned());
        let kind = stage_name(stage.kind);
        match name {
            Some(name) => format!("{name} ({kind})"),
            None => format!("shader without a name ({kind})"),
        }
    }
}

fn stage_name(stage: ShaderStageFlags) -> &'static str {
    match stage {
        ShaderStageFlags::VERTEX => "vertex",
        ShaderStageFlags::TESSELLATION_CONTROL => "tessellation control",
        ShaderStageFlags::TESSELLATION_EVALUATION => "tessellation evaluation",
        ShaderStageFlags::GEOMETRY => "geometry",
        ShaderStageFlags::FRAGMENT => "fragment",
        ShaderStageFlags::COMPUTE => "compute",
        ShaderStageFlags::TASK_EXT => "task",
        ShaderStageFlags::MESH_EXT => "mesh",
        _ => "ray tracing",
    }
}

/// The hash by which shaders are known.
pub(crate) fn hash_of(words: &[u32]) -> u128 {
    // SAFETY: a word is four bytes without padding, so that the slice has so many bytes, all of them initialized.
    let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), words.len() * 4) };
    xxh3_128(bytes)
}

/// The hashes of a list that are for this driver and this version of the layer.
fn read_list(path: &Path, driver: &DriverVersion) -> FxHashSet<u128> {
    let Some(text) = read_own(path) else { return FxHashSet::default() };
    let crashed = text.lines().filter_map(CrashedShader::from_line);
    let is_ours = |it: &CrashedShader| it.driver == *driver && it.layer == env!("CARGO_PKG_VERSION");
    crashed.filter(is_ours).map(|it| it.hash).collect()
}

fn read_own(path: &Path) -> Option<String> {
    let file = files::open_own(path).ok()?;
    let is_small = file.metadata().ok()?.len() <= LIST_BYTES_MAX;
    is_small.then(|| std::io::read_to_string(file).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_this_driver_and_this_version_count() {
        let path = std::env::temp_dir().join(format!("lavascope-crashed-{}", std::process::id()));
        let driver = DriverVersion::new(1, &[2], 3);
        let line = |hash: u128, driver: DriverVersion, layer: &str| {
            CrashedShader { hash, driver, layer: layer.into(), name: "a b".into() }.to_line()
        };
        let own = env!("CARGO_PKG_VERSION");
        let other = DriverVersion::new(1, &[2], 4);
        let text = [line(1, driver.clone(), own), line(2, other, own), line(3, driver.clone(), "0"), "damage\n".into()];
        std::fs::write(&path, text.concat()).expect("it can be written");
        assert_eq!(read_list(&path, &driver), FxHashSet::from_iter([1]));
        std::fs::write(&path, [0xff; 40]).expect("it can be written");
        assert_eq!(read_list(&path, &driver), FxHashSet::default());
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(read_list(&path, &driver), FxHashSet::default());
    }
}
