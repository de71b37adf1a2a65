//! An X server that shows nothing, for programs with a window.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// An X server that shows nothing.
pub(crate) struct Screen {
    process: Child,
    pub(crate) display: String,
}

impl Screen {
    /// On a display that nobody uses.
    pub(crate) fn start() -> Result<Screen> {
        let mut command = Command::new("Xvfb");
        // Without `-noreset` the server begins anew when its last client leaves, and turns away who comes meanwhile.
        command.args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"]);
        let process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("Xvfb cannot be started")?;
        let mut screen = Screen { process, display: String::new() };
        let output = screen.process.stdout.take().context("Xvfb has no output")?;
        let mut number = String::new();
        BufReader::new(output).read_line(&mut number)?;
        ensure!(!number.trim().is_empty(), "Xvfb names no display");
        screen.display = format!(":{}", number.trim());
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
