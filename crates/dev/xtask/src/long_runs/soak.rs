//! A real program under the layer for a long time: vkcube on lavapipe with `--sync`, and how much memory it has.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::setup::process;
use crate::setup::process::cargo;
use crate::setup::system;
use crate::setup::x_server::Screen;

/// How many frames tell how long one takes.
const TRIAL_FRAMES: u64 = 300;
const PAUSE: Duration = Duration::from_millis(250);
/// What may come and go: what waits for the thread that validates, and what an allocator keeps.
const SLACK_KIB: u64 = 16 << 10;

pub(crate) fn run(root: &Path, minutes: f64) -> Result<()> {
    for (program, package) in [("vkcube", "vulkan-tools"), ("Xvfb", "xvfb"), ("bash", "bash")] {
        ensure!(system::is_on_path(program), "`{program}` is missing: on Debian and Ubuntu, install {package}");
    }
    let stage = SoakRun::new(root)?;
    let begin = Instant::now();
    stage.draw(TRIAL_FRAMES)?;
    let frame = begin.elapsed().as_secs_f64() / TRIAL_FRAMES as f64;
    let frames = ((minutes * 60.0 / frame) as u64).max(TRIAL_FRAMES);
    let resident = stage.draw(frames)?;
    let (early, late) = compare_memory(&resident).context("the program ended before its memory was measured")?;
    println!("soak: {frames} frames, {early} KiB resident after the first fifth, {late} KiB at the end");
    ensure!(late <= early + SLACK_KIB, "vkcube has {} KiB more than after the first fifth", late - early);
    Ok(())
}

struct SoakRun {
    screen: Screen,
    driver: String,
    lavascope: PathBuf,
    /// Where the program's number is written to.
    pid_file: PathBuf,
}

impl SoakRun {
    fn new(root: &Path) -> Result<SoakRun> {
        let arguments = ["build", "--release", "--package", "lavascope-cli", "--package", "lavascope-layer"];
        process::run(root, &cargo(), &arguments)?;
        let program = std::env::current_exe().context("the place of this program is not known")?;
        // `target/debug/xtask`
        let target = program.ancestors().nth(2).context("this program is not in a build folder")?;
        let driver = system::lavapipe().context("lavapipe is missing: install mesa-vulkan-drivers")?;
        let number = target.join(format!("soak-{}.txt", std::process::id()));
        Ok(SoakRun { screen: Screen::start()?, driver, lavascope: target.join("release/lavascope"), pid_file: number })
    }

    /// Draws so many frames; gives what was resident meanwhile, in KiB.
    fn draw(&self, frames: u64) -> Result<Vec<u64>> {
        let _ = std::fs::remove_file(&self.pid_file);
        let script = format!("echo $$ > '{}'; exec vkcube --c {frames} >/dev/null", self.pid_file.display());
        let mut command = Command::new(&self.lavascope);
        command.args(["run", "--", "bash", "-c", &script]).env("DISPLAY", &self.screen.display);
        command.env("VK_ICD_FILENAMES", &self.driver).env("VK_DRIVER_FILES", &self.driver);
        command.env_remove("WAYLAND_DISPLAY").stdout(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("{command:?} cannot be started"))?;
        let mut resident = Vec::new();
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            resident.extend(self.resident());
            std::thread::sleep(PAUSE);
        };
        let _ = std::fs::remove_file(&self.pid_file);
        ensure!(status.success(), "`lavascope run -- vkcube --c {frames}` failed: {status}");
        Ok(resident)
    }

    /// None while the program is not there.
    fn resident(&self) -> Option<u64> {
        let number = std::fs::read_to_string(&self.pid_file).ok()?;
        resident_of_status(&std::fs::read_to_string(format!("/proc/{}/status", number.trim())).ok()?)
    }
}

/// The resident memory in a file `status` of a process.
fn resident_of_status(text: &str) -> Option<u64> {
    text.lines().find_map(|it| it.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()
}

/// The most of the third tenth and of the last one.
fn compare_memory(resident: &[u64]) -> Option<(u64, u64)> {
    let tenth = resident.len() / 10;
    let early = resident[2 * tenth..].iter().take(tenth).max()?;
    Some((*early, *resident[9 * tenth..].iter().max()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_compared_after_the_beginning_and_at_the_end() {
        let grows: Vec<u64> = (0..100).collect();
        assert_eq!(compare_memory(&grows), Some((29, 99)));
        assert_eq!(compare_memory(&[1, 2, 3]), None);
        assert_eq!(resident_of_status("VmHWM:\t  9 kB\nVmRSS:\t  1234 kB\n"), Some(1234));
        assert_eq!(resident_of_status("Name: x\n"), None);
    }
}
