//! The tables that the host writes for instrumented shaders: which descriptors were written, and which addresses exist.
//!
//! The table of descriptors takes one load for a descriptor that the compiler knows:
//!
//! | words | |
//! | --- | --- |
//! | 0 | the number of sets |
//! | 1 + set | where the bindings of the set begin |
//! | 4 for each binding | number of elements; where their states begin; the *safe* element; the state of element 0 |
//! | 1 for each element | its state: 0 if it was not written, else bytes of a buffer, texels of a texel buffer, or 1 |
//!
//! The safe element has the most bound to it: accesses with a wrong index go there. A buffer of more than 4 GiB counts
//! as 4 GiB.
//!
//! The table of cells has [`crate::CELL_WORDS`] words for each site, then one bit for each site that failed:
//!
//! | words of a cell | |
//! | --- | --- |
//! | 0 | how often the check failed |
//! | 1 | the complement of the smallest index, so that zero is a good start |
//! | 2 | the largest index |
//! | 3 | unused |
//! | 4 to 7 | what the host knows of the site: only a shader that writes a record reads it |
//!
//! [`crate::InstrumentedModule::cells`] has its first contents. The cells of a module begin at a multiple of eight
//! words.
//!
//! `address_table` has the table of addresses. The layouts under [`mod@reference`] are the published ones of 2019.

pub use crate::interface::address_table::{ADDRESS_WORDS_MIN, build_address_table};

/// A descriptor set as a shader sees it: the resource of each element of each binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetState {
    /// By the number of the binding; an empty one is not in the layout.
    pub bindings: Vec<BindingState>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindingState {
    /// By element: zero if nothing was written, else bytes of a buffer, texels of a texel buffer, or one.
    pub elements: Vec<u32>,
}

/// A buffer that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AddressRange {
    pub address: u64,
    pub bytes: u64,
}

/// Words of a binding in the table of descriptors. The last one is the state of element 0, mostly the only one.
pub const BINDING_WORDS: u32 = 4;
/// The table of descriptors, as the module documentation describes it.
pub fn build_descriptor_table(sets: &[SetState]) -> Vec<u32> {
    let count = |it: &BindingState| it.elements.len() as u32;
    let counts: Vec<Vec<u32>> = sets.iter().map(|it| it.bindings.iter().map(count).collect()).collect();
    let mut words = empty_descriptor_table(&counts);
    for (set, set_state) in (0..).zip(sets) {
        for (binding, binding_state) in (0..).zip(&set_state.bindings) {
            fill_binding(&mut words, (set, binding), binding_state.elements.iter().copied());
        }
    }
    words
}

/// A table of descriptors of which none is written: by set and binding, how many there are.
pub fn empty_descriptor_table(counts: &[Vec<u32>]) -> Vec<u32> {
    let mut words = vec![counts.len() as u32];
    let mut next = 1 + counts.len() as u32;
    for bindings in counts {
        words.push(next);
        next += bindings.len() as u32 * BINDING_WORDS;
    }
    for count in counts.iter().flatten() {
        words.extend([*count, next, 0, 0]);
        // A binding without elements still has a state, which means that nothing was written.
        next += (*count).max(1);
    }
    words.resize(next as usize, 0);
    words
}

/// Sets the resources of the elements of a binding.
#[inline]
pub fn fill_binding(table: &mut [u32], (set, binding): (u32, u32), states: impl Iterator<Item = u32>) {
    let head = (table[1 + set as usize] + binding * BINDING_WORDS) as usize;
    let (count, first) = (table[head], table[head + 1] as usize);
    let (mut safe, mut most) = (0, 0);
    for (at, state) in (0..count).zip(states) {
        table[first + at as usize] = state;
        if state > most {
            (safe, most) = (at, state);
        }
    }
    table[head + 2] = safe;
    table[head + 3] = table[first];
}

/// Sets the resource of one element of a binding; does nothing if the element does not exist. The safe element stays.
pub fn set_element_state(table: &mut [u32], (set, binding): (u32, u32), element: u32, state: u32) -> Option<()> {
    let head = (*table.get(1 + set as usize)? + binding * BINDING_WORDS) as usize;
    let place = (*table.get(head + 1)? + element) as usize;
    *table.get_mut(place)? = state;
    if element == 0 {
        *table.get_mut(head + 3)? = state;
    }
    Some(())
}

/// Makes every bound resource in a table of descriptors large enough; the numbers of elements stay.
pub fn make_permissive(table: &mut [u32]) {
    let Some(first_head) = table.first().map(|sets| 1 + *sets as usize) else { return };
    // The states follow the heads of all bindings; the first head has their place.
    let Some(first_state) = table.get(first_head + 1).map(|it| *it as usize) else { return };
    for head in (first_head..first_state).step_by(BINDING_WORDS as usize) {
        if let Some(word) = table.get_mut(head + 3) {
            *word = u32::MAX;
        }
    }
    table.iter_mut().skip(first_state).for_each(|it| *it = u32::MAX);
}

/// The published layouts, for tools that read those.
pub mod reference {
    use super::{AddressRange, SetState};

    /// The input buffer of descriptor indexing: sizes, then the states of elements.
    pub fn descriptors(sets: &[SetState]) -> Vec<u32> {
        let bindings: u32 = sets.iter().map(|it| it.bindings.len() as u32).sum();
        let sets_to_bindings = 1 + sets.len() as u32 + bindings;
        let mut words = vec![sets_to_bindings];
        words.extend(starts(sets, 1 + sets.len() as u32));
        words.extend(sets.iter().flat_map(|it| &it.bindings).map(|it| it.elements.len() as u32));
        let bindings_to_written = sets_to_bindings + sets.len() as u32;
        words.extend(starts(sets, bindings_to_written));
        let mut written = bindings_to_written + bindings;
        for binding in sets.iter().flat_map(|it| &it.bindings) {
            words.push(if binding.elements.is_empty() { 0 } else { written });
            written += binding.elements.len() as u32;
        }
        let states = sets.iter().flat_map(|it| &it.bindings).flat_map(|it| &it.elements);
        words.extend(states.map(|it| u32::from(*it != 0)));
        words
    }

    /// Where the bindings of each set begin.
    fn starts(sets: &[SetState], from: u32) -> impl Iterator<Item = u32> {
        sets.iter().scan(from, |next, set| {
            let start = *next;
            *next += set.bindings.len() as u32;
            Some(start)
        })
    }

    /// The array's size of a binding, as a shader reads it.
    pub fn size(input: &[u32], set: u32, binding: u32) -> Option<u32> {
        input.get((*input.get(set as usize + 1)? + binding) as usize).copied()
    }

    /// Whether an element of a binding was written, as a shader reads it.
    pub fn is_written(input: &[u32], set: u32, binding: u32, index: u32) -> Option<bool> {
        let set_start = *input.get((set + *input.first()?) as usize)?;
        let start = *input.get((binding + set_start) as usize)?;
        input.get((index + start) as usize).map(|it| *it != 0)
    }

    /// The input buffer of device addresses, in 64-bit words: addresses between two sentinels, then sizes.
    pub fn addresses(ranges: &[AddressRange]) -> Vec<u64> {
        let mut sorted = ranges.to_vec();
        sorted.sort_unstable();
        let mut words = vec![sorted.len() as u64 + 3, 0];
        words.extend(sorted.iter().map(|it| it.address));
        words.extend([u64::MAX, 0]);
        words.extend(sorted.iter().map(|it| it.bytes));
        words.push(0);
        words
    }

    /// Whether bytes at an address are in one of the buffers, as a shader finds out.
    pub fn is_in_buffer(input: &[u64], address: u64, bytes: u64) -> Option<bool> {
        let sizes = *input.first()? as usize;
        let next = (1..sizes).find(|it| input[*it] > address).unwrap_or(sizes);
        let found = next - 1;
        let size = *input.get(sizes + found - 1)?;
        let end = (address - input[found]).checked_add(bytes);
        Some(found > 0 && end.is_some_and(|it| it <= size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(elements: &[u32]) -> BindingState {
        BindingState { elements: elements.to_vec() }
    }

    /// The two sets of the worked example.
    fn example() -> Vec<SetState> {
        let none = binding(&[]);
        let first = vec![binding(&[1, 1, 1]), binding(&[1]), none.clone(), binding(&[1, 1])];
        let second = vec![none.clone(), none, binding(&[0, 1, 1, 1]), binding(&[1; 5])];
        vec![SetState { bindings: first }, SetState { bindings: second }]
    }

    #[test]
    fn by_a_table_that_permits_all_is_bound() {
        let mut table = build_descriptor_table(&example());
        make_permissive(&mut table);
        let all = |it: &BindingState| binding(&vec![u32::MAX; it.elements.len()]);
        let sets: Vec<SetState> =
            example().iter().map(|it| SetState { bindings: it.bindings.iter().map(all).collect() }).collect();
        let expected = build_descriptor_table(&sets);
        let heads = 1 + sets.len()..expected.iter().rposition(|it| *it != u32::MAX).expect("there are heads");
        // A binding without elements has a state too, and which element is safe stays.
        for (at, word) in expected.iter().enumerate().filter(|it| *it.1 == u32::MAX || !heads.contains(&it.0)) {
            assert!(table[at] == *word || table[at] == u32::MAX, "word {at}");
        }
        assert_eq!(table.len(), expected.len());
        make_permissive(&mut []);
        make_permissive(&mut [0]);
        let mut empty = build_descriptor_table(&[SetState::default()]);
        make_permissive(&mut empty);
        assert_eq!(empty, build_descriptor_table(&[SetState::default()]));
    }

    #[test]
    fn the_worked_example_of_the_input_buffer() {
        let words = reference::descriptors(&example());
        let expected = [
            11, 3, 7, 3, 1, 0, 2, 0, 0, 4, 5, 13, 17, 21, 24, 0, 25, 0, 0, 27, 31, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1,
            1, 1, 1,
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn the_input_buffer_says_sizes_and_what_was_written() {
        let words = reference::descriptors(&example());
        for (set, bindings) in (0..).zip(example()) {
            for (number, binding) in (0..).zip(bindings.bindings) {
                assert_eq!(reference::size(&words, set, number), Some(binding.elements.len() as u32));
                for (index, state) in (0..).zip(binding.elements) {
                    assert_eq!(reference::is_written(&words, set, number, index), Some(state != 0));
                }
            }
        }
    }

    #[test]
    fn our_table_of_descriptors_says_the_same() {
        let words = build_descriptor_table(&example());
        for (set, bindings) in example().iter().enumerate() {
            for (number, binding) in bindings.bindings.iter().enumerate() {
                let entry = words[1 + set] as usize + number * BINDING_WORDS as usize;
                assert_eq!(words[entry] as usize, binding.elements.len());
                let first = words[entry + 1] as usize;
                assert_eq!(words[first..first + binding.elements.len()], binding.elements);
                let safe = binding.elements.get(words[entry + 2] as usize);
                assert_eq!(safe, binding.elements.iter().max());
            }
        }
        let partly = SetState { bindings: vec![binding(&[0, 64, 256, 256])] };
        assert_eq!(build_descriptor_table(&[partly]), [1, 2, 4, 6, 2, 0, 0, 64, 256, 256]);
    }

    #[test]
    fn the_input_buffer_of_addresses_lies_between_sentinels() {
        let ranges = [AddressRange { address: 0x9000, bytes: 16 }, AddressRange { address: 0x1000, bytes: 0x100 }];
        let words = reference::addresses(&ranges);
        assert_eq!(words, [5, 0, 0x1000, 0x9000, u64::MAX, 0, 0x100, 16, 0]);
        let is_in = |address, bytes| reference::is_in_buffer(&words, address, bytes).expect("a table");
        assert!(is_in(0x1000, 0x100) && is_in(0x900c, 4) && is_in(0x10ff, 1));
        assert!(!is_in(0, 4) && !is_in(0xffc, 8) && !is_in(0x10fd, 4) && !is_in(0x9010, 1) && !is_in(u64::MAX, 1));
    }

    #[test]
    fn our_table_of_addresses_has_no_overlaps() {
        let range = |address, bytes| AddressRange { address, bytes };
        let all = [range(0x1_0000_2000, 16), range(0x1000, 0x100), range(0x1080, 0x100), range(0x1180, 8), range(5, 0)];
        let words = build_address_table(&all, 0xabc);
        assert_eq!(words[..3], [0xabc, 0, 3]);
        let expected = [0x1000, 0, 0x17f, 0x1180, 0, 7, 0x2000, 1, 15];
        let record = |it: &[u32]| [it[4].wrapping_neg(), it[5], it[6]];
        let records: Vec<u32> = words[16..40].chunks(8).flat_map(record).collect();
        assert_eq!(records, expected);
    }
}
