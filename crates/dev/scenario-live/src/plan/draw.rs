//! Draws and their inputs: vertices, indices, parameters in buffers, attachments.
//!
//! If possible, one draw makes the accesses of several clauses. Depth is tested once in a draw, early or late, and
//! either only read or written. An action with more takes several draws, which rasterization order separates.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::{
    Access, Area, AttachmentView, AttributeBytes, Components, ImageRegion, OriginKind, Program, RasterOrder, Region,
};

use crate::error::UnsupportedProgram;
use crate::plan::choose::{buffer_bytes, image, shader_bindings};
use crate::plan::formats::{DEPTH, STENCIL};
use crate::plan::live_command::{
    BindingKind, BufferBytes, ColorUse, DepthStencilUse, DrawAttachments, DrawCommand, DrawSource, LiveAttachments,
    LiveCommand, ShaderBinding,
};

const FRAGMENT: u64 = Stage::FRAGMENT_SHADER.0;

/// The draws of an action; `scene` has the attachments where a render pass instance is open.
pub(crate) fn draw_commands(
    program: &Program,
    accesses: &[Access],
    scene: Option<&LiveAttachments>,
) -> Result<Vec<LiveCommand>, UnsupportedProgram> {
    let sorted = DrawAccesses::of(accesses)?;
    let mut targets = match scene {
        Some(scene) => scene.clone(),
        None => sorted.required_attachments(program)?,
    };
    let own = |targets: &LiveAttachments| match scene {
        Some(_) => DrawAttachments::Program(targets.clone()),
        None => DrawAttachments::AroundDraw(targets.clone()),
    };
    targets.area = targets.area.or(Some(Area { offset: [0; 3], extent: [1; 3] }));
    let (colors, clears) = sorted.color_uses(program, &targets, scene.is_some())?;
    let chooses_layer = sorted.chooses_layer(&targets);
    let mut first = DrawCommand {
        bindings: sorted.shader_bindings(program, &targets)?,
        vertices: sorted.vertices.clone(),
        attributes: sorted.attributes()?,
        indices: sorted.indices.first().cloned(),
        feedback: sorted.feedback.clone(),
        condition: sorted.condition,
        colors,
        is_ordered: sorted.is_ordered()?,
        chooses_layer,
        attachments: own(&targets),
        ..DrawCommand::default()
    };
    let mut sources = sorted.sources()?;
    first.source = if sources.is_empty() { DrawSource::Direct } else { sources.remove(0) };
    let sizes = sorted.vertices.iter().map(|it| it.1.end - it.1.start);
    if sorted.indices.len() > 1 || sizes.clone().zip(sizes.skip(1)).any(|it| it.0 != it.1) {
        return UnsupportedProgram::error("a draw with two index buffers, or vertex buffers of different sizes");
    }
    let is_only_clears = sorted.is_only_color() && first.colors.is_empty() && !clears.is_empty();
    let bare = DrawCommand { attachments: own(&targets), chooses_layer, ..DrawCommand::default() };
    let mut draws: Vec<DrawCommand> = if is_only_clears { Vec::new() } else { vec![first] };
    draws.extend(sources.into_iter().map(|source| DrawCommand { source, ..bare.clone() }));
    sorted.add_tests(program, &targets, scene.is_some(), &bare, &mut draws)?;
    let mut deeds: Vec<LiveCommand> = draws.into_iter().map(|it| LiveCommand::Draw(Box::new(it))).collect();
    deeds.extend(clears);
    Ok(deeds)
}

/// The accesses of a draw by what makes them.
#[derive(Default)]
struct DrawAccesses {
    vertices: Vec<BufferBytes>,
    attributes: Vec<AttributeBytes>,
    indices: Vec<BufferBytes>,
    indirect: Vec<BufferBytes>,
    byte_counts: Vec<BufferBytes>,
    feedback: Vec<BufferBytes>,
    condition: Option<(lavascope_sync_ir::ResourceId, u64)>,
    shaders: Vec<(u64, Vec<Access>)>,
    colors: Vec<Access>,
    tests: Vec<Access>,
    inputs: Vec<Access>,
    shading_rate: Option<Access>,
    density_map: Option<Access>,
}

impl DrawAccesses {
    fn of(accesses: &[Access]) -> Result<DrawAccesses, UnsupportedProgram> {
        let mut draw_accesses = DrawAccesses::default();
        for access in accesses {
            draw_accesses.add(access)?;
        }
        Ok(draw_accesses)
    }

    fn add(&mut self, item: &Access) -> Result<(), UnsupportedProgram> {
        match (Stage(item.stage), Bits(item.access)) {
            (Stage::VERTEX_ATTRIBUTE_INPUT, Bits::VERTEX_ATTRIBUTE_READ) => {
                self.vertices.push(buffer_bytes(item)?);
                if let OriginKind::Attributes(attributes) = item.origin.kind() {
                    self.attributes.push(attributes);
                }
            }
            (Stage::INDEX_INPUT, Bits::INDEX_READ) => self.indices.push(buffer_bytes(item)?),
            (Stage::DRAW_INDIRECT, Bits::INDIRECT_COMMAND_READ) => self.indirect.push(buffer_bytes(item)?),
            (Stage::DRAW_INDIRECT, Bits::TRANSFORM_FEEDBACK_COUNTER_READ_EXT) => {
                self.byte_counts.push(buffer_bytes(item)?)
            }
            (Stage::TRANSFORM_FEEDBACK_EXT, Bits::TRANSFORM_FEEDBACK_WRITE_EXT) => {
                self.feedback.push(buffer_bytes(item)?)
            }
            (Stage::CONDITIONAL_RENDERING_EXT, Bits::CONDITIONAL_RENDERING_READ_EXT) => {
                let (buffer, bytes) = buffer_bytes(item)?;
                if bytes.end - bytes.start != 4 || self.condition.is_some() {
                    return UnsupportedProgram::error("a condition is one word");
                }
                self.condition = Some((buffer, bytes.start));
            }
            (Stage::COLOR_ATTACHMENT_OUTPUT, Bits::COLOR_ATTACHMENT_READ | Bits::COLOR_ATTACHMENT_WRITE) => {
                self.colors.push(item.clone());
            }
            (Stage::EARLY_FRAGMENT_TESTS | Stage::LATE_FRAGMENT_TESTS, _) => self.tests.push(item.clone()),
            (Stage::FRAGMENT_SHADER, Bits::INPUT_ATTACHMENT_READ) => self.inputs.push(item.clone()),
            (Stage::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR, _) => self.shading_rate = Some(item.clone()),
            (Stage::FRAGMENT_DENSITY_PROCESS_EXT, _) => self.density_map = Some(item.clone()),
            _ => match self.shaders.iter_mut().find(|own| own.0 == item.stage) {
                Some(own) => own.1.push(item.clone()),
                None => self.shaders.push((item.stage, vec![item.clone()])),
            },
        }
        Ok(())
    }

    /// The attributes of the vertex buffer, if they are not all of its bytes.
    fn attributes(&self) -> Result<Option<AttributeBytes>, UnsupportedProgram> {
        let is_word = |it: std::ops::Range<u64>| it.end - it.start == 4;
        match self.attributes[..] {
            [] => Ok(None),
            [one] if self.vertices.len() == 1 && one.attributes().into_iter().all(is_word) => Ok(Some(one)),
            _ => UnsupportedProgram::error("several vertex buffers, or attributes that are no words"),
        }
    }

    fn is_only_color(&self) -> bool {
        let is_empty = self.vertices.is_empty() && self.indices.is_empty() && self.indirect.is_empty();
        let is_plain = self.byte_counts.is_empty() && self.feedback.is_empty() && self.condition.is_none();
        is_empty && is_plain && self.shaders.is_empty() && self.inputs.is_empty() && self.tests.is_empty()
    }

    /// The attachments that a draw outside of everything needs.
    fn required_attachments(&self, program: &Program) -> Result<LiveAttachments, UnsupportedProgram> {
        if !self.inputs.is_empty() {
            return UnsupportedProgram::error("an input attachment outside of a render pass");
        }
        let mut targets = LiveAttachments::default();
        let mut add_area = |region: &ImageRegion, resource| {
            let extent = image(program, resource).map_or([1; 3], |it| it.extent_of_mip(region.mips.start));
            let area = region.area.unwrap_or(Area { offset: [0; 3], extent: [extent[0], extent[1], 1] });
            match targets.area {
                Some(own) if own != area => UnsupportedProgram::error("attachments of different areas"),
                _ => {
                    targets.area = Some(area);
                    Ok(())
                }
            }
        };
        let view = |access: &Access| -> Result<AttachmentView, UnsupportedProgram> {
            let Region::Image(region) = &access.region else {
                return UnsupportedProgram::error("a buffer as an attachment");
            };
            if region.components != Components::ALL {
                return UnsupportedProgram::error("the store operation of an attachment writes all components");
            }
            let region = ImageRegion { area: None, ..region.clone() };
            Ok(AttachmentView { resource: access.resource, region })
        };
        for color in self.colors.iter().chain(&self.tests) {
            if let Region::Image(region) = &color.region {
                add_area(region, color.resource)?;
            }
        }
        for color in &self.colors {
            let view = view(color)?;
            if !targets.colors.contains(&view) {
                targets.colors.push(view);
            }
        }
        for test in &self.tests {
            let view = view(test)?;
            let aspects = view.region.aspects;
            if aspects & DEPTH != 0 {
                targets.depth = Some(view.clone());
            }
            if aspects & STENCIL != 0 {
                targets.stencil = Some(view);
            }
        }
        targets.shading_rate = self.shading_rate.as_ref().map(view).transpose()?;
        targets.density_map = self.density_map.as_ref().map(view).transpose()?;
        if let Some(rate) = &targets.shading_rate {
            targets.area = Some(rate_area(program, rate));
        }
        Ok(targets)
    }

    fn shader_bindings(
        &self,
        program: &Program,
        targets: &LiveAttachments,
    ) -> Result<Vec<(u64, Vec<ShaderBinding>)>, UnsupportedProgram> {
        let mut found: Vec<(u64, Vec<ShaderBinding>)> = Vec::new();
        for (stage, accesses) in &self.shaders {
            found.push((*stage, shader_bindings(program, accesses)?));
        }
        for input in &self.inputs {
            let Region::Image(region) = &input.region else {
                return UnsupportedProgram::error("a buffer as an attachment");
            };
            let is_it = |view: &AttachmentView| view.resource == input.resource && view.region.mips == region.mips;
            let Some(index) = targets.inputs.iter().position(is_it) else {
                return UnsupportedProgram::error("an input attachment that the subpass does not have");
            };
            if !covers_render_area(program, input, targets) {
                return UnsupportedProgram::error("an input attachment is read in all of the render area");
            }
            let region = ImageRegion { area: None, ..region.clone() };
            let kind = BindingKind::Input(index as u32);
            let binding = ShaderBinding {
                resource: input.resource,
                region: Region::Image(region),
                kind,
                reads: true,
                writes: false,
            };
            match found.iter_mut().find(|own| own.0 == FRAGMENT) {
                Some(own) => own.1.push(binding),
                None => found.push((FRAGMENT, vec![binding])),
            }
        }
        Ok(found)
    }

    /// Where draws have their parameters from; each stands for a draw.
    fn sources(&self) -> Result<Vec<DrawSource>, UnsupportedProgram> {
        /// Bytes of the parameters of a draw, and of one with indices.
        const SIZES: [u64; 2] = [16, 20];
        const WORD: u64 = 4;
        let mut found = Vec::new();
        for (buffer, bytes) in &self.indirect {
            let size = SIZES[usize::from(!self.indices.is_empty())];
            let whole = (bytes.end - bytes.start) / size * size;
            if whole > 0 {
                found.push(DrawSource::Indirect((*buffer, bytes.start..bytes.start + whole)));
            }
            let mut at = bytes.start + whole;
            while at < bytes.end {
                found.push(DrawSource::Count(*buffer, at));
                at += WORD;
            }
            if at != bytes.end {
                return UnsupportedProgram::error("parameters of draws are words");
            }
        }
        for (buffer, bytes) in &self.byte_counts {
            if !(bytes.end - bytes.start).is_multiple_of(WORD) {
                return UnsupportedProgram::error("counters are words");
            }
            found.extend((bytes.start..bytes.end).step_by(WORD as usize).map(|at| DrawSource::ByteCount(*buffer, at)));
        }
        Ok(found)
    }

    /// How color attachments are written; a write to only a part of the render area is a clear of that part.
    fn color_uses(
        &self,
        program: &Program,
        targets: &LiveAttachments,
        is_inside: bool,
    ) -> Result<(Vec<ColorUse>, Vec<LiveCommand>), UnsupportedProgram> {
        let mut uses: Vec<ColorUse> = Vec::new();
        let mut reads: Vec<u32> = Vec::new();
        let mut clears = Vec::new();
        for color in &self.colors {
            let Region::Image(region) = &color.region else {
                return UnsupportedProgram::error("a buffer as an attachment");
            };
            if is_inside && color.order != RasterOrder::Color {
                return UnsupportedProgram::error("attachments are always in the order of fragments");
            }
            let Some(index) = targets.colors.iter().position(|view| reaches_layers(view, color, targets)) else {
                return UnsupportedProgram::error("a color attachment that the subpass does not have");
            };
            let is_write = color.access == Bits::COLOR_ATTACHMENT_WRITE.0;
            if covers_render_area(program, color, targets) {
                match is_write {
                    true => {
                        let mask = region.components.0;
                        uses.push(ColorUse { index: index as u32, mask, is_blended: false });
                    }
                    false => reads.push(index as u32),
                }
                continue;
            }
            let (true, Some(area), Components::ALL) = (is_write, region.area, region.components) else {
                return UnsupportedProgram::error(
                    "a draw reads, and writes single components, in all of the render area",
                );
            };
            let first = targets.colors[index].region.layers.start;
            // With multiview the views decide.
            let layers = match targets.view_mask {
                0 => region.layers.start - first..region.layers.end - first,
                _ => 0..1,
            };
            clears.push(LiveCommand::ClearAttachment { index: index as u32, area, layers });
        }
        for index in reads {
            match uses.iter_mut().find(|it| it.index == index) {
                Some(color_use) => color_use.is_blended = true,
                None => return UnsupportedProgram::error("blending reads what it writes"),
            }
        }
        Ok((uses, clears))
    }

    /// Whether input attachments are read in the order of fragments: all of a draw are, or none.
    fn is_ordered(&self) -> Result<bool, UnsupportedProgram> {
        let mut orders = self.inputs.iter().map(|it| it.order);
        let first = orders.next().unwrap_or_default();
        match orders.all(|it| it == first) && first != RasterOrder::DepthStencil {
            true => Ok(first == RasterOrder::Color),
            false => UnsupportedProgram::error("input attachments of which some are in order"),
        }
    }

    /// Whether attachments are used in more than their first layer.
    fn chooses_layer(&self, targets: &LiveAttachments) -> bool {
        let has_layers = |it: &Access| matches!(&it.region, Region::Image(it) if it.layers.len() > 1);
        targets.view_mask == 0 && self.colors.iter().chain(&self.tests).any(has_layers)
    }

    /// Depth and stencil tests, one way for each draw.
    fn add_tests(
        &self,
        program: &Program,
        targets: &LiveAttachments,
        is_inside: bool,
        bare: &DrawCommand,
        draws: &mut Vec<DrawCommand>,
    ) -> Result<(), UnsupportedProgram> {
        for item in &self.tests {
            let Region::Image(region) = &item.region else {
                return UnsupportedProgram::error("a buffer as an attachment");
            };
            if is_inside && item.order != RasterOrder::DepthStencil {
                return UnsupportedProgram::error("attachments are always in the order of fragments");
            }
            let attached = [&targets.depth, &targets.stencil];
            if !attached.into_iter().flatten().any(|view| reaches_layers(view, item, targets)) {
                return UnsupportedProgram::error("a depth or stencil attachment that the subpass does not have");
            }
            if !covers_render_area(program, item, targets) {
                return UnsupportedProgram::error("depth is tested in all of the render area");
            }
            let is_early = item.stage == Stage::EARLY_FRAGMENT_TESTS.0;
            let is_write = item.access == Bits::DEPTH_STENCIL_ATTACHMENT_WRITE.0;
            let test = if is_write { DepthStencilUse::Writes } else { DepthStencilUse::Reads };
            let is_free = |draw: &&mut DrawCommand| draw.depth.is_none() && draw.stencil.is_none();
            let place = match draws.iter_mut().find(is_free) {
                Some(free) => free,
                None => {
                    draws.push(bare.clone());
                    draws.last_mut().expect("just pushed")
                }
            };
            place.is_early = is_early;
            place.depth = (region.aspects & DEPTH != 0).then_some(test);
            place.stencil = (region.aspects & STENCIL != 0).then_some(test);
        }
        Ok(())
    }
}

/// Whether an access is to the layers of an attachment that draws reach: those of its views, the first, or all.
fn reaches_layers(view: &AttachmentView, access: &Access, targets: &LiveAttachments) -> bool {
    let Region::Image(region) = &access.region else { return false };
    let own = &view.region;
    let first = own.layers.start;
    let is_reached = match targets.view_mask {
        0 => region.layers == own.layers || region.layers == (first..first + 1),
        mask => (0..32).filter(|it| mask >> it & 1 != 0).map(|it| first + it).eq(region.layers.clone()),
    };
    view.resource == access.resource && own.mips == region.mips && is_reached
}

/// Whether an access is to all of the render area.
fn covers_render_area(program: &Program, access: &Access, targets: &LiveAttachments) -> bool {
    let (Region::Image(region), Some(image)) = (&access.region, image(program, access.resource)) else { return false };
    let [width, height, _] = image.extent_of_mip(region.mips.start);
    let cut = |area: Area| {
        let end = |at: usize, most: u32| area.offset[at].saturating_add(area.extent[at]).min(most);
        [area.offset[0], area.offset[1], end(0, width), end(1, height)]
    };
    let whole = Area { offset: [0; 3], extent: [width, height, 1] };
    cut(region.area.unwrap_or(whole)) == cut(targets.area.unwrap_or(whole))
}

/// The render area of which a shading rate attachment, with texels of this size, is all.
pub(crate) const RATE_TEXEL: u32 = 8;

fn rate_area(program: &Program, view: &AttachmentView) -> Area {
    let extent = image(program, view.resource).map_or([1; 3], |it| it.extent_of_mip(view.region.mips.start));
    Area { offset: [0; 3], extent: [extent[0] * RATE_TEXEL, extent[1] * RATE_TEXEL, 1] }
}
