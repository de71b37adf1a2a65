//! How a capture would find host writes on this machine. The layer chooses that when a device is made, and writes it
//! into the trace: a probe makes a device of each physical device under the layer.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::Context;
use serde::Serialize;
use serde_json::Value;

use crate::commands::doctor::PROBE_LIMIT;
use crate::commands::doctor::probe_process::{self, ProbeAnswer};
use crate::launch::layer_manifest::{self, LayerName};
use crate::report::ReportFolder;
use crate::trace::trace_file::TraceFile;

/// How host writes are found in memory of some types of a device.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HostWriteDetection {
    device: String,
    memory_types: Vec<u64>,
    /// As `docs/replay.md` names it.
    method: String,
    reason: String,
}

/// What the layer would choose for each device, or how the probe ended.
pub(crate) fn probe() -> anyhow::Result<Result<Vec<HostWriteDetection>, ProbeAnswer>> {
    let folder = ReportFolder::new()?;
    let trace = folder.path().join("doctor.lava");
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command.args(["doctor-probe", "--try-devices"]).envs(layer_manifest::variables(LayerName::Own)?);
    command.env("LAVASCOPE_CAPTURE", &trace).env("LAVASCOPE_SYNC", "0").env("LAVASCOPE_REPORT", folder.path());
    match probe_process::run(command, PROBE_LIMIT)? {
        ProbeAnswer::Loaded(_) => {}
        other => return Ok(Err(other)),
    }
    let file = TraceFile::read(&trace)?;
    Ok(Ok(choices(&file.open()?.metadata())))
}

/// Each device is described before what was chosen for it.
fn choices(metadata: &[Value]) -> Vec<HostWriteDetection> {
    let devices = metadata.iter().filter_map(|it| it.get("device"));
    let chosen = metadata.iter().filter_map(|it| it["memory_detection"].as_array());
    devices.zip(chosen).flat_map(|(device, types)| choices_of(text(&device["name"]), types)).collect()
}

/// Types with the same choice are one row.
fn choices_of(device: &str, types: &[Value]) -> Vec<HostWriteDetection> {
    let mut rows: BTreeMap<u64, HostWriteDetection> = BTreeMap::new();
    for chosen in types {
        let (method, reason) = (text(&chosen["method"]), text(&chosen["reason"]));
        let memory_type = chosen["type"].as_u64().unwrap_or(0);
        match rows.values_mut().find(|it| (&*it.method, &*it.reason) == (method, reason)) {
            Some(row) => row.memory_types.push(memory_type),
            None => {
                let (device, memory_types) = (device.to_owned(), vec![memory_type]);
                let row = HostWriteDetection { device, memory_types, method: method.into(), reason: reason.into() };
                rows.insert(memory_type, row);
            }
        }
    }
    rows.into_values().collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
}

impl HostWriteDetection {
    /// The cells of a table.
    pub(crate) fn row(&self) -> Vec<String> {
        let numbers: Vec<String> = self.memory_types.iter().map(u64::to_string).collect();
        let types = match &numbers[..] {
            [one] => format!("memory type {one}"),
            all => format!("memory types {}", all.join(", ")),
        };
        vec![self.device.clone(), types, self.method.clone(), self.reason.clone()]
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_with_the_same_choice_are_one_row() {
        let copied = |ty: u64| json!({ "type": ty, "method": "copy", "reason": "not cached" });
        let imported = json!({ "type": 1, "method": "userfaultfd", "reason": "imported" });
        let metadata = [
            json!({ "device": { "name": "A" } }),
            json!({ "memory_detection": [copied(0), imported, copied(2)] }),
            json!({ "other": 1 }),
            json!({ "device": { "name": "B" } }),
            json!({ "memory_detection": [copied(4)] }),
        ];
        let rows: Vec<String> = choices(&metadata).iter().map(|it| it.row().join("|")).collect();
        let expected = [
            "A|memory types 0, 2|copy|not cached",
            "A|memory type 1|userfaultfd|imported",
            "B|memory type 4|copy|not cached",
        ];
        assert_eq!(rows, expected);
    }
}
