//! The border to the operating system: only `crates/base/platform` names what systems have.

use super::generated;
use super::source::{RustSource, words};
use crate::tidy::workspace::collect::{DependencyKind, WorkspaceMember};
use crate::tidy::{File, Rule, TidyFinding};

/// The crate behind whose interface systems are.
const CRATE: &str = "platform";
const PACKAGE: &str = "lavascope-platform";

/// Names in code and in manifests, and what has a counterpart for each.
const LIBRARIES: [(&str, &str); 5] = [
    ("libc", "pages, process, signals or threads"),
    ("rustix", "pages, files, clock, wait or process"),
    ("signal_hook", "signals, process or death"),
    ("libloading", "library::Library"),
    ("memmap2", "files::map_for_ever or pages::map"),
];
/// Modules of the standard library that one system has.
const OS: [(&str, &str); 1] = [("std::os", "files, process or shared_memory")];
/// What `cfg` tells systems and processors apart by.
const CONDITIONS: [&str; 7] =
    ["unix", "windows", "target_os", "target_arch", "target_env", "target_family", "target_vendor"];

pub(crate) fn check(files: &[File], members: &[WorkspaceMember]) -> Vec<TidyFinding> {
    let of_crates = files.iter().filter(|it| is_checked(it));
    let mut findings: Vec<TidyFinding> =
        of_crates.filter_map(|it| Some(check_text(&it.path, it.text.as_deref()?))).flatten().collect();
    findings.extend(members.iter().filter(|it| it.package != PACKAGE).flat_map(check_member));
    findings
}

/// Handwritten code of a crate; tests and benches say what they need of a system.
fn is_checked(file: &File) -> bool {
    let is_test = file.path.ends_with("/tests.rs") || file.path.contains("/tests/");
    let is_code = file.path.contains("/src/") && file.path.ends_with(".rs");
    is_code && !is_test && !generated::is_generated_path(&file.path) && file.crate_name().is_some_and(|it| it != CRATE)
}

fn check_text(path: &str, text: &str) -> Vec<TidyFinding> {
    let mut source = RustSource::new(text);
    blank_tests(&mut source);
    let mut findings = Vec::new();
    let mut add = |at: usize, what: &str, instead: &str| {
        let text =
            format!("`{what}` is a matter of one system: use {instead} of {PACKAGE}, or add what is missing there");
        findings.push(TidyFinding::new(Rule::Platform, path, source.line_of(at), text));
    };
    for (name, instead) in LIBRARIES.into_iter().chain(OS) {
        let is_path = |at: &usize| {
            let (before, after) = (&source.code[..*at], source.after(at + name.len()));
            after.starts_with("::") || before.trim_end().ends_with("use")
        };
        source.words(name).filter(is_path).for_each(|at| add(at, name, instead));
    }
    for (at, condition) in conditions(&source) {
        add(at, condition, "a constant or function");
    }
    findings
}

/// Where `cfg(…)`, `cfg!(…)` or `cfg_attr(…)` names a system or a processor.
fn conditions(source: &RustSource) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for name in ["cfg", "cfg_attr"] {
        for at in source.words(name) {
            let after = source.code[at + name.len()..].trim_start_matches('!');
            let open = source.code.len() - after.len();
            let Some(close) = after.starts_with('(').then(|| source.closing(open)).flatten() else { continue };
            let inside = &source.code[open..close];
            found.extend(CONDITIONS.into_iter().filter(|it| words(inside, it).next().is_some()).map(|it| (at, it)));
        }
    }
    found
}

/// Takes modules out that only tests have.
fn blank_tests(source: &mut RustSource) {
    const MARK: &str = "#[cfg(test)]";
    let marks: Vec<usize> = source.code.match_indices(MARK).map(|it| it.0).collect();
    for at in marks {
        let item = source.code[at..].find(['{', ';']).map(|it| at + it);
        let Some(open) = item.filter(|it| source.code.as_bytes()[*it] == b'{') else { continue };
        let Some(close) = source.closing(open) else { continue };
        let blank = source.code[at..close].chars().map(|it| if it == '\n' { '\n' } else { ' ' }).collect::<String>();
        source.code.replace_range(at..close, &blank);
    }
}

fn check_member(member: &WorkspaceMember) -> Vec<TidyFinding> {
    let manifest = format!("{}/Cargo.toml", member.folder);
    let is_named = |package: &str| LIBRARIES.iter().any(|it| it.0 == package.replace('-', "_"));
    let used = member.dependencies.iter().filter(|it| it.kind == DependencyKind::Normal && is_named(&it.package));
    used.map(|crate_dependency| {
        let text =
            format!("`{}` is for {PACKAGE} alone: use that, or make it a dev-dependency", crate_dependency.package);
        TidyFinding::new(Rule::Platform, &manifest, 1, text)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::workspace::collect::CrateDependency;

    fn faults(text: &str) -> Vec<String> {
        check_text("crates/g/a/src/b.rs", text).into_iter().map(|it| format!("{}: {}", it.line, it.text)).collect()
    }

    #[test]
    fn libraries_of_a_system_are_named_by_the_platform_crate_alone() {
        for line in ["use libc;", "use rustix::mm::mmap;", "fn f() { libloading::f() }", "use std::os::fd::AsFd;"] {
            let faults = faults(&format!("\n{line}"));
            assert!(faults.len() == 1 && faults[0].starts_with("2: `"), "{line}: {faults:#?}");
            assert!(faults[0].contains("of lavascope-platform"), "{faults:#?}");
        }
        assert_eq!(faults("// libc::x\nlet libc = \"rustix::mm\"; f(libc, my_libc::x)"), Vec::<String>::new());
    }

    #[test]
    fn conditions_on_systems_and_processors_are_faults() {
        for line in
            ["#[cfg(unix)]", "#[cfg(all(a, not(target_os = \"x\")))]", "f(cfg!(windows))", "#[cfg_attr(unix, x)]"]
        {
            let faults = faults(&format!("{line} fn f() {{}}"));
            assert!(faults.len() == 1 && faults[0].contains("a constant or function"), "{line}: {faults:#?}");
        }
        assert_eq!(faults("#[cfg(debug_assertions)]\nfn windows(unix: u8) {}"), Vec::<String>::new());
    }

    #[test]
    fn tests_say_what_they_need() {
        let text = "#[cfg(test)]\nmod tests {\n    use libc::x;\n}\n#[cfg(test)]\nmod other;\nuse rustix::x;";
        let faults = faults(text);
        assert!(faults.len() == 1 && faults[0].starts_with("7: `rustix`"), "{faults:#?}");
        let judged = |path: &str| is_checked(&File::in_memory(path, ""));
        assert!(judged("crates/g/a/src/b.rs") && !judged("crates/base/platform/src/linux/b.rs"));
        assert!(
            !judged("crates/g/a/tests/b.rs")
                && !judged("crates/g/a/src/b/tests.rs")
                && !judged("crates/g/a/benches/b.rs")
        );
    }

    #[test]
    fn manifests_have_them_for_tests_only() {
        let dependency = |package: &str, kind| CrateDependency { package: package.to_owned(), kind };
        let member = |dependencies| WorkspaceMember {
            package: "lavascope-a".to_owned(),
            folder: "crates/g/a".to_owned(),
            description: String::new(),
            dependencies,
        };
        let all = vec![dependency("signal-hook", DependencyKind::Normal), dependency("libc", DependencyKind::Dev)];
        let faults = check(&[], &[member(all.clone())]);
        assert!(faults.len() == 1 && faults[0].text.contains("`signal-hook`"), "{faults:#?}");
        assert_eq!(check(&[], &[WorkspaceMember { package: PACKAGE.to_owned(), ..member(all) }]), []);
    }
}
