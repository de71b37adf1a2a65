//! The debug names and labels of an application, from `VK_EXT_debug_utils` and the older `VK_EXT_debug_marker`.

use std::ffi::CStr;
use std::sync::Arc;

use lavascope_abi::{CommandBuffer, ObjectId, Queue};
use rustc_hash::FxHashMap;

use crate::{Call, Record, RecordPhase};

/// The names and labels so far in a stream of records.
#[derive(Clone, Debug, Default)]
pub struct ObjectNames {
    names: FxHashMap<ObjectId, String>,
    /// The labels that are open in a command buffer or a queue.
    labels: FxHashMap<ObjectId, LabelPath>,
}

/// Open labels, outermost first: shared by all commands inside of them.
pub type LabelPath = Arc<[Arc<str>]>;

impl ObjectNames {
    /// Processes a record. Only a few records change anything.
    pub fn apply(&mut self, record: Record<'_>) {
        if record.phase() != RecordPhase::Enter {
            return;
        }
        match Call::of(record) {
            Some(Call::SetDebugUtilsObjectNameEXT(params)) => {
                if let Some(info) = params.p_name_info() {
                    self.set_name(info.object_handle, info.p_object_name());
                }
            }
            Some(Call::DebugMarkerSetObjectNameEXT(params)) => {
                if let Some(info) = params.p_name_info() {
                    self.set_name(info.object, info.p_object_name());
                }
            }
            Some(Call::CmdBeginDebugUtilsLabelEXT(params)) => {
                self.begin(params.command_buffer.0, params.p_label_info().and_then(|it| it.p_label_name()));
            }
            Some(Call::CmdDebugMarkerBeginEXT(params)) => {
                self.begin(params.command_buffer.0, params.p_marker_info().and_then(|it| it.p_marker_name()));
            }
            Some(Call::CmdEndDebugUtilsLabelEXT(params)) => self.end(params.command_buffer.0),
            Some(Call::CmdDebugMarkerEndEXT(params)) => self.end(params.command_buffer.0),
            Some(Call::QueueBeginDebugUtilsLabelEXT(params)) => {
                self.begin(params.queue.0, params.p_label_info().and_then(|it| it.p_label_name()));
            }
            Some(Call::QueueEndDebugUtilsLabelEXT(params)) => self.end(params.queue.0),
            // A new recording begins without labels.
            Some(Call::BeginCommandBuffer(params)) => self.clear_labels(params.command_buffer.0),
            // All other commands do not change names.
            _ => {}
        }
    }

    /// The name that the application gave to an object.
    pub fn name(&self, object: ObjectId) -> Option<&str> {
        self.names.get(&object).map(String::as_str)
    }

    /// Forgets the name and the labels of a destroyed object.
    pub fn remove(&mut self, object: ObjectId) {
        self.names.remove(&object);
        self.labels.remove(&object);
    }

    /// The labels that are open in a command buffer, as a path: `Frame::Shadows::Draw`.
    pub fn path_in_command_buffer(&self, command_buffer: CommandBuffer) -> Option<String> {
        self.joined_labels(command_buffer.0)
    }

    /// The labels that are open in a queue, as a path.
    pub fn path_in_queue(&self, queue: Queue) -> Option<String> {
        self.joined_labels(queue.0)
    }

    /// The labels that are open in a command buffer or a queue; none if there are none.
    pub fn labels(&self, owner: ObjectId) -> Option<LabelPath> {
        self.labels.get(&owner).cloned()
    }

    fn joined_labels(&self, owner: u64) -> Option<String> {
        Some(self.labels(ObjectId::from_raw(owner)?)?.join("::"))
    }

    fn set_name(&mut self, object: u64, name: Option<&CStr>) {
        let Some(object) = ObjectId::from_raw(object).filter(|it| !it.is_null() && !it.is_unknown()) else { return };
        match name.map(CStr::to_string_lossy).filter(|it| !it.is_empty()) {
            Some(name) => self.names.insert(object, name.into_owned()),
            // A null or empty name removes the name.
            None => self.names.remove(&object),
        };
    }

    fn begin(&mut self, owner: u64, label: Option<&CStr>) {
        if let Some(owner) = ObjectId::from_raw(owner) {
            let label = Arc::from(label.map(CStr::to_string_lossy).unwrap_or_default());
            let open = self.labels.get(&owner).cloned().unwrap_or_default();
            self.labels.insert(owner, open.iter().cloned().chain([label]).collect());
        }
    }

    fn end(&mut self, owner: u64) {
        let Some(owner) = ObjectId::from_raw(owner) else { return };
        match self.labels.get(&owner).and_then(|it| it.split_last()) {
            Some((_, rest)) if !rest.is_empty() => drop(self.labels.insert(owner, rest.into())),
            _ => drop(self.labels.remove(&owner)),
        }
    }

    fn clear_labels(&mut self, owner: u64) {
        if let Some(owner) = ObjectId::from_raw(owner) {
            self.labels.remove(&owner);
        }
    }
}
