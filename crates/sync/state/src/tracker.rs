//! The tracker: takes records in their order and finds who understands them.

use std::collections::BTreeMap;

use lavascope_abi as vk;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_record::{Call, Outcome, Record, View, Written, own};
use lavascope_sync_ir::QueueId;
use rustc_hash::FxHashMap;

use crate::decision::{Decision, Family, When, decision};
use crate::device::{Device, Event};
use crate::indices::HostWrites;
use crate::listener::{Listener, Missing, Out, Source, Where, object};
use crate::shader::{NoReflection, Reflect};
use crate::slab::{Life, Slab};

/// Follows an application by its records.
///
/// Records must come in an order that the application's threads could have made the calls in; `stream` gives them so.
pub struct Tracker<L> {
    pub listener: L,
    devices: Slab<Box<Device>>,
    /// The device of each command buffer.
    owners: Slab<u64>,
    recent: Recent,
    /// The device and the number of each queue.
    queues: Slab<(u64, QueueId)>,
    /// `VkQueueFlags` of the queue families of each physical device, as far as somebody asked.
    families: FxHashMap<u64, Vec<u32>>,
    /// Calls that have not returned, by thread.
    pending: FxHashMap<u32, Vec<u64>>,
    missing: BTreeMap<Missing, u64>,
    reflect: Box<dyn Reflect + Send>,
    tells_picked: bool,
    hears_host_writes: HostWrites,
    /// How often something changed that commands depend on.
    changes: u64,
}

/// What the last call was about, and the device of that. Most calls are about the same as the one before.
#[derive(Clone, Copy, Default)]
struct Recent {
    /// Its first parameter; zero for none.
    first: u64,
    device: u64,
    object: ObjectId,
}

/// What a queue can do of which nobody asked: graphics, compute, transfer and sparse binding.
const FLAGS_UNKNOWN: u32 = 0xf;

impl<L: Listener> Tracker<L> {
    /// Without anybody who can read shaders: they are taken to access no descriptors.
    pub fn new(listener: L) -> Tracker<L> {
        Tracker::with_reflection(listener, Box::new(NoReflection))
    }

    pub fn with_reflection(listener: L, reflect: Box<dyn Reflect + Send>) -> Tracker<L> {
        Tracker {
            listener,
            devices: Slab::default(),
            owners: Slab::default(),
            recent: Recent::default(),
            queues: Slab::default(),
            families: FxHashMap::default(),
            pending: FxHashMap::default(),
            missing: BTreeMap::new(),
            reflect,
            tells_picked: false,
            hears_host_writes: HostWrites::None,
            changes: 0,
        }
    }

    /// Whether to tell accesses to descriptors that shaders pick out of arrays. Each is only possible, and there may be
    /// thousands for one draw.
    pub fn tell_picked(&mut self, is_wanted: bool) {
        self.tells_picked = is_wanted;
        self.changes += 1;
    }

    /// All that the host writes into memory that it maps will be told, before the device can read it.
    pub fn hear_host_writes(&mut self) {
        self.set_host_writes(HostWrites::All);
    }

    /// The same, of some memories only: of one of which something was told, all will be.
    pub fn hear_some_host_writes(&mut self) {
        self.set_host_writes(HostWrites::Some);
    }

    /// Nothing more will be told of what the host writes: what was told is not relied on any more.
    pub fn hear_no_host_writes(&mut self) {
        self.set_host_writes(HostWrites::None);
    }

    fn set_host_writes(&mut self, told: HostWrites) {
        self.hears_host_writes = told;
        self.changes += 1;
        self.devices.iter_mut().for_each(|it| it.hears_host_writes = told);
    }

    /// The host wrote into memory. What it did not write is zero.
    pub fn host_wrote(&mut self, written: Written<'_>) {
        self.devices.iter_mut().for_each(|it| it.host_wrote(written));
        self.changes += 1;
    }

    /// What was not understood so far, and how often.
    pub fn missing(&self) -> impl Iterator<Item = (Missing, u64)> {
        self.missing.iter().map(|(missing, count)| (*missing, *count))
    }

    /// How often something changed that commands depend on: as long as this stays the same, a command buffer that is
    /// recorded with the same calls has the same commands. It grows too with what is not understood, and where commands
    /// become known later.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Whether an object that is followed is alive, was, or never was.
    pub fn life(&self, object: ObjectId) -> Life {
        let handle = object.raw();
        let of_device = |it: &Device| it.life(object);
        match object.ty() {
            Some(HandleType::Device) => self.devices.life(handle),
            Some(HandleType::Queue) => self.queues.life(handle),
            Some(HandleType::CommandBuffer) => self.owners.life(handle),
            _ => self.devices.iter().map(|it| of_device(it)).find(|it| *it != Life::Never).unwrap_or(Life::Never),
        }
    }

    /// The driver is about to see a call of a thread. Says whether somebody took it.
    pub fn enter(&mut self, thread: u32, record: Record<'_>) -> bool {
        match decision(record.command()) {
            Decision::Understood(family, When::Enter) => {
                let Some(call) = &Call::of(record) else { return false };
                self.take(thread, record, family, Event { call, outcome: None })
            }
            Decision::Understood(_, When::Leave) => {
                let own = self.pending.entry(thread).or_default();
                own.clear();
                own.extend_from_slice(record.words());
                true
            }
            Decision::Missing(reason) => {
                let device = self.device_of(record).unwrap_or_default();
                self.out(thread, record, device).missing(reason);
                true
            }
            Decision::Ignored(_) => true,
        }
    }

    /// The driver returned from the last call of a thread. Says whether somebody took it.
    pub fn leave(&mut self, thread: u32, record: Record<'_>) -> bool {
        let Decision::Understood(family, When::Leave) = decision(record.command()) else { return true };
        let words = self.pending.remove(&thread).unwrap_or_default();
        let taken = own(&words).filter(|it| it.command() == record.command()).and_then(|entered| {
            let (call, outcome) = (Call::of(entered)?, Outcome::of(record)?);
            Some(self.take(thread, entered, family, Event { call: &call, outcome: Some(&outcome) }))
        });
        self.pending.insert(thread, words);
        taken.unwrap_or_else(|| {
            self.out(thread, record, 0).missing("a call whose beginning was not seen");
            true
        })
    }

    /// The driver does not see the call that was entered last, if it records a command: it is as if it had not been.
    pub fn take_back(&mut self, thread: u32, record: Record<'_>) {
        let Some(handle) = self.device_of(record) else { return };
        let Tracker { listener, devices, missing, reflect, tells_picked, changes, .. } = self;
        let Some(device) = devices.get_mut(handle) else { return };
        device.drawn.forget();
        let source = Source { command: record.command(), thread, call: record.call_number() };
        let at = Where { device: object(handle), source };
        let out = &mut Out { listener, counts: missing, changes, reflect: &**reflect, tells_picked: *tells_picked, at };
        device.take_back(first_handle(record), out);
    }

    fn take(&mut self, thread: u32, record: Record<'_>, family: Family, event: Event<'_>) -> bool {
        if family == Family::Device {
            return self.device_commands(thread, record, event);
        }
        let is_known = self.is_recent(record);
        let Recent { device: handle, object, .. } = self.recent;
        let Tracker { listener, devices, missing, reflect, tells_picked, queues, changes, .. } = self;
        // Queues outlive their devices here.
        let Some(device) = devices.get_mut(handle).filter(|_| is_known) else {
            self.out(thread, record, 0).missing("an object of a device that nobody created");
            return true;
        };
        if !keeps_attachments(family, record.command()) {
            device.drawn.forget();
        }
        *changes += u64::from(changes_commands(family, record));
        let source = Source { command: record.command(), thread, call: record.call_number() };
        let at = Where { device: object, source };
        let out = &mut Out { listener, counts: missing, changes, reflect: &**reflect, tells_picked: *tells_picked, at };
        match family {
            Family::Device => false,
            Family::Memory => device.memories(event, out),
            Family::Image => device.images(event, out),
            Family::CommandBuffer => {
                let is_taken = device.command_buffers(event, out);
                for buffer in device.born.drain(..) {
                    self.owners.insert(buffer, handle);
                    self.recent = Recent::default();
                }
                for buffer in device.freed.drain(..) {
                    self.owners.remove(buffer);
                    self.recent = Recent::default();
                }
                is_taken
            }
            Family::Copy => device.copies(event, out),
            Family::Barrier => device.barriers(event, out),
            Family::Sync => device.sync_objects(event, out),
            Family::Queue => match queues.get(first_handle(record)) {
                Some(queue) => device.submits(queue.1, event, out),
                None => {
                    out.missing("a queue that nobody asked for");
                    true
                }
            },
            Family::Swapchain => device.swapchain_commands(event, out),
            Family::RenderPass => device.render_passes(event, out),
            Family::Rendering => device.rendering(event, out),
            Family::Pipeline => device.pipelines(event, out),
            Family::Descriptor => device.descriptors(event, out),
            Family::DescriptorMemory => device.descriptor_memory(event, out),
            Family::Bind => device.binds(event, out),
            Family::Draw => device.draws(event, out),
            Family::Query => device.queries(event, out),
            Family::Ray => device.rays(event, out),
            Family::RayNv => device.rays_nv(event, out),
            Family::Micromap => device.micromaps(event, out),
            Family::HostBuild => device.host_builds(event, out),
            Family::Address => device.addresses(event, out),
            Family::HostCopy => device.host_copies(event, out),
            Family::Video => device.video(event, out),
            Family::External => device.externals(event, out),
            Family::Tensor => device.tensors(event, out),
            Family::OpticalFlow => device.optical_flow(event, out),
            Family::Generated => device.generated_commands(event, out),
            Family::Indirect => device.indirect_commands(event, out),
        }
    }

    /// Looks for the device that a call is about, in most cases that of the call before. Says whether there is one.
    #[inline]
    fn is_recent(&mut self, record: Record<'_>) -> bool {
        let first = first_handle(record);
        if first != self.recent.first || first == 0 {
            let Some(device) = self.device_of(record) else { return false };
            self.recent = Recent { first, device, object: object(device) };
        }
        true
    }

    /// Devices and their queues come and go.
    #[cold]
    #[inline(never)]
    fn device_commands(&mut self, thread: u32, record: Record<'_>, event: Event<'_>) -> bool {
        self.changes += 1;
        match (event.call, event.outcome) {
            (
                Call::GetPhysicalDeviceQueueFamilyProperties(it),
                Some(Outcome::GetPhysicalDeviceQueueFamilyProperties(done)),
            ) => {
                let flags = done.p_queue_family_properties().iter().map(|it| it.queue_flags.0);
                self.set_families(it.physical_device, flags.collect());
            }
            (
                Call::GetPhysicalDeviceQueueFamilyProperties2(it),
                Some(Outcome::GetPhysicalDeviceQueueFamilyProperties2(done)),
            ) => {
                let families = done.p_queue_family_properties();
                let flags = families.iter().map(|it| it.queue_family_properties.queue_flags.0);
                self.set_families(it.physical_device, flags.collect());
            }
            (Call::CreateDevice(it), Some(Outcome::CreateDevice(made))) => {
                if let (Some(info), Some(device)) = (it.p_create_info(), made.p_device()) {
                    self.create_device(thread, record, it.physical_device, info, device.0);
                }
            }
            (Call::DestroyDevice(it), None) => {
                self.recent = Recent::default();
                if let Some(device) = self.devices.remove(it.device.0) {
                    for buffer in device.buffers() {
                        self.owners.remove(buffer);
                    }
                    let out = self.out(thread, record, it.device.0);
                    out.listener.device_gone(out.at);
                }
            }
            (Call::GetDeviceQueue(it), Some(Outcome::GetDeviceQueue(done))) => {
                let queue = done.p_queue().map_or(0, |it| it.0);
                self.add_queue(thread, record, (it.queue_family_index, it.queue_index), queue);
            }
            (Call::GetDeviceQueue2(it), Some(Outcome::GetDeviceQueue2(done))) => {
                let queue = done.p_queue().map_or(0, |it| it.0);
                if let Some(info) = it.p_queue_info() {
                    self.add_queue(thread, record, (info.queue_family_index, info.queue_index), queue);
                }
            }
            _ => return false,
        }
        true
    }

    fn set_families(&mut self, physical: vk::PhysicalDevice, flags: Vec<u32>) {
        if !flags.is_empty() {
            self.families.insert(physical.0, flags);
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
        let mut device = Device { hears_host_writes: self.hears_host_writes, ..Device::default() };
        let families = self.families.get(&physical.0).map_or(&[][..], Vec::as_slice);
        for it in info.p_queue_create_infos().iter() {
            let flags = families.get(it.queue_family_index as usize).copied().unwrap_or(FLAGS_UNKNOWN);
            device.queues.add(it.queue_family_index, it.queue_count, flags);
        }
        let out = self.out(thread, record, handle);
        out.listener.device(out.at, device.queues.all());
        self.devices.insert(handle, Box::new(device));
    }

    fn add_queue(&mut self, thread: u32, record: Record<'_>, (family, index): (u32, u32), queue: u64) {
        let device = first_handle(record);
        if let Some(id) = self.devices.get(device).and_then(|it| it.queues.find(family, index)) {
            self.queues.insert(queue, (device, id));
            self.recent = Recent::default();
            let out = self.out(thread, record, device);
            out.listener.queue(out.at, id, object(queue));
        }
    }

    fn out(&mut self, thread: u32, record: Record<'_>, device: u64) -> Out<'_> {
        let source = Source { command: record.command(), thread, call: record.call_number() };
        let at = Where { device: object(device), source };
        let (reflect, tells_picked) = (&*self.reflect, self.tells_picked);
        let (listener, counts, changes) = (&mut self.listener, &mut self.missing, &mut self.changes);
        Out { listener, counts, changes, reflect, tells_picked, at }
    }

    /// The device that a call is about, by its first parameter.
    #[inline]
    fn device_of(&self, record: Record<'_>) -> Option<u64> {
        let handle = first_handle(record);
        let is = |ty| ObjectId::checked(handle, ty).is_some();
        // Most calls record commands. Null is of any type, and nobody.
        if is(HandleType::CommandBuffer) {
            self.owners.get(handle).copied()
        } else if is(HandleType::Device) {
            self.devices.get(handle).map(|_| handle)
        } else if is(HandleType::Queue) {
            self.queues.get(handle).map(|it| it.0)
        } else {
            None
        }
    }
}

/// Whether draws after a call do to attachments what those before it did.
#[inline]
fn keeps_attachments(family: Family, command: vk::Command) -> bool {
    use vk::Command as C;
    match family {
        Family::Draw | Family::Copy | Family::Barrier => true,
        Family::Bind => matches!(
            command,
            C::CmdBindDescriptorSets
                | C::CmdBindDescriptorSets2
                | C::CmdBindIndexBuffer
                | C::CmdBindIndexBuffer2
                | C::CmdBindVertexBuffers
                | C::CmdBindVertexBuffers2
                | C::CmdPushConstants
                | C::CmdPushConstants2
                | C::CmdPushDescriptorSet
                | C::CmdPushDescriptorSet2
        ),
        _ => false,
    }
}

/// Whether commands may mean something else after a call than before it.
#[inline]
fn changes_commands(family: Family, record: Record<'_>) -> bool {
    use vk::Command as C;
    let ty = ObjectId::from_raw(first_handle(record)).and_then(ObjectId::ty);
    if ty == Some(HandleType::CommandBuffer) {
        return false;
    }
    match family {
        Family::CommandBuffer | Family::Sync => false,
        Family::Queue => record.command() == C::QueueBindSparse,
        Family::Memory => !matches!(
            record.command(),
            C::MapMemory
                | C::MapMemory2
                | C::UnmapMemory
                | C::UnmapMemory2
                | C::FlushMappedMemoryRanges
                | C::InvalidateMappedMemoryRanges
        ),
        Family::Swapchain => !matches!(
            record.command(),
            C::AcquireNextImageKHR | C::AcquireNextImage2KHR | C::WaitForPresentKHR | C::WaitForPresent2KHR
        ),
        _ => true,
    }
}

/// The first parameter; zero where there is none.
#[inline]
fn first_handle(record: Record<'_>) -> u64 {
    record.image().first().copied().unwrap_or(0)
}
