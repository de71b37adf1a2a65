//! The shader objects that are bound at a draw: together they take the place of a pipeline.
//!
//! If another variant is needed, the layer creates all of them again, without linking, and binds them instead of the
//! application's objects.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lavascope_abi::*;

use super::plan::CheckStyle;
use super::shader_objects::{
    BoundCombination, LINK_STAGE, ShaderObject, ShaderObjectKey, ShaderObjectLayout, ShaderObjectStyle,
    ShaderObjectVariant, ShaderSet, VariantShaders,
};
use super::variants::{
    InstrumentedPipeline, InstrumentedStage, PermissiveTables, PipelineVariant, RebuildOrigin, lock,
};
use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::readback::touches;
use crate::gpu::resource::descriptor_sets;
use crate::gpu::{ChecksState, DeviceChecks};

impl ChecksState {
    /// The pipeline, or the combination of shader objects, of a variant.
    pub(crate) fn pipeline_of_variant(&self, variant: &PipelineVariant) -> Option<Arc<InstrumentedPipeline>> {
        if variant.shader_objects.is_none() {
            return self.pipelines.get(&variant.application.0.0).cloned();
        }
        let (handle, _) = variant.stages.iter().find_map(|it| it.object)?;
        let object = self.shader_objects.live.get(&handle.0)?;
        let keys = lock(&object.shader_set_keys);
        let all = keys.iter().filter_map(|it| self.shader_objects.shader_sets.get(it));
        let mut checked = all.filter_map(|it| if let ShaderSet::Instrumented(it) = it { Some(it) } else { None });
        checked.find(|it| it.number == variant.application.1).cloned()
    }
}

impl DeviceChecks {
    /// Finds the combination of the bound shader objects, after they have changed.
    pub(crate) fn resolve_shader_objects(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
    ) {
        let bound = commands.shader_objects(bind_point);
        bound.is_changed = false;
        let key = bound.application.clone();
        commands.bind_points[bind_point].has_unknown_object = false;
        match self.shader_set(key.clone()) {
            ShaderSet::Instrumented(checked) => commands.set_pipeline(bind_point, Some(checked)),
            ShaderSet::Uninstrumented(shaders) => {
                let state = self.state();
                let is_known = key.iter().all(|it| it.1 == 0 || state.shader_objects.live.contains_key(&it.1));
                drop(state);
                commands.bind_points[bind_point].has_unknown_object = !is_known;
                commands.set_pipeline(bind_point, None);
                self.bind_shader_objects(commands, handle, bind_point, &shaders);
            }
        }
    }

    fn shader_set(&self, key: ShaderObjectKey) -> ShaderSet {
        let state = self.state();
        if let Some(known) = state.shader_objects.shader_sets.get(&key) {
            return known.clone();
        }
        let objects: Vec<_> = key.iter().map(|it| state.shader_objects.live.get(&it.1).cloned()).collect();
        drop(state);
        let made = match objects.iter().cloned().collect::<Option<Vec<_>>>() {
            Some(objects) => self.instrument_objects(objects).map(ShaderSet::Instrumented),
            None => {
                // One object has no checks, so all need the same original sets and push constants.
                let original = |(at, shader_object): (&(u32, u64), &Option<Arc<ShaderObject>>)| {
                    let original = shader_object.as_ref().and_then(|it| self.original_shader(it));
                    (at.0, original.map_or(at.1, |it| it.0))
                };
                Some(ShaderSet::Uninstrumented(key.iter().zip(&objects).map(original).collect()))
            }
        };
        let made = made.unwrap_or_else(|| ShaderSet::Uninstrumented(key.clone()));
        objects.iter().flatten().for_each(|it| lock(&it.shader_set_keys).push(key.clone()));
        self.state().shader_objects.shader_sets.entry(key).or_insert(made).clone()
    }

    /// None if nothing is checked.
    fn instrument_objects(&self, objects: Vec<Arc<ShaderObject>>) -> Option<Arc<InstrumentedPipeline>> {
        let number = self.next_pipeline();
        let variants: Vec<&ShaderObjectVariant> = objects.iter().map(|it| &it.first).collect();
        let branches = objects.first()?.object_layout.layout.uses_descriptor_buffers();
        let first = Arc::new(self.compose_variant(&objects, &variants, (number, branches), Vec::new())?);
        if first.stages.is_empty() && first.requirements.is_empty() && first.unchecked.is_none() {
            return None;
        }
        self.state().variants.push(Arc::clone(&first));
        let origin = RebuildOrigin::Objects(BoundCombination { objects });
        Some(Arc::new(InstrumentedPipeline::new(Pipeline::default(), number, Some(origin), first)))
    }

    /// Makes a variant out of shader objects.
    fn compose_variant(
        &self,
        objects: &[Arc<ShaderObject>],
        variants: &[&ShaderObjectVariant],
        (number, branches): (u32, bool),
        own: Vec<ShaderEXT>,
    ) -> Option<PipelineVariant> {
        let object_layout = &objects.first()?.object_layout;
        let mut stages: Vec<InstrumentedStage> = Vec::new();
        for (at, (object, variant)) in objects.iter().zip(variants).enumerate() {
            // Objects that are bound together must have the same sets and push constants.
            if !Arc::ptr_eq(&object.object_layout, object_layout) {
                return None;
            }
            let (name, touch_base) = (object.name.clone(), touches::touch_base(&stages));
            let object = Some((object.handle, object.number));
            let stage =
                |it: &InstrumentedStage| InstrumentedStage { index: at, name, object, touch_base, ..it.clone() };
            stages.extend(variant.stage.as_ref().map(stage));
        }
        let permissive_tables = if stages.is_empty() { None } else { Some(self.permissive_tables_of(object_layout)?) };
        let bound = objects.iter().zip(variants).map(|(object, variant)| (object.stage.0, variant.handle.0)).collect();
        let reads_addresses = stages.iter().any(|it| it.instrumented.reads_addresses);
        Some(PipelineVariant {
            handle: Pipeline::default(),
            application: (Pipeline::default(), number),
            layout: Arc::clone(&object_layout.layout),
            root_binding: object_layout.layout.root_binding?,
            stages,
            cells: self.shared_cells(),
            permissive_tables,
            fixed_tables: variants.iter().filter_map(|it| it.fixed.clone()).collect(),
            requirements: variants.iter().flat_map(|it| it.requirements.iter().copied()).collect(),
            reads_addresses,
            branches,
            records_all_touches: false,
            unchecked: variants.iter().find_map(|it| it.unchecked.clone()),
            shader_objects: Some(VariantShaders { bound, own }),
            is_retired: AtomicBool::new(false),
            _leases: Vec::new(),
        })
    }

    fn permissive_tables_of(&self, object_layout: &ShaderObjectLayout) -> Option<PermissiveTables> {
        let make = || {
            let table = descriptor_sets::descriptor_table(&object_layout.layout, &Default::default(), |_| None);
            let mut leases = Vec::new();
            let permissive_tables = self.or_stop_checking(self.create_permissive_tables(
                object_layout.layout.root_binding?,
                self.shared_cells(),
                &table,
                &mut leases,
            ))?;
            Some((permissive_tables, leases))
        };
        object_layout.permissive_tables.get_or_init(make).as_ref().map(|it| it.0)
    }

    /// Creates all objects of a combination again.
    pub(crate) fn rebuild_objects(
        &self,
        bound_combination: &BoundCombination,
        number: u32,
        style: &CheckStyle,
    ) -> Option<Arc<PipelineVariant>> {
        let mut variants: Vec<ShaderObjectVariant> = Vec::new();
        for (at, object) in bound_combination.objects.iter().enumerate() {
            let immediate = style.immediate.as_ref().map(|it| it.get(at).cloned().unwrap_or_default());
            match self.rebuild_object(object, (style.branches, immediate)) {
                Some(variant) => variants.push(variant),
                None => {
                    variants.iter().for_each(|it| self.destroy_shader_objects(&[it.handle]));
                    return None;
                }
            }
        }
        let own = variants.iter().map(|it| it.handle).collect();
        let variants: Vec<&ShaderObjectVariant> = variants.iter().collect();
        let variant =
            Arc::new(self.compose_variant(&bound_combination.objects, &variants, (number, style.branches), own)?);
        self.state().variants.push(Arc::clone(&variant));
        Some(variant)
    }

    /// It is not linked to others, because those are created again as well, and all of them are bound.
    fn rebuild_object(&self, object: &ShaderObject, wanted: ShaderObjectStyle) -> Option<ShaderObjectVariant> {
        self.with_infos(&object.group, |infos| {
            let info = infos.get_mut(object.group_index)?;
            info.flags.0 &= !LINK_STAGE;
            let words = (Arc::clone(&object.words), object.is_selected);
            // SAFETY: an info as it was in a valid call, but for its code.
            let plan = unsafe { self.plan_object(&object.object_layout, info, words, object.number, wanted) };
            let mark = self.mark_stages(plan.stage());
            let made = self.create_shader_objects(std::slice::from_ref(&plan.info))?;
            drop(mark);
            Some(plan.into_variant(*made.first()?))
        })
    }

    /// Binds shader objects, if the driver has others bound.
    pub(crate) fn bind_shader_objects(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
        wanted: &[(u32, u64)],
    ) {
        let bound = commands.shader_objects(bind_point);
        if bound.driver == wanted {
            return;
        }
        let others: ShaderObjectKey = wanted.iter().filter(|it| !bound.driver.contains(it)).copied().collect();
        bound.driver = wanted.to_vec();
        self.bind_shaders(handle, &others);
    }

    /// Marks that our objects were bound instead.
    pub(crate) fn rebind_shader_objects(
        &self,
        commands: &mut CommandBufferState,
        handle: CommandBuffer,
        bind_point: usize,
    ) {
        self.bind_shaders(handle, &commands.shader_objects(bind_point).driver);
    }

    fn bind_shaders(&self, handle: CommandBuffer, shaders: &[(u32, u64)]) {
        let Some(bind) = self.next.cmd_bind_shaders_ext.filter(|_| !shaders.is_empty()) else { return };
        let stages: Vec<ShaderStageFlags> = shaders.iter().map(|it| ShaderStageFlags(it.0)).collect();
        let objects: Vec<ShaderEXT> = shaders.iter().map(|it| ShaderEXT(it.1)).collect();
        // SAFETY: objects that differ from the application's in their code alone, or are these, into a command buffer
        // that it records now.
        unsafe { bind(handle, stages.len() as u32, Ptr::to_slice(&stages), Ptr::to_slice(&objects)) };
    }
}
