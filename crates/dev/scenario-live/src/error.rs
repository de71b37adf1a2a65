//! What can go wrong: a program that no calls can be, and a device that refuses them.

/// Why a program cannot be performed: no command of Vulkan does what one of its commands is said to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unable(pub String);

impl Unable {
    pub(crate) fn new<T>(why: impl Into<String>) -> Result<T, Unable> {
        Err(Unable(why.into()))
    }
}

/// Why a program was not performed.
#[derive(Debug, thiserror::Error)]
pub enum ActError {
    #[error(transparent)]
    Unable(#[from] Unable),
    #[error("the Vulkan loader cannot be opened: {0}")]
    Loader(String),
    #[error("nobody has {0}")]
    Missing(String),
    #[error("{call} gave {result}")]
    Failed { call: &'static str, result: i32 },
}
