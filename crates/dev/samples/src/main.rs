//! Runs one sample and turns its end into an exit code.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use lavascope_samples::SampleArguments;

fn main() -> ExitCode {
    lavascope_samples::run(&SampleArguments::parse())
}
