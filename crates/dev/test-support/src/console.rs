//! Commands in `console` blocks of Markdown pages: the command, its output, and its exit code.
//!
//! A line `$ COMMAND` is typed; the lines up to the next one are its output. A command without output lines may print
//! anything. `<!-- exits with 1 -->` in the line before a block is for its last command; the others exit with 0.

use std::path::Path;
use std::process::Command;

/// A command of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleCommand {
    /// The line of the page, from 1.
    pub line: usize,
    pub command: String,
    /// Empty if the page shows none.
    pub output: String,
    pub exit_code: i32,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleOutcome {
    /// Standard output and standard error, as a terminal shows them.
    pub output: String,
    /// None if a signal ended it.
    pub exit_code: Option<i32>,
}

impl ConsoleOutcome {
    /// With paths relative to the folder in which the command ran.
    pub fn below(mut self, folder: &Path) -> ConsoleOutcome {
        self.output = self.output.replace(&format!("{}/", folder.display()), "");
        self
    }
}

/// Units of values that differ in each run. Numbers before them are not compared.
const MEASURED: [&str; 3] = ["s", "ms", "calls/s"];

const FENCE: &str = "```";
const EXIT_CODE: &str = "<!-- exits with ";

impl ConsoleCommand {
    /// Runs the command in a shell that is prepared so far: its folder and its environment.
    pub fn run(&self, shell: &mut Command) -> ConsoleOutcome {
        let script = format!("exec 2>&1\n{}\n", self.command);
        let done = shell.args(["-c", &script]).output().expect("a shell");
        ConsoleOutcome { output: String::from_utf8_lossy(&done.stdout).into_owned(), exit_code: done.status.code() }
    }

    /// The differences from an expected outcome; none if the page is right.
    pub fn difference(&self, outcome: &ConsoleOutcome) -> Option<String> {
        let ConsoleOutcome { output, exit_code } = outcome;
        let place = format!("line {}: `{}`", self.line, self.command);
        if *exit_code != Some(self.exit_code) {
            return Some(format!("{place} exits with {exit_code:?}, not {}:\n{output}", self.exit_code));
        }
        let is_shown = !self.output.is_empty();
        (is_shown && masked(output) != masked(&self.output))
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
        let is_the_same = masked(&command.output) == masked(&outcome.output);
        if !command.output.is_empty() {
            text.push_str(if is_the_same { &command.output } else { &outcome.output });
        }
    }
    lines[next..].iter().for_each(|it| text.extend([*it, "\n"]));
    text
}

/// The text without times, sizes of traces and addresses, which differ from run to run.
fn masked(text: &str) -> String {
    text.lines().map(|it| masked_line(it) + "\n").collect()
}

fn masked_line(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let is_number =
        |it: &str| it.starts_with(|it: char| it.is_ascii_digit()) && it.ends_with(|it: char| it.is_ascii_digit());
    let masked = words.iter().enumerate().map(|(at, word)| {
        let unit = words.get(at + 1).map_or("", |it| it.trim_end_matches([',', ';', '.']));
        let is_size = unit == "bytes" && at > 0 && words[at - 1].ends_with(".lava:");
        let is_address = word.contains("0x") && word.len() > 12;
        let is_measured = is_number(word) && (MEASURED.contains(&unit) || is_size);
        if is_measured || is_address { "#" } else { word }
    });
    masked.collect::<Vec<_>>().join(" ")
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
    fn times_sizes_and_addresses_are_not_compared() {
        let text =
            "t.lava: 19624 bytes\nt.lava: 989 calls of 5 threads, 0.147 s, 6747 calls/s\n(read)(0x558ee75bf270)\n";
        assert_eq!(masked(text), "t.lava: # bytes\nt.lava: 989 calls of 5 threads, # s, # calls/s\n#\n");
        assert_eq!(masked("wrote 16320 bytes of 0xff\n"), "wrote 16320 bytes of 0xff\n");
    }

    #[test]
    fn only_shown_outputs_are_replaced() {
        let page = with_outputs(PAGE, &outcomes());
        assert_eq!(page, PAGE.replace("\n2\n", "\ntwo\nthree\n"));
        assert_eq!(with_outputs(&page, &outcomes()), page);
    }
}
