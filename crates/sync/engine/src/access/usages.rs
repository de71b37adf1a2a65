//! Stages and usages: the registry's tables, with groups replaced by their members.
//!
//! A *stage* is one bit of `VkPipelineStageFlags2` that is not a group, or one of three stages of our own: layout
//! transitions, presentation, and what buffer markers wait for. A *usage* is a stage together with one access that the
//! stage can make.

use std::sync::LazyLock;

use lavascope_abi::desc::{SyncAccess, SyncStage};
use lavascope_abi::{AccessFlags2, PipelineStageFlags2, SYNC_ACCESSES, SYNC_PIPELINES, SYNC_STAGES};

/// A stage, as an index of [`SyncTables::stages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageIndex(pub u8);

/// A usage, as an index of [`SyncTables::usages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UsageIndex(pub u8);

/// A set of stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StageSet(pub u64);

/// A set of usages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct UsageSet(pub [u64; USAGE_WORDS]);

pub const USAGE_WORDS: usize = 4;

/// Number of columns that fit into a word. A column stands for a stage, or for a usage that writes.
const COLUMNS: usize = 64;

/// The stage of layout transitions.
pub const TRANSITION: StageIndex = StageIndex(0);
/// The usage of a layout transition. It reads and writes, and counts as a write.
pub const TRANSITION_WRITE: UsageIndex = UsageIndex(0);
/// The stage of the presentation engine, and what it does with an image.
pub const PRESENTATION: StageIndex = StageIndex(1);
pub const PRESENT: UsageIndex = UsageIndex(1);
/// Number of our own stages that come first.
const OWN_STAGES: usize = 2;

/// All stages and usages.
pub struct SyncTables {
    pub stages: Vec<StageDesc>,
    pub usages: Vec<UsageDesc>,
    /// The usages that write, in the order of their columns.
    pub writes: Vec<UsageIndex>,
    /// Usages by the bit numbers of stage and access.
    by_bits: Vec<Option<UsageIndex>>,
    /// For each word of a usage set: the usages that write, and their columns.
    writes_of_word: [(u64, u64); USAGE_WORDS],
    /// The copy stage, in which buffer markers are written.
    pub copy: StageIndex,
    /// The stage that continues dependency chains through buffer markers. It has the bit of the copy stage, so every
    /// scope has both or neither. No access has it, and only markers are in its second scope alone: what is ordered
    /// before this stage, but not before the copy stage, is ordered before some marker (`markers`).
    pub marker: StageIndex,
}

pub struct StageDesc {
    /// The bit in `VkPipelineStageFlags2`.
    pub bit: u64,
    /// The `VkQueueFlags` of queues that support the stage; zero for all queues.
    pub queues: u32,
    /// Stages that come before it in some pipeline.
    pub earlier: StageSet,
    pub later: StageSet,
    pub usages: UsageSet,
}

pub struct UsageDesc {
    pub stage: StageIndex,
    pub access: u64,
    /// A dependency that has one of these accesses at the stage has the usage. Mostly that is the access alone.
    pub sufficient_access: u64,
    /// The column in tables of writes, if it writes.
    pub write: Option<u8>,
}

pub static SYNC_TABLES: LazyLock<SyncTables> = LazyLock::new(SyncTables::new);

/// Groups that the registry does not mark as groups.
const GROUP_STAGES: u64 =
    PipelineStageFlags2::ALL_COMMANDS.0 | PipelineStageFlags2::TOP_OF_PIPE.0 | PipelineStageFlags2::BOTTOM_OF_PIPE.0;
const GROUP_ACCESSES: u64 = AccessFlags2::MEMORY_READ.0 | AccessFlags2::MEMORY_WRITE.0;

impl SyncTables {
    fn new() -> SyncTables {
        let stage = |bit, queues| StageDesc {
            bit,
            queues,
            earlier: StageSet::default(),
            later: StageSet::default(),
            usages: UsageSet::default(),
        };
        let mut stages: Vec<StageDesc> = (0..OWN_STAGES).map(|_| stage(0, 0)).collect();
        let is_single = |it: &&SyncStage| it.stage != 0 && it.equivalent == 0 && it.stage & GROUP_STAGES == 0;
        stages.extend(SYNC_STAGES.iter().filter(is_single).map(|it| stage(it.stage, it.queues)));
        let copy = stages.iter().position(|it| it.bit == PipelineStageFlags2::COPY.0).unwrap_or(0);
        let marker = StageIndex(stages.len() as u8);
        stages.push(stage(stages[copy].bit, stages[copy].queues));
        assert!(stages.len() < 64, "a set of stages is one word");
        let (by_bits, writes_of_word) = (vec![None; 64 * 64], Default::default());
        let copy = StageIndex(copy as u8);
        let (usages, writes) = (Vec::new(), Vec::new());
        let mut tables = SyncTables { stages, usages, writes, by_bits, writes_of_word, copy, marker };
        tables.add_usages();
        tables.order_stages();
        for (index, usage) in tables.usages.iter().enumerate() {
            let (usages, columns) = &mut tables.writes_of_word[index / 64];
            *usages |= u64::from(usage.write.is_some()) << (index % 64);
            *columns |= usage.write.map_or(0, |byte| 1 << byte);
        }
        tables
    }

    fn add_usages(&mut self) {
        self.add_usage(TRANSITION, 0, true);
        self.add_usage(PRESENTATION, 0, true);
        for index in OWN_STAGES..usize::from(self.marker.0) {
            let stage = StageIndex(index as u8);
            for sync_access in SYNC_ACCESSES {
                let is_group = sync_access.access == 0 || sync_access.access & GROUP_ACCESSES != 0;
                // The table lists groups of stages, but also each member that can make the access.
                let is_here = sync_access.stages & self.stages[index].bit != 0;
                if is_group || !is_here || has_member(sync_access, self.stages[index].bit) {
                    continue;
                }
                self.add_usage(stage, sync_access.access, is_write(sync_access.name));
            }
        }
        assert!(self.usages.len() <= USAGE_WORDS * 64, "a set of usages has room for all");
        assert!(self.stages.len().max(self.writes.len()) <= COLUMNS, "columns are bits of a word");
    }

    fn add_usage(&mut self, stage: StageIndex, access: u64, is_write: bool) {
        let usage = UsageIndex(self.usages.len() as u8);
        let write = is_write.then_some(self.writes.len() as u8);
        self.writes.extend(is_write.then_some(usage));
        self.stages[usize::from(stage.0)].usages.add(usage);
        let bit = self.stages[usize::from(stage.0)].bit;
        if access != 0 {
            self.by_bits[bits_index(bit, access)] = Some(usage);
        }
        self.usages.push(UsageDesc { stage, access, sufficient_access: sufficient_access(bit, access), write });
    }

    /// Orders the stages: along each pipeline, and where the registry places a stage before another.
    fn order_stages(&mut self) {
        for pipeline in SYNC_PIPELINES {
            let mut before = StageSet::default();
            for pipeline_stage in pipeline.stages {
                let members = self.stages_of_bits(group_members(pipeline_stage.stage));
                if pipeline_stage.is_ordered {
                    members.iter().for_each(|stage| self.add_order(before, stage));
                    before = before.union(members);
                } else if pipeline_stage.before != 0 {
                    // The stage is not in the pipeline itself. It comes before one stage and everything after that.
                    let at = pipeline.stages.iter().position(|other| other.stage == pipeline_stage.before);
                    for other in pipeline.stages[at.unwrap_or(0)..].iter().filter(|it| it.is_ordered) {
                        let later = self.stages_of_bits(group_members(other.stage));
                        later.iter().for_each(|stage| self.add_order(members, stage));
                    }
                }
            }
        }
    }

    fn add_order(&mut self, before: StageSet, stage: StageIndex) {
        self.stages[usize::from(stage.0)].earlier.0 |= before.0;
        for stage_index in before.iter() {
            self.stages[usize::from(stage_index.0)].later.add(stage);
        }
    }

    pub fn stages_of_bits(&self, bits: u64) -> StageSet {
        let mut found = StageSet::default();
        for (index, stage) in self.stages.iter().enumerate().filter(|it| it.1.bit & bits != 0) {
            debug_assert!(stage.bit != 0, "the filter asks for a bit");
            found.add(StageIndex(index as u8));
        }
        found
    }

    #[inline]
    pub fn stage(&self, usage: UsageIndex) -> StageIndex {
        self.usages[usize::from(usage.0)].stage
    }

    #[inline]
    pub fn write_column(&self, usage: UsageIndex) -> Option<usize> {
        self.usages[usize::from(usage.0)].write.map(usize::from)
    }

    /// The columns, as bits, of the usages that write.
    pub fn write_columns(&self, usages: UsageSet) -> u64 {
        let mut columns = 0;
        for (word, (writes, all)) in self.writes_of_word.iter().enumerate() {
            match usages.0[word] & writes {
                0 => {}
                // Most sets have all writes of a word, or none.
                own if own == *writes => columns |= all,
                own => columns |= self.columns_of_word(word, own),
            }
        }
        columns
    }

    fn columns_of_word(&self, word: usize, usages: u64) -> u64 {
        let write = |bit: u8| self.usages[word * 64 + usize::from(bit)].write;
        bits(usages).filter_map(write).fold(0, |all, it| all | 1 << it)
    }

    /// The usage of an access, if the stage can make it.
    #[inline]
    pub fn usage(&self, stage: u64, access: u64) -> Option<UsageIndex> {
        let is_one_each = stage.is_power_of_two() && access.is_power_of_two();
        is_one_each.then(|| self.by_bits[bits_index(stage, access)]).flatten()
    }
}

fn bits_index(stage: u64, access: u64) -> usize {
    (stage.trailing_zeros() * 64 + access.trailing_zeros()) as usize
}

/// The stages of a mask, with groups replaced by their members. `ALL_COMMANDS` has no fixed members; they depend on the
/// queue.
pub fn group_members(bits: u64) -> u64 {
    let mut members = bits;
    // Groups may contain groups: `ALL_GRAPHICS` contains `VERTEX_INPUT`.
    for _ in 0..4 {
        for sync_stage in SYNC_STAGES {
            if sync_stage.equivalent != 0 && members & sync_stage.stage != 0 {
                members = members & !sync_stage.stage | sync_stage.equivalent;
            }
        }
    }
    members
}

/// The accesses of a mask, with groups replaced by their members. `MEMORY_READ` and `MEMORY_WRITE` stay as they are.
pub fn access_members(bits: u64) -> u64 {
    let mut members = bits;
    for sync_access in SYNC_ACCESSES.iter().filter(|it| it.equivalent != 0 && bits & it.access != 0) {
        members |= sync_access.equivalent;
    }
    let all = |want_write: bool| {
        let fits =
            |it: &&SyncAccess| it.access != 0 && it.access & GROUP_ACCESSES == 0 && is_write(it.name) == want_write;
        SYNC_ACCESSES.iter().filter(fits).fold(0, |all, it| all | it.access)
    };
    if bits & AccessFlags2::MEMORY_READ.0 != 0 {
        members |= all(false);
    }
    if bits & AccessFlags2::MEMORY_WRITE.0 != 0 {
        members |= all(true);
    }
    members
}

/// Whether an access is a group with a member that the stage can make. If it has no such member, the group itself is
/// the access: the build of an acceleration structure reads its inputs this way.
fn has_member(access: &SyncAccess, stage: u64) -> bool {
    let is_member = |it: &&SyncAccess| it.access & access.equivalent != 0 && it.equivalent == 0;
    SYNC_ACCESSES.iter().filter(is_member).any(|it| it.stages & stage != 0)
}

/// A draw reads its byte count from a buffer of indirect parameters that is a counter of transform feedback as well. The
/// table gives both reads the stage of indirect draws, and the description of neither excludes this one.
fn sufficient_access(stage: u64, access: u64) -> u64 {
    let is_byte_count =
        stage == PipelineStageFlags2::DRAW_INDIRECT.0 && access == AccessFlags2::TRANSFORM_FEEDBACK_COUNTER_READ_EXT.0;
    access | if is_byte_count { AccessFlags2::INDIRECT_COMMAND_READ.0 } else { 0 }
}

/// The registry has no mark for writes but their names.
fn is_write(name: &str) -> bool {
    name.contains("_WRITE_")
}

impl StageSet {
    pub fn add(&mut self, stage: StageIndex) {
        self.0 |= 1 << stage.0;
    }

    pub fn has(self, stage: StageIndex) -> bool {
        self.0 >> stage.0 & 1 != 0
    }

    pub fn without(self, stage: StageIndex) -> StageSet {
        StageSet(self.0 & !(1 << stage.0))
    }

    pub fn union(self, other: StageSet) -> StageSet {
        StageSet(self.0 | other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn iter(self) -> impl Iterator<Item = StageIndex> {
        bits(self.0).map(StageIndex)
    }
}

impl UsageSet {
    pub fn add(&mut self, usage: UsageIndex) {
        self.0[usize::from(usage.0) / 64] |= 1 << (usage.0 % 64);
    }

    pub fn has(self, usage: UsageIndex) -> bool {
        self.0[usize::from(usage.0) / 64] >> (usage.0 % 64) & 1 != 0
    }

    pub fn union(self, other: UsageSet) -> UsageSet {
        UsageSet(std::array::from_fn(|it| self.0[it] | other.0[it]))
    }

    pub fn is_empty(self) -> bool {
        self.0 == [0; USAGE_WORDS]
    }

    pub fn iter(self) -> impl Iterator<Item = UsageIndex> {
        (0..USAGE_WORDS).flat_map(move |word| bits(self.0[word]).map(move |bit| UsageIndex(word as u8 * 64 + bit)))
    }
}

fn bits(mut word: u64) -> impl Iterator<Item = u8> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros() as u8;
        (word != 0).then(|| word &= word - 1).map(|()| bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_the_usages_of_the_seed() {
        let names = |stage: PipelineStageFlags2| {
            let stage = SYNC_TABLES
                .stages_of_bits(stage.0)
                .iter()
                .next()
                .map(|it| SYNC_TABLES.stages[usize::from(it.0)].usages);
            let name = |usage_index: UsageIndex| {
                let access = SYNC_TABLES.usages[usize::from(usage_index.0)].access;
                SYNC_ACCESSES.iter().find(|it| it.access == access).map_or("", |it| it.name)
            };
            stage.into_iter().flat_map(UsageSet::iter).map(name).collect::<Vec<_>>()
        };
        assert_eq!(names(PipelineStageFlags2::INDEX_INPUT), ["VK_ACCESS_2_INDEX_READ_BIT"]);
        assert!(names(PipelineStageFlags2::COPY).contains(&"VK_ACCESS_2_TRANSFER_WRITE_BIT"));
        assert_eq!(names(PipelineStageFlags2::CLEAR), ["VK_ACCESS_2_TRANSFER_WRITE_BIT"]);
        assert_eq!(names(PipelineStageFlags2::HOST), ["VK_ACCESS_2_HOST_READ_BIT", "VK_ACCESS_2_HOST_WRITE_BIT"]);
        assert!(SYNC_TABLES.usages.len() > 79, "{}", SYNC_TABLES.usages.len());
        let is_single = |it: &&lavascope_abi::desc::SyncAccess| it.access & GROUP_ACCESSES == 0 && it.equivalent == 0;
        for sync_access in SYNC_ACCESSES.iter().filter(|it| it.access != 0).filter(is_single) {
            assert!(
                SYNC_TABLES.usages.iter().any(|usage| usage.access == sync_access.access),
                "{} has a stage",
                sync_access.name
            );
        }
    }

    /// The accesses of a shader stage; each of them is a usage.
    const SHADER: [&str; 5] = [
        "ACCELERATION_STRUCTURE_READ_BIT_KHR",
        "SHADER_SAMPLED_READ_BIT",
        "SHADER_STORAGE_READ_BIT",
        "SHADER_STORAGE_WRITE_BIT",
        "UNIFORM_READ_BIT",
    ];

    fn usages_of(stage: PipelineStageFlags2) -> Vec<&'static str> {
        let stage = SYNC_TABLES.stages_of_bits(stage.0).iter().next().expect("a stage");
        let name = |usage_index: UsageIndex| {
            let access = SYNC_TABLES.usages[usize::from(usage_index.0)].access;
            let own = SYNC_ACCESSES.iter().find(|it| it.access == access).expect("an access");
            own.name.strip_prefix("VK_ACCESS_2_").expect("an access of version 2")
        };
        SYNC_TABLES.stages[usize::from(stage.0)].usages.iter().map(name).collect()
    }

    #[test]
    fn every_shader_stage_has_the_usages_of_shaders() {
        use PipelineStageFlags2 as Stage;
        for stage in [
            Stage::VERTEX_SHADER,
            Stage::TESSELLATION_CONTROL_SHADER,
            Stage::TESSELLATION_EVALUATION_SHADER,
            Stage::GEOMETRY_SHADER,
            Stage::TASK_SHADER_EXT,
            Stage::MESH_SHADER_EXT,
            Stage::FRAGMENT_SHADER,
            Stage::COMPUTE_SHADER,
            Stage::RAY_TRACING_SHADER_KHR,
        ] {
            let usages = usages_of(stage);
            for name in SHADER {
                assert!(usages.contains(&name), "{:#x} lacks {name}: {usages:?}", stage.0);
            }
            // A group of accesses is not a usage.
            assert!(!usages.contains(&"SHADER_READ_BIT") && !usages.contains(&"SHADER_WRITE_BIT"), "{usages:?}");
            let has_attachments = usages.contains(&"INPUT_ATTACHMENT_READ_BIT");
            assert_eq!(has_attachments, stage == Stage::FRAGMENT_SHADER, "{usages:?}");
        }
    }

    #[test]
    fn transform_feedback_has_its_three_usages() {
        let mut usages = usages_of(PipelineStageFlags2::TRANSFORM_FEEDBACK_EXT);
        usages.sort_unstable();
        let names = ["COUNTER_READ_BIT_EXT", "COUNTER_WRITE_BIT_EXT", "WRITE_BIT_EXT"];
        assert_eq!(usages, names.map(|it| format!("TRANSFORM_FEEDBACK_{it}")));
    }

    #[test]
    fn groups_are_taken_apart() {
        let transfer = group_members(PipelineStageFlags2::ALL_TRANSFER.0);
        assert_eq!(transfer & PipelineStageFlags2::COPY.0, PipelineStageFlags2::COPY.0);
        assert_eq!(transfer & PipelineStageFlags2::ALL_TRANSFER.0, 0);
        let graphics = group_members(PipelineStageFlags2::ALL_GRAPHICS.0);
        assert_ne!(graphics & PipelineStageFlags2::INDEX_INPUT.0, 0);
        let reads = access_members(AccessFlags2::MEMORY_READ.0);
        assert_ne!(reads & AccessFlags2::UNIFORM_READ.0, 0);
        assert_eq!(reads & AccessFlags2::TRANSFER_WRITE.0, 0);
    }

    /// Groups are neither stages nor usages; single bits name a usage.
    #[test]
    fn single_bits_are_usages() {
        use AccessFlags2 as A;
        use PipelineStageFlags2 as S;
        assert!(SYNC_TABLES.stages_of_bits(S::ALL_COMMANDS.0 | S::TOP_OF_PIPE.0 | S::BOTTOM_OF_PIPE.0).is_empty());
        let groups = A::MEMORY_READ.0 | A::MEMORY_WRITE.0;
        assert!(SYNC_TABLES.usages.iter().all(|it| it.access & groups == 0));
        let copy = S::COPY.0;
        assert!(
            SYNC_TABLES.usage(copy, A::TRANSFER_READ.0).is_some()
                && SYNC_TABLES.usage(copy, A::TRANSFER_WRITE.0).is_some()
        );
        assert!(SYNC_TABLES.usage(copy, A::TRANSFER_READ.0 | A::TRANSFER_WRITE.0).is_none());
        assert!(
            SYNC_TABLES.usage(copy | S::BLIT.0, A::TRANSFER_READ.0).is_none() && SYNC_TABLES.usage(copy, 0).is_none()
        );
        // A member that is named beside its group stays in the set.
        let graphics = group_members(S::ALL_GRAPHICS.0);
        assert_eq!(group_members(S::ALL_GRAPHICS.0 | S::INDEX_INPUT.0), graphics);
        assert_eq!(group_members(S::VERTEX_INPUT.0 | S::INDEX_INPUT.0), group_members(S::VERTEX_INPUT.0));
        let writes = access_members(A::MEMORY_WRITE.0);
        assert!(writes & A::UNIFORM_READ.0 == 0 && writes & A::TRANSFER_WRITE.0 != 0 && writes & A::MEMORY_READ.0 == 0);
    }

    #[test]
    fn pipelines_order_their_stages() {
        let stage = |bit: PipelineStageFlags2| SYNC_TABLES.stages_of_bits(bit.0).iter().next().expect("a stage");
        let fragment = &SYNC_TABLES.stages[usize::from(stage(PipelineStageFlags2::FRAGMENT_SHADER).0)];
        assert!(fragment.earlier.has(stage(PipelineStageFlags2::VERTEX_SHADER)));
        assert!(fragment.later.has(stage(PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT)));
        assert!(!fragment.earlier.has(stage(PipelineStageFlags2::COMPUTE_SHADER)));
        assert!(!fragment.later.has(stage(PipelineStageFlags2::COPY)));
        // The stage comes before another one and everything after that, but is not in the pipeline itself.
        let density = &SYNC_TABLES.stages[usize::from(stage(PipelineStageFlags2::FRAGMENT_DENSITY_PROCESS_EXT).0)];
        for behind in [PipelineStageFlags2::EARLY_FRAGMENT_TESTS, PipelineStageFlags2::COLOR_ATTACHMENT_OUTPUT] {
            assert!(density.later.has(stage(behind)));
        }
        assert!(!density.later.has(stage(PipelineStageFlags2::VERTEX_SHADER)) && density.earlier.is_empty());
        assert!(!fragment.later.has(stage(PipelineStageFlags2::FRAGMENT_DENSITY_PROCESS_EXT)));
    }
}
