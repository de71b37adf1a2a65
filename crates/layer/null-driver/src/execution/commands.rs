//! Command pools and command buffers, and the recorded commands that have an effect.
//!
//! Draws, dispatches and barriers are not recorded at all: their entry points are empty.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::dispatchable;
use crate::calls::object_table::DriverObjectTable;
use crate::execution::queries::{QUERY_POOLS, QueryPoolData};
use crate::execution::queue_engine;
use crate::execution::queue_engine::tick;
use crate::execution::swapchain::Presentation;
use crate::execution::sync::EVENTS;
use crate::execution::transfer::Transfer;

pub(crate) static COMMAND_POOLS: DriverObjectTable<CommandPoolData> = DriverObjectTable::new(HandleType::CommandPool);

/// The command buffers of a pool.
#[derive(Default)]
pub(crate) struct CommandPoolData {
    buffers: Mutex<Vec<CommandBuffer>>,
}

/// The object of a `VkCommandBuffer`.
pub(crate) struct CommandBufferData {
    pool: CommandPool,
    ops: Mutex<Arc<Vec<RecordedOp>>>,
}

/// A recorded command with an effect.
#[derive(Clone)]
pub(crate) enum RecordedOp {
    ResetQueries { pool: Arc<QueryPoolData>, first: u32, count: u32 },
    EndQuery { pool: Arc<QueryPoolData>, query: u32 },
    Timestamp { pool: Arc<QueryPoolData>, query: u32 },
    WriteQueries { pool: Arc<QueryPoolData>, first: u32, values: Vec<u64> },
    SetEvent { event: Arc<queue_engine::EventPayload>, is_set: bool },
    WaitEvents { events: Vec<Arc<queue_engine::EventPayload>> },
    Transfer(Arc<Transfer>),
    Present(Presentation),
}

impl RecordedOp {
    /// Has its effect; false if it must wait, and is to be asked again.
    pub(crate) fn execute(&self, time: &mut u64) -> bool {
        match self {
            RecordedOp::ResetQueries { pool, first, count } => pool.reset(*first, *count),
            RecordedOp::EndQuery { pool, query } => pool.end(*query),
            RecordedOp::Timestamp { pool, query } => pool.write(*query, tick(time)),
            RecordedOp::WriteQueries { pool, first, values } => {
                for (at, value) in values.iter().enumerate() {
                    pool.write(first + at as u32, *value);
                }
            }
            RecordedOp::SetEvent { event, is_set } => event.is_set.store(*is_set, Ordering::Release),
            RecordedOp::WaitEvents { events } => return events.iter().all(|it| it.is_set.load(Ordering::Acquire)),
            RecordedOp::Transfer(transfer) => transfer.perform(),
            RecordedOp::Present(presentation) => presentation.perform(),
        }
        true
    }
}

impl CommandBufferData {
    fn lock(&self) -> MutexGuard<'_, Arc<Vec<RecordedOp>>> {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recorded(&self) -> Arc<Vec<RecordedOp>> {
        Arc::clone(&self.lock())
    }

    pub(crate) fn record(&self, op: RecordedOp) {
        Arc::make_mut(&mut self.lock()).push(op);
    }

    fn reset(&self) {
        let mut ops = self.lock();
        match Arc::get_mut(&mut ops) {
            Some(recorded_ops) => recorded_ops.clear(),
            None => *ops = Arc::default(),
        }
    }
}

pub(crate) fn create_command_pool(c: ApplicationMemory<'_>, call: &CreateCommandPoolParams) -> Result {
    c.write(call.p_command_pool, CommandPool(COMMAND_POOLS.add(CommandPoolData::default())));
    Result::SUCCESS
}

pub(crate) fn destroy_command_pool(c: ApplicationMemory<'_>, call: &DestroyCommandPoolParams) {
    let Some(pool) = COMMAND_POOLS.remove(call.command_pool.0) else { return };
    for buffer in pool.lock().drain(..) {
        c.destroy::<CommandBufferData>(buffer.0);
    }
}

impl CommandPoolData {
    fn lock(&self) -> MutexGuard<'_, Vec<CommandBuffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn reset_command_pool(c: ApplicationMemory<'_>, call: &ResetCommandPoolParams) -> Result {
    let Some(pool) = COMMAND_POOLS.get(call.command_pool.0) else { return Result::ERROR_UNKNOWN };
    pool.lock().iter().for_each(|it| c.command_buffer(*it).reset());
    Result::SUCCESS
}

pub(crate) fn allocate_command_buffers(c: ApplicationMemory<'_>, call: &AllocateCommandBuffersParams) -> Result {
    let Some(info) = c.get(call.p_allocate_info) else { return Result::ERROR_UNKNOWN };
    let Some(pool) = COMMAND_POOLS.get(info.command_pool.0) else { return Result::ERROR_UNKNOWN };
    let out = c.slice_mut(call.p_command_buffers, info.command_buffer_count);
    for command_buffer in out {
        let data = CommandBufferData { pool: info.command_pool, ops: Mutex::default() };
        let Some(handle) = dispatchable::create(data) else { return Result::ERROR_OUT_OF_HOST_MEMORY };
        *command_buffer = CommandBuffer(handle);
        pool.lock().push(*command_buffer);
    }
    Result::SUCCESS
}

pub(crate) fn free_command_buffers(c: ApplicationMemory<'_>, call: &FreeCommandBuffersParams) {
    let buffers = c.slice(call.p_command_buffers, call.command_buffer_count);
    for buffer in buffers.iter().filter(|it| it.0 != 0) {
        if let Some(pool) = COMMAND_POOLS.get(c.command_buffer(*buffer).pool.0) {
            pool.lock().retain(|it| it != buffer);
        }
        c.destroy::<CommandBufferData>(buffer.0);
    }
}

pub(crate) fn begin_command_buffer(c: ApplicationMemory<'_>, call: &BeginCommandBufferParams) -> Result {
    c.command_buffer(call.command_buffer).reset();
    Result::SUCCESS
}

pub(crate) fn reset_command_buffer(c: ApplicationMemory<'_>, call: &ResetCommandBufferParams) -> Result {
    c.command_buffer(call.command_buffer).reset();
    Result::SUCCESS
}

/// A secondary command buffer is part of the primary one from now on: recording it again would make that invalid.
pub(crate) fn cmd_execute_commands(c: ApplicationMemory<'_>, call: &CmdExecuteCommandsParams) {
    for buffer in c.slice(call.p_command_buffers, call.command_buffer_count) {
        for op in c.command_buffer(*buffer).recorded().iter() {
            c.command_buffer(call.command_buffer).record(op.clone());
        }
    }
}

fn record_query_op(
    c: ApplicationMemory<'_>,
    buffer: CommandBuffer,
    pool: QueryPool,
    op: impl FnOnce(Arc<QueryPoolData>) -> RecordedOp,
) {
    if let Some(pool) = QUERY_POOLS.get(pool.0) {
        c.command_buffer(buffer).record(op(pool));
    }
}

pub(crate) fn cmd_reset_query_pool(c: ApplicationMemory<'_>, call: &CmdResetQueryPoolParams) {
    let (first, count) = (call.first_query, call.query_count);
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::ResetQueries { pool, first, count });
}

/// A query has its result when it ends.
pub(crate) fn cmd_end_query(c: ApplicationMemory<'_>, call: &CmdEndQueryParams) {
    let query = call.query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::EndQuery { pool, query });
}

pub(crate) fn cmd_end_query_indexed_ext(c: ApplicationMemory<'_>, call: &CmdEndQueryIndexedEXTParams) {
    let query = call.query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::EndQuery { pool, query });
}

pub(crate) fn cmd_write_timestamp(c: ApplicationMemory<'_>, call: &CmdWriteTimestampParams) {
    let query = call.query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::Timestamp { pool, query });
}

pub(crate) fn cmd_write_timestamp2(c: ApplicationMemory<'_>, call: &CmdWriteTimestamp2Params) {
    let query = call.query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::Timestamp { pool, query });
}

pub(crate) fn cmd_write_acceleration_structures_properties_khr(
    c: ApplicationMemory<'_>,
    call: &CmdWriteAccelerationStructuresPropertiesKHRParams,
) {
    let structures = c.slice(call.p_acceleration_structures, call.acceleration_structure_count);
    let values = structures.iter().map(|it| crate::resources::ray_tracing::size_of_structure(*it)).collect();
    let first = call.first_query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::WriteQueries { pool, first, values });
}

pub(crate) fn cmd_write_acceleration_structures_properties_nv(
    c: ApplicationMemory<'_>,
    call: &CmdWriteAccelerationStructuresPropertiesNVParams,
) {
    let values = vec![crate::resources::ray_tracing::MIN_STRUCTURE_BYTES; call.acceleration_structure_count as usize];
    let first = call.first_query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::WriteQueries { pool, first, values });
}

pub(crate) fn cmd_write_micromaps_properties_ext(
    c: ApplicationMemory<'_>,
    call: &CmdWriteMicromapsPropertiesEXTParams,
) {
    let values = vec![crate::resources::ray_tracing::MIN_STRUCTURE_BYTES; call.micromap_count as usize];
    let first = call.first_query;
    record_query_op(c, call.command_buffer, call.query_pool, |pool| RecordedOp::WriteQueries { pool, first, values });
}

fn put_event(c: ApplicationMemory<'_>, buffer: CommandBuffer, event: Event, is_set: bool) {
    if let Some(event) = EVENTS.get(event.0) {
        c.command_buffer(buffer).record(RecordedOp::SetEvent { event, is_set });
    }
}

pub(crate) fn cmd_set_event(c: ApplicationMemory<'_>, call: &CmdSetEventParams) {
    put_event(c, call.command_buffer, call.event, true);
}

pub(crate) fn cmd_set_event2(c: ApplicationMemory<'_>, call: &CmdSetEvent2Params) {
    put_event(c, call.command_buffer, call.event, true);
}

pub(crate) fn cmd_reset_event(c: ApplicationMemory<'_>, call: &CmdResetEventParams) {
    put_event(c, call.command_buffer, call.event, false);
}

pub(crate) fn cmd_reset_event2(c: ApplicationMemory<'_>, call: &CmdResetEvent2Params) {
    put_event(c, call.command_buffer, call.event, false);
}

pub(crate) fn cmd_wait_events(c: ApplicationMemory<'_>, call: &CmdWaitEventsParams) {
    wait_events(c, call.command_buffer, c.slice(call.p_events, call.event_count));
}

pub(crate) fn cmd_wait_events2(c: ApplicationMemory<'_>, call: &CmdWaitEvents2Params) {
    wait_events(c, call.command_buffer, c.slice(call.p_events, call.event_count));
}

fn wait_events(c: ApplicationMemory<'_>, buffer: CommandBuffer, events: &[Event]) {
    let events = events.iter().filter_map(|it| EVENTS.get(it.0)).collect();
    c.command_buffer(buffer).record(RecordedOp::WaitEvents { events });
}
