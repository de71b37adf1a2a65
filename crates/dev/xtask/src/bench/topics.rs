//! The topics of the performance page, and what measures each of them.

use super::peers::BenchPeer;

/// One table of the page.
pub(super) struct BenchTopic {
    /// The name for `cargo xtask bench NAME`, and the key in the results.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// What all rows have in common.
    pub(super) text: &'static str,
    /// Empty for a topic whose rows other commands measure; those rows are edited by hand.
    pub(super) sources: &'static [BenchSource],
}

/// A part of a topic that is measured together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BenchSource {
    /// A bench binary.
    Binary { bench: &'static str, peer: Option<BenchPeer> },
    /// Whole programs, captured.
    Programs,
    /// Whole programs, with the layer off.
    Vkcube,
    /// Whole programs under `run`, with call stacks and without.
    Stacks,
    /// `lavascope check` of whole traces.
    Check,
    /// `lavascope replay` of whole traces.
    Replay,
}

impl BenchSource {
    pub(super) fn peer(self) -> Option<BenchPeer> {
        match self {
            BenchSource::Binary { peer, .. } => peer,
            BenchSource::Programs | BenchSource::Replay => Some(BenchPeer::Gfxreconstruct),
            BenchSource::Vkcube | BenchSource::Stacks | BenchSource::Check => None,
        }
    }

    const fn binary(bench: &'static str) -> BenchSource {
        BenchSource::Binary { bench, peer: None }
    }

    const fn compared(bench: &'static str, peer: BenchPeer) -> BenchSource {
        BenchSource::Binary { bench, peer: Some(peer) }
    }
}

/// In the order of the page.
pub(super) const TOPICS: &[BenchTopic] = &[
    BenchTopic {
        name: "packing",
        title: "Records of calls",
        text: "Nanoseconds for one call while 100,000 objects exist. `pack` is the generated packer of one command; \
               `walk` packs any command by its tables. With cold objects, each call names another object.",
        sources: &[BenchSource::binary("pack")],
    },
    BenchTopic {
        name: "overhead",
        title: "Calls through the layer",
        text: "The cost that the layer adds to a call, through the Vulkan loader. *Off*: no feature is enabled. \
               *Reading*: a thread of the layer reads every record.",
        sources: &[BenchSource::binary("overhead"), BenchSource::Vkcube],
    },
    BenchTopic {
        name: "capture",
        title: "Capture",
        text: "One program records viewports, scissors, vertex buffers, push constants and draws. Whole programs run on \
               lavapipe; their figures are ratios to the same program without a capture.",
        sources: &[
            BenchSource::compared("capture", BenchPeer::Gfxreconstruct),
            BenchSource::binary("file"),
            BenchSource::Programs,
        ],
    },
    BenchTopic {
        name: "mapped",
        title: "Writes to mapped memory",
        text: "The cost of finding what the host wrote to memory that stays mapped: added to a `vkQueueSubmit` before \
               which nothing was written, and to each page that was.",
        sources: &[BenchSource::binary("mapped")],
    },
    BenchTopic {
        name: "validation",
        title: "Synchronization validation",
        text: "The cost that validation adds to a call on the null driver: *inline* on the application's thread, \
               *async* on a thread of the layer. The peer runs with synchronization validation alone. `tracker` and \
               `validator` read records, without the layer. `check` reads traces.",
        sources: &[
            BenchSource::compared("validation", BenchPeer::Khronos),
            BenchSource::binary("records"),
            BenchSource::Check,
        ],
    },
    BenchTopic {
        name: "stacks",
        title: "Call stacks",
        text: "CPU time of whole programs on lavapipe under `lavascope run`, as a ratio to the same run with \
               `--backtrace=off`: the least of several rounds of each.",
        sources: &[BenchSource::Stacks],
    },
    BenchTopic {
        name: "engine",
        title: "The hazard engine",
        text: "The engine alone, without Vulkan calls. A frame has 80 draws with seven accesses each, 10 copies, 4 \
               barriers, and the begin and end of rendering.",
        sources: &[BenchSource::binary("engine")],
    },
    BenchTopic {
        name: "gpu",
        title: "Checks in shaders",
        text: "The cost that the checks add on lavapipe, with one thread and without a shader cache. The peer runs \
               with GPU-assisted validation alone. A pipeline with 50 + 50 accesses has 50 loads from a storage \
               buffer and 50 from device addresses.",
        sources: &[BenchSource::compared("gpu", BenchPeer::Khronos)],
    },
    BenchTopic {
        name: "spirv",
        title: "SPIR-V",
        text: "Parsing, reflection and instrumentation of a module. The limits are 20 ns for a parsed word, 250 ns \
               for a reflected word and 10 ns for an instrumented byte, for modules of every size.",
        sources: &[BenchSource::binary("reflect"), BenchSource::binary("instrument")],
    },
    BenchTopic {
        name: "replay",
        title: "Replay",
        text: "The sample `recording`: each thread records 1,000,000 commands and submits nothing. Times and memory \
               are of whole processes. The time of a call begins when the loader is open and ends with the last \
               call; it includes reading and decompressing the trace.",
        sources: &[BenchSource::Replay, BenchSource::binary("handover")],
    },
    BenchTopic {
        name: "drivers",
        title: "Replay on other drivers",
        text: "The number of bytes that the device wrote differently from the capture, over all samples that run on \
               both drivers. These bytes are pixels on the edges of triangles. The last rows compare pictures.",
        sources: &[],
    },
    BenchTopic {
        name: "runs",
        title: "Long runs, builds and tests",
        text: "Measurements outside of the benchmark. [nightly.md](nightly.md) has the last results of random tests.",
        sources: &[],
    },
];

/// What one run measures.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct BenchSelection<'a> {
    /// Only this topic.
    topic: Option<&'static str>,
    /// Only this bench binary.
    binary: Option<&'static str>,
    /// Only entries whose name contains this.
    pub(super) entry: Option<&'a str>,
}

impl<'a> BenchSelection<'a> {
    /// A filter is the name of a topic or of a bench binary, or a part of the names of entries.
    pub(super) fn new(filter: Option<&'a str>) -> BenchSelection<'a> {
        let Some(filter) = filter else { return BenchSelection::default() };
        let sources = TOPICS.iter().flat_map(|it| it.sources);
        let mut binaries = sources.filter_map(|source| match source {
            BenchSource::Binary { bench, .. } => Some(*bench),
            _ => None,
        });
        let topic = TOPICS.iter().map(|it| it.name).find(|it| *it == filter);
        let binary = if topic.is_none() { binaries.find(|it| *it == filter) } else { None };
        BenchSelection { topic, binary, entry: Some(filter).filter(|_| topic.is_none() && binary.is_none()) }
    }

    pub(super) fn has_topic(&self, topic: &BenchTopic) -> bool {
        self.topic.is_none_or(|it| it == topic.name)
    }

    pub(super) fn has_source(&self, source: &BenchSource) -> bool {
        self.binary.is_none_or(|name| matches!(source, BenchSource::Binary { bench, .. } if *bench == name))
    }

    pub(super) fn has_entry(&self, name: &str) -> bool {
        self.entry.is_none_or(|it| name.contains(it))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn measured(filter: Option<&str>) -> Vec<&'static str> {
        let selection = BenchSelection::new(filter);
        let topics = TOPICS.iter().filter(|it| selection.has_topic(it));
        let wanted = topics.filter(|topic| topic.sources.iter().any(|it| selection.has_source(it)));
        wanted.map(|it| it.name).collect()
    }

    #[test]
    fn a_filter_names_a_topic_or_a_binary_or_a_part_of_entries() {
        assert_eq!(measured(Some("capture")), ["capture"]);
        assert_eq!(BenchSelection::new(Some("capture")).entry, None);
        assert_eq!(measured(Some("file")), ["capture"]);
        let selection = BenchSelection::new(Some("file"));
        assert!(!selection.has_source(&BenchSource::Programs) && selection.has_entry("anything"));
        let selection = BenchSelection::new(Some("glmark2"));
        assert!(selection.has_entry("glmark2 over zink") && !selection.has_entry("vkcube"));
        assert_eq!(measured(Some("glmark2")), measured(None));
    }

    #[test]
    fn topics_have_names_of_their_own() {
        let names: BTreeSet<_> = TOPICS.iter().map(|it| it.name).collect();
        assert_eq!(names.len(), TOPICS.len());
    }
}
