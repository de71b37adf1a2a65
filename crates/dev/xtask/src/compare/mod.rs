//! The differential run: what both Khronos layers and ours tell of the same programs.
//!
//! Every difference has its row in `docs/differences.md`; one that has none makes the command fail. Not part of the
//! tests: it takes minutes, and downloads what it needs into `target/compare`.

pub(crate) mod capture_replay;
pub(crate) mod differential;
mod hazards;
mod known_differences;
mod programs;
mod tools;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::setup::process;
use crate::setup::process::cargo;
use crate::setup::system;
use crate::setup::x_server::Screen;
use hazards::{Hazard, Hazards};
use known_differences::KnownDifferences;
use programs::Driver;
pub(crate) use programs::{ComparedCase, foreign};
use tools::Tool;
pub(crate) use tools::ToolEnvironment;

/// Those whose verdicts are compared.
const COMPARED_TOOLS: [Tool; 3] = [Tool::Old, Tool::New, Tool::Ours];
/// What core validation says of a missing dependency between subpasses; it is what the fault leaves out.
const CORE_KNOWN: (&str, &str) = ("fault-subpass", "UNASSIGNED-CoreValidation-DrawState-InvalidRenderpass");
/// The sample cannot run there.
const EXIT_UNSUPPORTED: i32 = 2;

/// One program under all tools.
#[derive(Serialize)]
struct ComparedProgram {
    program: String,
    driver: &'static str,
    runs: BTreeMap<&'static str, ToolRun>,
    differences: Vec<Difference>,
    /// What core validation complains of, where it is asked.
    core: Vec<String>,
    /// The exit code depends on the tool.
    is_disturbed: bool,
    /// Ours tells something of a sample that is right.
    is_false: bool,
}

#[derive(Clone, Serialize)]
struct ToolRun {
    seconds: f64,
    exit_code: Option<i32>,
    hazards: Vec<ReportedHazard>,
}

#[derive(Clone, Serialize)]
struct ReportedHazard {
    hazard: Hazard,
    count: u64,
}

/// A hazard that some tell and others do not.
#[derive(Serialize)]
struct Difference {
    hazard: String,
    reported_by: Vec<&'static str>,
    is_explained: bool,
}

pub(crate) fn run(root: &Path, filter: &str, json: Option<&Path>, no_install: bool) -> Result<()> {
    let notes = KnownDifferences::read(root)?;
    let (bench, _screen) = prepare(root, no_install)?;
    let mut rows = Vec::new();
    println!(
        "{:<50} {:>9} {:>9} {:>9} {:>9}  differences",
        "hazards reported (seconds)", "bare", "1.3.239", "2026", "ours"
    );
    for program in programs::all(&bench, filter)? {
        if let Some(row) = compare(&bench, &program, &notes)? {
            print(&row);
            rows.push(row);
        }
    }
    if let Some(path) = json {
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?;
    }
    check_differences(&rows, &notes, filter)
}

/// Gets and builds everything.
fn prepare(root: &Path, no_install: bool) -> Result<(ToolEnvironment, Screen)> {
    let (bench, screen) = prepare_programs(root, no_install)?;
    tools::ensure_new_layer(&bench.folder)?;
    Ok((bench, screen))
}

/// Gets and builds what the programs need, and what is ours.
pub(crate) fn prepare_programs(root: &Path, no_install: bool) -> Result<(ToolEnvironment, Screen)> {
    system::ensure_for_comparison(root, no_install)?;
    let program = std::env::current_exe().context("the place of this program is not known")?;
    // `target/debug/xtask`
    let built = program.parent().context("this program is not in a build folder")?.to_owned();
    let folder = built.parent().context("this program is not in a build folder")?.join("compare");
    process::ensure_python_packages(root, &folder.join("python"), &programs::PYTHON_PACKAGES)?;
    let packages = ["lavascope-cli", "lavascope-layer", "lavascope-null-driver", "lavascope-samples"];
    let arguments: Vec<&str> = ["build"].into_iter().chain(packages.iter().flat_map(|it| ["--package", it])).collect();
    process::run(root, &cargo(), &arguments)?;
    let lavapipe = system::lavapipe().context("lavapipe is not there: `apt-get install mesa-vulkan-drivers`")?;
    let screen = Screen::start()?;
    Ok((ToolEnvironment::new(folder, built, screen.display.clone(), lavapipe)?, screen))
}

/// None if the driver has not what a sample needs.
fn compare(
    bench: &ToolEnvironment,
    program: &ComparedCase,
    notes: &KnownDifferences,
) -> Result<Option<ComparedProgram>> {
    let (bare, _) = run_tool(bench, program, Tool::Bare)?;
    if program.is_sample() && bare.exit_code == Some(EXIT_UNSUPPORTED) {
        return Ok(None);
    }
    let mut runs = BTreeMap::from([(Tool::Bare.name(), bare.clone())]);
    let mut reported: BTreeMap<Hazard, BTreeSet<&'static str>> = BTreeMap::new();
    for tool in COMPARED_TOOLS {
        let (run, hazards) = run_tool(bench, program, tool)?;
        for hazard in hazards.into_keys() {
            reported.entry(hazard).or_default().insert(tool.name());
        }
        runs.insert(tool.name(), run);
    }
    let differing = reported.into_iter().filter(|it| it.1.len() < COMPARED_TOOLS.len());
    let differences = differing.map(|(hazard, reported_by)| {
        let (hazard, reported_by) = (hazard.text(), reported_by.into_iter().collect::<Vec<_>>());
        let is_explained = notes.mark_explained(&program.name, &reported_by, &hazard);
        Difference { hazard, reported_by, is_explained }
    });
    let differences = differences.collect();
    let core = if program.is_sample() { core_messages(bench, program)? } else { Vec::new() };
    let is_disturbed = runs.values().any(|it| it.exit_code != bare.exit_code);
    let is_false = program.is_clean() && !runs[Tool::Ours.name()].hazards.is_empty();
    let driver = if program.driver == Driver::Null { "null driver" } else { "lavapipe" };
    Ok(Some(ComparedProgram { program: program.name.clone(), driver, runs, differences, core, is_disturbed, is_false }))
}

fn run_tool(bench: &ToolEnvironment, program: &ComparedCase, tool: Tool) -> Result<(ToolRun, Hazards)> {
    let begin = Instant::now();
    let ToolOutput { exit_code, log, stderr: said } = run_output(bench, program, tool)?;
    let hazards = match tool {
        Tool::Bare | Tool::Core => Hazards::new(),
        Tool::Old | Tool::New => hazards::hazards_of_log(&log),
        Tool::Ours => {
            let report = serde_json::from_str(&log);
            hazards::hazards_of_report(
                &report.with_context(|| format!("{}: lavascope wrote no report\n{said}", program.name))?,
            )
        }
    };
    let reported = hazards.iter().map(|(hazard, count)| ReportedHazard { hazard: hazard.clone(), count: *count });
    Ok((ToolRun { seconds: begin.elapsed().as_secs_f64(), exit_code, hazards: reported.collect() }, hazards))
}

/// Messages of core validation that the sample may not cause.
fn core_messages(bench: &ToolEnvironment, program: &ComparedCase) -> Result<Vec<String>> {
    let ToolOutput { log, .. } = run_output(bench, program, Tool::Core)?;
    let is_known = |it: &String| (program.name.as_str(), it.as_str()) == CORE_KNOWN;
    Ok(hazards::others_of_log(&log).into_iter().filter(|it| !is_known(it)).collect())
}

/// What came out of a run.
struct ToolOutput {
    exit_code: Option<i32>,
    /// What the tool wrote to its file.
    log: String,
    /// What both said on standard error.
    stderr: String,
}

fn run_output(bench: &ToolEnvironment, program: &ComparedCase, tool: Tool) -> Result<ToolOutput> {
    let log = bench.log(tool);
    // A run that writes nothing must not be taken for the one before.
    let _ = std::fs::remove_file(&log);
    let mut command = bench.command(program, tool);
    let output = command.output().with_context(|| format!("{command:?} cannot be started"))?;
    let log = std::fs::read(&log).map(|it| String::from_utf8_lossy(&it).into_owned()).unwrap_or_default();
    Ok(ToolOutput {
        exit_code: output.status.code(),
        log,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

fn print(row: &ComparedProgram) {
    let cell = |tool: Tool| {
        let run = &row.runs[tool.name()];
        let count = run.hazards.len();
        let text = if tool == Tool::Bare { String::new() } else { count.to_string() };
        format!("{text} ({:.1})", run.seconds)
    };
    let (all, open) = (row.differences.len(), row.differences.iter().filter(|it| !it.is_explained).count());
    let verdict = match (all, open) {
        (0, _) => String::new(),
        (_, 0) => format!("{all} explained"),
        _ => format!("{open} of {all} NOT EXPLAINED"),
    };
    let name = if row.driver == "lavapipe" { row.program.clone() } else { format!("{} ({})", row.program, row.driver) };
    let cells = [Tool::Bare, Tool::Old, Tool::New, Tool::Ours].map(|it| format!("{:>9}", cell(it))).join(" ");
    println!("{name:<50} {cells}  {verdict}");
    for difference in row.differences.iter().filter(|it| !it.is_explained) {
        println!("    {} reported by {} only", difference.hazard, difference.reported_by.join(" and "));
    }
    row.core.iter().for_each(|it| println!("    core validation complains: {it}"));
    if row.is_disturbed {
        let codes: Vec<String> = row.runs.iter().map(|(tool, it)| format!("{tool} {:?}", it.exit_code)).collect();
        println!("    the exit codes differ: {}", codes.join(", "));
    }
}

fn check_differences(rows: &[ComparedProgram], notes: &KnownDifferences, filter: &str) -> Result<()> {
    let differences = || rows.iter().flat_map(|it| &it.differences);
    let open = differences().filter(|it| !it.is_explained).count();
    let invalid = rows.iter().filter(|it| !it.core.is_empty()).count();
    let false_ones = rows.iter().filter(|it| it.is_false).count();
    let disturbed = rows.iter().filter(|it| it.is_disturbed).count();
    println!(
        "{} programs, {} differences, {open} of them not explained in {}",
        rows.len(),
        differences().count(),
        known_differences::FILE
    );
    if filter.is_empty() {
        notes.unused().for_each(|it| println!("nothing needed this row of {}: {it}", known_differences::FILE));
    }
    ensure!(open == 0, "{open} differences have no row in {}", known_differences::FILE);
    ensure!(invalid == 0, "{invalid} samples are not correct Vulkan apart from their fault");
    ensure!(false_ones == 0, "of {false_ones} samples that are right lavascope tells hazards");
    ensure!(disturbed == 0, "{disturbed} programs end otherwise under a tool");
    Ok(())
}
