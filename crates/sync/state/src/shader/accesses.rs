//! The accesses of the shaders of a draw or a dispatch, through descriptors and addresses.

use std::ops::Range;

use lavascope_abi::{AccessFlags2 as Bits, Buffer, DescriptorType, ImageAspectFlags};
use lavascope_sync_ir::{Access, Area, Certainty, Origin, RasterOrder, Region, ResourceId};

use crate::command::bound_state::{BindPoint, BoundSet, BoundState, SetRef};
use crate::command::stage_access::StageAccess;
use crate::device::TrackedDevice;
use crate::draw::index_values::IndexedVertices;
use crate::draw::indirect_arguments::{IndirectArguments, ListedDraws};
use crate::draw::raster_state::RasterOrderedReads;
use crate::draw::rendering::CurrentAttachments;
use crate::extension::acceleration_structure::SCRATCH;
use crate::listener::TrackerOutput;
use crate::shader::descriptor_set::{Descriptor, DescriptorContent, TrackedDescriptorSet};
use crate::shader::input_values::{LaunchedBytes, ShaderInputValues};
use crate::shader::interface::{AddressUse, DescriptorArrayIndex, DescriptorUse, Shader, ShaderInterface};
use crate::shader::launch::Launch;

/// An access that is resolved at submission.
#[derive(Clone, Debug)]
pub(crate) enum SubmitTimeUse {
    /// A descriptor that may be updated until then.
    Descriptor(SubmitTimeDescriptor),
    /// Vertices whose indices may be written until then.
    Indexed(Box<IndexedVertices>),
    /// Vertices and indices of draws whose parameters or indices may be written until then.
    Drawn(Box<ListedDraws>),
}

#[derive(Clone, Debug)]
pub(crate) struct SubmitTimeDescriptor {
    set: u64,
    access: DescriptorAccess,
    /// Set if the launch size is known at submission, and with it the accessed bytes.
    launched: Option<Box<LaunchedUse>>,
}

#[derive(Clone, Debug)]
struct LaunchedUse {
    arguments: IndirectArguments,
    bytes: LaunchedBytes,
}

impl SubmitTimeUse {
    /// Marks the access as uncertain, because the command may not execute.
    fn mark_possible(&mut self) {
        match self {
            SubmitTimeUse::Descriptor(descriptor) => {
                descriptor.access.certainty = descriptor.access.certainty.if_made();
            }
            SubmitTimeUse::Indexed(indexed) => indexed.is_conditional = true,
            SubmitTimeUse::Drawn(listed) => listed.is_conditional = true,
        }
    }
}

/// The accesses of shaders: those known now, and those resolved at submission.
#[derive(Default)]
pub(crate) struct ShaderUses {
    pub(crate) fixed: Vec<Access>,
    pub(crate) submit_time: Vec<SubmitTimeUse>,
}

impl ShaderUses {
    pub(crate) fn len(&self) -> [usize; 2] {
        [self.fixed.len(), self.submit_time.len()]
    }

    /// If only some of these shaders run, none of the accesses they added are certain.
    pub(crate) fn mark_possible_from(&mut self, [fixed, late]: [usize; 2]) {
        self.fixed[fixed..].iter_mut().for_each(|it| it.certainty = it.certainty.if_made());
        self.submit_time[late..].iter_mut().for_each(SubmitTimeUse::mark_possible);
    }
}

/// An access of a shader through a descriptor.
#[derive(Clone, Debug)]
struct DescriptorAccess {
    set: u32,
    binding: u32,
    element: ResolvedIndex,
    stage: u64,
    reads: bool,
    writes: bool,
    bytes: Option<Range<u64>>,
    certainty: Certainty,
    offset: u64,
    /// The area in which input attachments are read.
    area: Option<Area>,
    /// In fragment shader interlock order.
    is_ordered: bool,
    is_atomic: bool,
    /// Which input attachments are read in rasterization order.
    ordered: RasterOrderedReads,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ResolvedIndex {
    One(u32),
    /// Any element of the array; the shader chooses.
    Any,
}

/// In arrays up to this size, a single written descriptor is taken for the chosen one.
const SMALL_ARRAY_MAX: usize = 16;
/// In longer arrays, possible accesses are not reported for each descriptor.
const DYNAMIC_INDEXING_MAX: usize = 4096;

impl TrackedDevice {
    /// Adds a possible read of one descriptor of an array. It stands for all that the shader may choose.
    fn add_possible_descriptor(
        &self,
        descriptor_use: &DescriptorUse,
        stage: u64,
        set: &TrackedDescriptorSet,
        out: &mut TrackerOutput<'_>,
    ) {
        let all = (0_u32..).zip(set.descriptors.get(&descriptor_use.binding).into_iter().flatten());
        let Some((element, descriptor)) = all.filter_map(|it| Some((it.0, (*it.1)?))).next() else { return };
        let access = DescriptorAccess {
            set: descriptor_use.set,
            binding: descriptor_use.binding,
            element: ResolvedIndex::One(element),
            stage,
            reads: descriptor_use.reads,
            writes: false,
            bytes: None,
            certainty: Certainty::Unreported,
            offset: 0,
            area: None,
            is_ordered: false,
            is_atomic: false,
            ordered: RasterOrderedReads::default(),
        };
        let mut found = Vec::new();
        self.add_descriptor_access(descriptor, &access, (element, Certainty::Unreported), &mut found);
        out.add_possible_reads(found);
    }

    /// Whether the shaders access anything through bound state.
    pub(crate) fn has_shader_uses(&self, state: &BoundState, kind: BindPoint, shaders: &[Shader]) -> bool {
        let has = |it: &ShaderInterface| !it.descriptors.is_empty() || !it.addresses.is_empty();
        state.has_descriptors_in_memory(kind) || shaders.iter().filter_map(|it| it.interface.as_deref()).any(has)
    }

    /// Adds the accesses of launched shaders through bound state.
    #[expect(clippy::too_many_arguments, reason = "all that a launch depends on")]
    pub(crate) fn add_shader_uses(
        &self,
        state: &BoundState,
        kind: BindPoint,
        shaders: &[Shader],
        launch: &Launch,
        ordered: RasterOrderedReads,
        uses: &mut ShaderUses,
        out: &mut TrackerOutput<'_>,
    ) {
        let is_in_memory = state.has_descriptors_in_memory(kind);
        for shader in shaders {
            let Some(interface) = &shader.interface else { continue };
            if interface.descriptors.is_empty() && interface.addresses.is_empty() && !is_in_memory {
                continue;
            }
            let numbers = ShaderInputValues {
                device: self,
                point: state.bind_point(kind),
                pushed: &state.push_constants,
                launch: launch.for_stage(shader.stage, shaders),
                workgroup: interface.workgroup_size.unwrap_or([1; 3]),
            };
            let stage = shader.pipeline_stage();
            if is_in_memory {
                uses.fixed.extend(state.descriptor_memory_reads(kind, shader, out));
            }
            for descriptor in &interface.descriptors {
                self.add_descriptor_use(&numbers, stage, descriptor, (area_of(&state.attachments), ordered), uses, out);
            }
            for address in &interface.addresses {
                uses.fixed.extend(self.address_use_accesses(&numbers, stage, address, out));
            }
        }
    }

    fn add_descriptor_use(
        &self,
        numbers: &ShaderInputValues<'_>,
        stage: u64,
        descriptor_use: &DescriptorUse,
        (area, ordered): (Option<Area>, RasterOrderedReads),
        uses: &mut ShaderUses,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(bound) = numbers.point.sets.get(descriptor_use.set as usize).and_then(Option::as_ref) else { return };
        let (set, handle) = match &bound.set {
            SetRef::Pushed(set) => (Some(&**set), None),
            SetRef::Handle(handle) => (self.sets.get(*handle), Some(*handle)),
            SetRef::InMemory(..) => (None, None),
        };
        let Some(set) = set else { return };
        let Some(binding) = set.layout.bindings.get(&descriptor_use.binding) else { return };
        let Some(element) = resolve_array_index(descriptor_use, set, numbers, out) else {
            return self.add_possible_descriptor(descriptor_use, stage, set, out);
        };
        let (bytes, certainty) = match &descriptor_use.bytes {
            Some(bytes) => {
                let (bytes, certainty) =
                    numbers.accessed_bytes(bytes, descriptor_use.per_invocation.as_ref(), descriptor_use.certainty);
                (Some(bytes), certainty)
            }
            None => (None, descriptor_use.certainty),
        };
        let access = DescriptorAccess {
            set: descriptor_use.set,
            binding: descriptor_use.binding,
            element,
            stage,
            reads: descriptor_use.reads,
            writes: descriptor_use.writes,
            bytes,
            certainty,
            offset: dynamic_offset(bound, binding.dynamic, element),
            area,
            is_ordered: descriptor_use.is_ordered,
            is_atomic: descriptor_use.is_atomic,
            ordered,
        };
        let launched = handle.and_then(|_| self.launched_use(numbers, descriptor_use));
        let access = if launched.is_some() {
            DescriptorAccess { certainty: descriptor_use.certainty, ..access }
        } else {
            access
        };
        match handle.filter(|_| binding.is_update_after_bind || launched.is_some()) {
            Some(set) => {
                uses.submit_time.push(SubmitTimeUse::Descriptor(SubmitTimeDescriptor { set, access, launched }));
            }
            None => self.add_descriptor_accesses(set, &access, &mut uses.fixed),
        }
    }

    /// The bytes of a descriptor access that the launch size determines at submission; none if it does not.
    fn launched_use(
        &self,
        numbers: &ShaderInputValues<'_>,
        descriptor_use: &DescriptorUse,
    ) -> Option<Box<LaunchedUse>> {
        let Launch::Memory(arguments) = numbers.launch else { return None };
        let (bytes, each) = (descriptor_use.bytes.as_ref()?, descriptor_use.per_invocation.as_ref()?);
        let is_launch_known = arguments.count == 1 && self.are_arguments_known_at_submission(arguments);
        let bytes = numbers.launched_bytes(bytes, each).filter(|_| is_launch_known)?;
        Some(Box::new(LaunchedUse { arguments: arguments.clone(), bytes }))
    }

    /// The memory that a shader accesses by address.
    fn address_use_accesses(
        &self,
        numbers: &ShaderInputValues<'_>,
        stage: u64,
        address_use: &AddressUse,
        out: &mut TrackerOutput<'_>,
    ) -> impl Iterator<Item = Access> + use<> {
        let found = self.resolve_address_use(numbers, address_use, out);
        let (reads, writes) = (address_use.reads, address_use.writes);
        let read =
            if address_use.is_structure { Bits::ACCELERATION_STRUCTURE_READ_KHR } else { Bits::SHADER_STORAGE_READ };
        let order = if address_use.is_atomic { RasterOrder::Atomic } else { RasterOrder::None };
        found.into_iter().flat_map(move |(resource, bytes, certainty, origin)| {
            let usage = |bits| {
                let access = StageAccess::for_shader(stage, bits).access_to_bytes(resource, bytes.clone());
                Access { certainty, order, origin, ..access }
            };
            let read = reads.then(|| usage(read));
            read.into_iter().chain(writes.then(|| usage(Bits::SHADER_STORAGE_WRITE))).collect::<Vec<_>>()
        })
    }

    fn resolve_address_use(
        &self,
        numbers: &ShaderInputValues<'_>,
        address_use: &AddressUse,
        out: &mut TrackerOutput<'_>,
    ) -> Option<(ResourceId, Range<u64>, Certainty, Origin)> {
        let Some(address) = address_use.from.as_ref().and_then(|it| numbers.read(it)) else {
            out.report_untracked("memory that a shader reaches by an address that stands in memory");
            return None;
        };
        if address == 0 {
            return None;
        }
        if address_use.is_structure {
            let found = self.structure_at(address);
            if found.is_none() {
                out.report_untracked("an address that nobody asked for");
            }
            return found.map(|it| (it.resource, it.bytes.clone(), Certainty::Somewhere, Origin::NONE));
        }
        let (bytes, certainty) =
            numbers.accessed_bytes(&address_use.bytes, address_use.per_invocation.as_ref(), address_use.certainty);
        let size = bytes.end - bytes.start;
        let first = address.saturating_add(bytes.start);
        let (resource, bytes) = self.resolve_address(first, size, out)?;
        let origin = self.buffer_base_address(first).map_or(Origin::NONE, Origin::address);
        Some((resource, bytes, certainty, origin))
    }

    /// Adds an access as far as it is known before submission: for a descriptor, with the current contents of its set.
    pub(crate) fn predict_use(&self, time_use: &SubmitTimeUse, found: &mut Vec<Access>) {
        if let SubmitTimeUse::Descriptor(descriptor) = time_use
            && descriptor.launched.is_none()
            && let Some(set) = self.sets.get(descriptor.set)
        {
            self.add_descriptor_accesses(set, &descriptor.access, found);
        }
    }

    /// Adds an access that is resolved at its submission.
    pub(crate) fn resolve_use(&self, time_use: &SubmitTimeUse, found: &mut Vec<Access>) {
        match time_use {
            SubmitTimeUse::Descriptor(descriptor) => self.resolve_descriptor(descriptor, found),
            SubmitTimeUse::Indexed(indexed) => self.add_indexed(indexed, found),
            SubmitTimeUse::Drawn(listed) => self.add_submitted_draws(listed, found),
        }
    }

    fn resolve_descriptor(&self, descriptor: &SubmitTimeDescriptor, found: &mut Vec<Access>) {
        let Some(set) = self.sets.get(descriptor.set) else { return };
        let Some(launched) = &descriptor.launched else {
            return self.add_descriptor_accesses(set, &descriptor.access, found);
        };
        let launch = self.submitted_launch(&launched.arguments);
        let Some((bytes, certainty)) = launched.bytes.of_launch(&launch, descriptor.access.certainty) else { return };
        let access = DescriptorAccess { bytes: Some(bytes), certainty, ..descriptor.access.clone() };
        self.add_descriptor_accesses(set, &access, found);
    }

    fn add_descriptor_accesses(
        &self,
        set: &TrackedDescriptorSet,
        descriptor_access: &DescriptorAccess,
        found: &mut Vec<Access>,
    ) {
        match descriptor_access.element {
            ResolvedIndex::One(element) => {
                if let Some(descriptor) = set.get(descriptor_access.binding, element) {
                    self.add_descriptor_access(
                        descriptor,
                        descriptor_access,
                        (element, descriptor_access.certainty),
                        found,
                    );
                }
            }
            ResolvedIndex::Any => {
                let all = (0_u32..).zip(set.descriptors.get(&descriptor_access.binding).into_iter().flatten());
                let mut all = all.filter_map(|it| Some((it.0, (*it.1)?)));
                let first = all.next();
                // Unused elements of an array are often filled with copies of the first descriptor.
                for (element, descriptor) in
                    first.into_iter().chain(all.filter(|it| Some(it.1) != first.map(|it| it.1)))
                {
                    self.add_descriptor_access(descriptor, descriptor_access, (element, Certainty::OneOfArray), found);
                }
            }
        }
    }

    fn add_descriptor_access(
        &self,
        descriptor: Descriptor,
        descriptor_access: &DescriptorAccess,
        (element, certainty): (u32, Certainty),
        found: &mut Vec<Access>,
    ) {
        let Some((resource, region)) = self.descriptor_region(descriptor, descriptor_access) else { return };
        let (order, origin) =
            (order_of(descriptor.ty, descriptor_access, &region), descriptor_access.origin(descriptor, element));
        let inset = self.texel_size(descriptor).unwrap_or_else(|| descriptor_access.inset());
        let usage = |access| {
            let access = StageAccess::for_shader(descriptor_access.stage, access).access_to(resource, region.clone());
            Access { certainty, order, origin, word_offset: inset, ..access }
        };
        let (read, write) = accesses_of(descriptor.ty);
        found.extend(descriptor_access.reads.then_some(read).map(usage));
        found.extend(write.filter(|_| descriptor_access.writes).map(usage));
    }

    /// The texel size in bytes of a texel buffer descriptor, used instead of an inset.
    fn texel_size(&self, descriptor: Descriptor) -> Option<u16> {
        let DescriptorContent::BufferView(view) = descriptor.content else { return None };
        Some(self.buffer_views.get(view).and_then(|it| it.texel).unwrap_or(Access::NO_WORD_OFFSET))
    }

    /// The range of a resource that a descriptor refers to.
    fn descriptor_region(
        &self,
        descriptor: Descriptor,
        descriptor_access: &DescriptorAccess,
    ) -> Option<(ResourceId, Region)> {
        match descriptor.content {
            DescriptorContent::Buffer { buffer, offset, range } => {
                let start = offset.saturating_add(descriptor_access.offset);
                let (resource, whole) = self.buffer_range(Buffer(buffer), start, range)?;
                Some((resource, Region::Buffer(part_of(&whole, descriptor_access.bytes.as_ref()))))
            }
            DescriptorContent::BufferView(view) => {
                let view = self.buffer_views.get(view)?;
                Some((view.resource, Region::Buffer(part_of(&view.bytes, descriptor_access.bytes.as_ref()))))
            }
            DescriptorContent::ImageView { view, .. } => {
                let view = self.image_views.get(view)?;
                let mut region = view.region.clone();
                if descriptor.ty == DescriptorType::INPUT_ATTACHMENT {
                    // Attachments with blocks as texels are not supported.
                    if view.is_of_blocks {
                        return None;
                    }
                    region.area = descriptor_access.area.or(region.area);
                }
                Some((view.resource, Region::Image(region)))
            }
            DescriptorContent::AccelerationStructure(handle) => {
                let structure = self.structures.get(handle)?;
                Some((structure.resource, Region::Buffer(structure.bytes.clone())))
            }
            DescriptorContent::AccelerationStructureNv(handle) => {
                let (resource, bytes) = self.structures_nv.get(handle)?.part()?;
                Some((resource, Region::Buffer(bytes)))
            }
            DescriptorContent::TensorView(handle) => {
                let (resource, bytes) = self.tensors.get(*self.tensor_views.get(handle)?)?.part()?;
                Some((resource, Region::Buffer(bytes)))
            }
            DescriptorContent::AccelerationStructureAddress(address) => {
                // The size is unknown, but at least the beginning is read.
                let (resource, bytes) = self.find_address(address, SCRATCH)?;
                Some((resource, Region::Buffer(bytes)))
            }
        }
    }
}

impl DescriptorAccess {
    /// The offset of the accessed bytes from the start of the descriptor's range.
    fn inset(&self) -> u16 {
        let start = self.bytes.as_ref().map_or(0, |it| it.start);
        let words = u16::try_from(start / 4).ok().filter(|_| start.is_multiple_of(4));
        words.unwrap_or(Access::NO_WORD_OFFSET)
    }

    fn origin(&self, descriptor: Descriptor, element: u32) -> Origin {
        let layout = match descriptor.content {
            DescriptorContent::ImageView { layout, .. } => Some(layout),
            _ => None,
        };
        let DescriptorAccess { set, binding, .. } = *self;
        Origin::descriptor(lavascope_sync_ir::Descriptor { set, binding, element, ty: descriptor.ty.0, layout })
    }
}

/// The array element that is accessed; none if it is unknown, or if dynamic indexing is not reported.
fn resolve_array_index(
    descriptor_use: &DescriptorUse,
    set: &TrackedDescriptorSet,
    numbers: &ShaderInputValues<'_>,
    out: &mut TrackerOutput<'_>,
) -> Option<ResolvedIndex> {
    let known = match &descriptor_use.element {
        DescriptorArrayIndex::One(element) => Some(*element),
        DescriptorArrayIndex::Read(place) => numbers.read(place).and_then(|it| u32::try_from(it).ok()),
        DescriptorArrayIndex::Unknown => None,
    };
    if let Some(known) = known {
        return Some(ResolvedIndex::One(known));
    }
    let all = set.descriptors.get(&descriptor_use.binding).map_or(&[][..], Vec::as_slice);
    if all.len() <= SMALL_ARRAY_MAX {
        let mut used = (0_u32..).zip(all).filter(|it| it.1.is_some());
        if let (Some((element, _)), None) = (used.next(), used.next()) {
            return Some(ResolvedIndex::One(element));
        }
    }
    let has_offsets = set.layout.bindings.get(&descriptor_use.binding).is_some_and(|it| it.dynamic.is_some());
    if out.reports_dynamic_indexing && all.len() <= DYNAMIC_INDEXING_MAX && !has_offsets {
        return Some(ResolvedIndex::Any);
    }
    out.report_untracked("which descriptor of an array a shader uses");
    None
}

fn dynamic_offset(bound: &BoundSet, first: Option<u32>, element: ResolvedIndex) -> u64 {
    let (Some(first), ResolvedIndex::One(element)) = (first, element) else { return 0 };
    bound.offsets.get(first.saturating_add(element) as usize).map_or(0, |it| u64::from(*it))
}

fn area_of(scene: &CurrentAttachments) -> Option<Area> {
    match scene {
        CurrentAttachments::Known(targets) => targets.area,
        CurrentAttachments::None | CurrentAttachments::Inherited { .. } => None,
    }
}

/// The rasterization order that an access is in.
fn order_of(ty: DescriptorType, descriptor_access: &DescriptorAccess, region: &Region) -> RasterOrder {
    let is_input = ty == DescriptorType::INPUT_ATTACHMENT;
    let is_color = matches!(region, Region::Image(image) if image.aspects & ImageAspectFlags::COLOR.0 != 0);
    match (is_input, is_color) {
        (false, _) if descriptor_access.is_atomic => RasterOrder::Atomic,
        (false, _) if descriptor_access.is_ordered => RasterOrder::Color,
        (true, true) if descriptor_access.ordered.color => RasterOrder::Color,
        (true, false) if descriptor_access.ordered.depth_stencil => RasterOrder::DepthStencil,
        _ => RasterOrder::None,
    }
}

/// The accessed bytes of a range.
fn part_of(whole: &Range<u64>, bytes: Option<&Range<u64>>) -> Range<u64> {
    let Some(bytes) = bytes else { return whole.clone() };
    let at = |it: u64| whole.start.saturating_add(it).min(whole.end);
    at(bytes.start)..at(bytes.end)
}

/// The read access of a descriptor type, and the write access if it can be written.
fn accesses_of(ty: DescriptorType) -> (Bits, Option<Bits>) {
    match ty {
        DescriptorType::UNIFORM_BUFFER | DescriptorType::UNIFORM_BUFFER_DYNAMIC => (Bits::UNIFORM_READ, None),
        DescriptorType::STORAGE_BUFFER
        | DescriptorType::STORAGE_BUFFER_DYNAMIC
        | DescriptorType::STORAGE_IMAGE
        | DescriptorType::TENSOR_ARM
        | DescriptorType::STORAGE_TEXEL_BUFFER => (Bits::SHADER_STORAGE_READ, Some(Bits::SHADER_STORAGE_WRITE)),
        DescriptorType::INPUT_ATTACHMENT => (Bits::INPUT_ATTACHMENT_READ, None),
        DescriptorType::ACCELERATION_STRUCTURE_KHR
        | DescriptorType::ACCELERATION_STRUCTURE_NV
        | DescriptorType::PARTITIONED_ACCELERATION_STRUCTURE_NV => (Bits::ACCELERATION_STRUCTURE_READ_KHR, None),
        // Sampled images, uniform texel buffers and similar types.
        _ => (Bits::SHADER_SAMPLED_READ, None),
    }
}
