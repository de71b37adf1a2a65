//! Copies, blits, resolves, fills and clears.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{Access, ImageDesc, ImageRegion, Program, Region, ResourceId};

use crate::choose::{check_apart, image, is_whole};
use crate::deed::{CopyRegion, Deed, ImageCopy, Texels};
use crate::error::Unable;
use crate::formats::{bytes, texels};

/// One side of a copy.
enum Side<'a> {
    Buffer(ResourceId, std::ops::Range<u64>),
    Image(ResourceId, &'a ImageDesc, ImageRegion),
}

/// Reads and writes come in pairs, as scenarios say `a -> b`; where the two do not fit each other, or one is alone, our
/// own resources are the other side.
pub(crate) fn choose(program: &Program, accesses: &[Access]) -> Result<Vec<Deed>, Unable> {
    let mut deeds: Vec<Deed> = Vec::new();
    let mut parts: Vec<Vec<Access>> = Vec::new();
    let mut rest = accesses;
    while let Some((first, more)) = rest.split_first() {
        let is_read = first.access == Bits::TRANSFER_READ.0;
        let pair = more.first().filter(|it| {
            is_read && it.access == Bits::TRANSFER_WRITE.0 && it.stage == first.stage && first.stage != Stage::CLEAR.0
        });
        rest = match pair {
            Some(second) => {
                let made = both(side(program, first)?, side(program, second)?, first.stage)?;
                match made.len() {
                    1 => parts.push(vec![first.clone(), second.clone()]),
                    _ => parts.extend([vec![first.clone()], vec![second.clone()]]),
                }
                deeds.extend(made);
                &more[1..]
            }
            None => {
                deeds.push(alone(side(program, first)?, first)?);
                parts.push(vec![first.clone()]);
                more
            }
        };
    }
    check_apart(&parts)?;
    Ok(joined(deeds))
}

fn side<'a>(program: &'a Program, it: &Access) -> Result<Side<'a>, Unable> {
    Ok(match (&it.region, image(program, it.resource)) {
        (Region::Image(region), Some(image)) => {
            if region.components != lavascope_sync_ir::Components::ALL {
                return Unable::new("transfers have all components");
            }
            Side::Image(it.resource, image, region.clone())
        }
        (Region::Buffer(bytes), _) => Side::Buffer(it.resource, bytes.clone()),
        (Region::Image(_), None) => return Unable::new("texels of a buffer"),
    })
}

fn both(src: Side<'_>, dst: Side<'_>, stage: u64) -> Result<Vec<Deed>, Unable> {
    let how = match Stage(stage) {
        Stage::BLIT => ImageCopy::Blit,
        Stage::RESOLVE => ImageCopy::Resolve,
        _ => ImageCopy::Copy,
    };
    let made = match (&src, &dst) {
        (Side::Buffer(from, one), Side::Buffer(to, two)) if one.end - one.start == two.end - two.start => {
            let region = CopyRegion { src: one.start, dst: two.start, size: one.end - one.start };
            Some(Deed::CopyBuffer { src: Some(*from), dst: Some(*to), regions: vec![region] })
        }
        (Side::Buffer(from, own), Side::Image(to, image, region)) => {
            let (parts, end) = dense(image, &texels(image, region), own.start);
            (end == own.end).then_some(Deed::CopyToImage { src: Some(*from), dst: *to, parts })
        }
        (Side::Image(from, image, region), Side::Buffer(to, own)) => {
            let (parts, end) = dense(image, &texels(image, region), own.start);
            (end == own.end).then_some(Deed::CopyFromImage { src: *from, dst: Some(*to), parts })
        }
        (Side::Image(from, image, region), Side::Image(to, other, target)) => {
            let (one, two) = (texels(image, region), texels(other, target));
            let fits = |(a, b): (&Texels, &Texels)| {
                a.aspect == b.aspect
                    && a.layers.len() == b.layers.len()
                    && (how == ImageCopy::Blit || a.extent == b.extent)
            };
            let is_fit = one.len() == two.len() && one.iter().zip(&two).all(fits);
            let parts = one.into_iter().zip(two).collect();
            is_fit.then_some(Deed::CopyImage { how, src: *from, dst: *to, parts })
        }
        (Side::Buffer(..), Side::Buffer(..)) => None,
    };
    match made {
        Some(made) if how == ImageCopy::Copy || matches!(made, Deed::CopyImage { .. }) => Ok(vec![made]),
        _ if how != ImageCopy::Copy => Unable::new("a blit or a resolve of what does not fit"),
        _ => Ok(vec![read(src), written(dst)]),
    }
}

fn alone(side: Side<'_>, it: &Access) -> Result<Deed, Unable> {
    match (Stage(it.stage), Bits(it.access)) {
        (Stage::COPY, Bits::TRANSFER_READ) => Ok(read(side)),
        (Stage::COPY, Bits::TRANSFER_WRITE) => Ok(written(side)),
        (Stage::CLEAR, Bits::TRANSFER_WRITE) => cleared(side),
        _ => Unable::new("one half of a blit or a resolve"),
    }
}

/// To a buffer of ours.
fn read(side: Side<'_>) -> Deed {
    match side {
        Side::Buffer(src, own) => {
            let region = CopyRegion { src: own.start, dst: 0, size: own.end - own.start };
            Deed::CopyBuffer { src: Some(src), dst: None, regions: vec![region] }
        }
        Side::Image(src, image, region) => {
            Deed::CopyFromImage { src, dst: None, parts: dense(image, &texels(image, &region), 0).0 }
        }
    }
}

/// From a buffer of ours.
fn written(side: Side<'_>) -> Deed {
    match side {
        Side::Buffer(dst, own) => {
            let region = CopyRegion { src: 0, dst: own.start, size: own.end - own.start };
            Deed::CopyBuffer { src: None, dst: Some(dst), regions: vec![region] }
        }
        Side::Image(dst, image, region) => {
            Deed::CopyToImage { src: None, dst, parts: dense(image, &texels(image, &region), 0).0 }
        }
    }
}

fn cleared(side: Side<'_>) -> Result<Deed, Unable> {
    match side {
        Side::Buffer(dst, bytes) if bytes.start.is_multiple_of(4) && bytes.end.is_multiple_of(4) => {
            Ok(Deed::Fill { dst, bytes })
        }
        Side::Buffer(..) => Unable::new("a buffer is filled word by word"),
        Side::Image(_, image, region) if !is_whole(image, &region) => Unable::new("a level is cleared as a whole"),
        Side::Image(target, _, region) => Ok(Deed::Clear { image: target, regions: vec![region] }),
    }
}

/// Boxes of texels one behind the other in a buffer, and where they end.
fn dense(image: &ImageDesc, all: &[Texels], start: u64) -> (Vec<(u64, Texels)>, u64) {
    let mut at = start;
    let mut parts = Vec::new();
    for it in all {
        parts.push((at, it.clone()));
        at += bytes(image, it);
    }
    (parts, at)
}

/// Copies between the same two, and clears of the same image, are one command.
fn joined(deeds: Vec<Deed>) -> Vec<Deed> {
    let mut found: Vec<Deed> = Vec::new();
    for deed in deeds {
        match (found.last_mut(), deed) {
            (Some(Deed::CopyBuffer { src, dst, regions }), Deed::CopyBuffer { src: from, dst: to, regions: more })
                if (*src, *dst) == (from, to) && from.is_some() && to.is_some() =>
            {
                regions.extend(more);
            }
            (Some(Deed::Clear { image, regions }), Deed::Clear { image: other, regions: more }) if *image == other => {
                regions.extend(more);
            }
            (_, deed) => found.push(deed),
        }
    }
    found
}
