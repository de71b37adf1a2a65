//! What the application calls its objects and the parts of its work: names and labels of `VK_EXT_debug_utils`, and
//! of `VK_EXT_debug_marker` before it.

use std::collections::HashMap;
use std::ffi::CStr;

use lavascope_abi::{CommandBuffer, ObjectId, Queue};

use crate::{Call, Kind, Record};

/// The names and labels that a stream of records has given so far.
#[derive(Clone, Debug, Default)]
pub struct Titles {
    names: HashMap<ObjectId, String>,
    /// The labels that are open in a command buffer or a queue, the outermost first.
    labels: HashMap<ObjectId, Vec<String>>,
}

impl Titles {
    /// Takes in a record. All but a few change nothing.
    pub fn follow(&mut self, record: Record<'_>) {
        if record.kind() != Kind::Enter {
            return;
        }
        match Call::of(record) {
            Some(Call::SetDebugUtilsObjectNameEXT(it)) => {
                if let Some(info) = it.p_name_info() {
                    self.set_name(info.object_handle, info.p_object_name());
                }
            }
            Some(Call::DebugMarkerSetObjectNameEXT(it)) => {
                if let Some(info) = it.p_name_info() {
                    self.set_name(info.object, info.p_object_name());
                }
            }
            Some(Call::CmdBeginDebugUtilsLabelEXT(it)) => {
                self.begin(it.command_buffer.0, it.p_label_info().and_then(|it| it.p_label_name()));
            }
            Some(Call::CmdDebugMarkerBeginEXT(it)) => {
                self.begin(it.command_buffer.0, it.p_marker_info().and_then(|it| it.p_marker_name()));
            }
            Some(Call::CmdEndDebugUtilsLabelEXT(it)) => self.end(it.command_buffer.0),
            Some(Call::CmdDebugMarkerEndEXT(it)) => self.end(it.command_buffer.0),
            Some(Call::QueueBeginDebugUtilsLabelEXT(it)) => {
                self.begin(it.queue.0, it.p_label_info().and_then(|it| it.p_label_name()));
            }
            Some(Call::QueueEndDebugUtilsLabelEXT(it)) => self.end(it.queue.0),
            // A new recording starts without labels.
            Some(Call::BeginCommandBuffer(it)) => self.forget_labels(it.command_buffer.0),
            // Nothing else has to do with names.
            _ => {}
        }
    }

    /// The name that the application gave to an object.
    pub fn name(&self, object: ObjectId) -> Option<&str> {
        self.names.get(&object).map(String::as_str)
    }

    /// An object is no more, nor are its name and its labels.
    pub fn forget(&mut self, object: ObjectId) {
        self.names.remove(&object);
        self.labels.remove(&object);
    }

    /// The labels that are open in a command buffer, as a path: `Frame::Shadows::Draw`.
    pub fn path_in_command_buffer(&self, command_buffer: CommandBuffer) -> Option<String> {
        self.path(command_buffer.0)
    }

    /// The labels that are open in a queue, as a path.
    pub fn path_in_queue(&self, queue: Queue) -> Option<String> {
        self.path(queue.0)
    }

    fn path(&self, owner: u64) -> Option<String> {
        let labels = self.labels.get(&ObjectId::from_raw(owner)?)?;
        (!labels.is_empty()).then(|| labels.join("::"))
    }

    fn set_name(&mut self, object: u64, name: Option<&CStr>) {
        let Some(object) = ObjectId::from_raw(object).filter(|it| !it.is_null() && !it.is_unknown()) else { return };
        match name.map(CStr::to_string_lossy).filter(|it| !it.is_empty()) {
            Some(name) => self.names.insert(object, name.into_owned()),
            // No name, or an empty one, takes the name away.
            None => self.names.remove(&object),
        };
    }

    fn begin(&mut self, owner: u64, label: Option<&CStr>) {
        if let Some(owner) = ObjectId::from_raw(owner) {
            let label = label.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
            self.labels.entry(owner).or_default().push(label);
        }
    }

    fn end(&mut self, owner: u64) {
        if let Some(labels) = ObjectId::from_raw(owner).and_then(|it| self.labels.get_mut(&it)) {
            labels.pop();
        }
    }

    fn forget_labels(&mut self, owner: u64) {
        if let Some(owner) = ObjectId::from_raw(owner) {
            self.labels.remove(&owner);
        }
    }
}
