//! `lavascope env`: lines for a shell to evaluate that do what `run` does.

use super::CommandOutcome;
use super::setup::Setup;
use crate::text;

/// Print `export` lines that put the layer under every program of a shell
///
/// For sh, bash and zsh: `eval "$(lavascope env)"`.
#[derive(clap::Args)]
pub(crate) struct EnvArguments {
    #[command(flatten)]
    setup: Setup,
}

pub(crate) fn run(arguments: &EnvArguments) -> anyhow::Result<CommandOutcome> {
    let variables = arguments.setup.variables()?.into_iter();
    let lines = variables.map(|(variable, value)| format!("export {variable}={}\n", quoted(&value)));
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
