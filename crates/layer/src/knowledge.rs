//! What the watcher knows of objects: their ids, and the facts that decide which pointers are read.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use lavascope_abi::*;
use lavascope_base::TaggedMap;
use lavascope_event::facts::{Facts, SubpassUse};
use lavascope_event::{Call, View, Views};
use lavascope_marshal::Ids;

/// The objects of the process, by the handles that the driver gave.
#[derive(Default)]
pub(crate) struct Knowledge {
    ids: TaggedMap,
    /// The next serial number of each type. Relaxed: numbers only have to differ.
    serials: HashMap<u8, AtomicU64>,
    secondaries: HashMap<u64, bool>,
    subpasses: HashMap<u64, Vec<SubpassUse>>,
    templates: HashMap<u64, Vec<DescriptorUpdateTemplateEntry>>,
}

impl Ids for Knowledge {
    fn id(&self, ty: HandleType, handle: u64) -> ObjectId {
        let id = self.ids.get(handle, ty as u8).and_then(|raw| ObjectId::checked(raw, ty));
        id.unwrap_or(ObjectId::unknown(ty))
    }
}

impl Facts for Knowledge {
    fn is_secondary(&self, command_buffer: u64) -> Option<bool> {
        self.secondaries.get(&command_buffer).copied()
    }

    fn subpass(&self, render_pass: u64, subpass: u32) -> Option<SubpassUse> {
        self.subpasses.get(&render_pass)?.get(subpass as usize).copied()
    }

    fn template(&self, template: u64) -> Option<Vec<DescriptorUpdateTemplateEntry>> {
        self.templates.get(&template).cloned()
    }
}

impl Knowledge {
    /// A handle that a call gave out: a new object, or one that was known already.
    pub(crate) fn learn(&mut self, ty: HandleType, handle: u64, is_new: bool) {
        if handle == 0 || !is_new && self.ids.get(handle, ty as u8).is_some() {
            return;
        }
        let serial = self.serials.entry(ty as u8).or_default().fetch_add(1, Ordering::Relaxed);
        if let Some(id) = ObjectId::new(ty, serial) {
            self.ids.insert(handle, id.raw());
        }
    }

    pub(crate) fn forget(&mut self, ty: HandleType, handle: u64) {
        self.ids.remove(handle, ty as u8);
        self.secondaries.remove(&handle);
        self.subpasses.remove(&handle);
        self.templates.remove(&handle);
    }

    /// What a call that succeeded says about the objects it made.
    pub(crate) fn study(&mut self, call: Call<'_>, made: &[u64]) {
        match call {
            Call::AllocateCommandBuffers(it) => {
                let level = it.p_allocate_info().map(|it| it.level);
                let is_secondary = level == Some(CommandBufferLevel::SECONDARY);
                self.secondaries.extend(made.iter().map(|it| (*it, is_secondary)));
            }
            Call::CreateRenderPass(it) => {
                let subpasses = it.p_create_info().map(|it| it.p_subpasses().iter().map(subpass_use).collect());
                self.subpasses.extend(made.iter().copied().zip(subpasses));
            }
            Call::CreateRenderPass2(it) => {
                let subpasses = it.p_create_info().map(|it| it.p_subpasses().iter().map(subpass_use_2).collect());
                self.subpasses.extend(made.iter().copied().zip(subpasses));
            }
            Call::CreateDescriptorUpdateTemplate(it) => {
                let entries = it.p_create_info().map(|it| copied(it.p_descriptor_update_entries()));
                self.templates.extend(made.iter().copied().zip(entries));
            }
            // Nothing else decides what is read.
            _ => {}
        }
    }
}

fn copied<T: Structure + Copy>(views: Views<'_, T>) -> Vec<T> {
    views.iter().map(|it| *it).collect()
}

fn subpass_use(it: View<'_, SubpassDescription>) -> SubpassUse {
    SubpassUse {
        color: it.p_color_attachments().iter().any(|it| it.attachment != ATTACHMENT_UNUSED),
        depth_stencil: it.p_depth_stencil_attachment().is_some_and(|it| it.attachment != ATTACHMENT_UNUSED),
    }
}

fn subpass_use_2(it: View<'_, SubpassDescription2>) -> SubpassUse {
    SubpassUse {
        color: it.p_color_attachments().iter().any(|it| it.attachment != ATTACHMENT_UNUSED),
        depth_stencil: it.p_depth_stencil_attachment().is_some_and(|it| it.attachment != ATTACHMENT_UNUSED),
    }
}
