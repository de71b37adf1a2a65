//! A shader that checks the instances of a top-level acceleration structure before it is built.
//!
//! The references of instances are known only when the build runs. So a dispatch before it reports the references that
//! lead to no bottom-level structure, and sets them to zero: such an instance is inactive, and the build is valid.

/// Invocations of a workgroup; each checks one instance.
pub const WORKGROUP_SIZE: u32 = 64;
/// Bytes of push constants.
pub const PUSH_BYTES: u32 = 48;
/// The same of the shader with everything bound.
pub const BOUND_PUSH_BYTES: u32 = 16;

/// The parameters of the shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstanceCheck {
    /// The address of the first instance, or of the first address of one.
    pub instances: u64,
    pub has_addresses: bool,
    pub count: u32,
    /// The address of what [`reference_table`] gives.
    pub valid_references: u64,
    pub valid_count: u32,
    /// The address of [`result_words`] words, zeros at the beginning.
    pub results: u64,
    /// The largest number of instances that are reported.
    pub max_results: u32,
    /// The address where the device finds how many instances there are, at most `count`, and how many bytes behind
    /// `instances` they begin; zero if that is known.
    pub range: u64,
}

/// The parameters of the shader with descriptors: instances at binding 0, known references at 1, findings at 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundInstanceCheck {
    /// Where the first instance begins.
    pub first_word: u32,
    pub count: u32,
    pub valid_count: u32,
    /// The largest number of instances that are reported.
    pub max_results: u32,
}

/// An instance whose reference leads to no structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidInstance {
    pub instance: u32,
    pub reference: u64,
}

/// The words of the shader.
pub fn shader_words() -> Vec<u32> {
    words_of(include_bytes!("../../shaders/instances.comp.spv"))
}

/// The words of the shader with everything bound, for instances that have no address.
pub fn bound_shader_words() -> Vec<u32> {
    words_of(include_bytes!("../../shaders/instances_bound.comp.spv"))
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it)).collect()
}

impl InstanceCheck {
    /// The push constants.
    pub fn push_constants(&self) -> [u32; PUSH_BYTES as usize / 4] {
        let [[a, b], [c, d], [e, f], [g, h]] =
            [self.instances, self.valid_references, self.results, self.range].map(halves);
        [a, b, c, d, e, f, self.count, self.valid_count, u32::from(self.has_addresses), self.max_results, g, h]
    }
}

impl BoundInstanceCheck {
    /// The push constants.
    pub fn push_constants(&self) -> [u32; BOUND_PUSH_BYTES as usize / 4] {
        [self.first_word, self.count, self.valid_count, self.max_results]
    }
}

/// The references that may be used, for the shader, and how many there are.
pub fn reference_table(references: impl IntoIterator<Item = u64>) -> (Vec<u32>, u32) {
    let mut all: Vec<u64> = references.into_iter().collect();
    all.sort_unstable();
    all.dedup();
    (all.iter().copied().flat_map(halves).collect(), all.len() as u32)
}

/// The number of words of the findings.
pub fn result_words(room: u32) -> u32 {
    room.saturating_mul(3).saturating_add(1)
}

/// How many instances are wrong, and the first ones in their order. The words may be anything.
pub fn read_results(words: &[u32]) -> (u32, Vec<InvalidInstance>) {
    let count = words.first().copied().unwrap_or(0);
    let invalid = words.get(1..).unwrap_or_default().as_chunks::<3>().0.iter().take(count as usize);
    let one = |it: &[u32; 3]| InvalidInstance { instance: it[0], reference: u64::from(it[1]) | u64::from(it[2]) << 32 };
    let mut all: Vec<InvalidInstance> = invalid.map(one).collect();
    all.sort_unstable_by_key(|it| (it.instance, it.reference));
    (count, all)
}

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_sorted_and_reported_once() {
        assert_eq!(reference_table([0x2_0000_0001, 7, 7, 0x1_ffff_ffff]), (vec![7, 0, u32::MAX, 1, 1, 2], 3));
        assert_eq!(reference_table([]), (vec![], 0));
    }

    #[test]
    fn what_was_found_is_read_as_far_as_it_was_written() {
        let wrong = |instance, reference| InvalidInstance { instance, reference };
        assert_eq!(read_results(&[2, 9, 1, 0, 3, 5, 1, 0, 0, 0]), (2, vec![wrong(3, 0x1_0000_0005), wrong(9, 1)]));
        assert_eq!(read_results(&[5, 9, 1, 0]), (5, vec![wrong(9, 1)]));
        assert_eq!(read_results(&[0, 9, 1, 0]), (0, vec![]));
        assert_eq!(read_results(&[]), (0, vec![]));
    }
}
