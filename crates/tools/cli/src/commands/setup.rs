//! What `run` and `env` have in common: the layer's name, the driver and the features.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::launch::layer_manifest::LayerName;
use crate::launch::{layer_manifest, null_driver};

#[derive(clap::Args)]
pub(crate) struct Setup {
    /// Answer to the name of the Khronos layer, for programs that ask for it
    #[arg(long)]
    as_khronos: bool,
    /// Run on the null driver, which needs no GPU, accepts everything and draws nothing
    #[arg(long)]
    null_driver: bool,
    /// Find synchronization hazards
    #[arg(long)]
    sync: bool,
    /// Let shaders check what they access; with --sync, what they touch decides what is a hazard
    #[arg(long)]
    gpu: bool,
    /// Check only shaders whose name fits: that of the module, the entry point or a source file
    #[arg(long, value_name = "REGEX", requires = "gpu")]
    shaders: Vec<String>,
    /// Tell only what is found in pipelines whose name fits
    #[arg(long, value_name = "REGEX", requires = "gpu")]
    pipelines: Vec<String>,
    /// Check one of so many pipelines
    #[arg(long, value_name = "N", requires = "gpu", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    sample: Option<u64>,
    /// Show what shaders print with debugPrintfEXT
    #[arg(long)]
    printf: bool,
    /// Record every call into a file
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
}

impl Setup {
    /// What the environment of a program needs. Writes the manifests that it names.
    pub(crate) fn variables(&self) -> Result<Vec<(&'static str, String)>> {
        let name = if self.as_khronos { LayerName::Khronos } else { LayerName::Own };
        let mut variables = layer_manifest::variables(name)?;
        if self.null_driver {
            variables.extend(null_driver::variables()?);
        }
        if self.sync {
            variables.push(("LAVASCOPE_SYNC", "1".to_owned()));
        }
        if self.gpu {
            variables.push(("LAVASCOPE_GPU", "1".to_owned()));
        }
        for (name, rules) in [("LAVASCOPE_GPU_SHADERS", &self.shaders), ("LAVASCOPE_GPU_PIPELINES", &self.pipelines)] {
            if !rules.is_empty() {
                variables.push((name, rules.join(",")));
            }
        }
        if let Some(count) = self.sample {
            variables.push(("LAVASCOPE_GPU_SAMPLE", count.to_string()));
        }
        if self.printf {
            variables.push(("LAVASCOPE_PRINTF", "1".to_owned()));
        }
        if let Some(path) = &self.capture {
            let path = std::path::absolute(path).with_context(|| format!("{} is no path", path.display()))?;
            variables.push(("LAVASCOPE_CAPTURE", path.to_string_lossy().into_owned()));
        }
        Ok(variables)
    }
}
