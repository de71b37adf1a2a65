//! Top-level acceleration structures: before each build a dispatch of ours checks what its instances refer to.
//!
//! There are barriers around the dispatch. A reference to no bottom-level structure is reported and set to zero, which
//! makes the instance inactive. The structures that exist when the build is recorded are the valid ones. If the ranges
//! of a build are in a buffer, the dispatch reads them there. What the application had bound and pushed for compute is
//! bound and pushed again.

use std::collections::{HashMap, VecDeque};

use lavascope_abi::*;
use lavascope_diag::{DebugLabels, Diagnostic, DiagnosticLocation, DiagnosticObject, Property, Severity};
use lavascope_instrument::interface::instance_check;
use lavascope_instrument::interface::instance_check::{InstanceCheck, InvalidInstance, PUSH_BYTES, WORKGROUP_SIZE};

use super::arena::{ArenaRegion, check_success};
use crate::DeviceTable;
use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::hook::draws::COMPUTE;
use crate::gpu::report::findings::{CheckFinding, message_object, named};
use crate::gpu::{ChecksState, DeviceChecks, checks_of, out_ptr, slice};
use crate::process::catch_panic::{catch_panic, run_if_enabled};
use crate::report::messages::MessageObject;

/// Destroyed structures that are remembered.
const DESTROYED_MAX: usize = 4096;
/// How many wrong instances of a build are reported one by one.
pub(crate) const REPORTED_INSTANCES_MAX: u32 = 16;
/// Reported once, if builds are not checked.
pub(crate) const INSTANCES_UNCHECKED: &str =
    "there is nothing to look at the instances of acceleration structures with: they are not checked";

/// The structures of a device, of one of the two extensions.
#[derive(Default)]
pub(crate) struct AccelerationStructures {
    /// By handle.
    pub(crate) live: HashMap<u64, TrackedStructure>,
    /// The last ones that were destroyed, with their names.
    destroyed: VecDeque<(TrackedStructure, Option<String>)>,
}

/// A structure of the application.
#[derive(Clone, Copy)]
pub(crate) struct TrackedStructure {
    pub(crate) handle: u64,
    pub(crate) ty: AccelerationStructureTypeKHR,
    /// The reference by which instances name it.
    pub(crate) address: u64,
}

/// Which extension a structure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StructureExtension {
    Khr,
    Nv,
}

impl AccelerationStructures {
    /// The acceleration structures that instances may refer to.
    pub(crate) fn references(&self) -> impl Iterator<Item = u64> {
        self.live.values().filter(|it| it.ty != AccelerationStructureTypeKHR::TOP_LEVEL_KHR).map(|it| it.address)
    }

    /// A structure is destroyed. One that never had an address is not referred to.
    pub(crate) fn remove(&mut self, handle: u64, name: Option<String>) {
        let Some(gone) = self.live.remove(&handle).filter(|it| it.address != 0) else { return };
        if self.destroyed.len() == DESTROYED_MAX {
            self.destroyed.pop_front();
        }
        self.destroyed.push_back((gone, name));
    }

    /// The last destroyed one with this property.
    fn find_destroyed(&self, is_it: impl Fn(&TrackedStructure) -> bool) -> Option<&(TrackedStructure, Option<String>)> {
        self.destroyed.iter().rev().find(|it| is_it(&it.0))
    }
}

/// The pipeline and the layouts that check instances.
#[derive(Clone, Copy, Default)]
pub(crate) struct InstanceCheckPipeline {
    pub(crate) pipeline: Pipeline,
    pub(crate) layout: PipelineLayout,
}

/// A build whose instances are checked.
pub(crate) struct CheckedBuild {
    pub(crate) results: ArenaRegion,
    pub(crate) command: &'static str,
    /// Which of the builds of its call, and which geometry, in words; nothing where there is only one.
    pub(crate) place: String,
    pub(crate) extension: StructureExtension,
    pub(crate) target: u64,
    pub(crate) labels: Vec<String>,
}

/// Puts our functions into a table.
pub(crate) fn install(table: &mut DeviceTable) {
    let create: FnCreateAccelerationStructureKHR = create;
    let destroy: FnDestroyAccelerationStructureKHR = destroy;
    let build: FnCmdBuildAccelerationStructuresKHR = build;
    let indirect: FnCmdBuildAccelerationStructuresIndirectKHR = build_indirect;
    table.create_acceleration_structure_khr = table.create_acceleration_structure_khr.map(|_| create);
    table.destroy_acceleration_structure_khr = table.destroy_acceleration_structure_khr.map(|_| destroy);
    table.cmd_build_acceleration_structures_khr = table.cmd_build_acceleration_structures_khr.map(|_| build);
    let now = table.cmd_build_acceleration_structures_indirect_khr.map(|_| indirect);
    table.cmd_build_acceleration_structures_indirect_khr = now;
}

unsafe extern "system" fn create(
    device: Device,
    p_info: Ptr<AccelerationStructureCreateInfoKHR>,
    p_allocator: Ptr<Opaque>,
    p_made: Ptr<AccelerationStructureKHR>,
) -> Result {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkCreateAccelerationStructureKHR-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return Result::ERROR_INITIALIZATION_FAILED };
    let Some(next) = gpu.next.create_acceleration_structure_khr else { return Result::ERROR_INITIALIZATION_FAILED };
    // SAFETY: the driver's function, with the parameters that the application called ours with.
    let result = unsafe { next(device, p_info, p_allocator, p_made) };
    if result == Result::SUCCESS {
        // SAFETY: VUID-vkCreateAccelerationStructureKHR-pCreateInfo-parameter: a valid structure until the call returns;
        // VUID-vkCreateAccelerationStructureKHR-pAccelerationStructure-parameter: a place for the handle, which the call
        // has written.
        let (ty, made) = unsafe { ((*p_info.as_ptr()).type_, *p_made.as_ptr()) };
        run_if_enabled("vkCreateAccelerationStructureKHR", || gpu.add_structure(made, ty), || ());
    }
    result
}

unsafe extern "system" fn destroy(
    device: Device,
    acceleration_structure: AccelerationStructureKHR,
    p_allocator: Ptr<Opaque>,
) {
    // SAFETY: the loader calls this with the parameters of the application, whose device is alive until the call returns
    // (VUID-vkDestroyAccelerationStructureKHR-device-parameter).
    let Some(gpu) = (unsafe { checks_of(device.0) }) else { return };
    let forget = || {
        let mut state = gpu.state();
        let name = state.names.remove(ObjectType::ACCELERATION_STRUCTURE_KHR, acceleration_structure.0);
        state.structures.remove(acceleration_structure.0, name);
    };
    catch_panic("vkDestroyAccelerationStructureKHR", forget, || ());
    if let Some(next) = gpu.next.destroy_acceleration_structure_khr {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(device, acceleration_structure, p_allocator) };
    }
}

unsafe extern "system" fn build(
    commands: CommandBuffer,
    count: u32,
    p_infos: Ptr<AccelerationStructureBuildGeometryInfoKHR>,
    pp_ranges: Ptr<Ptr<AccelerationStructureBuildRangeInfoKHR>>,
) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdBuildAccelerationStructuresKHR-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    // SAFETY: VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-parameter and
    // VUID-vkCmdBuildAccelerationStructuresKHR-ppBuildRangeInfos-parameter: arrays of `count` until the call returns, and
    // VUID-vkCmdBuildAccelerationStructuresKHR-ppBuildRangeInfos-03676: as many ranges as each info has geometries.
    let inputs = || unsafe { inputs(slice(p_infos, count), slice(pp_ranges, count)) };
    let name = "vkCmdBuildAccelerationStructuresKHR";
    run_if_enabled(name, || gpu.check_instances(commands, name, &inputs()), || ());
    if let Some(next) = gpu.next.cmd_build_acceleration_structures_khr {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(commands, count, p_infos, pp_ranges) };
    }
}

unsafe extern "system" fn build_indirect(
    commands: CommandBuffer,
    count: u32,
    p_infos: Ptr<AccelerationStructureBuildGeometryInfoKHR>,
    p_addresses: Ptr<u64>,
    p_strides: Ptr<u32>,
    pp_counts: Ptr<Ptr<u32>>,
) {
    // SAFETY: the loader calls this with the parameters of the application, whose command buffer is alive until the call
    // returns (VUID-vkCmdBuildAccelerationStructuresIndirectKHR-commandBuffer-parameter).
    let Some(gpu) = (unsafe { checks_of(commands.0) }) else { return };
    // SAFETY: VUID-vkCmdBuildAccelerationStructuresIndirectKHR-pInfos-parameter and the same rule for
    // pIndirectDeviceAddresses, pIndirectStrides and ppMaxPrimitiveCounts: arrays of `count` until the call returns; and
    // VUID-vkCmdBuildAccelerationStructuresIndirectKHR-ppMaxPrimitiveCounts-03653: a count for each geometry of each
    // info.
    let inputs = || unsafe {
        let places = slice(p_addresses, count).iter().copied().zip(slice(p_strides, count).iter().copied());
        indirect_inputs(slice(p_infos, count), &places.collect::<Vec<_>>(), slice(pp_counts, count))
    };
    let name = "vkCmdBuildAccelerationStructuresIndirectKHR";
    run_if_enabled(name, || gpu.check_instances(commands, name, &inputs()), || ());
    if let Some(next) = gpu.next.cmd_build_acceleration_structures_indirect_khr {
        // SAFETY: the driver's function, with the parameters that the application called ours with.
        unsafe { next(commands, count, p_infos, p_addresses, p_strides, pp_counts) };
    }
}

/// Instances that a build reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BuildInstances {
    place: (usize, usize),
    target: u64,
    address: u64,
    has_addresses: bool,
    /// How many there are, or at most are where the device finds that out.
    count: u32,
    /// Where it does.
    range: u64,
}

/// The instances of all top level builds of a call.
///
/// # Safety
///
/// The infos must be valid, and there must be ranges for all of their geometries.
unsafe fn inputs(
    infos: &[AccelerationStructureBuildGeometryInfoKHR],
    ranges: &[Ptr<AccelerationStructureBuildRangeInfoKHR>],
) -> Vec<BuildInstances> {
    let mut all = Vec::new();
    for (at, (info, ranges)) in infos.iter().zip(ranges).enumerate() {
        // SAFETY: the contract of this function: there is a range for each geometry.
        let ranges = unsafe { slice(*ranges, info.geometry_count) };
        // SAFETY: the contract of this function: a valid info.
        for (number, instances) in unsafe { instances_of(info) } {
            let Some(range) = ranges.get(number).filter(|it| it.primitive_count > 0) else { continue };
            let input = BuildInstances::new((at, number), info, &instances, range.primitive_count);
            all.push(BuildInstances {
                address: input.address.wrapping_add(u64::from(range.primitive_offset)),
                ..input
            });
        }
    }
    all
}

/// The same where the ranges are in buffers, at addresses and so far apart; it is known how many instances there may be.
///
/// # Safety
///
/// The infos must be valid, and there must be counts for all of their geometries.
unsafe fn indirect_inputs(
    infos: &[AccelerationStructureBuildGeometryInfoKHR],
    places: &[(u64, u32)],
    counts: &[Ptr<u32>],
) -> Vec<BuildInstances> {
    let mut all = Vec::new();
    for (at, ((info, (address, stride)), counts)) in infos.iter().zip(places).zip(counts).enumerate() {
        // SAFETY: the contract of this function: there is a count for each geometry.
        let counts = unsafe { slice(*counts, info.geometry_count) };
        // SAFETY: the contract of this function: a valid info.
        for (number, instances) in unsafe { instances_of(info) } {
            let Some(count) = counts.get(number).copied().filter(|it| *it > 0) else { continue };
            let range = address.wrapping_add(u64::from(*stride).wrapping_mul(number as u64));
            all.push(BuildInstances { range, ..BuildInstances::new((at, number), info, &instances, count) });
        }
    }
    all
}

/// The instances of a top level build, with the numbers of their geometries.
///
/// # Safety
///
/// The info must be valid.
unsafe fn instances_of(
    info: &AccelerationStructureBuildGeometryInfoKHR,
) -> Vec<(usize, AccelerationStructureGeometryInstancesDataKHR)> {
    if info.type_ != AccelerationStructureTypeKHR::TOP_LEVEL_KHR {
        return Vec::new();
    }
    // SAFETY: the contract of this function: one of the two lists is there, with as many geometries as the info says, and
    // the other is null (VUID-VkAccelerationStructureBuildGeometryInfoKHR-pGeometries-03788,
    // VUID-VkAccelerationStructureBuildGeometryInfoKHR-pGeometries-parameter and
    // VUID-VkAccelerationStructureBuildGeometryInfoKHR-ppGeometries-parameter).
    let geometries = unsafe {
        let pointers = slice(info.pp_geometries, info.geometry_count);
        let mut geometries: Vec<_> = pointers.iter().map(|it| &*it.as_ptr()).collect();
        geometries.extend(slice(info.p_geometries, info.geometry_count));
        geometries
    };
    let all = geometries.into_iter().enumerate();
    let of_instances = all.filter(|it| it.1.geometry_type == GeometryTypeKHR::INSTANCES_KHR);
    of_instances.map(|(number, it)| (number, *it.geometry.instances())).collect()
}

impl BuildInstances {
    fn new(
        place: (usize, usize),
        info: &AccelerationStructureBuildGeometryInfoKHR,
        instances: &AccelerationStructureGeometryInstancesDataKHR,
        count: u32,
    ) -> BuildInstances {
        BuildInstances {
            place,
            target: info.dst_acceleration_structure.0,
            address: *instances.data.device_address(),
            has_addresses: instances.array_of_pointers.0 != 0,
            count,
            range: 0,
        }
    }
}

impl DeviceChecks {
    fn add_structure(&self, made: AccelerationStructureKHR, ty: AccelerationStructureTypeKHR) {
        let Some(ask) = self.next.get_acceleration_structure_device_address_khr else { return };
        let mut info = AccelerationStructureDeviceAddressInfoKHR::zeroed();
        info.s_type = StructureType::ACCELERATION_STRUCTURE_DEVICE_ADDRESS_INFO_KHR;
        info.acceleration_structure = made;
        // SAFETY: the hook of the application's call made the structure, and it is not known to anybody else yet; the info
        // is ours and lives until the call returns.
        let address = unsafe { ask(self.device, Ptr::to(&info)) };
        let mut state = self.state();
        state.structures.live.insert(made.0, TrackedStructure { handle: made.0, ty, address });
    }

    /// Checks instances before the build reads them.
    fn check_instances(&self, handle: CommandBuffer, command: &'static str, inputs: &[BuildInstances]) {
        if inputs.is_empty() || !self.config.checks_instances || self.has_failed() {
            return;
        }
        let (words, known_count) = instance_check::reference_table(self.state().structures.references());
        let Some(slot) = self.slot(handle.0) else { return };
        let Some(mut commands) = slot.hold() else { return };
        let looked = self.record_instance_checks((handle, command), &mut commands, inputs, (&words, known_count));
        drop(commands);
        if looked.is_none() {
            self.warn_unchecked(INSTANCES_UNCHECKED);
        }
    }

    fn record_instance_checks(
        &self,
        (handle, command): (CommandBuffer, &'static str),
        commands: &mut CommandBufferState,
        inputs: &[BuildInstances],
        (words, known_count): (&[u32], u32),
    ) -> Option<()> {
        let looking = (*self
            .instance_check
            .get_or_init(|| self.create_instance_check(&instance_check::shader_words(), PUSH_BYTES, &[])))?;
        let (bind, push, dispatch) =
            (self.next.cmd_bind_pipeline?, self.next.cmd_push_constants?, self.next.cmd_dispatch?);
        let known = commands.allocate(self, words.len() as u32)?;
        known.write(words);
        // Before anything is recorded: what begins must come to its end.
        let all = inputs.iter().map(|_| commands.allocate(self, instance_check::result_words(REPORTED_INSTANCES_MAX)));
        let all: Vec<ArenaRegion> = all.collect::<Option<_>>()?;
        self.barrier(handle, BarrierScopes::BEFORE_CHECK)?;
        let stages = ShaderStageFlags::COMPUTE;
        // SAFETY: a pipeline of ours, which lives as long as the device; the command buffer is in the recording state,
        // outside of rendering: the application's build, which this runs in, wants that of it
        // (VUID-vkCmdBuildAccelerationStructuresKHR-renderpass).
        unsafe { bind(handle, PipelineBindPoint::COMPUTE, looking.pipeline) };
        for (input, found) in inputs.iter().zip(all) {
            let look = InstanceCheck {
                instances: input.address,
                has_addresses: input.has_addresses,
                count: input.count,
                valid_references: known.device_address,
                valid_count: known_count,
                results: found.device_address,
                max_results: REPORTED_INSTANCES_MAX,
                range: input.range,
            };
            let constants = look.push_constants();
            // SAFETY: the command buffer is in the state that is described above. The layout is that of the pipeline,
            // with `PUSH_BYTES` of push constants for this stage, and `constants` has as many. The dispatch reads what
            // the build reads next, and writes into regions of the command buffer.
            unsafe {
                push(handle, looking.layout, stages, 0, PUSH_BYTES, Ptr::to_slice(&constants).cast());
                dispatch(handle, input.count.div_ceil(WORKGROUP_SIZE), 1, 1);
            }
            let labels = commands.labels.open().to_vec();
            let place = format!("pInfos[{}].pGeometries[{}], ", input.place.0, input.place.1);
            let (extension, target) = (StructureExtension::Khr, input.target);
            commands.builds.push(CheckedBuild { results: found, command, place, extension, target, labels });
        }
        self.barrier(handle, BarrierScopes::BEFORE_BUILD)?;
        let bound = commands.compute_pipeline();
        if bound.0 != 0 {
            // SAFETY: `compute_pipeline` is what the driver has bound for the application, which may not destroy it
            // while the command buffer is recorded; the command buffer is in the state that is described above.
            unsafe { bind(handle, PipelineBindPoint::COMPUTE, bound) };
        }
        self.rebind_shader_objects(commands, handle, COMPUTE);
        commands.push_constants.repush(handle, push);
        Some(())
    }

    pub(crate) fn barrier(&self, handle: CommandBuffer, barrier_scopes: BarrierScopes) -> Option<()> {
        let mut memory = MemoryBarrier::zeroed();
        memory.s_type = StructureType::MEMORY_BARRIER;
        (memory.src_access_mask, memory.dst_access_mask) =
            (AccessFlags(barrier_scopes.access.0), AccessFlags(barrier_scopes.access.1));
        let (from, to) = (PipelineStageFlags(barrier_scopes.stages.0), PipelineStageFlags(barrier_scopes.stages.1));
        let barrier = self.next.cmd_pipeline_barrier?;
        let none = DependencyFlags::default();
        // SAFETY: a barrier of ours, which lives until the call returns. The caller is inside of a command of the
        // application for this command buffer that is outside of rendering: a build, or the end of a primary one.
        unsafe { barrier(handle, from, to, none, 1, Ptr::to(&memory), 0, Ptr::NULL, 0, Ptr::NULL) };
        Some(())
    }

    /// A compute pipeline with a shader of ours, push constants of this size, and these sets.
    pub(crate) fn create_instance_check(
        &self,
        words: &[u32],
        push_bytes: u32,
        sets: &[DescriptorSetLayout],
    ) -> Option<InstanceCheckPipeline> {
        let range = PushConstantRange { stage_flags: ShaderStageFlags::COMPUTE, offset: 0, size: push_bytes };
        let mut info = PipelineLayoutCreateInfo::zeroed();
        info.s_type = StructureType::PIPELINE_LAYOUT_CREATE_INFO;
        info.push_constant_range_count = 1;
        info.p_push_constant_ranges = Ptr::to(&range);
        info.set_layout_count = sets.len() as u32;
        info.p_set_layouts = Ptr::to_slice(sets);
        let mut looking = InstanceCheckPipeline::default();
        let module = self.create_module(words)?;
        let mut create = ComputePipelineCreateInfo::zeroed();
        create.s_type = StructureType::COMPUTE_PIPELINE_CREATE_INFO;
        create.stage.s_type = StructureType::PIPELINE_SHADER_STAGE_CREATE_INFO;
        create.stage.stage = ShaderStageFlags::COMPUTE;
        create.stage.module = module;
        create.stage.p_name = Ptr::to_slice(c"main".to_bytes_with_nul());
        // SAFETY: this runs inside of a call for a command buffer of the device, which is alive until that returns; infos
        // and places are ours, and live as long as this function. The sets' layouts live as long as the device.
        unsafe {
            let layout = out_ptr(&mut looking.layout);
            check_success((self.next.create_pipeline_layout?)(self.device, Ptr::to(&info), Ptr::NULL, layout))?;
            create.layout = looking.layout;
            let (cache, made) = (PipelineCache::default(), out_ptr(&mut looking.pipeline));
            let result =
                (self.next.create_compute_pipelines?)(self.device, cache, 1, Ptr::to(&create), Ptr::NULL, made);
            (self.next.destroy_shader_module?)(self.device, module, Ptr::NULL);
            check_success(result)?;
        }
        Some(looking)
    }

    /// The device ends.
    pub(crate) fn destroy_instance_checks(&self) {
        let made = [&self.instance_check, &self.instance_check_nv].into_iter().filter_map(|it| *it.get()?);
        made.for_each(|looking| {
            // SAFETY: made by `create_instance_check`. `DeviceChecks::end` alone calls this, once, where the device is idle and about to be
            // destroyed (VUID-vkDestroyDevice-device-00378 wants what was made of it to be gone).
            unsafe {
                if let Some(destroy) = self.next.destroy_pipeline {
                    destroy(self.device, looking.pipeline, Ptr::NULL);
                }
                if let Some(destroy) = self.next.destroy_pipeline_layout {
                    destroy(self.device, looking.layout, Ptr::NULL);
                }
            }
        });
    }
}

/// Stages and accesses, before and behind.
#[derive(Clone, Copy)]
pub(crate) struct BarrierScopes {
    stages: (u32, u32),
    access: (u32, u32),
}

impl BarrierScopes {
    /// Writes to the instances come before.
    pub(crate) const BEFORE_CHECK: BarrierScopes = BarrierScopes {
        stages: (PipelineStageFlags::ALL_COMMANDS.0, PipelineStageFlags::COMPUTE_SHADER.0),
        access: (AccessFlags::MEMORY_WRITE.0, AccessFlags::SHADER_READ.0 | AccessFlags::SHADER_WRITE.0),
    };
    /// The host reads what shaders wrote.
    pub(crate) const TO_HOST: BarrierScopes = BarrierScopes {
        stages: (PipelineStageFlags::ALL_COMMANDS.0, PipelineStageFlags::HOST.0),
        access: (AccessFlags::SHADER_WRITE.0, AccessFlags::HOST_READ.0),
    };
    /// The build reads what we wrote.
    pub(crate) const BEFORE_BUILD: BarrierScopes = BarrierScopes {
        stages: (PipelineStageFlags::COMPUTE_SHADER.0, PipelineStageFlags::ACCELERATION_STRUCTURE_BUILD_KHR.0),
        access: (
            AccessFlags::SHADER_WRITE.0,
            AccessFlags::SHADER_READ.0 | AccessFlags::ACCELERATION_STRUCTURE_READ_KHR.0,
        ),
    };
}

impl StructureExtension {
    pub(crate) fn object(self) -> (ObjectType, &'static str) {
        match self {
            StructureExtension::Khr => (ObjectType::ACCELERATION_STRUCTURE_KHR, "VkAccelerationStructureKHR"),
            StructureExtension::Nv => (ObjectType::ACCELERATION_STRUCTURE_NV, "VkAccelerationStructureNV"),
        }
    }

    /// The message has the name of the rule; those of the older extension have none.
    fn code(self) -> &'static str {
        match self {
            StructureExtension::Khr => "VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-12281",
            StructureExtension::Nv => "UNASSIGNED-Acceleration structure reference unknown",
        }
    }
}

impl ChecksState {
    pub(crate) fn structures_of(&self, extension: StructureExtension) -> &AccelerationStructures {
        match extension {
            StructureExtension::Khr => &self.structures,
            StructureExtension::Nv => &self.structures_nv,
        }
    }

    /// The errors in the instances of a build.
    pub(crate) fn read_wrong_instances(&self, build: &CheckedBuild, (handle, number): (u64, u32)) -> Vec<CheckFinding> {
        if build.results.read_word(0) == 0 {
            return Vec::new();
        }
        let (count, invalid) = instance_check::read_results(&build.results.read());
        build.results.write(&vec![0; build.results.words as usize]);
        let left_out = count as usize - invalid.len().min(count as usize);
        invalid.iter().map(|it| self.wrong_instance(build, (handle, number), it, left_out)).collect()
    }

    fn wrong_instance(
        &self,
        build: &CheckedBuild,
        (handle, number): (u64, u32),
        wrong: &InvalidInstance,
        left_out: usize,
    ) -> CheckFinding {
        let (command, (ty, kind)) = (build.command, build.extension.object());
        let commands = self.debug_name(ObjectType::COMMAND_BUFFER, handle);
        let target = self.target_name(build);
        let message = format!(
            "Instance {} refers to {:#x}, {}. Command buffer {}. Acceleration structure {}.",
            wrong.instance,
            wrong.reference,
            self.reference_text(build.extension, wrong.reference),
            named(commands.as_deref(), handle),
            named(target.as_deref(), build.target),
        );
        let mut diagnostic = Diagnostic::new(build.extension.code(), Severity::Error, message);
        diagnostic.function = command.to_owned();
        let text = format!("{command} ({}in command buffer {number})", build.place);
        let labels = DebugLabels { queue: Vec::new(), commands: build.labels.clone() };
        let place = DiagnosticLocation::new("build", text, command.to_owned());
        diagnostic.locations.push(DiagnosticLocation { path: vec![command.to_owned()], labels, ..place });
        diagnostic.objects.push(DiagnosticObject::new(kind, build.target, target.clone()));
        diagnostic.objects.push(DiagnosticObject::new("VkCommandBuffer", u64::from(number), commands));
        diagnostic.properties.push(Property { key: "instance", value: wrong.instance.to_string() });
        diagnostic.properties.push(Property { key: "reference", value: format!("{:#x}", wrong.reference) });
        diagnostic
            .explanation
            .push("The reference was set to zero before the build: the instance is inactive.".to_owned());
        if left_out > 0 {
            diagnostic.explanation.push(format!("{left_out} more instances of this build are wrong."));
        }
        let objects: Vec<MessageObject> = vec![
            self.object(ObjectType::COMMAND_BUFFER, "VkCommandBuffer", handle),
            message_object(ty, kind, build.target, target),
        ];
        CheckFinding::WrongInstance(Box::new((diagnostic, objects)))
    }

    /// The acceleration structure may be destroyed before its finding is reported.
    fn target_name(&self, build: &CheckedBuild) -> Option<String> {
        let structures = self.structures_of(build.extension);
        match structures.live.contains_key(&build.target) {
            true => self.debug_name(build.extension.object().0, build.target),
            false => structures.find_destroyed(|it| it.handle == build.target)?.1.clone(),
        }
    }

    /// The object that a reference leads to.
    fn reference_text(&self, extension: StructureExtension, reference: u64) -> String {
        let structures = self.structures_of(extension);
        let is_it = |it: &TrackedStructure| it.address == reference;
        if let Some(tracked_structure) = structures.live.values().find(|it| is_it(it)) {
            let name = self.debug_name(extension.object().0, tracked_structure.handle);
            return format!("which is the top level structure {}", named(name.as_deref(), tracked_structure.handle));
        }
        match structures.find_destroyed(is_it) {
            Some((tracked_structure, name)) => {
                format!("which is {}, and was destroyed", named(name.as_deref(), tracked_structure.handle))
            }
            None => "which is no acceleration structure".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn structures() -> AccelerationStructures {
        let made = |handle, ty, address| (handle, TrackedStructure { handle, ty, address });
        let (top, bottom) =
            (AccelerationStructureTypeKHR::TOP_LEVEL_KHR, AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR);
        let generic = AccelerationStructureTypeKHR::GENERIC_KHR;
        let live = [made(1, bottom, 0x100), made(2, top, 0x200), made(3, generic, 0x300)].into_iter().collect();
        let mut structures = AccelerationStructures { live, destroyed: VecDeque::new() };
        for (pair, name) in [(made(4, bottom, 0x400), "old"), (made(9, top, 0x900), "scene")] {
            structures.live.extend([pair]);
            structures.remove(pair.0, Some(name.to_owned()));
        }
        structures
    }

    #[test]
    fn bottom_level_structures_that_exist_are_known() {
        let mut known: Vec<u64> = structures().references().collect();
        known.sort_unstable();
        assert_eq!(known, [0x100, 0x300]);
    }

    #[test]
    fn of_structures_that_are_gone_only_the_last_are_remembered() {
        let mut structures = AccelerationStructures::default();
        for handle in 1..=2 * DESTROYED_MAX as u64 {
            let made =
                TrackedStructure { handle, ty: AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR, address: handle << 8 };
            structures.live.insert(handle, made);
            structures.remove(handle, None);
        }
        assert_eq!((structures.live.len(), structures.destroyed.len()), (0, DESTROYED_MAX));
        assert!(structures.find_destroyed(|it| it.handle == DESTROYED_MAX as u64).is_none());
        assert!(structures.find_destroyed(|it| it.handle == DESTROYED_MAX as u64 + 1).is_some());
    }

    #[test]
    fn wrong_instances_are_reported_with_what_they_refer_to() {
        let state = ChecksState { structures_nv: structures(), ..ChecksState::default() };
        let mut words = vec![3, 0, 0x200, 0, 4, 0x400, 0, 5, 0x500, 7];
        let found = ArenaRegion::of_words(&mut words);
        let (command, labels) = ("vkCmdBuildAccelerationStructureNV", Vec::new());
        let build = CheckedBuild {
            results: found,
            command,
            place: String::new(),
            extension: StructureExtension::Nv,
            target: 9,
            labels,
        };
        let invalid = state.read_wrong_instances(&build, (0x77, 2));
        let texts = [
            "Instance 0 refers to 0x200, which is the top level structure (0x2). Command buffer (0x77). \
             Acceleration structure (scene)(0x9).",
            "Instance 4 refers to 0x400, which is (old)(0x4), and was destroyed.",
            "Instance 5 refers to 0x700000500, which is no acceleration structure.",
        ];
        assert_eq!(invalid.len(), texts.len());
        for (check_finding, text) in invalid.iter().zip(texts) {
            let CheckFinding::WrongInstance(wrong_instance) = check_finding else { panic!("not of a build") };
            assert!(wrong_instance.0.message.starts_with(text), "{}", wrong_instance.0.message);
            assert_eq!(
                (wrong_instance.0.code.to_string(), &*wrong_instance.0.function),
                (StructureExtension::Nv.code().to_owned(), command)
            );
        }
        assert_eq!(words, [0; 10], "what comes next is new");
    }

    #[test]
    fn only_instances_of_top_level_builds_are_checked() {
        let mut geometry = AccelerationStructureGeometryKHR::zeroed();
        geometry.geometry_type = GeometryTypeKHR::INSTANCES_KHR;
        // Type, chain, whether there are addresses, and where.
        geometry.geometry.words[..4].copy_from_slice(&[0, 0, 0, 0x1000]);
        let mut info = AccelerationStructureBuildGeometryInfoKHR::zeroed();
        info.type_ = AccelerationStructureTypeKHR::TOP_LEVEL_KHR;
        info.dst_acceleration_structure = AccelerationStructureKHR(7);
        info.geometry_count = 1;
        info.p_geometries = Ptr::to(&geometry);
        let mut range = AccelerationStructureBuildRangeInfoKHR::zeroed();
        (range.primitive_count, range.primitive_offset) = (5, 64);
        let mut bottom = info;
        bottom.type_ = AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR;
        let ranges = [Ptr::to(&range), Ptr::to(&range)];
        // SAFETY: the infos lead to one geometry each, of this function, and the ranges are as many.
        let found = unsafe { inputs(&[bottom, info], &ranges) };
        let expected =
            BuildInstances { place: (1, 0), target: 7, address: 0x1040, has_addresses: false, count: 5, range: 0 };
        assert_eq!(found, [expected]);
        let (counts, places) = ([Ptr::to(&9), Ptr::to(&9)], [(0x100, 16), (0x9000, 32)]);
        // SAFETY: the infos lead to one geometry each, of this function, and the counts are as many.
        let found = unsafe { indirect_inputs(&[bottom, info], &places, &counts) };
        assert_eq!(found, [BuildInstances { address: 0x1000, count: 9, range: 0x9000, ..expected }]);
    }
}
