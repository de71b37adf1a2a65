//! Top-level acceleration structures of `VK_NV_ray_tracing`, checked like those of the newer extension.
//!
//! Instances are in a buffer that need not have an address, so it is bound: buffers for ray tracing are created as
//! storage buffers, too. An instance refers to a structure by a value that exists once the structure has its memory.

use lavascope_abi::*;
use lavascope_instrument::interface::instance_check;
use lavascope_instrument::interface::instance_check::{BOUND_PUSH_BYTES, BoundInstanceCheck, WORKGROUP_SIZE};

use super::acceleration_structures::{
    BarrierScopes, CheckedBuild, INSTANCES_UNCHECKED, REPORTED_INSTANCES_MAX, StructureExtension, TrackedStructure,
};
use super::arena::ArenaRegion;
use crate::DeviceTable;
use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::hook::draws::COMPUTE;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::process::catch_panic::{catch_panic, run_if_enabled};

const BUILD: &str = "vkCmdBuildAccelerationStructureNV";
/// The words of an instance.
const INSTANCE_WORDS: u32 = 16;

/// Puts our functions into a table.
pub(crate) fn install(table: &mut DeviceTable) {
    let create: FnCreateAccelerationStructureNV = create;
    let bind: FnBindAccelerationStructureMemoryNV = bind;
    let destroy: FnDestroyAccelerationStructureNV = destroy;
    let build: FnCmdBuildAccelerationStructureNV = build;
    table.create_acceleration_structure_nv = table.create_acceleration_structure_nv.map(|_| create);
    table.bind_acceleration_structure_memory_nv = table.bind_acceleration_structure_memory_nv.map(|_| bind);
    table.destroy_acceleration_structure_nv = table.destroy_acceleration_structure_nv.map(|_| destroy);
    table.cmd_build_acceleration_structure_nv = table.cmd_build_acceleration_structure_nv.map(|_| build);
}

unsafe extern "system" fn create(
    device: Device,
    p_info: Ptr<AccelerationStructureCreateInfoNV>,
    p_allocator: Ptr<Opaque>,
    p_made: Ptr<AccelerationStructureNV>,
) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkCreateAccelerationStructureNV-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_acceleration_structure_nv else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    let result = unsafe { next(device, p_info, p_allocator, p_made) };
    if result == Result::SUCCESS {
        // SAFETY: VUID-vkCreateAccelerationStructureNV-pCreateInfo-parameter: a valid structure until the call returns;
        // VUID-vkCreateAccelerationStructureNV-pAccelerationStructure-parameter: a place for the handle, which the call
        // has written.
        let (ty, made) = unsafe { ((*p_info.as_ptr()).info.type_, *p_made.as_ptr()) };
        // Until it has memory nothing can refer to it.
        let made = TrackedStructure { handle: made.0, ty, address: 0 };
        run_if_enabled(
            "vkCreateAccelerationStructureNV",
            || _ = gpu.state().structures_nv.live.insert(made.handle, made),
            || (),
        );
    }
    result
}

unsafe extern "system" fn bind(
    device: Device,
    count: u32,
    p_infos: Ptr<BindAccelerationStructureMemoryInfoNV>,
) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkBindAccelerationStructureMemoryNV-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.bind_acceleration_structure_memory_nv else {
        return Result::ERROR_INITIALIZATION_FAILED;
    };
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    let result = unsafe { next(device, count, p_infos) };
    if result == Result::SUCCESS {
        // SAFETY: VUID-vkBindAccelerationStructureMemoryNV-pBindInfos-parameter: an array of so many until the call
        // returns.
        let infos = unsafe { slice(p_infos, count) };
        let ask = || infos.iter().for_each(|it| gpu.record_structure_reference(it.acceleration_structure));
        run_if_enabled("vkBindAccelerationStructureMemoryNV", ask, || ());
    }
    result
}

unsafe extern "system" fn destroy(
    device: Device,
    acceleration_structure: AccelerationStructureNV,
    p_allocator: Ptr<Opaque>,
) {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkDestroyAccelerationStructureNV-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return };
    let forget = || {
        let mut state = gpu.state();
        let name = state.names.remove(ObjectType::ACCELERATION_STRUCTURE_NV, acceleration_structure.0);
        state.structures_nv.remove(acceleration_structure.0, name);
    };
    catch_panic("vkDestroyAccelerationStructureNV", forget, || ());
    if let Some(next) = gpu.next.destroy_acceleration_structure_nv {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(device, acceleration_structure, p_allocator) };
    }
}

unsafe extern "system" fn build(
    commands: CommandBuffer,
    p_info: Ptr<AccelerationStructureInfoNV>,
    instance_data: Buffer,
    instance_offset: u64,
    update: Bool32,
    target: AccelerationStructureNV,
    source: AccelerationStructureNV,
    scratch: Buffer,
    scratch_offset: u64,
) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdBuildAccelerationStructureNV-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    // SAFETY: VUID-vkCmdBuildAccelerationStructureNV-pInfo-parameter: a valid structure until the call returns.
    let info = || unsafe { &*p_info.as_ptr() };
    let look = || {
        if let Some(input) = BoundInstances::of(info(), (instance_data, instance_offset), target) {
            gpu.check_bound_instances(commands, &input);
        }
    };
    run_if_enabled(BUILD, look, || ());
    if let Some(next) = gpu.next.cmd_build_acceleration_structure_nv {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe {
            next(commands, p_info, instance_data, instance_offset, update, target, source, scratch, scratch_offset);
        }
    }
}

/// Instances that a build reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BoundInstances {
    buffer: Buffer,
    /// A multiple of what any device wants of storage buffers, and the words from there to the first instance.
    offset: u64,
    first_word: u32,
    count: u32,
    target: u64,
}

/// No device asks for more between storage buffers.
const ALIGNMENT: u64 = 256;

impl BoundInstances {
    /// None if no instances are read.
    fn of(
        info: &AccelerationStructureInfoNV,
        (buffer, offset): (Buffer, u64),
        target: AccelerationStructureNV,
    ) -> Option<BoundInstances> {
        let is_top = info.type_ == AccelerationStructureTypeKHR::TOP_LEVEL_KHR;
        if !is_top || info.instance_count == 0 || buffer.0 == 0 {
            return None;
        }
        let first_word = (offset % ALIGNMENT / 4) as u32;
        let offset = offset - offset % ALIGNMENT;
        Some(BoundInstances { buffer, offset, first_word, count: info.instance_count, target: target.0 })
    }

    /// The memory that is bound for the shader. The host has no access.
    fn region(&self) -> ArenaRegion {
        let words = self.count.saturating_mul(INSTANCE_WORDS).saturating_add(self.first_word);
        // SAFETY: it is bound for the shader that checks the instances, and nobody reads or writes it as the host.
        unsafe { ArenaRegion::of_application_buffer(self.buffer, self.offset, words) }
    }
}

impl DeviceChecks {
    /// By now it is known what instances refer to a structure by.
    fn record_structure_reference(&self, acceleration_structure: AccelerationStructureNV) {
        let Some(ask) = self.next.get_acceleration_structure_handle_nv else { return };
        let mut reference = 0_u64;
        // SAFETY: the application's call, in which this runs, has given memory to the structure
        // (VUID-vkGetAccelerationStructureHandleNV-accelerationStructure-02787); the place is ours and has eight bytes.
        let result = unsafe {
            ask(
                self.device,
                acceleration_structure,
                size_of::<u64>() as u64,
                crate::gpu::out_ptr(&mut reference).cast(),
            )
        };
        if result == Result::SUCCESS {
            let mut state = self.state();
            if let Some(made) = state.structures_nv.live.get_mut(&acceleration_structure.0) {
                made.address = reference;
            }
        }
    }

    fn check_bound_instances(&self, handle: CommandBuffer, input: &BoundInstances) {
        if !self.config.checks_instances || self.has_failed() {
            return;
        }
        let state = self.state();
        let known = instance_check::reference_table(state.structures_nv.references().filter(|it| *it != 0));
        let is_bindable = state.bindable.contains(&input.buffer.0);
        drop(state);
        if !is_bindable {
            return self.warn_unchecked(INSTANCES_UNCHECKED);
        }
        let Some(slot) = self.slot(handle.0) else { return };
        let Some(mut commands) = slot.hold() else { return };
        let looked = self.record_bound_check(handle, &mut commands, input, known);
        drop(commands);
        if looked.is_none() {
            self.warn_unchecked(INSTANCES_UNCHECKED);
        }
    }

    fn record_bound_check(
        &self,
        handle: CommandBuffer,
        commands: &mut CommandBufferState,
        input: &BoundInstances,
        (words, known_count): (Vec<u32>, u32),
    ) -> Option<()> {
        let make = || {
            self.create_instance_check(
                &instance_check::bound_shader_words(),
                BOUND_PUSH_BYTES,
                &[self.reserved_set_layout],
            )
        };
        let looking = (*self.instance_check_nv.get_or_init(make))?;
        let (bind, push, dispatch) =
            (self.next.cmd_bind_pipeline?, self.next.cmd_push_constants?, self.next.cmd_dispatch?);
        let bind_sets = self.next.cmd_bind_descriptor_sets?;
        let known = self.or_stop_checking(commands.allocate_words(self, &words))?;
        let found = vec![0; instance_check::result_words(REPORTED_INSTANCES_MAX) as usize];
        let found = self.or_stop_checking(commands.allocate_words(self, &found))?;
        let set = self.or_stop_checking(commands.allocate_reserved_set(self, [input.region(), known, found, found]))?;
        let look = BoundInstanceCheck {
            first_word: input.first_word,
            count: input.count,
            valid_count: known_count,
            max_results: REPORTED_INSTANCES_MAX,
        };
        let (bind_point, constants) = (PipelineBindPoint::COMPUTE, look.push_constants());
        self.barrier(handle, BarrierScopes::BEFORE_CHECK)?;
        // SAFETY: the command buffer is in the recording state, outside of rendering: the application's build, which this
        // runs in, wants that of it (VUID-vkCmdBuildAccelerationStructureNV-renderpass). Pipeline and layout are ours and
        // live as long as the device, with one set and `BOUND_PUSH_BYTES` of push constants, which is what `constants`
        // has; the set lives as long as what the command buffer records. The instances are what the build reads next, in
        // a buffer that can be bound (`ChecksState::bindable`).
        unsafe {
            bind(handle, bind_point, looking.pipeline);
            bind_sets(handle, bind_point, looking.layout, 0, 1, Ptr::to(&set), 0, Ptr::NULL);
            let stages = ShaderStageFlags::COMPUTE;
            push(handle, looking.layout, stages, 0, BOUND_PUSH_BYTES, Ptr::to_slice(&constants).cast());
            dispatch(handle, input.count.div_ceil(WORKGROUP_SIZE), 1, 1);
        }
        self.barrier(handle, BarrierScopes::BEFORE_BUILD)?;
        self.rebind_compute(handle, commands);
        self.rebind_shader_objects(commands, handle, COMPUTE);
        let (labels, extension) = (commands.labels.open().to_vec(), StructureExtension::Nv);
        let (place, target) = (String::new(), input.target);
        commands.builds.push(CheckedBuild { results: found, command: BUILD, place, extension, target, labels });
        Some(())
    }
}

/// Buffers for ray tracing. The newer extension took the bit for one of its own uses.
const RAY_TRACING_NV: u32 = BufferUsageFlags::SHADER_BINDING_TABLE_KHR.0;

impl DeviceChecks {
    /// The create info of a buffer: buffers that may hold instances get a usage that lets the checking shader read
    /// them.
    ///
    /// # Safety
    ///
    /// The info must be valid, with its chain.
    pub(crate) unsafe fn buffer_usage(&self, info: &BufferCreateInfo) -> BufferUsageFlags {
        let ty = StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO;
        // SAFETY: the contract of this function, and this is the structure of this type.
        let is_elsewhere = unsafe { find_in_chain::<BufferUsageFlags2CreateInfo>(info.p_next, ty) }.is_some();
        let has_builds = self.next.cmd_build_acceleration_structure_nv.is_some();
        if has_builds && !is_elsewhere { with_storage(info.usage) } else { info.usage }
    }

    /// Whether the buffer of instances can be bound.
    pub(crate) fn track_bindable_buffer(&self, buffer: Buffer, usage: BufferUsageFlags) {
        let both = RAY_TRACING_NV | BufferUsageFlags::STORAGE_BUFFER.0;
        if self.next.cmd_build_acceleration_structure_nv.is_some() && usage.0 & both == both {
            self.state().bindable.insert(buffer.0);
        }
    }
}

fn with_storage(usage: BufferUsageFlags) -> BufferUsageFlags {
    let more = if usage.0 & RAY_TRACING_NV != 0 { BufferUsageFlags::STORAGE_BUFFER.0 } else { 0 };
    BufferUsageFlags(usage.0 | more)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_bound_where_devices_can_bind_them() {
        let mut info = AccelerationStructureInfoNV::zeroed();
        info.type_ = AccelerationStructureTypeKHR::TOP_LEVEL_KHR;
        info.instance_count = 3;
        let target = AccelerationStructureNV(9);
        let found = BoundInstances::of(&info, (Buffer(7), 0x1150), target);
        let expected = BoundInstances { buffer: Buffer(7), offset: 0x1100, first_word: 20, count: 3, target: 9 };
        assert_eq!(found, Some(expected));
        let bound = expected.region().info();
        assert_eq!((bound.buffer, bound.offset, bound.range), (Buffer(7), 0x1100, 80 + 3 * 64));
        info.type_ = AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR;
        assert_eq!(BoundInstances::of(&info, (Buffer(7), 0x1150), target), None);
    }

    #[test]
    fn buffers_for_rays_can_be_bound() {
        let vertices = BufferUsageFlags::VERTEX_BUFFER;
        assert_eq!(with_storage(vertices), vertices);
        assert_eq!(
            with_storage(BufferUsageFlags(RAY_TRACING_NV)).0,
            RAY_TRACING_NV | BufferUsageFlags::STORAGE_BUFFER.0
        );
    }
}
