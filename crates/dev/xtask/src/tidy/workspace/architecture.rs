//! The tables of crates in ARCHITECTURE.md against the workspace: names, folders, sentences, tiers, unsafe code.
//!
//! A table below a heading that names a folder of `crates/` has the crates of that folder. Which crate may use which is
//! judged in `dependencies`.

use std::collections::BTreeSet;

use super::collect::WorkspaceMember;
use super::dependencies;
use crate::tidy::docs::table;
use crate::tidy::rust::source::RustSource;
use crate::tidy::{File, Rule, TidyFinding};

pub(crate) const PATH: &str = "ARCHITECTURE.md";
const HEAD: [&str; 5] = ["tier", "crate", "one sentence", "unsafe", "I/O"];
/// What the column says of unsafe code; `no` is the one that is checked.
const UNSAFE: [&str; 4] = ["no", "yes", "fenced", "types"];

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CrateRow {
    pub(crate) line: usize,
    /// The folder in the heading above the table.
    pub(crate) folder: Option<String>,
    pub(crate) tier: Tier,
    pub(crate) name: String,
    pub(crate) sentence: String,
    pub(crate) unsafe_code: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Build,
    Level(u8),
    Test,
}

pub(crate) fn check(files: &[File], members: &[WorkspaceMember]) -> Vec<TidyFinding> {
    let Some(text) = File::text_of(files, PATH) else {
        return vec![finding(1, "the description of the crates is missing: write it")];
    };
    let (rows, mut findings) = parse(text);
    findings.extend(check_members(&rows, members));
    findings.extend(rows.iter().flat_map(|row| check_unsafe(row, files)));
    findings.extend(dependencies::check(text, &rows, members, files));
    findings
}

pub(crate) fn finding(line: usize, text: impl Into<String>) -> TidyFinding {
    TidyFinding::new(Rule::Crates, PATH, line, text)
}

/// The name that the table has for a package.
pub(crate) fn crate_name(package: &str) -> &str {
    package.strip_prefix("lavascope-").unwrap_or(package)
}

fn parse(text: &str) -> (Vec<CrateRow>, Vec<TidyFinding>) {
    let (mut rows, mut findings) = (Vec::new(), Vec::new());
    let (mut folder, mut is_inside, mut has_table) = (None, false, false);
    for (line, text) in (1..).zip(text.lines()) {
        if text.starts_with('#') {
            let name = |it: &str| it.trim_matches(['`', ':']).strip_prefix("crates/").map(str::to_owned);
            folder = text.split_whitespace().find_map(name);
        }
        let Some(cells) = table::cells(text) else {
            is_inside = false;
            continue;
        };
        if cells == HEAD {
            (is_inside, has_table) = (true, true);
        } else if is_inside && !table::is_delimiter_row(&cells) {
            match parse_row(line, &cells) {
                Ok(row) => rows.push(CrateRow { folder: folder.clone(), ..row }),
                Err(fault) => findings.push(finding(line, fault)),
            }
        }
    }
    if !has_table {
        findings
            .push(finding(1, format!("there is no table of crates: write one with the head | {} |", HEAD.join(" | "))));
    }
    (rows, findings)
}

fn parse_row(line: usize, cells: &[String]) -> Result<CrateRow, String> {
    let [tier, name, sentence, unsafe_code, _] = cells else {
        return Err(format!("a row of {} cells in the table of crates: write {}", cells.len(), HEAD.len()));
    };
    let name = name.strip_prefix('`').and_then(|it| it.strip_suffix('`'));
    let name = name.ok_or("the crate's name is not in backticks: put it in backticks")?;
    let tier = match tier.as_str() {
        "build" => Tier::Build,
        "test" => Tier::Test,
        "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" => Tier::Level(tier.parse().map_err(|_| "a tier is one digit")?),
        other => return Err(format!("`{other}` is no tier: write build, 0 to 7, or test")),
    };
    if !UNSAFE.contains(&unsafe_code.as_str()) {
        return Err(format!("`{unsafe_code}` in the column for unsafe code: write one of {}", UNSAFE.join(", ")));
    }
    Ok(CrateRow {
        line,
        folder: None,
        tier,
        name: name.to_owned(),
        sentence: sentence.clone(),
        unsafe_code: unsafe_code.clone(),
    })
}

fn check_members(rows: &[CrateRow], members: &[WorkspaceMember]) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for row in rows {
        if !seen.insert(&row.name) {
            findings.push(finding(row.line, format!("`{}` is in the table twice: remove one row", row.name)));
        }
        match members.iter().find(|it| crate_name(&it.package) == row.name) {
            None => {
                findings.push(finding(row.line, format!("the workspace has no crate `{}`: remove the row", row.name)))
            }
            Some(member) if member.description != row.sentence => {
                let wanted = "make the description in its Cargo.toml and the table's sentence the same";
                let text =
                    format!("`{}` is described as \"{}\" in its Cargo.toml: {wanted}", row.name, member.description);
                findings.push(finding(row.line, text));
            }
            Some(member) => findings.extend(check_folder(row, member)),
        }
    }
    for member in members {
        findings.extend(check_member(rows, member));
    }
    findings
}

fn check_folder(row: &CrateRow, member: &WorkspaceMember) -> Option<TidyFinding> {
    let folder = row.folder.as_ref()?;
    let is_there = member.folder == format!("crates/{folder}/{}", row.name);
    let text = || format!("`{}` is in {}: put the row below the heading of that folder", row.name, member.folder);
    (!is_there).then(|| finding(row.line, text()))
}

/// Whether a folder is `crates/GROUP/NAME`.
fn is_in_group(folder: &str, name: &str) -> bool {
    let parts: Vec<&str> = folder.split('/').collect();
    matches!(parts[..], ["crates", _, last] if last == name)
}

fn check_member(rows: &[CrateRow], member: &WorkspaceMember) -> Vec<TidyFinding> {
    let name = crate_name(&member.package);
    let manifest = format!("{}/Cargo.toml", member.folder);
    let mut findings = Vec::new();
    let mut fault = |text: String| findings.push(TidyFinding::new(Rule::Crates, &manifest, 1, text));
    let prefixed = member.package != name || name == "xtask";
    if !prefixed || !is_in_group(&member.folder, name) {
        fault(format!(
            "package `{}` in {}: name it lavascope-NAME and put it in crates/GROUP/NAME",
            member.package, member.folder
        ));
    }
    if member.description.is_empty() {
        fault(format!("`{}` has no description: write one sentence, the same as in {PATH}", member.package));
    }
    if !rows.iter().any(|it| it.name == name) {
        fault(format!("`{name}` is not in the table of crates: add it to {PATH}"));
    }
    findings
}

/// A crate that claims to have no unsafe code makes the compiler hold it to that, in each of its roots.
fn check_unsafe(row: &CrateRow, files: &[File]) -> Vec<TidyFinding> {
    if row.unsafe_code != "no" {
        return Vec::new();
    }
    let is_root = |file: &&File| {
        file.inside_crate()
            .is_some_and(|(name, path)| name == row.name && ["src/lib.rs", "src/main.rs"].contains(&path))
    };
    let lacking = files.iter().filter(is_root).filter(|root| {
        root.text.as_ref().is_some_and(|it| !RustSource::new(it).code.contains("#![forbid(unsafe_code)]"))
    });
    let text = format!("{PATH} says that `{}` has no unsafe code: add #![forbid(unsafe_code)]", row.name);
    lacking.map(|root| TidyFinding::new(Rule::Crates, &root.path, 1, text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
# Architecture

| tier | crate | one sentence | unsafe | I/O |
| --- | --- | --- | --- | --- |
| build | `xtask` | Runs `things`. | no | yes |
| 0 | `abi` | Vulkan's types. | types | no |

| some | other | table |
";

    fn member(package: &str, description: &str) -> WorkspaceMember {
        let folder = format!("crates/g/{}", crate_name(package));
        WorkspaceMember { package: package.into(), folder, description: description.into(), dependencies: Vec::new() }
    }

    fn members() -> Vec<WorkspaceMember> {
        vec![member("lavascope-abi", "Vulkan's types."), member("xtask", "Runs `things`.")]
    }

    fn faults(text: &str, members: &[WorkspaceMember], main: &str) -> Vec<String> {
        let files = [File::in_memory(PATH, text), File::in_memory("crates/dev/xtask/src/main.rs", main)];
        check(&files, members).into_iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.text)).collect()
    }

    fn check_one_fault(from: &str, to: &str, fault: &str) {
        let faults = faults(&GOOD.replace(from, to), &members(), "#![forbid(unsafe_code)]");
        assert!(faults.len() == 1 && faults[0].contains(fault), "{faults:#?}");
    }

    #[test]
    fn a_true_table_has_no_fault() {
        assert_eq!(faults(GOOD, &members(), "//! Doc.\n#![forbid(unsafe_code)]"), Vec::<String>::new());
    }

    #[test]
    fn malformed_rows_are_faults() {
        let faults = parse(&GOOD.replace("`abi`", "abi").replace("| build |", "| 8 |")).1;
        assert!(faults[0].text.contains("`8` is no tier"), "{faults:#?}");
        assert!(faults[1].text.contains("not in backticks"), "{faults:#?}");
        assert!(parse("# Nothing").1[0].text.contains("no table of crates"));
        assert!(parse(&GOOD.replace("| types |", "| No |")).1[0].text.contains("column for unsafe code"));
        assert!(parse(&GOOD.replace("| types |", "|")).1[0].text.contains("a row of 4 cells"));
    }

    #[test]
    fn table_and_workspace_have_the_same_crates() {
        let row = "| 0 | `abi` | Vulkan's types. | types | no |\n";
        check_one_fault(row, "", "crates/g/abi/Cargo.toml:1: `abi` is not in the table");
        check_one_fault(row, &row.repeat(2), "ARCHITECTURE.md:7: `abi` is in the table twice");
        check_one_fault(row, &format!("{row}{}", row.replace("abi", "old")), "no crate `old`");
    }

    #[test]
    fn crates_stand_below_the_heading_of_their_folder() {
        let split = |folder: &str| {
            let head: String = GOOD.lines().skip(2).take(2).map(|it| format!("{it}\n")).collect();
            let abi = "| 0 | `abi` | Vulkan's types. | types | no |\n";
            GOOD.replace(abi, &format!("\n### crates/{folder}: for all\n\n{head}{abi}"))
        };
        let main = "#![forbid(unsafe_code)]";
        assert_eq!(faults(&split("g"), &members(), main), Vec::<String>::new());
        let faults = faults(&split("base"), &members(), main);
        assert_eq!(
            faults,
            ["ARCHITECTURE.md:11: `abi` is in crates/g/abi: put the row below the heading of that folder"]
        );
    }

    #[test]
    fn the_sentence_is_the_description() {
        check_one_fault("Vulkan's types.", "Vulkan's types", "ARCHITECTURE.md:6: `abi` is described as");
    }

    #[test]
    fn packages_are_named_after_their_folder_and_described() {
        let mut stray = member("abi", "");
        stray.folder = "abi".to_owned();
        let texts: Vec<_> = check_member(&[], &stray).into_iter().map(|it| it.text).collect();
        assert!(texts[0].contains("name it lavascope-NAME"), "{texts:#?}");
        assert!(texts[1].contains("has no description"), "{texts:#?}");
    }

    #[test]
    fn a_crate_without_unsafe_code_forbids_it() {
        let faults = faults(GOOD, &members(), "// #![forbid(unsafe_code)]");
        assert_eq!(faults.len(), 1, "{faults:#?}");
        assert!(faults[0].starts_with("crates/dev/xtask/src/main.rs:1: "), "{faults:#?}");
    }
}
