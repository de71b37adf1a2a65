//! Command pools and command buffers, and the recorded commands that have an effect.
//!
//! Draws, dispatches and barriers are not recorded at all: their entry points are empty.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

use crate::arena;
use crate::c::C;
use crate::engine::{self, tick};
use crate::objects::Table;
use crate::queries::{QUERY_POOLS, QueryPoolData};
use crate::swapchain::Presentation;
use crate::sync::EVENTS;
use crate::transfer::Transfer;

pub(crate) static COMMAND_POOLS: Table<CommandPoolData> = Table::new(HandleType::CommandPool);

/// The command buffers of a pool.
#[derive(Default)]
pub(crate) struct CommandPoolData {
    buffers: Mutex<Vec<CommandBuffer>>,
}

/// What lies behind a `VkCommandBuffer`.
pub(crate) struct CommandBufferData {
    pool: CommandPool,
    ops: Mutex<Arc<Vec<Op>>>,
}

/// A recorded command with an effect.
#[derive(Clone)]
pub(crate) enum Op {
    ResetQueries { pool: Arc<QueryPoolData>, first: u32, count: u32 },
    EndQuery { pool: Arc<QueryPoolData>, query: u32 },
    Timestamp { pool: Arc<QueryPoolData>, query: u32 },
    WriteQueries { pool: Arc<QueryPoolData>, first: u32, values: Vec<u64> },
    PutEvent { event: Arc<engine::Event>, is_set: bool },
    WaitEvents { events: Vec<Arc<engine::Event>> },
    Transfer(Arc<Transfer>),
    Present(Presentation),
}

impl Op {
    /// Has its effect; false where it must wait, and is to be asked again.
    pub(crate) fn execute(&self, time: &mut u64) -> bool {
        match self {
            Op::ResetQueries { pool, first, count } => pool.reset(*first, *count),
            Op::EndQuery { pool, query } => pool.end(*query),
            Op::Timestamp { pool, query } => pool.write(*query, tick(time)),
            Op::WriteQueries { pool, first, values } => {
                for (at, value) in values.iter().enumerate() {
                    pool.write(first + at as u32, *value);
                }
            }
            Op::PutEvent { event, is_set } => event.is_set.store(*is_set, Ordering::Release),
            Op::WaitEvents { events } => return events.iter().all(|it| it.is_set.load(Ordering::Acquire)),
            Op::Transfer(transfer) => transfer.perform(),
            Op::Present(presentation) => presentation.perform(),
        }
        true
    }
}

impl CommandBufferData {
    fn lock(&self) -> MutexGuard<'_, Arc<Vec<Op>>> {
        self.ops.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn recorded(&self) -> Arc<Vec<Op>> {
        Arc::clone(&self.lock())
    }

    pub(crate) fn record(&self, op: Op) {
        Arc::make_mut(&mut self.lock()).push(op);
    }

    fn reset(&self) {
        let mut ops = self.lock();
        match Arc::get_mut(&mut ops) {
            Some(it) => it.clear(),
            None => *ops = Arc::default(),
        }
    }
}

pub(crate) fn create_command_pool(c: C<'_>, call: &CreateCommandPoolParams) -> Result {
    c.put(call.p_command_pool, CommandPool(COMMAND_POOLS.add(CommandPoolData::default())));
    Result::SUCCESS
}

pub(crate) fn destroy_command_pool(c: C<'_>, call: &DestroyCommandPoolParams) {
    let Some(pool) = COMMAND_POOLS.remove(call.command_pool.0) else { return };
    for buffer in pool.lock().drain(..) {
        c.end::<CommandBufferData>(buffer.0);
    }
}

impl CommandPoolData {
    fn lock(&self) -> MutexGuard<'_, Vec<CommandBuffer>> {
        self.buffers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn reset_command_pool(c: C<'_>, call: &ResetCommandPoolParams) -> Result {
    let Some(pool) = COMMAND_POOLS.get(call.command_pool.0) else { return Result::ERROR_UNKNOWN };
    pool.lock().iter().for_each(|it| c.command_buffer(*it).reset());
    Result::SUCCESS
}

pub(crate) fn allocate_command_buffers(c: C<'_>, call: &AllocateCommandBuffersParams) -> Result {
    let Some(info) = c.get(call.p_allocate_info) else { return Result::ERROR_UNKNOWN };
    let Some(pool) = COMMAND_POOLS.get(info.command_pool.0) else { return Result::ERROR_UNKNOWN };
    let out = c.slice_mut(call.p_command_buffers, info.command_buffer_count);
    for it in out {
        let data = CommandBufferData { pool: info.command_pool, ops: Mutex::default() };
        let Some(handle) = arena::begin(data) else { return Result::ERROR_OUT_OF_HOST_MEMORY };
        *it = CommandBuffer(handle);
        pool.lock().push(*it);
    }
    Result::SUCCESS
}

pub(crate) fn free_command_buffers(c: C<'_>, call: &FreeCommandBuffersParams) {
    let buffers = c.slice(call.p_command_buffers, call.command_buffer_count);
    for buffer in buffers.iter().filter(|it| it.0 != 0) {
        if let Some(pool) = COMMAND_POOLS.get(c.command_buffer(*buffer).pool.0) {
            pool.lock().retain(|it| it != buffer);
        }
        c.end::<CommandBufferData>(buffer.0);
    }
}

pub(crate) fn begin_command_buffer(c: C<'_>, call: &BeginCommandBufferParams) -> Result {
    c.command_buffer(call.command_buffer).reset();
    Result::SUCCESS
}

pub(crate) fn reset_command_buffer(c: C<'_>, call: &ResetCommandBufferParams) -> Result {
    c.command_buffer(call.command_buffer).reset();
    Result::SUCCESS
}

/// A secondary command buffer is part of the primary one from now on: recording it again would make that invalid.
pub(crate) fn cmd_execute_commands(c: C<'_>, call: &CmdExecuteCommandsParams) {
    for it in c.slice(call.p_command_buffers, call.command_buffer_count) {
        for op in c.command_buffer(*it).recorded().iter() {
            c.command_buffer(call.command_buffer).record(op.clone());
        }
    }
}

fn with_pool(c: C<'_>, buffer: CommandBuffer, pool: QueryPool, op: impl FnOnce(Arc<QueryPoolData>) -> Op) {
    if let Some(pool) = QUERY_POOLS.get(pool.0) {
        c.command_buffer(buffer).record(op(pool));
    }
}

pub(crate) fn cmd_reset_query_pool(c: C<'_>, call: &CmdResetQueryPoolParams) {
    let (first, count) = (call.first_query, call.query_count);
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::ResetQueries { pool, first, count });
}

/// A query has its result when it ends.
pub(crate) fn cmd_end_query(c: C<'_>, call: &CmdEndQueryParams) {
    let query = call.query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::EndQuery { pool, query });
}

pub(crate) fn cmd_end_query_indexed_ext(c: C<'_>, call: &CmdEndQueryIndexedEXTParams) {
    let query = call.query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::EndQuery { pool, query });
}

pub(crate) fn cmd_write_timestamp(c: C<'_>, call: &CmdWriteTimestampParams) {
    let query = call.query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::Timestamp { pool, query });
}

pub(crate) fn cmd_write_timestamp2(c: C<'_>, call: &CmdWriteTimestamp2Params) {
    let query = call.query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::Timestamp { pool, query });
}

pub(crate) fn cmd_write_acceleration_structures_properties_khr(
    c: C<'_>,
    call: &CmdWriteAccelerationStructuresPropertiesKHRParams,
) {
    let structures = c.slice(call.p_acceleration_structures, call.acceleration_structure_count);
    let values = structures.iter().map(|it| crate::ray_tracing::size_of_structure(*it)).collect();
    let first = call.first_query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::WriteQueries { pool, first, values });
}

pub(crate) fn cmd_write_acceleration_structures_properties_nv(
    c: C<'_>,
    call: &CmdWriteAccelerationStructuresPropertiesNVParams,
) {
    let values = vec![crate::ray_tracing::SMALLEST; call.acceleration_structure_count as usize];
    let first = call.first_query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::WriteQueries { pool, first, values });
}

pub(crate) fn cmd_write_micromaps_properties_ext(c: C<'_>, call: &CmdWriteMicromapsPropertiesEXTParams) {
    let values = vec![crate::ray_tracing::SMALLEST; call.micromap_count as usize];
    let first = call.first_query;
    with_pool(c, call.command_buffer, call.query_pool, |pool| Op::WriteQueries { pool, first, values });
}

fn put_event(c: C<'_>, buffer: CommandBuffer, event: Event, is_set: bool) {
    if let Some(event) = EVENTS.get(event.0) {
        c.command_buffer(buffer).record(Op::PutEvent { event, is_set });
    }
}

pub(crate) fn cmd_set_event(c: C<'_>, call: &CmdSetEventParams) {
    put_event(c, call.command_buffer, call.event, true);
}

pub(crate) fn cmd_set_event2(c: C<'_>, call: &CmdSetEvent2Params) {
    put_event(c, call.command_buffer, call.event, true);
}

pub(crate) fn cmd_reset_event(c: C<'_>, call: &CmdResetEventParams) {
    put_event(c, call.command_buffer, call.event, false);
}

pub(crate) fn cmd_reset_event2(c: C<'_>, call: &CmdResetEvent2Params) {
    put_event(c, call.command_buffer, call.event, false);
}

pub(crate) fn cmd_wait_events(c: C<'_>, call: &CmdWaitEventsParams) {
    wait_events(c, call.command_buffer, c.slice(call.p_events, call.event_count));
}

pub(crate) fn cmd_wait_events2(c: C<'_>, call: &CmdWaitEvents2Params) {
    wait_events(c, call.command_buffer, c.slice(call.p_events, call.event_count));
}

fn wait_events(c: C<'_>, buffer: CommandBuffer, events: &[Event]) {
    let events = events.iter().filter_map(|it| EVENTS.get(it.0)).collect();
    c.command_buffer(buffer).record(Op::WaitEvents { events });
}
