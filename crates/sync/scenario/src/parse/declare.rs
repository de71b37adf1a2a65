//! Declarations: memory, buffers, images, queues, events, semaphores, fences and render passes.

use lavascope_abi::Format;
use lavascope_sync_ir::ColorResolve;
use lavascope_sync_ir::{
    Attachment, AttachmentKind, EventId, FenceId, ImageDesc, LoadOp, MemoryBinding, MemoryId, Queue,
};
use lavascope_sync_ir::{QueueId, RenderPass, RenderPassId, Resource, ResourceId, ResourceKind, SemaphoreId, StoreOp};
use lavascope_sync_ir::{Subpass, SubpassDependency, SubresourceLayout, Tiling};

use crate::error::Result;
use crate::parse::builder::{NamedObject, ScenarioBuilder};
use crate::parse::region::{image_size, levels};
use crate::parse::scope::parse_scope;
use crate::parse::tokens::{Token, TokenCursor};
use crate::parse::words::{QUEUE_WORDS, format_of, format_words, layout_of, layout_words};
use crate::{DeclaredMemory, DeclaredSemaphore};

pub(crate) const COLOR_LAYOUT: i32 = 2;
pub(crate) const DEPTH_STENCIL_LAYOUT: i32 = 3;
pub(crate) const READ_LAYOUT: i32 = 5;
pub(crate) const FORMAT: Format = Format::R8G8B8A8_UNORM;

/// The first words of declarations.
pub(crate) const DECLARATIONS: [&str; 11] =
    ["memory", "buffer", "image", "queue", "event", "semaphore", "timeline", "fence", "pass", "cmd", "secondary"];

/// Reads what stands behind the first word; false if that word declares nothing here.
pub(crate) fn parse_declaration(builder: &mut ScenarioBuilder, word: &str, cursor: &mut TokenCursor) -> Result<bool> {
    match word {
        "memory" => memory(builder, cursor)?,
        "buffer" => buffers(builder, cursor)?,
        "image" => images(builder, cursor)?,
        "queue" => queues(builder, cursor)?,
        "event" => names(builder, cursor, NamedObject::Event(EventId(0)))?,
        "fence" => names(builder, cursor, NamedObject::Fence(FenceId(0)))?,
        "semaphore" => semaphores(builder, cursor, SemaphoreType::Binary)?,
        "timeline" => semaphores(builder, cursor, SemaphoreType::Timeline)?,
        "pass" => pass(builder, cursor)?,
        _ => return Ok(false),
    }
    cursor.end()?;
    Ok(true)
}

fn memory(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor) -> Result<()> {
    let token = cursor.word("the name of the memory")?;
    let id = MemoryId(builder.names.memories.len() as u32);
    let name = builder.define(cursor, token, NamedObject::Memory(id))?;
    let column = cursor.column();
    let size = cursor.number("the size of the memory")?;
    check_size(cursor, column, size)?;
    builder.names.memories.push(DeclaredMemory { name, size });
    Ok(())
}

fn buffers(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor) -> Result<()> {
    let names = name_list(cursor, "the name of a buffer")?;
    let column = cursor.column();
    let size = cursor.number("the size of the buffer")?;
    if size == 0 {
        return Err(cursor.error_at(column, "a buffer has at least one byte".to_owned()));
    }
    check_size(cursor, column, size)?;
    let is_exclusive = cursor.take("exclusive");
    let is_sparse = cursor.take("sparse");
    let binding = if is_sparse { None } else { binding(builder, cursor, size)? };
    let resource = Resource { is_exclusive, is_sparse, ..Resource::new(ResourceKind::Buffer { size }, binding) };
    add_resources(builder, cursor, names, resource)
}

/// Hazards are not looked for in more than that.
const SIZE_MAX: u64 = 1 << 40;

fn check_size(cursor: &TokenCursor, column: u32, size: u64) -> Result<()> {
    match size <= SIZE_MAX {
        true => Ok(()),
        false => Err(cursor.error_at(column, format!("{size} bytes are more than {SIZE_MAX}, the most there can be"))),
    }
}

fn images(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor) -> Result<()> {
    let names = name_list(cursor, "the name of an image")?;
    let extent = extent(cursor)?;
    let mut image = ImageDesc { format: FORMAT, extent, mips: 1, layers: 1, tiling: Tiling::Optimal, alias: false };
    let (mut is_exclusive, mut is_sparse) = (false, false);
    while cursor.next_is_word() && !cursor.is("at") {
        let token = cursor.word("a property")?;
        match token.text {
            "linear" => image.tiling = linear(cursor)?,
            "alias" => image.alias = true,
            "exclusive" => is_exclusive = true,
            "sparse" => is_sparse = true,
            "mips" => image.mips = count(cursor, 32)?,
            "layers" => image.layers = count(cursor, 65536)?,
            "format" => image.format = format(cursor)?,
            _ => {
                let words = ["format", "mips", "layers", "linear", "alias", "exclusive", "sparse", "at"];
                return Err(cursor.unknown(token, "property of an image", words.into_iter()));
            }
        }
    }
    check_layouts(cursor, &image)?;
    let binding = if is_sparse { None } else { binding(builder, cursor, image_size(&image))? };
    let resource = Resource { is_exclusive, is_sparse, ..Resource::new(ResourceKind::Image(image), binding) };
    add_resources(builder, cursor, names, resource)
}

/// Nothing, or where each level of each plane lies: `(offset=64 row=256 slice=4096 layer=4096)`.
fn linear(cursor: &mut TokenCursor) -> Result<Tiling> {
    let mut layouts = Vec::new();
    while cursor.take("(") {
        let mut made = SubresourceLayout { offset: 0, row_pitch: 0, depth_pitch: 0, array_pitch: 0 };
        while !cursor.take(")") {
            let token = cursor.word("a pitch or `)`")?;
            let place = match token.text {
                "offset" => &mut made.offset,
                "row" => &mut made.row_pitch,
                "slice" => &mut made.depth_pitch,
                "layer" => &mut made.array_pitch,
                _ => return Err(cursor.unknown(token, "pitch", ["offset", "row", "slice", "layer"].into_iter())),
            };
            cursor.expect("=")?;
            *place = u64::from(cursor.number32("a number of bytes")?);
        }
        layouts.push(made);
    }
    Ok(if layouts.is_empty() { Tiling::Linear } else { Tiling::Pitched(layouts.into()) })
}

/// Every level has a layout, and no row lies over another.
fn check_layouts(cursor: &TokenCursor, image: &ImageDesc) -> Result<()> {
    let Tiling::Pitched(layouts) = &image.tiling else { return Ok(()) };
    let error = |message: String| Err(cursor.error_at(cursor.column(), message));
    let levels = levels(image);
    if layouts.len() != levels.len() {
        return error(format!("one `(..)` for each level of each plane is wanted: {}", levels.len()));
    }
    for (layout, [width, height, depth]) in layouts.iter().zip(levels) {
        let is_bad = height > 1 && layout.row_pitch < width
            || depth > 1 && layout.depth_pitch < layout.row_pitch * (height - 1) + width
            || image.layers > 1 && layout.array_pitch == 0;
        if is_bad {
            return error(format!("rows lie over each other: `row` is at least {width}, `slice` and `layer` more"));
        }
    }
    Ok(())
}

fn count(cursor: &mut TokenCursor, max: u32) -> Result<u32> {
    cursor.expect("=")?;
    let column = cursor.column();
    let number = cursor.number32("a number")?;
    if number == 0 || number > max {
        return Err(cursor.error_at(column, format!("from 1 to {max} are allowed")));
    }
    Ok(number)
}

fn format(cursor: &mut TokenCursor) -> Result<Format> {
    cursor.expect("=")?;
    let token = cursor.word("a format")?;
    format_of(token.text).ok_or_else(|| cursor.unknown(token, "format", format_words()))
}

/// `64x64` or `64x64x8`.
fn extent(cursor: &mut TokenCursor) -> Result<[u32; 3]> {
    let token = cursor.raw_number("the extent of the image")?;
    let mut extent = [1; 3];
    for (axis, part) in token.text.split('x').enumerate() {
        let number = part.parse().ok().filter(|it| (1..=65536).contains(it));
        match (number, extent.get_mut(axis)) {
            (Some(number), Some(place)) => *place = number,
            _ => {
                let message = format!("`{}` is no extent: write `64x64` or `64x64x8`, each up to 65536", token.text);
                return Err(cursor.error_at(token.column, message));
            }
        }
    }
    Ok(extent)
}

/// `at m+64`, and the size where it is not the resource's own.
fn binding(builder: &ScenarioBuilder, cursor: &mut TokenCursor, own_size: u64) -> Result<Option<MemoryBinding>> {
    if !cursor.take("at") {
        return Ok(None);
    }
    let column = cursor.column();
    let memory = builder.memory(cursor)?;
    cursor.expect("+")?;
    let offset = cursor.number("the offset in the memory")?;
    let mut size = own_size;
    if cursor.take("size") {
        cursor.expect("=")?;
        size = cursor.number("the bytes of memory that belong to it")?;
    }
    let memory_size = builder.names.memories[memory.0 as usize].size;
    if offset.checked_add(size).is_none_or(|end| end > memory_size) {
        let message = format!("{size} bytes from {offset} do not fit into {memory_size} bytes of memory");
        return Err(cursor.error_at(column, message));
    }
    Ok(Some(MemoryBinding { memory, offset, size }))
}

fn add_resources(
    builder: &mut ScenarioBuilder,
    cursor: &TokenCursor,
    names: Vec<Token>,
    resource: Resource,
) -> Result<()> {
    for token in names {
        let id = ResourceId(builder.program.resources.len() as u32);
        let name = builder.define(cursor, token, NamedObject::Resource(id))?;
        builder.names.resources.push(name);
        builder.program.resources.push(resource.clone());
    }
    Ok(())
}

fn name_list<'a>(cursor: &mut TokenCursor<'a>, what: &str) -> Result<Vec<Token<'a>>> {
    let mut names = vec![cursor.word(what)?];
    while cursor.next_is_word() {
        names.push(cursor.word(what)?);
    }
    Ok(names)
}

fn queues(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor) -> Result<()> {
    loop {
        let token = cursor.word("the name of a queue")?;
        let id = QueueId(builder.program.queues.len() as u32);
        let name = builder.define(cursor, token, NamedObject::Queue(id))?;
        cursor.expect(":")?;
        let flags = queue_flags(cursor)?;
        let mut family = default_family(&builder.program.queues, flags);
        if cursor.is("family") && cursor.peek_at(1).is_some_and(|it| it.text == "=") {
            cursor.take("family");
            cursor.take("=");
            family = cursor.number32("a queue family")?;
        }
        builder.names.queues.push(name);
        builder.program.queues.push(Queue { family, flags });
        if cursor.is_end() {
            return Ok(());
        }
    }
}

/// Queues of equal capabilities are of one family; others get the next.
pub(crate) fn default_family(queues: &[Queue], flags: u32) -> u32 {
    match queues.iter().find(|it| it.flags == flags) {
        Some(same) => same.family,
        None => queues.iter().map(|it| it.family.saturating_add(1)).max().unwrap_or(0),
    }
}

fn queue_flags(cursor: &mut TokenCursor) -> Result<u32> {
    let mut flags = 0;
    loop {
        if !cursor.next_is_word() {
            flags |= cursor.number32("what the queue can do")?;
        } else {
            let token = cursor.word("what the queue can do")?;
            let found = QUEUE_WORDS.iter().find(|it| it.0 == token.text);
            let words = QUEUE_WORDS.iter().map(|it| it.0);
            flags |= found.ok_or_else(|| cursor.unknown(token, "capability of queues", words))?.1;
        }
        if !cursor.take("|") {
            return Ok(flags);
        }
    }
}

fn names(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor, kind: NamedObject) -> Result<()> {
    for token in name_list(cursor, "a name")? {
        if let NamedObject::Event(_) = kind {
            let name = builder.define(cursor, token, NamedObject::Event(EventId(builder.program.event_count)))?;
            builder.names.events.push(name);
            builder.program.event_count += 1;
        } else {
            let name = builder.define(cursor, token, NamedObject::Fence(FenceId(builder.program.fence_count)))?;
            builder.names.fences.push(name);
            builder.program.fence_count += 1;
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum SemaphoreType {
    Binary,
    Timeline,
}

fn semaphores(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor, of: SemaphoreType) -> Result<()> {
    for token in name_list(cursor, "the name of a semaphore")? {
        let name =
            builder.define(cursor, token, NamedObject::Semaphore(SemaphoreId(builder.program.semaphore_count)))?;
        builder.names.semaphores.push(DeclaredSemaphore { name, is_timeline: of == SemaphoreType::Timeline });
        builder.program.semaphore_count += 1;
    }
    Ok(())
}

fn pass(builder: &mut ScenarioBuilder, cursor: &mut TokenCursor) -> Result<()> {
    let token = cursor.word("the name of the pass")?;
    let id = RenderPassId(builder.program.render_passes.len() as u32);
    let name = builder.define(cursor, token, NamedObject::RenderPass(id))?;
    builder.names.render_passes.push(name);
    builder.program.render_passes.push(RenderPass::default());
    Ok(())
}

/// A line of a pass.
pub(crate) fn parse_pass_line(pass: &mut RenderPass, cursor: &mut TokenCursor) -> Result<()> {
    let token = cursor.word("attachment, subpass or dependency")?;
    match token.text {
        "attachment" => pass.attachments.push(attachment(cursor)?),
        "subpass" => {
            let one = subpass(cursor, pass.attachments.len())?;
            pass.subpasses.push(one);
        }
        "dependency" => {
            let one = dependency(cursor, pass.subpasses.len())?;
            pass.dependencies.push(one);
        }
        _ => {
            let words = ["attachment", "subpass", "dependency"];
            return Err(cursor.unknown(token, "line of a pass", words.into_iter()));
        }
    }
    cursor.end()
}

pub(crate) const KINDS: [(&str, AttachmentKind); 4] = [
    ("color", AttachmentKind::Color),
    ("depth", AttachmentKind::Depth),
    ("stencil", AttachmentKind::Stencil),
    ("depth_stencil", AttachmentKind::DepthStencil),
];

pub(crate) const LOADS: [(&str, LoadOp); 4] =
    [("load", LoadOp::Load), ("clear", LoadOp::Clear), ("dont_care", LoadOp::DontCare), ("none", LoadOp::None)];

pub(crate) const STORES: [(&str, StoreOp); 3] =
    [("store", StoreOp::Store), ("dont_care", StoreOp::DontCare), ("none", StoreOp::None)];

pub(crate) fn layout_of_kind(kind: AttachmentKind) -> i32 {
    match kind {
        AttachmentKind::Color => COLOR_LAYOUT,
        AttachmentKind::Depth | AttachmentKind::Stencil | AttachmentKind::DepthStencil => DEPTH_STENCIL_LAYOUT,
    }
}

/// A word of a short table.
pub(crate) fn parse_choice<T: Copy>(cursor: &mut TokenCursor, what: &str, table: &[(&'static str, T)]) -> Result<T> {
    let token = cursor.word(what)?;
    let found = table.iter().find(|it| it.0 == token.text);
    found.map(|it| it.1).ok_or_else(|| cursor.unknown(token, what, table.iter().map(|it| it.0)))
}

fn attachment(cursor: &mut TokenCursor) -> Result<Attachment> {
    let kind = parse_choice(cursor, "kind of attachment", &KINDS)?;
    let layout = layout_of_kind(kind);
    let mut made = Attachment {
        kind,
        load: LoadOp::Load,
        store: StoreOp::Store,
        stencil_load: LoadOp::Load,
        stencil_store: StoreOp::Store,
        initial_layout: layout,
        final_layout: layout,
    };
    while !cursor.is_end() {
        let token = cursor.word("a property")?;
        cursor.expect("=")?;
        match token.text {
            "load" => made.load = parse_choice(cursor, "load operation", &LOADS)?,
            "store" => made.store = parse_choice(cursor, "store operation", &STORES)?,
            "stencil_load" => made.stencil_load = parse_choice(cursor, "load operation", &LOADS)?,
            "stencil_store" => made.stencil_store = parse_choice(cursor, "store operation", &STORES)?,
            "initial" => made.initial_layout = layout_value(cursor)?,
            "final" => made.final_layout = layout_value(cursor)?,
            _ => {
                let words = ["load", "store", "stencil_load", "stencil_store", "initial", "final"];
                return Err(cursor.unknown(token, "property of an attachment", words.into_iter()));
            }
        }
    }
    Ok(made)
}

fn layout_value(cursor: &mut TokenCursor) -> Result<i32> {
    if !cursor.next_is_word() {
        return Ok(cursor.number32("a layout")? as i32);
    }
    let token = cursor.word("a layout")?;
    layout_of(token.text).ok_or_else(|| cursor.unknown(token, "layout", layout_words()))
}

const USES: [&str; 7] = ["color", "input", "depth", "resolve", "depth_resolve", "preserve", "views"];

/// `subpass color 0, input 1 as general, depth 2, resolve 0 to 3, preserve 4, views=0x3`.
fn subpass(cursor: &mut TokenCursor, attachments: usize) -> Result<Subpass> {
    let mut made = Subpass::default();
    while !cursor.is_end() {
        let token = cursor.word("a use of an attachment")?;
        match token.text {
            "color" => made.colors.push(reference(cursor, attachments, COLOR_LAYOUT)?),
            "input" => made.inputs.push(reference(cursor, attachments, READ_LAYOUT)?),
            "depth" => made.depth_stencil = Some(reference(cursor, attachments, DEPTH_STENCIL_LAYOUT)?),
            "depth_resolve" => made.depth_stencil_resolve = Some(reference(cursor, attachments, DEPTH_STENCIL_LAYOUT)?),
            "resolve" => {
                let source = number_of(cursor, attachments)?;
                cursor.expect("to")?;
                let (target, layout) = reference(cursor, attachments, COLOR_LAYOUT)?;
                made.resolves.push(ColorResolve { source, target, layout });
            }
            "preserve" => made.preserves.push(number_of(cursor, attachments)?),
            "views" => {
                cursor.expect("=")?;
                made.view_mask = cursor.number32("a mask of views")?;
            }
            _ => return Err(cursor.unknown(token, "use of an attachment", USES.into_iter())),
        }
        if !cursor.take(",") {
            break;
        }
    }
    Ok(made)
}

fn number_of(cursor: &mut TokenCursor, attachments: usize) -> Result<u32> {
    let column = cursor.column();
    let number = cursor.number32("the number of an attachment")?;
    if number as usize >= attachments {
        return Err(cursor.error_at(column, format!("the pass has {attachments} attachments above this line")));
    }
    Ok(number)
}

fn reference(cursor: &mut TokenCursor, attachments: usize, default: i32) -> Result<(u32, i32)> {
    let number = number_of(cursor, attachments)?;
    let layout = if cursor.take("as") { layout_value(cursor)? } else { default };
    Ok((number, layout))
}

/// `dependency external => 0: SCOPE`, with `view_local` or `view_local=-1`.
fn dependency(cursor: &mut TokenCursor, subpasses: usize) -> Result<SubpassDependency> {
    let src = subpass_number(cursor, subpasses)?;
    cursor.expect("=>")?;
    let dst = subpass_number(cursor, subpasses)?;
    cursor.expect(":")?;
    let scope = parse_scope(cursor)?;
    let mut view_offset = None;
    if cursor.take("view_local") {
        view_offset = Some(if cursor.take("=") { offset(cursor)? } else { 0 });
    }
    Ok(SubpassDependency { src, dst, scope, view_offset })
}

fn offset(cursor: &mut TokenCursor) -> Result<i32> {
    let sign = if cursor.take("-") { -1 } else { 1 };
    let column = cursor.column();
    let number = cursor.number32("an offset of views")?;
    let number = i32::try_from(number).map_err(|_| cursor.error_at(column, "the offset is too large".to_owned()))?;
    Ok(sign * number)
}

fn subpass_number(cursor: &mut TokenCursor, subpasses: usize) -> Result<Option<u32>> {
    if cursor.take("external") {
        return Ok(None);
    }
    let column = cursor.column();
    let number = cursor.number32("`external` or the number of a subpass")?;
    if number as usize >= subpasses {
        return Err(cursor.error_at(column, format!("the pass has {subpasses} subpasses above this line")));
    }
    Ok(Some(number))
}
