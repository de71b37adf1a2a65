//! A thread that makes pipelines again, with details about what was seen. It is started when there is something to do.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::plan::CheckStyle;
use super::variants::{InstrumentedPipeline, lock};
use crate::gpu::DeviceChecks;
use crate::process::catch_panic::run_if_enabled;
use crate::report::messages::mark_layer_thread;

/// The thread, if it runs.
#[derive(Default)]
pub(crate) struct PipelineWorker(Mutex<Option<WorkerThread>>);

struct WorkerThread {
    jobs: Sender<RebuildJob>,
    thread: JoinHandle<()>,
}

/// A pipeline, and how it is to be made.
type RebuildJob = (Arc<InstrumentedPipeline>, CheckStyle);

impl PipelineWorker {
    /// Finishes what was asked for, and ends.
    pub(crate) fn end(&self) {
        let running = lock(&self.0).take();
        if let Some(WorkerThread { jobs, thread }) = running {
            drop(jobs);
            // A panic was told by its fence.
            _ = thread.join();
        }
    }
}

impl DeviceChecks {
    /// Has a pipeline made again, soon.
    pub(crate) fn request_rebuild(self: &Arc<DeviceChecks>, checked: Arc<InstrumentedPipeline>, style: CheckStyle) {
        let mut running = lock(&self.worker.0);
        if running.is_none() {
            let (jobs, asked) = channel::<RebuildJob>();
            // Not for ever: the thread ends before the device does (`PipelineWorker::end`).
            let gpu = Arc::clone(self);
            let work = move || {
                mark_layer_thread();
                for (checked, style) in asked {
                    run_if_enabled("a pipeline made again", || gpu.build_detailed_variant(&checked, &style), || ());
                }
            };
            let thread = std::thread::Builder::new().name("lavascope-gpu".to_owned()).spawn(work);
            *running = thread.ok().map(|thread| WorkerThread { jobs, thread });
        }
        if let Some(running) = &*running {
            // Nobody listens only if the thread is gone, and then nothing is to be done.
            _ = running.jobs.send((checked, style));
        }
    }
}
