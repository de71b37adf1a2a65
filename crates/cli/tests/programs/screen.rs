//! An X server that shows nothing, for the time of a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Screen {
    process: Child,
    pub(crate) display: String,
}

impl Screen {
    /// On a display that nobody uses.
    pub(crate) fn start() -> Screen {
        let mut command = Command::new("Xvfb");
        // Without `-noreset` the server begins anew when its last client leaves, and turns away who comes meanwhile.
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb: install xvfb");
        let mut number = String::new();
        let output = process.stdout.take().expect("the server's output");
        BufReader::new(output).read_line(&mut number).expect("the number of the display");
        let screen = Screen { process, display: format!(":{}", number.trim()) };
        assert!(screen.display.len() > 1, "Xvfb names no display");
        screen
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
