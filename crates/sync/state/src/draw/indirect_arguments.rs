//! Parameters of indirect draws and dispatches, as written by the host or by the same command buffer.
//!
//! The host may write until submission, so the accesses that follow from its writes are known only then.

use std::ops::Range;

use lavascope_abi::Buffer;
use lavascope_sync_ir::{Access, Certainty};

use crate::command::bound_state::BoundState;
use crate::device::TrackedDevice;
use crate::draw::index_values::{HostWriteCoverage, INDICES_MAX, IndexBufferUpdates, index_numbers};
use crate::draw::vertex_input::{BoundIndexBuffer, FetchedElements, VertexFetch, instance_elements};
use crate::shader::launch::Launch;

/// The location of indirect parameters in buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndirectArguments {
    pub(crate) kind: ArgumentKind,
    pub(crate) buffer: u64,
    pub(crate) offset: u64,
    /// The maximum number of structures.
    pub(crate) count: u32,
    pub(crate) stride: u64,
    /// The buffer and offset of the draw count, if it is in memory.
    pub(crate) count_in: Option<(u64, u64)>,
}

/// The kind of parameter structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    Draw,
    DrawIndexed,
    /// Workgroups in three dimensions.
    Groups,
    /// `VkDrawMeshTasksIndirectCommandNV`: number of tasks and first task.
    Tasks,
}

impl ArgumentKind {
    pub(crate) const fn size(self) -> u64 {
        match self {
            ArgumentKind::Draw => 16,
            ArgumentKind::DrawIndexed => 20,
            ArgumentKind::Groups => 12,
            ArgumentKind::Tasks => 8,
        }
    }
}

/// One draw, as its parameters describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DrawRange {
    /// First vertex or index, and count.
    pub(crate) elements: [u32; 2],
    /// The value added to each index.
    pub(crate) vertex_offset: i32,
    /// First instance, and count.
    pub(crate) instances: [u32; 2],
}

/// The draws of one command.
#[derive(Clone, Debug)]
pub(crate) struct DrawList {
    pub(crate) draws: Vec<DrawRange>,
    /// Whether all draws are executed. Otherwise only an unknown number of the first ones is.
    pub(crate) is_count_known: bool,
}

/// The reads of one or more draws from vertex and index buffers.
#[derive(Clone, Debug)]
pub(crate) struct ListedDraws {
    pub(crate) source: DrawListSource,
    /// Set if the draws are indexed.
    pub(crate) indices: Option<BoundIndexBuffer>,
    /// Each with its divisor if it is read per instance.
    pub(crate) reads: Vec<(Option<u32>, VertexFetch)>,
    /// Whether conditional rendering may skip the command.
    pub(crate) is_conditional: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum DrawListSource {
    /// The draws are in the command itself.
    Command(DrawList),
    Memory(IndirectArguments),
}

/// Whether a command launches anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaunchCertainty {
    Certain,
    Never,
    /// Parameters decide that are read at submission.
    AtSubmission(IndirectArguments),
    /// Parameters decide that are not read.
    Unknown,
}

/// At most this many structures are evaluated.
const STRUCTURES_MAX: u32 = 256;

impl TrackedDevice {
    /// Whether the contents of a buffer, as written by the host, are known at submission.
    pub(crate) fn is_known_at_submission(&self, buffer: u64) -> bool {
        let Some(buffer) = self.buffers.get(buffer).filter(|_| self.host_write_coverage != HostWriteCoverage::None)
        else {
            return false;
        };
        let (Some(memory), Some(resource)) = (self.memories.get(buffer.memory), buffer.resource) else { return false };
        let is_host_write_reported =
            self.host_write_coverage == HostWriteCoverage::All || memory.has_reported_contents();
        is_host_write_reported && memory.is_filled_by_host(resource)
    }

    /// Whether the parameters of a command are known at submission.
    pub(crate) fn are_arguments_known_at_submission(&self, arguments: &IndirectArguments) -> bool {
        arguments.count <= STRUCTURES_MAX && self.is_known_at_submission(arguments.buffer)
    }

    /// Whether a command launches anything, as far as the command buffer tells.
    pub(crate) fn launch_certainty(
        &self,
        updates: &IndexBufferUpdates,
        arguments: &IndirectArguments,
    ) -> LaunchCertainty {
        let is_known = |buffer: u64| self.is_known_at_submission(buffer);
        match arguments.is_nothing(&|buffer, bytes| self.bytes_from_updates(updates, buffer, bytes)) {
            Some(true) => LaunchCertainty::Never,
            Some(false) => LaunchCertainty::Certain,
            None if is_known(arguments.buffer) || arguments.count_in.is_some_and(|it| is_known(it.0)) => {
                LaunchCertainty::AtSubmission(arguments.clone())
            }
            None => LaunchCertainty::Unknown,
        }
    }

    /// Whether a command that is submitted now launches anything.
    pub(crate) fn submitted_launch_certainty(&self, arguments: &IndirectArguments) -> LaunchCertainty {
        match arguments.is_nothing(&|buffer, bytes| self.bytes_from_host(buffer, bytes)) {
            Some(true) => LaunchCertainty::Never,
            Some(false) => LaunchCertainty::Certain,
            None => LaunchCertainty::Unknown,
        }
    }

    /// Bytes of a buffer as the host wrote them; none if they may change before they are read.
    fn bytes_from_host(&self, buffer: u64, bytes: Range<u64>) -> Option<Vec<u8>> {
        if self.waits_for_host.is_possible() || self.host_write_coverage == HostWriteCoverage::None {
            return None;
        }
        let buffer = self.buffers.get(buffer).filter(|it| bytes.end <= it.size)?;
        self.memories.get(buffer.memory)?.host_bytes(buffer.resource?, bytes)
    }

    /// Bytes of a buffer as the same command buffer wrote them.
    fn bytes_from_updates(&self, updates: &IndexBufferUpdates, buffer: u64, bytes: Range<u64>) -> Option<Vec<u8>> {
        let buffer = self.buffers.get(buffer)?;
        let resource = buffer.resource?;
        let is_alone = self.memories.get(buffer.memory)?.is_unaliased(resource);
        updates.read(resource, &bytes).filter(|_| is_alone).map(<[u8]>::to_vec)
    }

    /// Adds the vertex and index reads of draws if their parameters are known from the command buffer. Otherwise
    /// returns the draws if they become known at submission.
    pub(crate) fn add_listed_draws(
        &self,
        state: &BoundState,
        listed: ListedDraws,
        found: &mut Vec<Access>,
    ) -> ListedDrawsOutcome {
        let updates = &state.index_updates;
        let of_updates = |buffer, bytes| self.bytes_from_updates(updates, buffer, bytes);
        let has_known_indices = listed.indices.as_ref().is_some_and(|it| self.is_known_at_submission(it.buffer));
        let list = match &listed.source {
            DrawListSource::Memory(arguments) => match arguments.read_list(&of_updates) {
                Some(list) => list,
                None if self.are_arguments_known_at_submission(arguments) => {
                    return ListedDrawsOutcome::AtSubmission(listed);
                }
                None => return ListedDrawsOutcome::Unknown,
            },
            DrawListSource::Command(list) => list.clone(),
        };
        if has_known_indices {
            listed.add_index_reads(&list, found);
            let source = DrawListSource::Command(list);
            return ListedDrawsOutcome::AtSubmission(ListedDraws { source, ..listed });
        }
        listed.add_index_reads(&list, found);
        listed.add_vertex_reads(&list, &of_updates, found);
        ListedDrawsOutcome::Known
    }

    /// Adds the reads of draws that are submitted now.
    pub(crate) fn add_submitted_draws(&self, listed: &ListedDraws, found: &mut Vec<Access>) {
        let known = found.len();
        let from_host = |buffer, bytes| self.bytes_from_host(buffer, bytes);
        match &listed.source {
            DrawListSource::Command(list) => listed.add_vertex_reads(list, &from_host, found),
            DrawListSource::Memory(arguments) => match arguments.read_list(&from_host) {
                Some(list) => {
                    listed.add_index_reads(&list, found);
                    listed.add_vertex_reads(&list, &from_host, found);
                }
                None => listed.add_unknown_accesses(found),
            },
        }
        if listed.is_conditional {
            found[known..].iter_mut().for_each(|it| it.certainty = it.certainty.if_made());
        }
    }

    /// The launch size of a command that is submitted now.
    pub(crate) fn submitted_launch(&self, arguments: &IndirectArguments) -> Launch {
        let from_host = |buffer, bytes| self.bytes_from_host(buffer, bytes);
        arguments.launch(&from_host).unwrap_or(Launch::Unknown)
    }

    /// The launch size of a command whose parameters the same command buffer wrote.
    pub(crate) fn updated_launch(&self, updates: &IndexBufferUpdates, arguments: &IndirectArguments) -> Option<Launch> {
        arguments.launch(&|buffer, bytes| self.bytes_from_updates(updates, buffer, bytes))
    }
}

/// When the reads of draws are known.
pub(crate) enum ListedDrawsOutcome {
    Known,
    AtSubmission(ListedDraws),
    Unknown,
}

type ReadBytes<'a> = dyn Fn(u64, Range<u64>) -> Option<Vec<u8>> + 'a;

impl IndirectArguments {
    /// For a command that launches workgroups.
    pub(crate) fn groups(buffer: Buffer, offset: u64) -> IndirectArguments {
        let (kind, buffer) = (ArgumentKind::Groups, buffer.0);
        IndirectArguments { kind, buffer, offset, count: 1, stride: 0, count_in: None }
    }

    /// The words of each structure, and whether all of them count.
    fn read_words(&self, read: &ReadBytes<'_>) -> Option<(Vec<[u32; 5]>, bool)> {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let draw_count = self.count_in.map(|(buffer, at)| Some(word(&read(buffer, at..at.checked_add(4)?)?)));
        let count = draw_count.flatten().map_or(self.count, |it| it.min(self.count));
        if count > STRUCTURES_MAX {
            return None;
        }
        let structure = |number: u32| {
            let first = self.offset.checked_add(u64::from(number).checked_mul(self.stride)?)?;
            let bytes = read(self.buffer, first..first.checked_add(self.kind.size())?)?;
            let mut words = [0; 5];
            words.iter_mut().zip(bytes.chunks_exact(4)).for_each(|(own, bytes)| *own = word(bytes));
            Some(words)
        };
        let all = (0..count).map(structure).collect::<Option<Vec<_>>>()?;
        Some((all, draw_count.is_none_or(|it| it.is_some())))
    }

    /// Whether nothing is launched; none if that is unknown. If the count is unknown, all structures must be empty.
    fn is_nothing(&self, read: &ReadBytes<'_>) -> Option<bool> {
        if self.count == 0 {
            return Some(true);
        }
        let (all, is_count_known) = self.read_words(read)?;
        let is_empty = |words: &[u32; 5]| match self.kind {
            ArgumentKind::Draw | ArgumentKind::DrawIndexed => words[0] == 0 || words[1] == 0,
            ArgumentKind::Groups => words[..3].contains(&0),
            ArgumentKind::Tasks => words[0] == 0,
        };
        let is_nothing = all.iter().all(is_empty);
        (is_nothing || is_count_known).then_some(is_nothing)
    }

    fn read_list(&self, read: &ReadBytes<'_>) -> Option<DrawList> {
        let draw = |words: &[u32; 5]| match self.kind {
            ArgumentKind::DrawIndexed => DrawRange {
                elements: [words[2], words[0]],
                vertex_offset: words[3] as i32,
                instances: [words[4], words[1]],
            },
            _ => DrawRange { elements: [words[2], words[0]], vertex_offset: 0, instances: [words[3], words[1]] },
        };
        let (all, is_count_known) = self.read_words(read)?;
        Some(DrawList { draws: all.iter().map(draw).collect(), is_count_known })
    }

    /// The launched range, if it is one range.
    fn launch(&self, read: &ReadBytes<'_>) -> Option<Launch> {
        let (all, is_count_known) = self.read_words(read)?;
        let [one] = all[..] else { return None };
        match self.kind {
            _ if !is_count_known => None,
            ArgumentKind::Groups => Some(Launch::groups([0; 3], [one[0], one[1], one[2]])),
            // Its first task counts as the number of a workgroup does.
            ArgumentKind::Tasks => Some(Launch::groups([one[1], 0, 0], [one[0], 1, 1])),
            ArgumentKind::Draw | ArgumentKind::DrawIndexed => {
                let range = |first: u32, count: u32| Some(u64::from(first)..u64::from(first) + u64::from(count));
                let is_indexed = self.kind == ArgumentKind::DrawIndexed;
                let instances = if is_indexed { range(one[4], one[1]) } else { range(one[3], one[1]) };
                Some(Launch::Vertices { vertices: range(one[2], one[0]).filter(|_| !is_indexed), instances })
            }
        }
    }
}

impl DrawRange {
    /// The vertices or indices.
    fn range(&self) -> Range<u64> {
        let [first, count] = self.elements.map(u64::from);
        first..first + count
    }

    fn is_empty(&self) -> bool {
        self.elements[1] == 0 || self.instances[1] == 0
    }
}

impl DrawList {
    /// Draws that are not empty.
    fn drawing(&self) -> Vec<&DrawRange> {
        self.draws.iter().filter(|it| !it.is_empty()).collect()
    }

    fn elements(&self) -> FetchedElements {
        FetchedElements::from_parts(self.drawing().iter().map(|it| it.range()).collect())
    }

    /// If only the first of the draws are executed, not all of these accesses happen.
    fn mark_unknown_count(&self, made: &mut [Access]) {
        if !self.is_count_known {
            made.iter_mut().for_each(|it| it.certainty = Certainty::MaybeAnywhere);
        }
    }
}

impl ListedDraws {
    fn add_index_reads(&self, list: &DrawList, found: &mut Vec<Access>) {
        let known = found.len();
        self.indices.iter().for_each(|it| it.add_accesses(&list.elements(), found));
        list.mark_unknown_count(&mut found[known..]);
    }

    fn add_vertex_reads(&self, list: &DrawList, read: &ReadBytes<'_>, found: &mut Vec<Access>) {
        let (known, draws) = (found.len(), list.drawing());
        let vertices = match &self.indices {
            None => list.elements(),
            Some(bound) => indexed_vertices(bound, &draws, read).unwrap_or(FetchedElements::Unknown),
        };
        for (divisor, fetch) in &self.reads {
            match divisor {
                None if draws.is_empty() => {}
                None => fetch.add_accesses(&vertices, found),
                Some(divisor) => {
                    let parts = draws.iter().map(|it| instance_elements(it.instances, *divisor)).collect();
                    fetch.add_accesses(&FetchedElements::from_parts(parts), found);
                }
            }
        }
        list.mark_unknown_count(&mut found[known..]);
    }

    fn add_unknown_accesses(&self, found: &mut Vec<Access>) {
        self.indices.iter().for_each(|it| it.add_accesses(&FetchedElements::Unknown, found));
        self.reads.iter().for_each(|it| it.1.add_accesses(&FetchedElements::Unknown, found));
    }
}

/// The vertices that the indices of the draws name.
fn indexed_vertices(bound: &BoundIndexBuffer, draws: &[&DrawRange], read: &ReadBytes<'_>) -> Option<FetchedElements> {
    let count: u64 = draws.iter().map(|it| u64::from(it.elements[1])).sum();
    if count > INDICES_MAX {
        return None;
    }
    let mut numbers = Vec::new();
    for draw in draws {
        let range = draw.range();
        let at = |index: u64| bound.bytes.start.checked_add(index.checked_mul(bound.size)?);
        let bytes = at(range.start)?..at(range.end)?;
        let indices = read(bound.buffer, bytes.clone()).filter(|_| bytes.end <= bound.bytes.end)?;
        numbers.extend(index_numbers(&indices, bound.size as usize, draw.vertex_offset));
    }
    Some(FetchedElements::from_ranges(numbers.into_iter().map(|it| (it, 1))))
}
