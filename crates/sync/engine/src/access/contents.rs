//! Finds uses of undefined contents that are not data races: parts of exclusive resources that another queue family
//! owns, and attachments that a subpass did not preserve.
//!
//! Spec: "Queue Family Ownership Transfer", "Resource Sharing Mode", and the preserve attachments of "Render Pass
//! Creation". A queue family may always write to a resource that it does not own, because it does not need the old
//! contents.

use std::ops::Range;

use lavascope_abi::{QUEUE_FAMILY_EXTERNAL, QUEUE_FAMILY_FOREIGN_EXT};
use lavascope_collections::IntervalMap;
use lavascope_sync_ir::{
    Area, AttachmentView, Dependency, DependencyTarget, ImageRegion, QueueFamilyTransfer, Region, RenderPass,
    ResourceId, Subpass, UndefinedContents, UndefinedContentsKind,
};
use rustc_hash::FxHashMap;

use crate::access::actions::ResourceUse;
use crate::access::usages::SYNC_TABLES;
use crate::command_buffer::marks::MarkMode;
use crate::dependency::clocks::Tag;
use crate::queue::device::EngineDevice;
use crate::queue::execution::CommandExecutor;
use crate::queue::render_passes::RenderPassInstance;

/// The owners of resources, and the faults that were found.
#[derive(Default)]
pub(crate) struct ContentTracker {
    /// For exclusive resources: the owner of each range, relative to the beginning of the resource.
    owners: FxHashMap<ResourceId, IntervalMap<Owner>>,
    /// Whether any resource has an owner that matters.
    has_owners: bool,
    pub(crate) faults: Vec<UndefinedContents>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owner {
    family: u32,
    /// The tag of the owner's last write, or of the operation that made it the owner.
    since: Tag,
    /// The release, if the range is released and not acquired yet.
    release: Option<QueueFamilyTransfer>,
    /// Whether a wrong read is reported already. Such a read changes nothing: the owner stays, and so does the release.
    is_read_reported: bool,
}

impl Owner {
    fn new(family: u32, since: Tag) -> Owner {
        Owner { family, since, ..Owner::default() }
    }
}

impl ContentTracker {
    /// Forgets a resource.
    pub(crate) fn forget(&mut self, resource: ResourceId) {
        self.owners.remove(&resource);
    }

    /// All tags that a message may name later.
    pub(crate) fn tags(&self) -> impl Iterator<Item = Tag> {
        self.owners.values().flat_map(|it| it.iter()).map(|(_, it)| it.since)
    }
}

/// What the current render pass instance does to the contents of its attachments.
pub(crate) struct RenderPassContents {
    pass: RenderPass,
    views: Vec<AttachmentView>,
    area: Area,
    subpass: usize,
    began: Tag,
    undefined: Vec<UndefinedAttachment>,
}

/// The texels of an attachment that a subpass did not preserve.
struct UndefinedAttachment {
    subpass: usize,
    since: Tag,
    resource: ResourceId,
    /// Relative to the beginning of the resource. Texels that were written since are removed.
    texels: IntervalMap<()>,
}

impl CommandExecutor<'_> {
    /// Whether contents must be tracked. Most programs use one queue family and no preserve attachments, and skip the
    /// cost.
    pub(crate) fn is_tracking_contents(&self) -> bool {
        self.pass_contents.is_some() || self.device.contents.has_owners
    }

    /// Whether each command of the render pass instance must be looked at.
    pub(crate) fn is_tracking_attachment_writes(&self) -> bool {
        self.instance.as_ref().is_some_and(RenderPassInstance::has_unwritten_attachments)
    }

    /// Looks at what a command finds, and then at what it leaves.
    pub(crate) fn check_contents(&mut self, tag: Tag, uses: &[ResourceUse<'_>]) {
        let is_write = |it: &&ResourceUse<'_>| SYNC_TABLES.write_column(it.usage).is_some();
        for resource_use in uses.iter().filter(|it| !is_write(it)) {
            self.check_read_contents(tag, resource_use);
        }
        for resource_use in uses.iter().filter(is_write) {
            self.add_written_contents(tag, resource_use);
        }
    }

    fn check_read_contents(&mut self, tag: Tag, resource_use: &ResourceUse<'_>) {
        let family = self.family();
        if self.device.has_owners(resource_use.resource) {
            let ranges = self.device.addresses.relative_ranges(resource_use.resource, &resource_use.region);
            self.device.check_owner_on_read(tag, family, resource_use.resource, &ranges);
        }
        if let Some(pass) = &self.pass_contents {
            for (kind, since, range) in pass.undefined_reads(self.device, resource_use) {
                self.device.add_fault(kind, tag, Some(since), resource_use.resource, &range);
            }
        }
    }

    fn add_written_contents(&mut self, tag: Tag, resource_use: &ResourceUse<'_>) {
        let family = self.family();
        if self.device.has_owners(resource_use.resource) {
            let ranges = self.device.addresses.relative_ranges(resource_use.resource, &resource_use.region);
            let owner = Owner::new(family, tag);
            self.device.set_owner(resource_use.resource, &ranges, owner);
        }
        if let Some(pass) = &mut self.pass_contents {
            pass.mark_defined(self.device, resource_use);
            for region in pass.preserved_regions(self.device, resource_use) {
                let at = (tag, Some(pass.began));
                self.device.add_fault_of_region(
                    UndefinedContentsKind::WriteToPreserved,
                    at,
                    resource_use.resource,
                    region,
                );
            }
        }
    }

    /// Executes the halves of queue family ownership transfers in a barrier.
    pub(crate) fn apply_ownership_transfers<'d>(
        &mut self,
        tag: Tag,
        dependencies: impl IntoIterator<Item = &'d Dependency>,
    ) {
        let family = self.family();
        for dependency in dependencies {
            let DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } = &dependency.target
            else {
                continue;
            };
            if ownership.src_family == ownership.dst_family || !self.device.has_owners(*resource) {
                continue;
            }
            let ranges = self.device.addresses.relative_ranges(*resource, region);
            if ownership.src_family == family {
                self.device.release(tag, *resource, &ranges, *ownership);
            } else if ownership.dst_family == family {
                self.device.acquire_ownership(tag, *resource, &ranges, *ownership);
            }
        }
    }

    pub(crate) fn begin_pass_contents(&mut self, tag: Tag, pass: &RenderPass, views: &[AttachmentView], area: Area) {
        let is_preserving = pass.subpasses.len() > 1 || pass.subpasses.iter().any(|it| !it.preserves.is_empty());
        let contents = || RenderPassContents {
            pass: pass.clone(),
            views: views.to_vec(),
            area,
            subpass: 0,
            began: tag,
            undefined: Vec::new(),
        };
        // Recording has already reported all faults inside this command buffer.
        let is_reported = self.progress.marking == MarkMode::Apply;
        *self.pass_contents = (is_preserving && !is_reported).then(contents);
    }

    pub(crate) fn next_pass_contents(&mut self, tag: Tag) {
        if let Some(pass) = &mut self.pass_contents {
            pass.subpass += 1;
            pass.began = tag;
            pass.mark_undefined(self.device);
        }
    }

    fn family(&self) -> u32 {
        self.device.queues[usize::from(self.queue)].family
    }
}

impl EngineDevice {
    /// Begins to track the owner of a new resource.
    pub(crate) fn track_owner(&mut self, resource: ResourceId) {
        let first = self.queues.first().map(|it| it.family);
        let has_families = self.queues.iter().any(|it| Some(it.family) != first);
        self.contents.has_owners |= has_families && self.addresses.is_exclusive(resource);
    }

    /// Whether ownership of a resource matters.
    fn has_owners(&self, resource: ResourceId) -> bool {
        self.contents.has_owners && self.addresses.is_exclusive(resource)
    }

    fn set_owner(&mut self, resource: ResourceId, ranges: &[Range<u64>], owner: Owner) {
        let owners = self.contents.owners.entry(resource).or_default();
        for range in ranges {
            match owners.get_exact_mut(range) {
                Some(own) => *own = owner,
                None => owners.update(range.clone(), |_, own| *own = Some(owner)),
            }
        }
    }

    fn check_owner_on_read(&mut self, tag: Tag, family: u32, resource: ResourceId, ranges: &[Range<u64>]) {
        let mut faults = Vec::new();
        let owners = self.contents.owners.entry(resource).or_default();
        let is_fine = |it: &mut Owner| it.family == family && it.release.is_none();
        for range in ranges {
            if owners.get_exact_mut(range).is_some_and(is_fine) {
                continue;
            }
            owners.update(range.clone(), |part, own| {
                // The first to use something owns it.
                let owner = own.get_or_insert(Owner::new(family, tag));
                let kind = match owner.release {
                    Some(_) => UndefinedContentsKind::ReadWithoutAcquire,
                    None if owner.family != family => UndefinedContentsKind::ReadWithoutTransfer,
                    None => return,
                };
                if !std::mem::replace(&mut owner.is_read_reported, true) {
                    faults.push((kind, owner.since, part));
                }
            });
        }
        for (kind, since, range) in faults {
            self.add_fault(kind, tag, Some(since), resource, &range);
        }
    }

    fn release(&mut self, tag: Tag, resource: ResourceId, ranges: &[Range<u64>], ownership: QueueFamilyTransfer) {
        if is_external_family(ownership.dst_family) {
            let owners = self.contents.owners.entry(resource).or_default();
            ranges.iter().for_each(|it| owners.remove(it.clone()));
            return;
        }
        let owner = Owner { release: Some(ownership), ..Owner::new(ownership.src_family, tag) };
        self.set_owner(resource, ranges, owner);
    }

    fn acquire_ownership(
        &mut self,
        tag: Tag,
        resource: ResourceId,
        ranges: &[Range<u64>],
        ownership: QueueFamilyTransfer,
    ) {
        let mut missing = Vec::new();
        if !is_external_family(ownership.src_family) {
            let owners = self.contents.owners.entry(resource).or_default();
            for range in ranges {
                owners.update(range.clone(), |part, own| {
                    if own.is_none_or(|it| it.release != Some(ownership)) {
                        missing.push(part);
                    }
                });
            }
        }
        for range in missing {
            self.add_fault(UndefinedContentsKind::AcquireWithoutRelease, tag, None, resource, &range);
        }
        self.set_owner(resource, ranges, Owner::new(ownership.dst_family, tag));
    }

    fn add_fault(
        &mut self,
        kind: UndefinedContentsKind,
        tag: Tag,
        since: Option<Tag>,
        resource: ResourceId,
        range: &Range<u64>,
    ) {
        for region in self.addresses.relative_regions(resource, range) {
            self.add_fault_of_region(kind, (tag, since), resource, region);
        }
    }

    fn add_fault_of_region(
        &mut self,
        kind: UndefinedContentsKind,
        (tag, since): (Tag, Option<Tag>),
        resource: ResourceId,
        region: Region,
    ) {
        let Some(at) = self.locations.get(tag) else { return };
        let prior = since.and_then(|it| self.locations.get(it));
        self.contents.faults.push(UndefinedContents { kind, at, prior, resource, region });
    }
}

/// The other half of a transfer with an external family belongs to another device or process, so the engine never sees
/// it.
fn is_external_family(family: u32) -> bool {
    family == QUEUE_FAMILY_EXTERNAL || family == QUEUE_FAMILY_FOREIGN_EXT
}

impl RenderPassContents {
    /// Marks what becomes undefined when the current subpass begins: attachments that an earlier subpass used or
    /// preserved and that this subpass neither uses nor preserves, if a dependency leads from that subpass to this one.
    fn mark_undefined(&mut self, device: &EngineDevice) {
        let Some(subpass) = self.pass.subpasses.get(self.subpass) else { return };
        for (index, view) in self.views.iter().enumerate() {
            let index = index as u32;
            let is_rendered = self.pass.subpasses.iter().any(|it| renders_to(it, index));
            let is_lost = |subpass_dependency: &lavascope_sync_ir::SubpassDependency| {
                let src = subpass_dependency.src.and_then(|src| self.pass.subpasses.get(src as usize));
                subpass_dependency.dst == Some(self.subpass as u32)
                    && src.is_some_and(|it| uses_or_preserves(it, index))
            };
            if !is_rendered || uses_or_preserves(subpass, index) || !self.pass.dependencies.iter().any(is_lost) {
                continue;
            }
            let mut texels = IntervalMap::default();
            for range in device.addresses.relative_ranges(view.resource, &self.region(view)) {
                texels.update(range, |_, it| *it = Some(()));
            }
            let (subpass, since, resource) = (self.subpass, self.began, view.resource);
            self.undefined.push(UndefinedAttachment { subpass, since, resource, texels });
        }
    }

    /// The texels that are read although they are undefined in the current subpass.
    fn undefined_reads(
        &self,
        device: &EngineDevice,
        resource_use: &ResourceUse<'_>,
    ) -> Vec<(UndefinedContentsKind, Tag, Range<u64>)> {
        let mut found = Vec::new();
        for lost in self.undefined.iter().filter(|lost| lost.resource == resource_use.resource) {
            if !self.has_dependency_path(lost.subpass, self.subpass) {
                continue;
            }
            for range in device.addresses.relative_ranges(resource_use.resource, &resource_use.region) {
                let parts = lost.texels.overlapping(range).map(|(part, ())| part);
                found.extend(parts.map(|part| (UndefinedContentsKind::ReadNotPreserved, lost.since, part)));
            }
        }
        found
    }

    fn mark_defined(&mut self, device: &EngineDevice, resource_use: &ResourceUse<'_>) {
        for lost in self.undefined.iter_mut().filter(|lost| lost.resource == resource_use.resource) {
            for range in device.addresses.relative_ranges(resource_use.resource, &resource_use.region) {
                lost.texels.remove(range);
            }
        }
    }

    /// The parts of a use that lie in attachments which the current subpass preserves, through any resource.
    fn preserved_regions(&self, device: &EngineDevice, resource_use: &ResourceUse<'_>) -> Vec<Region> {
        let Some(subpass) = self.pass.subpasses.get(self.subpass) else { return Vec::new() };
        let views = subpass.preserves.iter().filter_map(|it| self.views.get(*it as usize));
        let mut found = Vec::new();
        for view in views {
            let theirs = device.addresses.ranges(view.resource, &self.region(view));
            for own in device.addresses.ranges(resource_use.resource, &resource_use.region) {
                for other in &theirs {
                    let both = own.start.max(other.start)..own.end.min(other.end);
                    if !both.is_empty() {
                        found.extend(device.addresses.regions(resource_use.resource, &both));
                    }
                }
            }
        }
        found
    }

    /// The part of an attachment that the view and the render area select.
    fn region(&self, view: &AttachmentView) -> Region {
        Region::Image(ImageRegion { area: Some(view.area_in_attachment(self.area)), ..view.region.clone() })
    }

    /// Whether a path of dependencies leads from one subpass to another.
    fn has_dependency_path(&self, from: usize, to: usize) -> bool {
        let mut reached = vec![false; self.pass.subpasses.len().max(to + 1)];
        reached[from] = true;
        // A dependency can only lead to a later subpass.
        for subpass in from + 1..=to {
            let is_next = |subpass_dependency: &lavascope_sync_ir::SubpassDependency| {
                let is_reached = |src: u32| reached.get(src as usize).copied().unwrap_or_default();
                subpass_dependency.dst == Some(subpass as u32) && subpass_dependency.src.is_some_and(is_reached)
            };
            reached[subpass] = self.pass.dependencies.iter().any(is_next);
        }
        reached[to]
    }
}

fn renders_to(subpass: &Subpass, attachment: u32) -> bool {
    let own = subpass.colors.iter().chain(&subpass.depth_stencil).chain(&subpass.depth_stencil_resolve);
    own.map(|it| it.0).chain(subpass.resolves.iter().map(|it| it.target)).any(|it| it == attachment)
}

/// Whether a subpass uses an attachment, or preserves it.
fn uses_or_preserves(subpass: &Subpass, attachment: u32) -> bool {
    let is_input = subpass.inputs.iter().any(|it| it.0 == attachment);
    is_input || renders_to(subpass, attachment) || subpass.preserves.contains(&attachment)
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::{Queue, Resource, ResourceKind};

    use crate::Engine;

    /// Most programs have one queue family, so nothing is tracked.
    #[test]
    fn owners_matter_between_families_only() {
        let has_owners = |families: &[u32], is_exclusive: bool| {
            let queues: Vec<Queue> = families.iter().map(|it| Queue { family: *it, flags: 1 }).collect();
            let mut engine = Engine::new(&queues, 0, 0, 0);
            let resource = Resource { is_exclusive, ..Resource::new(ResourceKind::Buffer { size: 4 }, None) };
            let id = engine.add_resource(&resource);
            let plain = engine.add_resource(&Resource::new(ResourceKind::Buffer { size: 4 }, None));
            assert!(!engine.device.has_owners(plain));
            assert_eq!(engine.device.has_owners(id), engine.device.contents.has_owners);
            engine.device.contents.has_owners
        };
        assert!(has_owners(&[0, 1], true) && has_owners(&[1, 1, 0], true));
        assert!(!has_owners(&[0, 1], false) && !has_owners(&[1, 1], true) && !has_owners(&[], true));
    }
}
