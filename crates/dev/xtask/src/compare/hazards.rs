//! What each tool says of a run, brought into one form.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

/// What was found, by what the user would look for: the code and the two commands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Hazard {
    /// Without the beginning that all have.
    pub(crate) code: String,
    pub(crate) command: String,
    /// Empty if the tool names none.
    pub(crate) prior: String,
}

/// Each with how often it was told.
pub(crate) type Hazards = BTreeMap<Hazard, u64>;

impl Hazard {
    fn new(code: &str, command: &str, prior: &str) -> Hazard {
        let code = code.strip_prefix("SYNC-HAZARD-").unwrap_or(code);
        Hazard { code: code.to_owned(), command: command.to_owned(), prior: prior.to_owned() }
    }

    /// As documents write it.
    pub(crate) fn text(&self) -> String {
        match (self.command.is_empty(), self.prior.is_empty()) {
            (true, _) => self.code.clone(),
            (false, true) => format!("{} {}", self.code, self.command),
            (false, false) => format!("{} {} after {}", self.code, self.command, self.prior),
        }
    }
}

/// Of the report that `lavascope run --json` writes.
pub(crate) fn hazards_of_report(report: &Value) -> Hazards {
    let mut found = Hazards::new();
    for array_item in report["findings"].as_array().into_iter().flatten() {
        let properties = array_item["properties"].as_array();
        let property = |key: &str| {
            let own = properties.into_iter().flatten().find(|it| it["key"] == key);
            own.and_then(|it| it["value"].as_str()).unwrap_or_default()
        };
        let hazard = Hazard::new(
            array_item["code"].as_str().unwrap_or_default(),
            property("command"),
            property("prior_command"),
        );
        *found.entry(hazard).or_default() += array_item["occurrences"].as_u64().unwrap_or(1);
    }
    found
}

/// Of the log of a Khronos layer, old or new.
pub(crate) fn hazards_of_log(log: &str) -> Hazards {
    let mut found = Hazards::new();
    for (id, text) in messages(log).into_iter().filter(|it| it.0.starts_with("SYNC-")) {
        *found.entry(hazard_of(id, text)).or_default() += 1;
    }
    found
}

/// The names of all messages of a log that are not about synchronization.
pub(crate) fn others_of_log(log: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        messages(log).iter().map(|it| it.0).filter(|it| !it.starts_with("SYNC-")).map(str::to_owned).collect();
    ids.sort();
    ids.dedup();
    ids
}

/// Name and text of each message.
fn messages(log: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for part in log.split("Validation ").skip(1) {
        let Some(rest) = part.strip_prefix("Error: [ ").or_else(|| part.strip_prefix("Warning: [ ")) else { continue };
        if let Some((id, text)) = rest.split_once(" ]") {
            found.push((id, text));
        }
    }
    found
}

fn hazard_of(id: &str, text: &str) -> Hazard {
    // Newer ones have lines of properties.
    let property = |key: &str| {
        let lines = text.lines();
        lines.filter_map(|it| it.split_once(" = ")).find(|it| it.0 == key).map(|it| it.1)
    };
    if let Some(command) = property("command") {
        return Hazard::new(id, command, property("prior_command").unwrap_or_default());
    }
    // Older ones name the function that reported it, then the commands, the recorded one first if it is another.
    let named: Vec<&str> = text.split("command: ").skip(1).map(word).collect();
    let first_command = text.split("| ").find(|it| it.starts_with("vk")).map_or("", word);
    let acquire = text.contains("vkAcquireNextImageKHR").then_some("vkAcquireNextImageKHR");
    match (named.as_slice(), acquire) {
        ([command], Some(acquire)) => Hazard::new(id, command, acquire),
        ([prior], None) => Hazard::new(id, first_command, prior),
        ([command, .., prior], _) => Hazard::new(id, command, prior),
        ([], _) => Hazard::new(id, first_command, ""),
    }
}

fn word(text: &str) -> &str {
    text.split(|it: char| !it.is_alphanumeric()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(hazards: &Hazards) -> Vec<String> {
        hazards.iter().map(|(it, count)| format!("{count} {}", it.text())).collect()
    }

    #[test]
    fn logs_of_the_old_layer_are_read() {
        let log = "SYNC-HAZARD-READ-AFTER-WRITE(ERROR / SPEC): msgNum: -1 - Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] \
                   Object 0: handle = 0x5, type = VK_OBJECT_TYPE_BUFFER; | MessageID = 0xe4d96472 | vkCmdCopyBuffer: Hazard \
                   READ_AFTER_WRITE. Access info (usage: A, write_barriers: 0, command: vkCmdFillBuffer, seq_no: 1).\n    \
                   Objects: 1\n\
                   SYNC - Validation Error: [ SYNC-HAZARD-WRITE-AFTER-WRITE ] Object 0: x; | MessageID = 0x5 | vkQueueSubmit: \
                   Hazard WRITE_AFTER_WRITE for entry 0, Recorded access info (recorded_usage: B, command: vkCmdCopyImage, \
                   seq_no: 1). Access info (prior_usage: C, command: vkCmdDraw, seq_no: 1).\n\
                   SYNC - Validation Error: [ SYNC-HAZARD-WRITE-AFTER-READ ] | MessageID = 0x3 | vkQueueSubmit: Hazard \
                   (recorded_usage: D, command: vkCmdPipelineBarrier, seq_no: 1). Access info (vkAcquireNextImageKHR tag:1).\n\
                   VUID - Validation Error: [ VUID-some-rule ] | MessageID = 0x3 | vkCmdDraw: no\n";
        let want = [
            "1 READ-AFTER-WRITE vkCmdCopyBuffer after vkCmdFillBuffer",
            "1 WRITE-AFTER-READ vkCmdPipelineBarrier after vkAcquireNextImageKHR",
            "1 WRITE-AFTER-WRITE vkCmdCopyImage after vkCmdDraw",
        ];
        assert_eq!(texts(&hazards_of_log(log)), want);
        assert_eq!(others_of_log(log), ["VUID-some-rule"]);
    }

    #[test]
    fn logs_of_the_new_layer_are_read() {
        let one = "Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] | MessageID = 0xe4d96472\nvkCmdCopyBuffer(): text\n\
                   [Extra properties]\nmessage_type = BufferCopyError\ncommand = vkCmdCopyBuffer\nprior_command = vkCmdFillBuffer\n\
                   Objects: 2\n\n";
        assert_eq!(
            texts(&hazards_of_log(&one.repeat(2))),
            ["2 READ-AFTER-WRITE vkCmdCopyBuffer after vkCmdFillBuffer"]
        );
        assert!(hazards_of_log("Validation Layer Info - Logging validation error to x\n").is_empty());
    }

    #[test]
    fn reports_of_ours_are_read() {
        let properties = serde_json::json!([{ "key": "command", "value": "vkCmdDraw" }]);
        let finding = serde_json::json!({
            "code": "SYNC-HAZARD-WRITE-AFTER-READ", "occurrences": 3, "properties": properties,
        });
        let report = serde_json::json!({ "findings": [finding] });
        assert_eq!(texts(&hazards_of_report(&report)), ["3 WRITE-AFTER-READ vkCmdDraw"]);
    }
}
