//! Descriptors in buffers of the application (`VK_EXT_descriptor_buffer`), which writes them as bytes at any time.
//!
//! The meaning of a descriptor's bytes is known from `vkGetDescriptorEXT`. When work is submitted, the bytes are looked
//! up in memory that the application has mapped. Unknown bytes count as large enough. If the memory is not mapped, that
//! is reported once; indices and device addresses are checked nevertheless. Pipelines with such layouts expect nothing
//! of what is bound.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::interface::tables;

use super::arena::ArenaRegion;
use super::buffer_addresses::BufferAddressLookup;
use super::descriptor_sets::{self, BoundDescriptor};
use crate::DeviceTable;
use crate::gpu::draw::command_buffer::{BoundSets, CommandBufferState, bind_point_index};
use crate::gpu::hook::{bind_points_of_stages, deref_param, hooks, read_output};
use crate::gpu::pipeline::layouts::SetLayoutState;
use crate::gpu::pipeline::variants::PipelineVariant;
use crate::gpu::{ChecksState, DeviceChecks, checks_of, out_ptr, slice};
use crate::loader::pnext_chain::find_in_chain;
use crate::process::catch_panic::{catch_panic, catch_panic_and_retry, is_disabled, run_if_enabled};

/// The limit of known descriptors: beyond it all are forgotten, and counted again.
const KNOWN_MAX: usize = 1 << 18;
/// Reported once.
const NOT_MAPPED: &str =
    "a buffer with descriptors is not mapped when it is used: what its descriptors have is not checked";

/// The known descriptors in buffers.
#[derive(Default)]
pub(crate) struct DescriptorBuffers {
    /// By type and bytes.
    descriptor_by_bytes: HashMap<(i32, Box<[u8]>), BoundDescriptor>,
    /// Bytes of a descriptor, by type.
    sizes: HashMap<i32, u64>,
    mapped: HashMap<u64, MappedDescriptorMemory>,
    /// The memory of buffers, and where in it they begin.
    memory: HashMap<u64, (u64, u64)>,
}

/// Memory that is mapped: where, and which of its bytes, from the first one up to the end.
struct MappedDescriptorMemory {
    at: u64,
    first: u64,
    end: u64,
}

impl MappedDescriptorMemory {
    fn new(at: u64, offset: u64, size: u64) -> MappedDescriptorMemory {
        // The size may be all of the rest, which is the largest number.
        MappedDescriptorMemory { at, first: offset, end: offset.saturating_add(size) }
    }

    /// The address of this many bytes, from an offset on; none if not all of them are mapped.
    fn find(&self, from: u64, size: u64) -> Option<u64> {
        let is_inside = from.checked_add(size).is_some_and(|end| end <= self.end);
        let offset = from.checked_sub(self.first).filter(|_| is_inside)?;
        self.at.checked_add(offset)
    }
}

impl DescriptorBuffers {
    /// A buffer is destroyed.
    pub(crate) fn forget(&mut self, buffer: Buffer) {
        self.memory.remove(&buffer.0);
    }
}

/// A buffer with descriptors, as it was bound.
#[derive(Clone)]
pub(crate) struct BoundDescriptorBuffer {
    address: u64,
    usage: BufferUsageFlags,
    /// Chained structures: the buffer for push descriptors, and flags of the newer kind.
    pushed: Option<Buffer>,
    usage2: Option<BufferUsageFlags2>,
}

/// The chained structures of a bind.
#[derive(Default)]
struct BindingInfoChain {
    usage: Option<BufferUsageFlags2CreateInfo>,
    pushed: Option<DescriptorBufferBindingPushDescriptorBufferHandleEXT>,
}

impl BindingInfoChain {
    /// Makes the first structure point to the second. It must not move after this, as long as the chain is used.
    fn link(&mut self) -> Ptr<Opaque> {
        let pushed = self.pushed.as_ref().map_or(Ptr::NULL, |it| Ptr::to(it).cast());
        self.usage.iter_mut().for_each(|it| it.p_next = pushed);
        self.usage.as_ref().map_or(pushed, |it| Ptr::to(it).cast())
    }
}

impl BoundDescriptorBuffer {
    /// # Safety
    ///
    /// The info must be valid, with its chain.
    unsafe fn read(info: &DescriptorBufferBindingInfoEXT) -> BoundDescriptorBuffer {
        let pushed = StructureType::DESCRIPTOR_BUFFER_BINDING_PUSH_DESCRIPTOR_BUFFER_HANDLE_EXT;
        let usage = StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO;
        // SAFETY: the contract of this function, and these are the structures of these types.
        unsafe {
            let pushed = find_in_chain::<DescriptorBufferBindingPushDescriptorBufferHandleEXT>(info.p_next, pushed);
            let usage = find_in_chain::<BufferUsageFlags2CreateInfo>(info.p_next, usage);
            BoundDescriptorBuffer {
                address: info.address,
                usage: info.usage,
                pushed: pushed.map(|it| (*it.as_ptr()).buffer),
                usage2: usage.map(|it| (*it.as_ptr()).usage),
            }
        }
    }

    fn chain(&self) -> BindingInfoChain {
        let pushed = self.pushed.map(|buffer| {
            let mut buffer_handle = DescriptorBufferBindingPushDescriptorBufferHandleEXT::zeroed();
            buffer_handle.s_type = StructureType::DESCRIPTOR_BUFFER_BINDING_PUSH_DESCRIPTOR_BUFFER_HANDLE_EXT;
            buffer_handle.buffer = buffer;
            buffer_handle
        });
        let usage = self.usage2.map(|usage| {
            let mut create_info = BufferUsageFlags2CreateInfo::zeroed();
            create_info.s_type = StructureType::BUFFER_USAGE_FLAGS_2_CREATE_INFO;
            create_info.usage = usage;
            create_info
        });
        BindingInfoChain { usage, pushed }
    }

    fn info(&self, chain: Ptr<Opaque>) -> DescriptorBufferBindingInfoEXT {
        let mut info = DescriptorBufferBindingInfoEXT::zeroed();
        info.s_type = StructureType::DESCRIPTOR_BUFFER_BINDING_INFO_EXT;
        info.p_next = chain;
        (info.address, info.usage) = (self.address, self.usage);
        info
    }
}

/// The bound descriptor buffers, and the sets in them by bind point.
pub(crate) struct DescriptorBufferBindings {
    pub(crate) buffers: Vec<BoundDescriptorBuffer>,
    pub(crate) sets: Vec<(PipelineBindPoint, BoundSets)>,
}

/// A table of descriptors in buffers, for draws of a command buffer.
pub(crate) struct DescriptorBufferTable {
    variant: Arc<PipelineVariant>,
    /// Where each set begins.
    sets: Vec<Option<u64>>,
    table: ArenaRegion,
    words: Vec<u32>,
    /// The sets and bindings that shaders access.
    bindings: BTreeSet<(u32, u32)>,
}

hooks! {
    get_descriptor_ext = fn(device: Device, p_info: Ptr<DescriptorGetInfoEXT>, size: u64, p_descriptor: Ptr<u8>) -> (), |gpu, forward| {
        let Some(next) = gpu.next.get_descriptor_ext.filter(|_| !is_disabled()) else { return forward() };
        // The application's memory may be slow to read: we have our own.
        let mut bytes = vec![0_u8; size as usize];
        let p_bytes = Ptr::new(bytes.as_mut_ptr().expose_provenance() as u64);
        // SAFETY: the driver's function, with the application's parameters, but for a place of ours with as many bytes.
        unsafe { next(device, p_info, size, p_bytes) };
        // SAFETY: VUID-vkGetDescriptorEXT-pDescriptor-parameter: a place of the application for `size` bytes, which is as
        // many as ours has.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), p_descriptor.as_mut_ptr(), bytes.len()) };
        // SAFETY: VUID-vkGetDescriptorEXT-pDescriptorInfo-parameter: a valid structure until the call returns.
        let note = || unsafe { gpu.state().record_descriptor(deref_param(p_info), bytes) };
        run_if_enabled("vkGetDescriptorEXT", note, || ());
    }
    map_memory = fn(device: Device, memory: DeviceMemory, offset: u64, size: u64, flags: MemoryMapFlags, p_data: Ptr<Opaque>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkMapMemory-ppData-parameter: a place for an address, which the call has written.
            let at = unsafe { read_output(p_data.cast::<u64>()) };
            run_if_enabled("vkMapMemory", || gpu.record_mapping(memory, MappedDescriptorMemory::new(at, offset, size)), || ());
        }
        result
    }
    map_memory2 = fn(device: Device, p_info: Ptr<MemoryMapInfo>, p_data: Ptr<Opaque>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkMapMemory2-pMemoryMapInfo-parameter: a valid structure until the call returns;
            // VUID-vkMapMemory2-ppData-parameter: a place for an address, which the call has written.
            let (info, at) = unsafe { (deref_param(p_info), read_output(p_data.cast::<u64>())) };
            run_if_enabled("vkMapMemory2", || gpu.record_mapping(info.memory, MappedDescriptorMemory::new(at, info.offset, info.size)), || ());
        }
        result
    }
    unmap_memory = fn(device: Device, memory: DeviceMemory) -> (), |gpu, forward| {
        catch_panic("vkUnmapMemory", || gpu.forget_mapping(memory), || ());
        forward();
    }
    unmap_memory2 = fn(device: Device, p_info: Ptr<MemoryUnmapInfo>) -> Result, |gpu, forward| {
        // SAFETY: VUID-vkUnmapMemory2-pMemoryUnmapInfo-parameter: a valid structure until the call returns.
        let memory = unsafe { deref_param(p_info) }.memory;
        catch_panic("vkUnmapMemory2", || gpu.forget_mapping(memory), || ());
        forward()
    }
    bind_buffer_memory = fn(device: Device, buffer: Buffer, memory: DeviceMemory, offset: u64) -> Result, |gpu, forward| {
        run_if_enabled("vkBindBufferMemory", || gpu.record_buffer_memory(buffer, memory, offset), || ());
        forward()
    }
    bind_buffer_memory2 = fn(device: Device, count: u32, p_infos: Ptr<BindBufferMemoryInfo>) -> Result, |gpu, forward| {
        // SAFETY: VUID-vkBindBufferMemory2-pBindInfos-parameter: an array of so many until the call returns.
        let infos = unsafe { slice(p_infos, count) };
        let note = || infos.iter().for_each(|it| gpu.record_buffer_memory(it.buffer, it.memory, it.memory_offset));
        run_if_enabled("vkBindBufferMemory2", note, || ());
        forward()
    }
    cmd_bind_descriptor_buffers_ext = fn(commands: CommandBuffer, count: u32, p_infos: Ptr<DescriptorBufferBindingInfoEXT>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-parameter: an array of so many until the call returns.
        let infos = unsafe { slice(p_infos, count) };
        // SAFETY: VUID-vkCmdBindDescriptorBuffersEXT-pBindingInfos-parameter: each is valid, with its chain.
        let all = || infos.iter().map(|it| unsafe { BoundDescriptorBuffer::read(it) }).collect();
        let note = || gpu.with_commands(commands, |it| it.descriptor_buffers = all());
        catch_panic_and_retry("vkCmdBindDescriptorBuffersEXT", note, || ());
    }
    cmd_set_descriptor_buffer_offsets_ext = fn(commands: CommandBuffer, bind_point: PipelineBindPoint, layout: PipelineLayout, first: u32, count: u32, p_indices: Ptr<u32>, p_offsets: Ptr<u64>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdSetDescriptorBufferOffsetsEXT-pBufferIndices-parameter and
        // VUID-vkCmdSetDescriptorBufferOffsetsEXT-pOffsets-parameter: arrays of so many until the call returns.
        let (indices, offsets) = unsafe { (slice(p_indices, count), slice(p_offsets, count)) };
        let note = || gpu.record_buffer_offsets(commands, bind_point_index(bind_point).into_iter(), (layout, first), indices, offsets);
        catch_panic_and_retry("vkCmdSetDescriptorBufferOffsetsEXT", note, || ());
    }
    cmd_set_descriptor_buffer_offsets2_ext = fn(commands: CommandBuffer, p_info: Ptr<SetDescriptorBufferOffsetsInfoEXT>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkCmdSetDescriptorBufferOffsets2EXT-pSetDescriptorBufferOffsetsInfo-parameter: a valid structure
        // until the call returns; VUID-VkSetDescriptorBufferOffsetsInfoEXT-pBufferIndices-parameter and
        // VUID-VkSetDescriptorBufferOffsetsInfoEXT-pOffsets-parameter: arrays of as many as it says.
        let (offsets_info, indices, offsets) = unsafe {
            let info = deref_param(p_info);
            (info, slice(info.p_buffer_indices, info.set_count), slice(info.p_offsets, info.set_count))
        };
        let note = || gpu.record_buffer_offsets(commands, bind_points_of_stages(offsets_info.stage_flags), (offsets_info.layout, offsets_info.first_set), indices, offsets);
        catch_panic_and_retry("vkCmdSetDescriptorBufferOffsets2EXT", note, || ());
    }
}

impl DeviceChecks {
    /// Where the bindings of a set in a buffer begin.
    pub(crate) fn query_binding_offsets(&self, handle: DescriptorSetLayout, layout: &mut SetLayoutState) {
        let Some(ask) = self.next.get_descriptor_set_layout_binding_offset_ext else { return };
        if !layout.is_in_descriptor_buffer() {
            return;
        }
        let offset = |(number, slot): (usize, &crate::gpu::pipeline::layouts::LayoutBinding)| {
            let mut offset = 0;
            if slot.count > 0 {
                // SAFETY: the hook of the application's call made the layout, for descriptors in buffers and with this
                // binding, and nobody else knows it yet; the place is ours.
                unsafe { ask(self.device, handle, number as u32, out_ptr(&mut offset)) };
            }
            offset
        };
        layout.offsets = layout.bindings.iter().enumerate().map(offset).collect();
    }

    fn record_mapping(&self, memory: DeviceMemory, descriptor_memory: MappedDescriptorMemory) {
        self.state().descriptor_buffers.mapped.insert(memory.0, descriptor_memory);
    }

    /// Memory is not mapped any more, or no more.
    pub(crate) fn forget_mapping(&self, memory: DeviceMemory) {
        self.state().descriptor_buffers.mapped.remove(&memory.0);
    }

    fn record_buffer_memory(&self, buffer: Buffer, memory: DeviceMemory, offset: u64) {
        self.state().descriptor_buffers.memory.insert(buffer.0, (memory.0, offset));
    }

    fn record_buffer_offsets(
        &self,
        handle: CommandBuffer,
        points: impl Iterator<Item = usize>,
        (layout, first): (PipelineLayout, u32),
        indices: &[u32],
        offsets: &[u64],
    ) {
        let Some(layout) = self.state().pipeline_layouts.get(&layout.0).cloned() else { return };
        self.with_commands(handle, |commands| {
            let address = |it: &u32| commands.descriptor_buffers.get(*it as usize).map_or(0, |it| it.address);
            let sets = indices.iter().zip(offsets).map(|(at, offset)| address(at).wrapping_add(*offset));
            let sets: Vec<u64> = sets.collect();
            for bind_point in points {
                let mut bind = BoundSets::new(&layout, first, sets.clone(), Vec::new());
                bind.buffer_offsets = indices.iter().copied().zip(offsets.iter().copied()).collect();
                commands.bind_sets(bind_point, bind);
            }
        });
    }

    /// A set of ours disturbed the bound buffers: they are bound and their offsets are set again.
    pub(crate) fn rebind_descriptor_buffers(&self, handle: CommandBuffer, buffer_bindings: &DescriptorBufferBindings) {
        let (Some(bind), Some(set)) =
            (self.next.cmd_bind_descriptor_buffers_ext, self.next.cmd_set_descriptor_buffer_offsets_ext)
        else {
            return;
        };
        let mut chains: Vec<_> = buffer_bindings.buffers.iter().map(BoundDescriptorBuffer::chain).collect();
        let infos: Vec<_> =
            buffer_bindings.buffers.iter().zip(&mut chains).map(|(it, chain)| it.info(chain.link())).collect();
        // SAFETY: what the application bound itself into this command buffer, which is in the recording state: this runs
        // inside of a command of the application for it. What the infos lead to is in `chains`.
        unsafe { bind(handle, infos.len() as u32, Ptr::to_slice(&infos)) };
        for (bind_point, bound_sets) in &buffer_bindings.sets {
            let layout = bound_sets.layout.own_handle.unwrap_or(bound_sets.layout.handle);
            let (indices, offsets): (Vec<u32>, Vec<u64>) = bound_sets.buffer_offsets.iter().copied().unzip();
            let (count, first) = (indices.len() as u32, bound_sets.set_range().start as u32);
            // SAFETY: what the application chose itself, in the command buffer that is described above. The layout is
            // its own, or one of ours that `it.layout` keeps, with the same sets.
            unsafe { set(handle, *bind_point, layout, first, count, Ptr::to_slice(&indices), Ptr::to_slice(&offsets)) };
        }
    }

    /// The table for draws with such sets; it is written when they are submitted.
    pub(crate) fn descriptor_buffer_table(
        &self,
        commands: &mut CommandBufferState,
        variant: &Arc<PipelineVariant>,
        sets: Vec<Option<u64>>,
        words: Vec<u32>,
    ) -> Option<ArenaRegion> {
        let is_same = |it: &&DescriptorBufferTable| Arc::ptr_eq(&it.variant, variant) && it.sets == sets;
        if let Some(known) = commands.descriptor_buffer_tables.iter().find(is_same) {
            return Some(known.table);
        }
        let table = commands.allocate_descriptor_table(self, &words)?;
        let sites = variant.stages.iter().flat_map(|it| &it.instrumented.sites);
        let bindings = sites.filter_map(|it| it.binding).collect();
        commands.descriptor_buffer_tables.push(DescriptorBufferTable {
            variant: Arc::clone(variant),
            sets,
            table,
            words,
            bindings,
        });
        Some(table)
    }

    /// Command buffers are about to be submitted: the current contents of the buffers count.
    pub(crate) fn refresh_descriptor_buffer_tables(&self, commands: &[u64]) {
        let has_any = |value: &u64| {
            self.slot(*value).and_then(|it| it.with(|it| !it.descriptor_buffer_tables.is_empty())) == Some(true)
        };
        if !commands.iter().any(has_any) {
            return;
        }
        let state = self.state();
        let mut is_whole = true;
        for slot in commands.iter().filter_map(|it| self.slot(*it)) {
            slot.with(|it| it.descriptor_buffer_tables.iter_mut().for_each(|it| is_whole &= it.refresh(&state)));
        }
        drop(state);
        if !is_whole {
            self.warn_unchecked(NOT_MAPPED);
        }
    }
}

impl DescriptorBufferTable {
    /// Returns whether all of the memory could be read.
    fn refresh(&mut self, state: &ChecksState) -> bool {
        let layout = &self.variant.layout;
        let mut is_whole = true;
        // Push descriptors may be in the same layout.
        let bound = |it: usize| Some((self.sets.get(it).copied().flatten()?, Vec::new()));
        let mut words = descriptor_sets::descriptor_table(layout, &state.sets, bound);
        for (number, binding) in &self.bindings {
            let set =
                layout.sets.get(*number as usize).and_then(Option::as_ref).filter(|it| it.is_in_descriptor_buffer());
            let address = self.sets.get(*number as usize).copied().flatten();
            let (Some(set), Some(address)) = (set, address) else { continue };
            let slot = layout.binding(*number, *binding).filter(|it| is_sized(it.descriptor_type));
            let Some(slot) = slot else { continue };
            let from = address.wrapping_add(set.offsets.get(*binding as usize).copied().unwrap_or(0));
            for element in 0..slot.elements() {
                let Some(bound) = state.read_descriptor(slot.descriptor_type, from, element) else {
                    is_whole = false;
                    break;
                };
                if tables::set_element_state(&mut words, (*number, *binding), element, bound.word(0)).is_none() {
                    break;
                }
            }
        }
        self.variant.fixed_tables.iter().for_each(|it| it.widen(&words));
        if words.len() != self.words.len() {
            // A pushed set is replaced.
            return is_whole;
        }
        for (at, word) in words.iter().enumerate().filter(|it| *it.1 != self.words[it.0]) {
            self.table.write_word(at as u32, *word);
        }
        self.words = words;
        is_whole
    }
}

/// Whether a descriptor has bytes or texels.
fn is_sized(kind: DescriptorType) -> bool {
    matches!(
        kind,
        DescriptorType::UNIFORM_BUFFER
            | DescriptorType::STORAGE_BUFFER
            | DescriptorType::UNIFORM_TEXEL_BUFFER
            | DescriptorType::STORAGE_TEXEL_BUFFER
    )
}

impl ChecksState {
    /// The application got the bytes of a descriptor.
    ///
    /// # Safety
    ///
    /// The info must be valid.
    unsafe fn record_descriptor(&mut self, info: &DescriptorGetInfoEXT, bytes: Vec<u8>) {
        self.descriptor_buffers.sizes.insert(info.type_.0, bytes.len() as u64);
        if !is_sized(info.type_) {
            return;
        }
        // SAFETY: the contract of this function: of the types for which `is_sized` all members of the union lead to the same
        // structure, or are null.
        let about = unsafe { info.data.p_storage_buffer().as_ptr().as_ref() };
        let bound = match about.filter(|it| it.address != 0) {
            // A null descriptor.
            None => BoundDescriptor::Unknown,
            Some(address_info)
                if matches!(info.type_, DescriptorType::UNIFORM_BUFFER | DescriptorType::STORAGE_BUFFER) =>
            {
                BoundDescriptor::Extent(address_info.range)
            }
            Some(address_info) => {
                let format = FORMATS.iter().find(|format| format.format == address_info.format);
                let texels = format.and_then(|format| address_info.range.checked_div(u64::from(format.block_size)));
                texels.map_or(BoundDescriptor::Unknown, BoundDescriptor::Extent)
            }
        };
        let known = &mut self.descriptor_buffers.descriptor_by_bytes;
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert((info.type_.0, bytes.into_boxed_slice()), bound);
    }

    /// The descriptor of an element at an address; none if its memory cannot be read.
    fn read_descriptor(&self, kind: DescriptorType, from: u64, element: u32) -> Option<BoundDescriptor> {
        let all = &self.descriptor_buffers;
        // No descriptor of this type was ever queried.
        let Some(size) = all.sizes.get(&kind.0).copied() else { return Some(BoundDescriptor::Unknown) };
        let BufferAddressLookup::InBuffer { buffer, offset, bytes } = self.addresses.find(from) else { return None };
        let offset = offset + u64::from(element) * size;
        if offset + size > bytes {
            return Some(BoundDescriptor::Unknown);
        }
        let (memory, start) = all.memory.get(&buffer)?;
        let at = all.mapped.get(memory)?.find(start + offset, size)?;
        // SAFETY: `mapped` has what the application has mapped now: the hooks of `vkUnmapMemory` and `vkFreeMemory` take it
        // out before they call the driver, under the lock that whoever has this state holds. `find` gives bytes that are
        // mapped; where the application mapped all of the rest, the buffer is inside of its memory
        // (VUID-vkBindBufferMemory-size-01037), and the descriptor inside of the buffer.
        let bytes = unsafe { read_bytes(at, size as usize) };
        Some(all.descriptor_by_bytes.get(&(kind.0, bytes)).copied().unwrap_or(BoundDescriptor::Unknown))
    }
}

/// The application may write meanwhile; bytes that make no sense are not found.
///
/// # Safety
///
/// There must be this many bytes, which may be read as long as this runs.
unsafe fn read_bytes(at: u64, size: usize) -> Box<[u8]> {
    if at.is_multiple_of(4) && size.is_multiple_of(4) {
        // Such memory is read slowly, in large pieces as in small ones.
        let first = std::ptr::with_exposed_provenance::<u32>(at as usize);
        // SAFETY: the contract of this function, and the address is a multiple of four.
        return (0..size / 4).flat_map(|it| unsafe { first.add(it).read_volatile() }.to_ne_bytes()).collect();
    }
    let first = std::ptr::with_exposed_provenance::<u8>(at as usize);
    // SAFETY: the contract of this function: so many bytes are mapped there.
    (0..size).map(|it| unsafe { first.add(it).read_volatile() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record_descriptor(
        state: &mut ChecksState,
        kind: DescriptorType,
        about: &DescriptorAddressInfoEXT,
        bytes: &[u8],
    ) {
        let mut info = DescriptorGetInfoEXT::zeroed();
        info.type_ = kind;
        info.data.words = [Ptr::to(about).0];
        // SAFETY: an info of ours that leads to `about`, which is alive.
        unsafe { state.record_descriptor(&info, bytes.to_vec()) };
    }

    #[test]
    fn what_was_bound_with_a_chain_is_bound_again_with_it() {
        let all = [(None, None), (Some(3), None), (None, Some(5)), (Some(4), Some(6))];
        let bound = |pair: &(Option<u64>, Option<u64>)| BoundDescriptorBuffer {
            address: 64,
            usage: BufferUsageFlags::default(),
            usage2: pair.0.map(BufferUsageFlags2),
            pushed: pair.1.map(Buffer),
        };
        let buffers: Vec<BoundDescriptorBuffer> = all.iter().map(bound).collect();
        let mut chains: Vec<BindingInfoChain> = buffers.iter().map(BoundDescriptorBuffer::chain).collect();
        let infos: Vec<_> = buffers.iter().zip(&mut chains).map(|(it, chain)| it.info(chain.link())).collect();
        for (info, expected) in infos.iter().zip(all) {
            // SAFETY: an info of ours, whose chain is in `chains`.
            let read = unsafe { BoundDescriptorBuffer::read(info) };
            assert_eq!(
                (read.address, read.usage2.map(|it| it.0), read.pushed.map(|it| it.0)),
                (64, expected.0, expected.1)
            );
        }
    }

    #[test]
    fn descriptors_are_known_by_their_bytes() {
        let (storage, texels) = (DescriptorType::STORAGE_BUFFER, DescriptorType::UNIFORM_TEXEL_BUFFER);
        let mut state = ChecksState::default();
        let mut memory = vec![0_u32; 64];
        state.buffer_sizes.insert(7, 128);
        state.addresses.add(7, 0x1000, 128);
        let read = |state: &ChecksState, kind, from, element| state.read_descriptor(kind, from, element);
        let mut about = DescriptorAddressInfoEXT::zeroed();
        (about.address, about.range, about.format) = (0x8000, 512, Format::R32_UINT);
        record_descriptor(&mut state, storage, &about, &[1; 16]);
        record_descriptor(&mut state, texels, &about, &[1; 16]);
        about.range = 64;
        record_descriptor(&mut state, storage, &about, &[2; 16]);
        assert_eq!(read(&state, storage, 0x1000, 0), None, "its memory is not known");
        state.descriptor_buffers.memory.insert(7, (3, 32));
        assert_eq!(read(&state, storage, 0x1000, 0), None, "it is not mapped");
        let at = memory.as_mut_ptr().expose_provenance() as u64;
        state.descriptor_buffers.mapped.insert(3, MappedDescriptorMemory::new(at, 0, 47));
        assert_eq!(read(&state, storage, 0x1000, 0), None, "its last byte is not mapped");
        state.descriptor_buffers.mapped.insert(3, MappedDescriptorMemory::new(at, 0, 256));
        // The buffer begins at byte 32 of its memory.
        memory[8..12].fill(0x0101_0101);
        memory[12..16].fill(0x0202_0202);
        assert_eq!(read(&state, storage, 0x1000, 0), Some(BoundDescriptor::Extent(512)));
        assert_eq!(read(&state, storage, 0x1000, 1), Some(BoundDescriptor::Extent(64)));
        assert_eq!(read(&state, storage, 0x1000, 2), Some(BoundDescriptor::Unknown), "nobody gave such bytes");
        assert_eq!(read(&state, texels, 0x1000, 0), Some(BoundDescriptor::Extent(128)));
        assert_eq!(read(&state, storage, 0x1000, 8), Some(BoundDescriptor::Unknown), "behind the end");
        assert_eq!(read(&state, storage, 0x2000_0000, 0), None, "there is no buffer");
        state.descriptor_buffers.forget(Buffer(7));
        assert_eq!(read(&state, storage, 0x1000, 0), None);
    }
}
