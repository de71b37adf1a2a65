//! Values that decide what a shader accesses and are known before it runs: push constants, inline uniform blocks, and
//! the launch size.
//!
//! Contents of other memory are not used: host writes to mapped memory are not in the records, and writes by commands
//! happen only at execution.

use std::ops::Range;

use lavascope_spirv::{AccessBytes, DescriptorElement, InvocationBytes, OffsetTerm, Quantity, ValueSource};
use lavascope_sync_ir::Certainty;

use crate::command::bound_state::{BoundPipelineState, SetRef};
use crate::device::TrackedDevice;
use crate::shader::descriptor_set::TrackedDescriptorSet;
use crate::shader::launch::{Launch, is_independent};

/// Push constants in words; none if nothing was pushed.
#[derive(Clone, Debug, Default)]
pub(crate) struct PushConstants {
    words: Vec<Option<u32>>,
}

/// Larger than any device supports for push constants.
const PUSHED_MAX: usize = 1 << 16;
/// Shaders compute offsets in 32 bits. A larger value may have wrapped around.
const OFFSET_END: i128 = 1 << 32;
const VALUES_END: u64 = 1 << 32;

impl PushConstants {
    /// Offset and size are multiples of four.
    pub(crate) fn write(&mut self, offset: u32, values: &[u8]) {
        let first = offset as usize / 4;
        let end = first + values.len() / 4;
        if end > PUSHED_MAX / 4 {
            return;
        }
        self.words.resize(self.words.len().max(end), None);
        for (slot, bytes) in self.words[first..end].iter_mut().zip(values.as_chunks().0) {
            *slot = Some(u32::from_le_bytes(*bytes));
        }
    }

    fn byte(&self, at: u64) -> Option<u8> {
        let word = (*self.words.get(usize::try_from(at / 4).ok()?)?)?;
        Some(word.to_le_bytes()[at as usize % 4])
    }
}

/// The values that are known when a shader runs.
pub(crate) struct ShaderInputValues<'a> {
    pub(crate) device: &'a TrackedDevice,
    pub(crate) point: &'a BoundPipelineState,
    pub(crate) pushed: &'a PushConstants,
    pub(crate) launch: &'a Launch,
    pub(crate) workgroup: [u32; 3],
}

impl ShaderInputValues<'_> {
    /// The value at a source.
    pub(crate) fn read(&self, place: &ValueSource) -> Option<u64> {
        match place {
            ValueSource::PushConstant { bytes } => read_integer(*bytes, |at| self.pushed.byte(at)),
            ValueSource::Descriptor { set, binding, element: DescriptorElement::Constant(0), bytes } => {
                let block = self.set(*set)?.blocks.get(binding)?;
                read_integer(*bytes, |at| block.get(usize::try_from(at).ok()?).copied())
            }
            ValueSource::Descriptor { .. } | ValueSource::Address { .. } => None,
        }
    }

    fn set(&self, index: u32) -> Option<&TrackedDescriptorSet> {
        match &self.point.sets.get(index as usize)?.as_ref()?.set {
            SetRef::Pushed(set) => Some(set),
            SetRef::Handle(handle) => self.device.sets.get(*handle),
            SetRef::InMemory(..) => None,
        }
    }

    /// The bytes that all invocations together access, and how certain they are.
    pub(crate) fn accessed_bytes(
        &self,
        bytes: &Range<u64>,
        each: Option<&InvocationBytes>,
        certainty: Certainty,
    ) -> (Range<u64>, Certainty) {
        let Some(each) = each else { return (bytes.clone(), certainty) };
        limited_bytes(bytes, each, self.launch, certainty, |it| self.term_values(it))
    }

    /// Prepares the bytes that the launch size determines at submission; none if that is not sufficient.
    pub(crate) fn launched_bytes(&self, bytes: &Range<u64>, each: &InvocationBytes) -> Option<LaunchedBytes> {
        let mut each = each.clone();
        let mut start = Some(each.start);
        let is_in_memory = |term: &OffsetTerm| match term.quantity {
            Quantity::BuiltIn { built_in, .. } => self.launch.is_in_memory(built_in),
            Quantity::Read(_) => false,
        };
        if !each.terms.iter().any(is_in_memory) {
            return None;
        }
        each.terms.retain(|term| {
            let Quantity::Read(place) = &term.quantity else { return true };
            let value = self.read(place).and_then(|it| i64::try_from(it).ok()?.checked_mul(term.factor));
            start = start.zip(value).and_then(|(start, value)| start.checked_add(value));
            false
        });
        each.start = start?;
        Some(LaunchedBytes { bytes: bytes.clone(), each, workgroup: self.workgroup })
    }

    fn term_values(&self, term: &OffsetTerm) -> Option<Range<u64>> {
        match &term.quantity {
            Quantity::BuiltIn { built_in, component } => self.launch.values(*built_in, *component, self.workgroup),
            Quantity::Read(place) => self.read(place).map(|it| it..it.saturating_add(1)),
        }
    }
}

/// Bytes that depend on the launch size.
#[derive(Clone, Debug)]
pub(crate) struct LaunchedBytes {
    bytes: Range<u64>,
    each: InvocationBytes,
    workgroup: [u32; 3],
}

impl LaunchedBytes {
    /// The bytes for a launch, and how certain they are; none if nothing is launched.
    pub(crate) fn of_launch(&self, launch: &Launch, certainty: Certainty) -> Option<(Range<u64>, Certainty)> {
        let values = |term: &OffsetTerm| match term.quantity {
            Quantity::BuiltIn { built_in, component } => launch.values(built_in, component, self.workgroup),
            Quantity::Read(_) => None,
        };
        (!launch.is_empty()).then(|| limited_bytes(&self.bytes, &self.each, launch, certainty, values))
    }
}

/// The bytes within a range that all invocations together access, and how certain they are.
fn limited_bytes(
    bytes: &Range<u64>,
    each: &InvocationBytes,
    launch: &Launch,
    certainty: Certainty,
    values: impl Fn(&OffsetTerm) -> Option<Range<u64>>,
) -> (Range<u64>, Certainty) {
    let Some((known, is_all)) = all_invocations(each, values) else {
        let is_in_memory = |term: &OffsetTerm| match term.quantity {
            Quantity::BuiltIn { built_in, .. } => launch.is_in_memory(built_in),
            Quantity::Read(_) => false,
        };
        let is_unread = each.terms.iter().any(is_in_memory);
        return (bytes.clone(), if is_unread { certainty.anywhere() } else { certainty });
    };
    let start = known.start.max(bytes.start);
    let span = start..known.end.min(bytes.end).max(start);
    match certainty {
        Certainty::Somewhere if is_all => (span, Certainty::Certain),
        other => (span, other),
    }
}

/// The range from the first to the last byte of all invocations, and whether all bytes between are accessed.
fn all_invocations(
    each: &InvocationBytes,
    values: impl Fn(&OffsetTerm) -> Option<Range<u64>>,
) -> Option<(Range<u64>, bool)> {
    let (mut low, mut high) = (i128::from(each.start), i128::from(each.start));
    let mut steps: Vec<(u128, u128)> = Vec::new();
    for term in &each.terms {
        let values = values(term).filter(|it| !it.is_empty() && it.end <= VALUES_END)?;
        let ends = [values.start, values.end - 1].map(|it| i128::from(it) * i128::from(term.factor));
        low += ends[0].min(ends[1]);
        high += ends[0].max(ends[1]);
        steps.push((u128::from(term.factor.unsigned_abs()), u128::from(values.end - 1 - values.start)));
    }
    if low < 0 || high >= OFFSET_END {
        return None;
    }
    steps.sort_unstable();
    // A step larger than the bytes covered so far leaves gaps.
    let covered = steps.iter().try_fold(u128::from(each.size), |covered, (step, count)| {
        (*count == 0 || *step <= covered).then_some(covered + step * count)
    });
    let is_all = covered.is_some() && is_independent(&each.terms);
    Some((low as u64..(high as u64).saturating_add(each.size), is_all))
}

/// An integer of up to eight bytes, in little-endian order.
fn read_integer(bytes: AccessBytes, byte: impl Fn(u64) -> Option<u8>) -> Option<u64> {
    let size = bytes.end?.checked_sub(bytes.start)?;
    if !bytes.is_exact || size > 8 {
        return None;
    }
    (0..size).try_fold(0, |all, at| Some(all | u64::from(byte(bytes.start + at)?) << (8 * at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLOBAL_INVOCATION_ID: u32 = 28;

    fn bytes(start: u64, end: u64) -> AccessBytes {
        AccessBytes { start, end: Some(end), is_exact: true }
    }

    fn x(factor: i64) -> OffsetTerm {
        OffsetTerm { quantity: Quantity::BuiltIn { built_in: GLOBAL_INVOCATION_ID, component: 0 }, factor }
    }

    fn y(factor: i64) -> OffsetTerm {
        OffsetTerm { quantity: Quantity::BuiltIn { built_in: GLOBAL_INVOCATION_ID, component: 1 }, factor }
    }

    fn pushed(start: u64, factor: i64) -> OffsetTerm {
        let place = ValueSource::PushConstant { bytes: bytes(start, start + 4) };
        OffsetTerm { quantity: Quantity::Read(place), factor }
    }

    /// Eight groups of 4 by 1 invocations, in two rows.
    fn span(start: i64, terms: Vec<OffsetTerm>, size: u64) -> (Range<u64>, Certainty) {
        let mut constants = PushConstants::default();
        constants.write(4, &100_u32.to_le_bytes());
        let (device, point) = (TrackedDevice::default(), BoundPipelineState::default());
        let launch = Launch::groups([0; 3], [4, 2, 1]);
        let numbers = ShaderInputValues {
            device: &device,
            point: &point,
            pushed: &constants,
            launch: &launch,
            workgroup: [4, 1, 1],
        };
        numbers.accessed_bytes(&(0..1 << 20), Some(&InvocationBytes { start, terms, size }), Certainty::Somewhere)
    }

    #[test]
    fn invocations_side_by_side_access_all_of_their_bytes() {
        assert_eq!(span(8, vec![x(4)], 4), (8..8 + 64, Certainty::Certain));
        assert_eq!(span(8, vec![x(8)], 4), (8..8 + 124, Certainty::Somewhere));
        assert_eq!(span(0, vec![x(4), y(64)], 4), (0..128, Certainty::Certain));
        assert_eq!(span(0, vec![x(4), y(256)], 4), (0..320, Certainty::Somewhere));
        assert_eq!(span(60, vec![x(-4)], 4), (0..64, Certainty::Certain));
    }

    #[test]
    fn numbers_that_were_pushed_count_and_others_leave_the_range_open() {
        assert_eq!(span(0, vec![pushed(4, 4), x(4)], 4), (400..464, Certainty::Certain));
        assert_eq!(span(0, vec![pushed(0, 4)], 4), (0..1 << 20, Certainty::Somewhere));
        assert_eq!(span(-4, vec![x(4)], 4), (0..1 << 20, Certainty::Somewhere), "it wraps around");
        assert_eq!(span(0, vec![x(i64::MIN), y(i64::MAX)], u64::MAX), (0..1 << 20, Certainty::Somewhere));
    }

    #[test]
    fn a_number_is_put_together_from_what_was_pushed_of_it() {
        let mut constants = PushConstants::default();
        constants.write(0, &[1, 2, 3, 4]);
        let read = |from: &PushConstants, start, end| read_integer(bytes(start, end), |at| from.byte(at));
        assert_eq!((read(&constants, 1, 3), read(&constants, 0, 8)), (Some(0x0302), None));
        constants.write(4, &[5, 0, 0, 0]);
        assert_eq!(read(&constants, 0, 8), Some(0x5_0403_0201));
        constants.write(u32::MAX - 3, &[0; 4]);
        assert_eq!(read(&constants, 0, 4), Some(0x0403_0201));
    }
}
