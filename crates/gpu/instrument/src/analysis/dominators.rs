//! Which blocks of a function come before others on every way to them.

use lavascope_spirv::{Function, Id, Module};
use spirv::Op;

/// The dominators of a function's blocks, found out when first asked for.
pub(crate) struct Dominators {
    /// Its blocks, as places in the module's.
    first: usize,
    count: usize,
    /// By block: the nearest block on every path to it; itself for the first one and for unreachable blocks.
    immediate_dominators: Option<Vec<u32>>,
}

impl Dominators {
    pub(crate) fn new(_: &Module, function: &Function) -> Dominators {
        Dominators { first: function.blocks.start as usize, count: function.blocks.len(), immediate_dominators: None }
    }

    /// Whether every way to `below` goes through `above`: both places in the module's blocks.
    pub(crate) fn dominates(&mut self, module: &Module, above: usize, below: usize) -> bool {
        if above == below {
            return true;
        }
        let (first, count) = (self.first, self.count);
        let table = self.immediate_dominators.get_or_insert_with(|| compute_dominators(module, first, count));
        let (Some(above), Some(mut at)) = (above.checked_sub(first), below.checked_sub(first)) else { return false };
        while let Some(next) = table.get(at).map(|it| *it as usize) {
            if next == at {
                return false;
            }
            if next == above {
                return true;
            }
            at = next;
        }
        false
    }
}

/// The well-known iteration over blocks in an order where ways go forward.
fn compute_dominators(module: &Module, first: usize, count: usize) -> Vec<u32> {
    let next: Vec<Vec<u32>> = (0..count).map(|it| successors(module, first, count, it)).collect();
    let order = reverse_postorder(&next);
    let mut rank = vec![u32::MAX; count];
    for (at, block) in order.iter().enumerate() {
        rank[*block as usize] = at as u32;
    }
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); count];
    for block in &order {
        for to in &next[*block as usize] {
            before[*to as usize].push(*block);
        }
    }
    let mut above: Vec<u32> = vec![u32::MAX; count];
    if count > 0 {
        above[0] = 0;
    }
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for block in order.iter().skip(1) {
            let known = before[*block as usize].iter().copied().filter(|it| above[*it as usize] != u32::MAX);
            let Some(found) = known.reduce(|left, right| common_dominator(&above, &rank, left, right)) else {
                continue;
            };
            if above[*block as usize] != found {
                above[*block as usize] = found;
                is_changed = true;
            }
        }
    }
    (0..).zip(above).map(|(at, it)| if it == u32::MAX { at } else { it }).collect()
}

fn common_dominator(above: &[u32], rank: &[u32], mut left: u32, mut right: u32) -> u32 {
    while left != right {
        while rank[left as usize] > rank[right as usize] {
            left = above[left as usize];
        }
        while rank[right as usize] > rank[left as usize] {
            right = above[right as usize];
        }
    }
    left
}

/// Each block after its predecessors, back edges aside.
fn reverse_postorder(next: &[Vec<u32>]) -> Vec<u32> {
    let mut seen = vec![false; next.len()];
    let mut order = Vec::with_capacity(next.len());
    let mut stack: Vec<(u32, usize)> = Vec::new();
    if !next.is_empty() {
        seen[0] = true;
        stack.push((0, 0));
    }
    while let Some((block, at)) = stack.last_mut() {
        match next[*block as usize].get(*at) {
            Some(to) => {
                *at += 1;
                if !std::mem::replace(&mut seen[*to as usize], true) {
                    stack.push((*to, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The successors of a block, as indices of blocks of its function.
pub(crate) fn successors(module: &Module, first: usize, count: usize, block: usize) -> Vec<u32> {
    let end = module.instruction(module.blocks()[first + block].terminator());
    let labels: Vec<u32> = match end.op() {
        Some(Op::Branch) => vec![end.word(1)],
        Some(Op::BranchConditional) => vec![end.word(2), end.word(3)],
        Some(Op::Switch) => {
            let selector =
                module.definition(end.id(1)).and_then(|it| it.result_type()).and_then(|it| module.definition(it));
            let literal = if selector.is_some_and(|it| it.word(2) == 64) { 2 } else { 1 };
            let cases = end.words_from(3).chunks_exact(literal + 1).map(|it| it[literal]);
            std::iter::once(end.word(2)).chain(cases).collect()
        }
        _ => Vec::new(),
    };
    let place = |label: u32| module.block_of(Id(label))?.checked_sub(first).filter(|it| *it < count);
    labels.into_iter().filter_map(place).map(|it| it as u32).collect()
}
