//! The device and the objects of one performance.

use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_scenario::DeclaredNames;
use lavascope_sync_ir::{AttachmentView, Program, QueueId, ResourceId};

use crate::error::{LiveError, UnsupportedProgram};
use crate::objects::calls::{DeviceCalls, call, check, out, text_ptr};
use crate::objects::features::DeviceFeatures;
use crate::objects::gpu::{DEVICE_EXTENSIONS, LiveGpu};
use crate::objects::resources::LiveResource;
use crate::run::{DeviceReuse, DrawsOutsidePass, LiveOptions};

/// The program that is performed, and the names of its objects.
#[derive(Clone, Copy)]
pub struct LiveScenario<'a> {
    pub program: &'a Program,
    pub names: &'a DeclaredNames,
    /// Stands before every name, so that those of several performances differ.
    pub name_prefix: &'a str,
}

pub(crate) struct LiveDevice<'a> {
    pub(crate) gpu: &'a LiveGpu,
    pub(crate) scenario: LiveScenario<'a>,
    pub(crate) draws_outside_pass: DrawsOutsidePass,
    pub(crate) vk: DeviceCalls,
    pub(crate) device: vk::Device,
    /// How many programs the device has performed before.
    performed: u32,
    pub(crate) families: LiveFamilyMap,
    pub(crate) queues: Vec<vk::Queue>,
    pub(crate) memories: Vec<vk::DeviceMemory>,
    pub(crate) resources: Vec<LiveResource>,
    pub(crate) passes: Vec<vk::RenderPass>,
    pub(crate) events: Vec<vk::Event>,
    pub(crate) semaphores: Vec<vk::Semaphore>,
    pub(crate) fences: Vec<vk::Fence>,
    pub(crate) command_buffers: Vec<vk::CommandBuffer>,
    /// A buffer that is never written.
    pub(crate) zero_buffer: vk::Buffer,
    /// The views that attachments have so far.
    pub(crate) attachment_views: Mutex<Vec<(AttachmentView, vk::ImageView)>>,
    owned_objects: Mutex<Vec<OwnedObject>>,
}

/// A device with its functions, for one program after the other.
pub(crate) struct ReusableDevice {
    /// The families, and how many queues it has of each.
    pub(crate) queue_counts: Vec<(u32, u32)>,
    device: vk::Device,
    vk: DeviceCalls,
    performed: u32,
}

impl ReusableDevice {
    /// After so many programs a new device begins: layers keep something of each.
    const PROGRAMS_MAX: u32 = 100;

    fn create(gpu: &LiveGpu, families: &LiveFamilyMap) -> Result<ReusableDevice, LiveError> {
        let device = create_device(gpu, families)?;
        // SAFETY: VUID-vkGetDeviceProcAddr-device-parameter: the device was just created.
        // VUID-vkGetDeviceProcAddr-pName-parameter: a `CStr` ends with a zero.
        let find = |name: &std::ffi::CStr| unsafe { (gpu.vk.get_device_proc_addr)(device, text_ptr(name)) };
        // SAFETY: vkGetDeviceProcAddr gives the command of the device that it is asked for, or null.
        let vk = unsafe { DeviceCalls::find(find) }?;
        Ok(ReusableDevice { queue_counts: families.queue_counts.clone(), device, vk, performed: 0 })
    }

    pub(crate) fn destroy(self) {
        call!(self.vk, destroy_device(self.device, Ptr::NULL));
    }
}

/// Objects that are destroyed at the end.
macro_rules! owned_objects {
    ($($handle:ident: $destroy:ident,)*) => {
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) enum OwnedObject {
            $($handle(vk::$handle),)*
        }

        impl LiveDevice<'_> {
            pub(crate) fn destroy(&self, object: OwnedObject) {
                match object {
                    $(OwnedObject::$handle(handle) => call!(self.vk, $destroy(self.device, handle, Ptr::NULL)),)*
                }
            }
        }
    };
}

owned_objects! {
    DeviceMemory: free_memory,
    Buffer: destroy_buffer,
    BufferView: destroy_buffer_view,
    Image: destroy_image,
    ImageView: destroy_image_view,
    SwapchainKHR: destroy_swapchain,
    AccelerationStructureKHR: destroy_acceleration_structure,
    Fence: destroy_fence,
    Semaphore: destroy_semaphore,
    Event: destroy_event,
    RenderPass: destroy_render_pass,
    Framebuffer: destroy_framebuffer,
    ShaderModule: destroy_shader_module,
    DescriptorSetLayout: destroy_descriptor_set_layout,
    DescriptorPool: destroy_descriptor_pool,
    PipelineLayout: destroy_pipeline_layout,
    Pipeline: destroy_pipeline,
    CommandPool: destroy_command_pool,
    IndirectCommandsLayoutEXT: destroy_indirect_commands_layout,
}

/// Creates an object that ends with the performance.
macro_rules! create {
    ($world:expr, $function:ident, $info:expr, $handle:ident) => {{
        let info = $info;
        let mut handle = lavascope_abi::$handle(0);
        let result = $crate::objects::calls::call!(
            $world.vk,
            $function(
                $world.device,
                lavascope_abi::Ptr::to(&info),
                lavascope_abi::Ptr::NULL,
                $crate::objects::calls::out(&mut handle)
            )
        );
        $crate::objects::calls::check(stringify!($function), result)?;
        $world.destroy_at_end($crate::objects::device::OwnedObject::$handle(handle));
        handle
    }};
}
pub(crate) use create;

impl<'a> LiveDevice<'a> {
    /// A device with all objects of a program, but without what its commands need by themselves.
    pub(crate) fn new(
        gpu: &'a LiveGpu,
        scenario: LiveScenario<'a>,
        options: LiveOptions,
    ) -> Result<LiveDevice<'a>, LiveError> {
        let families = LiveFamilyMap::of(gpu, scenario.program)?;
        let idle = match options.reuse {
            DeviceReuse::WhileIdle => gpu.take_idle_device(&families.queue_counts),
            DeviceReuse::Never => None,
        };
        let ReusableDevice { device, vk, performed, .. } = match idle {
            Some(idle) => idle,
            None => ReusableDevice::create(gpu, &families)?,
        };
        let mut world = LiveDevice {
            gpu,
            scenario,
            draws_outside_pass: options.draws_outside_pass,
            vk,
            device,
            performed,
            families,
            queues: Vec::new(),
            memories: Vec::new(),
            resources: Vec::new(),
            passes: Vec::new(),
            events: Vec::new(),
            semaphores: Vec::new(),
            fences: Vec::new(),
            command_buffers: Vec::new(),
            zero_buffer: vk::Buffer(0),
            attachment_views: Mutex::default(),
            owned_objects: Mutex::default(),
        };
        world.get_queues();
        world.create_resources()?;
        world.create_passes()?;
        world.create_sync_objects()?;
        world.create_command_buffers()?;
        Ok(world)
    }

    /// The end: nothing is in use any more.
    pub(crate) fn destroy_all(self, reuse: DeviceReuse) {
        call!(self.vk, device_wait_idle(self.device));
        let all = std::mem::take(&mut *self.owned_objects.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().rev().for_each(|it| self.destroy(it));
        let LiveDevice { gpu, vk, device, families, performed, .. } = self;
        let done = ReusableDevice { queue_counts: families.queue_counts, device, vk, performed: performed + 1 };
        match reuse {
            DeviceReuse::WhileIdle if done.performed < ReusableDevice::PROGRAMS_MAX => gpu.keep_idle_device(done),
            _ => done.destroy(),
        }
    }

    pub(crate) fn destroy_at_end(&self, owned_object: OwnedObject) {
        self.owned_objects.lock().unwrap_or_else(PoisonError::into_inner).push(owned_object);
    }

    /// Something ends before all else does.
    pub(crate) fn destroy_now(&self, owned_object: OwnedObject) {
        self.owned_objects.lock().unwrap_or_else(PoisonError::into_inner).retain(|own| *own != owned_object);
        self.destroy(owned_object);
    }

    pub(crate) fn set_name(&self, ty: vk::ObjectType, handle: u64, name: &str) {
        let name = CString::new(format!("{}{name}", self.scenario.name_prefix)).unwrap_or_default();
        let info = vk::DebugUtilsObjectNameInfoEXT {
            object_type: ty,
            object_handle: handle,
            p_object_name: text_ptr(&name),
            ..vk::DebugUtilsObjectNameInfoEXT::zeroed()
        };
        call!(self.vk, set_debug_utils_object_name(self.device, Ptr::to(&info)));
    }

    pub(crate) fn resource(&self, id: ResourceId) -> &LiveResource {
        &self.resources[id.0 as usize]
    }

    fn get_queues(&mut self) {
        for (at, (family, index)) in self.families.queues.iter().enumerate() {
            let mut queue = vk::Queue(0);
            call!(self.vk, get_device_queue(self.device, *family, *index, out(&mut queue)));
            self.set_name(vk::ObjectType::QUEUE, queue.0, &self.scenario.names.queues[at]);
            self.queues.push(queue);
        }
    }

    fn create_sync_objects(&mut self) -> Result<(), LiveError> {
        let (program, names) = (self.scenario.program, self.scenario.names);
        for _ in 0..program.event_count {
            let event = create!(self, create_event, vk::EventCreateInfo::zeroed(), Event);
            self.events.push(event);
        }
        for at in 0..program.fence_count as usize {
            let fence = create!(self, create_fence, vk::FenceCreateInfo::zeroed(), Fence);
            self.set_name(vk::ObjectType::FENCE, fence.0, &names.fences[at]);
            self.fences.push(fence);
        }
        for declared_semaphore in &names.semaphores {
            let ty =
                if declared_semaphore.is_timeline { vk::SemaphoreType::TIMELINE } else { vk::SemaphoreType::BINARY };
            let chained = vk::SemaphoreTypeCreateInfo { semaphore_type: ty, ..vk::SemaphoreTypeCreateInfo::zeroed() };
            let info =
                vk::SemaphoreCreateInfo { p_next: Ptr::to(&chained).cast(), ..vk::SemaphoreCreateInfo::zeroed() };
            let semaphore = create!(self, create_semaphore, info, Semaphore);
            self.set_name(vk::ObjectType::SEMAPHORE, semaphore.0, &declared_semaphore.name);
            self.semaphores.push(semaphore);
        }
        Ok(())
    }

    /// Each from a pool of its own, so that threads may record them at the same time.
    fn create_command_buffers(&mut self) -> Result<(), LiveError> {
        for (at, command_buffer) in self.scenario.program.command_buffers.iter().enumerate() {
            let family = self.families.of_command_buffer(self.scenario.program, at as u32);
            let info = vk::CommandPoolCreateInfo { queue_family_index: family, ..vk::CommandPoolCreateInfo::zeroed() };
            let pool = create!(self, create_command_pool, info, CommandPool);
            use vk::CommandBufferLevel as Level;
            let info = vk::CommandBufferAllocateInfo {
                command_pool: pool,
                level: if command_buffer.is_secondary { Level::SECONDARY } else { Level::PRIMARY },
                command_buffer_count: 1,
                ..vk::CommandBufferAllocateInfo::zeroed()
            };
            let mut buffer = vk::CommandBuffer(0);
            let result = call!(self.vk, allocate_command_buffers(self.device, Ptr::to(&info), out(&mut buffer)));
            check("vkAllocateCommandBuffers", result)?;
            self.set_name(vk::ObjectType::COMMAND_BUFFER, buffer.0, &self.scenario.names.command_buffers[at]);
            self.command_buffers.push(buffer);
        }
        Ok(())
    }
}

fn create_device(gpu: &LiveGpu, families: &LiveFamilyMap) -> Result<vk::Device, LiveError> {
    let priorities = [1.0_f32; 16];
    let queue = |(family, count): &(u32, u32)| vk::DeviceQueueCreateInfo {
        queue_family_index: *family,
        queue_count: *count,
        p_queue_priorities: Ptr::to_slice(&priorities),
        ..vk::DeviceQueueCreateInfo::zeroed()
    };
    let queues: Vec<vk::DeviceQueueCreateInfo> = families.queue_counts.iter().map(queue).collect();
    let extensions = DEVICE_EXTENSIONS.map(text_ptr);
    let mut features = DeviceFeatures::all();
    let info = vk::DeviceCreateInfo {
        p_next: features.chain().cast(),
        queue_create_info_count: queues.len() as u32,
        p_queue_create_infos: Ptr::to_slice(&queues),
        enabled_extension_count: extensions.len() as u32,
        pp_enabled_extension_names: Ptr::to_slice(&extensions),
        ..vk::DeviceCreateInfo::zeroed()
    };
    let mut device = vk::Device(0);
    check("vkCreateDevice", call!(gpu.vk, create_device(gpu.physical, Ptr::to(&info), Ptr::NULL, out(&mut device))))?;
    Ok(device)
}

/// Which family of the device stands for each of a program, and which queue for each queue.
pub(crate) struct LiveFamilyMap {
    /// The queue families of the program, and those of the device.
    program_to_device: Vec<(u32, u32)>,
    /// Families of the device with how many of their queues are used; two at least, so that they can share resources.
    pub(crate) queue_counts: Vec<(u32, u32)>,
    /// For each queue of the program its family, of the device, and its index in there.
    queues: Vec<(u32, u32)>,
}

impl LiveFamilyMap {
    fn of(gpu: &LiveGpu, program: &Program) -> Result<LiveFamilyMap, UnsupportedProgram> {
        let mut family_map =
            LiveFamilyMap { program_to_device: Vec::new(), queue_counts: Vec::new(), queues: Vec::new() };
        for queue in &program.queues {
            let own = match family_map.device_family(queue.family) {
                Some(own) => own,
                None => family_map.claim_family(gpu, queue.family, Some(queue.flags))?,
            };
            let count = family_map
                .queue_counts
                .iter_mut()
                .find(|it| it.0 == own)
                .expect("every family that is taken has a count");
            family_map.queues.push((own, count.1));
            count.1 += 1;
        }
        // Families that only barriers name, and that have no queue.
        for family in families_in_barriers(program) {
            if family_map.device_family(family).is_none() {
                family_map.claim_family(gpu, family, None)?;
            }
        }
        if family_map.queue_counts.len() < 2 {
            family_map.claim_family(gpu, u32::MAX - 16, None)?;
        }
        for (family, count) in &mut family_map.queue_counts {
            *count = (*count).max(1);
            if gpu.families[*family as usize].1 < *count {
                return UnsupportedProgram::error("the device has fewer queues of one family");
            }
        }
        Ok(family_map)
    }

    fn claim_family(&mut self, gpu: &LiveGpu, family: u32, flags: Option<u32>) -> Result<u32, UnsupportedProgram> {
        let is_free = |own: u32| self.program_to_device.iter().all(|it| it.1 != own);
        let is_it = |own: &u32| flags.is_none_or(|it| gpu.families[*own as usize].0 == it) && is_free(*own);
        let Some(own) = (0..gpu.families.len() as u32).find(is_it) else {
            return UnsupportedProgram::error(format!(
                "no queue family of the device has exactly the capabilities {flags:#x?}"
            ));
        };
        self.program_to_device.push((family, own));
        self.queue_counts.push((own, 0));
        Ok(own)
    }

    pub(crate) fn device_family(&self, family: u32) -> Option<u32> {
        self.program_to_device.iter().find(|it| it.0 == family).map(|it| it.1)
    }

    /// As a barrier wants it: special values stand for themselves.
    pub(crate) fn barrier_family(&self, family: u32) -> u32 {
        self.device_family(family).unwrap_or(family)
    }

    pub(crate) fn device_families(&self) -> Vec<u32> {
        self.queue_counts.iter().map(|it| it.0).collect()
    }

    /// The family of the first queue that executes a command buffer.
    fn of_command_buffer(&self, program: &Program, buffer: u32) -> u32 {
        use lavascope_sync_ir::HostStep;
        let submits = program.steps.iter().filter_map(|step| match step {
            HostStep::Submit { queue, batches, .. } => Some((queue, batches)),
            _ => None,
        });
        let has = |batches: &[lavascope_sync_ir::SubmitBatch]| {
            batches.iter().flat_map(|it| &it.command_buffers).any(|it| executes(program, it.0, buffer))
        };
        let mut users = submits.filter(|(_, batches)| has(batches));
        let QueueId(queue) = users.next().map_or(QueueId(0), |it| *it.0);
        self.queues.get(queue as usize).map_or(0, |it| it.0)
    }
}

/// Whether a command buffer is another one, or executes it.
fn executes(program: &Program, own: u32, wanted: u32) -> bool {
    own == wanted
        || program.command_buffers[own as usize].commands.iter().any(|command| match command {
            lavascope_sync_ir::Command::Execute(all) => all.iter().any(|it| executes(program, it.0, wanted)),
            _ => false,
        })
}

/// Queue families that barriers name, without special values.
fn families_in_barriers(program: &Program) -> Vec<u32> {
    use lavascope_sync_ir::DependencyTarget;
    let mut found: Vec<u32> = Vec::new();
    for dependency in crate::plan::version_1::dependencies(program) {
        let DependencyTarget::QueueFamilyTransfer { transfer: ownership, .. } = &dependency.target else { continue };
        for family in [ownership.src_family, ownership.dst_family] {
            if !is_special(family) && !found.contains(&family) {
                found.push(family);
            }
        }
    }
    found
}

fn is_special(family: u32) -> bool {
    [vk::QUEUE_FAMILY_IGNORED, vk::QUEUE_FAMILY_EXTERNAL, vk::QUEUE_FAMILY_FOREIGN_EXT].contains(&family)
}
