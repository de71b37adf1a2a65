//! Linear images on another device: their rows are as far apart as that device wants.
//!
//! A program that writes texels queries the layout of the image. Its answer is in the trace. The replay queries the
//! layout of this device, and moves host writes row by row.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use lavascope_abi as vk;
use lavascope_abi::{ObjectId, Structure};
use lavascope_record::{Call, Outcome};
use rustc_hash::FxHashMap;

use crate::call::functions::driver;
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::instance::out;
use crate::replay::lock;

/// Images whose texels the host can find, and that are elsewhere here.
#[derive(Default)]
pub(crate) struct LinearImages(Mutex<FxHashMap<ObjectId, Arc<LinearLayout>>>);

/// Where the texels of one image are.
#[derive(Default)]
pub(crate) struct LinearLayout {
    /// Whether it has slices behind each other.
    has_slices: bool,
    subresources: Mutex<Vec<SubresourceMapping>>,
}

/// One subresource, in the trace and here.
#[derive(Clone, Copy)]
struct SubresourceMapping {
    recorded: vk::SubresourceLayout,
    replayed: vk::SubresourceLayout,
}

/// Bytes that lie together in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMapping {
    pub(crate) recorded_offset: u64,
    pub(crate) replay_offset: u64,
    pub(crate) size: u64,
}

impl LinearImages {
    pub(crate) fn add(&self, id: ObjectId, ty: vk::ImageType) {
        // Three dimensions.
        let pitches = LinearLayout { has_slices: ty.0 == 2, subresources: Mutex::default() };
        lock(&self.0).insert(id, Arc::new(pitches));
    }

    pub(crate) fn find(&self, id: ObjectId) -> Option<Arc<LinearLayout>> {
        lock(&self.0).get(&id).cloned()
    }

    pub(crate) fn remove(&self, id: ObjectId) {
        lock(&self.0).remove(&id);
    }
}

impl LinearLayout {
    fn insert(&self, subresource_mapping: SubresourceMapping) {
        let mut parts = lock(&self.subresources);
        parts.retain(|known| known.recorded.offset != subresource_mapping.recorded.offset);
        parts.push(subresource_mapping);
    }

    /// Where bytes of the image in the trace are here. What lies between rows is nowhere.
    pub(crate) fn row_mappings(&self, bytes: &Range<u64>) -> Vec<RowMapping> {
        let mut all = Vec::new();
        for SubresourceMapping { recorded: there, replayed: here } in lock(&self.subresources).iter() {
            let end = there.offset.saturating_add(there.size).min(bytes.end);
            let mut at = there.offset.max(bytes.start);
            while at < end {
                let (slice, rest) = match self.has_slices && there.depth_pitch > 0 {
                    true => ((at - there.offset) / there.depth_pitch, (at - there.offset) % there.depth_pitch),
                    false => (0, at - there.offset),
                };
                let pitch = there.row_pitch.max(1);
                let (row, column) = (rest / pitch, rest % pitch);
                let next = at + pitch - column;
                // No row has more bytes than the smaller of the two pitches.
                let size = (here.row_pitch.min(pitch)).saturating_sub(column).min(end - at);
                if size > 0 {
                    let first = here.offset + slice * here.depth_pitch + row * here.row_pitch + column;
                    all.push(RowMapping { recorded_offset: at, replay_offset: first, size });
                }
                at = next;
            }
        }
        all
    }
}

/// Where texels are, asked here too.
pub(crate) fn query_subresource_layout(
    performer: &mut Performer<'_>,
    recorded_call: &RecordedCall<'_>,
) -> Result<(), ReplayError> {
    let (image, there) = match (Call::of(recorded_call.enter), recorded_call.leave.and_then(Outcome::of)) {
        (Some(Call::GetImageSubresourceLayout(call)), Some(Outcome::GetImageSubresourceLayout(outcome))) => {
            (call.image.0, outcome.p_layout().map(|it| *it.get()).zip(call.p_subresource().map(|it| *it.get())))
        }
        (Some(Call::GetImageSubresourceLayout2(call)), Some(Outcome::GetImageSubresourceLayout2(outcome))) => {
            let subresource = call.p_subresource().map(|it| it.image_subresource);
            (call.image.0, outcome.p_layout().map(|it| it.subresource_layout).zip(subresource))
        }
        _ => return Ok(()),
    };
    let id = ObjectId::from_raw(image).unwrap_or(ObjectId::NULL);
    let (Some((there, subresource)), Some(pitches)) = (there, performer.replay.linear.find(id)) else { return Ok(()) };
    let device = performer.device(recorded_call)?;
    let handle = vk::Image(performer.handle(recorded_call, image)?);
    let mut here = vk::SubresourceLayout::zeroed();
    driver!(
        device.functions,
        GetImageSubresourceLayout,
        FnGetImageSubresourceLayout(device.handle, handle, vk::Ptr::to(&subresource), out(&mut here))
    );
    pitches.insert(SubresourceMapping { recorded: there, replayed: here });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(offset: u64, size: u64, row_pitch: u64, depth_pitch: u64) -> vk::SubresourceLayout {
        vk::SubresourceLayout { offset, size, row_pitch, depth_pitch, array_pitch: 0 }
    }

    fn pieces(linear_layout: &LinearLayout, bytes: Range<u64>) -> Vec<(u64, u64, u64)> {
        linear_layout.row_mappings(&bytes).iter().map(|it| (it.recorded_offset, it.replay_offset, it.size)).collect()
    }

    #[test]
    fn rows_go_where_they_are_here() {
        let image = LinearLayout::default();
        assert_eq!(pieces(&image, 0..100), []);
        image.insert(SubresourceMapping { recorded: layout(10, 48, 16, 0), replayed: layout(0, 60, 20, 0) });
        assert_eq!(pieces(&image, 0..100), [(10, 0, 16), (26, 20, 16), (42, 40, 16)]);
        // From the middle of a row to the middle of the next.
        assert_eq!(pieces(&image, 20..30), [(20, 10, 6), (26, 20, 4)]);
        // Closer rows: what lies between those of the trace goes nowhere.
        image.insert(SubresourceMapping { recorded: layout(10, 48, 16, 0), replayed: layout(0, 36, 12, 0) });
        assert_eq!(pieces(&image, 0..44), [(10, 0, 12), (26, 12, 12), (42, 24, 2)]);
        assert_eq!(pieces(&image, 23..26), []);
    }

    #[test]
    fn slices_have_a_pitch_of_their_own() {
        let image = LinearLayout { has_slices: true, subresources: Mutex::default() };
        image.insert(SubresourceMapping { recorded: layout(0, 64, 8, 32), replayed: layout(4, 300, 10, 100) });
        assert_eq!(pieces(&image, 28..44), [(28, 38, 4), (32, 104, 8), (40, 114, 4)]);
    }
}
