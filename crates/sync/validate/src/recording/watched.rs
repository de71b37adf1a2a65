//! Accesses that somebody watches for: the earlier accesses of hazards that another run has found.
//!
//! They are recognized when they are recorded, by what [`FirstAccessKey`] knows of them. Absent on purpose: whether the
//! access is in a hazard again, which only what comes later decides.

use std::sync::Arc;

use lavascope_abi::ObjectId;
use lavascope_diag::{DiagnosticObject, FirstAccessKey, RecordedAccess};
use lavascope_engine::access::usages::SYNC_TABLES;
use lavascope_record::ObjectNames;
use lavascope_sync_ir::{
    Access, Barrier, Command, CommandBufferId, Dependency, DependencyTarget, HostStep, ResourceId, WaitEvents,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::findings::names::object_text;

#[derive(Default)]
pub(crate) struct WatchedAccesses {
    keys: Vec<FirstAccessKey>,
    /// What was recognized since somebody asked.
    found: Vec<String>,
    /// Recorded commands that were recognized, each by its command buffer and number.
    seen: FxHashSet<(ObjectId, u32)>,
    /// The attachments of the render pass that each command buffer has begun.
    attachments: FxHashMap<CommandBufferId, Vec<ResourceId>>,
}

/// A call that may make a watched access.
pub(crate) struct WatchedCall {
    pub(crate) function: &'static str,
    /// The innermost debug label that its command buffer opened.
    pub(crate) label: Option<Arc<str>>,
    /// Its command buffer, and its number among the commands; none for a call that is not recorded.
    pub(crate) place: Option<(ObjectId, u32)>,
}

/// A resource that a call accesses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchedResource {
    pub(crate) resource: ResourceId,
    /// None if the call may do both.
    pub(crate) is_write: Option<bool>,
}

impl WatchedResource {
    pub(crate) fn of(access: &Access) -> WatchedResource {
        let usage = SYNC_TABLES.usage(access.stage, access.access);
        let is_write = usage.map(|it| SYNC_TABLES.write_column(it).is_some());
        WatchedResource { resource: access.resource, is_write }
    }

    fn any(resource: ResourceId) -> WatchedResource {
        WatchedResource { resource, is_write: None }
    }
}

impl WatchedAccesses {
    pub(crate) fn add(&mut self, keys: &[FirstAccessKey]) {
        self.keys.extend(keys);
    }

    pub(crate) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.found)
    }

    /// Compares an access of a call with the keys.
    pub(crate) fn compare(
        &mut self,
        call: &WatchedCall,
        resource: &DiagnosticObject,
        is_write: Option<bool>,
        names: &ObjectNames,
    ) {
        let (function, label) = (call.function, call.label.as_deref());
        let recorded = RecordedAccess { function, label, object: resource, is_write };
        if !self.keys.iter().any(|it| it.fits(&recorded)) {
            return;
        }
        let object = match &resource.name {
            Some(name) => format!("{} {name:?}", resource.kind),
            None => format!("{}#{}", resource.kind, resource.id),
        };
        let place = match call.place {
            Some(place) if !self.seen.insert(place) => return,
            Some((commands, number)) => format!(", command {number} of {}", object_text(commands, names)),
            None => String::new(),
        };
        self.found.push(format!("{} accesses {object}{place}", call.function));
    }

    /// The resources that a command accesses beside those of actions. The end of a render pass accesses its attachments.
    pub(crate) fn resources_of(&mut self, id: CommandBufferId, command: &Command) -> Vec<WatchedResource> {
        let resources = match command {
            Command::Action(accesses) => return accesses.iter().map(WatchedResource::of).collect(),
            Command::Barrier(Barrier::Sync1 { dependencies, .. } | Barrier::Sync2 { dependencies }) => {
                resources_of_dependencies(dependencies)
            }
            Command::WaitEvents(WaitEvents::Sync1 { dependencies, .. }) => resources_of_dependencies(dependencies),
            Command::WaitEvents(WaitEvents::Sync2 { events }) => {
                events.iter().flat_map(|it| resources_of_dependencies(&it.1)).collect()
            }
            Command::BeginRenderPass { views, .. } => {
                let all: Vec<ResourceId> = views.iter().map(|it| it.resource).collect();
                self.attachments.insert(id, all.clone());
                all
            }
            Command::BeginRendering(rendering) => {
                let resolved = rendering.attachments.iter().filter_map(|it| Some(it.resolve.as_ref()?.view.resource));
                let all: Vec<ResourceId> =
                    rendering.attachments.iter().map(|it| it.view.resource).chain(resolved).collect();
                self.attachments.insert(id, all.clone());
                all
            }
            Command::NextSubpass => self.attachments.get(&id).cloned().unwrap_or_default(),
            Command::EndRenderPass | Command::EndRendering => self.attachments.remove(&id).unwrap_or_default(),
            Command::SetEvent(_) | Command::ResetEvent { .. } | Command::Execute(_) => Vec::new(),
        };
        resources.into_iter().map(WatchedResource::any).collect()
    }
}

/// The resources of layout transitions and of transfers between queue families; other dependencies access nothing.
fn resources_of_dependencies(dependencies: &[Dependency]) -> Vec<ResourceId> {
    let resource = |dependency: &Dependency| match dependency.target {
        DependencyTarget::Transition { resource, .. } | DependencyTarget::QueueFamilyTransfer { resource, .. } => {
            Some(resource)
        }
        DependencyTarget::Global | DependencyTarget::Resource { .. } => None,
    };
    dependencies.iter().filter_map(resource).collect()
}

/// The resources that the host or the presentation engine accesses.
pub(crate) fn resources_of_step(step: &HostStep) -> Vec<WatchedResource> {
    match step {
        HostStep::HostAccess { resource, is_write, .. } => {
            vec![WatchedResource { resource: *resource, is_write: Some(*is_write) }]
        }
        HostStep::Acquire { image, .. } => vec![WatchedResource::any(*image)],
        HostStep::Present { images, .. } => images.iter().copied().map(WatchedResource::any).collect(),
        HostStep::Submit { .. }
        | HostStep::WaitFences(_)
        | HostStep::ResetFences(_)
        | HostStep::QueueIdle(_)
        | HostStep::DeviceIdle
        | HostStep::WaitSemaphores(_)
        | HostStep::SignalSemaphore(_)
        | HostStep::SetEvent(_)
        | HostStep::ResetEvent(_)
        | HostStep::BindSparse { .. }
        | HostStep::Destroy(_) => Vec::new(),
    }
}
