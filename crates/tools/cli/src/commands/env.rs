//! `lavascope env`: lines for a shell to evaluate that do what `run` does.

use super::CommandOutcome;
use super::setup::{Setup, SyncOptions};
use crate::text;

/// Print shell variables that load the layer into every Vulkan program
///
/// In sh, bash and zsh: `eval "$(lavascope env)"`. Programs of that shell are then checked as with `lavascope run`.
/// What the layer finds goes to the program's debug messenger; without one, to standard error.
#[derive(clap::Args)]
pub(crate) struct EnvArguments {
    #[command(flatten)]
    setup: Setup,
    #[command(flatten)]
    sync: SyncOptions,
}

pub(crate) fn run(arguments: &EnvArguments) -> anyhow::Result<CommandOutcome> {
    let variables = [arguments.setup.variables()?, arguments.sync.variables()?].concat();
    let lines = variables.into_iter().map(|(variable, value)| format!("export {variable}={}\n", quoted(&value)));
    text::emit(&lines.collect::<String>())?;
    Ok(CommandOutcome::Success)
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
