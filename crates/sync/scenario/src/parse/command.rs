//! Commands: actions, barriers, events, render passes.

use crate::parse::scope::Version1Dependencies;
use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    Access, Area, AttachmentKind, AttachmentView, AttributeBytes, Barrier, Certainty, Command, Origin,
};
use lavascope_sync_ir::{
    ImageRegion, LoadOp, MarkerStage, RasterOrder, Region, Rendering, RenderingAttachment, Resolve, ResourceId,
    ResourceKind,
};
use lavascope_sync_ir::{SetEvent, StoreOp, WaitEvents};

use crate::error::Result;
use crate::parse::builder::{Operand, OperandUsage, ScenarioBuilder};
use crate::parse::declare::{LOADS, STORES, parse_choice};
use crate::parse::region;
use crate::parse::region::parse_bytes;
use crate::parse::scope::{access, parse_dependencies, parse_stages, parse_version_1_dependencies, stage};
use crate::parse::tokens::{Token, TokenCursor, TokenKind};
use crate::parse::words::is_write_access;

pub(crate) const COMMANDS: [&str; 20] = [
    "copy", "blit", "resolve", "clear", "fill", "draw", "dispatch", "access", "barrier", "barrier1", "set", "set1",
    "reset", "wait", "wait1", "begin", "next", "end", "execute", "cmd",
];

/// The clauses of `draw` and `dispatch`; if the stage is zero here, `at` defines it.
pub(crate) struct AccessClause {
    pub(crate) verb: &'static str,
    /// The word behind the verb, or nothing.
    pub(crate) kind: &'static str,
    pub(crate) stage: u64,
    pub(crate) access: u64,
    pub(crate) order: RasterOrder,
}

const fn clause(
    verb: &'static str,
    kind: &'static str,
    stage: PipelineStageFlags2,
    access: AccessFlags2,
    order: RasterOrder,
) -> AccessClause {
    AccessClause { verb, kind, stage: stage.0, access: access.0, order }
}

const ANY: PipelineStageFlags2 = PipelineStageFlags2::NONE;
const COLOR: PipelineStageFlags2 = PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT;

pub(crate) const CLAUSES: [AccessClause; 12] = [
    clause("reads", "", ANY, AccessFlags2::SHADER_STORAGE_READ, RasterOrder::None),
    clause("writes", "", ANY, AccessFlags2::SHADER_STORAGE_WRITE, RasterOrder::None),
    clause("samples", "", ANY, AccessFlags2::SHADER_SAMPLED_READ, RasterOrder::None),
    clause("reads", "uniform", ANY, AccessFlags2::UNIFORM_READ, RasterOrder::None),
    clause(
        "reads",
        "vertices",
        PipelineStageFlags2::VERTEX_ATTRIBUTE_INPUT,
        AccessFlags2::VERTEX_ATTRIBUTE_READ,
        RasterOrder::None,
    ),
    clause("reads", "indices", PipelineStageFlags2::INDEX_INPUT, AccessFlags2::INDEX_READ, RasterOrder::None),
    clause(
        "reads",
        "indirect",
        PipelineStageFlags2::DRAW_INDIRECT,
        AccessFlags2::INDIRECT_COMMAND_READ,
        RasterOrder::None,
    ),
    clause(
        "reads",
        "input",
        PipelineStageFlags2::FRAGMENT_SHADER,
        AccessFlags2::INPUT_ATTACHMENT_READ,
        RasterOrder::None,
    ),
    clause("reads", "color", COLOR, AccessFlags2::COLOR_ATTACHMENT_READ, RasterOrder::Color),
    clause("writes", "color", COLOR, AccessFlags2::COLOR_ATTACHMENT_WRITE, RasterOrder::Color),
    clause("reads", "depth", ANY, AccessFlags2::DEPTH_STENCIL_ATTACHMENT_READ, RasterOrder::DepthStencil),
    clause("writes", "depth", ANY, AccessFlags2::DEPTH_STENCIL_ATTACHMENT_WRITE, RasterOrder::DepthStencil),
];

/// A command, and its operands where they stand.
pub(crate) fn parse_command(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<(Command, Vec<Operand>)> {
    let token = cursor.word("a command")?;
    let mut operands = Vec::new();
    let ops = &mut operands;
    let command = match token.text {
        "copy" => transfer(builder, cursor, PipelineStageFlags2::COPY, ops)?,
        "blit" => transfer(builder, cursor, PipelineStageFlags2::BLIT, ops)?,
        "resolve" => transfer(builder, cursor, PipelineStageFlags2::RESOLVE, ops)?,
        "clear" | "fill" => clears(builder, cursor, ops)?,
        "draw" => clauses(builder, cursor, 0, ops)?,
        "dispatch" => clauses(builder, cursor, PipelineStageFlags2::COMPUTE_SHADER.0, ops)?,
        "access" => clauses(builder, cursor, 0, ops)?,
        "barrier" => Command::Barrier(Barrier::Sync2 { dependencies: parse_dependencies(builder, cursor, ops)? }),
        "barrier1" => {
            let Version1Dependencies { src_stages, dst_stages, dependencies } =
                parse_version_1_dependencies(builder, cursor, ops)?;
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies })
        }
        "set" => {
            let event = builder.event(cursor)?;
            Command::SetEvent(SetEvent::Sync2 { event, dependencies: parse_dependencies(builder, cursor, ops)? })
        }
        "set1" => {
            let event = builder.event(cursor)?;
            Command::SetEvent(SetEvent::Sync1 { event, stages: parse_stages(cursor)? })
        }
        "reset" => Command::ResetEvent { event: builder.event(cursor)?, stages: parse_stages(cursor)? },
        "wait" => wait(builder, cursor, ops)?,
        "wait1" => wait_one(builder, cursor, ops)?,
        "begin" => begin(builder, cursor, ops)?,
        "next" => cursor.expect("subpass").map(|()| Command::NextSubpass)?,
        "end" if cursor.take("rendering") => Command::EndRendering,
        "end" => cursor.expect("pass").map(|()| Command::EndRenderPass)?,
        "execute" => execute(builder, cursor)?,
        _ => return Err(cursor.unknown(token, "command", COMMANDS.into_iter().filter(|it| *it != "cmd"))),
    };
    cursor.end()?;
    Ok((command, operands))
}

fn operand(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    usage: OperandUsage,
    operands: &mut Vec<Operand>,
) -> Result<(ResourceId, Region)> {
    let column = cursor.column();
    let (resource, region) = region::parse_region(builder, cursor)?;
    operands.push(Operand { resource, region: region.clone(), column, usage });
    Ok((resource, region))
}

/// `a -> b, c -> d`.
fn transfer(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    stage: PipelineStageFlags2,
    operands: &mut Vec<Operand>,
) -> Result<Command> {
    let mut accesses = Vec::new();
    loop {
        let (resource, region) = operand(builder, cursor, OperandUsage::Read, operands)?;
        accesses.push(plain(resource, region, stage.0, AccessFlags2::TRANSFER_READ.0));
        cursor.expect("->")?;
        let (resource, region) = operand(builder, cursor, OperandUsage::Write, operands)?;
        accesses.push(plain(resource, region, stage.0, AccessFlags2::TRANSFER_WRITE.0));
        if !cursor.take(",") {
            return Ok(Command::Action(accesses));
        }
    }
}

fn plain(resource: ResourceId, region: Region, stage: u64, access: u64) -> Access {
    Access::new(resource, region, stage, access)
}

fn clears(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Command> {
    let mut accesses = Vec::new();
    loop {
        let (resource, region) = operand(builder, cursor, OperandUsage::Write, operands)?;
        accesses.push(plain(resource, region, PipelineStageFlags2::CLEAR.0, AccessFlags2::TRANSFER_WRITE.0));
        if !cursor.take(",") {
            return Ok(Command::Action(accesses));
        }
    }
}

fn clauses(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    default: u64,
    operands: &mut Vec<Operand>,
) -> Result<Command> {
    let mut accesses = Vec::new();
    while !cursor.is_end() {
        let column = cursor.column();
        let is_possible = cursor.take("possibly");
        let is_generic = cursor.peek_at(1).is_some_and(|it| it.text == ":");
        let mut access = match is_generic {
            true => stage_access(builder, cursor, operands)?,
            false => verb_access(builder, cursor, default, operands)?,
        };
        if is_possible && is_write_access(access.access) {
            return Err(cursor.error_at(column, "only reads are possible ones".to_owned()));
        }
        if is_possible {
            access.certainty = Certainty::Unreported;
        }
        accesses.push(access);
        if !cursor.take(",") {
            break;
        }
    }
    // The engine wants possible reads behind all others.
    accesses.sort_by_key(|it| it.certainty == Certainty::Unreported);
    Ok(Command::Action(accesses))
}

/// `stage:access R`, with `ordered color` or `ordered depth` where fragments are in order, and `marker STAGE` where markers
/// are.
fn stage_access(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Access> {
    let column = cursor.column();
    let bits = stage(cursor)?;
    let stage = one_bit(cursor, column, bits, "stage")?;
    cursor.expect(":")?;
    let column = cursor.column();
    let bits = access(cursor, stage)?;
    let access = one_bit(cursor, column, bits, "access")?;
    let usage = if is_write_access(access) { OperandUsage::Write } else { OperandUsage::Read };
    let (resource, region) = operand(builder, cursor, usage, operands)?;
    let mut order = RasterOrder::None;
    if cursor.take("ordered") {
        order = parse_choice(cursor, "order", &[("color", RasterOrder::Color), ("depth", RasterOrder::DepthStencil)])?;
    } else if cursor.take("atomic") {
        order = RasterOrder::Atomic;
    } else if cursor.take("marker") {
        let column = cursor.column();
        let bits = self::stage(cursor)?;
        order = RasterOrder::marker(MarkerStage::from_stages(one_bit(cursor, column, bits, "stage")?));
    }
    Ok(Access { order, ..Access::new(resource, region, stage, access) })
}

fn one_bit(cursor: &TokenCursor, column: u32, bits: u64, what: &str) -> Result<u64> {
    if bits.count_ones() == 1 { Ok(bits) } else { Err(cursor.error_at(column, format!("one {what} is wanted here"))) }
}

/// `reads b at vertex`, `writes color att`.
fn verb_access(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    default: u64,
    operands: &mut Vec<Operand>,
) -> Result<Access> {
    let verb = cursor.word("`reads`, `writes` or `samples`")?;
    if !CLAUSES.iter().any(|it| it.verb == verb.text) {
        return Err(cursor.unknown(verb, "way of access", ["reads", "writes", "samples"].into_iter()));
    }
    let kind = cursor.peek().map_or("", |it| it.text);
    let found = CLAUSES.iter().find(|it| it.verb == verb.text && it.kind == kind && !kind.is_empty());
    let clause = match found {
        Some(clause) => {
            cursor.take(kind);
            clause
        }
        None => {
            CLAUSES.iter().find(|it| it.verb == verb.text && it.kind.is_empty()).expect("each verb has a plain use")
        }
    };
    let usage = if clause.verb == "writes" { OperandUsage::Write } else { OperandUsage::Read };
    let (resource, region) = operand(builder, cursor, usage, operands)?;
    let origin = if clause.kind == "vertices" { attributes(cursor)? } else { Origin::NONE };
    let stage = match clause.stage {
        0 if cursor.take("at") => {
            let column = cursor.column();
            let bits = stage(cursor)?;
            one_bit(cursor, column, bits, "stage")?
        }
        0 if default != 0 => default,
        0 => return Err(cursor.unexpected("`at` and a stage")),
        fixed => fixed,
    };
    Ok(Access { order: clause.order, origin, ..Access::new(resource, region, stage, clause.access) })
}

/// `stride 16 [0..4] [8..12]`: the bytes of each vertex that are read, where that is not all.
fn attributes(cursor: &mut TokenCursor) -> Result<Origin> {
    if !cursor.take("stride") {
        return Ok(Origin::NONE);
    }
    let column = cursor.column();
    let stride = cursor.number("the bytes from one vertex to the next")?;
    let mut read = Vec::new();
    while cursor.peek().is_some_and(|it| it.text == "[") {
        let bytes = parse_bytes(cursor)?;
        read.push([bytes.start, bytes.end]);
    }
    let pattern = AttributeBytes::new(stride, read.into_iter());
    pattern.map(Origin::attributes).ok_or_else(|| cursor.error_at(column, "no attributes of one vertex".to_owned()))
}

/// Version 2: each event with its own dependencies, `and` between them.
fn wait(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Command> {
    let mut events = Vec::new();
    loop {
        let event = builder.event(cursor)?;
        events.push((event, parse_dependencies(builder, cursor, operands)?));
        if !cursor.take("and") {
            return Ok(Command::WaitEvents(WaitEvents::Sync2 { events }));
        }
    }
}

fn wait_one(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Command> {
    let mut events = vec![builder.event(cursor)?];
    while cursor.take("and") {
        events.push(builder.event(cursor)?);
    }
    let Version1Dependencies { src_stages, dst_stages, dependencies } =
        parse_version_1_dependencies(builder, cursor, operands)?;
    Ok(Command::WaitEvents(WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies }))
}

fn execute(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<Command> {
    let mut all = vec![builder.command_buffer(cursor)?];
    while cursor.next_is_word() {
        all.push(builder.command_buffer(cursor)?);
    }
    Ok(Command::Execute(all))
}

fn begin(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Command> {
    if cursor.take("rendering") {
        return rendering(builder, cursor, operands);
    }
    let column = cursor.column();
    let pass = builder.render_pass(cursor)?;
    let mut views = Vec::new();
    if cursor.take("with") {
        loop {
            views.push(view(builder, cursor, operands)?);
            if !cursor.take(",") {
                break;
            }
        }
    }
    let wanted = builder.program.render_passes[pass.0 as usize].attachments.len();
    if views.len() != wanted {
        return Err(cursor.error_at(column, format!("the pass has {wanted} attachments, not {}", views.len())));
    }
    let area = area(builder, cursor, views.first())?;
    Ok(Command::BeginRenderPass { pass, views, area })
}

fn view(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<AttachmentView> {
    let column = cursor.column();
    let (resource, region) = region::parse_image(builder, cursor)?;
    if region.area.is_some() {
        return Err(cursor.error_at(column, "views have no area: write `area [..]` behind them".to_owned()));
    }
    operands.push(Operand { resource, region: Region::Image(region.clone()), column, usage: OperandUsage::Any });
    Ok(AttachmentView { resource, region })
}

fn area(builder: &ScenarioBuilder, cursor: &mut TokenCursor, view: Option<&AttachmentView>) -> Result<Area> {
    if cursor.take("area") {
        return region::parse_area(cursor);
    }
    Ok(whole_area(&builder.program, view))
}

/// The area of a view, which is the default render area.
pub(crate) fn whole_area(program: &lavascope_sync_ir::Program, view: Option<&AttachmentView>) -> Area {
    let extent =
        view.and_then(|attachment_view| match &program.resources.get(attachment_view.resource.0 as usize)?.kind {
            ResourceKind::Image(image) => Some(image.extent_of_mip(mip(&attachment_view.region))),
            ResourceKind::Buffer { .. } => None,
        });
    let [width, height, _] = extent.unwrap_or([1; 3]);
    Area { offset: [0; 3], extent: [width, height, 1] }
}

fn mip(region: &ImageRegion) -> u32 {
    region.mips.start
}

pub(crate) const RENDERING_KINDS: [(&str, AttachmentKind); 3] =
    [("color", AttachmentKind::Color), ("depth", AttachmentKind::Depth), ("stencil", AttachmentKind::Stencil)];

/// `begin rendering color att load=clear resolve dst, depth d area [0..4, 0..4] views=0x3 suspend resume`.
fn rendering(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<Command> {
    let mut attachments = Vec::new();
    while cursor.peek().is_some_and(|it: Token| RENDERING_KINDS.iter().any(|kind| kind.0 == it.text)) {
        attachments.push(rendering_attachment(builder, cursor, operands)?);
        if !cursor.take(",") {
            break;
        }
    }
    let area = area(builder, cursor, attachments.first().map(|it| &it.view))?;
    let mut made = Rendering { attachments, area, view_mask: 0, is_suspending: false, is_resuming: false };
    while cursor.peek().is_some_and(|it| it.kind == TokenKind::Word) {
        let token = cursor.word("an option")?;
        match token.text {
            "views" => {
                cursor.expect("=")?;
                made.view_mask = cursor.number32("a mask of views")?;
            }
            "suspend" => made.is_suspending = true,
            "resume" => made.is_resuming = true,
            _ => {
                let words = ["color", "depth", "stencil", "area", "views", "suspend", "resume"];
                return Err(cursor.unknown(token, "option of rendering", words.into_iter()));
            }
        }
    }
    Ok(Command::BeginRendering(made))
}

fn rendering_attachment(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    operands: &mut Vec<Operand>,
) -> Result<RenderingAttachment> {
    let kind = parse_choice(cursor, "kind of attachment", &RENDERING_KINDS)?;
    let view = view(builder, cursor, operands)?;
    let mut made = RenderingAttachment { kind, view, load: LoadOp::Load, store: StoreOp::Store, resolve: None };
    loop {
        if cursor.take("load") {
            cursor.expect("=")?;
            made.load = parse_choice(cursor, "load operation", &LOADS)?;
        } else if cursor.take("store") {
            cursor.expect("=")?;
            made.store = parse_choice(cursor, "store operation", &STORES)?;
        } else if cursor.take("resolve") {
            made.resolve = Some(Resolve { view: self::view(builder, cursor, operands)?, mode: 0 });
        } else {
            return Ok(made);
        }
    }
}
