//! What `run`, `env` and `capture` have in common: the layer's name, the driver and the checks.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::launch::layer_manifest::LayerName;
use crate::launch::{layer_manifest, null_driver};

#[derive(clap::Args)]
pub(crate) struct Setup {
    /// Load the layer under the name VK_LAYER_KHRONOS_validation, in the place of the Khronos layer
    #[arg(long)]
    as_khronos: bool,
    /// Use the null driver: it needs no GPU, accepts every call and draws nothing
    #[arg(long)]
    null_driver: bool,
    /// Offer surfaces that need no display (VK_EXT_headless_surface), whatever the driver has; a capture has the frames
    #[arg(long, conflicts_with = "as_khronos")]
    headless: bool,
    /// Check what shaders access: out-of-bounds accesses, and descriptors that are missing
    #[arg(long)]
    gpu: bool,
    /// Check only shaders whose module, entry point, source file or pipeline has a name that matches
    #[arg(long, value_name = "REGEX", requires = "gpu")]
    shaders: Vec<String>,
    #[arg(long, value_name = "REGEX", hide = true)]
    pipelines: Vec<String>,
    /// Check the shaders of one pipeline out of N
    #[arg(long, value_name = "N", requires = "gpu", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    sample: Option<u64>,
    /// Show what shaders print with debugPrintfEXT
    #[arg(long)]
    printf: bool,
}

/// Whether hazards are looked for, which is the default of `run` and `env`.
#[derive(clap::Args)]
pub(crate) struct SyncOptions {
    /// Find synchronization hazards; this is the default
    #[arg(long)]
    sync: bool,
    /// Do not look for synchronization hazards
    #[arg(long, conflicts_with = "sync")]
    pub(crate) no_sync: bool,
    /// Record every call into FILE as well, as `lavascope capture` does
    #[arg(long, value_name = "FILE")]
    pub(crate) capture: Option<PathBuf>,
}

/// Says whether hazards are looked for.
const SYNC: &str = "LAVASCOPE_SYNC";

/// A variable for a program.
pub(crate) type Variable = (&'static str, String);

impl Setup {
    /// What the environment of a program needs. Writes the manifests that it names.
    pub(crate) fn variables(&self) -> Result<Vec<Variable>> {
        if let Some(pattern) = self.pipelines.first() {
            anyhow::bail!(
                "there is no --pipelines: use `--shaders {pattern}`, which matches the names of pipelines, too"
            );
        }
        let name = match (self.as_khronos, self.headless) {
            (true, _) => LayerName::Khronos,
            (false, true) => LayerName::Headless,
            (false, false) => LayerName::Own,
        };
        let mut variables = layer_manifest::variables(name)?;
        if self.null_driver {
            variables.extend(null_driver::variables()?);
        }
        if self.headless {
            variables.push(("LAVASCOPE_UNSEEN_SURFACES", "1".to_owned()));
        }
        if self.gpu {
            variables.push(("LAVASCOPE_GPU", "1".to_owned()));
        }
        if !self.shaders.is_empty() {
            variables.push(("LAVASCOPE_GPU_SHADERS", self.shaders.join(",")));
        }
        if let Some(count) = self.sample {
            variables.push(("LAVASCOPE_GPU_SAMPLE", count.to_string()));
        }
        if self.printf {
            variables.push(("LAVASCOPE_PRINTF", "1".to_owned()));
        }
        Ok(variables)
    }
}

impl SyncOptions {
    /// A variable wins over settings of the application and over a settings file, so that nothing else switches the
    /// validation off. Only the user's own variable stays.
    pub(crate) fn variables(&self) -> Result<Vec<Variable>> {
        let is_set = std::env::var_os(SYNC).is_some_and(|it| !it.is_empty());
        let value = match (self.sync, self.no_sync) {
            (_, true) => Some("0"),
            (true, _) => Some("1"),
            (false, false) => (!is_set).then_some("1"),
        };
        let sync = value.map(|it| (SYNC, it.to_owned()));
        let capture = self.capture.as_deref().map(capture_variable).transpose()?;
        Ok(sync.into_iter().chain(capture).collect())
    }
}

/// For `capture`, which validates only if the user asks for it.
pub(crate) fn sync_beside_capture(is_wanted: bool) -> Variable {
    (SYNC, if is_wanted { "1" } else { "0" }.to_owned())
}

fn capture_variable(path: &Path) -> Result<Variable> {
    let path = std::path::absolute(path).with_context(|| format!("{} is not a path", path.display()))?;
    Ok(("LAVASCOPE_CAPTURE", path.to_string_lossy().into_owned()))
}
