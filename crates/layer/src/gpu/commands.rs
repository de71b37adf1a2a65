//! What is recorded into command buffers, as far as checks must know: pipelines, sets, and our set for each draw.

use std::sync::Arc;

use lavascope_abi::*;
use lavascope_instrument::{Table, tables};

use super::arena::{Arena, Region, is_fine};
use super::layouts::Layout;
use super::pipelines::Checked;
use super::{Gpu, State, TABLES, descriptors, place};

/// Sets of ours in one pool.
pub(super) const POOL_SETS: u32 = 64;

/// A command buffer.
#[derive(Default)]
pub(super) struct Commands {
    pub(super) pool: u64,
    /// Counted from zero, in the order of allocation.
    pub(super) number: u32,
    /// How many draws and dispatches were recorded.
    count: u32,
    points: [Point; 2],
    pub(super) draws: Vec<Draw>,
    /// Those it executes.
    pub(super) secondaries: Vec<u64>,
    /// The debug labels that are open, the outermost first.
    pub(super) labels: Arc<Vec<String>>,
    /// Those of the queue that it was submitted to last.
    pub(super) queue_labels: Vec<String>,
    arena: Arena,
    pools: Vec<DescriptorPool>,
    /// Sets that are left in the last pool.
    sets_left: u32,
    /// The last table of descriptors: often it is the same again.
    table: Option<(Vec<u32>, Region)>,
    addresses: Option<Region>,
}

/// A draw or dispatch with checks.
pub(super) struct Draw {
    /// Counted from zero, among the draws and dispatches of the command buffer.
    pub(super) number: u32,
    pub(super) command: &'static str,
    pub(super) pipeline: Arc<Checked>,
    pub(super) records: Region,
    pub(super) labels: Arc<Vec<String>>,
}

/// What is bound for graphics, or for compute.
#[derive(Default)]
struct Point {
    pipeline: Option<Arc<Checked>>,
    /// The earliest first.
    binds: Vec<Bind>,
}

/// Sets that were bound in one call.
#[derive(Clone)]
pub(super) struct Bind {
    layout: Arc<Layout>,
    first: u32,
    /// Zero for what was pushed, of which nothing is known.
    sets: Vec<u64>,
    offsets: Vec<u32>,
}

impl Bind {
    pub(super) fn new(layout: &Arc<Layout>, first: u32, sets: Vec<u64>, offsets: Vec<u32>) -> Bind {
        Bind { layout: Arc::clone(layout), first, sets, offsets }
    }

    fn numbers(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + self.sets.len()
    }

    /// A set, with the dynamic offsets that are its own.
    fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        let handle = *self.sets.get(number.checked_sub(self.first as usize)?)?;
        let count = |it: usize| self.layout.sets.get(it).and_then(Option::as_ref).map_or(0, |it| it.dynamic_count());
        let before: usize = (self.first as usize..number).map(count).sum();
        let own = self.offsets.get(before..).unwrap_or_default();
        Some((handle, own.iter().copied().take(count(number)).collect()))
    }
}

impl Point {
    fn bind(&mut self, bind: Bind) {
        let numbers = bind.numbers();
        self.binds.retain(|it| it.numbers().any(|it| !numbers.contains(&it)));
        self.binds.push(bind);
    }

    fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        self.binds.iter().rev().find_map(|it| it.set(number))
    }

    /// Whether binding our set with a layout may take away what the application bound.
    fn is_disturbed_by(&self, layout: &Layout) -> bool {
        let is_safe = |it: &Bind| it.numbers().next_back().is_none_or(|last| it.layout.is_compatible(layout, last));
        !self.binds.iter().all(is_safe)
    }
}

/// Where a bind point's state is; none for those without checks.
pub(super) fn point_of(point: PipelineBindPoint) -> Option<usize> {
    match point {
        PipelineBindPoint::GRAPHICS => Some(0),
        PipelineBindPoint::COMPUTE => Some(1),
        _ => None,
    }
}

impl Commands {
    pub(super) fn new(pool: u64, number: u32) -> Commands {
        Commands { pool, number, ..Commands::default() }
    }

    pub(super) fn bind_pipeline(&mut self, point: usize, pipeline: Option<Arc<Checked>>) {
        self.points[point].pipeline = pipeline;
    }

    pub(super) fn bind_sets(&mut self, point: usize, bind: Bind) {
        self.points[point].bind(bind);
    }

    /// Other shaders are bound in another way, or nothing is known any more.
    pub(super) fn unbind(&mut self) {
        self.points.iter_mut().for_each(|it| it.pipeline = None);
    }

    /// Secondary command buffers leave nothing bound.
    pub(super) fn execute(&mut self, secondaries: impl Iterator<Item = u64>) {
        self.secondaries.extend(secondaries);
        self.points = Default::default();
    }

    pub(super) fn into_parts(self) -> (Arena, Vec<DescriptorPool>) {
        (self.arena, self.pools)
    }
}

impl State {
    /// A command buffer begins anew: what it had is free.
    pub(super) fn clear_commands(&mut self, gpu: &Gpu, handle: u64) {
        let Some(commands) = self.commands.get_mut(&handle) else { return };
        let fresh = Commands::new(commands.pool, commands.number);
        let old = std::mem::replace(commands, fresh);
        self.free(gpu, old);
    }

    pub(super) fn free(&mut self, gpu: &Gpu, commands: Commands) {
        let (arena, pools) = commands.into_parts();
        self.free_blocks.extend(arena.blocks);
        for pool in pools {
            let reset = gpu.next.reset_descriptor_pool;
            // SAFETY: a pool of ours, whose sets nobody uses.
            _ = reset.map(|it| unsafe { it(gpu.device, pool, DescriptorPoolResetFlags::default()) });
            self.free_pools.push(pool);
        }
    }
}

impl Gpu {
    /// A draw or dispatch is about to be recorded: binds our set. Gives what must be bound again behind it.
    pub(super) fn before_draw(&self, handle: CommandBuffer, point: usize, command: Command) -> Vec<Bind> {
        let mut state = self.state();
        let Some(mut commands) = state.commands.remove(&handle.0) else { return Vec::new() };
        let mut again = Vec::new();
        let number = commands.count;
        commands.count += 1;
        if let Some(pipeline) = commands.points[point].pipeline.clone() {
            match self.bind_own(&mut state, &mut commands, (handle, point), &pipeline) {
                Some(records) => {
                    let name = command.desc().name;
                    commands.draws.push(Draw {
                        number,
                        command: name,
                        pipeline: Arc::clone(&pipeline),
                        records,
                        labels: Arc::clone(&commands.labels),
                    });
                }
                None => self.say(&mut state, "there is no memory for checks: what is found may be wrong from here on"),
            }
            let point = &commands.points[point];
            if point.is_disturbed_by(&pipeline.layout) {
                again = point.binds.iter().filter(|it| !it.sets.contains(&0)).cloned().collect();
            }
        }
        state.commands.insert(handle.0, commands);
        again
    }

    /// Binds again what the application had bound.
    pub(super) fn after_draw(&self, handle: CommandBuffer, point: usize, again: &[Bind]) {
        let Some(bind) = self.next.cmd_bind_descriptor_sets else { return };
        let point = if point == 0 { PipelineBindPoint::GRAPHICS } else { PipelineBindPoint::COMPUTE };
        for it in again {
            let layout = it.layout.own.unwrap_or(it.layout.handle);
            let sets: Vec<DescriptorSet> = it.sets.iter().map(|it| DescriptorSet(*it)).collect();
            let (count, offset_count) = (sets.len() as u32, it.offsets.len() as u32);
            let (sets, offsets) = (Ptr::to_slice(&sets), Ptr::to_slice(&it.offsets));
            // SAFETY: what the application bound itself, into a command buffer that it records now.
            unsafe { bind(handle, point, layout, it.first, count, sets, offset_count, offsets) };
        }
    }

    /// Makes the tables of a draw and binds them. Gives where its records will be.
    fn bind_own(
        &self,
        state: &mut State,
        commands: &mut Commands,
        (handle, point): (CommandBuffer, usize),
        pipeline: &Checked,
    ) -> Option<Region> {
        let words = descriptors::table(&pipeline.layout, &state.sets, |it| commands.points[point].set(it));
        let free = &mut state.free_blocks;
        let arena = &mut commands.arena;
        let prints = pipeline.stages.iter().any(|it| it.made.prints);
        let records = arena.allocate(self, free, self.config.record_words(prints))?;
        let table = match &commands.table {
            Some((same, region)) if *same == words => *region,
            _ => {
                let region = arena.allocate(self, free, words.len() as u32)?;
                region.write(&words);
                commands.table = Some((words, region));
                region
            }
        };
        let addresses = match commands.addresses {
            Some(it) => it,
            None => {
                let words = tables::addresses(&[], 0);
                let region = arena.allocate(self, free, words.len() as u32)?;
                region.write(&words);
                *commands.addresses.insert(region)
            }
        };
        let mut regions = [records; TABLES];
        regions[Table::Descriptors as usize] = table;
        regions[Table::Addresses as usize] = addresses;
        regions[Table::Cells as usize] = pipeline.cells;
        let set = self.own_set(state, commands, regions)?;
        let point = if point == 0 { PipelineBindPoint::GRAPHICS } else { PipelineBindPoint::COMPUTE };
        let (bind, layout) = (self.next.cmd_bind_descriptor_sets?, pipeline.layout.own?);
        // SAFETY: a set of ours and a layout of ours with it, into a command buffer that the application records now.
        unsafe { bind(handle, point, layout, self.set, 1, Ptr::to(&set), 0, Ptr::NULL) };
        Some(records)
    }

    /// A set of ours with the tables in it.
    fn own_set(&self, state: &mut State, commands: &mut Commands, regions: [Region; TABLES]) -> Option<DescriptorSet> {
        if commands.sets_left == 0 {
            commands.pools.push(self.take_pool(state)?);
            commands.sets_left = POOL_SETS;
        }
        commands.sets_left -= 1;
        let mut info = DescriptorSetAllocateInfo::zeroed();
        info.s_type = StructureType::DESCRIPTOR_SET_ALLOCATE_INFO;
        info.descriptor_pool = *commands.pools.last()?;
        info.descriptor_set_count = 1;
        info.p_set_layouts = Ptr::to(&self.set_layout);
        let mut set = DescriptorSet::default();
        let buffers = regions.map(Region::info);
        let mut write = WriteDescriptorSet::zeroed();
        write.s_type = StructureType::WRITE_DESCRIPTOR_SET;
        write.descriptor_type = DescriptorType::STORAGE_BUFFER;
        write.descriptor_count = 1;
        // SAFETY: a pool, a layout and buffers of ours.
        unsafe {
            let allocate = self.next.allocate_descriptor_sets?;
            is_fine(allocate(self.device, Ptr::to(&info), place(&mut set)))?;
            let writes: [WriteDescriptorSet; TABLES] = std::array::from_fn(|at| WriteDescriptorSet {
                dst_set: set,
                dst_binding: at as u32,
                p_buffer_info: Ptr::to(&buffers[at]),
                ..write
            });
            (self.next.update_descriptor_sets?)(self.device, TABLES as u32, Ptr::to_slice(&writes), 0, Ptr::NULL);
        }
        Some(set)
    }
}
