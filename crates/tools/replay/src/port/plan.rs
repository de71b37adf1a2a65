//! What a replay would do here, without performing it.
//!
//! The trace is processed in its order. Instances, devices, buffers and images are created as in a replay, so that the
//! driver itself decides what exists, how large it is and where it fits. All other objects exist in name only. Nothing
//! is submitted.

use lavascope_abi as vk;
use lavascope_abi::{Command, ObjectId, Structure};
use lavascope_record::walk::uses_host_addresses;
use lavascope_record::{Call, Outcome};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::call::functions::driver;
use crate::call::handlers::{CommandHandler, creates_surface, is_platform_specific};
use crate::call::held_submissions;
use crate::call::objects::ReplayObject;
use crate::call::output_handles::{output_ids, returns_handles};
use crate::call::perform::{Performer, RecordedCall, missing_command_text};
use crate::error::ReplayError;
use crate::memory::bind::{Resource, fits_in_memory, memory_requirements};
use crate::memory::bindings;
use crate::port::device::ReplayDevice;
use crate::port::formats;
use crate::port::formats::FormatMap;
use crate::port::instance::out;
use crate::port::{device, device_addresses, driver_blobs, external_files, instance, pipeline, shader_capabilities};
use crate::present::virtual_swapchain;
use crate::replay::lock;

/// The plan of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayPlan {
    pub calls: u64,
    pub frames: u64,
    pub submits: u64,
    pub devices: Vec<PlannedDevice>,
    /// What is not supported here, each kind with its first call.
    pub unsupported: Vec<UnsupportedCall>,
    /// Remarks for the user.
    pub remarks: Vec<String>,
}

impl ReplayPlan {
    /// What is not supported here, one line for each.
    pub fn describe_unsupported(&self) -> String {
        let line = |unsupported_call: &UnsupportedCall| {
            let more =
                if unsupported_call.times > 1 { format!(" ({} times)", unsupported_call.times) } else { String::new() };
            format!(
                "thread {}, call {}, {}: {}{more}",
                unsupported_call.stream, unsupported_call.call, unsupported_call.command, unsupported_call.what
            )
        };
        self.unsupported.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// A device of the trace, and the one that takes its place.
#[derive(Clone, Debug, Default)]
pub struct PlannedDevice {
    /// The names in the trace and here; the first is empty if the trace does not have it.
    pub recorded_name: String,
    pub replay_name: String,
    /// Whether it is the same device with the same driver, as far as the trace knows.
    pub is_same: bool,
    pub missing_extensions: Vec<String>,
    pub missing_features: Vec<String>,
    /// Queue families and types of memory: their number in the trace, and here.
    pub families: Vec<(u32, u32)>,
    pub memory_types: Vec<(u32, u32)>,
    /// Formats of images: how they are called in the trace, and which take their places.
    pub formats: Vec<(String, String)>,
    /// Whether several queues of the trace are one here.
    pub shares_queues: bool,
    /// Resources that do not fit where they were, and the bytes of memory that they get of their own.
    pub relocated: (u64, u64),
}

/// A kind of call that cannot be made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnsupportedCall {
    /// The first of them.
    pub stream: u32,
    pub call: u64,
    pub command: &'static str,
    pub what: String,
    /// How many there are.
    pub times: u64,
}

/// State while a plan is made.
#[derive(Default)]
pub(crate) struct PlanBuilder {
    pub(crate) plan: ReplayPlan,
    /// The place of a device in the plan, by owner.
    devices: FxHashMap<u32, usize>,
    /// Bytes and type of memory here.
    memories: FxHashMap<ObjectId, (u64, u32)>,
    /// Buffers and images that were really made.
    created: FxHashSet<ObjectId>,
}

/// How a command is treated while a plan is made.
pub(crate) fn plan_handler(command: Command) -> CommandHandler {
    use Command as C;
    let name = command.desc().name;
    let asks = name.starts_with("vkGet") || name.starts_with("vkEnumerate");
    CommandHandler::Custom(match command {
        C::CreateInstance => instance::create,
        C::EnumeratePhysicalDevices => instance::physical_devices,
        C::EnumeratePhysicalDeviceGroups => instance::physical_device_groups,
        C::GetPhysicalDeviceProperties | C::GetPhysicalDeviceProperties2 => instance::record_properties,
        C::GetPhysicalDeviceMemoryProperties | C::GetPhysicalDeviceMemoryProperties2 => instance::record_properties,
        C::GetPhysicalDeviceQueueFamilyProperties | C::GetPhysicalDeviceQueueFamilyProperties2 => {
            instance::record_properties
        }
        C::CreateDevice => create_device,
        C::DestroyDevice => device::destroy,
        C::DestroyInstance => return CommandHandler::Unchanged,
        C::CreateBuffer => create_buffer,
        C::CreateImage => create_image,
        C::DestroyBuffer | C::DestroyImage => destroy,
        C::AllocateMemory => allocate,
        C::GetFenceFdKHR | C::GetSemaphoreFdKHR | C::GetMemoryFdKHR => external_file,
        C::ImportFenceFdKHR | C::ImportSemaphoreFdKHR => external_file,
        C::BindBufferMemory | C::BindBufferMemory2 | C::BindImageMemory | C::BindImageMemory2 => bind,
        C::CreateGraphicsPipelines => pipelines,
        C::CreateShaderModule => shader,
        C::CreateSwapchainKHR => virtual_swapchain::create,
        C::DestroySwapchainKHR => virtual_swapchain::destroy,
        C::AcquireNextImageKHR | C::AcquireNextImage2KHR => return CommandHandler::Skip,
        C::GetSwapchainImagesKHR | C::GetRayTracingShaderGroupHandlesKHR => pretend,
        C::GetDescriptorEXT => descriptor,
        _ if device_addresses::is_query(command) => address,
        C::QueuePresentKHR => frame,
        C::QueueSubmit | C::QueueSubmit2 | C::QueueBindSparse => submit,
        C::DestroySurfaceKHR => virtual_swapchain::destroy_surface,
        _ if creates_surface(command) => virtual_swapchain::surface,
        _ if is_platform_specific(command) => return CommandHandler::Skip,
        _ if asks && !returns_handles(command.desc()) => return CommandHandler::Skip,
        _ => pretend,
    })
}

impl PlanBuilder {
    /// Whether a buffer or image was really made.
    pub(crate) fn is_created(&self, id: ObjectId) -> bool {
        self.created.contains(&id)
    }
}

impl Performer<'_> {
    fn with_plan<T>(&self, act: impl FnOnce(&mut PlanBuilder) -> T) -> Option<T> {
        self.replay.plan.as_ref().map(|it| act(&mut lock(it)))
    }

    /// A call that could not be made.
    fn record_unsupported(&self, recorded_call: &RecordedCall<'_>, what: String) {
        let (stream, call, command) =
            (self.stream, recorded_call.enter.call_number(), recorded_call.command().desc().name);
        self.with_plan(|plan_builder| {
            let all = &mut plan_builder.plan.unsupported;
            match all.iter_mut().find(|it| it.command == command && it.what == what) {
                Some(known) => known.times += 1,
                None => all.push(UnsupportedCall { stream, call, command, what, times: 1 }),
            }
        });
    }

    /// The real object, if it was created; otherwise it exists in name only.
    fn create_or_pretend(
        &mut self,
        recorded_call: &RecordedCall<'_>,
        result: Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        match result {
            Ok(()) => {
                self.arena.clear();
                let made = recorded_call.leave.map(|it| output_ids(it, &mut self.arena)).unwrap_or_default();
                self.with_plan(|it| it.created.extend(made));
                Ok(())
            }
            Err(ReplayError::Call { what, .. }) => {
                self.record_unsupported(recorded_call, what);
                self.pretend_outputs(recorded_call)
            }
            Err(error) => Err(error),
        }
    }

    /// A format that another one takes the place of.
    fn note_format(&self, device: &ReplayDevice, recorded_call: &RecordedCall<'_>) {
        let Some(Call::CreateImage(call)) = Call::of(recorded_call.enter) else { return };
        let Some(there) = call.p_create_info().map(|it| it.format) else { return };
        let here = self.replay.formats.remap(there);
        if here == there {
            return;
        }
        let pair = (formats::name(there), formats::name(here));
        self.with_plan(|plan_builder| {
            let device = plan_builder.devices.get(&device.owner).and_then(|at| plan_builder.plan.devices.get_mut(*at));
            if let Some(device) = device.filter(|it| !it.formats.contains(&pair)) {
                device.formats.push(pair);
            }
        });
    }

    fn pretend_outputs(&mut self, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
        let Some(leave) = recorded_call.leave.filter(|_| returns_handles(recorded_call.command().desc())) else {
            return Ok(());
        };
        let owner = self.owner(recorded_call)?;
        self.arena.clear();
        for id in output_ids(leave, &mut self.arena) {
            if !id.is_null() && !id.is_unknown() {
                self.add_object(
                    recorded_call,
                    id,
                    ReplayObject { handle: virtual_swapchain::placeholder_handle(id), owner },
                )?;
            }
        }
        Ok(())
    }
}

/// A call that is not made: the driver must have it, and what it gives exists in name only.
fn pretend(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if recorded_call.has_failed() {
        return Ok(());
    }
    let owner = performer.owner(recorded_call)?;
    let command = recorded_call.command();
    if performer.function(owner, command).is_none() && !command.desc().provider.contains("debug") {
        performer.record_unsupported(recorded_call, missing_command_text(command));
    }
    if needs_host_data(command)
        && let Err(ReplayError::Call { what, .. }) = performer.unpack(recorded_call)
    {
        performer.record_unsupported(recorded_call, what);
    }
    performer.host_memory.clear();
    performer.pretend_outputs(recorded_call)?;
    performer.remove_destroyed(recorded_call);
    Ok(())
}

/// Whether a command reads memory of the host that its record may lack.
fn needs_host_data(command: Command) -> bool {
    use Command as C;
    let has_blobs = matches!(command, C::CopyMemoryToImage | C::CreateDataGraphPipelinesARM);
    has_blobs || uses_host_addresses(command.desc().name)
}

/// A descriptor: it must be as large here.
fn descriptor(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if driver_blobs::descriptor_size_differs(performer, recorded_call)? {
        performer.record_unsupported(recorded_call, driver_blobs::DESCRIPTOR_SIZE_DIFFERS.to_owned());
    }
    pretend(performer, recorded_call)
}

fn create_device(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    device::create(performer, recorded_call)?;
    performer.arena.clear();
    let id = recorded_call.leave.and_then(|it| output_ids(it, &mut performer.arena).first().copied());
    let made = id.and_then(|it| performer.replay.objects.find(it)).and_then(|it| performer.replay.device(it.owner));
    if let Some(device) = made {
        performer.with_plan(|plan_builder| {
            plan_builder.devices.insert(device.owner, plan_builder.plan.devices.len());
            plan_builder.plan.devices.push(describe(&device));
        });
    }
    Ok(())
}

fn describe(device: &ReplayDevice) -> PlannedDevice {
    PlannedDevice {
        recorded_name: device.mapping.recorded_name.clone(),
        replay_name: device.mapping.replay_name.clone(),
        is_same: !device.is_other_device,
        missing_extensions: device.mapping.missing_extensions.clone(),
        missing_features: device.mapping.missing_features.iter().map(|it| (*it).to_owned()).collect(),
        families: device.mapping.families.clone(),
        memory_types: device.memory_types().iter().enumerate().map(|it| (it.0 as u32, *it.1)).collect(),
        formats: Vec::new(),
        shares_queues: device.shares_queues,
        relocated: (0, 0),
    }
}

fn create_buffer(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let result = device_addresses::create(performer, recorded_call);
    performer.create_or_pretend(recorded_call, result)
}

fn create_image(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    performer.note_format(&device, recorded_call);
    let result = match missing_format(&performer.replay.formats, &device, recorded_call)
        .filter(|_| !recorded_call.has_failed())
    {
        Some(what) => Err(performer.error(recorded_call, what)),
        None => bindings::create_image(performer, recorded_call),
    };
    performer.create_or_pretend(recorded_call, result)
}

/// Whether the device cannot have such an image, in words.
fn missing_format(known: &FormatMap, device: &ReplayDevice, recorded_call: &RecordedCall<'_>) -> Option<String> {
    let Some(Call::CreateImage(call)) = Call::of(recorded_call.enter).filter(|_| device.is_other_device) else {
        return None;
    };
    let info = call.p_create_info()?;
    // Others are asked about in another way, and are of another kind of driver.
    if info.tiling != vk::ImageTiling::OPTIMAL && info.tiling != vk::ImageTiling::LINEAR {
        return None;
    }
    let mut found = vk::ImageFormatProperties::zeroed();
    let result = driver!(
        device.mapping.functions,
        GetPhysicalDeviceImageFormatProperties,
        FnGetPhysicalDeviceImageFormatProperties(
            device.mapping.physical,
            known.remap(info.format),
            info.image_type,
            info.tiling,
            info.usage,
            info.flags,
            out(&mut found)
        )
    );
    let is_enough = found.max_extent.width >= info.extent.width
        && found.max_extent.height >= info.extent.height
        && found.max_extent.depth >= info.extent.depth
        && found.max_mip_levels >= info.mip_levels
        && found.max_array_layers >= info.array_layers
        && found.sample_counts.0 & info.samples.0 == info.samples.0;
    if result == Some(vk::Result::SUCCESS) && is_enough {
        return None;
    }
    let name = formats::name(info.format);
    Some(match result {
        Some(vk::Result::SUCCESS) => format!("this device has no images of {name} of this size"),
        _ => format!("this device has no images of {name} for this use"),
    })
}

fn destroy(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let raw = match Call::of(recorded_call.enter) {
        Some(Call::DestroyBuffer(params)) => params.buffer.0,
        Some(Call::DestroyImage(params)) => params.image.0,
        _ => 0,
    };
    let id = ObjectId::from_raw(raw).unwrap_or(ObjectId::NULL);
    match performer.with_plan(|it| it.created.remove(&id)) {
        Some(true) => bindings::destroy(performer, recorded_call),
        _ => {
            performer.remove_destroyed(recorded_call);
            Ok(())
        }
    }
}

fn allocate(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    pretend(performer, recorded_call)?;
    let device = performer.device(recorded_call)?;
    if let Some(what) = external_files::plan_memory(performer, &device, recorded_call) {
        performer.record_unsupported(recorded_call, what.to_owned());
    }
    if let (Some(Call::AllocateMemory(call)), Some(Outcome::AllocateMemory(outcome))) =
        (Call::of(recorded_call.enter), recorded_call.leave.and_then(Outcome::of))
        && let Some(info) = call.p_allocate_info()
        && let Some(id) = outcome.p_memory().and_then(|it| ObjectId::from_raw(it.0))
    {
        let memory = (info.allocation_size, device.memory_type(info.memory_type_index));
        performer.with_plan(|it| it.memories.insert(id, memory));
    }
    Ok(())
}

/// Addresses of this device are others, unless the program asked for fixed ones.
fn address(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if !performer.device(recorded_call)?.has_capture_replay {
        performer.replay.remark(device_addresses::REMARK.to_owned());
    }
    Ok(())
}

fn external_file(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    if let Some(what) = external_files::plan(performer, recorded_call) {
        performer.record_unsupported(recorded_call, what.to_owned());
    }
    pretend(performer, recorded_call)
}

fn bind(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    pretend(performer, recorded_call)?;
    let device = performer.device(recorded_call)?;
    let all: Vec<(u64, u64, u64)> =
        match Call::of(recorded_call.enter).filter(|_| device.is_other_device && !recorded_call.has_failed()) {
            Some(Call::BindBufferMemory(params)) => vec![(params.buffer.0, params.memory.0, params.memory_offset)],
            Some(Call::BindImageMemory(params)) => vec![(params.image.0, params.memory.0, params.memory_offset)],
            Some(Call::BindBufferMemory2(params)) => {
                params.p_bind_infos().iter().map(|it| (it.buffer.0, it.memory.0, it.memory_offset)).collect()
            }
            Some(Call::BindImageMemory2(params)) => {
                params.p_bind_infos().iter().map(|it| (it.image.0, it.memory.0, it.memory_offset)).collect()
            }
            _ => Vec::new(),
        };
    for (resource, memory, offset) in all {
        let (Some(id), Some(memory)) = (ObjectId::from_raw(resource), ObjectId::from_raw(memory)) else { continue };
        let known = performer.with_plan(|it| (it.created.contains(&id), it.memories.get(&memory).copied()));
        let (Some((true, Some((size, ty)))), Some(object)) = (known, performer.replay.objects.find(id)) else {
            continue;
        };
        let resource = match id.ty() {
            Some(vk::HandleType::Image) => Resource::Image(vk::Image(object.handle)),
            _ => Resource::Buffer(vk::Buffer(object.handle)),
        };
        let needs = memory_requirements(&device, resource);
        if !fits_in_memory(&needs, (ty, size), offset) {
            performer.with_plan(|plan_builder| {
                let device =
                    plan_builder.devices.get(&device.owner).and_then(|at| plan_builder.plan.devices.get_mut(*at));
                device.into_iter().for_each(|it| it.relocated = (it.relocated.0 + 1, it.relocated.1 + needs.size));
            });
        }
    }
    Ok(())
}

fn pipelines(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    if let Some(what) = pipeline::unsupported_pipeline(&device, recorded_call) {
        performer.record_unsupported(recorded_call, what.to_owned());
    }
    pretend(performer, recorded_call)
}

fn shader(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    if let Some(what) = shader_capabilities::unsupported_shader(&device, recorded_call) {
        performer.record_unsupported(recorded_call, what);
    }
    pretend(performer, recorded_call)
}

fn frame(performer: &mut Performer<'_>, _: &RecordedCall<'_>) -> Result<(), ReplayError> {
    performer.with_plan(|it| it.plan.frames += 1);
    Ok(())
}

fn submit(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    performer.with_plan(|it| it.plan.submits += 1);
    let device = performer.device(recorded_call)?;
    if let Some(what) = held_submissions::unsupported_submit(&device, recorded_call) {
        performer.record_unsupported(recorded_call, what.to_owned());
    }
    pretend(performer, recorded_call)
}
