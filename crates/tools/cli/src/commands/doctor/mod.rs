//! `lavascope doctor`: lists the loader, drivers and layers, what is missing, and the commands that
//! fix it.
//!
//! This process reads the manifests. A child process loads the loader, see [`probe_command`].

pub(crate) mod capture_probe;
pub(crate) mod findings;
pub(crate) mod install_hint;
pub(crate) mod probe_command;
pub(crate) mod probe_process;

use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use lavascope_loader::manifests::{self, Manifest, ManifestKind};
use lavascope_loader::{DeviceInfo, LoaderInfo, Version};

use super::CommandOutcome;
use crate::commands::api::catalog;
use crate::commands::doctor::capture_probe::HostWriteDetection;
use crate::commands::doctor::findings::{DoctorFinding, DoctorObservations, DoctorSeverity};
use crate::commands::doctor::install_hint::System;
use crate::commands::doctor::probe_process::ProbeAnswer;
use crate::text::{self, Paint, columns};

const PROBE_LIMIT: Duration = Duration::from_secs(20);
/// The variables that select drivers, in the order of their priority for the loader.
const FORCING_VARIABLES: [&str; 2] = ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"];

/// Check the Vulkan loader, drivers and layers of this machine, and report what is missing
#[derive(clap::Args)]
pub(crate) struct DoctorArguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct DoctorReport {
    lavascope: &'static str,
    registry: String,
    loader: Option<LoaderSummary>,
    devices: Vec<DeviceInfo>,
    drivers: Vec<Manifest>,
    layers: Vec<Manifest>,
    host_writes: Vec<HostWriteDetection>,
    findings: Vec<DoctorFinding>,
    is_fine: bool,
}

#[derive(Serialize)]
struct LoaderSummary {
    library: String,
    version: Version,
    instance_extensions: Vec<String>,
    /// The layers that the loader can enable, by name or implicitly.
    layers: Vec<String>,
}

pub(crate) fn run(arguments: &DoctorArguments) -> anyhow::Result<CommandOutcome> {
    let report = examine()?;
    if arguments.json {
        text::emit_json(&report)?;
    } else {
        text::emit(&render(&report, Paint::for_stdout()))?;
    }
    Ok(if report.is_fine { CommandOutcome::Success } else { CommandOutcome::Findings })
}

fn examine() -> anyhow::Result<DoctorReport> {
    let drivers = manifests::drivers(&manifests::process_variables);
    let layers = manifests::layers(&manifests::process_variables);
    let answer = probe_loader(None)?;
    let alone = match &answer {
        // With only one driver, a second probe shows nothing new.
        ProbeAnswer::Died(_) if drivers.len() > 1 => probe_each_driver(&drivers)?,
        ProbeAnswer::Died(_) | ProbeAnswer::Loaded(_) | ProbeAnswer::Refused(_) => vec![],
    };
    let answers: Vec<&LoaderInfo> = std::iter::once(&answer)
        .chain(alone.iter().map(|it| &it.1))
        .filter_map(|it| if let ProbeAnswer::Loaded(info) = it { Some(info) } else { None })
        .collect();
    let devices: Vec<DeviceInfo> = answers.iter().flat_map(|it| it.devices.clone()).collect();
    let loader = answers.first().map(|it| summary(it));
    let seen = DoctorObservations {
        system: System::detect(),
        drivers: &drivers,
        layers: &layers,
        answer: &answer,
        per_driver: &alone,
        devices: &devices,
        forced_by: FORCING_VARIABLES.into_iter().find(|it| std::env::var_os(it).is_some_and(|it| !it.is_empty())),
        has_vulkaninfo: is_on_path("vulkaninfo"),
    };
    let mut findings = seen.findings();
    let host_writes = match devices.is_empty() {
        true => Ok(vec![]),
        false => probe_capture(),
    };
    let host_writes = host_writes.unwrap_or_else(|finding| {
        findings.push(finding);
        vec![]
    });
    let is_fine = findings.iter().all(|it| it.severity == DoctorSeverity::Advice);
    let (lavascope, registry) = (env!("CARGO_PKG_VERSION"), catalog::registry_version());
    Ok(DoctorReport { lavascope, registry, loader, devices, findings, is_fine, drivers, layers, host_writes })
}

/// What the layer chooses for each device, or what is wrong with the layer.
fn probe_capture() -> Result<Vec<HostWriteDetection>, DoctorFinding> {
    match capture_probe::probe() {
        Ok(Ok(choices)) => Ok(choices),
        Ok(Err(answer)) => Err(findings::layer_finding(&answer)),
        Err(error) => Err(findings::layer_error_finding(&error)),
    }
}

/// Asks the loader in a child process, with one driver or with those it finds.
fn probe_loader(only: Option<&Manifest>) -> anyhow::Result<ProbeAnswer> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.arg("doctor-probe");
    if let Some(driver) = only {
        // Older loaders support only the second name.
        command.envs(FORCING_VARIABLES.map(|it| (it, driver.path.as_os_str())));
    }
    probe_process::run(command, PROBE_LIMIT)
}

/// The result of each driver alone. It shows which driver crashes, and which devices the others
/// have.
fn probe_each_driver(drivers: &[Manifest]) -> anyhow::Result<Vec<(&Manifest, ProbeAnswer)>> {
    drivers.iter().filter(|it| it.problem.is_none()).map(|it| Ok((it, probe_loader(Some(it))?))).collect()
}

fn summary(info: &LoaderInfo) -> LoaderSummary {
    LoaderSummary {
        library: info.library.clone(),
        version: info.version,
        instance_extensions: info.extensions.iter().map(|it| it.name.clone()).collect(),
        layers: info.layers.iter().map(|it| it.name.clone()).collect(),
    }
}

fn is_on_path(program: &str) -> bool {
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    std::env::var_os("PATH").is_some_and(|it| std::env::split_paths(&it).any(|it| it.join(&file).is_file()))
}

fn render(report: &DoctorReport, paint: Paint) -> String {
    let mut out = format!("lavascope {} (Vulkan registry {})\n", report.lavascope, report.registry);
    let loader = match &report.loader {
        Some(loader_summary) => format!("  {}  {}\n", loader_summary.library, loader_summary.version),
        None => "  none answered, see findings\n".to_owned(),
    };
    let devices: Vec<_> = report.devices.iter().map(device_row).collect();
    let drivers: Vec<_> = report.drivers.iter().map(manifest_row).collect();
    let layers: Vec<_> = report.layers.iter().map(manifest_row).collect();
    let host_writes: Vec<_> = report.host_writes.iter().map(HostWriteDetection::row).collect();
    for (title, text) in [
        ("loader", loader),
        ("devices", columns(&devices)),
        ("driver manifests", columns(&drivers)),
        ("layer manifests", columns(&layers)),
        ("host writes in a capture", columns(&host_writes)),
    ] {
        let text = if text.is_empty() { "  none\n" } else { &text };
        let _ = write!(out, "\n{}\n{text}", paint.bold(title));
    }
    let _ = write!(out, "\n{}\n", paint.bold("findings"));
    for finding in &report.findings {
        render_finding(&mut out, finding, paint);
    }
    if report.is_fine {
        let _ = writeln!(out, "  {}: everything needed is there", paint.good("fine"));
    }
    out
}

fn render_finding(out: &mut String, finding: &DoctorFinding, paint: Paint) {
    let severity = match finding.severity {
        DoctorSeverity::Missing => paint.bad("missing"),
        DoctorSeverity::Broken => paint.bad("broken"),
        DoctorSeverity::Advice => paint.note("advice"),
    };
    let _ = writeln!(out, "  {severity}: {}", finding.message);
    for line in &finding.details {
        let _ = writeln!(out, "    | {line}");
    }
    if let Some(fix) = &finding.fix {
        let _ = writeln!(out, "    fix: {fix}");
    }
}

fn device_row(device: &DeviceInfo) -> Vec<String> {
    let driver = match (&device.driver_name, &device.driver_info) {
        (Some(name), Some(info)) => format!("{name} ({info})"),
        (Some(name), None) => name.clone(),
        (None, _) => format!("driver {}", device.driver_version),
    };
    vec![device.name.clone(), device.kind.clone(), format!("Vulkan {}", device.api_version), driver]
}

fn manifest_row(manifest: &Manifest) -> Vec<String> {
    let state = match (&manifest.problem, manifest.kind) {
        (Some(_), _) => "problem, see findings",
        (None, ManifestKind::Driver) => "",
        (None, ManifestKind::ExplicitLayer) => "explicit",
        (None, ManifestKind::ImplicitLayer) => "implicit",
    };
    vec![
        manifest.name.clone(),
        manifest.api_version.clone().unwrap_or_default(),
        manifest.path.display().to_string(),
        state.to_owned(),
    ]
}
