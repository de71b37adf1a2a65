//! What a message says, in a form that both layers share: code, both commands, resource.

use std::fmt;

use crate::worker::{LayerMessage, NAME_SEPARATOR};

/// The name of buffers that no program has.
const SCRATCH: &str = lavascope_scenario_live::SCRATCH_NAME;

const HAZARD_PREFIX: &str = "SYNC-HAZARD-";

/// A command as a message names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedCommand {
    /// Such as `vkCmdDraw`.
    pub(crate) function: String,
    /// Of the program: the command buffer and the place in there, `1.0`. Empty for what is not recorded.
    pub(crate) label: String,
}

/// How the codes of undefined contents begin.
const CONTENTS_PREFIX: &str = "SYNC-CONTENTS-";

/// A hazard, or a race of commands on an event, as one layer reported it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReportedHazard {
    pub(crate) code: String,
    pub(crate) at: NamedCommand,
    /// Empty where the message names none.
    pub(crate) resource: String,
    /// None where the message names none.
    pub(crate) prior: Option<NamedCommand>,
    pub(crate) message_type: String,
    pub(crate) access: String,
    pub(crate) prior_access: String,
}

/// Whether a message is about commands that race for an event.
pub(crate) fn is_event_race(message: &LayerMessage) -> bool {
    !message.name.starts_with(HAZARD_PREFIX) && !message.name.starts_with(CONTENTS_PREFIX)
}

impl ReportedHazard {
    /// None if it is about a buffer that the program does not have, or about contents.
    pub(crate) fn read(message: &LayerMessage) -> Option<ReportedHazard> {
        let property = |key: &str| {
            let (_, properties) = message.text.split_once("[Extra properties]")?;
            properties.lines().filter_map(|it| it.split_once(" = ")).find(|it| it.0 == key).map(|it| it.1.to_owned())
        };
        let resource = resource_name(message.text.lines().next().unwrap_or_default());
        // The peer does not look at contents, which are no conflict of two accesses.
        if resource == SCRATCH || message.name.starts_with(CONTENTS_PREFIX) {
            return None;
        }
        let function = message.text.split("()").next().unwrap_or_default().to_owned();
        // The outer label is that of the command that executes a secondary command buffer.
        let last_label = |path: String| path.rsplit("::").next().unwrap_or_default().to_owned();
        let label = property("debug_region").map_or_else(|| message.label.clone(), last_label);
        // Of commands that race for an event only one layer names the command buffer.
        let label = if message.name.starts_with(HAZARD_PREFIX) { label } else { String::new() };
        let at = NamedCommand { function: property("command").unwrap_or(function), label };
        let prior = property("prior_command").map(|function| NamedCommand {
            function,
            label: property("prior_debug_region").map_or_else(String::new, last_label),
        });
        Some(ReportedHazard {
            code: message.name.clone(),
            at,
            resource,
            prior,
            message_type: property("message_type").unwrap_or_default(),
            access: property("access").unwrap_or_default(),
            prior_access: property("prior_access").unwrap_or_default(),
        })
    }
}

impl NamedCommand {
    /// The command buffer, and the number of the command in there; none for what is not recorded.
    pub(crate) fn place(&self) -> Option<(usize, usize)> {
        let (buffer, index) = self.label.split_once('.')?;
        Some((buffer.parse().ok()?, index.parse().ok()?))
    }
}

impl ReportedHazard {
    /// Whether both layers mean the same hazard.
    pub(crate) fn is_same(&self, other: &ReportedHazard) -> bool {
        let is_same_prior = self.prior.is_none() || other.prior.is_none() || self.prior == other.prior;
        self.code == other.code && self.at == other.at && self.resource == other.resource && is_same_prior
    }

    /// Whether both are races for one resource.
    pub(crate) fn is_race_for_same(&self, other: &ReportedHazard) -> bool {
        self.is_race() && other.is_race() && self.resource == other.resource
    }

    /// Whether nothing orders the two at all.
    pub(crate) fn is_race(&self) -> bool {
        self.code.contains("-RACING-")
    }

    /// Whether it is about more than the recording of one command buffer.
    pub(crate) fn is_found_later(&self) -> bool {
        ["SubmitTimeError", "PresentError"].contains(&self.message_type.as_str())
    }
}

impl fmt::Display for NamedCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.label.is_empty() {
            true => write!(f, "{}", self.function),
            false => write!(f, "{}[{}]", self.function, self.label),
        }
    }
}

impl fmt::Display for ReportedHazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.code, self.at, self.resource)?;
        if let Some(prior) = &self.prior {
            write!(f, " after {prior}")?;
        }
        write!(f, " ({}: {} after {})", self.message_type, self.access, self.prior_access)
    }
}

/// The name of the first buffer or image: `VkBuffer#3 "1:b"` of ours, `VkBuffer 0x5[1:b]` of the peer.
fn resource_name(text: &str) -> String {
    let begins = ["VkBuffer#", "VkImage#", "VkBuffer 0x", "VkImage 0x", "VkImageView 0x", "VkBufferView 0x"];
    let Some(at) = begins.iter().filter_map(|it| text.find(it)).min() else { return String::new() };
    let rest = &text[at..];
    let name = match rest.find(['"', '[', ',', ')']).map(|it| rest.split_at(it + 1)) {
        Some((begin, rest)) if begin.ends_with(['"', '[']) => rest.split(['"', ']']).next().unwrap_or_default(),
        _ => return String::new(),
    };
    name.split_once(NAME_SEPARATOR).map_or(name, |it| it.1).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> LayerMessage {
        LayerMessage { name: "SYNC-HAZARD-READ-AFTER-WRITE".into(), text: text.into(), label: "1.3".into() }
    }

    const PROPERTIES: &str = "\n[Extra properties]\nmessage_type = SubmitTimeError\naccess = A(B)\ncommand = vkCmdFillBuffer\n\
                              prior_command = vkCmdCopyBuffer\nprior_debug_region = 1.3::0.0";

    #[test]
    fn messages_of_both_are_read_alike() {
        let ours = message(&format!("vkCmdFillBuffer(): x VkBuffer#1 \"0:b\"[0..64], which{PROPERTIES}"));
        let peer = message(&format!("vkCmdFillBuffer(): x dstBuffer VkBuffer 0x3[0:b], which{PROPERTIES}"));
        let read = ReportedHazard::read(&ours).expect("a hazard");
        assert_eq!(Some(read.clone()), ReportedHazard::read(&peer));
        assert_eq!(read.at.to_string(), "vkCmdFillBuffer[1.3]");
        assert_eq!(read.prior.expect("a command").to_string(), "vkCmdCopyBuffer[0.0]");
        assert_eq!(read.resource, "b");
    }

    #[test]
    fn what_no_program_has_is_left_out() {
        assert_eq!(ReportedHazard::read(&message("f(): VkBuffer#1 \"0:scratch\"[0..64]")), None);
    }
}
