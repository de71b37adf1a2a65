//! The command line of a sample.

use std::path::PathBuf;

use clap::Parser;

use crate::common::{Check, Mode};

const EXIT_CODES: &str = "\
Exit codes:
  0  the result is right
  1  the result is wrong
  2  the device lacks something that the sample needs, or the arguments make no sense
  3  a Vulkan call failed

LAVASCOPE_SAMPLE_DEVICE chooses a device by a part of its name.
LAVASCOPE_SAMPLE_API is the Vulkan version that the sample asks for (1.0 to 1.3, or none), else 1.3.";

/// Runs a small Vulkan program that checks its own result.
#[derive(Clone, Debug, Parser)]
#[command(name = "lavascope-samples", version, after_help = EXIT_CODES)]
pub struct SampleArguments {
    /// The sample, or `list`.
    pub name: String,
    /// How often its work is repeated, where it can be.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub frames: Option<u32>,
    /// How many threads record, where there are several.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: Option<u32>,
    /// The seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Write the picture as a PPM file, where there is one.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Make all the calls but compare nothing, for drivers that draw nothing.
    #[arg(long)]
    pub no_check: bool,
    /// Without the planted fault.
    #[arg(long)]
    pub fixed: bool,
    /// Draw in a render pass object, where a fault is planted in dynamic rendering.
    #[arg(long)]
    pub render_pass: bool,
    /// Expect something that is not so, to show that the comparison can fail.
    #[arg(long, hide = true, conflicts_with = "no_check")]
    pub expect_wrong: bool,
}

impl SampleArguments {
    pub(crate) fn options(&self) -> SampleOptions {
        let mode = match (self.no_check, self.expect_wrong) {
            (true, _) => Mode::Skip,
            (false, true) => Mode::ExpectWrong,
            (false, false) => Mode::Compare,
        };
        SampleOptions {
            frames: self.frames,
            threads: self.threads,
            seed: self.seed,
            save: self.save.clone(),
            fault: if self.fixed { FaultMode::Fixed } else { FaultMode::Planted },
            render_pass: self.render_pass,
            check: Check::new(mode),
        }
    }
}

/// The options of a sample.
pub(crate) struct SampleOptions {
    pub(crate) frames: Option<u32>,
    pub(crate) threads: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) save: Option<PathBuf>,
    pub(crate) fault: FaultMode,
    /// Whether render pass objects take the place of dynamic rendering.
    pub(crate) render_pass: bool,
    pub(crate) check: Check,
}

/// Whether a `fault-…` sample does what it is named after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultMode {
    Planted,
    Fixed,
}
