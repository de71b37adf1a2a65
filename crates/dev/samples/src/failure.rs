//! Why a sample did not end well, and the exit code of each reason.

use std::fmt;
use std::panic::Location;
use std::process::ExitCode;

use ash::vk;

#[derive(Debug)]
pub(crate) enum Failure {
    /// The result differs from what was expected.
    Wrong(String),
    /// The machine, the driver or the device has not what the sample needs.
    Unsupported(String),
    /// A call returned an error.
    Vulkan { result: vk::Result, place: &'static Location<'static> },
    /// A file could not be written.
    File(std::io::Error),
}

impl Failure {
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Wrong(_) => ExitCode::from(1),
            Failure::Unsupported(_) => ExitCode::from(2),
            Failure::Vulkan { .. } | Failure::File(_) => ExitCode::from(3),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Wrong(what) => write!(f, "wrong result: {what}"),
            Failure::Unsupported(what) => write!(f, "cannot run here: {what}"),
            Failure::Vulkan { result, place } => {
                write!(f, "the call in {}:{} failed: {result:?} ({result})", place.file(), place.line())
            }
            Failure::File(error) => write!(f, "the file cannot be written: {error}"),
        }
    }
}

impl From<vk::Result> for Failure {
    #[track_caller]
    fn from(result: vk::Result) -> Failure {
        Failure::Vulkan { result, place: Location::caller() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Failure {
        Failure::File(error)
    }
}
