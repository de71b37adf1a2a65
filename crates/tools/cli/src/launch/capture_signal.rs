//! The signal with which a user starts and stops a capture.

use lavascope_platform::signals::{self, Trigger};

/// The signals that a capture can listen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum CaptureSignal {
    #[value(alias = "sigusr1")]
    Usr1,
    #[value(alias = "sigusr2")]
    Usr2,
}

impl CaptureSignal {
    /// The value of the layer's setting.
    pub(crate) fn word(self) -> &'static str {
        match self {
            CaptureSignal::Usr1 => "usr1",
            CaptureSignal::Usr2 => "usr2",
        }
    }

    fn trigger(self) -> Trigger {
        match self {
            CaptureSignal::Usr1 => Trigger::First,
            CaptureSignal::Usr2 => Trigger::Second,
        }
    }
}

/// Sends the signal to a process that has a handler for it. Without a handler, the signal would
/// kill the process.
pub(crate) fn send(pid: u32, signal: CaptureSignal) -> anyhow::Result<()> {
    let word = signal.word();
    match signals::is_listening(pid, signal.trigger()) {
        None => anyhow::bail!("there is no process {pid}"),
        Some(false) => anyhow::bail!(
            "process {pid} does not listen for {word}; start it with `lavascope capture --signal {word} -- CMD`"
        ),
        Some(true) => {}
    }
    let sent = signals::send(pid, signal.trigger());
    sent.map_err(|it| anyhow::anyhow!("{word} cannot be sent to process {pid}: {it}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_a_handler_gets_the_signal() {
        let error = send(std::process::id(), CaptureSignal::Usr2).expect_err("nobody listens here");
        assert!(error.to_string().contains("does not listen for usr2"), "{error}");
        let error = send(u32::MAX, CaptureSignal::Usr2).expect_err("no such process");
        assert!(error.to_string().contains("there is no process"), "{error}");
    }
}
