//! The state of command buffers that checks need: the bound pipelines and sets, and the tables of each draw.

use std::sync::Arc;

use lavascope_abi::*;

use super::choice_cache::ChoiceCache;
use super::launch_counts::LaunchCounts;
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
    /// The number in the order of allocation, from zero.
    pub(crate) number: u32,
    pub(crate) is_primary: bool,
    /// Whether its commands may write only to protected memory, and so not to our records.
    pub(crate) is_protected: bool,
    /// Whether another command buffer resumes the last rendering. Then no command may stand between.
    pub(crate) is_suspended: bool,
    /// Number of recorded commands that run shaders, by bind point; those that the device generates come last.
    pub(crate) command_counts: [u32; 4],
    /// The same number without generated draws and dispatches.
    pub(crate) launches: u32,
    /// How many of them are checked.
    pub(crate) launch_counts: LaunchCounts,
    pub(crate) bind_points: [BindPointState; 3],
    pub(crate) draws: Vec<RecordedDraw>,
    /// Builds of acceleration structures whose instances are checked.
    pub(crate) builds: Vec<CheckedBuild>,
    /// The pipeline variants that are in use, once each.
    pub(crate) variants: Vec<Arc<PipelineVariant>>,
    /// The secondary command buffers that it executes, with the debug labels that are open there.
    pub(crate) secondaries: Vec<(u64, Arc<Vec<String>>)>,
    pub(crate) labels: DrawLabels,
    /// The debug labels around this command buffer in the primary one that was submitted last.
    pub(crate) outer_labels: Arc<Vec<String>>,
    /// The debug labels of the queue to which it was submitted last.
    pub(crate) queue_labels: Vec<String>,
    /// The layout of the last bound sets.
    last_layout: Option<(u64, Arc<PipelineLayoutState>)>,
    pub(crate) arena: DeviceArena,
    /// Memory that does not belong to a single draw.
    regions: Vec<ArenaRegion>,
    /// The part of it that holds descriptor tables.
    descriptor_tables: Vec<ArenaRegion>,
    pools: Vec<DescriptorPool>,
    /// Number of sets left in the last pool.
    sets_left: u32,
    /// The last descriptor table, because the next draw often needs the same.
    pub(crate) last_table: (Vec<u32>, Option<ArenaRegion>),
    /// Scratch space to build the next descriptor table.
    pub(crate) scratch_words: Vec<u32>,
    /// Descriptor tables that are updated at each submission.
    pub(crate) update_after_bind_tables: Vec<UpdateAfterBindTable>,
    pub(crate) choices: ChoiceCache,
    /// The variants with which draws are recorded, prepared for the next draw.
    pub(crate) recorded_variants: Vec<RecordedVariant>,
    pub(crate) best_variant: Option<BestVariant>,
    /// The address table in all root tables; zero if they have different ones.
    pub(crate) address_table: Option<u64>,
    pub(crate) push_constants: PushedConstants,
    /// Its id in the records, after it was submitted.
    pub(crate) object_id: Option<ObjectId>,
    /// How often it was executed since its touches were read.
    pub(crate) executions: u32,
    /// Of each submission since its records were read, the frame.
    pub(crate) submitted_frames: Vec<u64>,
    /// Sets made of pushed descriptors.
    pub(crate) pushed_sets: Vec<u64>,
    /// The bound descriptor buffers.
    pub(crate) descriptor_buffers: Vec<BoundDescriptorBuffer>,
    /// Descriptor tables for descriptor buffers.
    pub(crate) descriptor_buffer_tables: Vec<DescriptorBufferTable>,
}

/// What is bound to the graphics or the compute bind point.
#[derive(Default)]
pub(crate) struct BindPointState {
    pub(crate) pipeline: Option<Arc<InstrumentedPipeline>>,
    /// The pipeline that is bound in the driver.
    pub(crate) driver_pipeline: Pipeline,
    /// Shader objects that are bound instead of a pipeline.
    pub(crate) shader_objects: BoundShaders,
    /// Whether one of them has no SPIR-V, so that none is checked.
    pub(crate) has_unknown_object: bool,
    /// Earliest first.
    pub(crate) binds: Vec<BoundSets>,
    /// The choice for all draws until something else is bound: an index of `ChoiceCache::entries`.
    pub(crate) chosen: Option<u32>,
}

/// Sets that one call has bound.
#[derive(Clone)]
pub(crate) struct BoundSets {
    pub(crate) layout: Arc<PipelineLayoutState>,
    pub(crate) first: u32,
    pub(crate) sets: Vec<u64>,
    pub(crate) offsets: Vec<u32>,
    /// The calls that pushed the descriptors, if the set consists of pushed ones.
    pub(crate) pushes: Vec<Arc<PushDescriptorCall>>,
    /// For descriptor buffers: the number of the buffer of each set, and the offset of the set in it. `sets` then has
    /// addresses.
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

    /// Whether it binds allocated sets, which the driver binds as they are.
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

    /// A set, with its own dynamic offsets.
    pub(crate) fn set(&self, number: usize) -> Option<(u64, Vec<u32>)> {
        let handle = *self.sets.get(number.checked_sub(self.first as usize)?)?;
        let count = |it: usize| self.layout.sets.get(it).and_then(Option::as_ref).map_or(0, |it| it.dynamic_count());
        let before: usize = (self.first as usize..number).map(count).sum();
        let own = self.offsets.get(before..).unwrap_or_default();
        Some((handle, own.iter().copied().take(count(number)).collect()))
    }
}

impl BindPointState {
    /// Replaces the sets of the last call, if that call was for the same set numbers. Returns whether it was.
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
        // Descriptor sets and descriptor buffers exclude each other, whatever their set numbers are.
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

    /// Whether binding our set with a layout may disturb what the application has bound.
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

/// The index of the state of a bind point; none for bind points without checks.
pub(crate) fn bind_point_index(bind_point: PipelineBindPoint) -> Option<usize> {
    BIND_POINTS.iter().position(|it| *it == bind_point)
}

impl CommandBufferState {
    pub(crate) fn new(pool: u64, number: u32, is_primary: bool) -> CommandBufferState {
        CommandBufferState { pool, number, is_primary, ..CommandBufferState::default() }
    }

    /// Whether a barrier is allowed at its end.
    pub(crate) fn may_end_with_barrier(&self) -> bool {
        self.is_primary && !self.is_suspended
    }

    /// Whether its shaders, or those of its secondary command buffers, may write records.
    pub(crate) fn writes_records(&self) -> bool {
        !self.draws.is_empty() || !self.builds.is_empty() || !self.secondaries.is_empty()
    }

    pub(crate) fn bind_pipeline(
        &mut self,
        bind_point: usize,
        handle: Pipeline,
        pipeline: Option<Arc<InstrumentedPipeline>>,
    ) {
        let bind_point = &mut self.bind_points[bind_point];
        (bind_point.pipeline, bind_point.driver_pipeline, bind_point.chosen) = (pipeline, handle, None);
        bind_point.shader_objects = BoundShaders::default();
        bind_point.has_unknown_object = false;
    }

    pub(crate) fn bind_sets(&mut self, bind_point: usize, bind: BoundSets) {
        self.bind_points[bind_point].bind(bind);
    }

    /// Records that a call has bound sets. Returns false if its layout is not that of the call before. A layout is not
    /// destroyed while commands are recorded with it.
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

    /// Like `bind_with_last_layout`, after the layout was looked up.
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
        for bind_point in points {
            let bind_point = &mut self.bind_points[bind_point];
            if !bind_point.replace_last_sets(layout, sets_call) {
                let sets = sets_call.sets.iter().map(|it| it.0).collect();
                bind_point.bind(BoundSets::new(layout, sets_call.first, sets, sets_call.offsets.to_vec()));
            }
        }
    }

    /// The call that bound a set last.
    pub(crate) fn last_bind_of_set(&self, bind_point: usize, set: usize) -> Option<&BoundSets> {
        self.bind_points[bind_point].binds.iter().rev().find(|it| it.set_range().contains(&set))
    }

    /// Binds a shader object instead of a pipeline.
    pub(crate) fn bind_shader_object(&mut self, bind_point: usize, stage: ShaderStageFlags, shader: ShaderEXT) {
        let bind_point = &mut self.bind_points[bind_point];
        (bind_point.pipeline, bind_point.driver_pipeline, bind_point.chosen) = (None, Pipeline::default(), None);
        bind_point.shader_objects.bind(stage, shader);
    }

    pub(crate) fn shader_objects(&mut self, bind_point: usize) -> &mut BoundShaders {
        &mut self.bind_points[bind_point].shader_objects
    }

    /// Sets the pipeline that the bound shader objects make up.
    pub(crate) fn set_pipeline(&mut self, bind_point: usize, pipeline: Option<Arc<InstrumentedPipeline>>) {
        self.bind_points[bind_point].pipeline = pipeline;
    }

    /// Executing secondary command buffers unbinds everything.
    pub(crate) fn execute_secondaries(&mut self, secondaries: impl Iterator<Item = u64>) {
        let labels = Arc::new(self.labels.open().to_vec());
        self.secondaries.extend(secondaries.map(|it| (it, Arc::clone(&labels))));
        self.bind_points = Default::default();
        self.push_constants = PushedConstants::default();
    }

    /// The bound descriptor buffers, for all bind points. Binding any descriptor set unbinds them all.
    pub(crate) fn descriptor_buffer_bindings(&self) -> Option<Box<DescriptorBufferBindings>> {
        if self.descriptor_buffers.is_empty() {
            return None;
        }
        let all = BIND_POINTS.iter().zip(&self.bind_points);
        let binds = all.flat_map(|(bind_point, all)| all.binds.iter().map(move |it| (*bind_point, it)));
        let sets = binds
            .filter(|it| it.1.is_in_descriptor_buffers())
            .map(|(bind_point, it)| (bind_point, it.clone()))
            .collect();
        Some(Box::new(DescriptorBufferBindings { buffers: self.descriptor_buffers.clone(), sets }))
    }

    /// Allocates memory that lives as long as the recorded commands.
    pub(crate) fn allocate(&mut self, gpu: &DeviceChecks, words: u32) -> Option<ArenaRegion> {
        let piece = gpu.or_stop_checking(self.arena.allocate(gpu, words))?;
        self.regions.push(piece);
        Some(piece).filter(|it| it.device_address != 0)
    }

    /// Allocates a descriptor table.
    pub(crate) fn allocate_descriptor_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    /// Like `allocate_descriptor_table`, for shaders that find the table by its address.
    pub(crate) fn allocate_addressed_table(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate_cache_lines(gpu, words.len() as u32)?;
        Some(self.keep_table(region, words))
    }

    fn keep_table(&mut self, region: ArenaRegion, words: &[u32]) -> ArenaRegion {
        self.descriptor_tables.push(region);
        self.keep_words(region, words)
    }

    /// Allocates words that are not a descriptor table.
    pub(crate) fn allocate_words(&mut self, gpu: &DeviceChecks, words: &[u32]) -> Option<ArenaRegion> {
        let region = self.arena.allocate(gpu, words.len() as u32)?;
        Some(self.keep_words(region, words))
    }

    fn keep_words(&mut self, region: ArenaRegion, words: &[u32]) -> ArenaRegion {
        self.regions.push(region);
        region.write(words);
        region
    }

    /// Makes the tables of all recorded draws permissive, after the layer was disabled.
    #[cold]
    pub(crate) fn make_permissive(&self, everywhere: ArenaRegion) {
        self.descriptor_tables.iter().for_each(|it| it.make_permissive());
        self.roots().for_each(|it| write_address_table(it, everywhere));
        self.variants.iter().flat_map(|it| &it.fixed_tables).for_each(|it| it.make_permissive(everywhere));
    }

    /// Allocates a set of ours that lives as long as the recorded commands.
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

    /// The compute pipeline that is bound in the driver.
    pub(crate) fn compute_pipeline(&self) -> Pipeline {
        self.bind_points[1].driver_pipeline
    }

    /// The number of a variant among those that the command buffer uses.
    pub(crate) fn variant_number(&mut self, variant: &Arc<PipelineVariant>) -> u32 {
        let known = self.variants.iter().position(|it| Arc::ptr_eq(it, variant));
        let number = known.unwrap_or_else(|| {
            self.variants.push(Arc::clone(variant));
            self.variants.len() - 1
        });
        number as u32
    }

    /// The device does not use the command buffer, which is begun, reset or freed. Returns its device memory, which is
    /// zero, and its pools. Other large allocations stay for the next recording.
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
