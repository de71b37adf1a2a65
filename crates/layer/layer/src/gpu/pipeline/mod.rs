//! Instrumented pipelines and shader objects.

pub(crate) mod bound_shader_objects;
pub(crate) mod crash_guard;
pub(crate) mod later_selection;
pub(crate) mod layouts;
pub(crate) mod plan;
pub(crate) mod recipe;
pub(crate) mod recipe_context;
pub(crate) mod selection;
pub(crate) mod shader_cache;
pub(crate) mod shader_objects;
pub(crate) mod stage_plan;
pub(crate) mod variants;
pub(crate) mod worker;
