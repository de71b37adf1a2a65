//! Copies, blits, resolves, fills and clears.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{Access, ImageDesc, ImageRegion, Program, Region, ResourceId};

use crate::error::UnsupportedProgram;
use crate::plan::choose::{check_disjoint, covers_whole_image, image};
use crate::plan::formats::{bytes, copy_boxes};
use crate::plan::live_command::{CopyBox, CopyRegion, ImageCopy, LiveCommand};

/// One side of a copy.
enum CopySide<'a> {
    Buffer(ResourceId, std::ops::Range<u64>),
    Image(ResourceId, &'a ImageDesc, ImageRegion),
}

/// Reads and writes come in pairs, like `a -> b` in scenarios; if the two do not fit each other, or one is alone, our
/// own resources are the other side.
pub(crate) fn transfer_commands(
    program: &Program,
    accesses: &[Access],
) -> Result<Vec<LiveCommand>, UnsupportedProgram> {
    let mut deeds: Vec<LiveCommand> = Vec::new();
    let mut parts: Vec<Vec<Access>> = Vec::new();
    let mut rest = accesses;
    while let Some((first, more)) = rest.split_first() {
        let is_read = first.access == Bits::TRANSFER_READ.0;
        let pair = more.first().filter(|more_item| {
            is_read
                && more_item.access == Bits::TRANSFER_WRITE.0
                && more_item.stage == first.stage
                && first.stage != Stage::CLEAR.0
        });
        rest = match pair {
            Some(second) => {
                let made = copy_between(copy_side(program, first)?, copy_side(program, second)?, first.stage)?;
                match made.len() {
                    1 => parts.push(vec![first.clone(), second.clone()]),
                    _ => parts.extend([vec![first.clone()], vec![second.clone()]]),
                }
                deeds.extend(made);
                &more[1..]
            }
            None => {
                deeds.push(copy_with_scratch(copy_side(program, first)?, first)?);
                parts.push(vec![first.clone()]);
                more
            }
        };
    }
    check_disjoint(&parts)?;
    Ok(merge_commands(deeds))
}

fn copy_side<'a>(program: &'a Program, access: &Access) -> Result<CopySide<'a>, UnsupportedProgram> {
    Ok(match (&access.region, image(program, access.resource)) {
        (Region::Image(region), Some(image)) => {
            if region.components != lavascope_sync_ir::Components::ALL {
                return UnsupportedProgram::error("transfers have all components");
            }
            CopySide::Image(access.resource, image, region.clone())
        }
        (Region::Buffer(bytes), _) => CopySide::Buffer(access.resource, bytes.clone()),
        (Region::Image(_), None) => return UnsupportedProgram::error("texels of a buffer"),
    })
}

fn copy_between(src: CopySide<'_>, dst: CopySide<'_>, stage: u64) -> Result<Vec<LiveCommand>, UnsupportedProgram> {
    let how = match Stage(stage) {
        Stage::BLIT => ImageCopy::Blit,
        Stage::RESOLVE => ImageCopy::Resolve,
        _ => ImageCopy::Copy,
    };
    let made = match (&src, &dst) {
        (CopySide::Buffer(from, one), CopySide::Buffer(to, two)) if one.end - one.start == two.end - two.start => {
            let region = CopyRegion { src: one.start, dst: two.start, size: one.end - one.start };
            Some(LiveCommand::CopyBuffer { src: Some(*from), dst: Some(*to), regions: vec![region] })
        }
        (CopySide::Buffer(from, own), CopySide::Image(to, image, region)) => {
            let (parts, end) = pack_boxes(image, &copy_boxes(image, region), own.start);
            (end == own.end).then_some(LiveCommand::CopyToImage { src: Some(*from), dst: *to, parts })
        }
        (CopySide::Image(from, image, region), CopySide::Buffer(to, own)) => {
            let (parts, end) = pack_boxes(image, &copy_boxes(image, region), own.start);
            (end == own.end).then_some(LiveCommand::CopyFromImage { src: *from, dst: Some(*to), parts })
        }
        (CopySide::Image(from, image, region), CopySide::Image(to, other, target)) => {
            let (one, two) = (copy_boxes(image, region), copy_boxes(other, target));
            let is_same_size = how == ImageCopy::Blit || texel_size(image) == texel_size(other);
            let fits = |(a, b): (&CopyBox, &CopyBox)| {
                a.aspect == b.aspect
                    && a.layers.len() == b.layers.len()
                    && (how == ImageCopy::Blit || a.extent == b.extent)
            };
            let is_fit = is_same_size && one.len() == two.len() && one.iter().zip(&two).all(fits);
            let parts = one.into_iter().zip(two).collect();
            is_fit.then_some(LiveCommand::CopyImage { how, src: *from, dst: *to, parts })
        }
        (CopySide::Buffer(..), CopySide::Buffer(..)) => None,
    };
    match made {
        Some(made) if how == ImageCopy::Copy || matches!(made, LiveCommand::CopyImage { .. }) => Ok(vec![made]),
        _ if how != ImageCopy::Copy => UnsupportedProgram::error("a blit or a resolve of what does not fit"),
        _ => Ok(vec![copy_to_scratch(src), copy_from_scratch(dst)]),
    }
}

fn texel_size(image: &ImageDesc) -> Option<u32> {
    crate::plan::formats::desc(image.format).map(|it| it.block_size)
}

fn copy_with_scratch(side: CopySide<'_>, item: &Access) -> Result<LiveCommand, UnsupportedProgram> {
    match (Stage(item.stage), Bits(item.access)) {
        (Stage::COPY, Bits::TRANSFER_READ) => Ok(copy_to_scratch(side)),
        (Stage::COPY, Bits::TRANSFER_WRITE) => Ok(copy_from_scratch(side)),
        (Stage::CLEAR, Bits::TRANSFER_WRITE) => clear_command(side),
        _ => UnsupportedProgram::error("one half of a blit or a resolve"),
    }
}

/// To a buffer of ours.
fn copy_to_scratch(side: CopySide<'_>) -> LiveCommand {
    match side {
        CopySide::Buffer(src, own) => {
            let region = CopyRegion { src: own.start, dst: 0, size: own.end - own.start };
            LiveCommand::CopyBuffer { src: Some(src), dst: None, regions: vec![region] }
        }
        CopySide::Image(src, image, region) => {
            LiveCommand::CopyFromImage { src, dst: None, parts: pack_boxes(image, &copy_boxes(image, &region), 0).0 }
        }
    }
}

/// From a buffer of ours.
fn copy_from_scratch(side: CopySide<'_>) -> LiveCommand {
    match side {
        CopySide::Buffer(dst, own) => {
            let region = CopyRegion { src: 0, dst: own.start, size: own.end - own.start };
            LiveCommand::CopyBuffer { src: None, dst: Some(dst), regions: vec![region] }
        }
        CopySide::Image(dst, image, region) => {
            LiveCommand::CopyToImage { src: None, dst, parts: pack_boxes(image, &copy_boxes(image, &region), 0).0 }
        }
    }
}

fn clear_command(side: CopySide<'_>) -> Result<LiveCommand, UnsupportedProgram> {
    match side {
        CopySide::Buffer(dst, bytes) if bytes.start.is_multiple_of(4) && bytes.end.is_multiple_of(4) => {
            Ok(LiveCommand::Fill { dst, bytes })
        }
        CopySide::Buffer(..) => UnsupportedProgram::error("a buffer is filled word by word"),
        CopySide::Image(_, image, region) if !covers_whole_image(image, &region) => {
            UnsupportedProgram::error("a level is cleared as a whole")
        }
        CopySide::Image(target, _, region) => Ok(LiveCommand::Clear { image: target, regions: vec![region] }),
    }
}

/// Boxes of texels one behind the other in a buffer, and where they end.
fn pack_boxes(image: &ImageDesc, all: &[CopyBox], start: u64) -> (Vec<(u64, CopyBox)>, u64) {
    let mut at = start;
    let mut parts = Vec::new();
    for copy_box in all {
        parts.push((at, copy_box.clone()));
        at += bytes(image, copy_box);
    }
    (parts, at)
}

/// Copies between the same two, and clears of the same image, are one command.
fn merge_commands(deeds: Vec<LiveCommand>) -> Vec<LiveCommand> {
    let mut found: Vec<LiveCommand> = Vec::new();
    for deed in deeds {
        match (found.last_mut(), deed) {
            (
                Some(LiveCommand::CopyBuffer { src, dst, regions }),
                LiveCommand::CopyBuffer { src: from, dst: to, regions: more },
            ) if (*src, *dst) == (from, to) && from.is_some() && to.is_some() => {
                regions.extend(more);
            }
            (Some(LiveCommand::Clear { image, regions }), LiveCommand::Clear { image: other, regions: more })
                if *image == other =>
            {
                regions.extend(more);
            }
            (_, deed) => found.push(deed),
        }
    }
    found
}
