//! Which bytes of each vertex or instance a draw reads: those of its attributes, not those between them.

use std::ops::Range;

use crate::{Access, Command, CommandBufferId, Hazard, HostStep, OriginKind, Program, ProgramLocation, Region};

/// The bytes that the attributes of a vertex or instance have. It repeats in a buffer with the stride of the binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeBytes {
    stride: u64,
    /// A bit for each unit of [`AttributeBytes::unit`] bytes.
    read_units: u64,
}

const UNITS_MAX: u64 = 48;
/// Bits of a stride in a packed pattern.
const STRIDE_BITS: u32 = 14;

impl AttributeBytes {
    /// The pattern of attributes, given by the offset of their first byte and that behind their last one. None if it
    /// cannot be packed: attributes that reach into the next vertex, large strides, or small ones at odd offsets.
    pub fn new(stride: u64, attributes: impl Iterator<Item = [u64; 2]>) -> Option<AttributeBytes> {
        let mut own = AttributeBytes { stride, read_units: 0 };
        let unit = own.unit();
        if stride == 0 || stride >> STRIDE_BITS != 0 || !stride.is_multiple_of(unit) {
            return None;
        }
        for [start, end] in attributes {
            if end > stride || !start.is_multiple_of(unit) || !end.is_multiple_of(unit) {
                return None;
            }
            own.read_units |= (1 << (end / unit)) - (1 << (start / unit));
        }
        (own.read_units != 0).then_some(own)
    }

    /// Bytes for each bit.
    fn unit(self) -> u64 {
        self.stride.div_ceil(UNITS_MAX).next_power_of_two()
    }

    /// Whether all bytes are read.
    pub fn is_gapless(self) -> bool {
        self.read_units == (1 << (self.stride / self.unit())) - 1
    }

    /// The same pattern for a region that begins at this byte of a vertex, where an attribute begins.
    #[must_use]
    pub fn beginning_at(self, byte: u64) -> AttributeBytes {
        let (units, first) = (self.stride / self.unit(), byte % self.stride / self.unit());
        let read_units = (self.read_units >> first | self.read_units << (units - first)) & ((1 << units) - 1);
        AttributeBytes { read_units, ..self }
    }

    pub fn stride(self) -> u64 {
        self.stride
    }

    /// The bytes that are read of a vertex; attributes without a gap between them are one.
    pub fn attributes(self) -> Vec<Range<u64>> {
        let mut all: Vec<Range<u64>> = Vec::new();
        let starts =
            (0..self.stride / self.unit()).filter(|it| self.read_units >> it & 1 != 0).map(|it| it * self.unit());
        for start in starts {
            match all.last_mut().filter(|it| it.end == start) {
                Some(last) => last.end += self.unit(),
                None => all.push(start..start + self.unit()),
            }
        }
        all
    }

    /// Whether some of these bytes are read. They count from the beginning of the region.
    pub fn reads_any(self, bytes: &Range<u64>) -> bool {
        if bytes.is_empty() || bytes.end - bytes.start >= self.stride {
            return !bytes.is_empty();
        }
        let (unit, first) = (self.unit(), bytes.start - bytes.start % self.stride);
        let elements = [first, first.saturating_add(self.stride)];
        let is_in = |start: u64| start < bytes.end && bytes.start < start.saturating_add(unit);
        let is_read = |number: &u64| self.read_units >> number & 1 != 0;
        (0..UNITS_MAX).filter(is_read).any(|number| elements.iter().any(|it| is_in(it.saturating_add(number * unit))))
    }

    pub(crate) const fn pack(self) -> u64 {
        self.read_units << STRIDE_BITS | self.stride
    }

    pub(crate) const fn unpack(word: u64) -> Option<AttributeBytes> {
        let (stride, read_units) = (word & ((1 << STRIDE_BITS) - 1), word >> STRIDE_BITS);
        if stride == 0 { None } else { Some(AttributeBytes { stride, read_units }) }
    }
}

impl Access {
    /// Whether the access may be to some of these bytes of its buffer. Bytes between the attributes of vertices are in
    /// its region and are not read.
    pub fn may_be_to(&self, bytes: &Range<u64>) -> bool {
        let Region::Buffer(own) = &self.region else { return true };
        let part = own.start.max(bytes.start)..own.end.min(bytes.end);
        !part.is_empty()
            && match self.origin.kind() {
                OriginKind::Attributes(attributes) => {
                    attributes.reads_any(&(part.start - own.start..part.end - own.start))
                }
                _ => true,
            }
    }

    fn has_gaps(&self) -> bool {
        matches!(self.origin.kind(), OriginKind::Attributes(_))
    }
}

/// Whether two commands may access a byte in common, where a hazard between them was found. The engine finds hazards by
/// regions, and the region of vertices includes the bytes between their attributes.
pub fn may_share_bytes(hazard: &Hazard, later: &[Access], earlier: &[Access]) -> bool {
    let Region::Buffer(found) = &hazard.region else { return true };
    fn own<'a>(all: &'a [Access], hazard: &Hazard, found: &Range<u64>, is_write: bool) -> Vec<&'a Access> {
        let is_own = |it: &&Access| it.resource == hazard.resource && it.may_be_in(found);
        all.iter().filter(is_own).filter(|it| is_write_access(it.access) == is_write).collect()
    }
    let [earlier_writes, later_writes] = hazard.kind.writes();
    let (later, earlier) = (own(later, hazard, found, later_writes), own(earlier, hazard, found, earlier_writes));
    // What has another resource in the same memory is not compared.
    if !later.iter().chain(&earlier).any(|it| it.has_gaps()) || later.is_empty() || earlier.is_empty() {
        return true;
    }
    let share = |one: &Access, other: &Access| {
        let (Region::Buffer(own), Region::Buffer(bytes)) = (&one.region, &other.region) else { return true };
        let both = own.start.max(bytes.start).max(found.start)..own.end.min(bytes.end).min(found.end);
        !(one.has_gaps() && other.has_gaps()) && one.may_be_to(&both) && other.may_be_to(&both)
    };
    later.iter().any(|one| earlier.iter().any(|other| share(one, other)))
}

/// Whether a bit of `VkAccessFlags2` is a write.
fn is_write_access(bit: u64) -> bool {
    lavascope_abi::SYNC_ACCESSES.iter().any(|it| it.access == bit && it.name.contains("_WRITE_BIT"))
}

impl Program {
    /// The accesses of an executed command; none of other locations.
    pub fn accesses_at(&self, place: &ProgramLocation) -> &[Access] {
        let find = || {
            let ProgramLocation::Command(at) = place else { return None };
            let HostStep::Submit { batches, .. } = self.steps.get(at.step as usize)? else { return None };
            let mut buffer = *batches.get(at.batch as usize)?.command_buffers.get(at.primary as usize)?;
            let (last, way) = at.path.split_last()?;
            let command = |buffer: CommandBufferId, index: u32| {
                self.command_buffers.get(buffer.0 as usize)?.commands.get(index as usize)
            };
            for step in way.chunks_exact(2) {
                let Command::Execute(buffers) = command(buffer, step[0])? else { return None };
                buffer = *buffers.get(step[1] as usize)?;
            }
            if let Command::Action(accesses) = command(buffer, *last)? { Some(accesses.as_slice()) } else { None }
        };
        find().unwrap_or_default()
    }
}

impl Access {
    fn may_be_in(&self, bytes: &Range<u64>) -> bool {
        matches!(&self.region, Region::Buffer(own) if own.start < bytes.end && bytes.start < own.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_abi::AccessFlags2;

    use crate::{HazardKind, Origin, ResourceId};

    fn pattern(stride: u64, attributes: &[[u64; 2]]) -> Option<AttributeBytes> {
        AttributeBytes::new(stride, attributes.iter().copied())
    }

    /// Every pattern against a list of its bytes.
    #[test]
    fn the_bytes_of_attributes_are_read_and_no_others() {
        for (stride, attributes) in [
            (16, vec![[0, 4]]),
            (16, vec![[4, 8], [12, 16]]),
            (48, vec![[1, 2], [47, 48]]),
            (64, vec![[12, 24], [32, 36]]),
            (96, vec![[0, 12]]),
            (1024, vec![[32, 64], [512, 1024]]),
        ] {
            let own = pattern(stride, &attributes).expect("a pattern");
            assert_eq!(AttributeBytes::unpack(own.pack()), Some(own));
            let ranges: Vec<Range<u64>> = attributes.iter().map(|it| it[0]..it[1]).collect();
            assert_eq!((own.stride(), own.attributes()), (stride, ranges));
            let begin = attributes[0][0];
            let shifted = own.beginning_at(begin);
            let is_read = |byte: u64| attributes.iter().any(|it| (it[0]..it[1]).contains(&(byte % stride)));
            for start in 0..2 * stride {
                for length in [1, 3, stride / 2, stride - 1, stride] {
                    let expected = (start..start + length).any(is_read);
                    assert_eq!(own.reads_any(&(start..start + length)), expected, "{own:?} {start} {length}");
                    let expected = (start + begin..start + begin + length).any(is_read);
                    assert_eq!(shifted.reads_any(&(start..start + length)), expected, "{shifted:?} {start} {length}");
                }
            }
        }
        assert!(pattern(16, &[[0, 8], [8, 16]]).is_some_and(AttributeBytes::is_gapless));
        assert!(!pattern(16, &[[0, 8], [8, 12]]).is_some_and(AttributeBytes::is_gapless));
    }

    #[test]
    fn what_cannot_be_packed_is_none() {
        assert_eq!(pattern(0, &[[0, 4]]), None, "all vertices are one");
        assert_eq!(pattern(16, &[[12, 20]]), None, "into the next vertex");
        assert_eq!(pattern(64, &[[1, 4]]), None, "no multiple of two");
        assert_eq!(pattern(1 << 14, &[[0, 512]]), None, "too large");
        assert_eq!(pattern(16, &[]), None, "no attribute");
    }

    #[test]
    fn commands_that_share_no_byte_are_no_hazard() {
        let origin = Origin::attributes(pattern(16, &[[0, 8]]).expect("a pattern"));
        let (read_bit, write_bit) = (AccessFlags2::VERTEX_ATTRIBUTE_READ.0, AccessFlags2::TRANSFER_WRITE.0);
        let fetch = Access { origin, ..Access::new(ResourceId(1), Region::Buffer(32..72), 1, read_bit) };
        let write = |bytes: Range<u64>| Access::new(ResourceId(1), Region::Buffer(bytes), 2, write_bit);
        let found = |bytes: Range<u64>, kind| Hazard {
            kind,
            at: ProgramLocation::Step(1),
            prior: ProgramLocation::Step(0),
            resource: ResourceId(1),
            region: Region::Buffer(bytes),
        };
        let share = |region: Range<u64>, writes: &[Access]| {
            let fetches = [fetch.clone()];
            let both =
                [(HazardKind::ReadAfterWrite, &fetches[..], writes), (HazardKind::WriteAfterRead, writes, &fetches)];
            let all = both.map(|(kind, later, earlier)| may_share_bytes(&found(region.clone(), kind), later, earlier));
            assert_eq!(all[0], all[1]);
            all[0]
        };
        assert!(!share(40..48, &[write(40..48)]));
        assert!(share(40..49, &[write(40..49)]));
        assert!(!share(40..64, &[write(40..48), write(56..64)]));
        assert!(share(40..65, &[write(40..48), write(56..65)]));
        assert!(!share(40..48, &[write(0..100)]), "the hazard is only there");
        assert!(share(40..48, &[Access { resource: ResourceId(2), ..write(40..48) }]), "memory of another name");
    }
}
