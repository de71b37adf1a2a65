//! What is recorded into command buffers, as far as checks must know: pipelines, sets, and our tables for each draw.
//!
//! Whoever records a command buffer takes it out of its slot and puts it back: the driver is called without a lock.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use lavascope_abi::*;
use rustc_hash::FxHashMap;

use super::arena::{Arena, POOL_SETS, Region};
use super::buffered::{BoundBuffer, Buffered, InBuffers};
use super::late::Late;
use super::layouts::{Layout, TAIL_BYTES, Way};
use super::objects::Bound;
use super::pushed::Pushed;
use super::pushes::Push;
use super::structures::Build;
use super::variants::{Checked, Quiet, ROOT_SPACE, Variant, lock, root_words};
use super::{Gpu, TABLES, descriptors, feedback};

/// The place of a command buffer. It stays where it is until the device ends, and is used again.
#[derive(Default)]
pub(super) struct Slot {
    /// None while it is recorded into, or where no command buffer is here.
    commands: Mutex<Option<Box<Commands>>>,
}

impl Slot {
    pub(super) fn take(&self) -> Option<Box<Commands>> {
        lock(&self.commands).take()
    }

    pub(super) fn put(&self, commands: Box<Commands>) {
        *lock(&self.commands) = Some(commands);
    }

    /// For what is done without the driver.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Commands) -> T) -> Option<T> {
        lock(&self.commands).as_deref_mut().map(work)
    }
}

/// A command buffer.
#[derive(Default)]
pub(super) struct Commands {
    pub(super) pool: u64,
    /// Counted from zero, in the order of allocation.
    pub(super) number: u32,
    pub(super) is_primary: bool,
    /// The last rendering goes on in another command buffer, and nothing may be between.
    pub(super) is_suspended: bool,
    /// How many draws and dispatches were recorded, those that the device generates too.
    count: u32,
    /// How many without these.
    launches: u32,
    points: [Point; 3],
    pub(super) draws: Vec<Draw>,
    /// Builds of acceleration structures whose instances were looked at.
    pub(super) builds: Vec<Build>,
    /// The forms of pipelines that they use, once each.
    pub(super) variants: Vec<Arc<Variant>>,
    /// Those it executes, and the debug labels that are open there.
    pub(super) secondaries: Vec<(u64, Arc<Vec<String>>)>,
    /// The debug labels that are open, the outermost first.
    pub(super) labels: Arc<Vec<String>>,
    /// Those of the queue that it was submitted to last.
    pub(super) queue_labels: Vec<String>,
    /// The layout of the sets that were bound last.
    pub(super) last_layout: Option<(u64, Arc<Layout>)>,
    arena: Arena,
    pools: Vec<DescriptorPool>,
    /// Sets that are left in the last pool.
    sets_left: u32,
    /// The last table of descriptors: often it is the same again.
    table: Option<(Vec<u32>, Region)>,
    /// Tables of descriptors that are looked at again when they are submitted.
    pub(super) late: Vec<Late>,
    /// What was chosen before, by pipeline, sets and offsets.
    known: Known,
    /// Root tables that lead to the table of addresses, and the one that they lead to.
    pub(super) roots: Vec<Region>,
    pub(super) addresses: Option<u64>,
    pub(super) pushed: Pushed,
    /// As the records call it, once it was submitted.
    pub(super) object: Option<ObjectId>,
    /// How often it was executed since what it touched was read.
    pub(super) executions: u32,
    /// Where the next draw keeps what it touches.
    touches: Option<Region>,
    /// Sets that were pushed.
    pub(super) pushed_sets: Vec<u64>,
    /// The buffers with descriptors.
    pub(super) descriptor_buffers: Vec<BoundBuffer>,
    /// Tables of descriptors in buffers.
    pub(super) buffered: Vec<Buffered>,
}

/// A draw or dispatch with checks.
pub(super) struct Draw {
    /// Counted from zero, among the draws and dispatches of the command buffer.
    pub(super) number: u32,
    /// The same, without those that the device generates, as the validator counts; none for one of these.
    pub(super) launch: Option<u32>,
    pub(super) command: &'static str,
    pub(super) function: Command,
    pub(super) variant: Arc<Variant>,
    pub(super) records: Region,
    /// Where its shaders keep what they touch; none where they do not.
    pub(super) touches: Option<Region>,
    pub(super) labels: Arc<Vec<String>>,
    /// Those of the command buffer that executes this one, where it was submitted last.
    pub(super) outer: Arc<Vec<String>>,
}

impl Draw {
    /// All debug labels around it, the outermost first.
    pub(super) fn all_labels(&self) -> Vec<String> {
        self.outer.iter().chain(&*self.labels).cloned().collect()
    }
}

/// What is bound for graphics, or for compute.
#[derive(Default)]
struct Point {
    pipeline: Option<Arc<Checked>>,
    /// The pipeline as the driver has it.
    driver_pipeline: Pipeline,
    /// Shader objects in the place of a pipeline.
    objects: Bound,
    /// The earliest first.
    binds: Vec<Bind>,
    /// For the draws from here on, until something else is bound.
    chosen: Option<Chosen>,
}

/// What was chosen for what was bound, while nothing is written into sets.
#[derive(Default)]
struct Known {
    /// As many writes into sets there were.
    version: u64,
    by_key: FxHashMap<Box<[u64]>, Chosen>,
    /// The key that is looked for.
    key: Vec<u64>,
}

/// More are not remembered.
const KNOWN_MAX: usize = 256;

/// What a draw is made with.
#[derive(Clone)]
struct Chosen {
    variant: Arc<Variant>,
    /// None: nothing is told about what is bound.
    table: Option<Region>,
    is_disturbing: bool,
}

/// Sets that were bound in one call.
#[derive(Clone)]
pub(super) struct Bind {
    pub(super) layout: Arc<Layout>,
    first: u32,
    sets: Vec<u64>,
    offsets: Vec<u32>,
    /// Where nothing is bound but pushed: the calls that did so.
    pub(super) pushes: Vec<Arc<Push>>,
    /// Where descriptors are in buffers: the number of the buffer of each set, and where in it the set begins. The sets
    /// are addresses then.
    pub(super) in_buffers: Vec<(u32, u64)>,
}

/// What is done again behind a draw.
#[derive(Default)]
pub(super) struct After {
    binds: Vec<Bind>,
    pushed: Option<Box<Pushed>>,
    in_buffers: Option<Box<InBuffers>>,
}

impl After {
    pub(super) fn is_empty(&self) -> bool {
        self.binds.is_empty() && self.pushed.is_none() && self.in_buffers.is_none()
    }
}

impl Bind {
    pub(super) fn new(layout: &Arc<Layout>, first: u32, sets: Vec<u64>, offsets: Vec<u32>) -> Bind {
        Bind { layout: Arc::clone(layout), first, sets, offsets, pushes: Vec::new(), in_buffers: Vec::new() }
    }

    pub(super) fn is_in_buffers(&self) -> bool {
        !self.in_buffers.is_empty()
    }

    /// Whether it is of sets that were allocated, which are bound as they are.
    fn is_of_sets(&self) -> bool {
        self.pushes.is_empty() && !self.is_in_buffers()
    }

    fn can_be_made_again(&self) -> bool {
        !self.is_in_buffers() && !self.sets.contains(&0)
    }

    pub(super) fn numbers(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + self.sets.len()
    }

    /// A set, with the dynamic offsets that are its own.
    pub(super) fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        let handle = *self.sets.get(number.checked_sub(self.first as usize)?)?;
        let count = |it: usize| self.layout.sets.get(it).and_then(Option::as_ref).map_or(0, |it| it.dynamic_count());
        let before: usize = (self.first as usize..number).map(count).sum();
        let own = self.offsets.get(before..).unwrap_or_default();
        Some((handle, own.iter().copied().take(count(number)).collect()))
    }
}

impl Point {
    /// Sets take the place of those that the last call bound, if that was alike. Whether it was.
    fn bind_again(&mut self, layout: &Arc<Layout>, first: u32, sets: &[DescriptorSet], offsets: &[u32]) -> bool {
        let is_it =
            |it: &&mut Bind| Arc::ptr_eq(&it.layout, layout) && it.first == first && it.sets.len() == sets.len();
        let Some(last) = self.binds.last_mut().filter(is_it) else { return false };
        last.sets.clear();
        last.sets.extend(sets.iter().map(|it| it.0));
        last.offsets.clear();
        last.offsets.extend(offsets);
        self.chosen = None;
        true
    }

    fn bind(&mut self, bind: Bind) {
        let numbers = bind.numbers();
        // Sets and descriptors in buffers exclude each other, whatever their numbers.
        let is_out = |it: &Bind| bind.is_in_buffers() && it.is_of_sets() || bind.is_of_sets() && it.is_in_buffers();
        self.binds.retain(|it| !is_out(it) && it.numbers().any(|it| !numbers.contains(&it)));
        self.binds.push(bind);
        self.chosen = None;
    }

    fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        self.binds.iter().rev().find_map(|it| it.set(number))
    }

    /// Says what is bound, in words. Equal words are equal binds.
    fn describe(&self, words: &mut Vec<u64>) {
        words.clear();
        words.push(self.pipeline.as_ref().map_or(0, |it| Arc::as_ptr(it).addr() as u64));
        for bind in &self.binds {
            let layout = Arc::as_ptr(&bind.layout).addr() as u64;
            let counts = (bind.sets.len() as u64) << 32 | bind.offsets.len() as u64;
            words.extend([layout, u64::from(bind.first), counts]);
            words.extend(&bind.sets);
            words.extend(bind.offsets.iter().map(|it| u64::from(*it)));
        }
    }

    /// Whether binding our set with a layout may take away what the application bound.
    fn is_disturbed_by(&self, layout: &Layout) -> bool {
        let is_safe = |it: &Bind| {
            it.is_in_buffers() || it.numbers().next_back().is_none_or(|last| it.layout.is_compatible(layout, last))
        };
        !self.binds.iter().all(is_safe)
    }
}

const POINTS: [PipelineBindPoint; 3] =
    [PipelineBindPoint::GRAPHICS, PipelineBindPoint::COMPUTE, PipelineBindPoint::RAY_TRACING_KHR];

/// Where a bind point's state is; none for those without checks.
pub(super) fn point_of(point: PipelineBindPoint) -> Option<usize> {
    POINTS.iter().position(|it| *it == point)
}

impl Commands {
    pub(super) fn new(pool: u64, number: u32, is_primary: bool) -> Commands {
        Commands { pool, number, is_primary, ..Commands::default() }
    }

    /// Whether there may be a barrier at its end.
    pub(super) fn may_end_with_barrier(&self) -> bool {
        self.is_primary && !self.is_suspended
    }

    /// Whether its shaders, or those that it executes, may write records.
    pub(super) fn writes_for_us(&self) -> bool {
        !self.draws.is_empty() || !self.builds.is_empty() || !self.secondaries.is_empty()
    }

    pub(super) fn bind_pipeline(&mut self, point: usize, handle: Pipeline, pipeline: Option<Arc<Checked>>) {
        let point = &mut self.points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (pipeline, handle, None);
        point.objects = Bound::default();
    }

    pub(super) fn bind_sets(&mut self, point: usize, bind: Bind) {
        self.points[point].bind(bind);
    }

    /// Sets were bound by one call.
    pub(super) fn bind_call(
        &mut self,
        point: usize,
        layout: &Arc<Layout>,
        first: u32,
        sets: &[DescriptorSet],
        offsets: &[u32],
    ) {
        let point = &mut self.points[point];
        if !point.bind_again(layout, first, sets, offsets) {
            let sets = sets.iter().map(|it| it.0).collect();
            point.bind(Bind::new(layout, first, sets, offsets.to_vec()));
        }
    }

    /// The layout that was used last, if it is this one: none is destroyed while commands are recorded with it.
    pub(super) fn last_layout(&self, handle: PipelineLayout) -> Option<Arc<Layout>> {
        self.last_layout.as_ref().filter(|it| it.0 == handle.0).map(|it| Arc::clone(&it.1))
    }

    /// What a set was bound by last.
    pub(super) fn bound_at(&self, point: usize, set: usize) -> Option<&Bind> {
        self.points[point].binds.iter().rev().find(|it| it.numbers().contains(&set))
    }

    /// Shader objects are bound, in the place of a pipeline.
    pub(super) fn bind_object(&mut self, point: usize, stage: ShaderStageFlags, shader: ShaderEXT) {
        let point = &mut self.points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (None, Pipeline::default(), None);
        point.objects.bind(stage, shader);
    }

    pub(super) fn objects(&mut self, point: usize) -> &mut Bound {
        &mut self.points[point].objects
    }

    /// What the shader objects of a point are together.
    pub(super) fn set_pipeline(&mut self, point: usize, pipeline: Option<Arc<Checked>>) {
        self.points[point].pipeline = pipeline;
    }

    /// Secondary command buffers leave nothing bound.
    pub(super) fn execute(&mut self, secondaries: impl Iterator<Item = u64>) {
        self.secondaries.extend(secondaries.map(|it| (it, Arc::clone(&self.labels))));
        self.points = Default::default();
        self.pushed = Pushed::default();
    }

    /// What of descriptors in buffers is bound, for all points: any set that is bound takes all of it away.
    fn in_buffers(&self) -> Option<Box<InBuffers>> {
        if self.descriptor_buffers.is_empty() {
            return None;
        }
        let all = POINTS.iter().zip(&self.points);
        let binds = all.flat_map(|(point, all)| all.binds.iter().map(move |it| (*point, it)));
        let sets = binds.filter(|it| it.1.is_in_buffers()).map(|(point, it)| (point, it.clone())).collect();
        Some(Box::new(InBuffers { buffers: self.descriptor_buffers.clone(), sets }))
    }

    /// Memory that lives as long as what is recorded.
    pub(super) fn allocate(&mut self, gpu: &Gpu, words: u32) -> Option<Region> {
        gpu.or_fail(self.arena.allocate(gpu, words)).filter(|it| it.device_address != 0)
    }

    /// A table of descriptors of its own.
    pub(super) fn allocate_table(&mut self, gpu: &Gpu, words: &[u32]) -> Option<Region> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        region.write(words);
        Some(region)
    }

    /// A set of ours that lives as long as what is recorded.
    pub(super) fn write_set(&mut self, gpu: &Gpu, regions: [Region; TABLES]) -> Option<DescriptorSet> {
        if self.sets_left == 0 {
            self.pools.push(gpu.take_pool()?);
            self.sets_left = POOL_SETS;
        }
        self.sets_left -= 1;
        gpu.write_set(*self.pools.last()?, regions)
    }

    /// What is bound for compute, as the driver has it.
    pub(super) fn compute_pipeline(&self) -> Pipeline {
        self.points[1].driver_pipeline
    }

    pub(super) fn into_parts(self) -> (Arena, Vec<DescriptorPool>) {
        (self.arena, self.pools)
    }
}

impl Gpu {
    /// A command buffer begins anew, or is no more: what it had is free.
    pub(super) fn clear_commands(&self, handle: u64, is_freed: bool) {
        let Some(slot) = self.slot(handle) else { return };
        let Some(old) = slot.take() else { return };
        if is_freed {
            self.slots.remove(handle, 0);
            let mut state = self.state();
            if let Some(all) = state.pools.get_mut(&old.pool) {
                all.retain(|it| *it != handle);
            }
            state.free_slots.push(slot);
        } else {
            slot.put(Box::new(Commands::new(old.pool, old.number, old.is_primary)));
        }
        if !old.pushed_sets.is_empty() {
            let mut state = self.state();
            old.pushed_sets.iter().for_each(|it| drop(state.sets.remove(it)));
        }
        let (arena, pools) = old.into_parts();
        self.give_back(arena.blocks, pools);
    }

    /// A draw or dispatch is about to be recorded: leads its shaders to our tables. Gives what is done behind it.
    pub(super) fn before_draw(&self, handle: CommandBuffer, point: usize, command: Command) -> After {
        let Some(slot) = self.slot(handle.0) else { return After::default() };
        let Some(mut commands) = slot.take() else { return After::default() };
        let after = self.record_draw(&mut commands, handle, point, command);
        slot.put(commands);
        after
    }

    fn record_draw(&self, commands: &mut Commands, handle: CommandBuffer, point: usize, command: Command) -> After {
        let (number, launch) = (commands.count, commands.launches);
        (commands.count, commands.launches) = (number + 1, launch + 1);
        if commands.points[point].objects.is_new() {
            self.combine(commands, handle, point);
        }
        if commands.points[point].pipeline.is_none() {
            return After::default();
        }
        if commands.points[point].chosen.is_none() && !self.find_chosen(commands, point) {
            self.choose(commands, point);
        }
        let Some(chosen) = commands.points[point].chosen.clone() else { return After::default() };
        self.record_chosen(commands, handle, point, (number, Some(launch), command), chosen)
    }

    fn record_chosen(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        (number, launch, command): (u32, Option<u32>, Command),
        chosen: Chosen,
    ) -> After {
        self.bind_form(commands, handle, point, &chosen.variant);
        let own = self.tell_tables(commands, handle, point, &chosen);
        let touches = commands.touches.take();
        for records in chosen.variant.fixed.iter().map(|it| it.records).chain(own) {
            let (variant, labels) = (Arc::clone(&chosen.variant), Arc::clone(&commands.labels));
            let (name, outer) = (command.desc().name, Arc::default());
            commands.draws.push(Draw {
                number,
                launch,
                command: name,
                function: command,
                variant,
                records,
                touches,
                labels,
                outer,
            });
        }
        let binds_set = chosen.variant.way == Way::Set && !chosen.variant.stages.is_empty();
        self.after(commands, point, (binds_set, chosen.is_disturbing))
    }

    /// As for a draw, for commands that know what is bound by its handle: in the form that the application has. What is
    /// fixed when they are preprocessed cannot have tables of its own.
    pub(super) fn before_generated(
        &self,
        handle: CommandBuffer,
        point: usize,
        command: Command,
        is_fixed: bool,
    ) -> After {
        let Some(slot) = self.slot(handle.0) else { return After::default() };
        let Some(mut commands) = slot.take() else { return After::default() };
        let after = self.record_generated(&mut commands, handle, point, (command, is_fixed));
        // For what is drawn next it is chosen anew.
        commands.points[point].chosen = None;
        slot.put(commands);
        after
    }

    fn record_generated(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        (command, is_fixed): (Command, bool),
    ) -> After {
        let number = commands.count;
        commands.count += 1;
        if commands.points[point].objects.is_new() {
            self.combine(commands, handle, point);
        }
        let bound = &commands.points[point];
        let Some(variant) = bound.pipeline.as_ref().map(|it| Arc::clone(&it.first)) else { return After::default() };
        let version = self.sets_version.load(Ordering::Acquire);
        let words = descriptors::table(&variant.layout, &self.state().sets, |it| bound.set(it));
        if is_fixed && !variant.stages.is_empty() {
            self.say("generated commands that are preprocessed are not checked");
        }
        let is_fit = !is_fixed && variant.is_fit_for(&words) && !variant.stages.is_empty() && !self.has_failed();
        let is_disturbing = variant.way == Way::Set && bound.is_disturbed_by(&variant.layout);
        let table = match is_fit {
            true => self.or_fail(self.table_of(commands, point, &variant, (words, version))),
            false => None,
        };
        if !commands.variants.iter().any(|it| Arc::ptr_eq(it, &variant)) {
            commands.variants.push(Arc::clone(&variant));
        }
        let chosen = Chosen { variant, table, is_disturbing };
        self.record_chosen(commands, handle, point, (number, None, command), chosen)
    }

    /// Takes what was chosen before for the same.
    fn find_chosen(&self, commands: &mut Commands, at: usize) -> bool {
        let Commands { known, points, .. } = commands;
        let version = self.sets_version.load(Ordering::Acquire);
        if known.version != version || known.by_key.len() > KNOWN_MAX {
            known.by_key.clear();
            known.version = version;
        }
        let mut key = std::mem::take(&mut known.key);
        points[at].describe(&mut key);
        points[at].chosen = known.by_key.get(&key[..]).cloned();
        known.key = key;
        points[at].chosen.is_some()
    }

    /// Looks at what is bound, and takes the form of the pipeline that fits it.
    fn choose(&self, commands: &mut Commands, at: usize) {
        let point = &commands.points[at];
        let Some(checked) = point.pipeline.clone() else { return };
        let Some(selected) = checked.selected() else { return };
        let version = self.sets_version.load(Ordering::Acquire);
        let words = descriptors::table(&selected.layout, &self.state().sets, |it| point.set(it));
        let form = self.form_for(&checked, &words);
        let is_quiet = form.is_none();
        let variant = form.unwrap_or(selected);
        variant.fixed.iter().for_each(|it| it.add(&words));
        let is_quiet = is_quiet || variant.stages.is_empty() || self.has_failed();
        let table = match is_quiet {
            true => None,
            false => self.or_fail(self.table_of(commands, at, &variant, (words, version))),
        };
        let is_disturbing = variant.way == Way::Set
            && !variant.stages.is_empty()
            && commands.points[at].is_disturbed_by(&variant.layout);
        if !commands.variants.iter().any(|it| Arc::ptr_eq(it, &variant)) {
            commands.variants.push(Arc::clone(&variant));
        }
        let chosen = Chosen { variant, table, is_disturbing };
        let key = commands.known.key.clone().into_boxed_slice();
        commands.known.by_key.insert(key, chosen.clone());
        commands.points[at].chosen = Some(chosen);
    }

    /// The table of what is bound, in the way that its layout needs.
    fn table_of(
        &self,
        commands: &mut Commands,
        at: usize,
        variant: &Arc<Variant>,
        (words, version): (Vec<u32>, u64),
    ) -> Option<Region> {
        let (point, count) = (&commands.points[at], variant.layout.sets.len());
        if variant.layout.is_in_buffers() {
            let sets = (0..count).map(|it| point.set(it).map(|it| it.0)).collect();
            return self.buffered_table(commands, variant, sets, words);
        }
        if variant.layout.has_late() {
            let sets = (0..count).map(|it| point.set(it)).collect();
            return self.late_table(commands, variant, sets, (words, version));
        }
        self.table(commands, words)
    }

    fn table(&self, commands: &mut Commands, words: Vec<u32>) -> Option<Region> {
        match &commands.table {
            Some((same, region)) if *same == words => Some(*region),
            _ => {
                let region = commands.allocate_table(self, &words)?;
                commands.table = Some((words, region));
                Some(region)
            }
        }
    }

    /// Binds the form of a pipeline where the driver has another.
    fn bind_form(&self, commands: &mut Commands, handle: CommandBuffer, point: usize, variant: &Variant) {
        if let Some(objects) = &variant.objects {
            return self.bind_objects(commands, handle, point, objects.bound());
        }
        let bound = &mut commands.points[point].driver_pipeline;
        if *bound != variant.handle
            && let Some(bind) = self.next.cmd_bind_pipeline
        {
            // SAFETY: a pipeline that differs from the application's in its shaders alone, into a command buffer
            // that it records now.
            unsafe { bind(handle, POINTS[point], variant.handle) };
            *bound = variant.handle;
        }
    }

    /// Makes the tables of a draw and tells its shaders. Gives where its records will be, if in tables of its own.
    fn tell_tables(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        chosen: &Chosen,
    ) -> Option<Region> {
        let variant = &chosen.variant;
        if variant.stages.is_empty() || !variant.fixed.is_empty() {
            return None;
        }
        let own = match (chosen.table, variant.way) {
            (None, _) => None,
            (Some(table), Way::Set) => self.or_fail(self.own_set(commands, variant, table)),
            (Some(table), _) => self.or_fail(self.own_root(commands, variant, table)),
        };
        let told = own.map(|it| it.1).or(variant.quiet)?;
        if own.is_none() {
            // From here on without tables, until something else is bound.
            commands.points[point].chosen = Some(Chosen { table: None, ..chosen.clone() });
        }
        match told {
            Quiet::Root(root) => self.push_root(commands, handle, variant, root),
            Quiet::Set(set) => self.bind_set(handle, point, variant, set),
        }
        own.map(|it| it.0)
    }

    /// Records and a root table for a draw.
    fn own_root(&self, commands: &mut Commands, variant: &Variant, table: Region) -> Option<(Region, Quiet)> {
        let (record_words, touch_words) = (self.record_words(variant), feedback::touch_words(variant));
        let all = commands.arena.allocate(self, ROOT_SPACE + record_words + touch_words)?;
        let records = all.from(ROOT_SPACE).first(record_words);
        commands.touches = (touch_words > 0).then(|| all.from(ROOT_SPACE + record_words));
        let mut addresses = self.everywhere;
        if variant.reads_addresses {
            addresses = self.addresses_now();
            commands.addresses = match commands.addresses {
                // Roots lead to different tables: all are led to the right one when they are submitted.
                Some(before) if before != addresses.device_address => Some(0),
                _ => Some(addresses.device_address),
            };
            commands.roots.push(all);
        }
        let mut root = root_words([records, table, addresses, variant.cells]);
        if let Some(area) = commands.touches {
            feedback::lead_to(&mut root, area, variant);
        }
        all.write(&root);
        Some((records, Quiet::Root(all)))
    }

    /// Records and a set for a draw.
    fn own_set(&self, commands: &mut Commands, variant: &Variant, table: Region) -> Option<(Region, Quiet)> {
        let records = commands.arena.allocate(self, self.record_words(variant))?;
        let set = commands.write_set(self, [records, table, self.everywhere, variant.cells])?;
        Some((records, Quiet::Set(set)))
    }

    fn push_root(&self, commands: &mut Commands, handle: CommandBuffer, variant: &Variant, root: Region) {
        let (Some(push), Some(layout), Some(tail)) = (self.next.cmd_push_constants, variant.layout.own, self.tail)
        else {
            return;
        };
        let stages = ShaderStageFlags(variant.layout.stages_of(tail, TAIL_BYTES));
        let bytes = root.device_address.to_ne_bytes();
        // SAFETY: a layout of ours whose push constants reach to the tail, into a command buffer that is recorded now.
        unsafe { push(handle, layout, stages, tail, TAIL_BYTES, Ptr::to_slice(&bytes)) };
        commands.pushed.disturb(&variant.layout);
    }

    fn bind_set(&self, handle: CommandBuffer, point: usize, variant: &Variant, set: DescriptorSet) {
        let (Some(bind), Some(layout)) = (self.next.cmd_bind_descriptor_sets, variant.layout.own) else { return };
        // SAFETY: a set of ours and a layout of ours with it, into a command buffer that the application records now.
        unsafe { bind(handle, POINTS[point], layout, self.set, 1, Ptr::to(&set), 0, Ptr::NULL) };
    }

    /// What is done again where a set of ours was bound, and where that disturbed others.
    fn after(&self, commands: &mut Commands, point: usize, (binds_set, is_disturbing): (bool, bool)) -> After {
        let mut after = After::default();
        if binds_set {
            after.in_buffers = commands.in_buffers();
        }
        if is_disturbing {
            let binds = commands.points[point].binds.iter();
            after.binds = binds.filter(|it| it.can_be_made_again()).cloned().collect();
        }
        if commands.pushed.is_disturbed() {
            after.pushed = Some(Box::new(commands.pushed.clone()));
            commands.pushed.mend();
        }
        after
    }

    /// Binds and pushes again what the application had for compute.
    pub(super) fn bind_compute_again(&self, handle: CommandBuffer, commands: &Commands) {
        let point = &commands.points[1];
        if let Some(bind) = self.next.cmd_bind_pipeline.filter(|_| point.driver_pipeline.0 != 0) {
            // SAFETY: what the application bound, as the driver has it.
            unsafe { bind(handle, POINTS[1], point.driver_pipeline) };
        }
        let binds = point.binds.iter().filter(|it| it.can_be_made_again()).cloned().collect();
        let (pushed, in_buffers) = (Some(Box::new(commands.pushed.clone())), commands.in_buffers());
        self.after_draw(handle, 1, &After { binds, pushed, in_buffers });
    }

    /// Binds and pushes again what the application had.
    pub(super) fn after_draw(&self, handle: CommandBuffer, point: usize, after: &After) {
        if let Some(push) = self.next.cmd_push_constants {
            after.pushed.iter().for_each(|it| it.push_again(handle, push));
        }
        let Some(bind) = self.next.cmd_bind_descriptor_sets else { return };
        for it in &after.binds {
            if !it.pushes.is_empty() {
                it.pushes.iter().for_each(|it| self.push_again(handle, it));
                continue;
            }
            let layout = it.layout.own.unwrap_or(it.layout.handle);
            let sets: Vec<DescriptorSet> = it.sets.iter().map(|it| DescriptorSet(*it)).collect();
            let (count, offset_count) = (sets.len() as u32, it.offsets.len() as u32);
            let (sets, offsets) = (Ptr::to_slice(&sets), Ptr::to_slice(&it.offsets));
            // SAFETY: what the application bound itself, into a command buffer that it records now.
            unsafe { bind(handle, POINTS[point], layout, it.first, count, sets, offset_count, offsets) };
        }
        after.in_buffers.iter().for_each(|it| self.bind_buffers_again(handle, it));
    }
}
