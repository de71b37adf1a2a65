//! The application's objects: their ids, their parents, and the state that decides which pointers packing may read.
//!
//! A look-up goes from the handle to a slot, and from there to the last order edge, and to ids that are too large for
//! the map. Handles of different devices may have the same value, so each device has its own table; those of
//! instances, physical devices, surfaces and the like belong to the process.
//!
//! An object is forgotten before the driver sees the call that ends it: the driver may give the same handle to another
//! thread at once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError, RwLock};

use lavascope_abi::*;
use lavascope_collections::TaggedMap;
use lavascope_record::pack_context::{LibraryUse, PackContext, SubpassUse};
use lavascope_record::{Call, View, Views};
use lavascope_stream::{ObjectParent, ObjectSlot};

use crate::intercept::deferred_operations::DeferredPipelines;
use crate::memory::HostVisibleMemories;
use crate::process::process_state::PROCESS_STATE;

/// The objects of a device, or those of the process, by the handles that the driver gave.
#[derive(Default)]
pub(crate) struct HandleTable {
    slots: TaggedMap,
    children: Mutex<HashMap<ObjectSlot, HashSet<(HandleType, u64)>>>,
    pack_context: RwLock<StoredPackContext>,
    pub(crate) deferred: DeferredPipelines,
    /// None if writes to memory are not recorded.
    pub(crate) memories: Option<HostVisibleMemories>,
}

/// The pack context of objects, by handle.
#[derive(Default)]
struct StoredPackContext {
    subpasses: HashMap<u64, Vec<SubpassUse>>,
    templates: HashMap<u64, Vec<DescriptorUpdateTemplateEntry>>,
    libraries: HashMap<u64, LibraryUse>,
}

/// The handles of objects that belong to no device.
pub(crate) static PROCESS_HANDLES: LazyLock<HandleTable> = LazyLock::new(HandleTable::default);

/// The value that the map has for a handle. The lowest bits are the slot; above them is the serial number of the object
/// plus one, so that most look-ups of ids need not read the slot. It is zero if the serial number is too large.
const SLOT_BITS: u32 = 32;
const SERIAL_MAX: u64 = (1 << 24) - 1;

/// The next serial number of each type. Relaxed: numbers only have to differ.
static SERIALS: [AtomicU64; 256] = [const { AtomicU64::new(0) }; 256];

/// Whether the objects of a type belong to no device.
pub(crate) const fn belongs_to_process(ty: HandleType) -> bool {
    matches!(
        ty,
        HandleType::Instance
            | HandleType::PhysicalDevice
            | HandleType::Device
            | HandleType::SurfaceKHR
            | HandleType::DisplayKHR
            | HandleType::DisplayModeKHR
            | HandleType::DebugReportCallbackEXT
            | HandleType::DebugUtilsMessengerEXT
    )
}

impl HandleTable {
    /// The table of a device, with its memories.
    pub(crate) fn of_device(memories: Option<HostVisibleMemories>) -> HandleTable {
        let mut names = HandleTable::default();
        names.memories = memories;
        names
    }

    /// The names that hold objects of a type, of those of a device and of the process.
    #[inline(always)]
    pub(crate) fn table_for(&self, ty: HandleType) -> &HandleTable {
        if belongs_to_process(ty) { &PROCESS_HANDLES } else { self }
    }

    #[inline(always)]
    pub(crate) fn slot(&self, ty: HandleType, handle: u64) -> Option<ObjectSlot> {
        self.slots.get(handle, ty as u8).map(|it| ObjectSlot::from_number(it as u32))
    }

    /// The same with the id of the object.
    #[inline(always)]
    pub(crate) fn object(&self, ty: HandleType, handle: u64) -> Option<(ObjectId, ObjectSlot)> {
        let value = self.slots.get(handle, ty as u8)?;
        let slot = ObjectSlot::from_number(value as u32);
        let id = match value >> SLOT_BITS & SERIAL_MAX {
            0 => ObjectId::from_raw_typed(PROCESS_STATE.objects.raw_id(slot), ty)?,
            serial => ObjectId::new(ty, serial - 1)?,
        };
        Some((id, slot))
    }

    /// The handle of an object that is alive. Searches all of them.
    pub(crate) fn handle_of(&self, id: ObjectId) -> Option<u64> {
        let is_it = |value: u64| PROCESS_STATE.objects.id(ObjectSlot::from_number(value as u32)) == Some(id);
        self.slots.entries_unsorted().into_iter().find(|(_, value)| is_it(*value)).map(|it| it.0)
    }

    /// Adds a new object. An object that had the handle before no longer exists.
    pub(crate) fn add(&self, ty: HandleType, handle: u64, parent: ObjectParent, note: u32) -> Option<ObjectSlot> {
        if handle == 0 || handle == u64::MAX {
            return None;
        }
        self.remove(ty, handle);
        let serial = SERIALS[ty as usize].fetch_add(1, Ordering::Relaxed);
        let id = ObjectId::new(ty, serial)?;
        let slot = PROCESS_STATE.objects.add(id, parent, note)?;
        if let ObjectParent::Owner(parent) | ObjectParent::SharedSyncDomain(parent) = parent {
            self.children().entry(parent).or_default().insert((ty, handle));
        }
        let short = if serial < SERIAL_MAX { serial + 1 } else { 0 };
        self.slots.insert(handle, (ty as u64) << 56 | short << SLOT_BITS | u64::from(slot.number()));
        Some(slot)
    }

    /// Removes an object that is destroyed, and the objects that were allocated from it.
    pub(crate) fn remove(&self, ty: HandleType, handle: u64) {
        let Some(slot) = self.slot(ty, handle) else { return };
        self.remove_children(slot);
        self.slots.remove(handle, ty as u8);
        if let Some(parent) = PROCESS_STATE.objects.parent(slot)
            && let Some(siblings) = self.children().get_mut(&parent)
        {
            siblings.remove(&(ty, handle));
        }
        PROCESS_STATE.objects.remove(slot);
        let facts = || self.pack_context.write().unwrap_or_else(PoisonError::into_inner);
        match ty {
            HandleType::CommandBuffer => PROCESS_STATE.next_generation(),
            HandleType::RenderPass => drop(facts().subpasses.remove(&handle)),
            HandleType::DescriptorUpdateTemplate => drop(facts().templates.remove(&handle)),
            HandleType::Pipeline => _ = facts().libraries.remove(&handle),
            HandleType::DeferredOperationKHR => self.deferred.remove(handle),
            // Other types have no pack context.
            _ => {}
        }
    }

    /// Removes the objects that were allocated from a pool.
    pub(crate) fn remove_children(&self, parent: ObjectSlot) {
        let children = self.children().remove(&parent);
        for (ty, handle) in children.into_iter().flatten() {
            self.remove(ty, handle);
        }
    }

    fn children(&self) -> MutexGuard<'_, HashMap<ObjectSlot, HashSet<(HandleType, u64)>>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores what a successful call defines about the objects that it created.
    pub(crate) fn store_pack_context(&self, call: Call<'_>, made: &[u64]) {
        let mut facts = self.pack_context.write().unwrap_or_else(PoisonError::into_inner);
        match call {
            Call::CreateRenderPass(params) => {
                let subpasses = params.p_create_info().map(|it| it.p_subpasses().iter().map(subpass_use).collect());
                facts.subpasses.extend(made.iter().copied().zip(subpasses));
            }
            Call::CreateRenderPass2(params) => {
                let subpasses = params.p_create_info().map(|it| it.p_subpasses().iter().map(subpass_use_2).collect());
                facts.subpasses.extend(made.iter().copied().zip(subpasses));
            }
            Call::CreateDescriptorUpdateTemplate(params) => {
                let entries = params.p_create_info().map(|it| copied(it.p_descriptor_update_entries()));
                facts.templates.extend(made.iter().copied().zip(entries));
            }
            Call::CreateGraphicsPipelines(params) => {
                for (pipeline, info) in made.iter().zip(params.p_create_infos().iter()) {
                    facts.libraries.extend(library_use(info).map(|it| (*pipeline, it)));
                }
            }
            // Other calls do not decide which pointers are read.
            _ => {}
        }
    }
}

impl Drop for HandleTable {
    /// With a device, all of its objects are destroyed that still exist.
    fn drop(&mut self) {
        PROCESS_STATE.next_generation();
        for (_, value) in self.slots.entries_unsorted() {
            PROCESS_STATE.objects.remove(ObjectSlot::from_number(value as u32));
        }
    }
}

/// A bit in the user data of a command buffer: it is a secondary one.
pub(crate) const NOTE_SECONDARY: u32 = 1;

impl PackContext for HandleTable {
    fn is_secondary(&self, command_buffer: u64) -> Option<bool> {
        let slot = self.slot(HandleType::CommandBuffer, command_buffer)?;
        Some(PROCESS_STATE.objects.user_data(slot) & NOTE_SECONDARY != 0)
    }

    fn subpass(&self, render_pass: u64, subpass: u32) -> Option<SubpassUse> {
        let facts = self.pack_context.read().unwrap_or_else(PoisonError::into_inner);
        facts.subpasses.get(&render_pass)?.get(subpass as usize).copied()
    }

    fn library(&self, pipeline: u64) -> Option<LibraryUse> {
        let facts = self.pack_context.read().unwrap_or_else(PoisonError::into_inner);
        facts.libraries.get(&pipeline).copied()
    }

    fn template(&self, template: u64) -> Option<Vec<DescriptorUpdateTemplateEntry>> {
        let facts = self.pack_context.read().unwrap_or_else(PoisonError::into_inner);
        facts.templates.get(&template).cloned()
    }
}

fn copied<T: Structure + Copy>(views: Views<'_, T>) -> Vec<T> {
    views.iter().map(|it| *it).collect()
}

fn subpass_use(subpass_description: View<'_, SubpassDescription>) -> SubpassUse {
    SubpassUse {
        color: subpass_description.p_color_attachments().iter().any(|it| it.attachment != ATTACHMENT_UNUSED),
        depth_stencil: subpass_description
            .p_depth_stencil_attachment()
            .is_some_and(|it| it.attachment != ATTACHMENT_UNUSED),
    }
}

fn subpass_use_2(subpass_description: View<'_, SubpassDescription2>) -> SubpassUse {
    SubpassUse {
        color: subpass_description.p_color_attachments().iter().any(|it| it.attachment != ATTACHMENT_UNUSED),
        depth_stencil: subpass_description
            .p_depth_stencil_attachment()
            .is_some_and(|it| it.attachment != ATTACHMENT_UNUSED),
    }
}

/// The state that a pipeline defines for those that link it as a library. Pipelines that link libraries themselves have
/// no entry.
fn library_use(create_info: View<'_, GraphicsPipelineCreateInfo>) -> Option<LibraryUse> {
    if create_info.chained::<PipelineLibraryCreateInfoKHR>().is_some_and(|it| it.library_count > 0) {
        return None;
    }
    let mesh = ShaderStageFlags::MESH_EXT.0 | ShaderStageFlags::TASK_EXT.0;
    let dynamic = create_info.p_dynamic_state();
    let is_dynamic = dynamic.is_some_and(|it| it.p_dynamic_states().contains(&DynamicState::RASTERIZER_DISCARD_ENABLE));
    let discards = create_info.p_rasterization_state().is_some_and(|it| it.rasterizer_discard_enable.0 != 0);
    Some(LibraryUse {
        has_mesh: create_info.p_stages().iter().any(|it| it.stage.0 & mesh != 0),
        discards_always: discards && !is_dynamic,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_their_slots_also_when_they_are_large() {
        let (names, ty) = (HandleTable::default(), HandleType::Buffer);
        for first in [0, SERIAL_MAX - 2, 1 << 40] {
            SERIALS[ty as usize].store(first, Ordering::Relaxed);
            for serial in first..first + 4 {
                let handle = 0x1000 + serial * 16;
                let slot = names.add(ty, handle, ObjectParent::None, 0).expect("there is room");
                let expected = (ObjectId::new(ty, serial).expect("it is not too large"), slot);
                assert_eq!(names.object(ty, handle), Some(expected));
                assert_eq!((names.slot(ty, handle), PROCESS_STATE.objects.id(slot)), (Some(slot), Some(expected.0)));
            }
        }
        assert_eq!(names.object(ty, 0x10), None);
    }
}
