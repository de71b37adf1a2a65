//! Runs one sample and turns its end into an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use lavascope_samples::Arguments;

fn main() -> ExitCode {
    lavascope_samples::run(&Arguments::parse())
}
