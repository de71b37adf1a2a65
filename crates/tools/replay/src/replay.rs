//! All that the threads of a replay share.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::ObjectId;
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::Options;
use crate::addresses::Addresses;
use crate::clock::Clock;
use crate::device::Device;
use crate::error::ReplayError;
use crate::families::Families;
use crate::formats::Formats;
use crate::functions::{Functions, Loader, Source};
use crate::held::Held;
use crate::hold::Pace;
use crate::instance::Recorded;
use crate::layout::Bindings;
use crate::memory::{Memories, Results};
use crate::objects::Objects;
use crate::pitches::LinearImages;
use crate::plan::Planning;
use crate::positions::Positions;
use crate::present::Swapchains;
use crate::treat::Treatments;
use crate::waiters::Waiters;

/// What is behind these locks is whole at every moment.
pub(crate) fn lock<T>(it: &Mutex<T>) -> MutexGuard<'_, T> {
    it.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A replay under way.
pub(crate) struct Replay {
    pub(crate) options: Options,
    pub(crate) objects: Arc<Objects>,
    pub(crate) positions: Positions,
    /// Whether work was submitted that waits for the host, so that waiting for the device may be in vain.
    pub(crate) waits_for_host: AtomicBool,
    /// Who waits for the device.
    pub(crate) waiters: Waiters,
    pub(crate) treatments: Treatments,
    /// Whether the trace has what the device wrote into memory that the host can see.
    pub(crate) has_results: bool,
    /// What the capture said.
    pub(crate) facts: Vec<Value>,
    pub(crate) recorded: Mutex<Recorded>,
    pub(crate) memories: Memories,
    pub(crate) bindings: Bindings,
    pub(crate) swapchains: Swapchains,
    pub(crate) held: Held,
    pub(crate) linear: LinearImages,
    pub(crate) addresses: Addresses,
    pub(crate) families: Families,
    pub(crate) formats: Formats,
    pub(crate) results: Mutex<Results>,
    pub(crate) clock: Clock,
    /// None where the replay is as fast as it can be.
    pub(crate) pace: Option<Pace>,
    /// What is known of what would be done, where only that is wanted.
    pub(crate) plan: Option<Mutex<Planning>>,
    /// Whether what cannot be done here was looked for.
    pub(crate) is_planned: bool,
    left_out: Mutex<LeftOut>,
    pub(crate) calls: AtomicU64,
    owners: RwLock<Vec<Arc<Functions>>>,
    devices: RwLock<FxHashMap<u32, Arc<Device>>>,
    queues: RwLock<FxHashMap<u64, Arc<Mutex<()>>>>,
    remarks: Mutex<Vec<String>>,
    // Last: the functions of everything else point into it.
    pub(crate) loader: Loader,
}

/// Calls that could not be made, and were not.
#[derive(Default)]
struct LeftOut {
    count: u64,
    first: String,
}

/// Why a trace is gone through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To perform it, unless it needs a plan first.
    Perform,
    /// To perform it: there is nothing that speaks against it, or nobody cares.
    PerformAnyway,
    /// To find out what would be done.
    Plan,
}

/// Who owns what no instance owns.
pub(crate) const GLOBAL: u32 = 0;

impl Replay {
    pub(crate) fn new(
        options: Options,
        purpose: Purpose,
        (facts, ticks_per_second): (Vec<Value>, u64),
        streams: &[u32],
    ) -> Result<Replay, ReplayError> {
        let loader = Loader::open()?;
        let global = Functions::new(Source::Instance(loader.get_instance_proc_addr, vk::Instance(0)));
        let is_plan = purpose == Purpose::Plan;
        let pace = options.is_original_speed.then(|| Pace::new(ticks_per_second));
        Ok(Replay {
            clock: Clock::new(options.begin),
            pace: pace.filter(|_| !is_plan),
            plan: is_plan.then(Mutex::default),
            is_planned: purpose != Purpose::Perform || options.force,
            left_out: Mutex::default(),
            objects: Arc::new(Objects::new()),
            positions: Positions::new(streams, options.interrupt.clone()),
            waits_for_host: AtomicBool::new(false),
            waiters: Waiters::default(),
            treatments: if is_plan { Treatments::of_plan() } else { Treatments::new() },
            options,
            has_results: facts.iter().any(|it| it["results"] == true),
            facts,
            recorded: Mutex::default(),
            memories: Memories::default(),
            bindings: Bindings::default(),
            swapchains: Swapchains::default(),
            held: Held::default(),
            linear: LinearImages::default(),
            addresses: Addresses::default(),
            families: Families::default(),
            formats: Formats::default(),
            results: Mutex::default(),
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

    pub(crate) fn add_device(&self, device: Arc<Device>) {
        self.devices.write().unwrap_or_else(PoisonError::into_inner).insert(device.owner, device);
    }

    pub(crate) fn device(&self, owner: u32) -> Option<Arc<Device>> {
        self.devices.read().unwrap_or_else(PoisonError::into_inner).get(&owner).cloned()
    }

    pub(crate) fn remove_device(&self, owner: u32) -> Option<Arc<Device>> {
        self.devices.write().unwrap_or_else(PoisonError::into_inner).remove(&owner)
    }

    /// What keeps calls on a queue apart: there are submissions of ours beside those of the trace.
    pub(crate) fn queue_lock(&self, queue: u64) -> Arc<Mutex<()>> {
        if let Some(it) = self.queues.read().unwrap_or_else(PoisonError::into_inner).get(&queue) {
            return it.clone();
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

    pub(crate) fn remarks(&self) -> Vec<String> {
        let mut all = lock(&self.remarks).clone();
        let left_out = lock(&self.left_out);
        if left_out.count > 0 {
            all.push(format!(
                "{} calls could not be made and were left out, the first: {}",
                left_out.count, left_out.first
            ));
        }
        all
    }

    pub(crate) fn is_plan(&self) -> bool {
        self.plan.is_some()
    }

    /// Whether an object is one of the driver.
    pub(crate) fn is_real(&self, id: ObjectId) -> bool {
        self.plan.as_ref().is_none_or(|it| lock(it).is_real(id))
    }

    /// A call that could not be made, where that is no reason to stop.
    #[cold]
    pub(crate) fn leave_out(&self, error: ReplayError) -> Result<(), ReplayError> {
        if !self.options.force || !matches!(error, ReplayError::Call { .. } | ReplayError::Record { .. }) {
            return Err(error);
        }
        let mut left_out = lock(&self.left_out);
        left_out.count += 1;
        if left_out.count == 1 {
            left_out.first = error.to_string();
        }
        Ok(())
    }
}
