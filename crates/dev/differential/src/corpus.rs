//! Written scenarios under both layers.

use std::path::Path;

use anyhow::{Context, Result};
use lavascope_scenario::parse;

use crate::judge::{Judge, JudgedProgram};

/// Performs the scenarios of a folder of folders, and prints where the layers differ.
pub(crate) fn run(root: &Path, filter: &str) -> Result<()> {
    let mut scenarios = Vec::new();
    for folder in entries(root)?.iter().filter(|it| it.is_dir()) {
        for file in entries(folder)?.into_iter().filter(|it| it.extension().is_some_and(|it| it == "vks")) {
            let name = file.strip_prefix(root)?.with_extension("").display().to_string();
            if name.contains(filter) {
                scenarios.push((name, std::fs::read_to_string(&file)?));
            }
        }
    }
    scenarios.sort();
    let mut flags = Vec::new();
    for (name, text) in &scenarios {
        let scenario = parse(text).map_err(|it| anyhow::anyhow!("{name}: {it}"))?;
        flags.extend(scenario.program.queues.iter().map(|it| it.flags));
    }
    flags.sort_unstable();
    flags.dedup();
    let mut judge = Judge::new(&flags)?;
    let (mut same, mut other) = (0, 0);
    for (name, text) in &scenarios {
        match judge.judge(text)? {
            JudgedProgram::Compared { disagreements, .. } if disagreements.is_empty() => same += 1,
            JudgedProgram::Compared { disagreements, .. } => {
                other += 1;
                println!("{name}:");
                disagreements.iter().for_each(|it| println!("{it}"));
            }
            JudgedProgram::EventRace => println!("{name}: not compared: commands race for an event"),
            JudgedProgram::Unsupported(why) => println!("{name}: not performed: {why}"),
            JudgedProgram::Broken { layer, why } => println!("{name}: {}: {why}", layer.word()),
        }
    }
    println!("{} scenarios: {same} judged alike, {other} otherwise", scenarios.len());
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let all = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    Ok(all.map(|it| it.map(|it| it.path())).collect::<Result<_, _>>()?)
}
