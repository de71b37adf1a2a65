//! `lavascope check`: the hazards of a program that was captured, or is written as a scenario.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::Serialize;

use lavascope_diag::{Diagnostic, Identity, Severity, render_text};
use lavascope_program::{CommandBufferId, Findings};
use lavascope_scenario::{Site as Written, Source, Spot};
use lavascope_sync::event_races;
use lavascope_sync::explain::{
    Budget, Site, advise, causes, diagnose, diagnose_faults, diagnose_races, fault_causes, never_executed,
    over_synchronized, parked, race_causes,
};

use super::{Outcome, check_trace};
use crate::known::{Judged, KnownArguments, KnownFile, gone_text};
use crate::scenario_names::ScenarioNames;
use crate::{text, trace_file};

/// Find the hazards of a program that was captured, or is written as a scenario
///
/// The form of scenarios is in docs/scenarios.md. What is expected in the file does not count here.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The trace, or the scenario
    file: PathBuf,
    /// Tell as well which synchronization nobody needs; that does not count for the exit code
    #[arg(long)]
    needless: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    known: KnownArguments,
}

/// How often a program is checked again in search of what it does not need.
const BUDGET: Budget = Budget { checks_max: 10_000 };

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let file = &arguments.file;
    let (baseline, rules) = (arguments.known.baseline()?, arguments.known.rules()?);
    let bytes = std::fs::read(file).with_context(|| format!("{} cannot be read", file.display()))?;
    if trace_file::is_trace(&bytes) {
        let mut checked = check_trace::check_file(file)?;
        let found = std::mem::take(&mut checked.diagnostics).into_iter().map(|it| (None, it)).collect();
        let judged = Judged::new(found, |it: &Item<'_>| &it.1, &rules, baseline.as_ref());
        let text = if arguments.json { String::new() } else { checked.text(file) };
        return tell(arguments, judged, Vec::new(), baseline.as_ref(), (&text, &checked.none(file)));
    }
    let content = std::str::from_utf8(&bytes).map_err(|error| not_text(file, &bytes, error.valid_up_to()))?;
    let source = Source::new(content)
        .map_err(|error| anyhow!("{}:{}:{}: {}", file.display(), error.line, error.column, error.message))?;
    let judged = Judged::new(find(&source), |it| &it.1, &rules, baseline.as_ref());
    let mut needless = Vec::new();
    if arguments.needless {
        let found = over_synchronized(&source.scenario.program, BUDGET);
        let advice = advise(&found, &ScenarioNames(&source));
        needless = found.surplus.iter().map(|it| spot_of(&source, it.site)).zip(advice).collect();
        if found.untried > 0 {
            text::tell(&format!("lavascope: {} changes were not tried; the program is too large\n", found.untried));
        }
    }
    let none = format!("{}: no hazards", file.display());
    tell(arguments, judged, needless, baseline.as_ref(), ("", &none))
}

/// A finding, with where it is written.
type Item<'a> = (Option<Spot<'a>>, Diagnostic);

/// Prints findings and advice; `between` stands behind the findings, `none` where there are none.
fn tell(
    arguments: &Arguments,
    judged: Judged<Item<'_>>,
    needless: Vec<Item<'_>>,
    baseline: Option<&KnownFile>,
    (between, none): (&str, &str),
) -> anyhow::Result<Outcome> {
    let file = &arguments.file;
    let identities: Vec<Identity> = judged.findings.iter().map(|it| Identity::of(&it.0.1)).collect();
    if arguments.json {
        let found = judged.findings.iter().map(|(it, is_known)| Info::new(file, it, *is_known));
        text::emit_json(&found.chain(needless.iter().map(|it| Info::new(file, it, false))).collect::<Vec<_>>())?;
    } else {
        let new = judged.findings.iter().filter(|it| !it.1).map(|it| &it.0);
        let mut out: String = new.chain(&needless).map(|it| render(file, it)).collect();
        out += between;
        out += &last_line(&judged, needless.len(), none);
        text::emit(&out)?;
    }
    if let Some(baseline) = baseline {
        text::tell(&gone_text(baseline.path(), &baseline.gone(&identities)));
        text::tell(&baseline.update(&identities)?.unwrap_or_default());
    }
    Ok(if judged.new_count() == 0 { Outcome::Fine } else { Outcome::Found })
}

/// All that is wrong, each with where it is written.
fn find<'a>(source: &Source<'a>) -> Vec<Item<'a>> {
    let (program, names) = (&source.scenario.program, ScenarioNames(source));
    let Findings { hazards, faults } = lavascope_sync::check_all(program);
    let mut spots: Vec<Option<Spot<'a>>> = causes(program, &hazards).iter().map(|it| source.operand(it.0)).collect();
    let mut diagnostics = diagnose(program, &hazards, &names);
    spots.extend(fault_causes(program, &faults).iter().map(|it| source.operand_of_fault(it.0)));
    diagnostics.extend(diagnose_faults(program, &faults, &names));
    let races = event_races(program);
    spots.extend(race_causes(program, &races).iter().map(|it| source.spot(source.site(&it.0.at)?)));
    diagnostics.extend(diagnose_races(program, &races, &names));
    let parked = parked(program);
    diagnostics.extend(never_executed(program, &parked, &names));
    let mut steps: Vec<u32> = parked.iter().map(|it| it.1).collect();
    steps.dedup();
    spots.extend(steps.into_iter().map(|it| source.spot(Written::Step(it))));
    spots.into_iter().zip(diagnostics).collect()
}

/// Where an operation is written that can be changed.
fn spot_of<'a>(source: &Source<'a>, site: Site) -> Option<Spot<'a>> {
    let command = |buffer: CommandBufferId, index| Written::Command { command_buffer: buffer.0, index };
    let written = match site {
        Site::Barrier { buffer, command: index, .. }
        | Site::Event { buffer, command: index, .. }
        | Site::SetEvent { buffer, command: index } => command(buffer, index),
        Site::Semaphore { signal, wait } => Written::Step(signal.or(wait)?.step),
        Site::Step(step) => Written::Step(step),
        Site::Subpass { .. } => return None,
    };
    source.spot(written)
}

fn not_text(file: &Path, bytes: &[u8], valid: usize) -> anyhow::Error {
    let before = &bytes[..valid];
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|it| **it != b'\n').count() + 1;
    anyhow!("{}:{line}:{column}: this is no text in UTF-8", file.display())
}

fn render(file: &Path, (spot, it): &Item<'_>) -> String {
    let place = spot.map_or(String::new(), |it| format!(":{}:{}", it.line, it.column));
    // The facts are for tools, which read JSON.
    format!("{}{place}: {}\n", file.display(), render_text(&Diagnostic { facts: Vec::new(), ..it.clone() }))
}

fn last_line<T>(judged: &Judged<T>, needless: usize, none: &str) -> String {
    let mut line = match judged.new_count() {
        0 => none.to_owned(),
        1 => "1 finding".to_owned(),
        count => format!("{count} findings"),
    };
    let counts = [(needless as u64, "needless"), (judged.known_count() as u64, "known"), (judged.ignored, "ignored")];
    for (count, word) in counts.iter().filter(|it| it.0 > 0 && (it.1 != "needless" || judged.new_count() == 0)) {
        line += &format!("; {word}: {count}");
    }
    line + match judged.new_count() {
        0 => "\n",
        1 => "; `lavascope explain CODE` tells more about its kind\n",
        _ => "; `lavascope explain CODE` tells more about a kind\n",
    }
}

#[derive(Serialize)]
struct Info<'a> {
    code: &'a str,
    message_id: u32,
    severity: &'static str,
    file: String,
    line: Option<u32>,
    column: Option<u32>,
    message: &'a str,
    places: Vec<PlaceInfo<'a>>,
    objects: Vec<ObjectInfo<'a>>,
    facts: Vec<FactInfo<'a>>,
    explanation: &'a [String],
    fixes: Vec<FixInfo<'a>>,
    no_fix: Option<&'a str>,
    count: u64,
    fingerprint: String,
    is_known: bool,
}

#[derive(Serialize)]
struct PlaceInfo<'a> {
    role: &'a str,
    text: &'a str,
}

#[derive(Serialize)]
struct ObjectInfo<'a> {
    kind: &'a str,
    name: Option<&'a str>,
}

#[derive(Serialize)]
struct FactInfo<'a> {
    key: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct FixInfo<'a> {
    text: &'a str,
    is_verified: bool,
}

impl<'a> Info<'a> {
    fn new(file: &Path, (spot, it): &'a Item<'_>, is_known: bool) -> Info<'a> {
        Info {
            code: &it.code.0,
            message_id: it.code.message_id(),
            severity: severity(it.severity),
            file: file.display().to_string(),
            line: spot.map(|it| it.line),
            column: spot.map(|it| it.column),
            message: &it.message,
            places: it.places.iter().map(|it| PlaceInfo { role: it.role, text: &it.text }).collect(),
            objects: it.objects.iter().map(|it| ObjectInfo { kind: it.kind, name: it.name.as_deref() }).collect(),
            facts: it.facts.iter().map(|it| FactInfo { key: it.key, value: &it.value }).collect(),
            explanation: &it.explanation,
            fixes: it.fixes.iter().map(|it| FixInfo { text: &it.text, is_verified: it.is_verified }).collect(),
            no_fix: it.no_fix.as_deref(),
            count: it.count,
            fingerprint: Identity::of(it).fingerprint(),
            is_known,
        }
    }
}

fn severity(it: Severity) -> &'static str {
    match it {
        Severity::Information => "information",
        Severity::Performance => "performance",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
