//! Query pools, conditional rendering and transform feedback.

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View};
use lavascope_sync_ir::Access;

use crate::command::stage_access::{CONDITION_READ, COPY_WRITE, COUNTER_READ, COUNTER_WRITE, StageAccess};
use crate::command::undo::Undo;
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryPool {
    /// The number of values of a query; none if only the device knows it.
    values: Option<u32>,
}

impl TrackedDevice {
    pub(crate) fn track_queries(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateQueryPool(params), Some(Outcome::CreateQueryPool(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_query_pool()) {
                    self.query_pools.insert(handle.0, QueryPool { values: values(info) });
                }
            }
            (Call::DestroyQueryPool(params), None) => {
                self.query_pools.remove(params.query_pool.0);
            }
            (Call::CmdCopyQueryPoolResults(params), None) => self.copy_results(*params, out),
            (Call::CmdBeginConditionalRenderingEXT(params), None) => {
                let Some(info) = params.p_conditional_rendering_begin() else { return true };
                let read = self.buffer_access(info.buffer, info.offset, 4, CONDITION_READ, out);
                self.record_action(params.command_buffer, read.into_iter().collect(), out);
                self.set_conditional_rendering(params.command_buffer, true);
            }
            (Call::CmdEndConditionalRenderingEXT(params), None) => {
                self.set_conditional_rendering(params.command_buffer, false)
            }
            (Call::CmdBindTransformFeedbackBuffersEXT(params), None) => self.bind_feedback(*params, out),
            (Call::CmdBeginTransformFeedbackEXT(params), None) => {
                let (buffers, offsets) = (params.p_counter_buffers(), params.p_counter_buffer_offsets());
                let counters = self.counters(buffers, offsets, COUNTER_READ, out);
                self.record_action(params.command_buffer, counters, out);
                self.set_transform_feedback(params.command_buffer, true);
            }
            (Call::CmdEndTransformFeedbackEXT(params), None) => {
                let (buffers, offsets) = (params.p_counter_buffers(), params.p_counter_buffer_offsets());
                let counters = self.counters(buffers, offsets, COUNTER_WRITE, out);
                self.record_action(params.command_buffer, counters, out);
                self.set_transform_feedback(params.command_buffer, false);
            }
            _ => return false,
        }
        true
    }

    /// Size in bytes of one result: its values, and one more if availability is included.
    pub(crate) fn result_size(
        &self,
        pool: vk::QueryPool,
        flags: vk::QueryResultFlags,
        stride: u64,
        out: &mut TrackerOutput<'_>,
    ) -> u64 {
        let has = |flag: vk::QueryResultFlags| flags.0 & flag.0 != 0;
        let width: u64 = if has(vk::QueryResultFlags::_64) { 8 } else { 4 };
        let more = [vk::QueryResultFlags::WITH_AVAILABILITY, vk::QueryResultFlags::WITH_STATUS_KHR];
        let extra = u32::from(more.into_iter().any(has));
        match self.query_pools.get(pool.0).map(|it| it.values) {
            Some(Some(values)) => width * u64::from(values + extra),
            // Any bytes within the stride.
            _ => {
                out.report_untracked("how large the results of queries are");
                stride
            }
        }
    }

    /// The results lie `stride` bytes apart.
    fn copy_results(
        &mut self,
        results_params: View<'_, vk::CmdCopyQueryPoolResultsParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let size = self.result_size(results_params.query_pool, results_params.flags, results_params.stride, out);
        let mut accesses: Vec<Access> = Vec::new();
        if results_params.stride == size {
            let bytes = size.saturating_mul(u64::from(results_params.query_count));
            accesses.extend(self.buffer_access(
                results_params.dst_buffer,
                results_params.dst_offset,
                bytes,
                COPY_WRITE,
                out,
            ));
        } else {
            /// More queries than any pool has.
            const QUERIES_MAX: u32 = 1 << 16;
            for query in 0..results_params.query_count.min(QUERIES_MAX) {
                let offset =
                    results_params.dst_offset.saturating_add(results_params.stride.saturating_mul(u64::from(query)));
                accesses.extend(self.buffer_access(results_params.dst_buffer, offset, size, COPY_WRITE, out));
            }
        }
        self.record_action(results_params.command_buffer, accesses, out);
    }

    fn bind_feedback(
        &mut self,
        ext_params: View<'_, vk::CmdBindTransformFeedbackBuffersEXTParams>,
        out: &mut TrackerOutput<'_>,
    ) {
        let (offsets, sizes) = (ext_params.p_offsets(), ext_params.p_sizes());
        for (at, buffer) in ext_params.p_buffers().iter().enumerate() {
            let offset = offsets.get(at).copied().unwrap_or(0);
            let size = sizes.get(at).copied().unwrap_or(vk::WHOLE_SIZE);
            let part = self.buffer_range(*buffer, offset, size);
            if part.is_none() {
                out.report_untracked("a buffer whose memory is not known");
            }
            let number = ext_params.first_binding.saturating_add(at as u32);
            if let (Some(own), Some(part)) = (self.command_buffer_mut(ext_params.command_buffer), part) {
                own.state.feedback_buffers.insert(number, part);
            }
        }
    }

    fn counters(
        &self,
        buffers: &[vk::Buffer],
        offsets: &[u64],
        usage: StageAccess,
        out: &mut TrackerOutput<'_>,
    ) -> Vec<Access> {
        let used = buffers.iter().enumerate().filter(|it| it.1.0 != 0);
        let offset = |at: usize| offsets.get(at).copied().unwrap_or(0);
        used.filter_map(|(at, buffer)| self.buffer_access(*buffer, offset(at), 4, usage, out)).collect()
    }

    /// Conditional rendering: memory decides whether the following draws and dispatches execute.
    pub(crate) fn set_conditional_rendering(&mut self, buffer: vk::CommandBuffer, is_conditional: bool) {
        if let Some(own) = self.command_buffer_mut(buffer) {
            if is_conditional {
                own.undo = Undo::Condition(own.state.is_conditional);
            }
            own.state.is_conditional = is_conditional;
        }
    }

    pub(crate) fn set_transform_feedback(&mut self, buffer: vk::CommandBuffer, is_active: bool) {
        if let Some(own) = self.command_buffer_mut(buffer) {
            own.undo = Undo::Feedback(own.state.is_transform_feedback_active);
            own.state.is_transform_feedback_active = is_active;
        }
    }
}

fn values(info: View<'_, vk::QueryPoolCreateInfo>) -> Option<u32> {
    match info.query_type {
        vk::QueryType::OCCLUSION | vk::QueryType::TIMESTAMP => Some(1),
        vk::QueryType::PIPELINE_STATISTICS => Some(info.pipeline_statistics.0.count_ones()),
        vk::QueryType::TRANSFORM_FEEDBACK_STREAM_EXT => Some(2),
        vk::QueryType::RESULT_STATUS_ONLY_KHR => Some(0),
        vk::QueryType::VIDEO_ENCODE_FEEDBACK_KHR => {
            let feedback = info.chained::<vk::QueryPoolVideoEncodeFeedbackCreateInfoKHR>();
            feedback.map(|it| it.encode_feedback_flags.0.count_ones())
        }
        vk::QueryType::PRIMITIVES_GENERATED_EXT | vk::QueryType::MESH_PRIMITIVES_GENERATED_EXT => Some(1),
        vk::QueryType::ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR
        | vk::QueryType::ACCELERATION_STRUCTURE_SERIALIZATION_SIZE_KHR
        | vk::QueryType::ACCELERATION_STRUCTURE_SERIALIZATION_BOTTOM_LEVEL_POINTERS_KHR
        | vk::QueryType::ACCELERATION_STRUCTURE_SIZE_KHR
        | vk::QueryType::ACCELERATION_STRUCTURE_COMPACTED_SIZE_NV
        | vk::QueryType::MICROMAP_COMPACTED_SIZE_EXT
        | vk::QueryType::MICROMAP_SERIALIZATION_SIZE_EXT => Some(1),
        _ => None,
    }
}
