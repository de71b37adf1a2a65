//! Random programs with sparse buffers.

use lavascope_abi::PipelineStageFlags2;
use lavascope_sync_ir::{
    HostStep, MemoryId, Program, QueueId, ResourceId, ResourceKind, SemaphoreId, SemaphorePoint, SemaphoreWait,
    SparseBind, SparsePart,
};

use lavascope_test_support::TestRng;

/// Makes buffers sparse that have memory of their own, and binds parts of them before and between the steps.
pub fn make_sparse(program: &mut Program, seed: u64) {
    let mut random = TestRng::new(seed);
    let mut below = |end: u64| random.below(end);
    let mut sparse = Vec::new();
    for (index, item) in program.resources.iter_mut().enumerate() {
        if let (ResourceKind::Buffer { size }, None) = (&item.kind, item.binding) {
            item.is_sparse = true;
            sparse.push((ResourceId(index as u32), *size));
        }
    }
    let mut at = 0;
    while at <= program.steps.len() && !sparse.is_empty() {
        let mut binds = Vec::new();
        for (resource, size) in &sparse {
            let start = below(*size);
            let memory = (MemoryId(100 + below(2) as u32), below(4));
            let memory = (below(4) > 0).then_some(memory);
            let part = SparsePart::Bytes(if at == 0 { 0 } else { start });
            binds.push(SparseBind {
                resource: *resource,
                part,
                size: if at == 0 { *size } else { size - start },
                memory,
            });
        }
        let queue = QueueId(below(program.queues.len() as u64) as u32);
        let semaphore = SemaphoreId(program.semaphore_count);
        program.semaphore_count += 1;
        let point = SemaphorePoint { semaphore, value: None };
        let bind = HostStep::BindSparse { queue, waits: Vec::new(), binds, signals: vec![point], fence: None };
        program.steps.insert(at, bind);
        // Sometimes a batch waits for it; what it handed on before comes along.
        if let (Some(HostStep::Submit { batches, .. }), true) = (program.steps.get_mut(at + 1), below(2) == 0)
            && let Some(batch) = batches.first_mut()
        {
            batch.waits.push(SemaphoreWait { point, stages: PipelineStageFlags2::ALL_COMMANDS.0 });
        }
        at += 2 + below(3) as usize;
    }
}
