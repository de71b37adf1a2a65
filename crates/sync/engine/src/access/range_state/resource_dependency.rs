//! What dependencies on single resources, and layout transitions, do to the state of a range.
//!
//! Spec: `synchronization-image-layout-transitions`. A transition is a write between the two scopes of its barrier. Its
//! writes are available by themselves, and the barrier makes them visible to its second scope.

use std::ops::Range;
use std::sync::Arc;

use crate::access::access_context::AccessContext;
use crate::access::access_order::AccessOrder;
use crate::access::overlays::Overlay;
use crate::access::range_state::{Accessor, ColdState, LastWrite, RangeState};
use crate::access::usages::{SYNC_TABLES, TRANSITION, TRANSITION_WRITE};
use crate::dependency::clocks::Tag;
use crate::dependency::expanded::ResolvedDependency;
use crate::dependency::scopes::ExpandedScope;

impl RangeState {
    /// Adds a layout transition, and makes it available and visible to the second scope of its barrier.
    pub(crate) fn add_transition(
        &mut self,
        context: &AccessContext<'_>,
        order: AccessOrder,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
    ) {
        self.add_write(
            Accessor { usage: TRANSITION_WRITE, queue: context.queue, order },
            context.identity,
            context.tag,
        );
        shared.change(self.cold.get_or_insert_default().newest_overlay(), |overlay| {
            overlay.add(context, scope);
            overlay.add_operation_point(context, TRANSITION);
        });
    }

    /// If the last write is the layout transition with a tag: makes it visible to another second scope.
    pub(crate) fn share_transition(
        &mut self,
        context: &AccessContext<'_>,
        tag: Tag,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
    ) {
        self.add_to_overlays(context, scope, shared, |it| it.usage == TRANSITION_WRITE && it.tag == tag);
    }

    /// If the last write is the buffer marker with a tag: a later marker, which is being executed, makes it available.
    /// The point has the stage of markers and not the copy stage: whether a marker comes after another one depends on
    /// the stages of both, and not on the later one being a copy.
    pub(crate) fn add_marker_point(&mut self, context: &AccessContext<'_>, tag: Tag) {
        let wanted: Vec<bool> = self.writes().map(|it| it.tag == tag && it.order.is_marker()).collect();
        if wanted.contains(&true) {
            let cold = self.cold.get_or_insert_default();
            for (overlay, _) in cold.overlays().zip(wanted).filter(|it| it.1) {
                Arc::make_mut(overlay.get_or_insert_default()).add_operation_point(context, SYNC_TABLES.marker);
            }
        }
    }

    /// Applies a dependency on the resource: the writes in its first scope become visible to its second scope.
    pub(crate) fn apply_dependency(
        &mut self,
        context: &AccessContext<'_>,
        resolved: &ResolvedDependency,
        range: &Range<u64>,
        shared: &mut SharedOverlays,
    ) {
        self.add_to_overlays(context, &resolved.dependency.scope, shared, |write| {
            write.is_in_first_scope(context, &resolved.first_scope, range)
        });
    }

    /// Adds a second scope to the overlays of some of the writes.
    pub(super) fn add_to_overlays(
        &mut self,
        context: &AccessContext<'_>,
        scope: &ExpandedScope,
        shared: &mut SharedOverlays,
        is_wanted: impl Fn(LastWrite<'_>) -> bool,
    ) {
        if self.cold.as_ref().is_none_or(|it| !it.has_other_writes()) {
            if self.writes().any(is_wanted) {
                shared.change(&mut self.cold.get_or_insert_default().overlay, |it| it.add(context, scope));
            }
            return;
        }
        let wanted: Vec<bool> = self.writes().map(is_wanted).collect();
        let cold = self.cold.get_or_insert_default();
        for (overlay, _) in cold.overlays().zip(wanted).filter(|it| it.1) {
            shared.change(overlay, |it| it.add(context, scope));
        }
    }

    /// Addresses of other resources in the same memory at which visibility through them begins or ends.
    pub(crate) fn alias_boundaries(&self) -> impl Iterator<Item = u64> {
        self.writes().filter_map(|it| it.overlay).flat_map(Overlay::alias_boundaries)
    }

    /// Another resource in the same memory moves to new addresses, one range for each plane of components.
    pub(crate) fn move_alias_addresses(&mut self, old: &Range<u64>, planes: &[u64]) {
        let Some(cold) = &mut self.cold else { return };
        for overlay in cold.overlays().flatten().filter(|it| it.alias_boundaries().next().is_some()) {
            Arc::make_mut(overlay).move_alias_addresses(old, planes);
        }
    }
}

impl ColdState {
    /// The overlay of the write that was added last.
    fn newest_overlay(&mut self) -> &mut Option<Arc<Overlay>> {
        let newest = self.rare.as_mut().and_then(|it| it.other_writes.last_mut());
        newest.map_or(&mut self.overlay, |it| &mut it.overlay)
    }

    /// The overlays of all writes, in the order of `RangeState::writes`.
    fn overlays(&mut self) -> impl Iterator<Item = &mut Option<Arc<Overlay>>> {
        let others = self.rare.iter_mut().flat_map(|it| &mut it.other_writes).map(|it| &mut it.overlay);
        std::iter::once(&mut self.overlay).chain(others)
    }
}

/// Shares one overlay among the ranges that a dependency changes in the same way, because most ranges of a resource have
/// equal overlays.
#[derive(Default)]
pub(crate) struct SharedOverlays {
    /// The last overlay before and after the change.
    last: Option<(Option<Arc<Overlay>>, Arc<Overlay>)>,
}

impl SharedOverlays {
    fn change(&mut self, overlay: &mut Option<Arc<Overlay>>, change: impl FnOnce(&mut Overlay)) {
        let is_same = |old: &Option<Arc<Overlay>>| match (old, &*overlay) {
            (None, None) => true,
            (Some(old), Some(own)) => Arc::ptr_eq(old, own),
            _ => false,
        };
        if let Some((_, new)) = self.last.as_ref().filter(|it| is_same(&it.0)) {
            *overlay = Some(Arc::clone(new));
            return;
        }
        let old = overlay.clone();
        change(Arc::make_mut(overlay.get_or_insert_default()));
        self.last = overlay.clone().map(|new| (old, new));
    }
}
