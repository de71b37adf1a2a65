//! What shader objects are together: those that are bound at a draw stand in the place of a pipeline.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lavascope_abi::*;

use super::commands::Commands;
use super::objects::{Combination, Form, Ground, Key, LINKED, Object, Shaders, Together, Wanted};
use super::pipelines::Style;
use super::variants::{Checked, CheckedStage, Origin, Quiet, Variant, lock};
use super::{Gpu, State, descriptors, feedback};

impl State {
    /// The pipeline, or what stands in its place, that a form is one of.
    pub(super) fn checked_of(&self, variant: &Variant) -> Option<Arc<Checked>> {
        if variant.objects.is_none() {
            return self.pipelines.get(&variant.application.0.0).cloned();
        }
        let (handle, _) = variant.stages.iter().find_map(|it| it.object)?;
        let object = self.objects.live.get(&handle.0)?;
        let keys = lock(&object.together);
        let all = keys.iter().filter_map(|it| self.objects.together.get(it));
        let mut checked = all.filter_map(|it| if let Together::Checked(it) = it { Some(it) } else { None });
        checked.find(|it| it.number == variant.application.1).cloned()
    }
}

impl Gpu {
    /// Shader objects were bound since the last draw: finds what they are together.
    pub(super) fn combine(&self, commands: &mut Commands, handle: CommandBuffer, point: usize) {
        let bound = commands.objects(point);
        bound.is_new = false;
        let key = bound.application.clone();
        match self.together(key) {
            Together::Checked(checked) => commands.set_pipeline(point, Some(checked)),
            Together::Plain(shaders) => {
                commands.set_pipeline(point, None);
                self.bind_objects(commands, handle, point, &shaders);
            }
        }
    }

    fn together(&self, key: Key) -> Together {
        let state = self.state();
        if let Some(known) = state.objects.together.get(&key) {
            return known.clone();
        }
        let objects: Vec<_> = key.iter().map(|it| state.objects.live.get(&it.1).cloned()).collect();
        drop(state);
        let made = match objects.iter().cloned().collect::<Option<Vec<_>>>() {
            Some(objects) => self.checked_objects(objects).map(Together::Checked),
            None => {
                // One is as the application made it, and all must have the same sets and push constants.
                let original = |(at, it): (&(u32, u64), &Option<Arc<Object>>)| {
                    let original = it.as_ref().and_then(|it| self.original(it));
                    (at.0, original.map_or(at.1, |it| it.0))
                };
                Some(Together::Plain(key.iter().zip(&objects).map(original).collect()))
            }
        };
        let made = made.unwrap_or_else(|| Together::Plain(key.clone()));
        objects.iter().flatten().for_each(|it| lock(&it.together).push(key.clone()));
        self.state().objects.together.entry(key).or_insert(made).clone()
    }

    /// None where nothing is checked.
    fn checked_objects(&self, objects: Vec<Arc<Object>>) -> Option<Arc<Checked>> {
        let number = self.next_pipeline();
        let forms: Vec<&Form> = objects.iter().map(|it| &it.first).collect();
        let branches = objects.first()?.ground.layout.is_in_buffers();
        let first = Arc::new(self.compose(&objects, &forms, (number, branches), Vec::new())?);
        if first.stages.is_empty() && first.requirements.is_empty() {
            return None;
        }
        self.state().variants.push(Arc::clone(&first));
        let origin = Origin::Objects(Combination { objects });
        Some(Arc::new(Checked::new(Pipeline::default(), number, Some(origin), first)))
    }

    /// What stands in the place of a pipeline.
    fn compose(
        &self,
        objects: &[Arc<Object>],
        forms: &[&Form],
        (number, branches): (u32, bool),
        own: Vec<ShaderEXT>,
    ) -> Option<Variant> {
        let ground = &objects.first()?.ground;
        let mut stages: Vec<CheckedStage> = Vec::new();
        for (at, (object, form)) in objects.iter().zip(forms).enumerate() {
            // What is bound together has the same sets and push constants.
            if !Arc::ptr_eq(&object.ground, ground) {
                return None;
            }
            let (name, touch_base) = (object.name.clone(), feedback::touch_base(&stages));
            let object = Some((object.handle, object.number));
            let stage = |it: &CheckedStage| CheckedStage { index: at, name, object, touch_base, ..it.clone() };
            stages.extend(form.stage.as_ref().map(stage));
        }
        let quiet = if stages.is_empty() { None } else { Some(self.quiet_of(ground)?) };
        let bound = objects.iter().zip(forms).map(|(object, form)| (object.stage.0, form.handle.0)).collect();
        let reads_addresses = stages.iter().any(|it| it.made.reads_addresses);
        Some(Variant {
            handle: Pipeline::default(),
            application: (Pipeline::default(), number),
            layout: Arc::clone(&ground.layout),
            way: ground.layout.way?,
            stages,
            cells: self.part_cells(),
            quiet,
            fixed: forms.iter().filter_map(|it| it.fixed.clone()).collect(),
            requirements: forms.iter().flat_map(|it| it.requirements.iter().copied()).collect(),
            reads_addresses,
            branches,
            keeps_all: false,
            objects: Some(Shaders { bound, own }),
            is_over: AtomicBool::new(false),
            _leases: Vec::new(),
        })
    }

    fn quiet_of(&self, ground: &Ground) -> Option<Quiet> {
        let make = || {
            let table = descriptors::table(&ground.layout, &Default::default(), |_| None);
            let mut leases = Vec::new();
            let quiet = self.or_fail(self.quiet(ground.layout.way?, self.part_cells(), &table, &mut leases))?;
            Some((quiet, leases))
        };
        ground.quiet.get_or_init(make).as_ref().map(|it| it.0)
    }

    /// Makes all objects of a combination again.
    pub(super) fn make_objects(&self, it: &Combination, number: u32, style: &Style) -> Option<Arc<Variant>> {
        let mut forms: Vec<Form> = Vec::new();
        for (at, object) in it.objects.iter().enumerate() {
            let immediate = style.immediate.as_ref().map(|it| it.get(at).cloned().unwrap_or_default());
            match self.make_object(object, (style.branches, immediate)) {
                Some(form) => forms.push(form),
                None => {
                    forms.iter().for_each(|it| self.destroy_objects(&[it.handle]));
                    return None;
                }
            }
        }
        let own = forms.iter().map(|it| it.handle).collect();
        let forms: Vec<&Form> = forms.iter().collect();
        let variant = Arc::new(self.compose(&it.objects, &forms, (number, style.branches), own)?);
        self.state().variants.push(Arc::clone(&variant));
        Some(variant)
    }

    /// It is not linked to others: they are made again as well, and all of them are bound.
    fn make_object(&self, object: &Object, wanted: Wanted) -> Option<Form> {
        self.with_infos(&object.group, |infos| {
            let info = infos.get_mut(object.place)?;
            info.flags.0 &= !LINKED;
            let words = (Arc::clone(&object.words), object.is_taken);
            // SAFETY: an info as it was in a valid call, but for its code.
            let plan = unsafe { self.plan_object(&object.ground, info, words, object.number, wanted) };
            let made = self.create_objects(std::slice::from_ref(&plan.info))?;
            Some(plan.form(*made.first()?))
        })
    }

    /// Binds shader objects where the driver has others.
    pub(super) fn bind_objects(
        &self,
        commands: &mut Commands,
        handle: CommandBuffer,
        point: usize,
        wanted: &[(u32, u64)],
    ) {
        let bound = commands.objects(point);
        if bound.driver == wanted {
            return;
        }
        let others: Key = wanted.iter().filter(|it| !bound.driver.contains(it)).copied().collect();
        bound.driver = wanted.to_vec();
        self.bind_shaders(handle, &others);
    }

    /// Something of ours was bound in their place.
    pub(super) fn bind_objects_again(&self, commands: &mut Commands, handle: CommandBuffer, point: usize) {
        self.bind_shaders(handle, &commands.objects(point).driver);
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
