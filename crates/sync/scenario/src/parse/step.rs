//! Steps: what the host does.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    Certainty, FenceId, QueueId, Region, ResourceId, SemaphoreId, SemaphorePoint, SemaphoreSignal, SubmitBatch,
};
use lavascope_sync_ir::{HostStep, SemaphoreWait, SparseBind, SparsePart};

use crate::error::Result;
use crate::parse::builder::{NamedObject, Operand, OperandUsage, ScenarioBuilder};
use crate::parse::region;
use crate::parse::scope::parse_stages;
use crate::parse::tokens::TokenCursor;

const STEPS: [&str; 7] = ["host", "device", "wait", "reset", "acquire", "destroy", "thread"];

/// A step, and its operands where they stand.
pub(crate) fn parse_step(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<(HostStep, Vec<Operand>)> {
    let mut operands = Vec::new();
    let token = cursor.peek().filter(|_| cursor.next_is_word());
    let token = token.ok_or_else(|| cursor.unexpected("a declaration or a step"))?;
    let step = if let Some(NamedObject::Queue(_)) = builder.named(token.text) {
        on_queue(builder, cursor, &mut operands)?
    } else {
        cursor.word("a step")?;
        match token.text {
            "host" => host(builder, cursor, &mut operands)?,
            "device" => cursor.expect("idle").map(|()| HostStep::DeviceIdle)?,
            "wait" => {
                cursor.expect("fence")?;
                HostStep::WaitFences(fences(builder, cursor)?)
            }
            "reset" => {
                cursor.expect("fence")?;
                HostStep::ResetFences(fences(builder, cursor)?)
            }
            "acquire" => acquire(builder, cursor, &mut operands)?,
            "destroy" => HostStep::Destroy(builder.resource(cursor)?),
            _ => {
                let words = STEPS.into_iter().chain(crate::parse::declare::DECLARATIONS).chain(builder.queue_names());
                return Err(cursor.unknown(token, "declaration, step or queue", words));
            }
        }
    };
    cursor.end()?;
    Ok((step, operands))
}

fn on_queue(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<HostStep> {
    let queue = builder.queue(cursor)?;
    let token = cursor.word("`submit`, `present`, `bind` or `idle`")?;
    match token.text {
        "idle" => Ok(HostStep::QueueIdle(queue)),
        "present" => {
            let mut images = Vec::new();
            while cursor.next_is_word() && !cursor.is("wait") {
                images.push(image(builder, cursor, operands)?);
            }
            let mut waits = Vec::new();
            if cursor.take("wait") {
                waits = semaphores(builder, cursor)?;
            }
            Ok(HostStep::Present { queue, waits, images })
        }
        "submit" => {
            let mut batches = Vec::new();
            if !cursor.take("nothing") {
                batches.push(batch(builder, cursor)?);
                while cursor.take("then") {
                    batches.push(batch(builder, cursor)?);
                }
            }
            let fence = if cursor.take("fence") { Some(builder.fence(cursor)?) } else { None };
            Ok(HostStep::Submit { queue, batches, fence })
        }
        "bind" => bind(builder, cursor, queue),
        _ => Err(cursor.unknown(token, "step on a queue", ["submit", "present", "bind", "idle"].into_iter())),
    }
}

/// `bind a[0..64] to m+0, tex[0..4, 0..4] to m+64 size=64, opaque tex[0..64] to nothing wait s signal t=1 fence f`.
fn bind(builder: &ScenarioBuilder, cursor: &mut TokenCursor, queue: QueueId) -> Result<HostStep> {
    let mut binds = vec![sparse_bind(builder, cursor)?];
    while cursor.take(",") {
        binds.push(sparse_bind(builder, cursor)?);
    }
    let waits = if cursor.take("wait") { points(builder, cursor, ">=")? } else { Vec::new() };
    let signals = if cursor.take("signal") { points(builder, cursor, "=")? } else { Vec::new() };
    let fence = if cursor.take("fence") { Some(builder.fence(cursor)?) } else { None };
    Ok(HostStep::BindSparse { queue, waits, binds, signals, fence })
}

fn points(builder: &ScenarioBuilder, cursor: &mut TokenCursor, sign: &str) -> Result<Vec<SemaphorePoint>> {
    let mut all = vec![point(builder, cursor, sign)?];
    while cursor.take(",") {
        all.push(point(builder, cursor, sign)?);
    }
    Ok(all)
}

fn sparse_bind(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<SparseBind> {
    let is_opaque = cursor.take("opaque");
    let column = cursor.column();
    let (resource, part, mut size) = if is_opaque {
        let resource = builder.resource(cursor)?;
        let bytes = region::parse_bytes(cursor)?;
        (resource, SparsePart::Bytes(bytes.start), bytes.end - bytes.start)
    } else {
        match region::parse_region(builder, cursor)? {
            (resource, Region::Buffer(bytes)) => (resource, SparsePart::Bytes(bytes.start), bytes.end - bytes.start),
            (resource, Region::Image(part)) => (resource, SparsePart::Texels(part), 0),
        }
    };
    if !builder.program.resources[resource.0 as usize].is_sparse {
        return Err(cursor.error_at(column, "only what is declared `sparse` is bound".to_owned()));
    }
    cursor.expect("to")?;
    if cursor.take("nothing") {
        return Ok(SparseBind { resource, part, size, memory: None });
    }
    let memory = builder.memory(cursor)?;
    cursor.expect("+")?;
    let offset = cursor.number("the offset in the memory")?;
    if let SparsePart::Texels(_) = part {
        cursor.expect("size")?;
        cursor.expect("=")?;
        size = cursor.number("the bytes of memory that belong to the blocks")?;
    }
    let memory_size = builder.names.memories[memory.0 as usize].size;
    if offset.checked_add(size).is_none_or(|end| end > memory_size) {
        let message = format!("{size} bytes from {offset} do not fit into {memory_size} bytes of memory");
        return Err(cursor.error_at(column, message));
    }
    Ok(SparseBind { resource, part, size, memory: Some((memory, offset)) })
}

fn batch(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<SubmitBatch> {
    let mut made = SubmitBatch::default();
    let ends = |it: &str| matches!(it, "wait" | "signal" | "then" | "fence");
    while cursor.next_is_word() && !cursor.peek().is_some_and(|it| ends(it.text)) {
        made.command_buffers.push(builder.command_buffer(cursor)?);
    }
    if cursor.take("wait") {
        loop {
            let point = point(builder, cursor, ">=")?;
            made.waits.push(SemaphoreWait { point, stages: stages(cursor)? });
            if !cursor.take(",") {
                break;
            }
        }
    }
    if cursor.take("signal") {
        loop {
            let point = point(builder, cursor, "=")?;
            made.signals.push(SemaphoreSignal { point, stages: stages(cursor)? });
            if !cursor.take(",") {
                break;
            }
        }
    }
    Ok(made)
}

/// `at STAGES`, or everything.
fn stages(cursor: &mut TokenCursor) -> Result<u64> {
    if cursor.take("at") { parse_stages(cursor) } else { Ok(PipelineStageFlags2::ALL_COMMANDS.0) }
}

/// A binary semaphore, or a timeline and its value behind `sign`.
fn point(builder: &ScenarioBuilder, cursor: &mut TokenCursor, sign: &str) -> Result<SemaphorePoint> {
    let column = cursor.column();
    let semaphore = builder.semaphore(cursor)?;
    if cursor.take(sign) {
        if !builder.is_timeline(semaphore) {
            return Err(cursor.error_at(column, "a binary semaphore has no value: declare a `timeline`".to_owned()));
        }
        return Ok(SemaphorePoint { semaphore, value: Some(cursor.number("a value")?) });
    }
    if builder.is_timeline(semaphore) {
        return Err(cursor.unexpected(&format!("`{sign}` and a value of the timeline")));
    }
    Ok(SemaphorePoint { semaphore, value: None })
}

fn host(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<HostStep> {
    let token = cursor.word("what the host does")?;
    match token.text {
        "reads" | "writes" => {
            let is_write = token.text == "writes";
            let column = cursor.column();
            let (resource, region) = region::parse_region(builder, cursor)?;
            let usage = if is_write { OperandUsage::Write } else { OperandUsage::Read };
            operands.push(Operand { resource, region: region.clone(), column, usage });
            Ok(HostStep::HostAccess { resource, region, is_write, certainty: Certainty::Certain })
        }
        "wait" => {
            let mut points = vec![point(builder, cursor, ">=")?];
            while cursor.take(",") {
                points.push(point(builder, cursor, ">=")?);
            }
            Ok(HostStep::WaitSemaphores(points))
        }
        "signal" => Ok(HostStep::SignalSemaphore(point(builder, cursor, "=")?)),
        "set" => Ok(HostStep::SetEvent(builder.event(cursor)?)),
        "reset" => Ok(HostStep::ResetEvent(builder.event(cursor)?)),
        _ => {
            let words = ["reads", "writes", "wait", "signal", "set", "reset"];
            Err(cursor.unknown(token, "step of the host", words.into_iter()))
        }
    }
}

fn acquire(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<HostStep> {
    let image = image(builder, cursor, operands)?;
    let semaphore = if cursor.take("signal") { Some(binary(builder, cursor)?) } else { None };
    let fence = if cursor.take("fence") { Some(builder.fence(cursor)?) } else { None };
    Ok(HostStep::Acquire { image, semaphore, fence })
}

fn image(builder: &ScenarioBuilder, cursor: &mut TokenCursor, operands: &mut Vec<Operand>) -> Result<ResourceId> {
    let column = cursor.column();
    let image = builder.resource(cursor)?;
    let region = region::whole(&builder.program.resources[image.0 as usize]);
    if !matches!(region, Region::Image(_)) {
        return Err(cursor.error_at(column, "an image is wanted here, not a buffer".to_owned()));
    }
    operands.push(Operand { resource: image, region, column, usage: OperandUsage::Any });
    Ok(image)
}

fn binary(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<SemaphoreId> {
    let column = cursor.column();
    let semaphore = builder.semaphore(cursor)?;
    if builder.is_timeline(semaphore) {
        return Err(cursor.error_at(column, "presentation takes binary semaphores only".to_owned()));
    }
    Ok(semaphore)
}

fn semaphores(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<Vec<SemaphoreId>> {
    let mut all = vec![binary(builder, cursor)?];
    while cursor.next_is_word() {
        all.push(binary(builder, cursor)?);
    }
    Ok(all)
}

fn fences(builder: &ScenarioBuilder, cursor: &mut TokenCursor) -> Result<Vec<FenceId>> {
    let mut all = vec![builder.fence(cursor)?];
    while cursor.next_is_word() {
        all.push(builder.fence(cursor)?);
    }
    Ok(all)
}
