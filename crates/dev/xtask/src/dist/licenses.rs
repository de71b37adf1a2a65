//! The licenses of the crates of others that are inside of our programs, with their texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::run_tool;
use crate::setup::process::cargo;

/// How the files begin that hold a license.
const LICENSE_FILES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];
/// Libraries in C lie in folders of their crate.
const DEPTH: u32 = 3;

const INTRO: &str = "\
Lavascope is under the MIT license or the Apache License 2.0, at your option.
Its programs and libraries hold code of the crates below, each under its own license, and of the Rust standard
library, which is under the MIT license or the Apache License 2.0.

";

/// A page with every crate that these packages are built from, and every text once.
pub(super) fn third_party(root: &Path, packages: &[&str]) -> Result<String> {
    let host = run_tool(root, "rustc", &["-vV"])?;
    let host = host.lines().find_map(|it| it.strip_prefix("host: ")).context("rustc names no host")?;
    let words = ["metadata", "--format-version=1", "--filter-platform", host];
    let metadata: Value = serde_json::from_str(&run_tool(root, &cargo(), &words)?)?;
    let used = used_packages(&metadata, packages)?;
    let mut page = INTRO.to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let is_ours = package["source"].is_null();
        if is_ours || !package["id"].as_str().is_some_and(|it| used.contains(it)) {
            continue;
        }
        let word = |key: &str| package[key].as_str().unwrap_or("unknown");
        let name = format!("{} {}", word("name"), word("version"));
        page.push_str(&format!("{name}: {}\n", word("license")));
        let folder = Path::new(word("manifest_path")).parent().context("a manifest lies in a folder")?;
        let mut found = Vec::new();
        collect_texts(folder, DEPTH, &mut found)?;
        ensure!(!found.is_empty() || package["license"].is_string(), "{name} has no license");
        found.into_iter().for_each(|it| texts.entry(it).or_default().push(name.clone()));
    }
    for (text, names) in texts {
        let names: BTreeSet<_> = names.into_iter().collect();
        let names = names.into_iter().collect::<Vec<_>>().join(", ");
        page.push_str(&format!("\n{}\n{names}\n\n{}\n", "=".repeat(80), text.trim_end()));
    }
    Ok(page)
}

/// The ids of the packages and of all that they are built from.
fn used_packages(metadata: &Value, packages: &[&str]) -> Result<BTreeSet<String>> {
    let nodes = metadata["resolve"]["nodes"].as_array().context("cargo has resolved nothing")?;
    let named = metadata["packages"].as_array().into_iter().flatten();
    let roots = named.filter(|it| packages.iter().any(|name| it["name"] == *name) && it["source"].is_null());
    let mut queue: Vec<String> = roots.filter_map(|it| it["id"].as_str()).map(str::to_owned).collect();
    ensure!(queue.len() == packages.len(), "cargo does not know all of {}", packages.join(", "));
    let mut used = BTreeSet::new();
    while let Some(id) = queue.pop() {
        let node = nodes.iter().find(|it| it["id"] == id.as_str()).with_context(|| format!("cargo lost {id}"))?;
        let edges = node["deps"].as_array().into_iter().flatten();
        // A kind of null is what is linked; `dev` and `build` are not.
        let is_linked =
            |it: &&Value| it["dep_kinds"].as_array().is_some_and(|it| it.iter().any(|it| it["kind"].is_null()));
        let next = edges.filter(is_linked).filter_map(|it| it["pkg"].as_str()).map(str::to_owned);
        queue.extend(next.filter(|it| !used.contains(it)));
        used.insert(id);
    }
    Ok(used)
}

fn collect_texts(folder: &Path, depth: u32, to: &mut Vec<String>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|it| it.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        if path.is_dir() && depth > 1 {
            collect_texts(&path, depth - 1, to)?;
        } else if path.is_file() && LICENSE_FILES.iter().any(|it| name.starts_with(it)) {
            // Some are not UTF-8, for the name of an author.
            to.push(String::from_utf8_lossy(&fs::read(&path)?).into_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_linked_is_used() {
        let metadata = serde_json::json!({
            "packages": [{ "id": "ours", "name": "ours", "source": null }],
            "resolve": { "nodes": [
                { "id": "ours", "deps": [
                    { "pkg": "linked", "dep_kinds": [{ "kind": "dev" }, { "kind": null }] },
                    { "pkg": "tests", "dep_kinds": [{ "kind": "dev" }] },
                ] },
                { "id": "linked", "deps": [] },
            ] },
        });
        let used = used_packages(&metadata, &["ours"]).expect("they are known");
        assert_eq!(used.iter().map(String::as_str).collect::<Vec<_>>(), ["linked", "ours"]);
        assert!(used_packages(&metadata, &["theirs"]).is_err());
    }
}
