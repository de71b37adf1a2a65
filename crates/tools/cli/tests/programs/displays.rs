//! Displays that show nothing, for the time of a test.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use lavascope_test_support::wait_until;

/// An X server.
pub(crate) struct XServer {
    process: Child,
    pub(crate) display: String,
}

impl XServer {
    /// On a display that nobody uses.
    pub(crate) fn start() -> XServer {
        let mut command = Command::new("Xvfb");
        // Without `-noreset` the server begins anew when its last client leaves, and turns away who comes meanwhile.
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-noreset"]);
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Xvfb: install xvfb");
        let mut number = String::new();
        let output = process.stdout.take().expect("the server's output");
        BufReader::new(output).read_line(&mut number).expect("the number of the display");
        let screen = XServer { process, display: format!(":{}", number.trim()) };
        assert!(screen.display.len() > 1, "Xvfb names no display");
        screen
    }
}

/// A Wayland compositor that shows nothing, for the time of a test.
pub(crate) struct Compositor {
    process: Child,
    pub(crate) folder: PathBuf,
}

impl Compositor {
    pub(crate) const DISPLAY: &str = "wayland-test";

    pub(crate) fn start() -> Compositor {
        // Names of sockets are short, so it is not in the folder of the test.
        let folder = std::env::temp_dir().join(format!("lavascope-wayland-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("it can be made");
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).expect("it is ours");
        let mut command = Command::new("weston");
        command.args(["--backend=headless-backend.so", "--no-config", "--idle-time=0", "--socket", Self::DISPLAY]);
        command.env("XDG_RUNTIME_DIR", &folder).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("weston: install weston");
        let mut compositor = Compositor { process, folder };
        wait_until("weston makes its socket", || {
            assert!(compositor.process.try_wait().is_ok_and(|it| it.is_none()), "weston has ended");
            compositor.folder.join(Self::DISPLAY).exists()
        });
        compositor
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Drop for XServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
