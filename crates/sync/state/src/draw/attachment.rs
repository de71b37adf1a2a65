//! Which attachments a draw or a clear accesses, and how.
//!
//! The uses refer to attachments by number, not to images: a secondary command buffer may be recorded before its
//! attachments are known.

use std::ops::Range;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, Area, AttachmentView, Certainty, Components, ImageRegion, Region};
use smallvec::SmallVec;

use crate::command::stage_access::{
    COLOR_READ, COLOR_WRITE, DENSITY_MAP_READ, EARLY_READ, EARLY_WRITE, LATE_READ, LATE_WRITE, SHADING_RATE_READ,
    StageAccess, TILE_COLOR_READ, TILE_DEPTH_READ,
};
use crate::draw::raster_state::RasterState;
use crate::resource::format;
use crate::shader::interface::{Shader, TileReads};

/// The uses of one command. Most commands have few, so these need no heap allocation.
pub(crate) type AttachmentUses = SmallVec<[AttachmentUse; 6]>;

/// A use of an attachment of the current subpass or rendering.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentUse {
    slot: AttachmentSlot,
    usage: StageAccess,
    components: Components,
    /// Set if the access covers less than the render area.
    area: Option<Area>,
    layers: LayerSelection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttachmentSlot {
    Color(u32),
    Depth,
    Stencil,
    ShadingRate,
    DensityMap,
}

#[derive(Clone, Debug)]
enum LayerSelection {
    All,
    /// Counted from the first layer of the attachment.
    Some(Range<u32>),
}

/// An image view that is bound as an attachment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoundAttachment {
    pub(crate) view: AttachmentView,
    /// Set if the components of the view are not those of the image.
    pub(crate) format_cast: Option<FormatCast>,
}

/// The format of a view whose components differ from those of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FormatCast {
    pub(crate) view: vk::Format,
    /// Undefined if the components of a texel cannot be mapped to each other.
    pub(crate) image: vk::Format,
}

/// The attachments that draws go to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AttachmentSet {
    pub(crate) colors: Vec<Option<BoundAttachment>>,
    pub(crate) depth_stencil: [Option<BoundAttachment>; 2],
    /// The shading rate attachment, with the size in texels of the render area that one of its texels covers.
    pub(crate) shading_rate: Option<(BoundAttachment, [u32; 2])>,
    pub(crate) density_map: Option<BoundAttachment>,
    /// The attachments that replace the others when shaders resolve them: colors, and depth and stencil.
    pub(crate) resolved: Vec<Option<BoundAttachment>>,
    pub(crate) resolved_depth_stencil: [Option<BoundAttachment>; 2],
    pub(crate) is_resolving: bool,
    pub(crate) area: Option<Area>,
    pub(crate) view_mask: u32,
}

/// Adds the attachment accesses of a draw.
pub(crate) fn add_draw_uses(
    found: &mut AttachmentUses,
    raster: &RasterState,
    shaders: &[Shader],
    locations: Option<&[u32]>,
    colors: usize,
) {
    if raster.is_discarded || raster.is_all_culled() && shaders.iter().all(|it| !it.makes_primitives()) {
        return;
    }
    let layers = layers_of(shaders);
    let attachment_use = |target, usage| AttachmentUse {
        slot: target,
        usage,
        components: Components::ALL,
        area: None,
        layers: layers.clone(),
    };
    found.extend([
        attachment_use(AttachmentSlot::ShadingRate, SHADING_RATE_READ),
        attachment_use(AttachmentSlot::DensityMap, DENSITY_MAP_READ),
    ]);
    let fragment = shaders.iter().find(|it| it.is_fragment());
    let interface = fragment.and_then(|it| it.interface.as_deref());
    let is_early = interface.is_some_and(|it| it.has_early_tests);
    let (read, write) = if is_early { (EARLY_READ, EARLY_WRITE) } else { (LATE_READ, LATE_WRITE) };
    if raster.has_depth_test {
        found.push(attachment_use(AttachmentSlot::Depth, if raster.has_depth_write { write } else { read }));
    } else if raster.has_depth_bounds {
        found.push(attachment_use(AttachmentSlot::Depth, read));
    }
    if raster.has_stencil_test {
        found.push(attachment_use(AttachmentSlot::Stencil, if raster.stencil_writes() { write } else { read }));
    }
    if fragment.is_none() {
        return;
    }
    let tile = interface.map_or(TileReads::default(), |it| it.tile);
    let tile_read = |usage: StageAccess, at: usize| if tile.unordered[at] { usage.unordered() } else { usage };
    found.extend(tile.depth.then(|| attachment_use(AttachmentSlot::Depth, tile_read(TILE_DEPTH_READ, 1))));
    found.extend(tile.stencil.then(|| attachment_use(AttachmentSlot::Stencil, tile_read(TILE_DEPTH_READ, 2))));
    for index in 0..colors {
        let location = locations.map_or(Some(index as u32), |it| it.get(index).copied());
        let is_written = |location: u32| interface.is_none_or(|it| location < 64 && it.outputs >> location & 1 != 0);
        let state = raster.color(index);
        if location.is_some_and(|it| it < 64 && tile.colors >> it & 1 != 0) {
            found.push(attachment_use(AttachmentSlot::Color(index as u32), tile_read(TILE_COLOR_READ, 0)));
        }
        if !location.is_some_and(is_written) || !state.is_enabled || state.write_mask == 0 {
            continue;
        }
        let target = AttachmentSlot::Color(index as u32);
        if state.is_blended || raster.logic_reads() {
            found.push(attachment_use(target, COLOR_READ));
        }
        found.push(AttachmentUse {
            components: Components(state.write_mask & 0xf),
            ..attachment_use(target, COLOR_WRITE)
        });
    }
}

/// Draws use only the first layer, unless a shader writes `Layer` or `ViewportIndex`.
fn layers_of(shaders: &[Shader]) -> LayerSelection {
    let may_choose = |it: &Shader| it.interface.as_ref().is_none_or(|it| it.writes_layer);
    let is_known = !shaders.is_empty() && !shaders.iter().filter(|it| !it.is_fragment()).any(may_choose);
    if is_known { LayerSelection::Some(0..1) } else { LayerSelection::All }
}

/// The attachment accesses of `vkCmdClearAttachments` in one rectangle.
pub(crate) fn clear_uses(clear: &vk::ClearAttachment, area: Area, layers: Range<u32>) -> Vec<AttachmentUse> {
    let has = |aspect: vk::ImageAspectFlags| clear.aspect_mask.0 & aspect.0 != 0;
    let attachment_use = |target, usage| AttachmentUse {
        slot: target,
        usage,
        components: Components::ALL,
        area: Some(area),
        layers: LayerSelection::Some(layers.clone()),
    };
    let color = has(vk::ImageAspectFlags::COLOR)
        .then(|| attachment_use(AttachmentSlot::Color(clear.color_attachment), COLOR_WRITE));
    let depth = has(vk::ImageAspectFlags::DEPTH).then(|| attachment_use(AttachmentSlot::Depth, EARLY_WRITE));
    let stencil = has(vk::ImageAspectFlags::STENCIL).then(|| attachment_use(AttachmentSlot::Stencil, EARLY_WRITE));
    color.into_iter().chain(depth).chain(stencil).collect()
}

impl AttachmentSet {
    /// The accesses that the uses make to these attachments.
    pub(crate) fn accesses(&self, attachment_uses: &[AttachmentUse]) -> Vec<Access> {
        let mut found = Vec::new();
        self.add_accesses(attachment_uses, &mut found);
        found
    }

    /// As `accesses`, but appends to `found`.
    pub(crate) fn add_accesses(&self, attachment_uses: &[AttachmentUse], found: &mut Vec<Access>) {
        attachment_uses.iter().for_each(|it| self.add_access(it, found));
    }

    fn add_access(&self, attachment_use: &AttachmentUse, found: &mut Vec<Access>) {
        let (Some(attached), Some(area)) = (self.attachment_in_slot(attachment_use.slot), self.area_of(attachment_use))
        else {
            return;
        };
        let (components, certainty) = attached.components(attachment_use.components);
        if components.0 == 0 {
            return;
        }
        let view = &attached.view;
        let aspects = match attachment_use.slot {
            AttachmentSlot::Depth => vk::ImageAspectFlags::DEPTH.0,
            AttachmentSlot::Stencil => vk::ImageAspectFlags::STENCIL.0,
            AttachmentSlot::Color(_) | AttachmentSlot::ShadingRate | AttachmentSlot::DensityMap => view.region.aspects,
        };
        let of_part = |layers, area| {
            let region = ImageRegion { aspects, mips: view.region.mips.clone(), layers, area: Some(area), components };
            Access { certainty, ..attachment_use.usage.access_to(view.resource, Region::Image(region)) }
        };
        let Some(slices) = view.region.area else {
            found.extend(self.layers(&view.region.layers, &attachment_use.layers).map(|it| of_part(it, area)));
            return;
        };
        // For a view of slices of a 3D image, the layers of the framebuffer are slices.
        let all = slices.offset[2]..slices.offset[2].saturating_add(slices.extent[2]);
        let of_slices = |range: Range<u32>| {
            let (mut offset, mut extent) = (area.offset, area.extent);
            (offset[2], extent[2]) = (range.start, range.end - range.start);
            of_part(view.region.layers.clone(), Area { offset, extent })
        };
        found.extend(self.layers(&all, &attachment_use.layers).map(of_slices));
    }

    fn attachment_in_slot(&self, target: AttachmentSlot) -> Option<&BoundAttachment> {
        let (colors, depth_stencil) = match self.is_resolving {
            false => (&self.colors, &self.depth_stencil),
            true => (&self.resolved, &self.resolved_depth_stencil),
        };
        match target {
            AttachmentSlot::Color(index) => colors.get(index as usize)?.as_ref(),
            AttachmentSlot::Depth => depth_stencil[0].as_ref(),
            AttachmentSlot::Stencil => depth_stencil[1].as_ref(),
            AttachmentSlot::ShadingRate => self.shading_rate.as_ref().map(|it| &it.0),
            AttachmentSlot::DensityMap => self.density_map.as_ref(),
        }
    }

    fn area_of(&self, attachment_use: &AttachmentUse) -> Option<Area> {
        let own = self.area?;
        let area = attachment_use.area.map_or(own, |it| intersection(own, it));
        match (attachment_use.slot, &self.shading_rate) {
            (AttachmentSlot::ShadingRate, Some((_, size))) => Some(scaled(area, *size)),
            // The texel size of a fragment density map depends on the device, so the whole map may be read.
            (AttachmentSlot::DensityMap, _) => Some(Area { offset: [0; 3], extent: [u32::MAX, u32::MAX, 1] }),
            _ => Some(area),
        }
    }

    fn layers(&self, own: &Range<u32>, wanted: &LayerSelection) -> impl Iterator<Item = Range<u32>> + use<> {
        let (mask, Range { start, end }) = (self.view_mask, own.clone());
        let views = (0..32).filter(move |it| mask >> it & 1 != 0).map(move |it| start.saturating_add(it));
        let views = views.filter(move |it| *it < end).map(|it| it..it + 1);
        let whole = Some(wanted.select_from(own)).filter(|it| mask == 0 && !it.is_empty());
        whole.into_iter().chain(Some(views).filter(|_| mask != 0).into_iter().flatten())
    }
}

impl BoundAttachment {
    /// The components of the image that belong to some components of the view, and whether they are accessed
    /// completely.
    fn components(&self, own: Components) -> (Components, Certainty) {
        match self.format_cast {
            Some(cast) if own != Components::ALL => format::cast_components(cast.view, cast.image, own),
            _ => (own, Certainty::Certain),
        }
    }
}

impl LayerSelection {
    fn select_from(&self, own: &Range<u32>) -> Range<u32> {
        match self {
            LayerSelection::All => own.clone(),
            LayerSelection::Some(part) => {
                own.start.saturating_add(part.start).min(own.end)..own.start.saturating_add(part.end).min(own.end)
            }
        }
    }
}

fn intersection(one: Area, two: Area) -> Area {
    let start: [u32; 3] = std::array::from_fn(|it| one.offset[it].max(two.offset[it]));
    let end =
        |it: usize| one.offset[it].saturating_add(one.extent[it]).min(two.offset[it].saturating_add(two.extent[it]));
    Area { offset: start, extent: std::array::from_fn(|it| end(it).saturating_sub(start[it])) }
}

/// The texels of a shading rate attachment that cover an area.
fn scaled(area: Area, size: [u32; 2]) -> Area {
    let size = size.map(|it| it.max(1));
    let start: [u32; 2] = std::array::from_fn(|it| area.offset[it] / size[it]);
    let end: [u32; 2] = std::array::from_fn(|it| area.offset[it].saturating_add(area.extent[it]).div_ceil(size[it]));
    Area { offset: [start[0], start[1], 0], extent: [end[0] - start[0], end[1] - start[1], 1] }
}
