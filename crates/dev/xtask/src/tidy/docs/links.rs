//! Markdown pages: one title each, and links that lead somewhere.
//!
//! Absent on purpose: links to the outside, which only a network could check.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::docs::page::MarkdownPage;
use crate::tidy::{File, Rule, TidyFinding};

pub(crate) fn check(files: &[File]) -> Vec<TidyFinding> {
    let texts = files.iter().filter(|it| it.path.ends_with(".md"));
    let pages = texts.filter_map(|it| Some((it.path.as_str(), MarkdownPage::new(it.text.as_deref()?)))).collect();
    let site = LinkIndex { paths: files.iter().flat_map(|it| with_folders(&it.path)).collect(), pages };
    let judge_page = |(path, page): (&&str, &MarkdownPage)| {
        let mut findings = check_links(path, page, &site);
        findings.extend(check_title(path, page));
        findings
    };
    site.pages.iter().flat_map(judge_page).collect()
}

struct LinkIndex<'a> {
    /// Files, and the folders that hold them.
    paths: BTreeSet<&'a str>,
    pages: BTreeMap<&'a str, MarkdownPage>,
}

fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain(["", path])
}

fn check_title(path: &str, page: &MarkdownPage) -> Option<TidyFinding> {
    let (line, text) = match page.titles[..] {
        [_] => return None,
        [] => (1, "the page has no title: begin it with `# `"),
        [_, second, ..] => (second, "a second title: use `## ` or deeper below the first"),
    };
    Some(TidyFinding::new(Rule::Markdown, path, line, text))
}

fn check_links(path: &str, page: &MarkdownPage, site: &LinkIndex) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for link in &page.links {
        if let Err(fault) = check_link(path, &link.target, site) {
            let text = format!("the link `{}` is broken: {fault}", link.target);
            findings.push(TidyFinding::new(Rule::Markdown, path, link.line, text));
        }
    }
    findings
}

fn check_link(from: &str, target: &str, site: &LinkIndex) -> Result<(), String> {
    if leads_outside(target) {
        return Ok(());
    }
    let (place, anchor) = target.split_once('#').unwrap_or((target, ""));
    let place = percent_decoded(place.split('?').next().unwrap_or_default());
    let path = if place.is_empty() { from.to_owned() } else { resolve(from, &place)? };
    if !site.paths.contains(path.as_str()) {
        return Err(format!("git knows no {path}"));
    }
    match site.pages.get(path.as_str()) {
        Some(page) if !anchor.is_empty() && !page.anchors.contains(&percent_decoded(anchor)) => {
            Err(format!("{path} has no heading `#{anchor}`"))
        }
        _ => Ok(()),
    }
}

/// Whether a target begins with a scheme like `https:`, or takes that of the page.
fn leads_outside(target: &str) -> bool {
    let end = target.find(['/', '#', '?']).unwrap_or(target.len());
    target.starts_with("//") || target[..end].contains(':')
}

/// The path, relative to the root, that a link in `from` names. A leading slash stands for the root, as on GitHub.
fn resolve(from: &str, place: &str) -> Result<String, String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let start = if place.starts_with('/') { "" } else { folder };
    let mut parts: Vec<&str> = Vec::new();
    for part in start.split('/').chain(place.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().ok_or("it leaves the repository")?),
            _ => parts.push(part),
        }
    }
    Ok(parts.join("/"))
}

/// With `%20` and the like replaced by what they stand for.
fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let code = after.get(..2).and_then(|it| u8::from_str_radix(it, 16).ok());
        bytes.push(code.unwrap_or(b'%'));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let files = [
            File::in_memory("docs/page.md", text),
            File::in_memory("docs/a b.md", "# Other\n\n## Some part\n"),
            File::in_memory("crates/api/abi/src/lib.rs", ""),
        ];
        check(&files).into_iter().map(|it| format!("{}:{}: {}", it.path, it.line, it.text)).collect()
    }

    #[test]
    fn good_links_lead_to_files_folders_and_headings() {
        let links =
            "[a](#part) [b](a%20b.md#some-part) [c](../crates/api/abi) [d](/crates/api/abi/src/lib.rs#L3) [e](<a b.md>)
[f](https://example.org/x#y) [g](mailto:a@b.c) [h](./../docs/page.md?plain=1) [i](..)";
        assert_eq!(faults(&format!("# Title\n\n## Part\n\n{links}\n")), Vec::<String>::new());
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let found = faults("# Title\n\nText [a](gone.md)\nand [b](#gone), [c](../../x), [d](a%20b.md#Some-part).\n");
        let want = [
            "docs/page.md:3: the link `gone.md` is broken: git knows no docs/gone.md",
            "docs/page.md:4: the link `#gone` is broken: docs/page.md has no heading `#gone`",
            "docs/page.md:4: the link `../../x` is broken: it leaves the repository",
            "docs/page.md:4: the link `a%20b.md#Some-part` is broken: docs/a b.md has no heading `#Some-part`",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_page_has_one_title() {
        assert!(faults("Text.\n")[0].starts_with("docs/page.md:1: the page has no title"));
        assert!(faults("# One\n\n# Two\n\n# Three\n")[0].starts_with("docs/page.md:3: a second title"));
    }
}
