//! `lavascope env`: lines for a shell to evaluate that do what `run` does.

use super::Outcome;
use crate::layer_files::{Name, variables};
use crate::text;

/// Print `export` lines that put the layer under every program of a shell
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Answer to the name of the Khronos layer, for programs that ask for it
    #[arg(long)]
    as_khronos: bool,
    /// Validate synchronization (does not exist yet)
    #[arg(long)]
    sync: bool,
    /// Check shaders on the GPU (does not exist yet)
    #[arg(long)]
    gpu: bool,
    /// Capture into a file (does not exist yet)
    #[arg(long, value_name = "FILE")]
    capture: Option<String>,
    /// Run on the driver that draws nothing (does not exist yet)
    #[arg(long)]
    null_driver: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let missing = [
        (arguments.sync, "synchronization validation"),
        (arguments.gpu, "GPU-assisted validation"),
        (arguments.capture.is_some(), "capture"),
        (arguments.null_driver, "the null driver"),
    ];
    if let Some((_, what)) = missing.iter().find(|it| it.0) {
        anyhow::bail!("{what} does not exist yet");
    }
    let name = if arguments.as_khronos { Name::Khronos } else { Name::Own };
    let lines = variables(name)?.into_iter().map(|(variable, value)| format!("export {variable}={}\n", quoted(&value)));
    text::emit(&lines.collect::<String>())?;
    Ok(Outcome::Fine)
}

/// A word that a shell reads as it is.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_shell_reads_back_what_was_quoted() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
