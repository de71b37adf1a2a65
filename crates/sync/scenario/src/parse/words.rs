//! The words for stages, accesses, layouts, formats and the like: those of the registry, in lower case and without
//! what all of them begin or end with, and a few short ones.

use std::sync::LazyLock;

use lavascope_abi::desc::FormatDesc;
use lavascope_abi::{AccessFlags2, FORMATS, Format, IMAGE_LAYOUT_ENUM, PipelineStageFlags2, QueueFlags};
use lavascope_abi::{SYNC_ACCESSES, SYNC_STAGES};

/// A word and the bits it stands for.
#[derive(Clone, Debug)]
pub(crate) struct FlagWord {
    /// The words of the printer.
    pub(crate) word: String,
    /// The name as the registry has it, and other short ones.
    pub(crate) synonyms: Vec<String>,
    pub(crate) bits: u64,
}

/// Short words for stages; the first of a stage is the canonical one.
const STAGE_SYNONYMS: [(&str, &str); 22] = [
    ("vertex_shader", "vertex"),
    ("fragment_shader", "fragment"),
    ("compute_shader", "compute"),
    ("geometry_shader", "geometry"),
    ("tessellation_control_shader", "tess_control"),
    ("tessellation_evaluation_shader", "tess_eval"),
    ("task_shader", "task"),
    ("mesh_shader", "mesh"),
    ("ray_tracing_shader", "ray_tracing"),
    ("subpass_shader", "subpass_shading"),
    ("color_attachment_output", "color"),
    ("early_fragment_tests", "early"),
    ("late_fragment_tests", "late"),
    ("vertex_attribute_input", "vertex_attribute"),
    ("index_input", "index"),
    ("draw_indirect", "indirect"),
    ("all_transfer", "transfer"),
    ("all_graphics", "graphics"),
    ("all_commands", "all"),
    ("top_of_pipe", "top"),
    ("bottom_of_pipe", "bottom"),
    ("pre_rasterization_shaders", "pre_rasterization"),
];

const ACCESS_SYNONYMS: [(&str, &str); 10] = [
    ("shader_sampled_read", "sampled_read"),
    ("shader_storage_read", "storage_read"),
    ("shader_storage_write", "storage_write"),
    ("color_attachment_read", "color_read"),
    ("color_attachment_write", "color_write"),
    ("depth_stencil_attachment_read", "depth_read"),
    ("depth_stencil_attachment_write", "depth_write"),
    ("input_attachment_read", "input_read"),
    ("vertex_attribute_read", "attribute_read"),
    ("indirect_command_read", "indirect_read"),
];

static STAGES: LazyLock<Vec<FlagWord>> = LazyLock::new(|| {
    let names = SYNC_STAGES.iter().map(|it| (it.name, it.stage));
    entries(names, "VK_PIPELINE_STAGE_2_", &STAGE_SYNONYMS)
});

static ACCESSES: LazyLock<Vec<FlagWord>> = LazyLock::new(|| {
    let names = SYNC_ACCESSES.iter().map(|it| (it.name, it.access));
    entries(names, "VK_ACCESS_2_", &ACCESS_SYNONYMS)
});

static LAYOUTS: LazyLock<Vec<(String, i32)>> = LazyLock::new(|| {
    let values = IMAGE_LAYOUT_ENUM.values.iter();
    values.map(|(value, name)| (layout_name(name), *value as i32)).collect()
});

static FORMAT_WORDS: LazyLock<Vec<(String, Format)>> = LazyLock::new(|| {
    FORMATS.iter().map(|it| (it.name.trim_start_matches("VK_FORMAT_").to_ascii_lowercase(), it.format)).collect()
});

pub(crate) const QUEUE_WORDS: [(&str, u32); 9] = [
    ("graphics", QueueFlags::GRAPHICS.0),
    ("compute", QueueFlags::COMPUTE.0),
    ("transfer", QueueFlags::TRANSFER.0),
    ("sparse_binding", QueueFlags::SPARSE_BINDING.0),
    ("protected", QueueFlags::PROTECTED.0),
    ("video_decode", QueueFlags::VIDEO_DECODE_KHR.0),
    ("video_encode", QueueFlags::VIDEO_ENCODE_KHR.0),
    ("optical_flow", QueueFlags::OPTICAL_FLOW_NV.0),
    ("data_graph", QueueFlags::DATA_GRAPH_ARM.0),
];

/// The stages, without `none`.
pub(crate) fn stages() -> &'static [FlagWord] {
    &STAGES
}

pub(crate) fn accesses() -> &'static [FlagWord] {
    &ACCESSES
}

pub(crate) fn stage_of(word: &str) -> Option<u64> {
    find(&STAGES, word)
}

pub(crate) fn access_of(word: &str) -> Option<u64> {
    find(&ACCESSES, word)
}

pub(crate) fn all_words(entries: &[FlagWord]) -> impl Iterator<Item = &str> + Clone {
    entries.iter().flat_map(|it| std::iter::once(&it.word).chain(&it.synonyms)).map(String::as_str)
}

pub(crate) fn layout_of(word: &str) -> Option<i32> {
    LAYOUTS.iter().find(|it| it.0 == word).map(|it| it.1)
}

pub(crate) fn layout_words() -> impl Iterator<Item = &'static str> + Clone {
    LAYOUTS.iter().map(|it| it.0.as_str())
}

pub(crate) fn layout_word(layout: i32) -> String {
    LAYOUTS.iter().find(|it| it.1 == layout).map_or_else(|| format!("{layout:#x}"), |it| it.0.clone())
}

pub(crate) fn format_of(word: &str) -> Option<Format> {
    FORMAT_WORDS.iter().find(|it| it.0 == word).map(|it| it.1)
}

pub(crate) fn format_words() -> impl Iterator<Item = &'static str> + Clone {
    FORMAT_WORDS.iter().map(|it| it.0.as_str())
}

pub(crate) fn format_word(format: Format) -> String {
    FORMAT_WORDS.iter().find(|it| it.1 == format).map_or_else(|| format!("{:#x}", format.0), |it| it.0.clone())
}

pub(crate) fn format_desc(format: Format) -> Option<&'static FormatDesc> {
    FORMATS.iter().find(|it| it.format == format)
}

/// The one access that `read` or `write` can mean at a stage; none if there are several.
pub(crate) fn implied_access(stage: u64, is_write: bool) -> Option<u64> {
    const GROUPS: u64 = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;
    // Reading without coherence is an option of blending, and tiles are one vendor's: neither is meant by `read`.
    const RARE: u64 = AccessFlags2::COLOR_ATTACHMENT_READ_NONCOHERENT_EXT.0
        | AccessFlags2::SHADER_TILE_ATTACHMENT_READ_QCOM.0
        | AccessFlags2::SHADER_TILE_ATTACHMENT_WRITE_QCOM.0;
    if stage == 0 || stage == PipelineStageFlags2::ALL_COMMANDS.0 || stage == PipelineStageFlags2::ALL_GRAPHICS.0 {
        return None;
    }
    let fits = |sync_access: &&lavascope_abi::desc::SyncAccess| {
        sync_access.stages & stage != 0
            && sync_access.access & (GROUPS | RARE) == 0
            && is_write_name(sync_access.name) == is_write
    };
    let mut found = SYNC_ACCESSES.iter().filter(fits);
    let first = found.next()?;
    found.next().is_none().then_some(first.access)
}

/// Whether the one access writes.
pub(crate) fn is_write_access(access: u64) -> bool {
    SYNC_ACCESSES.iter().any(|it| it.access == access && access != 0 && is_write_name(it.name))
}

/// The stages of drawing, groups and all.
pub(crate) fn graphics_stages() -> u64 {
    let group = |bits: u64| SYNC_STAGES.iter().find(|it| it.stage == bits).map_or(0, |it| it.equivalent);
    let all = group(PipelineStageFlags2::ALL_GRAPHICS.0);
    all | group(PipelineStageFlags2::VERTEX_INPUT.0)
}

/// The known name that is nearest to an unknown one, if any is near.
pub(crate) fn nearest_word<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    lavascope_collections::nearest(wanted, names, 1).pop()
}

fn is_write_name(name: &str) -> bool {
    name.contains("_WRITE_BIT")
}

fn find(entries: &[FlagWord], word: &str) -> Option<u64> {
    entries.iter().find(|it| it.word == word || it.synonyms.iter().any(|other| other == word)).map(|it| it.bits)
}

fn entries<'a>(names: impl Iterator<Item = (&'a str, u64)>, prefix: &str, synonyms: &[(&str, &str)]) -> Vec<FlagWord> {
    let mut all = Vec::new();
    for (name, bits) in names.filter(|it| it.1 != 0) {
        let long = registry_word(name.trim_start_matches(prefix));
        let short = synonyms.iter().find(|it| it.0 == long).map(|it| it.1.to_owned());
        all.push(match short {
            Some(short) => FlagWord { word: short, synonyms: vec![long], bits },
            None => FlagWord { word: long, synonyms: Vec::new(), bits },
        });
    }
    all
}

/// Lower case, without `_BIT` and what vendors add.
fn registry_word(name: &str) -> String {
    let base = match name.find("_BIT") {
        Some(at) if name[at..].len() == 4 || name[at..].starts_with("_BIT_") => &name[..at],
        _ => name,
    };
    base.to_ascii_lowercase()
}

fn layout_name(name: &str) -> String {
    let mut base = name.trim_start_matches("VK_IMAGE_LAYOUT_");
    for suffix in ["_KHR", "_EXT", "_ARM", "_OPTIMAL"] {
        base = base.strip_suffix(suffix).unwrap_or(base);
    }
    base.to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_word_has_two_meanings() {
        let mut seen = HashSet::new();
        for word in all_words(&STAGES).chain(all_words(&ACCESSES)) {
            assert!(seen.insert(word.to_owned()), "{word}");
        }
        assert!(seen.len() > 90, "{}", seen.len());
        let layouts: HashSet<&str> = layout_words().collect();
        assert_eq!(layouts.len(), LAYOUTS.len());
    }

    #[test]
    fn every_synonym_stands_for_something() {
        for (long, short) in STAGE_SYNONYMS {
            assert!(stage_of(long).is_some() && stage_of(long) == stage_of(short), "{long}");
        }
        for (long, short) in ACCESS_SYNONYMS {
            assert!(access_of(long).is_some() && access_of(long) == access_of(short), "{long}");
        }
    }

    #[test]
    fn read_and_write_stand_for_the_only_one() {
        let copy = PipelineStageFlags2::COPY.0;
        assert_eq!(implied_access(copy, true), Some(AccessFlags2::TRANSFER_WRITE.0));
        assert_eq!(implied_access(copy, false), Some(AccessFlags2::TRANSFER_READ.0));
        let color = PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT.0;
        assert_eq!(implied_access(color, false), Some(AccessFlags2::COLOR_ATTACHMENT_READ.0));
        assert_eq!(implied_access(PipelineStageFlags2::COMPUTE_SHADER.0, false), None);
        assert_eq!(implied_access(PipelineStageFlags2::ALL_COMMANDS.0, true), None);
    }

    #[test]
    fn the_nearest_word_is_found() {
        assert_eq!(nearest_word("fragmant", all_words(&STAGES)), Some("fragment"));
        assert_eq!(nearest_word("zzzzzzz", all_words(&STAGES)), None);
    }
}
