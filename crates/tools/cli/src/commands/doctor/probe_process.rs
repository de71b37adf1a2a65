//! Runs a probe in a child process, and reports how it ended. A driver may crash or hang there.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use lavascope_loader::{LoaderError, LoaderInfo};
use lavascope_platform::process::ProcessEnd;

/// The report has this many last lines of the probe's stderr.
const STDERR_LINES_MAX: usize = 5;
const POLL: Duration = Duration::from_millis(5);
/// How long to wait for a pipe after the process has ended. A child of that process may keep the
/// pipe open.
const PIPE_PATIENCE: Duration = Duration::from_secs(5);

/// A line that the probe prints.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ProbeMessage {
    /// The next step of the probe.
    Doing(String),
    Told(LoaderInfo),
    Refused(LoaderError),
}

/// How a probe ended.
#[derive(Debug)]
pub(crate) enum ProbeAnswer {
    Loaded(LoaderInfo),
    Refused(LoaderError),
    Died(ProbeDeath),
}

/// The end of a probe that gave no answer.
#[derive(Debug)]
pub(crate) struct ProbeDeath {
    pub(crate) cause: ExitCause,
    /// The step that the probe executed last.
    pub(crate) doing: String,
    /// The last lines of its stderr.
    pub(crate) stderr_lines: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExitCause {
    Signal(i32),
    Exit(i32),
    Timeout(Duration),
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExitCause::Signal(number) => write!(f, "crashed (signal {number})"),
            ExitCause::Exit(code) => write!(f, "ended the process (exit code {code})"),
            ExitCause::Timeout(limit) => write!(f, "did not answer for {} s", limit.as_secs()),
        }
    }
}

/// Runs `command`, which prints lines of [`ProbeMessage`], and stops it at the time limit.
pub(crate) fn run(mut command: Command, limit: Duration) -> anyhow::Result<ProbeAnswer> {
    let deadline = Instant::now() + limit;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let stdout = lines(child.stdout.take().context("the probe has no stdout")?);
    let stderr = lines(child.stderr.take().context("the probe has no stderr")?);
    let status = wait(&mut child, deadline)?;
    let mut doing = "starting".to_owned();
    let mut answer = None;
    for line in drain(&stdout) {
        match serde_json::from_str(&line) {
            Ok(ProbeMessage::Doing(step)) => doing = step,
            Ok(ProbeMessage::Told(info)) => answer = Some(ProbeAnswer::Loaded(info)),
            Ok(ProbeMessage::Refused(error)) => answer = Some(ProbeAnswer::Refused(error)),
            // Other lines come from drivers.
            Err(_) => {}
        }
    }
    let cause = match (status, answer) {
        (Some(status), Some(answer)) if status.success() => return Ok(answer),
        (Some(status), _) => cause(status),
        (None, _) => ExitCause::Timeout(limit),
    };
    let mut said = drain(&stderr);
    said.drain(..said.len().saturating_sub(STDERR_LINES_MAX));
    Ok(ProbeAnswer::Died(ProbeDeath { cause, doing, stderr_lines: said }))
}

/// The exit status. None if the time limit passed and the process was killed.
fn wait(child: &mut Child, deadline: Instant) -> anyhow::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for the probe")? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            // The process may have ended just now. That is no error.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Reads lines on another thread, so that a full pipe never blocks the probe.
fn lines(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut reader = BufReader::new(pipe);
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|it| it > 0) {
            if sender.send(String::from_utf8_lossy(&line).trim_end().to_owned()).is_err() {
                return;
            }
            line.clear();
        }
    });
    receiver
}

/// The lines until the pipe is closed, without empty ones.
fn drain(lines: &Receiver<String>) -> Vec<String> {
    let deadline = Instant::now() + PIPE_PATIENCE;
    let mut kept = Vec::new();
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) if line.is_empty() => {}
            Ok(line) => kept.push(line),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return kept,
        }
    }
}

fn cause(status: ExitStatus) -> ExitCause {
    match ProcessEnd::of(status) {
        ProcessEnd::Killed(cause) => ExitCause::Signal(cause.number()),
        ProcessEnd::Exit(code) => ExitCause::Exit(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> ProbeAnswer {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(command, limit).expect("there is a shell")
    }

    fn death(script: &str) -> ProbeDeath {
        match shell(script, Duration::from_secs(20)) {
            ProbeAnswer::Died(death) => death,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_signal_is_reported_with_the_step_and_the_last_words() {
        let death = death("echo '{\"doing\":\"creating an instance\"}'; echo oh no >&2; kill -SEGV $$");
        assert_eq!(death.cause, ExitCause::Signal(11));
        assert_eq!(death.doing, "creating an instance");
        assert_eq!(death.stderr_lines, ["oh no"]);
        assert_eq!(death.cause.to_string(), "crashed (signal 11)");
    }

    #[test]
    fn an_exit_is_reported_even_with_code_zero() {
        assert_eq!(death("exit 3").cause, ExitCause::Exit(3));
        assert_eq!(death("echo garbage").cause, ExitCause::Exit(0));
        assert_eq!(death("exit 3").doing, "starting");
    }

    #[test]
    fn one_that_hangs_is_stopped() {
        let start = Instant::now();
        let answer = shell("echo '{\"doing\":\"waiting\"}'; exec sleep 60", Duration::from_millis(300));
        assert!(
            matches!(answer, ProbeAnswer::Died(ProbeDeath { cause: ExitCause::Timeout(_), doing, .. }) if doing == "waiting")
        );
        assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn the_answer_is_found_among_what_a_driver_prints() {
        let answer = shell(
            "printf 'half a line'; printf '\\n%s\\n' '{\"refused\":{\"error\":\"no-driver\"}}'; echo '\\377 noise'",
            Duration::from_secs(20),
        );
        assert!(matches!(answer, ProbeAnswer::Refused(LoaderError::NoDriver)), "{answer:?}");
    }

    #[test]
    fn much_output_neither_blocks_nor_is_reported_whole() {
        let death = death("i=0; while [ $i -lt 20000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1");
        assert_eq!(death.stderr_lines.len(), STDERR_LINES_MAX);
        assert_eq!(death.stderr_lines.last().map(String::as_str), Some("line 19999"));
    }
}
