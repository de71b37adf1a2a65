//! Which crate may use which: downwards in the table of crates, or with a line there that says why.

use super::architecture::{CrateRow, PATH, Tier, crate_name, finding};
use super::collect::{DependencyKind, WorkspaceMember};
use crate::tidy::{File, Rule, TidyFinding};

/// The crates of tier `build`, each of which may use those before it.
const BUILD_ORDER: [&str; 3] = ["registry", "codegen", "xtask"];

pub(crate) fn check(text: &str, rows: &[CrateRow], members: &[WorkspaceMember], files: &[File]) -> Vec<TidyFinding> {
    let permits = permits(text, rows);
    let mut needed = vec![false; permits.len()];
    let mut findings = Vec::new();
    for edge in edges(rows, members) {
        let permit = permits.iter().position(|it| it.from == edge.from.name && it.to == edge.to.name);
        match (direction(edge.from, edge.to), permit) {
            (TierDirection::Down, _) => {}
            (TierDirection::Sideways, Some(at)) => needed[at] = true,
            (TierDirection::Sideways, None) => findings.push(upward(&edge, files)),
            (TierDirection::Forbidden, _) => findings.push(tests_only(&edge, files)),
        }
    }
    for (permit, _) in permits.iter().zip(needed).filter(|(_, needed)| !needed) {
        let text = format!("`{}` uses `{}` needs no line of its own: remove or reword it", permit.from, permit.to);
        findings.push(finding(permit.line, text));
    }
    findings
}

/// A line "`a` uses `b`: reason" of ARCHITECTURE.md.
struct Permit<'a> {
    line: usize,
    from: &'a str,
    to: &'a str,
}

/// A dependency between two crates of the table that is not for tests only.
struct CrateEdge<'a> {
    from: &'a CrateRow,
    to: &'a CrateRow,
    folder: &'a str,
    package: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TierDirection {
    Down,
    /// Or upwards: a line has to say why.
    Sideways,
    /// No line can excuse it.
    Forbidden,
}

fn permits<'a>(text: &'a str, rows: &[CrateRow]) -> Vec<Permit<'a>> {
    let permits = text.lines().enumerate().filter_map(|(at, line)| permit(at + 1, line));
    let known = |name: &str| rows.iter().any(|it| it.name == name);
    permits.filter(|it| known(it.from) && known(it.to)).collect()
}

fn permit(line: usize, text: &str) -> Option<Permit<'_>> {
    let rest = text.trim_start().trim_start_matches(['-', '*']).trim_start().strip_prefix('`')?;
    let (from, rest) = rest.split_once("` uses `")?;
    let (to, reason) = rest.split_once("`:")?;
    (!reason.trim().is_empty()).then_some(Permit { line, from, to })
}

fn edges<'a>(rows: &'a [CrateRow], members: &'a [WorkspaceMember]) -> Vec<CrateEdge<'a>> {
    let row_of = |package: &str| rows.iter().find(|it| it.name == crate_name(package));
    let mut edges = Vec::new();
    for member in members {
        let Some(from) = row_of(&member.package) else { continue };
        for dependency in member.dependencies.iter().filter(|it| it.kind == DependencyKind::Normal) {
            let used = members.iter().find(|it| it.package == dependency.package);
            let Some((used, to)) = used.and_then(|it| Some((it, row_of(&it.package)?))) else { continue };
            edges.push(CrateEdge { from, to, folder: &member.folder, package: &used.package });
        }
    }
    edges
}

fn direction(from: &CrateRow, to: &CrateRow) -> TierDirection {
    let place = |row: &CrateRow| BUILD_ORDER.iter().position(|it| *it == row.name);
    match (from.tier, to.tier) {
        _ if from.name == "xtask" => TierDirection::Down,
        (Tier::Test, Tier::Test | Tier::Level(_)) => TierDirection::Down,
        (Tier::Build | Tier::Level(_), Tier::Test) => TierDirection::Forbidden,
        (Tier::Level(from), Tier::Level(to)) if to < from => TierDirection::Down,
        (Tier::Build, Tier::Build) if place(from) > place(to) && place(to).is_some() => TierDirection::Down,
        (Tier::Build | Tier::Level(_), Tier::Build | Tier::Level(_)) | (Tier::Test, Tier::Build) => {
            TierDirection::Sideways
        }
    }
}

fn upward(edge: &CrateEdge, files: &[File]) -> TidyFinding {
    let (from, to) = (&edge.from.name, &edge.to.name);
    let tiers =
        format!("{from} (tier {}) must not use {to} (tier {})", tier_name(edge.from.tier), tier_name(edge.to.tier));
    at_dependency(edge, files, format!("{tiers}: turn it round, or say why in {PATH} with \"`{from}` uses `{to}`: …\""))
}

fn tests_only(edge: &CrateEdge, files: &[File]) -> TidyFinding {
    let text = format!("{} is for tests: make it a dev-dependency of {}", edge.to.name, edge.from.name);
    at_dependency(edge, files, text)
}

fn tier_name(tier: Tier) -> String {
    match tier {
        Tier::Build => "build".to_owned(),
        Tier::Level(level) => level.to_string(),
        Tier::Test => "test".to_owned(),
    }
}

fn at_dependency(edge: &CrateEdge, files: &[File], text: String) -> TidyFinding {
    let manifest = format!("{}/Cargo.toml", edge.folder);
    let lines = File::text_of(files, &manifest).unwrap_or_default().lines();
    let at = lines.map(str::trim_start).position(|it| it.starts_with(edge.package));
    TidyFinding::new(Rule::Crates, &manifest, at.map_or(1, |it| it + 1), text)
}

#[cfg(test)]
mod tests {
    use super::super::collect::CrateDependency;
    use super::*;

    fn row(tier: Tier, name: &str) -> CrateRow {
        let (sentence, unsafe_code) = (String::new(), "no".into());
        CrateRow { line: 1, folder: None, tier, name: name.into(), sentence, unsafe_code }
    }

    fn rows() -> Vec<CrateRow> {
        let levels = [(0, "abi"), (1, "event"), (1, "spirv"), (2, "marshal")];
        let levels = levels.map(|(level, name)| row(Tier::Level(level), name));
        let build = BUILD_ORDER.map(|name| row(Tier::Build, name));
        let test = ["sim", "samples"].map(|name| row(Tier::Test, name));
        levels.into_iter().chain(build).chain(test).collect()
    }

    fn package(name: &str) -> String {
        if name == "xtask" { name.to_owned() } else { format!("lavascope-{name}") }
    }

    /// The faults of a workspace in which `from` uses `to` and nothing else is used.
    fn faults(text: &str, from: &str, to: &str, kind: DependencyKind) -> Vec<String> {
        let rows = rows();
        let mut members: Vec<_> = rows.iter().map(|it| member(&it.name)).collect();
        let user = members.iter_mut().find(|it| it.package == package(from)).unwrap();
        user.dependencies.push(CrateDependency { package: package(to), kind });
        let manifest = format!("crates/g/{from}/Cargo.toml");
        let files = [File::in_memory(&manifest, &format!("[dependencies]\n{}.workspace = true", package(to)))];
        let findings = check(text, &rows, &members, &files);
        findings.into_iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.text)).collect()
    }

    fn member(name: &str) -> WorkspaceMember {
        let folder = format!("crates/g/{name}");
        WorkspaceMember { package: package(name), folder, description: String::new(), dependencies: Vec::new() }
    }

    #[test]
    fn lower_tiers_may_be_used() {
        let pairs = [("marshal", "event"), ("event", "abi"), ("codegen", "registry"), ("xtask", "codegen")];
        let others = [("xtask", "marshal"), ("xtask", "sim"), ("samples", "sim"), ("sim", "event")];
        for (from, to) in pairs.into_iter().chain(others) {
            assert_eq!(faults("", from, to, DependencyKind::Normal), Vec::<String>::new(), "{from} uses {to}");
        }
    }

    #[test]
    fn other_tiers_may_not_be_used() {
        let pairs = [("abi", "event"), ("event", "spirv"), ("registry", "codegen"), ("codegen", "xtask")];
        let others = [("abi", "registry"), ("codegen", "abi"), ("sim", "registry")];
        for (from, to) in pairs.into_iter().chain(others) {
            let faults = faults("", from, to, DependencyKind::Normal);
            assert_eq!(faults.len(), 1, "{from} uses {to}");
            assert!(faults[0].starts_with(&format!("crates/g/{from}/Cargo.toml:2: {from} (tier ")), "{faults:?}");
        }
    }

    #[test]
    fn a_line_with_a_reason_permits_a_sideways_use() {
        let line = "- `event` uses `spirv`: shaders are printed";
        assert_eq!(faults(line, "event", "spirv", DependencyKind::Normal), Vec::<String>::new());
        assert_eq!(faults("`event` uses `spirv`:", "event", "spirv", DependencyKind::Normal).len(), 1);
        let unused = faults(line, "event", "abi", DependencyKind::Normal);
        assert_eq!(unused, ["ARCHITECTURE.md:1: `event` uses `spirv` needs no line of its own: remove or reword it"]);
    }

    #[test]
    fn crates_for_tests_are_dev_dependencies() {
        assert_eq!(faults("", "marshal", "sim", DependencyKind::Dev), Vec::<String>::new());
        let line = "`marshal` uses `sim`: because";
        let faults = faults(line, "marshal", "sim", DependencyKind::Normal);
        assert!(faults[0].contains("make it a dev-dependency"), "{faults:?}");
    }
}
