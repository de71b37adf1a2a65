//! What can go wrong: a program that no calls can be, and a device that refuses them.

/// Why a program cannot be performed: no command of Vulkan does what one of its commands is said to do.
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
