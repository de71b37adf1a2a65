//! What would tie the repository to one machine or weigh it down: absolute paths and large files.

use crate::tidy::{File, Rule, TidyFinding};

const SIZE_BYTES_MAX: u64 = 1024 * 1024;
/// Split, since this file is judged too.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    let paths = files.iter().filter_map(|it| Some(absolute_paths(&it.path, it.text.as_deref()?)));
    paths.flatten().chain(files.iter().filter_map(large_file)).collect()
}

fn absolute_paths(path: &str, text: &str) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        for home in
            MACHINE_PATHS.iter().filter(|home| line.match_indices(*home).any(|(at, _)| begins_path(&line[..at])))
        {
            let text = format!("`{home}` is a path of one machine: write a path relative to the repository");
            findings.push(TidyFinding::new(Rule::AbsolutePath, path, at + 1, text));
        }
    }
    findings
}

/// Whether a slash after this text begins a path, rather than going on with one.
fn begins_path(before: &str) -> bool {
    let goes_on = |it: char| it.is_alphanumeric() || "_-.~/})*".contains(it);
    before.ends_with("//") || !before.ends_with(goes_on)
}

fn large_file(file: &File) -> Option<TidyFinding> {
    let text = format!("{} bytes, over {SIZE_BYTES_MAX}: keep it outside of the repository", file.size_bytes);
    (file.size_bytes > SIZE_BYTES_MAX).then(|| TidyFinding::new(Rule::FileSize, &file.path, 1, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_one_machine_are_found_with_their_line() {
        for home in MACHINE_PATHS {
            for line in [format!("{home}x"), format!("(`{home}x`)"), format!("file://{home}"), format!("a:{home}")] {
                let lines: Vec<_> = absolute_paths("a.md", &format!("\n{line}")).iter().map(|it| it.line).collect();
                assert_eq!(lines, [2], "{line}");
            }
            for line in
                [format!("https://x.org{home}"), format!("a{home}"), format!("../x{home}"), format!("{{x}}{home}")]
            {
                assert_eq!(absolute_paths("a.md", &line), [], "{line}");
            }
        }
    }

    #[test]
    fn large_files_are_faults_whatever_they_hold() {
        let file = |size_bytes: u64| File { path: "a.bin".to_owned(), size_bytes, text: None };
        assert_eq!(check(&[file(SIZE_BYTES_MAX)]), []);
        assert_eq!(check(&[file(SIZE_BYTES_MAX + 1)]).len(), 1);
    }
}
