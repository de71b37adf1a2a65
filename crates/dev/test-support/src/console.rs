//! Commands in `console` blocks of Markdown pages: what is typed, what it prints, and how it exits.
//!
//! A line `$ COMMAND` is typed; the lines up to the next one are its output. A command without output lines may print
//! anything. `<!-- exits with 1 -->` in the line before a block is for its last command; the others exit with 0.

use std::process::Command;

/// A command of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// Of the page, from 1.
    pub line: usize,
    pub command: String,
    /// Empty where the page shows none.
    pub output: String,
    pub exit_code: i32,
}

/// What a command did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleOutcome {
    /// Standard output and standard error, as a terminal shows them.
    pub output: String,
    /// None if a signal ended it.
    pub exit_code: Option<i32>,
}

const FENCE: &str = "```";
const EXIT_CODE: &str = "<!-- exits with ";

impl ConsoleCommand {
    /// Runs the command in a shell that is prepared so far: its folder and its environment.
    pub fn run(&self, shell: &mut Command) -> ConsoleOutcome {
        let script = format!("exec 2>&1\n{}\n", self.command);
        let done = shell.args(["-c", &script]).output().expect("a shell");
        ConsoleOutcome { output: String::from_utf8_lossy(&done.stdout).into_owned(), exit_code: done.status.code() }
    }

    /// What is wrong with an outcome; none if the page is right.
    pub fn difference(&self, outcome: &ConsoleOutcome) -> Option<String> {
        let ConsoleOutcome { output, exit_code } = outcome;
        let place = format!("line {}: `{}`", self.line, self.command);
        if *exit_code != Some(self.exit_code) {
            return Some(format!("{place} exits with {exit_code:?}, not {}:\n{output}", self.exit_code));
        }
        let is_shown = !self.output.is_empty();
        (is_shown && *output != self.output)
            .then(|| format!("{place} prints\n{output}--- but the page has\n{}", self.output))
    }
}

/// The commands of a page in order.
pub fn console_commands(page: &str) -> Vec<ConsoleCommand> {
    let mut commands: Vec<ConsoleCommand> = Vec::new();
    let (mut is_inside, mut exit_code, mut before) = (false, 0, "");
    for (at, line) in page.lines().enumerate() {
        if !is_inside && line == "```console" {
            (is_inside, exit_code) = (true, announced_exit_code(before));
        } else if is_inside && line.starts_with(FENCE) {
            is_inside = false;
            commands.last_mut().into_iter().for_each(|it| it.exit_code = exit_code);
        } else if is_inside && let Some(command) = line.strip_prefix("$ ") {
            let command = command.to_owned();
            commands.push(ConsoleCommand { line: at + 1, command, output: String::new(), exit_code: 0 });
        } else if is_inside && let Some(command) = commands.last_mut() {
            command.output.push_str(line);
            command.output.push('\n');
        }
        before = line;
    }
    commands
}

fn announced_exit_code(line: &str) -> i32 {
    let code = line.strip_prefix(EXIT_CODE).and_then(|it| it.strip_suffix(" -->"));
    code.map_or(0, |it| it.parse().unwrap_or_else(|_| panic!("`{line}` has no exit code")))
}

/// The page with the outputs of such outcomes, one for each command, where it shows outputs.
pub fn with_outputs(page: &str, outcomes: &[ConsoleOutcome]) -> String {
    let commands = console_commands(page);
    assert_eq!(commands.len(), outcomes.len(), "there is an outcome for each command");
    let lines: Vec<&str> = page.lines().collect();
    let mut text = String::new();
    let mut next = 0;
    for (command, outcome) in commands.iter().zip(outcomes) {
        lines[next..command.line].iter().for_each(|it| text.extend([*it, "\n"]));
        next = command.line + command.output.lines().count();
        if !command.output.is_empty() {
            text.push_str(&outcome.output);
        }
    }
    lines[next..].iter().for_each(|it| text.extend([*it, "\n"]));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# Page\n\n```console\n$ echo one\none\n$ true\n```\n\n```sh\n$ no console\n```\n\n\
                        <!-- exits with 3 -->\n```console\n$ echo two; echo three >&2; exit 3\n2\n```\nEnd.\n";

    fn outcomes() -> Vec<ConsoleOutcome> {
        console_commands(PAGE).iter().map(|it| it.run(&mut Command::new("sh"))).collect()
    }

    #[test]
    fn commands_have_their_outputs_and_exit_codes() {
        let commands = console_commands(PAGE);
        let seen: Vec<_> = commands.iter().map(|it| (it.line, it.command.as_str(), it.exit_code)).collect();
        assert_eq!(seen, [(4, "echo one", 0), (6, "true", 0), (15, "echo two; echo three >&2; exit 3", 3)]);
        assert_eq!(commands.iter().map(|it| it.output.as_str()).collect::<Vec<_>>(), ["one\n", "", "2\n"]);
    }

    #[test]
    fn differences_name_the_line() {
        let (commands, outcomes) = (console_commands(PAGE), outcomes());
        assert_eq!(commands[0].difference(&outcomes[0]), None);
        assert_eq!(commands[1].difference(&outcomes[1]), None);
        let text = commands[2].difference(&outcomes[2]).expect("it prints something else");
        assert!(text.starts_with("line 15: ") && text.contains("two\nthree\n---"), "{text}");
        let text = commands[1].difference(&outcomes[2]).expect("it exits otherwise");
        assert!(text.contains("exits with Some(3), not 0"), "{text}");
    }

    #[test]
    fn only_shown_outputs_are_replaced() {
        let page = with_outputs(PAGE, &outcomes());
        assert_eq!(page, PAGE.replace("\n2\n", "\ntwo\nthree\n"));
        assert_eq!(with_outputs(&page, &outcomes()), page);
    }
}
