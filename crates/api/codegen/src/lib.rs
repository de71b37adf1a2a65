//! Converts the registry model into generated files, as a map from path to text.
//!
//! [`emit`] is pure: the caller writes the files or compares them with the existing ones. A test fails for differing,
//! missing and orphaned files. Only folders called `generated` and `docs/coverage.md` are written. The text is
//! formatted here, line by line: a separate formatter would influence the result, and would make that test slow.
//!
//! Only facts are generated: types, tables, one-line shims. Behaviour is written by hand in the crates that own the
//! `generated` folders. Exceptions to the registry are in `model/overrides.rs`, each with its reason.
//!
//! Two decisions keep compile times at seconds. The files of `types`, `abi` and `record` are parts of one module,
//! joined by `include!`, not hundreds of modules that import one another. `Structure::layout` is a function, not a
//! constant, because the compiler checks everything that a constant refers to, once for each structure.

#![forbid(unsafe_code)]

mod emit;
mod model;

use std::collections::BTreeMap;
use std::path::PathBuf;

use lavascope_registry::Registry;

/// The source of the registry: a PyPI package that contains vk.xml and video.xml.
pub const REGISTRY_PACKAGE: &str = "vulkan-object";
/// The only place that names the version of the registry.
pub const REGISTRY_VERSION: &str = "1.4.366";

/// An item of the registry that the generator does not support.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{item}: {problem}")]
pub struct CodegenError {
    pub item: String,
    pub problem: String,
}

/// The text of every generated file, by its path from the root of the project.
pub type Files = BTreeMap<PathBuf, String>;

/// All generated files, or all errors.
///
/// `vulkanalia` is the text of the structures of vulkanalia-sys, which a test compares with ours.
pub fn emit(registry: &Registry, vulkanalia: &str) -> Result<Files, Vec<CodegenError>> {
    let model = build(registry)?;
    let mut files = Files::new();
    emit::abi::emit(registry, &model, &mut files);
    emit::record::emit(registry, &model, &mut files);
    emit::marshal::emit(&model, &mut files);
    emit::in_place::emit(&model, &mut files);
    emit::entry_points::emit(&model, &mut files);
    emit::null_driver::emit(registry, &model, &mut files);
    emit::replay::emit(&model, &mut files);
    let undecided = emit::state::check(&model);
    if !undecided.is_empty() {
        return Err(undecided);
    }
    emit::state::emit(&model, &mut files);
    emit::coverage::emit(registry, &model, &mut files);
    let path = PathBuf::from("crates/api/abi/tests/generated/vulkanalia.rs");
    files.insert(path, emit::vulkanalia::emit(vulkanalia, &field_names(&model)));
    Ok(files)
}

fn build(registry: &Registry) -> Result<model::Model, Vec<CodegenError>> {
    let mut layouts = model::layouts::LayoutBuilder::new(registry);
    for name in registry.structs.keys() {
        layouts.structure(name);
    }
    let commands = model::commands::command_models(&mut layouts);
    check_overrides(&mut layouts);
    check_prose_validity(&mut layouts);
    let mut errors = layouts.errors;
    if !errors.is_empty() {
        errors.sort();
        errors.dedup();
        return Err(errors);
    }
    let commands = commands.into_iter().map(|it| (it.c_name.clone(), it)).collect();
    Ok(model::Model { layouts: layouts.layouts, commands })
}

/// The Rust names of the fields of every structure.
fn field_names(model: &model::Model) -> BTreeMap<String, Vec<String>> {
    let fields =
        |it: &model::Layout| it.fields.iter().map(|it| it.rust_name.clone()).filter(|it| !it.is_empty()).collect();
    model.layouts.values().map(|it| (it.rust_name.clone(), fields(it))).collect()
}

/// A pointer whose validity is stated in prose may be invalid, so each needs an entry in the overrides.
fn check_prose_validity(layouts: &mut model::layouts::LayoutBuilder<'_>) {
    let registry = layouts.registry;
    let structures = registry.structs.iter().map(|(name, it)| (name, &it.fields));
    let commands = registry.commands.iter().map(|(name, it)| (name, &it.parameters));
    for (owner, fields) in structures.chain(commands) {
        // Chains are always read.
        let in_prose =
            |it: &&lavascope_registry::RegistryField| it.no_auto_validity && it.ty.is_pointer() && it.name != "pNext";
        for field in fields.iter().filter(in_prose) {
            let item = format!("{owner}.{}", field.name);
            let is_decided = model::overrides::find(&item).is_some()
                || model::overrides::VALID_WHEN_COUNTED.iter().any(|it| it.0 == item)
                || model::pointers::is_foreign(layouts, field);
            if !is_decided {
                layouts.error(&item, "its validity is stated in prose: when is it read?");
            }
        }
    }
    for (item, why) in model::overrides::VALID_WHEN_COUNTED {
        let (owner, field) = item.split_once('.').unwrap_or((item, ""));
        let fields = registry.structs.get(owner).map(|it| &it.fields);
        let fields = fields.or_else(|| registry.commands.get(owner).map(|it| &it.parameters));
        let is_in_prose = fields.is_some_and(|it| it.iter().any(|it| it.name == field && it.no_auto_validity));
        if !is_in_prose {
            layouts.error(item, &format!("is not stated in prose, but called harmless: {why}"));
        }
    }
}

/// An override must refer to an existing item.
fn check_overrides(layouts: &mut model::layouts::LayoutBuilder<'_>) {
    let registry = layouts.registry;
    for replacement in model::overrides::OVERRIDES {
        let (owner, field) = replacement.item.split_once('.').unwrap_or((replacement.item, ""));
        let fields = registry.structs.get(owner).map(|it| &it.fields);
        let fields = fields.or_else(|| registry.commands.get(owner).map(|it| &it.parameters));
        let exists = fields.is_some_and(|it| field.is_empty() || it.iter().any(|it| it.name == field));
        if !exists {
            layouts.error(replacement.item, &format!("is not in the registry, but overridden: {}", replacement.reason));
        }
    }
}
