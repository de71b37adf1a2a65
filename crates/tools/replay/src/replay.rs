//! All that the threads of a replay share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use lavascope_trace::CallNumbers;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::ReplayOptions;
use crate::call::functions::{Functions, Loader, ProcAddrSource};
use crate::call::handlers::HandlerTable;
use crate::call::held_submissions::HeldSubmissions;
use crate::call::objects::ReplayObjects;
use crate::error::ReplayError;
use crate::memory::bindings::MemoryBindings;
use crate::memory::device_memory::{MemoryTable, WriteComparison};
use crate::memory::host_image_copy::HostCopyImages;
use crate::memory::linear_images::LinearImages;
use crate::port::device::ReplayDevice;
use crate::port::device_addresses::DeviceAddressMap;
use crate::port::external_files::ExternalFiles;
use crate::port::formats::FormatMap;
use crate::port::instance::RecordedDevices;
use crate::port::plan::PlanBuilder;
use crate::port::queue_families::QueueFamilyMap;
use crate::present::virtual_swapchain::VirtualSwapchains;
use crate::schedule::device_waits::DeviceWaits;
use crate::schedule::frame_clock::FrameClock;
use crate::schedule::progress::ReplayProgress;
use crate::schedule::throttle::OriginalPace;

/// The data behind these locks is consistent at every moment.
pub(crate) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replay under way.
pub(crate) struct Replay {
    pub(crate) options: ReplayOptions,
    pub(crate) objects: Arc<ReplayObjects>,
    pub(crate) progress: ReplayProgress,
    /// Whether work was submitted that waits for the host, so that waiting for the device may be in vain.
    pub(crate) waits_for_host: AtomicBool,
    /// Threads that wait for the device.
    pub(crate) device_waits: DeviceWaits,
    pub(crate) handlers: HandlerTable,
    /// Whether the trace has what the device wrote into memory that the host can see.
    pub(crate) has_device_writes: bool,
    /// The metadata of the capture.
    pub(crate) metadata: Vec<Value>,
    pub(crate) recorded_devices: Mutex<RecordedDevices>,
    pub(crate) memories: MemoryTable,
    pub(crate) bindings: MemoryBindings,
    pub(crate) swapchains: VirtualSwapchains,
    pub(crate) held_submissions: HeldSubmissions,
    pub(crate) host_copies: HostCopyImages,
    pub(crate) linear: LinearImages,
    pub(crate) addresses: DeviceAddressMap,
    pub(crate) external_files: ExternalFiles,
    pub(crate) families: QueueFamilyMap,
    pub(crate) formats: FormatMap,
    pub(crate) write_comparison: Mutex<WriteComparison>,
    pub(crate) clock: FrameClock,
    /// None if the replay is as fast as it can be.
    pub(crate) pace: Option<OriginalPace>,
    /// What a dry run has found so far.
    pub(crate) plan: Option<Mutex<PlanBuilder>>,
    /// Whether what cannot be done here was looked for.
    pub(crate) is_support_checked: bool,
    skipped: Mutex<SkippedCalls>,
    /// Calls that began and never returned.
    pub(crate) unreturned: Mutex<Vec<UnreturnedCall>>,
    /// The time of the last submission, in ticks of the trace.
    pub(crate) last_submission: AtomicU64,
    pub(crate) ticks_per_second: u64,
    pub(crate) pause: Option<PausedPosition>,
    pub(crate) calls: AtomicU64,
    owners: RwLock<Vec<Arc<Functions>>>,
    devices: RwLock<FxHashMap<u32, Arc<ReplayDevice>>>,
    queues: RwLock<FxHashMap<u64, Arc<Mutex<()>>>>,
    remarks: Mutex<Vec<String>>,
    // Last: the functions of everything else point into it.
    pub(crate) loader: Loader,
}

/// Calls that could not be made, and were not.
#[derive(Default)]
struct SkippedCalls {
    count: u64,
    first: Option<ReplayError>,
}

/// A call that began and never returned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnreturnedCall {
    pub(crate) stream: u32,
    pub(crate) position: u64,
    pub(crate) command: &'static str,
}

/// The call before which the replay waits for the user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PausedPosition {
    pub(crate) stream: u32,
    pub(crate) position: u64,
    pub(crate) number: u64,
}

/// The mode in which a trace is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunMode {
    /// To perform it, unless it needs a plan first.
    Perform,
    /// Performs the calls: nothing speaks against it, or the user decided to ignore that.
    PerformAnyway,
    /// To find out what would be done.
    Plan,
}

/// The owner of objects that belong to no instance.
pub(crate) const GLOBAL: u32 = 0;

impl Replay {
    pub(crate) fn new(
        options: ReplayOptions,
        purpose: RunMode,
        (facts, ticks_per_second): (Vec<Value>, u64),
        streams: &[u32],
    ) -> Result<Replay, ReplayError> {
        let loader = Loader::open()?;
        let global = Functions::new(ProcAddrSource::Instance(loader.get_instance_proc_addr, vk::Instance(0)));
        let is_plan = purpose == RunMode::Plan;
        let pace = options.is_original_speed.then(|| OriginalPace::new(ticks_per_second));
        Ok(Replay {
            clock: FrameClock::new(options.measure_from),
            pace: pace.filter(|_| !is_plan),
            plan: is_plan.then(Mutex::default),
            is_support_checked: purpose != RunMode::Perform || options.force,
            skipped: Mutex::default(),
            unreturned: Mutex::default(),
            last_submission: AtomicU64::new(u64::MAX),
            ticks_per_second: ticks_per_second.max(1),
            pause: None,
            objects: Arc::new(ReplayObjects::new()),
            progress: ReplayProgress::new(streams, options.interrupt.clone(), options.thread_sharing()),
            waits_for_host: AtomicBool::new(false),
            device_waits: DeviceWaits::default(),
            handlers: if is_plan { HandlerTable::for_plan() } else { HandlerTable::new() },
            options,
            has_device_writes: facts.iter().any(|it| it["results"] == true),
            metadata: facts,
            recorded_devices: Mutex::default(),
            memories: MemoryTable::default(),
            bindings: MemoryBindings::default(),
            swapchains: VirtualSwapchains::default(),
            held_submissions: HeldSubmissions::default(),
            host_copies: HostCopyImages::default(),
            linear: LinearImages::default(),
            addresses: DeviceAddressMap::default(),
            external_files: ExternalFiles::default(),
            families: QueueFamilyMap::default(),
            formats: FormatMap::default(),
            write_comparison: Mutex::default(),
            calls: AtomicU64::new(0),
            owners: RwLock::new(vec![Arc::new(global)]),
            devices: RwLock::default(),
            queues: RwLock::default(),
            remarks: Mutex::default(),
            loader,
        })
    }

    /// Something new that has functions of its own.
    pub(crate) fn add_owner(&self, functions: Arc<Functions>) -> u32 {
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        owners.push(functions);
        owners.len() as u32 - 1
    }

    pub(crate) fn functions(&self, owner: u32) -> Option<Arc<Functions>> {
        self.owners.read().unwrap_or_else(PoisonError::into_inner).get(owner as usize).cloned()
    }

    pub(crate) fn add_device(&self, device: Arc<ReplayDevice>) {
        self.devices.write().unwrap_or_else(PoisonError::into_inner).insert(device.owner, device);
    }

    pub(crate) fn device(&self, owner: u32) -> Option<Arc<ReplayDevice>> {
        self.devices.read().unwrap_or_else(PoisonError::into_inner).get(&owner).cloned()
    }

    pub(crate) fn remove_device(&self, owner: u32) -> Option<Arc<ReplayDevice>> {
        self.devices.write().unwrap_or_else(PoisonError::into_inner).remove(&owner)
    }

    /// Locks for queues: the replay has submissions of its own beside those of the trace.
    pub(crate) fn queue_lock(&self, queue: u64) -> Arc<Mutex<()>> {
        if let Some(pair) = self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&queue) {
            return pair.clone();
        }
        self.queues.write().unwrap_or_else(PoisonError::into_inner).entry(queue).or_default().clone()
    }

    /// Something that the user should know.
    pub(crate) fn remark(&self, text: String) {
        let mut remarks = lock(&self.remarks);
        if !remarks.contains(&text) {
            remarks.push(text);
        }
    }

    /// The remarks. `numbers` gives the numbers of calls, if a remark has some.
    pub(crate) fn remarks(&self, numbers: &dyn Fn() -> CallNumbers) -> Vec<String> {
        let mut all = lock(&self.remarks).clone();
        let (left_out, unreturned) = (lock(&self.skipped), lock(&self.unreturned));
        if left_out.count == 0 && unreturned.is_empty() {
            return all;
        }
        let numbers = numbers();
        for UnreturnedCall { stream, position, command } in &*unreturned {
            let call = numbers.number(*stream, *position);
            all.push(format!("call {call} of thread {stream}, {command}, never returned, and was not made"));
        }
        if let Some(first) = &left_out.first {
            let (count, first) = (left_out.count, first.clone().with_numbers(&numbers));
            all.push(format!("{count} calls could not be made and were left out, the first: {first}"));
        }
        all
    }

    pub(crate) fn is_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether an object is one of the driver.
    pub(crate) fn is_driver_object(&self, id: ObjectId) -> bool {
        self.plan.as_ref().is_none_or(|it| lock(it).is_created(id))
    }

    /// A call that could not be made, where that is no reason to stop.
    #[cold]
    pub(crate) fn skip_call(&self, error: ReplayError) -> Result<(), ReplayError> {
        if !self.options.force || !matches!(error, ReplayError::Call { .. } | ReplayError::Record { .. }) {
            return Err(error);
        }
        let mut left_out = lock(&self.skipped);
        left_out.count += 1;
        left_out.first.get_or_insert(error);
        Ok(())
    }
}
