//! The effects on contents of what is recorded into command buffers, and of what is submitted.

use lavascope_abi::ObjectId;
use lavascope_abi::{Command, HandleType};
use lavascope_record::Call;
use rustc_hash::FxHashMap;

use crate::command_effects::{self, CommandMeaning};
use crate::resources::{Effect, Resources, id};

/// How a command buffer or a submission uses a resource, in total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ResourceUse {
    /// The old contents are not read.
    pub(crate) discards_first: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

#[derive(Default)]
pub(crate) struct CommandRecording {
    /// Its calls, the beginning and the end among them.
    pub(crate) calls: Vec<usize>,
    pub(crate) secondaries: Vec<usize>,
    uses: FxHashMap<ObjectId, ResourceUse>,
    /// With their versions when they were bound.
    sets: Vec<(ObjectId, u32)>,
    /// Runs shaders.
    runs_shaders: bool,
}

/// A call that submits.
pub(crate) struct SubmitCall {
    pub(crate) call: usize,
    pub(crate) recordings: Vec<usize>,
    pub(crate) uses: Vec<(ObjectId, ResourceUse)>,
}

#[derive(Default)]
pub(crate) struct ContentTracker {
    pub(crate) resources: Resources,
    pub(crate) recordings: Vec<CommandRecording>,
    pub(crate) submits: Vec<SubmitCall>,
    /// The current recording of each command buffer.
    current: FxHashMap<ObjectId, usize>,
    /// A command whose effects on contents are unknown.
    pub(crate) unknown: Option<Command>,
}

impl ContentTracker {
    /// A call that records, by its number.
    pub(crate) fn record(&mut self, index: usize, command: Command, call: Call<'_>, refs: &[ObjectId]) {
        let Some(buffer) = refs.first().copied() else { return };
        if command == Command::BeginCommandBuffer {
            self.current.insert(buffer, self.recordings.len());
            self.recordings.push(CommandRecording::default());
        }
        let Some(at) = self.current.get(&buffer).copied() else { return };
        self.recordings[at].calls.push(index);
        match command_effects::meaning(command) {
            CommandMeaning::Unknown => self.unknown = self.unknown.or(Some(command)),
            CommandMeaning::SetState => {}
            CommandMeaning::BindSets => {
                let sets = refs.iter().filter(|it| it.ty() == Some(HandleType::DescriptorSet));
                sets.for_each(|it| self.bind_set(at, *it));
            }
            CommandMeaning::Execute => {
                let others = refs[1..].iter().filter_map(|it| self.current.get(it).copied());
                others.collect::<Vec<_>>().into_iter().for_each(|it| self.execute(at, it));
            }
            meaning => {
                let ContentTracker { resources, recordings, .. } = self;
                let own = &mut recordings[at];
                own.runs_shaders |= meaning == CommandMeaning::RunShaders;
                command_effects::effects(command, call, refs, resources, &mut |object_id, effect| {
                    own.apply_effect(object_id, effect)
                });
            }
        }
    }

    fn bind_set(&mut self, at: usize, set: ObjectId) {
        let (version, all) = self.resources.set(set);
        self.recordings[at].sets.push((set, version));
        all.into_iter().for_each(|it| self.recordings[at].apply_effect(it.0, it.1));
    }

    fn execute(&mut self, at: usize, secondary: usize) {
        let other = &self.recordings[secondary];
        let (uses, sets, acts) = (other.uses.clone(), other.sets.clone(), other.runs_shaders);
        let own = &mut self.recordings[at];
        uses.into_iter().for_each(|(it, what)| own.add(it, what));
        own.sets.extend(sets);
        own.runs_shaders |= acts;
        own.secondaries.push(secondary);
    }

    /// A call that submits these command buffers, in their order.
    pub(crate) fn submit(&mut self, index: usize, call: Call<'_>) {
        let buffers: Vec<ObjectId> = match call {
            Call::QueueSubmit(params) => {
                let all = params.p_submits();
                all.iter().flat_map(|it| it.p_command_buffers().to_vec()).map(|it| id(it.0)).collect()
            }
            Call::QueueSubmit2(params) => {
                let all = params.p_submits();
                let infos = all.iter().flat_map(|it| it.p_command_buffer_infos().iter());
                infos.map(|it| id(it.command_buffer.0)).collect()
            }
            _ => return,
        };
        let recordings: Vec<usize> = buffers.iter().filter_map(|it| self.current.get(it).copied()).collect();
        let mut all = CommandRecording::default();
        for at in &recordings {
            let own = &self.recordings[*at];
            own.uses.iter().for_each(|(it, what)| all.add(*it, *what));
            for (set, version) in &own.sets {
                let (now, resources) = self.resources.set(*set);
                for (resource, effect) in resources.into_iter().filter(|_| now != *version) {
                    all.apply_effect(resource, effect);
                    // It may be used before anything else happens to it.
                    all.uses.entry(resource).and_modify(|it| (it.discards_first, it.reads) = (false, true));
                }
            }
            if own.runs_shaders {
                self.resources.addressed.iter().for_each(|it| all.apply_effect(*it, Effect::ReadWrite));
            }
        }
        let mut uses: Vec<(ObjectId, ResourceUse)> = all.uses.into_iter().collect();
        uses.sort_unstable_by_key(|it| it.0);
        self.submits.push(SubmitCall { call: index, recordings, uses });
    }

    /// The recording that a command buffer has now.
    pub(crate) fn current(&self, buffer: ObjectId) -> Option<usize> {
        self.current.get(&buffer).copied()
    }
}

impl CommandRecording {
    fn apply_effect(&mut self, object_id: ObjectId, effect: Effect) {
        let reads = matches!(effect, Effect::Read | Effect::ReadWrite);
        self.add(
            object_id,
            ResourceUse { discards_first: effect == Effect::Discard, reads, writes: effect != Effect::Read },
        );
    }

    fn add(&mut self, object_id: ObjectId, what: ResourceUse) {
        self.uses.entry(object_id).and_modify(|own| own.join(what)).or_insert(what);
    }
}

impl ResourceUse {
    fn join(&mut self, later: ResourceUse) {
        self.reads |= later.reads;
        self.writes |= later.writes;
    }
}
