//! The names of the commands that reach the driver, for tests of the layers above it.

use std::fs::File;
use std::io::Write;
use std::sync::{LazyLock, Mutex, PoisonError};

use lavascope_abi::Command;

/// None without a request. One thread writes at a time, and the order of lines is one in which calls were made.
static LOG: LazyLock<Option<Mutex<File>>> = LazyLock::new(|| {
    let path = std::env::var_os("LAVASCOPE_NULL_LOG").filter(|it| !it.is_empty())?;
    match File::options().create(true).append(true).open(&path) {
        Ok(file) => Some(Mutex::new(file)),
        Err(error) => {
            eprintln!("lavascope null driver: {} cannot be written: {error}", path.display());
            None
        }
    }
});

pub(crate) fn is_on() -> bool {
    LOG.is_some()
}

/// A command was called.
pub(crate) fn log_command(command: Command) {
    let Some(log) = &*LOG else { return };
    // Errors of our file do not affect the application.
    let _ = writeln!(log.lock().unwrap_or_else(PoisonError::into_inner), "{}", command.desc().name);
}
