//! Acceleration structures: built from what may still be written, and copied while they may still be built.

use ash::{khr, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, scope};
use crate::failure::Failure;
use crate::faults::context::FaultContext;
use crate::faults::faults;

faults! {
    input: "build-input", "an acceleration structure is built from boxes that may still be written.",
    copied: "acceleration-structure", "an acceleration structure is copied while it may still be built.",
    referred: "bounds-instances", "an instance of a scene refers to no structure.",
    indirect: "bounds-instances-indirect", "the same, where the device tells how many instances there are.",
}

/// More than what any of these structures needs.
const SIZE: u64 = 1 << 16;
pub(crate) const BUILT: BarrierScope = BarrierScope {
    stages: vk::PipelineStageFlags::ACCELERATION_STRUCTURE_BUILD_KHR,
    access: vk::AccessFlags::ACCELERATION_STRUCTURE_WRITE_KHR,
};
pub(crate) const READ: vk::AccessFlags = vk::AccessFlags::ACCELERATION_STRUCTURE_READ_KHR;
const BOX: [u32; 6] = [0; 6];

/// Buffers and functions for building.
pub(crate) struct StructureBuilder<'a> {
    lab: &'a FaultContext<'a>,
    structures: khr::acceleration_structure::Device,
    pub(crate) boxes: Buffer,
    scratch: Buffer,
}

impl<'a> StructureBuilder<'a> {
    pub(crate) fn new(lab: &'a FaultContext) -> Result<StructureBuilder<'a>, Failure> {
        let input = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR;
        Ok(StructureBuilder {
            lab,
            structures: khr::acceleration_structure::Device::new(&lab.instance.handle, &lab.device),
            boxes: buffer(lab, "boxes", input | vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Device)?,
            scratch: buffer(lab, "scratch", vk::BufferUsageFlags::STORAGE_BUFFER, MemoryPlacement::Device)?,
        })
    }

    /// A structure in a buffer of its own, which has its name.
    pub(crate) fn structure(
        &self,
        name: &str,
        ty: AccelerationStructureType,
    ) -> Result<AccelerationStructure<'_>, Failure> {
        let storage =
            buffer(self.lab, name, vk::BufferUsageFlags::ACCELERATION_STRUCTURE_STORAGE_KHR, MemoryPlacement::Device)?;
        let info = vk::AccelerationStructureCreateInfoKHR::default().buffer(storage.handle).size(SIZE / 2).ty(ty);
        // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
        let handle = unsafe { self.structures.create_acceleration_structure(&info, None) }?;
        Ok(AccelerationStructure { handle, builder: self })
    }

    /// The reference of instances to a structure.
    pub(crate) fn reference(&self, structure: &AccelerationStructure) -> u64 {
        let info = vk::AccelerationStructureDeviceAddressInfoKHR::default().acceleration_structure(structure.handle);
        // SAFETY: a live structure, and the feature is enabled (lifetime, feature).
        unsafe { self.structures.get_acceleration_structure_device_address(&info) }
    }

    /// Builds a structure of a box, or of no instance.
    pub(crate) fn build(
        &self,
        commands: vk::CommandBuffer,
        target: &AccelerationStructure,
        ty: AccelerationStructureType,
    ) {
        self.build_of(commands, target, ty, (&self.boxes, 0), None);
    }

    /// As above, with this many instances in a buffer; with a range buffer, at most this many.
    pub(crate) fn build_of(
        &self,
        commands: vk::CommandBuffer,
        target: &AccelerationStructure,
        ty: AccelerationStructureType,
        (source, count): (&Buffer, u32),
        range_buffer: Option<&Buffer>,
    ) {
        let data = vk::DeviceOrHostAddressConstKHR { device_address: address(self.lab, source) };
        let boxes = vk::AccelerationStructureGeometryAabbsDataKHR::default().stride(24).data(data);
        let instances = vk::AccelerationStructureGeometryInstancesDataKHR::default().data(data);
        let (kind, geometry, primitive_count) = match ty {
            AccelerationStructureType::TOP_LEVEL => {
                let geometry = vk::AccelerationStructureGeometryDataKHR { instances };
                (vk::GeometryTypeKHR::INSTANCES, geometry, count)
            }
            _ => (vk::GeometryTypeKHR::AABBS, vk::AccelerationStructureGeometryDataKHR { aabbs: boxes }, 1),
        };
        let geometries = [vk::AccelerationStructureGeometryKHR::default().geometry_type(kind).geometry(geometry)];
        let scratch = vk::DeviceOrHostAddressKHR { device_address: address(self.lab, &self.scratch) };
        let info = vk::AccelerationStructureBuildGeometryInfoKHR::default()
            .ty(ty)
            .geometries(&geometries)
            .dst_acceleration_structure(target.handle)
            .scratch_data(scratch);
        let range = [vk::AccelerationStructureBuildRangeInfoKHR { primitive_count, ..Default::default() }];
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            match range_buffer.map(|it| address(self.lab, it)) {
                None => self.structures.cmd_build_acceleration_structures(commands, &[info], &[&range]),
                Some(range_buffer) => {
                    let most: [&[u32]; 1] = [&[primitive_count]];
                    self.structures.cmd_build_acceleration_structures_indirect(
                        commands,
                        &[info],
                        &[range_buffer],
                        &[16],
                        &most,
                    );
                }
            }
        }
    }
}

pub(crate) type AccelerationStructureType = vk::AccelerationStructureTypeKHR;

pub(crate) struct AccelerationStructure<'a> {
    pub(crate) handle: vk::AccelerationStructureKHR,
    builder: &'a StructureBuilder<'a>,
}

impl Drop for AccelerationStructure<'_> {
    fn drop(&mut self) {
        // SAFETY: the device is idle after waiting, and the buffer goes later (lifetime).
        unsafe {
            let _ = self.builder.lab.device.device_wait_idle();
            self.builder.structures.destroy_acceleration_structure(self.handle, None);
        }
    }
}

pub(crate) fn buffer(
    lab: &FaultContext,
    name: &str,
    usage: vk::BufferUsageFlags,
    place: MemoryPlacement,
) -> Result<Buffer, Failure> {
    lab.buffer(name, SIZE, usage | vk::BufferUsageFlags::SHADER_DEVICE_ADDRESS, place)
}

pub(crate) fn address(lab: &FaultContext, buffer: &Buffer) -> u64 {
    let info = vk::BufferDeviceAddressInfo::default().buffer(buffer.handle);
    // SAFETY: a live buffer, and the feature is enabled (lifetime, feature).
    unsafe { lab.device.get_buffer_device_address(&info) }
}

/// The extensions for building. Drivers may defer builds to the host's threads, hence the second extension.
pub(crate) const NEEDS: Needs = Needs {
    features: &[Feature::AccelerationStructure, Feature::BufferDeviceAddress],
    extensions: &[khr::acceleration_structure::NAME, khr::deferred_host_operations::NAME],
    ..Needs::NOTHING
};

fn input(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let builder = StructureBuilder::new(&lab)?;
    let bottom = builder.structure("bottom", AccelerationStructureType::BOTTOM_LEVEL)?;
    lab.run_once("update and build", |commands| {
        lab.update(commands, &builder.boxes, &BOX);
        lab.barrier_if_fixed(
            commands,
            scope::COPY_WRITE,
            BarrierScope { access: vk::AccessFlags::SHADER_READ, ..BUILT },
        );
        builder.build(commands, &bottom, AccelerationStructureType::BOTTOM_LEVEL);
    })
}

fn copied(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let builder = StructureBuilder::new(&lab)?;
    let bottom = builder.structure("bottom", AccelerationStructureType::BOTTOM_LEVEL)?;
    let copy = builder.structure("copy", AccelerationStructureType::BOTTOM_LEVEL)?;
    lab.run_once("boxes", |commands| {
        lab.update(commands, &builder.boxes, &BOX);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    lab.run_once("build and copy", |commands| {
        builder.build(commands, &bottom, AccelerationStructureType::BOTTOM_LEVEL);
        lab.barrier_if_fixed(commands, BUILT, BarrierScope { access: READ, ..BUILT });
        let mode = vk::CopyAccelerationStructureModeKHR::CLONE;
        let info = vk::CopyAccelerationStructureInfoKHR::default().src(bottom.handle).dst(copy.handle).mode(mode);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { builder.structures.cmd_copy_acceleration_structure(commands, &info) };
    })
}

/// The second of three instances refers to something else.
fn referred(options: &SampleOptions) -> Result<(), Failure> {
    scene(&FaultContext::new(options, &NEEDS)?, false)
}

fn indirect(options: &SampleOptions) -> Result<(), Failure> {
    let features = [NEEDS.features, &[Feature::AccelerationStructureIndirectBuild]].concat();
    scene(&FaultContext::new(options, &Needs { features: &features, ..NEEDS })?, true)
}

fn scene(lab: &FaultContext, is_indirect: bool) -> Result<(), Failure> {
    let builder = StructureBuilder::new(lab)?;
    let bottom = builder.structure("bottom", AccelerationStructureType::BOTTOM_LEVEL)?;
    let scene = builder.structure("scene", AccelerationStructureType::TOP_LEVEL)?;
    let range_usage = vk::BufferUsageFlags::INDIRECT_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let range_buffer = buffer(lab, "told", range_usage, MemoryPlacement::Device)?;
    let usage = vk::BufferUsageFlags::ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR;
    let usage = usage | vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
    let instances = buffer(lab, "instances", usage, MemoryPlacement::Device)?;
    let reference = builder.reference(&bottom);
    let wrong = lab.planted_or_fixed(reference ^ 0x5500_0000_0000, reference);
    let words: Vec<u32> = [reference, wrong, reference].iter().flat_map(|it| instance(*it)).collect();
    let input = vk::AccessFlags::SHADER_READ | vk::AccessFlags::INDIRECT_COMMAND_READ;
    let input = BarrierScope { access: input, ..BUILT };
    lab.run_once("build", |commands| {
        lab.update(commands, &builder.boxes, &BOX);
        lab.update(commands, &instances, &words);
        lab.update(commands, &range_buffer, &[3, 0, 0, 0]);
        lab.memory_barrier(commands, scope::COPY_WRITE, input);
        builder.build(commands, &bottom, AccelerationStructureType::BOTTOM_LEVEL);
        lab.memory_barrier(commands, BUILT, BarrierScope { access: READ | BUILT.access, ..BUILT });
        let (count, range_buffer) = if is_indirect { (5, Some(&range_buffer)) } else { (3, None) };
        builder.build_of(commands, &scene, AccelerationStructureType::TOP_LEVEL, (&instances, count), range_buffer);
    })
}

/// An instance that stays where it is, for all rays.
pub(crate) fn instance(reference: u64) -> [u32; 16] {
    let one = 1f32.to_bits();
    let (mask, low, high) = (0xff00_0000, reference as u32, (reference >> 32) as u32);
    [one, 0, 0, 0, 0, one, 0, 0, 0, 0, one, 0, mask, 0, low, high]
}
