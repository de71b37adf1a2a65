//! Writes masks and regions with the names of the API.

use lavascope_abi::desc::EnumDesc;
use lavascope_abi::{AccessFlags2, ImageAspectFlags, PipelineStageFlags2, SYNC_ACCESSES, SYNC_STAGES};
use lavascope_sync_ir::{Area, Components, Region};

/// The names of the stages in a mask, joined with `|`.
pub fn stage_names(mask: u64) -> String {
    names(mask, SYNC_STAGES.iter().map(|it| (it.stage, it.name)), "VK_PIPELINE_STAGE_2_NONE")
}

pub fn access_names(mask: u64) -> String {
    names(mask, SYNC_ACCESSES.iter().map(|it| (it.access, it.name)), "VK_ACCESS_2_NONE")
}

const TOP: u64 = PipelineStageFlags2::TOP_OF_PIPE.0;
const BOTTOM: u64 = PipelineStageFlags2::BOTTOM_OF_PIPE.0;

/// The stages of a destination mask. The bottom of the pipe executes nothing, and the top of the
/// pipe stands for all commands (`synchronization-pipeline-stages`).
pub(crate) fn second_scope_stages(mask: u64) -> u64 {
    without_ends(mask, BOTTOM, TOP)
}

/// The stages of a source mask. The top of the pipe executes nothing, and the bottom of the pipe
/// stands for all commands (`synchronization-pipeline-stages`).
pub(crate) fn first_scope_stages(mask: u64) -> u64 {
    without_ends(mask, TOP, BOTTOM)
}

fn without_ends(mask: u64, none: u64, all: u64) -> u64 {
    if mask & all != 0 { PipelineStageFlags2::ALL_COMMANDS.0 } else { mask & !none }
}

/// The stage with the lowest bit in a mask. If the mask contains all commands, the result is all
/// commands.
pub(crate) fn first_stage(stages: u64) -> u64 {
    let all = PipelineStageFlags2::ALL_COMMANDS.0;
    if stages & all != 0 { all } else { stages & stages.wrapping_neg() }
}

/// All reads and all writes.
pub(crate) const ALL_ACCESSES: u64 = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;

/// `VK_ACCESS_2_UNIFORM_READ_BIT accesses at VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT`. A mask with
/// all accesses, or with none, is written as a word.
pub(crate) fn accesses_at(stages: u64, access: u64) -> String {
    let stages = stage_names(stages);
    match access {
        0 => format!("no accesses at {stages}"),
        ALL_ACCESSES => format!("all accesses at {stages}"),
        _ => format!("{} accesses at {stages}", access_names(access)),
    }
}

/// The name of a value. If the value has no name, its number.
pub(crate) fn enum_name(of: &EnumDesc, value: i32) -> String {
    let found = of.values.iter().find(|it| it.0 == i64::from(value));
    found.map_or_else(|| value.to_string(), |it| it.1.to_owned())
}

/// The names of the bits in a mask.
pub(crate) fn mask_names(of: &EnumDesc, mask: u64) -> String {
    names(mask, of.values.iter().map(|it| (it.0 as u64, it.1)), "0")
}

fn names(mask: u64, all: impl Iterator<Item = (u64, &'static str)>, none: &str) -> String {
    let mut left = mask;
    let mut found: Vec<String> = Vec::new();
    for (bit, name) in all.filter(|it| it.0 != 0) {
        if left & bit == bit {
            left &= !bit;
            found.push(name.to_owned());
        }
    }
    if left != 0 {
        found.push(format!("{left:#x}"));
    }
    if found.is_empty() { none.to_owned() } else { found.join("|") }
}

/// The aspects that one image can have together with others. A color image has only one aspect, so
/// it needs no name.
const ASPECTS: [(u32, &str); 5] = [
    (ImageAspectFlags::DEPTH.0, ".depth"),
    (ImageAspectFlags::STENCIL.0, ".stencil"),
    (ImageAspectFlags::PLANE_0.0, ".plane0"),
    (ImageAspectFlags::PLANE_1.0, ".plane1"),
    (ImageAspectFlags::PLANE_2.0, ".plane2"),
];

/// A region of a resource, as scenarios write it: `[0..256]`, `.mip0.layer1`.
pub fn region_text(region: &Region) -> String {
    match region {
        Region::Buffer(bytes) => format!("[{}..{}]", bytes.start, bytes.end),
        Region::Image(image) => {
            let mut text = part("mip", &image.mips) + &part("layer", &image.layers);
            for (bit, name) in ASPECTS {
                if image.aspects & bit != 0 && image.aspects != u32::MAX {
                    text += name;
                }
            }
            text + &components(image.components) + &image.area.map(area).unwrap_or_default()
        }
    }
}

/// The names of the components. Empty if the region has all of them.
fn components(item: Components) -> String {
    if item == Components::ALL {
        return String::new();
    }
    let names = ["r", "g", "b", "a"];
    let own = names.iter().enumerate().filter(|(at, _)| item.0 >> at & 1 != 0);
    format!(".{}", own.map(|it| *it.1).collect::<String>())
}

fn part(name: &str, range: &std::ops::Range<u32>) -> String {
    if range.len() == 1 { format!(".{name}{}", range.start) } else { format!(".{name}{}..{}", range.start, range.end) }
}

fn area(Area { offset, extent }: Area) -> String {
    let end: [u32; 3] = std::array::from_fn(|it| offset[it].saturating_add(extent[it]));
    let axes = offset.iter().zip(end).map(|(from, to)| format!("{from}..{to}"));
    format!("[{}]", axes.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::ImageRegion;

    use super::*;

    #[test]
    fn masks_have_the_names_of_the_api() {
        assert_eq!(stage_names(0), "VK_PIPELINE_STAGE_2_NONE");
        let mask = PipelineStageFlags2::COPY.0 | PipelineStageFlags2::VERTEX_SHADER.0;
        assert_eq!(stage_names(mask), "VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT|VK_PIPELINE_STAGE_2_COPY_BIT");
        assert_eq!(access_names(AccessFlags2::TRANSFER_WRITE.0), "VK_ACCESS_2_TRANSFER_WRITE_BIT");
        assert_eq!(access_names(1 << 63), "0x8000000000000000");
    }

    #[test]
    fn the_ends_of_the_pipe_stand_for_nothing_or_for_everything() {
        let (copy, all) = (PipelineStageFlags2::COPY.0, PipelineStageFlags2::ALL_COMMANDS.0);
        assert_eq!([first_scope_stages(TOP | copy), first_scope_stages(BOTTOM | copy)], [copy, all]);
        assert_eq!([second_scope_stages(TOP | copy), second_scope_stages(BOTTOM | copy)], [all, copy]);
        assert_eq!([first_scope_stages(TOP), second_scope_stages(BOTTOM), second_scope_stages(0)], [0; 3]);
        assert_eq!([first_stage(copy | 1 << 40), first_stage(copy | all)], [copy, all]);
    }

    #[test]
    fn regions_are_written_as_in_scenarios() {
        assert_eq!(region_text(&Region::Buffer(0..64)), "[0..64]");
        let region = ImageRegion {
            aspects: ImageAspectFlags::DEPTH.0,
            mips: 1..2,
            layers: 0..4,
            area: Some(Area { offset: [0, 8, 0], extent: [64, 8, 1] }),
            components: Components::ALL,
        };
        assert_eq!(region_text(&Region::Image(region.clone())), ".mip1.layer0..4.depth[0..64, 8..16, 0..1]");
        let green =
            ImageRegion { aspects: ImageAspectFlags::COLOR.0, components: Components(0b0110), area: None, ..region };
        assert_eq!(region_text(&Region::Image(green)), ".mip1.layer0..4.gb");
    }
}
