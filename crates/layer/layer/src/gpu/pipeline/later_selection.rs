//! Pipelines that are selected by a name that they, or their modules, get after they were created.
//!
//! A pipeline whose shaders are left out keeps its create info if a pattern of the user may still select it. If it gets
//! such a name, it is created again with checks, and later draws use that variant.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use lavascope_abi::*;

use super::plan::{CheckStyle, NOT_SELECTED};
use super::recipe::{PipelineRecipe, ShaderSource};
use super::variants::InstrumentedPipeline;
use crate::gpu::DeviceChecks;
use crate::report::coverage;

const NOT_CREATED_AGAIN: &str = "a pipeline got a name that --shaders selects after it was created, and cannot be created again: it is not \
     checked. Select it by module, entry point or source file";
const OBJECT_NAMED_LATER: &str = "a shader object got a name that --shaders selects after it was created: it is not checked. Select it by entry \
     point or source file";

impl DeviceChecks {
    /// An object got a name.
    pub(crate) fn select_by_name(&self, ty: ObjectType, handle: u64, name: &str) {
        let selection = &self.config.selection;
        let is_it = matches!(ty, ObjectType::PIPELINE | ObjectType::SHADER_MODULE | ObjectType::SHADER_EXT);
        if !selection.is_limited() || !is_it || !selection.selects_name(name) {
            return;
        }
        if ty == ObjectType::SHADER_EXT {
            return self.warn_unchecked(OBJECT_NAMED_LATER);
        }
        let state = self.state();
        let uses = |pipeline: &&Arc<InstrumentedPipeline>| match ty {
            ObjectType::PIPELINE => pipeline.handle.0 == handle,
            _ => pipeline.recipe().is_some_and(|it| it.sources.iter().any(|it| it.module.0 == handle)),
        };
        let found: Vec<_> = state.pipelines.values().filter(uses).cloned().collect();
        drop(state);
        found.iter().for_each(|it| self.select_pipeline(it, ty == ObjectType::PIPELINE));
    }

    fn select_pipeline(&self, pipeline: &InstrumentedPipeline, is_whole: bool) {
        let is_left_out = pipeline.best_variant().is_some_and(|it| it.unchecked.as_deref() == Some(NOT_SELECTED));
        if !is_left_out {
            return;
        }
        if is_whole {
            pipeline.is_selected_by_name.store(true, Ordering::Relaxed);
        }
        let count = pipeline.recipe().map_or(0, |it| it.sources.iter().filter(|it| !it.is_selected).count());
        if self.build_selected_variant(pipeline) {
            coverage::select_shaders_later(count as u64, NOT_SELECTED);
        } else {
            self.warn_unchecked(NOT_CREATED_AGAIN);
        }
    }

    /// The shaders of a recipe, with what was selected since.
    pub(super) fn sources_of(&self, pipeline: &InstrumentedPipeline, recipe: &PipelineRecipe) -> Vec<ShaderSource> {
        let is_whole = pipeline.is_selected_by_name.load(Ordering::Relaxed);
        let selects = |it: &ShaderSource| it.name.get().is_some_and(|it| self.config.selection.selects_name(&it));
        let all = recipe.sources.iter().cloned();
        all.map(|it| ShaderSource { is_selected: it.is_selected || is_whole || selects(&it), ..it }).collect()
    }

    /// Reports patterns that have matched nothing.
    pub(crate) fn report_unmatched(&self) {
        self.config.report_unmatched(&self.messages);
    }

    /// Replaces the variants without checks. Returns whether that was possible.
    fn build_selected_variant(&self, pipeline: &InstrumentedPipeline) -> bool {
        let style = CheckStyle { branches: true, immediate: None };
        let Some(made) = self.rebuild_variant(pipeline, &style) else { return false };
        pipeline.replace_variants(made);
        self.invalidate_choices();
        true
    }
}
