//! A thread that creates pipelines again with details about the sites that were seen. It is started when needed.

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

/// A pipeline, and how to create it again.
type RebuildJob = (Arc<InstrumentedPipeline>, CheckStyle);

impl PipelineWorker {
    /// Finishes all requests, and ends the thread.
    pub(crate) fn end(&self) {
        let running = lock(&self.0).take();
        if let Some(WorkerThread { jobs, thread }) = running {
            drop(jobs);
            // `catch_panic` has already reported a panic of the thread.
            _ = thread.join();
        }
    }
}

impl DeviceChecks {
    /// Requests that a pipeline is created again.
    pub(crate) fn request_rebuild(self: &Arc<DeviceChecks>, checked: Arc<InstrumentedPipeline>, style: CheckStyle) {
        let mut running = lock(&self.worker.0);
        if running.is_none() {
            let (jobs, asked) = channel::<RebuildJob>();
            // No cycle stays: the thread ends before the device does (`PipelineWorker::end`).
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
            // Sending fails only if the thread has ended, and then there is nothing to do.
            _ = running.jobs.send((checked, style));
        }
    }
}
