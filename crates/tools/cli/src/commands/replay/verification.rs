//! What `lavascope replay --verify` compares beside the number of bytes: the frames that the program presented. And the
//! description of the first difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use lavascope_abi::ObjectId;
use lavascope_record::{ObjectNames, check};
use lavascope_replay::WriteDifference;
use lavascope_trace::{MergedReader, Tail, Trace};
use serde::Serialize;

/// The hashes of the frames that the program presented, by frame and window.
pub(crate) struct PresentedHashes(BTreeMap<(u64, u64), String>);

impl PresentedHashes {
    pub(crate) fn of(trace: &Trace<'_>) -> PresentedHashes {
        let mut all = BTreeMap::new();
        for facts in trace.metadata() {
            let presented = &facts["presented"];
            if let (Some(frame), Some(window), Some(hash)) =
                (presented["frame"].as_u64(), presented["window"].as_u64(), presented["hash"].as_str())
            {
                all.insert((frame, window), hash.to_owned());
            }
        }
        PresentedHashes(all)
    }

    /// Compares the frames of a replay, which has a hash for each window, in their order.
    pub(crate) fn compare(&self, replayed: &BTreeMap<u64, Vec<String>>) -> PresentedComparison {
        let mut comparison = PresentedComparison::default();
        for ((frame, window), hash) in &self.0 {
            // A part of a trace has fewer frames.
            let Some(own) = replayed.get(frame) else { continue };
            match own.get(*window as usize) == Some(hash) {
                true => comparison.equal += 1,
                false => drop(comparison.different.insert(*frame)),
            }
        }
        comparison
    }
}

/// How the frames of a replay compare with those that the program presented.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PresentedComparison {
    pub(crate) equal: u64,
    pub(crate) different: BTreeSet<u64>,
}

impl PresentedComparison {
    pub(crate) fn is_empty(&self) -> bool {
        self.equal == 0 && self.different.is_empty()
    }
}

impl fmt::Display for PresentedComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let frames = if self.equal == 1 { "frame was" } else { "frames were" };
        write!(f, "{} {frames} presented as in the trace; {} differ", self.equal, self.different.len())?;
        self.different.first().map_or(Ok(()), |it| write!(f, ", the first is frame {it}"))
    }
}

/// The first difference, for people and for JSON.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DifferenceDocument {
    memory: String,
    memory_offset: u64,
    /// The buffer or image, its debug name, and the bytes of it that differ.
    resource: Option<String>,
    name: Option<String>,
    offset: u64,
    recorded: u32,
    replayed: u32,
}

/// Describes a difference. The debug name is searched for in the trace.
pub(crate) fn describe_difference(
    trace: &Trace<'_>,
    tail: Option<&Tail>,
    difference: &WriteDifference,
) -> DifferenceDocument {
    let WriteDifference { memory, offset, resource, recorded, replayed } = *difference;
    DifferenceDocument {
        memory: memory.to_string(),
        memory_offset: offset,
        resource: resource.map(|it| it.0.to_string()),
        name: debug_name(trace, tail, resource.map_or(memory, |it| it.0)),
        offset: resource.map_or(offset & !3, |it| it.1),
        recorded,
        replayed,
    }
}

fn debug_name(trace: &Trace<'_>, tail: Option<&Tail>, object: ObjectId) -> Option<String> {
    let (mut names, mut merged) = (ObjectNames::default(), MergedReader::new(trace, tail));
    loop {
        match merged.take_next() {
            Ok(Some(item)) => check(item.record).into_iter().for_each(|it| names.apply(it)),
            // Damage was reported by the replay.
            Ok(None) | Err(_) => return names.name(object).map(str::to_owned),
        }
    }
}

impl fmt::Display for DifferenceDocument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DifferenceDocument { memory, memory_offset, resource, name, offset, recorded, replayed } = self;
        f.write_str(resource.as_ref().unwrap_or(memory))?;
        if let Some(name) = name {
            write!(f, " {name:?}")?;
        }
        write!(f, " at byte {offset}: {}, in the trace {}", element_text(*replayed), element_text(*recorded))?;
        match resource {
            Some(_) => write!(f, " (byte {memory_offset} of {memory})"),
            None => Ok(()),
        }
    }
}

/// Four bytes as an integer, and as a floating-point number if they look like one.
fn element_text(bits: u32) -> String {
    let number = f32::from_bits(bits);
    match number.is_finite() && (1e-6..1e9).contains(&number.abs()) {
        true => format!("{bits:#x} ({number:?})"),
        false => format!("{bits:#x} ({bits})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_resource_and_its_element() {
        let difference = DifferenceDocument {
            memory: "VkDeviceMemory#1".to_owned(),
            memory_offset: 305,
            resource: Some("VkBuffer#3".to_owned()),
            name: Some("results".to_owned()),
            offset: 48,
            recorded: 42,
            replayed: 1_f32.to_bits(),
        };
        let text = "VkBuffer#3 \"results\" at byte 48: 0x3f800000 (1.0), in the trace 0x2a (42) (byte 305 of VkDeviceMemory#1)";
        assert_eq!(difference.to_string(), text);
        let of_memory = DifferenceDocument { resource: None, name: None, ..difference };
        assert_eq!(of_memory.to_string(), "VkDeviceMemory#1 at byte 48: 0x3f800000 (1.0), in the trace 0x2a (42)");
    }

    #[test]
    fn frames_are_compared_with_those_that_were_presented() {
        let text = |it: &str| it.to_owned();
        let presented =
            PresentedHashes(BTreeMap::from([((0, 0), text("a")), ((1, 0), text("b")), ((7, 0), text("c"))]));
        let replayed = BTreeMap::from([(0, vec![text("a")]), (1, vec![text("x")])]);
        let comparison = presented.compare(&replayed);
        assert_eq!(comparison, PresentedComparison { equal: 1, different: BTreeSet::from([1]) });
        assert_eq!(comparison.to_string(), "1 frame was presented as in the trace; 1 differ, the first is frame 1");
        assert!(PresentedHashes(BTreeMap::new()).compare(&replayed).is_empty());
    }
}
