//! The signal by which a user begins and ends what is wanted of a capture.

use rustix::process::{Pid, Signal as Number, kill_process};

/// The signals that a capture can listen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Signal {
    #[value(alias = "sigusr1")]
    Usr1,
    #[value(alias = "sigusr2")]
    Usr2,
}

impl Signal {
    /// As the layer's setting has it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Signal::Usr1 => "usr1",
            Signal::Usr2 => "usr2",
        }
    }

    fn number(self) -> Number {
        match self {
            Signal::Usr1 => Number::USR1,
            Signal::Usr2 => Number::USR2,
        }
    }
}

/// Sends the signal to a process that listens for it: others would be ended by it.
pub(crate) fn send(pid: u32, signal: Signal) -> anyhow::Result<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
    let Ok(status) = status else { anyhow::bail!("there is no process {pid}") };
    let word = signal.word();
    if !is_caught(&status, signal.number()) {
        anyhow::bail!(
            "process {pid} does not listen for {word}; start it with `lavascope capture --signal {word} -- CMD`"
        );
    }
    let to = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let to = to.ok_or_else(|| anyhow::anyhow!("{pid} is no number of a process"))?;
    kill_process(to, signal.number()).map_err(|it| anyhow::anyhow!("{word} cannot be sent to process {pid}: {it}"))
}

/// Whether a process has a handler for a signal, by what the system tells of it.
fn is_caught(status: &str, signal: Number) -> bool {
    let mask = status.lines().find_map(|it| it.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw() - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_a_handler_gets_the_signal() {
        let status = "Name:\tapp\nSigCgt:\t0000000000000800\n";
        assert!(is_caught(status, Number::USR2) && !is_caught(status, Number::USR1));
        assert!(!is_caught("Name:\tapp\n", Number::USR2));
        let error = send(std::process::id(), Signal::Usr2).expect_err("nobody listens here");
        assert!(error.to_string().contains("does not listen for usr2"), "{error}");
    }
}
