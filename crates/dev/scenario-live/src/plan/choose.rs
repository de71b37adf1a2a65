//! Which commands of Vulkan make the accesses of an action.

use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage};
use lavascope_sync_ir::ResourceKind;
use lavascope_sync_ir::{
    Access, Certainty, Command, Components, ImageDesc, Program, RasterOrder, Region, Resource, ResourceId,
};

use crate::error::UnsupportedProgram;
use crate::plan::live_command::{
    BindingKind, BufferBytes, Dispatch, LiveAttachments, LiveCommand, ShaderBinding, StructureBuild, TraceRays,
};
use crate::plan::open_attachments::open_attachments;
use crate::plan::{draw, formats, transfer};

const TRANSFERS: u64 = Stage::COPY.0 | Stage::BLIT.0 | Stage::RESOLVE.0 | Stage::CLEAR.0;

/// The kind of command that makes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LiveCommandKind {
    Marker,
    Transfer,
    Dispatch,
    Draw,
    Trace,
    Build,
    CopyStructure,
    Preprocess,
    Encode,
}

/// For each command buffer, for each of its commands: what stands for it. Only actions need a choice.
pub(crate) fn live_commands(program: &Program) -> Result<Vec<Vec<Vec<LiveCommand>>>, UnsupportedProgram> {
    let scenes = open_attachments(program)?;
    let of_command = |(command, scene): (&Command, &Option<LiveAttachments>)| match command {
        Command::Action(accesses) => commands_of_action(program, accesses, scene.as_ref()),
        _ => Ok(Vec::new()),
    };
    let of_buffer = |(at, scenes): (usize, &Vec<Option<LiveAttachments>>)| {
        program.command_buffers[at].commands.iter().zip(scenes).map(of_command).collect()
    };
    scenes.iter().enumerate().map(of_buffer).collect()
}

fn commands_of_action(
    program: &Program,
    accesses: &[Access],
    scene: Option<&LiveAttachments>,
) -> Result<Vec<LiveCommand>, UnsupportedProgram> {
    if accesses.iter().any(|it| it.certainty != Certainty::Certain) {
        return UnsupportedProgram::error("an access that is not certain");
    }
    let has_dispatch = accesses.iter().any(|it| it.stage == Stage::COMPUTE_SHADER.0);
    let is_dispatched = |it: &Access| has_dispatch && is_parameters_of_dispatch(it);
    let is_drawn = |it: &Access| it.stage & (TRANSFERS | Stage::COMPUTE_SHADER.0) == 0 && !is_dispatched(it);
    let is_graphics = scene.is_some() || accesses.is_empty() || accesses.iter().any(is_drawn);
    let kinds: Vec<LiveCommandKind> =
        accesses.iter().map(|it| command_kind(it, is_graphics)).collect::<Result<_, _>>()?;
    let mut seen: Vec<LiveCommandKind> = Vec::new();
    kinds.iter().for_each(|live_command_kind| {
        if !seen.contains(live_command_kind) {
            seen.push(*live_command_kind)
        }
    });
    if seen.is_empty() {
        return draw::draw_commands(program, &[], scene);
    }
    let parts: Vec<Vec<Access>> = seen.iter().map(|kind| accesses_of_kind(accesses, &kinds, *kind)).collect();
    check_disjoint(&parts)?;
    let mut deeds = Vec::new();
    for (kind, part) in seen.into_iter().zip(&parts) {
        deeds.extend(match kind {
            LiveCommandKind::Marker => part.iter().map(marker).collect::<Result<_, _>>()?,
            LiveCommandKind::Transfer => transfer::transfer_commands(program, part)?,
            LiveCommandKind::Dispatch => vec![dispatch(program, part)?],
            LiveCommandKind::Draw => draw::draw_commands(program, part, scene)?,
            LiveCommandKind::Trace => vec![trace(program, part)?],
            LiveCommandKind::Build => vec![build(part)?],
            LiveCommandKind::CopyStructure => vec![copy_structure(part)?],
            LiveCommandKind::Preprocess => part.iter().map(preprocess).collect::<Result<_, _>>()?,
            LiveCommandKind::Encode => encode(part)?,
        });
    }
    Ok(deeds)
}

fn is_parameters_of_dispatch(access: &Access) -> bool {
    let is_fit = matches!(&access.region, Region::Buffer(bytes) if bytes.end - bytes.start == DISPATCH_BYTES);
    access.stage == Stage::DRAW_INDIRECT.0 && is_fit
}

fn accesses_of_kind(accesses: &[Access], kinds: &[LiveCommandKind], kind: LiveCommandKind) -> Vec<Access> {
    accesses.iter().zip(kinds).filter(|it| *it.1 == kind).map(|it| it.0.clone()).collect()
}

fn command_kind(access: &Access, is_graphics: bool) -> Result<LiveCommandKind, UnsupportedProgram> {
    Ok(match Stage(access.stage) {
        _ if access.order.marker_stage().is_some() => LiveCommandKind::Marker,
        _ if access.stage & TRANSFERS != 0 => LiveCommandKind::Transfer,
        Stage::COMPUTE_SHADER => LiveCommandKind::Dispatch,
        Stage::DRAW_INDIRECT if !is_graphics => LiveCommandKind::Dispatch,
        Stage::RAY_TRACING_SHADER_KHR => LiveCommandKind::Trace,
        Stage::ACCELERATION_STRUCTURE_BUILD_KHR => LiveCommandKind::Build,
        Stage::ACCELERATION_STRUCTURE_COPY_KHR => LiveCommandKind::CopyStructure,
        Stage::VIDEO_ENCODE_KHR => LiveCommandKind::Encode,
        Stage::COMMAND_PREPROCESS_EXT => LiveCommandKind::Preprocess,
        Stage::DRAW_INDIRECT
        | Stage::INDEX_INPUT
        | Stage::VERTEX_ATTRIBUTE_INPUT
        | Stage::VERTEX_SHADER
        | Stage::TESSELLATION_CONTROL_SHADER
        | Stage::TESSELLATION_EVALUATION_SHADER
        | Stage::GEOMETRY_SHADER
        | Stage::FRAGMENT_SHADER
        | Stage::EARLY_FRAGMENT_TESTS
        | Stage::LATE_FRAGMENT_TESTS
        | Stage::COLOR_ATTACHMENT_OUTPUT
        | Stage::TASK_SHADER_EXT
        | Stage::MESH_SHADER_EXT
        | Stage::TRANSFORM_FEEDBACK_EXT
        | Stage::CONDITIONAL_RENDERING_EXT
        | Stage::FRAGMENT_SHADING_RATE_ATTACHMENT_KHR
        | Stage::FRAGMENT_DENSITY_PROCESS_EXT => LiveCommandKind::Draw,
        Stage(other) => {
            return UnsupportedProgram::error(format!("no command is known that has accesses at stage {other:#x}"));
        }
    })
}

/// Accesses of one action do not conflict; those of several commands would.
pub(crate) fn check_disjoint(parts: &[Vec<Access>]) -> Result<(), UnsupportedProgram> {
    let is_write = |item: &Access| {
        lavascope_abi::SYNC_ACCESSES.iter().any(|own| own.access == item.access && own.name.contains("_WRITE_BIT"))
    };
    for (at, part) in parts.iter().enumerate() {
        let others = parts[at + 1..].iter().flatten();
        for (one, other) in others.flat_map(|other| part.iter().map(move |one| (one, other))) {
            if one.resource == other.resource
                && (is_write(one) || is_write(other))
                && regions_overlap(&one.region, &other.region)
            {
                return UnsupportedProgram::error("accesses to the same place that take several commands");
            }
        }
    }
    Ok(())
}

fn regions_overlap(one: &Region, other: &Region) -> bool {
    match (one, other) {
        (Region::Buffer(one), Region::Buffer(other)) => one.start < other.end && other.start < one.end,
        // Coarse: areas are ignored.
        (Region::Image(one), Region::Image(other)) => {
            let overlap = |a: &std::ops::Range<u32>, b: &std::ops::Range<u32>| a.start < b.end && b.start < a.end;
            one.aspects & other.aspects != 0 && overlap(&one.mips, &other.mips) && overlap(&one.layers, &other.layers)
        }
        _ => false,
    }
}

pub(crate) fn resource(program: &Program, id: ResourceId) -> &Resource {
    &program.resources[id.0 as usize]
}

pub(crate) fn image(program: &Program, id: ResourceId) -> Option<&ImageDesc> {
    match &resource(program, id).kind {
        ResourceKind::Image(image) => Some(image),
        ResourceKind::Buffer { .. } => None,
    }
}

/// The bytes of an access to a buffer.
pub(crate) fn buffer_bytes(access: &Access) -> Result<BufferBytes, UnsupportedProgram> {
    match &access.region {
        Region::Buffer(bytes) => Ok((access.resource, bytes.clone())),
        Region::Image(_) => UnsupportedProgram::error("an image where only buffers are read"),
    }
}

/// The accesses of one shader stage as descriptors; a read and a write in one place are one of them.
pub(crate) fn shader_bindings(
    program: &Program,
    accesses: &[Access],
) -> Result<Vec<ShaderBinding>, UnsupportedProgram> {
    let is_in_memory = |it: &&Access| it.access == Bits::DESCRIPTOR_BUFFER_READ_EXT.0;
    if let Some(item) = accesses.iter().find(is_in_memory) {
        let is_rest = matches!((&item.region, &resource(program, item.resource).kind),
            (Region::Buffer(bytes), ResourceKind::Buffer { size }) if bytes.end == *size);
        if accesses.len() > 1 || !is_rest {
            return UnsupportedProgram::error("descriptors in a buffer are alone there, up to its end");
        }
    }
    let mut found: Vec<ShaderBinding> = Vec::new();
    for item in accesses {
        for made in bindings_of_access(program, item)? {
            let same = found
                .iter_mut()
                .find(|own| (own.resource, own.kind, &own.region) == (made.resource, made.kind, &made.region));
            match same {
                Some(own) => {
                    own.reads |= made.reads;
                    own.writes |= made.writes;
                }
                None => found.push(made),
            }
        }
    }
    Ok(found)
}

fn bindings_of_access(program: &Program, item: &Access) -> Result<Vec<ShaderBinding>, UnsupportedProgram> {
    let (image, is_atomic) = (image(program, item.resource), item.order == RasterOrder::Atomic);
    let (kind, reads) = match (Bits(item.access), image.is_some()) {
        (Bits::SHADER_STORAGE_READ, false) if is_atomic => (BindingKind::Counter, true),
        (Bits::SHADER_STORAGE_WRITE, false) if is_atomic => (BindingKind::Counter, false),
        (Bits::SHADER_STORAGE_READ, false) => (BindingKind::StorageBuffer, true),
        (Bits::SHADER_STORAGE_WRITE, false) => (BindingKind::StorageBuffer, false),
        (Bits::UNIFORM_READ, false) => (BindingKind::UniformBuffer, true),
        (Bits::SHADER_SAMPLED_READ, false) => (BindingKind::TexelBuffer, true),
        (Bits::ACCELERATION_STRUCTURE_READ_KHR, false) => (BindingKind::Structure, true),
        (Bits::SHADER_STORAGE_READ, true) => (BindingKind::StorageImage, true),
        (Bits::SHADER_STORAGE_WRITE, true) => (BindingKind::StorageImage, false),
        (Bits::SHADER_SAMPLED_READ, true) => (BindingKind::SampledImage, true),
        (Bits::DESCRIPTOR_BUFFER_READ_EXT, false) => (BindingKind::Descriptors, true),
        (Bits::UNIFORM_READ, true) => return UnsupportedProgram::error("no image is a uniform buffer"),
        (Bits(other), _) => return UnsupportedProgram::error(format!("no shader has accesses {other:#x}")),
    };
    let made = |region| ShaderBinding { resource: item.resource, region, kind, reads, writes: !reads };
    match (&item.region, image) {
        (Region::Image(region), Some(image)) => {
            if !covers_whole_image(image, region) {
                return UnsupportedProgram::error("a shader may touch every texel of its view");
            }
            let region = lavascope_sync_ir::ImageRegion { area: None, ..region.clone() };
            // A view for descriptors has one aspect.
            let aspects = [formats::DEPTH, formats::STENCIL].into_iter().filter(|it| region.aspects & it != 0);
            let mut aspects: Vec<u32> = aspects.collect();
            if aspects.is_empty() {
                aspects.push(region.aspects);
            }
            let of_aspect = |aspects| Region::Image(lavascope_sync_ir::ImageRegion { aspects, ..region.clone() });
            Ok(aspects.into_iter().map(|it| made(of_aspect(it))).collect())
        }
        _ => Ok(vec![made(item.region.clone())]),
    }
}

/// Whether all texels of the levels are meant, with all their components.
pub(crate) fn covers_whole_image(image: &ImageDesc, region: &lavascope_sync_ir::ImageRegion) -> bool {
    let covers = |area: lavascope_sync_ir::Area, mip: u32| {
        let extent = image.extent_of_mip(mip);
        area.offset == [0; 3] && (0..3).all(|it| area.extent[it] >= extent[it])
    };
    let is_all = region.area.is_none_or(|area| region.mips.clone().all(|mip| covers(area, mip)));
    is_all && region.components == Components::ALL
}

/// Bytes of the parameters of a dispatch.
const DISPATCH_BYTES: u64 = 12;

fn dispatch(program: &Program, accesses: &[Access]) -> Result<LiveCommand, UnsupportedProgram> {
    let (indirect, shader): (Vec<Access>, Vec<Access>) =
        accesses.iter().cloned().partition(|it| it.stage == Stage::DRAW_INDIRECT.0);
    let indirect = indirect.iter().map(buffer_bytes).collect::<Result<Vec<_>, _>>()?;
    if indirect.len() > 1 || indirect.iter().any(|it| it.1.end - it.1.start != DISPATCH_BYTES) {
        return UnsupportedProgram::error("a dispatch has 12 bytes of parameters");
    }
    Ok(LiveCommand::Dispatch(Dispatch {
        bindings: shader_bindings(program, &shader)?,
        indirect: indirect.into_iter().next(),
    }))
}

fn trace(program: &Program, accesses: &[Access]) -> Result<LiveCommand, UnsupportedProgram> {
    let (tables, shader): (Vec<Access>, Vec<Access>) =
        accesses.iter().cloned().partition(|it| it.access == Bits::SHADER_BINDING_TABLE_READ_KHR.0);
    if tables.len() > 3 {
        return UnsupportedProgram::error("rays have three tables besides their first");
    }
    let tables = tables.iter().map(buffer_bytes).collect::<Result<_, _>>()?;
    Ok(LiveCommand::Trace(TraceRays { bindings: shader_bindings(program, &shader)?, tables }))
}

fn build(accesses: &[Access]) -> Result<LiveCommand, UnsupportedProgram> {
    let mut made = StructureBuild::default();
    for item in accesses {
        match Bits(item.access) {
            Bits::ACCELERATION_STRUCTURE_WRITE_KHR if made.target.is_none() => made.target = Some(buffer_bytes(item)?),
            Bits::ACCELERATION_STRUCTURE_READ_KHR if made.source.is_none() => made.source = Some(buffer_bytes(item)?),
            Bits::SHADER_READ => {
                let bytes = buffer_bytes(item)?;
                let size = bytes.1.end - bytes.1.start;
                if size < AABB_BYTES || !(size - AABB_BYTES).is_multiple_of(8) {
                    return UnsupportedProgram::error("boxes of a build are 24 bytes and more, in steps of 8");
                }
                made.inputs.push(bytes);
            }
            Bits(other) => return UnsupportedProgram::error(format!("no build has accesses {other:#x}")),
        }
    }
    Ok(LiveCommand::Build(made))
}

fn marker(access: &Access) -> Result<LiveCommand, UnsupportedProgram> {
    let (Some(stage), Region::Buffer(bytes)) = (access.order.marker_stage(), &access.region) else {
        return UnsupportedProgram::error("a marker is in a buffer");
    };
    if (access.stage, access.access) != (Stage::COPY.0, Bits::TRANSFER_WRITE.0) || bytes.end != bytes.start + 4 {
        return UnsupportedProgram::error("a marker writes four bytes, as copies do");
    }
    Ok(LiveCommand::Marker { dst: access.resource, offset: bytes.start, stage: stage.stages() })
}

fn copy_structure(accesses: &[Access]) -> Result<LiveCommand, UnsupportedProgram> {
    let of = |wanted: Bits| -> Result<Option<BufferBytes>, UnsupportedProgram> {
        let mut found = accesses.iter().filter(|it| it.access == wanted.0).map(buffer_bytes);
        match (found.next(), found.next()) {
            (one, None) => one.transpose(),
            (_, Some(_)) => UnsupportedProgram::error("a copy of two acceleration structures"),
        }
    };
    let (read, written) = (Bits::ACCELERATION_STRUCTURE_READ_KHR, Bits::ACCELERATION_STRUCTURE_WRITE_KHR);
    if accesses.iter().any(|it| it.access != read.0 && it.access != written.0) {
        return UnsupportedProgram::error("a copy of an acceleration structure reads and writes just that");
    }
    Ok(LiveCommand::CopyStructure { src: of(read)?, dst: of(written)? })
}

/// Bytes of a box that a build reads.
pub(crate) const AABB_BYTES: u64 = 24;

fn preprocess(item: &Access) -> Result<LiveCommand, UnsupportedProgram> {
    match Bits(item.access) {
        Bits::COMMAND_PREPROCESS_READ_EXT => Ok(LiveCommand::Preprocess(buffer_bytes(item)?)),
        Bits(other) => UnsupportedProgram::error(format!("no preparation of commands has accesses {other:#x}")),
    }
}

fn encode(accesses: &[Access]) -> Result<Vec<LiveCommand>, UnsupportedProgram> {
    let one = |item: &Access| match (&item.region, Bits(item.access)) {
        (Region::Image(region), Bits::VIDEO_ENCODE_READ_KHR) if region.mips.len() == 1 && region.layers.len() == 1 => {
            Ok(LiveCommand::Encode { src: item.resource, region: region.clone() })
        }
        _ => UnsupportedProgram::error("only one layer of an image is read by an encoder"),
    };
    accesses.iter().map(one).collect()
}
