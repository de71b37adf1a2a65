//! What the doctor concludes from what was seen: what is missing, what is broken, and what mends it.

use serde::Serialize;

use lavascope_loader::manifests::{ManifestKind, Manifest, ManifestProblem};
use lavascope_loader::{DeviceInfo, LoaderError, LoaderInfo};

use crate::probe::{Answer, Death};
use crate::remedy::{Part, System};

const VALIDATION_LAYER: &str = "VK_LAYER_KHRONOS_validation";

/// One conclusion.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// A stable word for programs.
    pub(crate) code: &'static str,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    /// What to do, often a command to type.
    pub(crate) fix: Option<String>,
    /// The last words of what broke.
    pub(crate) details: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Severity {
    /// Something needed is not there.
    Missing,
    /// Something is there and does not work.
    Broken,
    /// All works, and could work better. Does not count as found.
    Advice,
}

/// What was seen.
pub(crate) struct Seen<'a> {
    pub(crate) system: System,
    pub(crate) drivers: &'a [Manifest],
    pub(crate) layers: &'a [Manifest],
    /// From the probe with all drivers.
    pub(crate) answer: &'a Answer,
    /// Where that one died of one driver among several: what each did alone.
    pub(crate) alone: &'a [(&'a Manifest, Answer)],
    pub(crate) devices: &'a [DeviceInfo],
    /// The variable that says which drivers to use, where one is set.
    pub(crate) forced_by: Option<&'static str>,
    pub(crate) has_vulkaninfo: bool,
}

impl Seen<'_> {
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let mut findings = match self.answer {
            Answer::Told(info) => self.told(info),
            Answer::Refused(error) => vec![self.refused(error)],
            Answer::Died(death) => self.died(death),
        };
        findings.extend(self.drivers.iter().chain(self.layers).filter_map(|it| self.manifest(it)));
        findings.extend(self.advice());
        findings
    }

    fn told(&self, info: &LoaderInfo) -> Vec<Finding> {
        match &info.devices_error {
            _ if self.devices.is_empty() => vec![self.no_device(info)],
            None => vec![],
            Some(error) => vec![Finding {
                code: "device-query",
                severity: Severity::Broken,
                message: error.to_string(),
                fix: Some(self.fix_drivers()),
                details: vec![],
            }],
        }
    }

    fn no_device(&self, info: &LoaderInfo) -> Finding {
        let has_driver = self.drivers.iter().any(|it| it.problem.is_none());
        let message = match (&info.devices_error, has_driver) {
            (_, false) if self.drivers.is_empty() => "no Vulkan driver is installed".to_owned(),
            (_, false) => "no Vulkan driver can be used".to_owned(),
            (Some(error), true) => format!("no driver offers a device: {error}"),
            (None, true) => "no driver offers a device".to_owned(),
        };
        let code = if has_driver { "no-device" } else { "no-driver" };
        Finding { code, severity: Severity::Missing, message, fix: Some(self.fix_drivers()), details: vec![] }
    }

    fn fix_drivers(&self) -> String {
        match self.forced_by {
            Some(variable) => format!("unset {variable}, or let it name a driver that works"),
            None => self.system.install(Part::Drivers),
        }
    }

    fn refused(&self, error: &LoaderError) -> Finding {
        let (code, severity) = match error {
            LoaderError::NotFound { .. } => ("no-loader", Severity::Missing),
            LoaderError::MissingCommand { .. } | LoaderError::NoDriver | LoaderError::Failed { .. } => {
                ("loader-broken", Severity::Broken)
            }
        };
        let fix = Some(self.system.install(Part::Loader));
        Finding { code, severity, message: error.to_string(), fix, details: vec![] }
    }

    /// One finding per driver that dies alone, or one for the death that none of them repeats.
    fn died(&self, death: &Death) -> Vec<Finding> {
        let guilty = self.alone.iter().filter_map(|(manifest, answer)| match answer {
            Answer::Died(death) => Some(crash(&format!("the driver {}", manifest.path.display()), death)),
            Answer::Told(_) | Answer::Refused(_) => None,
        });
        let findings: Vec<_> = guilty.collect();
        match (findings.is_empty(), self.drivers) {
            (false, _) => findings,
            (true, [only]) => vec![crash(&format!("the driver {}", only.path.display()), death)],
            (true, _) => vec![crash("the driver", death)],
        }
    }

    fn manifest(&self, manifest: &Manifest) -> Option<Finding> {
        let problem = manifest.problem.as_ref()?;
        // Libraries for 32-bit programs lie beside ours on many systems, with manifests of their own.
        let is_harmless = matches!(problem, ManifestProblem::WrongArchitecture { .. })
            && (manifest.kind != ManifestKind::Driver || !self.devices.is_empty());
        let path = manifest.path.display();
        let fix = match problem {
            ManifestProblem::Unreadable { .. } => format!("make {path} readable, or remove it from where it is named"),
            ManifestProblem::BadJson { .. } | ManifestProblem::MissingField { .. } => format!("mend {path}, or remove it"),
            ManifestProblem::MissingLibrary { .. } | ManifestProblem::BadLibrary { .. } => {
                format!("install the package that {path} belongs to again, or remove the file")
            }
            ManifestProblem::WrongArchitecture { wanted, .. } => format!("install the {wanted} version of it"),
        };
        Some(Finding {
            code: if manifest.kind == ManifestKind::Driver { "driver-manifest" } else { "layer-manifest" },
            severity: if is_harmless { Severity::Advice } else { Severity::Broken },
            message: problem.to_string(),
            fix: (!is_harmless).then_some(fix),
            details: vec![],
        })
    }

    fn advice(&self) -> Vec<Finding> {
        let advice = |code, message: &str, part| Finding {
            code,
            severity: Severity::Advice,
            message: message.to_owned(),
            fix: Some(self.system.install(part)),
            details: vec![],
        };
        let mut findings = Vec::new();
        if !self.layers.iter().any(|it| it.name == VALIDATION_LAYER) {
            let message = "the Khronos validation layer is not installed; it finds other mistakes than we do";
            findings.push(advice("no-validation-layer", message, Part::ValidationLayers));
        }
        if !self.has_vulkaninfo {
            findings.push(advice("no-vulkaninfo", "vulkaninfo is not installed", Part::Tools));
        }
        findings
    }
}

fn crash(who: &str, death: &Death) -> Finding {
    Finding {
        code: "driver-crash",
        severity: Severity::Broken,
        message: format!("{who} {} while {}", death.cause, death.doing),
        fix: Some("update or remove this driver, or name another one in VK_DRIVER_FILES".to_owned()),
        details: death.said.clone(),
    }
}
