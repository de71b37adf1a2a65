//! Errors: a program that no calls can express, and a device that rejects the calls.

/// Why a program cannot be performed: no Vulkan command has the effect of one of its commands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnsupportedProgram(pub String);

impl UnsupportedProgram {
    pub(crate) fn error<T>(why: impl Into<String>) -> Result<T, UnsupportedProgram> {
        Err(UnsupportedProgram(why.into()))
    }
}

/// Why a program was not performed.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    #[error(transparent)]
    Unsupported(#[from] UnsupportedProgram),
    #[error("the Vulkan loader cannot be opened: {0}")]
    Loader(String),
    #[error("nobody has {0}")]
    Missing(String),
    #[error("{call} gave {result}")]
    Failed { call: &'static str, result: i32 },
}
