//! Query pools: results are there when a submission that wrote them was executed, and are the same in every run.

use std::sync::{Mutex, MutexGuard, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;
use crate::execution::queue_engine;

pub(crate) static QUERY_POOLS: DriverObjectTable<QueryPoolData> = DriverObjectTable::new(HandleType::QueryPool);

/// A query pool.
pub(crate) struct QueryPoolData {
    /// How many numbers a result has.
    values_per_query: usize,
    queries: Mutex<Vec<Query>>,
}

#[derive(Clone, Default)]
struct Query {
    is_available: bool,
    /// Nothing is drawn, so all but the first are zero.
    value: u64,
}

impl QueryPoolData {
    fn lock(&self) -> MutexGuard<'_, Vec<Query>> {
        self.queries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn reset(&self, first: u32, count: u32) {
        let end = first.saturating_add(count);
        for query in self.lock().iter_mut().take(end as usize).skip(first as usize) {
            *query = Query::default();
        }
    }

    pub(crate) fn end(&self, query: u32) {
        self.write(query, 0);
    }

    pub(crate) fn write(&self, query: u32, value: u64) {
        if let Some(item) = self.lock().get_mut(query as usize) {
            *item = Query { is_available: true, value };
        }
    }

    /// Whether these queries are all available.
    fn are_available(&self, first: u32, count: u32) -> bool {
        let queries = self.lock();
        queries.iter().skip(first as usize).take(count as usize).all(|it| it.is_available)
    }

    /// Writes results as the specification lays them out; whether all of them were available.
    ///
    /// `put` writes bytes at an offset into the results.
    pub(crate) fn results(
        &self,
        queries: std::ops::Range<u32>,
        stride: u64,
        flags: QueryResultFlags,
        mut put: impl FnMut(u64, &[u8]),
    ) -> bool {
        let has = |bit: QueryResultFlags| flags.0 & bit.0 != 0;
        let width = if has(QueryResultFlags::_64) { 8 } else { 4 };
        let mut are_all = true;
        let all = self.lock();
        for (at, query) in queries.enumerate() {
            let Some(other) = all.get(query as usize) else { break };
            are_all &= other.is_available;
            let base = at as u64 * stride;
            if other.is_available || has(QueryResultFlags::WAIT) || has(QueryResultFlags::PARTIAL) {
                for index in 0..self.values_per_query {
                    let value = if index == 0 { other.value } else { 0 };
                    put(base + index as u64 * width, &value.to_le_bytes()[..width as usize]);
                }
            }
            if has(QueryResultFlags::WITH_AVAILABILITY) || has(QueryResultFlags::WITH_STATUS_KHR) {
                let value = u64::from(other.is_available);
                put(base + self.values_per_query as u64 * width, &value.to_le_bytes()[..width as usize]);
            }
        }
        are_all
    }
}

pub(crate) fn create_query_pool(c: ApplicationMemory<'_>, call: &CreateQueryPoolParams) -> Result {
    let Some(info) = c.get(call.p_create_info) else { return Result::ERROR_UNKNOWN };
    let values_per_query = match info.query_type {
        QueryType::PIPELINE_STATISTICS => info.pipeline_statistics.0.count_ones() as usize,
        QueryType::TRANSFORM_FEEDBACK_STREAM_EXT => 2,
        QueryType::RESULT_STATUS_ONLY_KHR => 0,
        QueryType::VIDEO_ENCODE_FEEDBACK_KHR => {
            let feedback = c.find::<QueryPoolVideoEncodeFeedbackCreateInfoKHR>(info.p_next);
            feedback.map_or(0, |it| it.encode_feedback_flags.0.count_ones() as usize)
        }
        QueryType::PERFORMANCE_QUERY_KHR => {
            let counters = c.find::<QueryPoolPerformanceCreateInfoKHR>(info.p_next);
            counters.map_or(0, |it| it.counter_index_count as usize)
        }
        _ => 1,
    };
    let queries = Mutex::new(vec![Query::default(); info.query_count as usize]);
    c.write(call.p_query_pool, QueryPool(QUERY_POOLS.add(QueryPoolData { values_per_query, queries })));
    Result::SUCCESS
}

pub(crate) fn destroy_query_pool(_: ApplicationMemory<'_>, call: &DestroyQueryPoolParams) {
    QUERY_POOLS.remove(call.query_pool.0);
}

pub(crate) fn reset_query_pool(_: ApplicationMemory<'_>, call: &ResetQueryPoolParams) {
    if let Some(pool) = QUERY_POOLS.get(call.query_pool.0) {
        pool.reset(call.first_query, call.query_count);
    }
}

/// A wait for a query that no pending submission can write returns zeros: a hang would not help, and with multiview the
/// further queries of a render pass are zero anyway.
pub(crate) fn get_query_pool_results(c: ApplicationMemory<'_>, call: &GetQueryPoolResultsParams) -> Result {
    let Some(pool) = QUERY_POOLS.get(call.query_pool.0) else { return Result::ERROR_UNKNOWN };
    let (first, count) = (call.first_query, call.query_count);
    let is_waiting = call.flags.0 & QueryResultFlags::WAIT.0 != 0;
    if is_waiting && !pool.are_available(first, count) {
        queue_engine::wait_for_work(|| pool.are_available(first, count));
    }
    let out = c.slice_mut(call.p_data.cast::<u8>(), call.data_size);
    let are_all = pool.results(first..first.saturating_add(count), call.stride, call.flags, |at, bytes| {
        if let Some(to) = out.get_mut(at as usize..at as usize + bytes.len()) {
            to.copy_from_slice(bytes);
        }
    });
    let is_content = is_waiting || call.flags.0 & QueryResultFlags::PARTIAL.0 != 0;
    if are_all || is_content { Result::SUCCESS } else { Result::NOT_READY }
}
