//! The blocks of a function: their order, their dominators, and which blocks are executed in every case.

use spirv::Op;

use crate::{Function, Id, Instruction, InstructionIndex, Module};

const NONE: u32 = u32::MAX;

/// The part that does not depend on values. Blocks are counted from the first one of the function.
pub(super) struct FlowGraph {
    /// Reverse postorder: a block comes after its predecessors, back edges aside.
    pub(super) order: Vec<u32>,
    /// By block: its place in the order, or `NONE` where nothing leads to it.
    position: Vec<u32>,
    successors: Graph,
    /// By block: when a walk over the dominator tree enters it and leaves it.
    dominance: Vec<(u32, u32)>,
    /// By block: the last place in the order that leads back to it.
    loop_ends: Vec<u32>,
    /// Places in the order, and the variables that are written to there.
    stores: Vec<(u32, Id)>,
    /// The result of [`FlowGraph::certain`] if no branch is decided.
    certain: Vec<bool>,
}

impl FlowGraph {
    pub(super) fn new(module: &Module, function: &Function) -> FlowGraph {
        let first = function.blocks.start;
        let count = function.blocks.len();
        let mut edges = Vec::new();
        for (at, block) in function.blocks.clone().enumerate() {
            let last = module.instruction(module.blocks()[block as usize].terminator());
            let targets = targets(module, last).into_iter().filter_map(|it| local_block(module, function, it));
            edges.extend(targets.map(|it| (at as u32, it)));
        }
        let successors = Graph::new(count, &edges);
        let (order, position) = reverse_postorder(&successors, 0);
        let backwards: Vec<(u32, u32)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
        let idoms = dominators(&order, &position, &Graph::new(count, &backwards));
        let mut flow = FlowGraph {
            dominance: intervals(&order, &idoms),
            loop_ends: loops(&position, &edges),
            order,
            position,
            successors,
            stores: Vec::new(),
            certain: Vec::new(),
        };
        for (place, block) in flow.order.iter().enumerate() {
            let block = &module.blocks()[(first + block) as usize];
            let stored = module.instructions(block.instructions.clone()).flat_map(|it| stored(module, it));
            flow.stores.extend(stored.map(|it| (place as u32, it)));
        }
        flow.certain = flow.certain_of(module, function, &vec![None; count]);
        flow
    }

    pub(super) fn blocks(&self) -> usize {
        self.position.len()
    }

    /// Whether an edge leads backwards, or from where nothing leads to.
    pub(super) fn is_back_edge(&self, from: u32, to: u32) -> bool {
        self.position[from as usize] >= self.position[to as usize]
    }

    pub(super) fn successors(&self, block: u32) -> &[u32] {
        self.successors.of(block)
    }

    pub(super) fn dominates(&self, left: u32, right: u32) -> bool {
        let ((enter, leave), (at, _)) = (self.dominance[left as usize], self.dominance[right as usize]);
        enter <= at && at < leave
    }

    /// The variables that a loop writes to which begins at a block; nothing where none begins.
    pub(super) fn stored_in_loop(&self, header: u32) -> impl Iterator<Item = Id> {
        let last = self.loop_ends[header as usize];
        let first = if last == NONE { NONE } else { self.position[header as usize] };
        let from = self.stores.partition_point(|it| it.0 < first);
        self.stores[from..].iter().take_while(move |it| it.0 <= last).map(|it| it.1)
    }

    /// By block: whether every run of the function executes it. `taken` has the branches whose target is known.
    pub(super) fn certain(&self, module: &Module, function: &Function, taken: &[Option<u32>]) -> Vec<bool> {
        if taken.iter().all(Option::is_none) {
            return self.certain.clone();
        }
        self.certain_of(module, function, taken)
    }

    fn certain_of(&self, module: &Module, function: &Function, taken: &[Option<u32>]) -> Vec<bool> {
        let count = self.blocks();
        let end = count as u32;
        let mut edges = Vec::new();
        for (block, taken) in taken.iter().enumerate().filter(|it| self.position[it.0] != NONE) {
            let targets = self.successors(block as u32).iter().filter(|it| taken.is_none_or(|taken| taken == **it));
            edges.extend(targets.map(|it| (*it, block as u32)));
            let last = module.blocks()[function.blocks.start as usize + block].terminator();
            if self.successors(block as u32).is_empty() && !module.instruction(last).is(Op::Unreachable) {
                edges.push((end, block as u32));
            }
        }
        let (order, position) = reverse_postorder(&Graph::new(count + 1, &edges), end);
        let forwards: Vec<(u32, u32)> = edges.iter().map(|(to, from)| (*from, *to)).collect();
        let idoms = dominators(&order, &position, &Graph::new(count + 1, &forwards));
        let mut certain = vec![false; count];
        let mut block = 0;
        while (block as usize) < count {
            certain[block as usize] = true;
            block = idoms[block as usize];
        }
        certain
    }
}

/// Where the last instruction of a block may lead.
fn targets(module: &Module, last: Instruction<'_>) -> Vec<Id> {
    match last.op() {
        Some(Op::Branch) => vec![last.id(1)],
        Some(Op::BranchConditional) => vec![last.id(2), last.id(3)],
        Some(Op::Switch) => {
            let cases = cases(module, last);
            std::iter::once(last.id(2)).chain(cases.into_iter().map(|it| it.1)).collect()
        }
        _ => Vec::new(),
    }
}

/// The literals of a switch and where they lead.
pub(super) fn cases(module: &Module, switch: Instruction<'_>) -> Vec<(u64, Id)> {
    let selector = module.definition(switch.id(1)).and_then(|it| it.result_type()).and_then(|it| module.definition(it));
    let is_long = selector.is_some_and(|it| it.is(Op::TypeInt) && it.word(2) == 64);
    let pairs = switch.words_from(3).chunks_exact(if is_long { 3 } else { 2 });
    pairs
        .map(|pair| match *pair {
            [low, high, label] => (u64::from(low) | u64::from(high) << 32, Id(label)),
            [literal, label] => (u64::from(literal), Id(label)),
            _ => (0, Id(0)),
        })
        .collect()
}

/// A label as a block of a function.
pub(super) fn local_block(module: &Module, function: &Function, label: Id) -> Option<u32> {
    let block = module.block_of(label)? as u32;
    function.blocks.contains(&block).then(|| block - function.blocks.start)
}

/// The variables and parameters that an instruction may write to.
pub(super) fn stored(module: &Module, instruction: Instruction<'_>) -> Vec<Id> {
    let pointers = match instruction.op() {
        Some(Op::Store | Op::CopyMemory | Op::CopyMemorySized) => &instruction.words()[1..2],
        Some(Op::FunctionCall) => instruction.words_from(4),
        // Only `Modf` and `Frexp` write, but neither is in a loop often enough to look closer.
        Some(Op::ExtInst) => instruction.words_from(5),
        _ => &[],
    };
    pointers.iter().filter_map(|it| variable_of(module, Id(*it))).collect()
}

/// The variable or parameter at the root of a pointer.
fn variable_of(module: &Module, mut pointer: Id) -> Option<Id> {
    for _ in 0..64 {
        let instruction = module.definition(pointer)?;
        match instruction.op()? {
            Op::Variable | Op::FunctionParameter => return Some(pointer),
            Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::CopyObject => {
                pointer = instruction.id(3)
            }
            _ => return None,
        }
    }
    None
}

/// Edges by where they begin.
struct Graph {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Graph {
    fn new(nodes: usize, edges: &[(u32, u32)]) -> Graph {
        let mut starts = vec![0u32; nodes + 1];
        for (from, _) in edges {
            starts[*from as usize + 1] += 1;
        }
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut ends = vec![0; edges.len()];
        for (from, to) in edges {
            ends[next[*from as usize] as usize] = *to;
            next[*from as usize] += 1;
        }
        Graph { starts, ends }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.ends[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    fn nodes(&self) -> usize {
        self.starts.len() - 1
    }
}

/// The nodes that can be reached, and by node its place among them.
fn reverse_postorder(graph: &Graph, root: u32) -> (Vec<u32>, Vec<u32>) {
    let mut position = vec![NONE; graph.nodes()];
    let mut order = Vec::new();
    if root as usize >= graph.nodes() {
        return (order, position);
    }
    let mut seen = vec![false; graph.nodes()];
    let mut stack = vec![(root, 0)];
    seen[root as usize] = true;
    while let Some((node, next)) = stack.last_mut() {
        // From the last to the first, so that the first branch comes first in the order.
        let targets = graph.of(*node);
        if let Some(target) = targets.len().checked_sub(*next + 1).map(|it| targets[it]) {
            *next += 1;
            if !std::mem::replace(&mut seen[target as usize], true) {
                stack.push((target, 0));
            }
        } else {
            order.push(*node);
            stack.pop();
        }
    }
    order.reverse();
    for (at, node) in order.iter().enumerate() {
        position[*node as usize] = at as u32;
    }
    (order, position)
}

/// By node: its immediate dominator; itself for the root, none for unreachable nodes.
fn dominators(order: &[u32], position: &[u32], predecessors: &Graph) -> Vec<u32> {
    let mut idoms = vec![NONE; position.len()];
    let Some(root) = order.first() else { return idoms };
    idoms[*root as usize] = *root;
    let mut is_changed = true;
    while is_changed {
        is_changed = false;
        for node in &order[1..] {
            let known = predecessors.of(*node).iter().copied().filter(|it| idoms[*it as usize] != NONE);
            let idom = known.reduce(|left, right| common(&idoms, position, left, right)).unwrap_or(NONE);
            if idoms[*node as usize] != idom {
                idoms[*node as usize] = idom;
                is_changed = true;
            }
        }
    }
    idoms
}

fn common(idoms: &[u32], position: &[u32], mut left: u32, mut right: u32) -> u32 {
    while left != right {
        if position[left as usize] > position[right as usize] {
            left = idoms[left as usize];
        } else {
            right = idoms[right as usize];
        }
    }
    left
}

/// By node: when a walk over the tree enters and leaves it. A node dominates those entered in between.
fn intervals(order: &[u32], idoms: &[u32]) -> Vec<(u32, u32)> {
    let mut sizes = vec![1u32; idoms.len()];
    for node in order.iter().skip(1).rev() {
        sizes[idoms[*node as usize] as usize] += sizes[*node as usize];
    }
    let mut intervals = vec![(NONE, NONE); idoms.len()];
    let mut next = vec![0u32; idoms.len()];
    for (at, node) in order.iter().enumerate() {
        let idom = idoms[*node as usize] as usize;
        let enter = if at == 0 { 0 } else { next[idom] };
        next[idom] = enter + sizes[*node as usize];
        intervals[*node as usize] = (enter, enter + sizes[*node as usize]);
        next[*node as usize] = enter + 1;
    }
    intervals
}

fn loops(position: &[u32], edges: &[(u32, u32)]) -> Vec<u32> {
    let mut loops = vec![NONE; position.len()];
    for (from, to) in edges {
        let (from, entry) = (position[*from as usize], position[*to as usize]);
        if from != NONE && from >= entry {
            let last = &mut loops[*to as usize];
            *last = if *last == NONE { from } else { from.max(*last) };
        }
    }
    loops
}

/// Whether a block ends the invocation, not only the function.
pub(super) fn ends_invocation(module: &Module, last: InstructionIndex) -> bool {
    matches!(
        module.instruction(last).op(),
        Some(
            Op::Kill | Op::TerminateInvocation | Op::IgnoreIntersectionKHR | Op::TerminateRayKHR | Op::EmitMeshTasksEXT
        )
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a node can be reached from the root without a step on another one.
    fn is_reached(graph: &Graph, target: u32, without: Option<u32>) -> bool {
        let mut seen = vec![false; graph.nodes()];
        let mut stack: Vec<u32> = (without != Some(0)).then_some(0).into_iter().collect();
        while let Some(node) = stack.pop() {
            if !std::mem::replace(&mut seen[node as usize], true) {
                stack.extend(graph.of(node).iter().filter(|it| Some(**it) != without));
            }
        }
        seen[target as usize]
    }

    #[test]
    fn dominance_is_that_of_all_paths() {
        let mut state = 0x1234_5678_u64;
        let mut random = |limit: u32| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as u32 % limit
        };
        for _ in 0..500 {
            let nodes = 2 + random(9);
            let edges: Vec<(u32, u32)> = (0..random(20)).map(|_| (random(nodes), random(nodes))).collect();
            let graph = Graph::new(nodes as usize, &edges);
            let backwards: Vec<(u32, u32)> = edges.iter().map(|(from, to)| (*to, *from)).collect();
            let (order, position) = reverse_postorder(&graph, 0);
            let idoms = dominators(&order, &position, &Graph::new(nodes as usize, &backwards));
            let intervals = intervals(&order, &idoms);
            for right in 0..nodes {
                assert_eq!(position[right as usize] != NONE, is_reached(&graph, right, None));
            }
            for (left, right) in order.iter().flat_map(|left| order.iter().map(move |right| (*left, *right))) {
                let ((enter, leave), (at, _)) = (intervals[left as usize], intervals[right as usize]);
                let dominates = left == right || !is_reached(&graph, right, Some(left));
                assert_eq!(enter <= at && at < leave, dominates, "{left} and {right} in {edges:?}");
            }
        }
    }
}
