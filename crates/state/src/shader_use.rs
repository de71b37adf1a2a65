//! What the shaders of a draw or a dispatch access through descriptors.

use std::ops::Range;

use lavascope_abi::{AccessFlags2 as Bits, Buffer, DescriptorType};
use lavascope_program::{Access, Area, Certainty, Origin, Region, ResourceId};

use crate::bind::{Kind, SetRef, State};
use crate::descriptor::{Content, Descriptor, Set};
use crate::device::Device;
use crate::listener::Out;
use crate::rendering::Scene;
use crate::shader::{DescriptorUse, Element, Shader};
use crate::usage::Usage;

/// The use of one descriptor of a set whose contents may change until the submission.
#[derive(Clone, Debug)]
pub(crate) struct LateUse {
    set: u64,
    access: OfDescriptor,
}

/// How one descriptor is used.
#[derive(Clone, Debug)]
struct OfDescriptor {
    set: u32,
    binding: u32,
    element: u32,
    stage: u64,
    reads: bool,
    writes: bool,
    bytes: Option<Range<u64>>,
    certainty: Certainty,
    offset: u64,
    /// Where input attachments are read.
    area: Option<Area>,
}

impl Device {
    /// The accesses of shaders: those that are known now, and those that the submission will tell.
    pub(crate) fn shader_uses(
        &self,
        state: &State,
        kind: Kind,
        shaders: &[Shader],
        out: &mut Out<'_>,
    ) -> (Vec<Access>, Vec<LateUse>) {
        let (mut found, mut late) = (Vec::new(), Vec::new());
        for shader in shaders {
            if shader.interface.as_ref().is_some_and(|it| it.uses_addresses) {
                out.missing("memory that a shader reaches by its address");
            }
            let uses = shader.interface.iter().flat_map(|it| it.descriptors.iter());
            for it in uses {
                let Some(bound) = state.point(kind).sets.get(it.set as usize).and_then(Option::as_ref) else {
                    continue;
                };
                let (set, handle) = match &bound.set {
                    SetRef::Pushed(set) => (Some(&**set), None),
                    SetRef::Handle(handle) => (self.sets.get(*handle), Some(*handle)),
                };
                let Some(set) = set else { continue };
                let Some(binding) = set.layout.bindings.get(&it.binding) else { continue };
                let Some(element) = element(it, binding.count, out) else { continue };
                let dynamic =
                    binding.dynamic.and_then(|first| bound.offsets.get(first.saturating_add(element) as usize));
                let access = OfDescriptor {
                    set: it.set,
                    binding: it.binding,
                    element,
                    stage: shader.pipeline_stage(),
                    reads: it.reads,
                    writes: it.writes,
                    bytes: it.bytes.clone(),
                    certainty: it.certainty,
                    offset: dynamic.map_or(0, |it| u64::from(*it)),
                    area: area_of(&state.scene),
                };
                match handle.filter(|_| binding.is_late) {
                    Some(set) => late.push(LateUse { set, access }),
                    None => found.extend(self.through(set, &access)),
                }
            }
        }
        (found, late)
    }

    /// What a descriptor's use is, with the contents that its set has now.
    pub(crate) fn resolve(&self, it: &LateUse) -> Vec<Access> {
        self.sets.get(it.set).map_or(Vec::new(), |set| self.through(set, &it.access))
    }

    fn through(&self, set: &Set, it: &OfDescriptor) -> Vec<Access> {
        let Some(descriptor) = set.get(it.binding, it.element) else { return Vec::new() };
        let Some((resource, region)) = self.described(descriptor, it) else { return Vec::new() };
        let origin = it.origin(descriptor);
        let usage = |access| {
            let access = Usage::of_shader(it.stage, access).on(resource, region.clone());
            Access { certainty: it.certainty, origin, ..access }
        };
        let (read, write) = accesses_of(descriptor.ty);
        let read = it.reads.then_some(read).map(usage);
        read.into_iter().chain(write.filter(|_| it.writes).map(usage)).collect()
    }

    /// The part of a resource that a descriptor stands for.
    fn described(&self, descriptor: Descriptor, it: &OfDescriptor) -> Option<(ResourceId, Region)> {
        match descriptor.content {
            Content::Buffer { buffer, offset, range } => {
                let start = offset.saturating_add(it.offset);
                let (resource, whole) = self.buffer_part(Buffer(buffer), start, range)?;
                Some((resource, Region::Buffer(part_of(&whole, it.bytes.as_ref()))))
            }
            Content::BufferView(view) => {
                let view = self.buffer_views.get(view)?;
                Some((view.resource, Region::Buffer(part_of(&view.bytes, it.bytes.as_ref()))))
            }
            Content::ImageView { view, .. } => {
                let view = self.image_views.get(view)?;
                let mut region = view.region.clone();
                if descriptor.ty == DescriptorType::INPUT_ATTACHMENT {
                    region.area = it.area.or(region.area);
                }
                Some((view.resource, Region::Image(region)))
            }
            Content::AccelerationStructure(handle) => {
                let structure = self.structures.get(handle)?;
                Some((structure.resource, Region::Buffer(structure.bytes.clone())))
            }
        }
    }
}

impl OfDescriptor {
    fn origin(&self, descriptor: Descriptor) -> Origin {
        let layout = match descriptor.content {
            Content::ImageView { layout, .. } => Some(layout),
            _ => None,
        };
        let OfDescriptor { set, binding, element, .. } = *self;
        Origin::descriptor(lavascope_program::Descriptor { set, binding, element, ty: descriptor.ty.0, layout })
    }
}

/// The descriptor of an array that is used; none where the shader chooses among several.
fn element(it: &DescriptorUse, count: u32, out: &mut Out<'_>) -> Option<u32> {
    match it.element {
        Element::One(element) => Some(element),
        Element::Unknown if count == 1 => Some(0),
        Element::Unknown => {
            out.missing("which descriptor of an array a shader uses");
            None
        }
    }
}

fn area_of(scene: &Scene) -> Option<Area> {
    match scene {
        Scene::Known(targets) => targets.area,
        Scene::None | Scene::Inherited { .. } => None,
    }
}

/// The bytes of a range that are accessed.
fn part_of(whole: &Range<u64>, bytes: Option<&Range<u64>>) -> Range<u64> {
    let Some(bytes) = bytes else { return whole.clone() };
    let at = |it: u64| whole.start.saturating_add(it).min(whole.end);
    at(bytes.start)..at(bytes.end)
}

/// How a descriptor is read, and how it is written where it can be.
fn accesses_of(ty: DescriptorType) -> (Bits, Option<Bits>) {
    match ty {
        DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC => (Bits::UNIFORM_READ, None),
        DescriptorType::STORAGE_BUFFER
        | DescriptorType::STORAGE_BUFFER_DYNAMIC
        | DescriptorType::STORAGE_IMAGE
        | DescriptorType::STORAGE_TEXEL_BUFFER => (Bits::SHADER_STORAGE_READ, Some(Bits::SHADER_STORAGE_WRITE)),
        DescriptorType::INPUT_ATTACHMENT => (Bits::INPUT_ATTACHMENT_READ, None),
        DescriptorType::ACCELERATION_STRUCTURE_KHR => (Bits::ACCELERATION_STRUCTURE_READ_KHR, None),
        // Sampled images, uniform texel buffers, and what is like them.
        _ => (Bits::SHADER_SAMPLED_READ, None),
    }
}
