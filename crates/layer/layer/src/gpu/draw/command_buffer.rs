//! What is recorded into command buffers, as far as checks must know: pipelines, sets, and our tables for each draw.

use std::sync::Arc;

use lavascope_abi::*;

use super::choice_cache::ChoiceCache;
use super::push_constants::PushedConstants;
use super::recorded_draws::{DrawLabels, RecordedDraw};
use super::recorded_variant::RecordedVariant;
use super::update_after_bind::UpdateAfterBindTable;
use super::variant_choice::BestVariant;
use crate::gpu::hook::push_descriptors::PushDescriptorCall;
use crate::gpu::pipeline::layouts::PipelineLayoutState;
use crate::gpu::pipeline::shader_objects::BoundShaders;
use crate::gpu::pipeline::variants::{InstrumentedPipeline, PipelineVariant};
use crate::gpu::resource::acceleration_structures::CheckedBuild;
use crate::gpu::resource::arena::{ArenaBlock, ArenaRegion, DeviceArena, POOL_SETS};
use crate::gpu::resource::buffer_addresses::write_address_table;
use crate::gpu::resource::descriptor_buffers::{
    BoundDescriptorBuffer, DescriptorBufferBindings, DescriptorBufferTable,
};
use crate::gpu::{DeviceChecks, TABLE_COUNT};

/// A command buffer.
#[derive(Default)]
pub(crate) struct CommandBufferState {
    pub(crate) pool: u64,
    /// Counted from zero, in the order of allocation.
    pub(crate) number: u32,
    pub(crate) is_primary: bool,
    /// What it runs may write into protected memory only, and so not into ours.
    pub(crate) is_protected: bool,
    /// The last rendering goes on in another command buffer, and nothing may be between.
    pub(crate) is_suspended: bool,
    /// How many draws and dispatches were recorded, those that the device generates too.
    pub(crate) draw_count: u32,
    /// How many without these.
    pub(crate) launches: u32,
    pub(crate) bind_points: [BindPointState; 3],
    pub(crate) draws: Vec<RecordedDraw>,
    /// Builds of acceleration structures whose instances were looked at.
    pub(crate) builds: Vec<CheckedBuild>,
    /// The variants of pipelines that they use, once each.
    pub(crate) variants: Vec<Arc<PipelineVariant>>,
    /// Those it executes, and the debug labels that are open there.
    pub(crate) secondaries: Vec<(u64, Arc<Vec<String>>)>,
    pub(crate) labels: DrawLabels,
    /// The debug labels of the command buffer that executes this one, where it was submitted last.
    pub(crate) outer_labels: Arc<Vec<String>>,
    /// Those of the queue that it was submitted to last.
    pub(crate) queue_labels: Vec<String>,
    /// The layout of the sets that were bound last.
    last_layout: Option<(u64, Arc<PipelineLayoutState>)>,
    pub(crate) arena: DeviceArena,
    /// What of it is not a draw's own.
    regions: Vec<ArenaRegion>,
    /// Those of it that are tables of descriptors.
    descriptor_tables: Vec<ArenaRegion>,
    pools: Vec<DescriptorPool>,
    /// Sets that are left in the last pool.
    sets_left: u32,
    /// The last table of descriptors: often it is the same again.
    pub(crate) last_table: (Vec<u32>, Option<ArenaRegion>),
    /// For the next one.
    pub(crate) scratch_words: Vec<u32>,
    /// Tables of descriptors that are looked at again when they are submitted.
    pub(crate) update_after_bind_tables: Vec<UpdateAfterBindTable>,
    pub(crate) choices: ChoiceCache,
    /// The variants of pipelines that draws are recorded with, ready for the next draw.
    pub(crate) recorded_variants: Vec<RecordedVariant>,
    pub(crate) best_variant: Option<BestVariant>,
    /// The table of addresses that root tables lead to; zero where they lead to several.
    pub(crate) address_table: Option<u64>,
    pub(crate) push_constants: PushedConstants,
    /// As the records call it, once it was submitted.
    pub(crate) object_id: Option<ObjectId>,
    /// How often it was executed since what it touched was read.
    pub(crate) executions: u32,
    /// Sets that were pushed.
    pub(crate) pushed_sets: Vec<u64>,
    /// The buffers with descriptors.
    pub(crate) descriptor_buffers: Vec<BoundDescriptorBuffer>,
    /// Tables of descriptors in buffers.
    pub(crate) descriptor_buffer_tables: Vec<DescriptorBufferTable>,
}

/// What is bound for graphics, or for compute.
#[derive(Default)]
pub(crate) struct BindPointState {
    pub(crate) pipeline: Option<Arc<InstrumentedPipeline>>,
    /// The pipeline as the driver has it.
    pub(crate) driver_pipeline: Pipeline,
    /// Shader objects in the place of a pipeline.
    pub(crate) shader_objects: BoundShaders,
    /// The earliest first.
    pub(crate) binds: Vec<BoundSets>,
    /// The choice for the draws from here on, until something else is bound: an index of `ChoiceCache::entries`.
    pub(crate) chosen: Option<u32>,
}

/// Sets that were bound in one call.
#[derive(Clone)]
pub(crate) struct BoundSets {
    pub(crate) layout: Arc<PipelineLayoutState>,
    pub(crate) first: u32,
    pub(crate) sets: Vec<u64>,
    pub(crate) offsets: Vec<u32>,
    /// Where nothing is bound but pushed: the calls that did so.
    pub(crate) pushes: Vec<Arc<PushDescriptorCall>>,
    /// Where descriptors are in buffers: the number of the buffer of each set, and where in it the set begins. The sets
    /// are addresses then.
    pub(crate) buffer_offsets: Vec<(u32, u64)>,
}

/// A call that binds sets.
#[derive(Clone, Copy)]
pub(crate) struct BindSetsCall<'a> {
    pub(crate) layout: PipelineLayout,
    pub(crate) first: u32,
    pub(crate) sets: &'a [DescriptorSet],
    pub(crate) offsets: &'a [u32],
}

impl BoundSets {
    pub(crate) fn new(layout: &Arc<PipelineLayoutState>, first: u32, sets: Vec<u64>, offsets: Vec<u32>) -> BoundSets {
        BoundSets { layout: Arc::clone(layout), first, sets, offsets, pushes: Vec::new(), buffer_offsets: Vec::new() }
    }

    pub(crate) fn is_in_descriptor_buffers(&self) -> bool {
        !self.buffer_offsets.is_empty()
    }

    /// Whether it is of sets that were allocated, which are bound as they are.
    fn is_of_allocated_sets(&self) -> bool {
        self.pushes.is_empty() && !self.is_in_descriptor_buffers()
    }

    pub(crate) fn can_be_rebound(&self) -> bool {
        !self.is_in_descriptor_buffers() && !self.sets.contains(&0)
    }

    pub(crate) fn set_range(&self) -> std::ops::Range<usize> {
        let first = self.first as usize;
        first..first + self.sets.len()
    }

    /// A set, with the dynamic offsets that are its own.
    pub(crate) fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
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
    fn replace_last_sets(&mut self, layout: &Arc<PipelineLayoutState>, sets_call: &BindSetsCall<'_>) -> bool {
        let is_alike = |last: &&mut BoundSets| {
            Arc::ptr_eq(&last.layout, layout)
                && (last.first, last.sets.len(), last.offsets.len())
                    == (sets_call.first, sets_call.sets.len(), sets_call.offsets.len())
        };
        let Some(last) = self.binds.last_mut().filter(is_alike) else { return false };
        last.sets.iter_mut().zip(sets_call.sets).for_each(|(to, from)| *to = from.0);
        last.offsets.iter_mut().zip(sets_call.offsets).for_each(|(to, from)| *to = *from);
        self.chosen = None;
        true
    }

    fn bind(&mut self, bind: BoundSets) {
        let numbers = bind.set_range();
        // Sets and descriptors in buffers exclude each other, whatever their numbers.
        let is_out = |bound_sets: &BoundSets| {
            bind.is_in_descriptor_buffers() && bound_sets.is_of_allocated_sets()
                || bind.is_of_allocated_sets() && bound_sets.is_in_descriptor_buffers()
        };
        self.binds.retain(|it| !is_out(it) && it.set_range().any(|it| !numbers.contains(&it)));
        self.binds.push(bind);
        self.chosen = None;
    }

    pub(crate) fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        self.binds.iter().rev().find_map(|it| it.set(number))
    }

    /// Whether binding our set with a layout may take away what the application bound.
    pub(crate) fn is_disturbed_by(&self, layout: &PipelineLayoutState) -> bool {
        let is_safe = |bound_sets: &BoundSets| {
            bound_sets.is_in_descriptor_buffers()
                || bound_sets.set_range().next_back().is_none_or(|last| bound_sets.layout.is_compatible(layout, last))
        };
        !self.binds.iter().all(is_safe)
    }
}

pub(crate) const BIND_POINTS: [PipelineBindPoint; 3] =
    [PipelineBindPoint::GRAPHICS, PipelineBindPoint::COMPUTE, PipelineBindPoint::RAY_TRACING_KHR];

/// Where a bind point's state is; none for those without checks.
pub(crate) fn bind_point_index(point: PipelineBindPoint) -> Option<usize> {
    BIND_POINTS.iter().position(|it| *it == point)
}

impl CommandBufferState {
    pub(crate) fn new(pool: u64, number: u32, is_primary: bool) -> CommandBufferState {
        CommandBufferState { pool, number, is_primary, ..CommandBufferState::default() }
    }

    /// Whether there may be a barrier at its end.
    pub(crate) fn may_end_with_barrier(&self) -> bool {
        self.is_primary && !self.is_suspended
    }

    /// Whether its shaders, or those that it executes, may write records.
    pub(crate) fn writes_records(&self) -> bool {
        !self.draws.is_empty() || !self.builds.is_empty() || !self.secondaries.is_empty()
    }

    pub(crate) fn bind_pipeline(
        &mut self,
        point: usize,
        handle: Pipeline,
        pipeline: Option<Arc<InstrumentedPipeline>>,
    ) {
        let point = &mut self.bind_points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (pipeline, handle, None);
        point.shader_objects = BoundShaders::default();
    }

    pub(crate) fn bind_sets(&mut self, point: usize, bind: BoundSets) {
        self.bind_points[point].bind(bind);
    }

    /// Sets were bound by one call. Whether its layout is the one of the call before: none is destroyed while commands
    /// are recorded with it.
    pub(crate) fn bind_with_last_layout(
        &mut self,
        points: impl Iterator<Item = usize>,
        sets_call: &BindSetsCall<'_>,
    ) -> bool {
        match self.last_layout.take() {
            Some((handle, layout)) if handle == sets_call.layout.0 => {
                self.bind_call(points, &layout, sets_call);
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
    pub(crate) fn bind_with_layout(
        &mut self,
        points: impl Iterator<Item = usize>,
        layout: Arc<PipelineLayoutState>,
        sets_call: &BindSetsCall<'_>,
    ) {
        self.bind_call(points, &layout, sets_call);
        self.last_layout = Some((sets_call.layout.0, layout));
    }

    #[inline(always)]
    fn bind_call(
        &mut self,
        points: impl Iterator<Item = usize>,
        layout: &Arc<PipelineLayoutState>,
        sets_call: &BindSetsCall<'_>,
    ) {
        for point in points {
            let point = &mut self.bind_points[point];
            if !point.replace_last_sets(layout, sets_call) {
                let sets = sets_call.sets.iter().map(|it| it.0).collect();
                point.bind(BoundSets::new(layout, sets_call.first, sets, sets_call.offsets.to_vec()));
            }
        }
    }

    /// What a set was bound by last.
    pub(crate) fn last_bind_of_set(&self, point: usize, set: usize) -> Option<&BoundSets> {
        self.bind_points[point].binds.iter().rev().find(|it| it.set_range().contains(&set))
    }

    /// Shader objects are bound, in the place of a pipeline.
    pub(crate) fn bind_shader_object(&mut self, point: usize, stage: ShaderStageFlags, shader: ShaderEXT) {
        let point = &mut self.bind_points[point];
        (point.pipeline, point.driver_pipeline, point.chosen) = (None, Pipeline::default(), None);
        point.shader_objects.bind(stage, shader);
    }

    pub(crate) fn shader_objects(&mut self, point: usize) -> &mut BoundShaders {
        &mut self.bind_points[point].shader_objects
    }

    /// What the shader objects of a point are together.
    pub(crate) fn set_pipeline(&mut self, point: usize, pipeline: Option<Arc<InstrumentedPipeline>>) {
        self.bind_points[point].pipeline = pipeline;
    }

    /// Secondary command buffers leave nothing bound.
    pub(crate) fn execute_secondaries(&mut self, secondaries: impl Iterator<Item = u64>) {
        let labels = Arc::new(self.labels.open().to_vec());
        self.secondaries.extend(secondaries.map(|it| (it, Arc::clone(&labels))));
        self.bind_points = Default::default();
        self.push_constants = PushedConstants::default();
    }

    /// What of descriptors in buffers is bound, for all points: any set that is bound takes all of it away.
    pub(crate) fn descriptor_buffer_bindings(&self) -> Option<Box<DescriptorBufferBindings>> {
        if self.descriptor_buffers.is_empty() {
            return None;
        }
        let all = BIND_POINTS.iter().zip(&self.bind_points);
        let binds = all.flat_map(|(point, all)| all.binds.iter().map(move |it| (*point, it)));
        let sets = binds.filter(|it| it.1.is_in_descriptor_buffers()).map(|(point, it)| (point, it.clone())).collect();
        Some(Box::new(DescriptorBufferBindings { buffers: self.descriptor_buffers.clone(), sets }))
    }

    /// Memory that lives as long as what is recorded.
    pub(crate) fn allocate(&mut self, gpu: &DeviceChecks, words: u32) -> Option<ArenaRegion> {
        let piece = gpu.or_stop_checking(self.arena.allocate(gpu, words))?;
        self.regions.push(piece);
        Some(piece).filter(|it| it.device_address != 0)
    }

    /// A table of descriptors of its own.
    pub(crate) fn allocate_descriptor_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    /// The same for shaders that find it by its address.
    pub(crate) fn allocate_addressed_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate_cache_lines(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    fn keep_table(&mut self, region: ArenaRegion, words: &[u32]) -> ArenaRegion {
        self.descriptor_tables.push(region);
        self.keep_words(region, words)
    }

    /// Words that are no table of descriptors.
    pub(crate) fn allocate_words(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
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
    pub(crate) fn make_permissive(&self, everywhere: ArenaRegion) {
        self.descriptor_tables.iter().for_each(|it| it.make_permissive());
        self.roots().for_each(|it| write_address_table(it, everywhere));
        self.variants.iter().flat_map(|it| &it.fixed_tables).for_each(|it| it.make_permissive(everywhere));
    }

    /// A set of ours that lives as long as what is recorded.
    pub(crate) fn allocate_reserved_set(
        &mut self,
        gpu: &DeviceChecks,
        regions: [ArenaRegion; TABLE_COUNT],
    ) -> Option<DescriptorSet> {
        if self.sets_left == 0 {
            self.pools.push(gpu.take_descriptor_pool()?);
            self.sets_left = POOL_SETS;
        }
        self.sets_left -= 1;
        gpu.allocate_reserved_set(*self.pools.last()?, regions)
    }

    /// What is bound for compute, as the driver has it.
    pub(crate) fn compute_pipeline(&self) -> Pipeline {
        self.bind_points[1].driver_pipeline
    }

    /// A form of a pipeline: its number among those that are used here.
    pub(crate) fn variant_number(&mut self, variant: &Arc<PipelineVariant>) -> u32 {
        let known = self.variants.iter().position(|it| Arc::ptr_eq(it, variant));
        let number = known.unwrap_or_else(|| {
            self.variants.push(Arc::clone(variant));
            self.variants.len() - 1
        });
        number as u32
    }

    /// The device does not use it, and it begins anew or is no more: gives the memory that it had, which is zero, and
    /// the pools. What else is large stays, for what is recorded next.
    pub(crate) fn reset(&mut self) -> (Vec<ArenaBlock>, Vec<DescriptorPool>) {
        self.clear_draws();
        self.regions.iter().for_each(|it| it.zero());
        let new = CommandBufferState::new(self.pool, self.number, self.is_primary);
        let mut old = std::mem::replace(self, CommandBufferState { is_protected: self.is_protected, ..new });
        old.draws.clear();
        old.variants.clear();
        old.regions.clear();
        old.descriptor_tables.clear();
        old.choices.clear();
        old.recorded_variants.clear();
        (self.draws, self.variants, self.regions, self.choices) = (old.draws, old.variants, old.regions, old.choices);
        (self.descriptor_tables, self.recorded_variants) = (old.descriptor_tables, old.recorded_variants);
        (old.arena.blocks, old.pools)
    }

    pub(crate) fn into_parts(self) -> (DeviceArena, Vec<DescriptorPool>) {
        (self.arena, self.pools)
    }
}
