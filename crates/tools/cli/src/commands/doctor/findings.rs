//! Turns the observations of the doctor into findings: missing parts, broken parts, and how to fix
//! them.

use serde::Serialize;

use lavascope_loader::manifests::{Manifest, ManifestKind, ManifestProblem};
use lavascope_loader::{DeviceInfo, LoaderError, LoaderInfo};

use crate::commands::doctor::install_hint::{System, VulkanPackage};
use crate::commands::doctor::probe_process::{ProbeAnswer, ProbeDeath};

const VALIDATION_LAYER: &str = "VK_LAYER_KHRONOS_validation";

/// One finding of the doctor.
#[derive(Debug, Serialize)]
pub(crate) struct DoctorFinding {
    /// A stable identifier for programs.
    pub(crate) code: &'static str,
    pub(crate) severity: DoctorSeverity,
    pub(crate) message: String,
    /// The advice, often a command.
    pub(crate) fix: Option<String>,
    /// The last output lines of the broken part.
    pub(crate) details: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DoctorSeverity {
    /// A required part is missing.
    Missing,
    /// A part exists, but does not work.
    Broken,
    /// Everything works, but could work better. The exit code ignores such findings.
    Advice,
}

/// The observations of the doctor.
pub(crate) struct DoctorObservations<'a> {
    pub(crate) system: System,
    pub(crate) drivers: &'a [Manifest],
    pub(crate) layers: &'a [Manifest],
    /// The result of the probe with all drivers.
    pub(crate) answer: &'a ProbeAnswer,
    /// If that probe died and there are several drivers: the result of each driver alone.
    pub(crate) per_driver: &'a [(&'a Manifest, ProbeAnswer)],
    pub(crate) devices: &'a [DeviceInfo],
    /// The environment variable that selects the drivers, if one is set.
    pub(crate) forced_by: Option<&'static str>,
    pub(crate) has_vulkaninfo: bool,
}

impl DoctorObservations<'_> {
    pub(crate) fn findings(&self) -> Vec<DoctorFinding> {
        let mut findings = match self.answer {
            ProbeAnswer::Loaded(info) => self.loader_findings(info),
            ProbeAnswer::Refused(error) => vec![self.loader_error_finding(error)],
            ProbeAnswer::Died(death) => self.crash_findings(death),
        };
        findings.extend(self.drivers.iter().chain(self.layers).filter_map(|it| self.manifest(it)));
        findings.extend(self.advice());
        findings
    }

    fn loader_findings(&self, info: &LoaderInfo) -> Vec<DoctorFinding> {
        match &info.devices_error {
            _ if self.devices.is_empty() => vec![self.no_device(info)],
            None => vec![],
            Some(error) => vec![DoctorFinding {
                code: "device-query",
                severity: DoctorSeverity::Broken,
                message: error.to_string(),
                fix: Some(self.fix_drivers()),
                details: vec![],
            }],
        }
    }

    fn no_device(&self, info: &LoaderInfo) -> DoctorFinding {
        let has_driver = self.drivers.iter().any(|it| it.problem.is_none());
        let message = match (&info.devices_error, has_driver) {
            (_, false) if self.drivers.is_empty() => "no Vulkan driver is installed".to_owned(),
            (_, false) => "no Vulkan driver can be used".to_owned(),
            (Some(error), true) => format!("no driver offers a device: {error}"),
            (None, true) => "no driver offers a device".to_owned(),
        };
        let code = if has_driver { "no-device" } else { "no-driver" };
        DoctorFinding {
            code,
            severity: DoctorSeverity::Missing,
            message,
            fix: Some(self.fix_drivers()),
            details: vec![],
        }
    }

    fn fix_drivers(&self) -> String {
        match self.forced_by {
            Some(variable) => format!("unset {variable}, or let it name a driver that works"),
            None => self.system.install(VulkanPackage::Drivers),
        }
    }

    fn loader_error_finding(&self, error: &LoaderError) -> DoctorFinding {
        let (code, severity) = match error {
            LoaderError::NotFound { .. } => ("no-loader", DoctorSeverity::Missing),
            LoaderError::MissingCommand { .. } | LoaderError::NoDriver | LoaderError::Failed { .. } => {
                ("loader-broken", DoctorSeverity::Broken)
            }
        };
        let fix = Some(self.system.install(VulkanPackage::Loader));
        DoctorFinding { code, severity, message: error.to_string(), fix, details: vec![] }
    }

    /// One finding for each driver that crashes alone. If none does, one finding for the crash with
    /// all drivers.
    fn crash_findings(&self, death: &ProbeDeath) -> Vec<DoctorFinding> {
        let guilty = self.per_driver.iter().filter_map(|(manifest, answer)| match answer {
            ProbeAnswer::Died(death) => Some(crash(&format!("the driver {}", manifest.path.display()), death)),
            ProbeAnswer::Loaded(_) | ProbeAnswer::Refused(_) => None,
        });
        let findings: Vec<_> = guilty.collect();
        match (findings.is_empty(), self.drivers) {
            (false, _) => findings,
            (true, [only]) => vec![crash(&format!("the driver {}", only.path.display()), death)],
            (true, _) => vec![crash("the driver", death)],
        }
    }

    fn manifest(&self, manifest: &Manifest) -> Option<DoctorFinding> {
        let problem = manifest.problem.as_ref()?;
        // Many systems have manifests of 32-bit libraries beside those of 64-bit libraries.
        let is_harmless = matches!(problem, ManifestProblem::WrongArchitecture { .. })
            && (manifest.kind != ManifestKind::Driver || !self.devices.is_empty());
        let path = manifest.path.display();
        let fix = match problem {
            ManifestProblem::Unreadable { .. } => format!("make {path} readable, or remove it from where it is named"),
            ManifestProblem::BadJson { .. } | ManifestProblem::MissingField { .. } => {
                format!("fix {path}, or remove it")
            }
            ManifestProblem::MissingLibrary { .. } | ManifestProblem::BadLibrary { .. } => {
                format!("install the package that {path} belongs to again, or remove the file")
            }
            ManifestProblem::WrongArchitecture { wanted, .. } => format!("install the {wanted} version of it"),
        };
        Some(DoctorFinding {
            code: if manifest.kind == ManifestKind::Driver { "driver-manifest" } else { "layer-manifest" },
            severity: if is_harmless { DoctorSeverity::Advice } else { DoctorSeverity::Broken },
            message: problem.to_string(),
            fix: (!is_harmless).then_some(fix),
            details: vec![],
        })
    }

    fn advice(&self) -> Vec<DoctorFinding> {
        let advice = |code, message: &str, part| DoctorFinding {
            code,
            severity: DoctorSeverity::Advice,
            message: message.to_owned(),
            fix: Some(self.system.install(part)),
            details: vec![],
        };
        let mut findings = Vec::new();
        if !self.layers.iter().any(|it| it.name == VALIDATION_LAYER) {
            let message = "the Khronos validation layer is not installed; it finds other mistakes than we do";
            findings.push(advice("no-validation-layer", message, VulkanPackage::ValidationLayers));
        }
        if !self.has_vulkaninfo {
            findings.push(advice("no-vulkaninfo", "vulkaninfo is not installed", VulkanPackage::Tools));
        }
        findings
    }
}

/// The layer stands in the way where the loader and the drivers by themselves did not.
pub(crate) fn layer_finding(answer: &ProbeAnswer) -> DoctorFinding {
    let (message, details) = match answer {
        ProbeAnswer::Died(death) => {
            (format!("under the layer, the driver {} while {}", death.cause, death.doing), death.stderr_lines.clone())
        }
        ProbeAnswer::Refused(error) => (format!("under the layer, {error}"), vec![]),
        ProbeAnswer::Loaded(_) => ("under the layer, no device was made".to_owned(), vec![]),
    };
    DoctorFinding { code: "layer-broken", severity: DoctorSeverity::Broken, message, fix: None, details }
}

/// The layer is not where this program looks for it, or the probe left no trace.
pub(crate) fn layer_error_finding(error: &anyhow::Error) -> DoctorFinding {
    let (code, severity) = ("layer-broken", DoctorSeverity::Broken);
    DoctorFinding { code, severity, message: format!("{error:#}"), fix: None, details: vec![] }
}

fn crash(who: &str, death: &ProbeDeath) -> DoctorFinding {
    DoctorFinding {
        code: "driver-crash",
        severity: DoctorSeverity::Broken,
        message: format!("{who} {} while {}", death.cause, death.doing),
        fix: Some("update or remove this driver, or name another one in VK_DRIVER_FILES".to_owned()),
        details: death.stderr_lines.clone(),
    }
}
