//! Vertex and index buffers: the bound ranges, and the bytes that a draw reads.

use std::collections::BTreeMap;
use std::ops::Range;

use lavascope_abi as vk;
use lavascope_record::View;
use lavascope_sync_ir::{Access, AttributeBytes, Certainty, Origin, ResourceId};

use crate::command::stage_access::{INDEX_READ, StageAccess, VERTEX_READ};
use crate::resource::format;

/// The vertex input state.
#[derive(Clone, Debug, Default)]
pub(crate) struct VertexInput {
    pub(crate) bindings: Vec<VertexBinding>,
    pub(crate) attributes: Vec<VertexAttribute>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexBinding {
    pub(crate) number: u32,
    pub(crate) stride: u32,
    /// Per instance: the number of instances that share an element; zero means that all share one. None is per vertex.
    pub(crate) divisor: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct VertexAttribute {
    pub(crate) location: u32,
    pub(crate) binding: u32,
    pub(crate) bytes: [u64; 2],
}

/// A buffer bound to a binding.
#[derive(Clone, Debug)]
pub(crate) struct BoundVertexBuffer {
    pub(crate) resource: ResourceId,
    pub(crate) bytes: Range<u64>,
    /// The stride, if the bind command sets it.
    pub(crate) stride: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct BoundIndexBuffer {
    pub(crate) buffer: u64,
    pub(crate) resource: ResourceId,
    pub(crate) bytes: Range<u64>,
    /// Size of an index in bytes.
    pub(crate) size: u64,
}

/// Where the stride comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrideSource {
    Input,
    /// The bind command, if it sets one.
    Bound,
}

/// The elements that a draw reads from a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FetchedElements {
    Single(Range<u64>),
    /// Ordered ranges with gaps between them.
    Multiple(Vec<Range<u64>>),
    /// Some elements of this range.
    Within(Range<u64>),
    Unknown,
}

/// More ranges than this are merged into one, of which some elements are read.
const PARTS_MAX: usize = 64;

impl FetchedElements {
    pub(crate) fn from_first_and_count(first: u32, count: u32) -> FetchedElements {
        FetchedElements::Single(u64::from(first)..u64::from(first) + u64::from(count))
    }

    /// From first elements and counts of several draws.
    pub(crate) fn from_ranges(all: impl Iterator<Item = (u32, u32)>) -> FetchedElements {
        FetchedElements::from_parts(
            all.map(|(first, count)| u64::from(first)..u64::from(first) + u64::from(count)).collect(),
        )
    }

    pub(crate) fn from_parts(mut parts: Vec<Range<u64>>) -> FetchedElements {
        parts.retain(|it| !it.is_empty());
        parts.sort_unstable_by_key(|it| it.start);
        parts.dedup_by(|next, last| {
            let is_joined = next.start <= last.end;
            if is_joined {
                last.end = last.end.max(next.end);
            }
            is_joined
        });
        match parts.len() {
            0 => FetchedElements::Single(0..0),
            1 => FetchedElements::Single(parts.swap_remove(0)),
            2..=PARTS_MAX => FetchedElements::Multiple(parts),
            count => FetchedElements::Within(parts[0].start..parts[count - 1].end),
        }
    }

    /// The range, if it is known and the only one.
    pub(crate) fn single_range(&self) -> Option<Range<u64>> {
        match self {
            FetchedElements::Single(part) => Some(part.clone()),
            FetchedElements::Multiple(_) | FetchedElements::Within(_) | FetchedElements::Unknown => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, FetchedElements::Single(part) if part.is_empty())
    }

    /// The ranges, with how certain they are; none if they are unknown.
    fn ranges(&self) -> Option<(&[Range<u64>], Certainty)> {
        match self {
            FetchedElements::Single(part) => Some((std::slice::from_ref(part), Certainty::Certain)),
            FetchedElements::Multiple(parts) => Some((parts, Certainty::Certain)),
            FetchedElements::Within(part) => Some((std::slice::from_ref(part), Certainty::Anywhere)),
            FetchedElements::Unknown => None,
        }
    }

    /// Adds the reads of ranges, or a read somewhere in `bytes`.
    fn add_reads(
        &self,
        usage: StageAccess,
        resource: ResourceId,
        bytes: &Range<u64>,
        bytes_of: impl Fn(&Range<u64>) -> Range<u64>,
        found: &mut Vec<Access>,
    ) {
        let inside = |range: Range<u64>| {
            let at = |it: u64| bytes.start.saturating_add(it).min(bytes.end);
            at(range.start)..at(range.end)
        };
        match self.ranges() {
            Some((parts, certainty)) => {
                let parts = parts.iter().filter(|it| !it.is_empty()).map(|it| inside(bytes_of(it)));
                let access = |it| Access { certainty, ..usage.access_to_bytes(resource, it) };
                found.extend(parts.filter(|it| !it.is_empty()).map(access));
            }
            None if bytes.is_empty() => {}
            None => {
                found.push(Access { certainty: Certainty::Anywhere, ..usage.access_to_bytes(resource, bytes.clone()) })
            }
        }
    }
}

impl VertexInput {
    pub(crate) fn from_create_info(create_info: View<'_, vk::PipelineVertexInputStateCreateInfo>) -> VertexInput {
        let divisors = create_info.chained::<vk::PipelineVertexInputDivisorStateCreateInfo>();
        let divisor_of = |number: u32| {
            let all = divisors.map(|it| it.p_vertex_binding_divisors());
            all.iter().flat_map(|it| it.iter()).find(|it| it.binding == number).map_or(1, |it| it.divisor)
        };
        let binding = |binding_description: View<'_, vk::VertexInputBindingDescription>| VertexBinding {
            number: binding_description.binding,
            stride: binding_description.stride,
            divisor: (binding_description.input_rate == vk::VertexInputRate::INSTANCE)
                .then(|| divisor_of(binding_description.binding)),
        };
        let attribute = |attribute_description: View<'_, vk::VertexInputAttributeDescription>| {
            VertexAttribute::new(
                attribute_description.location,
                attribute_description.binding,
                attribute_description.format,
                attribute_description.offset,
            )
        };
        VertexInput {
            bindings: create_info.p_vertex_binding_descriptions().iter().map(binding).collect(),
            attributes: create_info.p_vertex_attribute_descriptions().iter().map(attribute).collect(),
        }
    }

    /// As set by `vkCmdSetVertexInputEXT`.
    pub(crate) fn from_command(ext_params: View<'_, vk::CmdSetVertexInputEXTParams>) -> VertexInput {
        let binding = |binding_description: View<'_, vk::VertexInputBindingDescription2EXT>| VertexBinding {
            number: binding_description.binding,
            stride: binding_description.stride,
            divisor: (binding_description.input_rate == vk::VertexInputRate::INSTANCE)
                .then_some(binding_description.divisor),
        };
        let attribute = |attribute_description: View<'_, vk::VertexInputAttributeDescription2EXT>| {
            VertexAttribute::new(
                attribute_description.location,
                attribute_description.binding,
                attribute_description.format,
                attribute_description.offset,
            )
        };
        VertexInput {
            bindings: ext_params.p_vertex_binding_descriptions().iter().map(binding).collect(),
            attributes: ext_params.p_vertex_attribute_descriptions().iter().map(attribute).collect(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bindings.is_empty()
    }

    /// Adds the vertex reads of a draw. `inputs` has a bit for each location that the shader reads.
    pub(crate) fn add_accesses(
        &self,
        bound: &BTreeMap<u32, BoundVertexBuffer>,
        strides: StrideSource,
        inputs: u64,
        (vertices, instances): (&FetchedElements, &FetchedElements),
        found: &mut Vec<Access>,
    ) {
        for (divisor, read) in self.fetches(bound, strides, inputs) {
            match divisor {
                None => read.add_accesses(vertices, found),
                Some(divisor) => read.add_accesses(&per_instance(instances, divisor), found),
            }
        }
    }

    /// The reads from bound buffers, each with its divisor if it is per instance.
    pub(crate) fn fetches(
        &self,
        bound: &BTreeMap<u32, BoundVertexBuffer>,
        strides: StrideSource,
        inputs: u64,
    ) -> impl Iterator<Item = (Option<u32>, VertexFetch)> {
        self.bindings.iter().filter_map(move |binding| {
            let is_read = |vertex_attribute: &&VertexAttribute| {
                vertex_attribute.binding == binding.number
                    && (vertex_attribute.location >= 64 || inputs >> vertex_attribute.location & 1 != 0)
            };
            let read = || self.attributes.iter().filter(is_read).map(|it| it.bytes);
            let inner = read().reduce(|one, two| [one[0].min(two[0]), one[1].max(two[1])])?;
            let buffer = bound.get(&binding.number)?;
            let of_bound = buffer.stride.filter(|_| strides == StrideSource::Bound);
            let stride = of_bound.unwrap_or(u64::from(binding.stride));
            let gaps = if is_dense(read(), stride) { Gaps::NONE } else { Gaps::between(read(), stride, inner) };
            let elements = VertexFetch { resource: buffer.resource, bytes: buffer.bytes.clone(), stride, inner, gaps };
            Some((binding.divisor, elements))
        })
    }
}

/// The elements of a bound vertex buffer.
#[derive(Clone, Debug)]
pub(crate) struct VertexFetch {
    resource: ResourceId,
    bytes: Range<u64>,
    stride: u64,
    /// From the first to the last byte that is read in each element.
    inner: [u64; 2],
    gaps: Gaps,
}

/// The bytes of an element that no attribute has.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    /// Of a region that begins at the first attribute of an element.
    from_attribute: Origin,
    /// Of a region that begins at an element.
    from_element: Origin,
    /// Whether there are some that no origin describes.
    is_unknown: bool,
}

impl Gaps {
    const NONE: Gaps = Gaps { from_attribute: Origin::NONE, from_element: Origin::NONE, is_unknown: false };

    #[cold]
    fn between(attributes: impl Iterator<Item = [u64; 2]>, stride: u64, [low, high]: [u64; 2]) -> Gaps {
        // With a stride of zero, there is one element.
        let stride = if stride == 0 { high.next_multiple_of(4) } else { stride };
        match AttributeBytes::new(stride, attributes) {
            Some(read) if read.is_gapless() => Gaps::NONE,
            Some(read) => Gaps {
                from_attribute: Origin::attributes(read.beginning_at(low)),
                from_element: Origin::attributes(read),
                is_unknown: false,
            },
            None => Gaps { is_unknown: true, ..Gaps::NONE },
        }
    }

    fn apply(self, fetch: Access, origin: Origin) -> Access {
        let is_unsure = self.is_unknown && fetch.certainty == Certainty::Certain;
        let certainty = if is_unsure { Certainty::Somewhere } else { fetch.certainty };
        Access { origin, certainty, ..fetch }
    }
}

/// Whether the attributes follow one another without gaps, as most do.
#[inline]
fn is_dense(attributes: impl Iterator<Item = [u64; 2]>, stride: u64) -> bool {
    let (mut first, mut end) = (u64::MAX, 0);
    for attribute in attributes {
        if first == u64::MAX {
            [first, end] = attribute;
        } else if attribute[0] == end {
            end = attribute[1];
        } else {
            return false;
        }
    }
    end.saturating_sub(first) >= stride
}

impl VertexFetch {
    /// Adds the reads of some elements.
    #[inline]
    pub(crate) fn add_accesses(&self, taken: &FetchedElements, found: &mut Vec<Access>) {
        let [low, high] = self.inner;
        let at = |element: u64, byte: u64| element.saturating_mul(self.stride).saturating_add(byte);
        let bytes_of = |part: &Range<u64>| at(part.start, low)..at(part.end - 1, high);
        let origin = match taken {
            FetchedElements::Unknown => self.gaps.from_element,
            _ => self.gaps.from_attribute,
        };
        let known = found.len();
        taken.add_reads(VERTEX_READ, self.resource, &self.bytes, bytes_of, found);
        if origin != Origin::NONE || self.gaps.is_unknown {
            found[known..].iter_mut().for_each(|it| *it = self.gaps.apply(it.clone(), origin));
        }
    }
}

impl VertexAttribute {
    fn new(location: u32, binding: u32, of: vk::Format, offset: u32) -> VertexAttribute {
        let start = u64::from(offset);
        VertexAttribute { location, binding, bytes: [start, start + format::block_size(of)] }
    }
}

/// The elements for some instances. The divisor does not apply to the first instance.
fn per_instance(instances: &FetchedElements, divisor: u32) -> FetchedElements {
    match instances {
        FetchedElements::Multiple(_) | FetchedElements::Within(_) | FetchedElements::Unknown => {
            FetchedElements::Unknown
        }
        FetchedElements::Single(part) if part.is_empty() => FetchedElements::Single(0..0),
        FetchedElements::Single(part) => FetchedElements::Single(divided(part, divisor)),
    }
}

fn divided(instances: &Range<u64>, divisor: u32) -> Range<u64> {
    let count = instances.end - instances.start;
    let elements = if divisor == 0 { count.min(1) } else { count.div_ceil(u64::from(divisor)) };
    instances.start..instances.start + elements
}

/// The elements for the instances of one draw.
pub(crate) fn instance_elements([first, count]: [u32; 2], divisor: u32) -> Range<u64> {
    divided(&(u64::from(first)..u64::from(first) + u64::from(count)), divisor)
}

impl BoundIndexBuffer {
    pub(crate) fn add_accesses(&self, indices: &FetchedElements, found: &mut Vec<Access>) {
        let at = |it: u64| it.saturating_mul(self.size);
        indices.add_reads(INDEX_READ, self.resource, &self.bytes, |it| at(it.start)..at(it.end), found);
    }
}

/// Size of an index in bytes; none for a type without indices.
pub(crate) fn index_size(ty: vk::IndexType) -> Option<u64> {
    match ty {
        vk::IndexType::UINT16 => Some(2),
        vk::IndexType::UINT32 => Some(4),
        vk::IndexType::UINT8 => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use lavascope_sync_ir::{OriginKind, Region};

    use super::*;

    /// The reads of a draw from one binding with these attributes.
    fn reads(attributes: &[[u64; 2]], stride: u32, elements: &FetchedElements) -> Vec<Access> {
        let attribute = |(location, bytes): (u32, &[u64; 2])| VertexAttribute { location, binding: 0, bytes: *bytes };
        let input = VertexInput {
            bindings: vec![VertexBinding { number: 0, stride, divisor: None }],
            attributes: (0..).zip(attributes).map(attribute).collect(),
        };
        let buffer = BoundVertexBuffer { resource: ResourceId(0), bytes: 64..4096, stride: None };
        let (bound, mut found) = (BTreeMap::from([(0, buffer)]), Vec::new());
        let both = (elements, &FetchedElements::Single(0..1));
        input.add_accesses(&bound, StrideSource::Input, u64::MAX, both, &mut found);
        found
    }

    /// Which bytes of the buffer one of them reads.
    fn read_bytes(read: &Access) -> Vec<u64> {
        let Region::Buffer(bytes) = &read.region else { panic!("a buffer") };
        bytes.clone().filter(|it| read.may_be_to(&(*it..it + 1))).collect()
    }

    #[test]
    fn only_the_bytes_of_attributes_are_read() {
        let three = FetchedElements::Single(2..5);
        for (stride, attributes) in [
            (16, vec![[4, 8]]),
            (16, vec![[12, 16], [0, 4]]),
            (24, vec![[4, 12], [8, 16]]),
            (16, vec![[0, 8], [8, 16]]),
        ] {
            let found = reads(&attributes, stride, &three);
            let [read] = &found[..] else { panic!("one binding: {found:?}") };
            let is_read = |it: &u64| attributes.iter().any(|own| (own[0]..own[1]).contains(it));
            let of_element = |element: u64| {
                let first = 64 + element * u64::from(stride);
                (0..u64::from(stride)).filter(is_read).map(move |it| first + it).collect::<Vec<_>>()
            };
            assert_eq!(read_bytes(read), (2..5).flat_map(of_element).collect::<Vec<_>>(), "{attributes:?}");
            assert_eq!(read.certainty, Certainty::Certain);
            // Of unknown vertices, too.
            let unknown = reads(&attributes, stride, &FetchedElements::Unknown);
            assert_eq!(read_bytes(&unknown[0])[..2], of_element(0)[..2], "{attributes:?}");
            assert_eq!(unknown[0].certainty, Certainty::Anywhere);
        }
    }

    #[test]
    fn attributes_without_gaps_need_no_pattern() {
        let two = FetchedElements::Single(0..2);
        for (stride, attributes) in [(8, vec![[0, 8]]), (8, vec![[4, 8], [0, 4]]), (8, vec![[0, 12]])] {
            let found = reads(&attributes, stride, &two);
            assert_eq!((found[0].origin.kind(), found[0].certainty), (OriginKind::Command, Certainty::Certain));
        }
        // One that is described by no pattern is read somewhere.
        let found = reads(&[[4, 20]], 20 << 10, &two);
        assert_eq!((found[0].origin.kind(), found[0].certainty), (OriginKind::Command, Certainty::Somewhere));
        // All vertices are the same one.
        let found = reads(&[[4, 8], [12, 16]], 0, &two);
        assert_eq!(read_bytes(&found[0]), [68, 69, 70, 71, 76, 77, 78, 79]);
    }
}
