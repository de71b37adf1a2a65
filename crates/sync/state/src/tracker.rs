//! The tracker: takes records in order and passes each to the family that handles its command.
//!
//! A command is tracked before the driver executes it or, if its results matter, after it returned; its parameters are
//! kept until then. `crates/api/codegen/src/emit/state/handled.rs` lists family and phase of each command. The
//! generator fails for a command of the registry without an entry.

use std::collections::BTreeMap;
use std::ffi::CStr;

use lavascope_abi as vk;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{Call, HostWrite, Outcome, Record, View, from_trusted};
use lavascope_sync_ir::QueueId;
use rustc_hash::FxHashMap;

use crate::command_caching::{keeps_attachments, keeps_recordings};
use crate::command_support::{CommandFamily, CommandSupport, TrackPhase, command_support};
use crate::device::{TrackedCall, TrackedDevice};
use crate::draw::index_values::HostWriteCoverage;
use crate::listener::{CallSource, DeviceCall, TrackerListener, TrackerOutput, Untracked, object};
use crate::resource::memory::HostWritten;
use crate::shader::interface::{NoReflection, Reflect};
use crate::slab::{ObjectLifetime, Slab};

/// Tracks an application from its records.
///
/// Records must be in an order in which the threads of the application could have made the calls. `stream` delivers
/// them so.
pub struct Tracker<L> {
    pub listener: L,
    devices: Slab<Box<TrackedDevice>>,
    /// The device of each command buffer.
    command_buffer_devices: Slab<u64>,
    /// The device and the id of each queue.
    queues: Slab<(u64, QueueId)>,
    /// `VkQueueFlags` of the queue families of each physical device, as far as the application queried them.
    queue_family_flags: FxHashMap<u64, Vec<u32>>,
    /// Calls that have not returned yet, by thread.
    pending: FxHashMap<u32, Vec<u64>>,
    untracked: BTreeMap<Untracked, u64>,
    reflect: Box<dyn Reflect + Send>,
    reports_dynamic_indexing: bool,
    host_write_coverage: HostWriteCoverage,
    /// See [`Tracker::change_count`].
    change_count: u64,
    is_cache_disabled: bool,
}

/// The assumed flags of a queue family that was not queried: graphics, compute, transfer and sparse binding.
const FLAGS_UNKNOWN: u32 = 0xf;

impl<L: TrackerListener> Tracker<L> {
    /// A tracker without shader reflection: shaders count as accessing no descriptors.
    pub fn new(listener: L) -> Tracker<L> {
        Tracker::with_reflection(listener, Box::new(NoReflection))
    }

    pub fn with_reflection(listener: L, reflect: Box<dyn Reflect + Send>) -> Tracker<L> {
        Tracker {
            listener,
            devices: Slab::default(),
            command_buffer_devices: Slab::default(),
            queues: Slab::default(),
            queue_family_flags: FxHashMap::default(),
            pending: FxHashMap::default(),
            untracked: BTreeMap::new(),
            reflect,
            reports_dynamic_indexing: false,
            host_write_coverage: HostWriteCoverage::None,
            change_count: 0,
            is_cache_disabled: false,
        }
    }

    /// Computes the attachment accesses of every draw again, for comparison. The caches of the reflection are separate.
    pub fn disable_caches(&mut self) {
        self.is_cache_disabled = true;
    }

    /// Sets the shader reflection, for shaders created from now on.
    pub fn set_reflection(&mut self, reflect: Box<dyn Reflect + Send>) {
        self.reflect = reflect;
    }

    /// Whether to report accesses to dynamically indexed descriptors. Each is only possible, and one draw may have
    /// thousands.
    pub fn report_dynamic_indexing(&mut self, is_wanted: bool) {
        self.reports_dynamic_indexing = is_wanted;
        self.change_count += 1;
    }

    /// Declares that all host writes to mapped memory will be reported before the device can read them.
    pub fn expect_all_host_writes(&mut self) {
        self.set_host_write_coverage(HostWriteCoverage::All);
    }

    /// As above for some memories only: if one write to a memory is reported, all writes to it are.
    pub fn expect_some_host_writes(&mut self) {
        self.set_host_write_coverage(HostWriteCoverage::Some);
    }

    /// Declares that host writes are no longer reported. The contents reported so far are no longer used.
    pub fn ignore_host_writes(&mut self) {
        self.set_host_write_coverage(HostWriteCoverage::None);
    }

    fn set_host_write_coverage(&mut self, coverage: HostWriteCoverage) {
        self.host_write_coverage = coverage;
        self.change_count += 1;
        self.devices.iter_mut().for_each(|it| it.host_write_coverage = coverage);
    }

    /// Reports a host write to mapped memory, noticed by a thread before its next call. Bytes that the host never wrote
    /// are zero.
    pub fn apply_host_write(&mut self, thread: u32, written: HostWrite<'_>) {
        // In files of older versions, only these calls looked for writes of most programs.
        let command = written.noticed_by().unwrap_or(vk::Command::QueueSubmit);
        let source = CallSource { command, thread, call: written.next_call() };
        let is_stored = self.host_write_coverage != HostWriteCoverage::None;
        let Tracker { listener, devices, change_count, .. } = self;
        for device in devices.iter_mut() {
            *change_count += u64::from(is_stored && device.store_host_write(written));
            let at = DeviceCall { device: object(device.handle), source };
            let is_of_interest = |resource, bytes| listener.uses_bytes(at, resource, bytes);
            for HostWritten { resource, bytes, certainty } in device.host_written(written, is_of_interest) {
                listener.host_write(at, resource, &bytes, certainty);
            }
        }
    }

    /// The unsupported items so far, with their counts.
    pub fn untracked(&self) -> impl Iterator<Item = (Untracked, u64)> {
        self.untracked.iter().map(|(missing, count)| (*missing, *count))
    }

    /// Counts the changes that recorded commands depend on. While the count stays the same, a command buffer recorded
    /// with the same calls has the same commands. It also grows with each unsupported item, and when commands are
    /// completed later.
    #[inline]
    pub fn change_count(&self) -> u64 {
        self.change_count
    }

    /// Whether an object is alive, destroyed, or was never created.
    pub fn lifetime(&self, object: ObjectId) -> ObjectLifetime {
        let handle = object.raw();
        let of_device = |it: &TrackedDevice| it.lifetime(object);
        match object.ty() {
            Some(HandleType::Device) => self.devices.lifetime(handle),
            Some(HandleType::Queue) => self.queues.lifetime(handle),
            Some(HandleType::CommandBuffer) => self.command_buffer_devices.lifetime(handle),
            _ => self
                .devices
                .iter()
                .map(|it| of_device(it))
                .find(|it| *it != ObjectLifetime::NeverCreated)
                .unwrap_or(ObjectLifetime::NeverCreated),
        }
    }

    /// Called before the driver executes a call of a thread. Returns whether the tracker handles the command.
    pub fn track_parameters(&mut self, thread: u32, record: Record<'_>) -> bool {
        match command_support(record.command()) {
            // For example a draw: it has no results. `Call` has a variant for each command, with a view of its
            // parameters.
            CommandSupport::Tracked(family, TrackPhase::Enter) => {
                let Some(call) = &Call::of(record) else { return false };
                self.track(thread, record, family, TrackedCall { call, outcome: None })
            }
            CommandSupport::Tracked(_, TrackPhase::Leave) => {
                let own = self.pending.entry(thread).or_default();
                own.clear();
                own.extend_from_slice(record.words());
                true
            }
            CommandSupport::Untracked(reason) => {
                let device = self.device_of(record).unwrap_or_default();
                self.out(thread, record, device).report_untracked(reason);
                true
            }
            CommandSupport::Ignored(_) => true,
        }
    }

    /// Called after the driver returned from the last call of a thread. Returns whether the tracker handles the
    /// command.
    pub fn track_outputs(&mut self, thread: u32, record: Record<'_>) -> bool {
        let CommandSupport::Tracked(family, TrackPhase::Leave) = command_support(record.command()) else { return true };
        let words = self.pending.remove(&thread).unwrap_or_default();
        let taken = from_trusted(&words).filter(|it| it.command() == record.command()).and_then(|entered| {
            let (call, outcome) = (Call::of(entered)?, Outcome::of(record)?);
            Some(self.track(thread, entered, family, TrackedCall { call: &call, outcome: Some(&outcome) }))
        });
        self.pending.insert(thread, words);
        taken.unwrap_or_else(|| {
            self.out(thread, record, 0).report_untracked("a call whose beginning was not seen");
            true
        })
    }

    /// Cancels the last entered call, which the driver does not execute. If it recorded a command, the command is
    /// removed.
    pub fn cancel_command(&mut self, thread: u32, record: Record<'_>) {
        let Some(handle) = self.device_of(record) else { return };
        let Tracker { listener, devices, untracked, reflect, reports_dynamic_indexing, change_count, .. } = self;
        let Some(device) = devices.get_mut(handle) else { return };
        device.last_draw.invalidate();
        let source = CallSource { command: record.command(), thread, call: record.call_number() };
        let at = DeviceCall { device: object(handle), source };
        let out = &mut TrackerOutput {
            listener,
            counts: untracked,
            change_count,
            reflect: &**reflect,
            reports_dynamic_indexing: *reports_dynamic_indexing,
            possible_reads: Vec::new(),
            at,
        };
        device.cancel_command(first_handle(record), out);
    }

    /// Finds the device of a call, invalidates caches that the command may change (the attachments of the last draw,
    /// and recordings that come again), and gives the call to its family.
    fn track(&mut self, thread: u32, record: Record<'_>, family: CommandFamily, tracked: TrackedCall<'_>) -> bool {
        if family == CommandFamily::Device {
            return self.track_devices(thread, record, tracked);
        }
        let handle = self.device_of(record);
        let Tracker {
            listener,
            devices,
            untracked,
            reflect,
            reports_dynamic_indexing,
            queues,
            change_count,
            is_cache_disabled,
            ..
        } = self;
        // A queue handle may be used after its device is destroyed.
        let Some((handle, device)) = handle.and_then(|it| Some((it, devices.get_mut(it)?))) else {
            self.out(thread, record, 0).report_untracked("an object of a device that nobody created");
            return true;
        };
        if !keeps_attachments(record.command()) || *is_cache_disabled {
            device.last_draw.invalidate();
        }
        *change_count += u64::from(!keeps_recordings(record.command()));
        let source = CallSource { command: record.command(), thread, call: record.call_number() };
        let at = DeviceCall { device: object(handle), source };
        let out = &mut TrackerOutput {
            listener,
            counts: untracked,
            change_count,
            reflect: &**reflect,
            reports_dynamic_indexing: *reports_dynamic_indexing,
            possible_reads: Vec::new(),
            at,
        };
        let is_tracked = track_in_device(device, queues, record, (family, tracked), out);
        if family == CommandFamily::CommandBuffer {
            for buffer in device.allocated_command_buffers.drain(..) {
                self.command_buffer_devices.insert(buffer, handle);
            }
            for buffer in device.freed_command_buffers.drain(..) {
                self.command_buffer_devices.remove(buffer);
            }
        }
        is_tracked
    }

    /// Creation and destruction of devices and their queues.
    #[cold]
    #[inline(never)]
    fn track_devices(&mut self, thread: u32, record: Record<'_>, tracked: TrackedCall<'_>) -> bool {
        self.change_count += 1;
        match (tracked.call, tracked.outcome) {
            (
                Call::GetPhysicalDeviceQueueFamilyProperties(params),
                Some(Outcome::GetPhysicalDeviceQueueFamilyProperties(done)),
            ) => {
                let flags = done.p_queue_family_properties().iter().map(|it| it.queue_flags.0);
                self.set_queue_family_flags(params.physical_device, flags.collect());
            }
            (
                Call::GetPhysicalDeviceQueueFamilyProperties2(params),
                Some(Outcome::GetPhysicalDeviceQueueFamilyProperties2(done)),
            ) => {
                let families = done.p_queue_family_properties();
                let flags = families.iter().map(|it| it.queue_family_properties.queue_flags.0);
                self.set_queue_family_flags(params.physical_device, flags.collect());
            }
            (Call::CreateDevice(params), Some(Outcome::CreateDevice(made))) => {
                if let (Some(info), Some(device)) = (params.p_create_info(), made.p_device()) {
                    self.create_device(thread, record, params.physical_device, info, device.0);
                }
            }
            (Call::DestroyDevice(params), None) => {
                if let Some(device) = self.devices.remove(params.device.0) {
                    for buffer in device.command_buffer_handles() {
                        self.command_buffer_devices.remove(buffer);
                    }
                    let out = self.out(thread, record, params.device.0);
                    out.listener.device_destroyed(out.at);
                }
            }
            (Call::GetDeviceQueue(params), Some(Outcome::GetDeviceQueue(done))) => {
                let queue = done.p_queue().map_or(0, |it| it.0);
                self.add_queue(thread, record, (params.queue_family_index, params.queue_index), queue);
            }
            (Call::GetDeviceQueue2(params), Some(Outcome::GetDeviceQueue2(done))) => {
                let queue = done.p_queue().map_or(0, |it| it.0);
                if let Some(info) = params.p_queue_info() {
                    self.add_queue(thread, record, (info.queue_family_index, info.queue_index), queue);
                }
            }
            _ => return false,
        }
        true
    }

    fn set_queue_family_flags(&mut self, physical: vk::PhysicalDevice, flags: Vec<u32>) {
        if !flags.is_empty() {
            self.queue_family_flags.insert(physical.0, flags);
        }
    }

    fn create_device(
        &mut self,
        thread: u32,
        record: Record<'_>,
        physical: vk::PhysicalDevice,
        info: View<'_, vk::DeviceCreateInfo>,
        handle: u64,
    ) {
        let maintenance9 = info.chained::<vk::PhysicalDeviceMaintenance9FeaturesKHR>();
        let mut device = TrackedDevice {
            handle,
            has_external_waits: info.pp_enabled_extension_names().flatten().any(is_external_wait),
            has_maintenance9: maintenance9.is_some_and(|it| it.maintenance9.is_true()),
            host_write_coverage: self.host_write_coverage,
            ..TrackedDevice::default()
        };
        let families = self.queue_family_flags.get(&physical.0).map_or(&[][..], Vec::as_slice);
        for p_queue_create_info in info.p_queue_create_infos().iter() {
            let flags = families.get(p_queue_create_info.queue_family_index as usize).copied().unwrap_or(FLAGS_UNKNOWN);
            device.queues.add(p_queue_create_info.queue_family_index, p_queue_create_info.queue_count, flags);
        }
        let out = self.out(thread, record, handle);
        out.listener.device(out.at, device.queues.all());
        let feature = info.chained::<vk::PhysicalDeviceSynchronization2Features>();
        let features = info.chained::<vk::PhysicalDeviceVulkan13Features>();
        if feature.is_some_and(|it| it.synchronization2.is_true())
            || features.is_some_and(|it| it.synchronization2.is_true())
        {
            out.listener.synchronization2(out.at);
        }
        self.devices.insert(handle, Box::new(device));
    }

    fn add_queue(&mut self, thread: u32, record: Record<'_>, (queue_family, index): (u32, u32), queue: u64) {
        let device = first_handle(record);
        if let Some(id) = self.devices.get(device).and_then(|it| it.queues.find(queue_family, index)) {
            self.queues.insert(queue, (device, id));
            let out = self.out(thread, record, device);
            out.listener.queue(out.at, id, object(queue));
        }
    }

    fn out(&mut self, thread: u32, record: Record<'_>, device: u64) -> TrackerOutput<'_> {
        let source = CallSource { command: record.command(), thread, call: record.call_number() };
        let at = DeviceCall { device: object(device), source };
        TrackerOutput {
            listener: &mut self.listener,
            counts: &mut self.untracked,
            change_count: &mut self.change_count,
            reflect: &*self.reflect,
            reports_dynamic_indexing: self.reports_dynamic_indexing,
            possible_reads: Vec::new(),
            at,
        }
    }

    /// The device of a call, by its first parameter.
    #[inline]
    fn device_of(&self, record: Record<'_>) -> Option<u64> {
        let handle = first_handle(record);
        let is = |ty| ObjectId::from_raw_typed(handle, ty).is_some();
        // Most calls record commands. A null handle belongs to no device.
        if is(HandleType::CommandBuffer) {
            self.command_buffer_devices.get(handle).copied()
        } else if is(HandleType::Device) {
            self.devices.get(handle).map(|_| handle)
        } else if is(HandleType::Queue) {
            self.queues.get(handle).map(|it| it.0)
        } else {
            None
        }
    }
}

/// Whether an extension lets the host wait for a fence or a semaphore without Vulkan.
fn is_external_wait(extension: &CStr) -> bool {
    [c"VK_KHR_external_fence_fd", c"VK_KHR_external_semaphore_fd"].contains(&extension)
}

/// Gives a call to the family of its command, for example a draw to `draw/draw_commands.rs`.
#[inline]
fn track_in_device(
    device: &mut TrackedDevice,
    queues: &Slab<(u64, QueueId)>,
    record: Record<'_>,
    (family, tracked): (CommandFamily, TrackedCall<'_>),
    out: &mut TrackerOutput<'_>,
) -> bool {
    match family {
        CommandFamily::Device => false,
        CommandFamily::Memory => device.track_memory(tracked, out),
        CommandFamily::Image => device.track_resources(tracked, out),
        CommandFamily::CommandBuffer => device.track_command_buffers(tracked, out),
        CommandFamily::Copy => device.track_copies(tracked, out),
        CommandFamily::Barrier => device.track_barriers(tracked, out),
        CommandFamily::Sync => device.track_sync_objects(tracked, out),
        CommandFamily::Queue => match queues.get(first_handle(record)) {
            Some(queue) => device.track_queue(queue.1, tracked, out),
            None => {
                out.report_untracked("a queue that nobody asked for");
                true
            }
        },
        CommandFamily::Swapchain => device.track_swapchains(tracked, out),
        CommandFamily::RenderPass => device.track_render_passes(tracked, out),
        CommandFamily::Rendering => device.track_rendering(tracked, out),
        CommandFamily::Pipeline => device.track_pipelines(tracked, out),
        CommandFamily::Descriptor => device.track_descriptors(tracked, out),
        CommandFamily::DescriptorMemory => device.track_descriptor_buffers(tracked, out),
        CommandFamily::Bind => device.track_binds(tracked, out),
        CommandFamily::Draw => device.track_draws(tracked, out),
        CommandFamily::Query => device.track_queries(tracked, out),
        CommandFamily::Ray => device.track_acceleration_structures(tracked, out),
        CommandFamily::RayNv => device.track_ray_tracing_nv(tracked, out),
        CommandFamily::Micromap => device.track_micromaps(tracked, out),
        CommandFamily::HostBuild => device.track_host_builds(tracked, out),
        CommandFamily::Address => device.track_addresses(tracked, out),
        CommandFamily::HostCopy => device.track_host_copies(tracked, out),
        CommandFamily::Video => device.track_video(tracked, out),
        CommandFamily::External => device.track_external_sync(tracked, out),
        CommandFamily::Tensor => device.track_tensors(tracked, out),
        CommandFamily::OpticalFlow => device.track_optical_flow(tracked, out),
        CommandFamily::Generated => device.track_generated_commands(tracked, out),
        CommandFamily::Indirect => device.track_indirect_memory(tracked, out),
    }
}

/// The first parameter; zero if there is none.
#[inline]
fn first_handle(record: Record<'_>) -> u64 {
    record.image().first().copied().unwrap_or(0)
}
