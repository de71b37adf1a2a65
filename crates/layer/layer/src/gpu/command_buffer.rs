//! What is recorded into command buffers, as far as checks must know: pipelines, sets, and our tables for each draw.

use std::sync::Arc;

use lavascope_abi::*;

use super::buffer_addresses::write_address_table;
use super::arena::{DeviceArena, ArenaBlock, POOL_SETS, ArenaRegion};
use super::descriptor_buffers::{BoundDescriptorBuffer, DescriptorBufferTable, DescriptorBufferBindings};
use super::variant_choice::DrawChoices;
use super::recorded_draws::{RecordedDraw, DrawLabels};
use super::update_after_bind::UpdateAfterBindTable;
use super::layouts::PipelineLayoutState;
use super::shader_objects::BoundShaders;
use super::push_constants::PushedConstants;
use super::push_descriptors::PushDescriptorCall;
use super::acceleration_structures::CheckedBuild;
use super::variants::{InstrumentedPipeline, PipelineVariant};
use super::{DeviceChecks, TABLE_COUNT};

/// A command buffer.
#[derive(Default)]
pub(super) struct CommandBufferState {
    pub(super) pool: u64,
    /// Counted from zero, in the order of allocation.
    pub(super) number: u32,
    pub(super) is_primary: bool,
    /// What it runs may write into protected memory only, and so not into ours.
    pub(super) is_protected: bool,
    /// The last rendering goes on in another command buffer, and nothing may be between.
    pub(super) is_suspended: bool,
    /// How many draws and dispatches were recorded, those that the device generates too.
    pub(super) draw_count: u32,
    /// How many without these.
    pub(super) launches: u32,
    pub(super) bind_points: [BindPointState; 3],
    pub(super) draws: Vec<RecordedDraw>,
    /// Builds of acceleration structures whose instances were looked at.
    pub(super) builds: Vec<CheckedBuild>,
    /// The forms of pipelines that they use, once each.
    pub(super) variants: Vec<Arc<PipelineVariant>>,
    /// Those it executes, and the debug labels that are open there.
    pub(super) secondaries: Vec<(u64, Arc<Vec<String>>)>,
    pub(super) labels: DrawLabels,
    /// The debug labels of the command buffer that executes this one, where it was submitted last.
    pub(super) outer_labels: Arc<Vec<String>>,
    /// Those of the queue that it was submitted to last.
    pub(super) queue_labels: Vec<String>,
    /// The layout of the sets that were bound last.
    last_layout: Option<(u64, Arc<PipelineLayoutState>)>,
    pub(super) arena: DeviceArena,
    /// What of it is not a draw's own.
    regions: Vec<ArenaRegion>,
    /// Those of it that are tables of descriptors.
    descriptor_tables: Vec<ArenaRegion>,
    pools: Vec<DescriptorPool>,
    /// Sets that are left in the last pool.
    sets_left: u32,
    /// The last table of descriptors: often it is the same again.
    pub(super) last_table: (Vec<u32>, Option<ArenaRegion>),
    /// For the next one.
    pub(super) scratch_words: Vec<u32>,
    /// Tables of descriptors that are looked at again when they are submitted.
    pub(super) update_after_bind_tables: Vec<UpdateAfterBindTable>,
    pub(super) choices: DrawChoices,
    /// The table of addresses that root tables lead to; zero where they lead to several.
    pub(super) address_table: Option<u64>,
    pub(super) push_constants: PushedConstants,
    /// As the records call it, once it was submitted.
    pub(super) object_id: Option<ObjectId>,
    /// How often it was executed since what it touched was read.
    pub(super) executions: u32,
    /// Sets that were pushed.
    pub(super) pushed_sets: Vec<u64>,
    /// The buffers with descriptors.
    pub(super) descriptor_buffers: Vec<BoundDescriptorBuffer>,
    /// Tables of descriptors in buffers.
    pub(super) descriptor_buffer_tables: Vec<DescriptorBufferTable>,
}

/// What is bound for graphics, or for compute.
#[derive(Default)]
pub(super) struct BindPointState {
    pub(super) pipeline: Option<Arc<InstrumentedPipeline>>,
    /// The pipeline as the driver has it.
    pub(super) driver_pipeline: Pipeline,
    /// Shader objects in the place of a pipeline.
    pub(super) shader_objects: BoundShaders,
    /// The earliest first.
    pub(super) binds: Vec<BoundSets>,
    /// The choice for the draws from here on, until something else is bound.
    pub(super) chosen: Option<u32>,
}

/// Sets that were bound in one call.
#[derive(Clone)]
pub(super) struct BoundSets {
    pub(super) layout: Arc<PipelineLayoutState>,
    pub(super) first: u32,
    pub(super) sets: Vec<u64>,
    pub(super) offsets: Vec<u32>,
    /// Where nothing is bound but pushed: the calls that did so.
    pub(super) pushes: Vec<Arc<PushDescriptorCall>>,
    /// Where descriptors are in buffers: the number of the buffer of each set, and where in it the set begins. The sets
    /// are addresses then.
    pub(super) buffer_offsets: Vec<(u32, u64)>,
}

/// A call that binds sets.
#[derive(Clone, Copy)]
pub(super) struct BindSetsCall<'a> {
    pub(super) layout: PipelineLayout,
    pub(super) first: u32,
    pub(super) sets: &'a [DescriptorSet],
    pub(super) offsets: &'a [u32],
}

impl BoundSets {
    pub(super) fn new(layout: &Arc<PipelineLayoutState>, first: u32, sets: Vec<u64>, offsets: Vec<u32>) -> BoundSets {
        BoundSets { layout: Arc::clone(layout), first, sets, offsets, pushes: Vec::new(), buffer_offsets: Vec::new() }
    }

    pub(super) fn is_in_descriptor_buffers(&self) -> bool {
        !self.buffer_offsets.is_empty()
    }

    /// Whether it is of sets that were allocated, which are bound as they are.
    fn is_of_allocated_sets(&self) -> bool {
        self.pushes.is_empty() && !self.is_in_descriptor_buffers()
    }

    pub(super) fn can_be_rebound(&self) -> bool {
        !self.is_in_descriptor_buffers() && !self.sets.contains(&0)
    }

    pub(super) fn set_range(&self) -> std::ops::Range<usize> {
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

impl BindPointState {
    /// Sets take the place of those that the last call bound, if that was alike. Whether it was.
    #[inline(always)]
    fn replace_last_sets(&mut self, layout: &Arc<PipelineLayoutState>, it: &BindSetsCall<'_>) -> bool {
        let is_alike = |last: &&mut BoundSets| {
            Arc::ptr_eq(&last.layout, layout)
                && (last.first, last.sets.len(), last.offsets.len()) == (it.first, it.sets.len(), it.offsets.len())
        };
        let Some(last) = self.binds.last_mut().filter(is_alike) else { return false };
        last.sets.iter_mut().zip(it.sets).for_each(|(to, from)| *to = from.0);
        last.offsets.iter_mut().zip(it.offsets).for_each(|(to, from)| *to = *from);
        self.chosen = None;
        true
    }

    fn bind(&mut self, bind: BoundSets) {
        let numbers = bind.set_range();
        // Sets and descriptors in buffers exclude each other, whatever their numbers.
        let is_out = |it: &BoundSets| bind.is_in_descriptor_buffers() && it.is_of_allocated_sets() || bind.is_of_allocated_sets() && it.is_in_descriptor_buffers();
        self.binds.retain(|it| !is_out(it) && it.set_range().any(|it| !numbers.contains(&it)));
        self.binds.push(bind);
        self.chosen = None;
    }

    pub(super) fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        self.binds.iter().rev().find_map(|it| it.set(number))
    }

    /// Whether binding our set with a layout may take away what the application bound.
    pub(super) fn is_disturbed_by(&self, layout: &PipelineLayoutState) -> bool {
        let is_safe = |it: &BoundSets| {
            it.is_in_descriptor_buffers() || it.set_range().next_back().is_none_or(|last| it.layout.is_compatible(layout, last))
        };
        !self.binds.iter().all(is_safe)
    }
}

pub(super) const BIND_POINTS: [PipelineBindPoint; 3] =
    [PipelineBindPoint::GRAPHICS, PipelineBindPoint::COMPUTE, PipelineBindPoint::RAY_TRACING_KHR];

/// Where a bind point's state is; none for those without checks.
pub(super) fn bind_point_index(point: PipelineBindPoint) -> Option<usize> {
    BIND_POINTS.iter().position(|it| *it == point)
}

impl CommandBufferState {
    pub(super) fn new(pool: u64, number: u32, is_primary: bool) -> CommandBufferState {
        CommandBufferState { pool, number, is_primary, ..CommandBufferState::default() }
    }

    /// Whether there may be a barrier at its end.
    pub(super) fn may_end_with_barrier(&self) -> bool {
        self.is_primary && !self.is_suspended
    }

    /// Whether its shaders, or those that it executes, may write records.
    pub(super) fn writes_records(&self) -> bool {
        !self.draws.is_empty() || !self.builds.is_empty() || !self.secondaries.is_empty()
    }

    pub(super) fn bind_pipeline(&mut self, point: usize, handle: Pipeline, pipeline: Option<Arc<InstrumentedPipeline>>) {
        let point = &mut self.bind_points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (pipeline, handle, None);
        point.shader_objects = BoundShaders::default();
    }

    pub(super) fn bind_sets(&mut self, point: usize, bind: BoundSets) {
        self.bind_points[point].bind(bind);
    }

    /// Sets were bound by one call. Whether its layout is the one of the call before: none is destroyed while commands
    /// are recorded with it.
    pub(super) fn bind_with_last_layout(&mut self, points: impl Iterator<Item = usize>, it: &BindSetsCall<'_>) -> bool {
        match self.last_layout.take() {
            Some((handle, layout)) if handle == it.layout.0 => {
                self.bind_call(points, &layout, it);
                self.last_layout = Some((handle, layout));
                true
            }
            other => {
                self.last_layout = other;
                false
            }
        }
    }

    /// The same, with a layout that was looked up.
    pub(super) fn bind_with_layout(&mut self, points: impl Iterator<Item = usize>, layout: Arc<PipelineLayoutState>, it: &BindSetsCall<'_>) {
        self.bind_call(points, &layout, it);
        self.last_layout = Some((it.layout.0, layout));
    }

    #[inline(always)]
    fn bind_call(&mut self, points: impl Iterator<Item = usize>, layout: &Arc<PipelineLayoutState>, it: &BindSetsCall<'_>) {
        for point in points {
            let point = &mut self.bind_points[point];
            if !point.replace_last_sets(layout, it) {
                let sets = it.sets.iter().map(|it| it.0).collect();
                point.bind(BoundSets::new(layout, it.first, sets, it.offsets.to_vec()));
            }
        }
    }

    /// What a set was bound by last.
    pub(super) fn last_bind_of_set(&self, point: usize, set: usize) -> Option<&BoundSets> {
        self.bind_points[point].binds.iter().rev().find(|it| it.set_range().contains(&set))
    }

    /// Shader objects are bound, in the place of a pipeline.
    pub(super) fn bind_shader_object(&mut self, point: usize, stage: ShaderStageFlags, shader: ShaderEXT) {
        let point = &mut self.bind_points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (None, Pipeline::default(), None);
        point.shader_objects.bind(stage, shader);
    }

    pub(super) fn shader_objects(&mut self, point: usize) -> &mut BoundShaders {
        &mut self.bind_points[point].shader_objects
    }

    /// What the shader objects of a point are together.
    pub(super) fn set_pipeline(&mut self, point: usize, pipeline: Option<Arc<InstrumentedPipeline>>) {
        self.bind_points[point].pipeline = pipeline;
    }

    /// Secondary command buffers leave nothing bound.
    pub(super) fn execute_secondaries(&mut self, secondaries: impl Iterator<Item = u64>) {
        let labels = Arc::new(self.labels.open().to_vec());
        self.secondaries.extend(secondaries.map(|it| (it, Arc::clone(&labels))));
        self.bind_points = Default::default();
        self.push_constants = PushedConstants::default();
    }

    /// What of descriptors in buffers is bound, for all points: any set that is bound takes all of it away.
    pub(super) fn descriptor_buffer_bindings(&self) -> Option<Box<DescriptorBufferBindings>> {
        if self.descriptor_buffers.is_empty() {
            return None;
        }
        let all = BIND_POINTS.iter().zip(&self.bind_points);
        let binds = all.flat_map(|(point, all)| all.binds.iter().map(move |it| (*point, it)));
        let sets = binds.filter(|it| it.1.is_in_descriptor_buffers()).map(|(point, it)| (point, it.clone())).collect();
        Some(Box::new(DescriptorBufferBindings { buffers: self.descriptor_buffers.clone(), sets }))
    }

    /// Memory that lives as long as what is recorded.
    pub(super) fn allocate(&mut self, gpu: &DeviceChecks, words: u32) -> Option<ArenaRegion> {
        let piece = gpu.or_stop_checking(self.arena.allocate(gpu, words))?;
        self.regions.push(piece);
        Some(piece).filter(|it| it.device_address != 0)
    }

    /// A table of descriptors of its own.
    pub(super) fn allocate_descriptor_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    /// The same for shaders that find it by its address.
    pub(super) fn allocate_addressed_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate_cache_lines(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    fn keep_table(&mut self, region: ArenaRegion, words: &[u32]) -> ArenaRegion {
        self.descriptor_tables.push(region);
        self.keep_words(region, words)
    }

    /// Words that are no table of descriptors.
    pub(super) fn allocate_words(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        Some(self.keep_words(region, words))
    }

    fn keep_words(&mut self, region: ArenaRegion, words: &[u32]) -> ArenaRegion {
        self.regions.push(region);
        region.write(words);
        region
    }

    /// Everything is switched off: by the tables that draws were recorded with, all is right from now on.
    #[cold]
    pub(super) fn make_permissive(&self, everywhere: ArenaRegion) {
        self.descriptor_tables.iter().for_each(|it| it.make_permissive());
        self.roots().for_each(|it| write_address_table(it, everywhere));
        self.variants.iter().flat_map(|it| &it.fixed_tables).for_each(|it| it.make_permissive(everywhere));
    }

    /// A set of ours that lives as long as what is recorded.
    pub(super) fn allocate_reserved_set(&mut self, gpu: &DeviceChecks, regions: [ArenaRegion; TABLE_COUNT]) -> Option<DescriptorSet> {
        if self.sets_left == 0 {
            self.pools.push(gpu.take_descriptor_pool()?);
            self.sets_left = POOL_SETS;
        }
        self.sets_left -= 1;
        gpu.allocate_reserved_set(*self.pools.last()?, regions)
    }

    /// What is bound for compute, as the driver has it.
    pub(super) fn compute_pipeline(&self) -> Pipeline {
        self.bind_points[1].driver_pipeline
    }

    /// A form of a pipeline: its number among those that are used here.
    pub(super) fn variant_number(&mut self, variant: &Arc<PipelineVariant>) -> u32 {
        let known = self.variants.iter().position(|it| Arc::ptr_eq(it, variant));
        let number = known.unwrap_or_else(|| {
            self.variants.push(Arc::clone(variant));
            self.variants.len() - 1
        });
        number as u32
    }

    /// The device does not use it, and it begins anew or is no more: gives the memory that it had, which is zero, and
    /// the pools. What else is large stays, for what is recorded next.
    pub(super) fn reset(&mut self) -> (Vec<ArenaBlock>, Vec<DescriptorPool>) {
        self.clear_draws();
        self.regions.iter().for_each(|it| it.zero());
        let new = CommandBufferState::new(self.pool, self.number, self.is_primary);
        let mut old = std::mem::replace(self, CommandBufferState { is_protected: self.is_protected, ..new });
        old.draws.clear();
        old.variants.clear();
        old.regions.clear();
        old.descriptor_tables.clear();
        old.choices.clear();
        (self.draws, self.variants, self.regions, self.choices) = (old.draws, old.variants, old.regions, old.choices);
        self.descriptor_tables = old.descriptor_tables;
        (old.arena.blocks, old.pools)
    }

    pub(super) fn into_parts(self) -> (DeviceArena, Vec<DescriptorPool>) {
        (self.arena, self.pools)
    }
}
