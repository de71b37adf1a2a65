//! Reads vk.xml and video.xml into a small, sorted, plain-data model.
//!
//! One call, [`parse`], from two texts to a [`Registry`] or to the list of everything that is wrong with them.
//! Every element and attribute must be known to [`schema`]: a registry that says something new is an error with
//! its place, never a silent loss.
//!
//! Absent on purpose: files and downloads (see `xtask`), names and layouts of Rust types (see `codegen`), and
//! Vulkan SC: only what the `vulkan` API or one of its enabled extensions requires is in the model.

#![forbid(unsafe_code)]

mod blocks;
mod commands;
mod error;
mod model;
mod schema;
mod side_tables;
mod types;
mod values;
mod xml;

pub use error::RegistryError;
pub use model::*;

/// Parses the two registry files, or names every fault found in them.
pub fn parse(vk_xml: &str, video_xml: &str) -> Result<Registry, Vec<RegistryError>> {
    let vk = open("vk.xml", vk_xml)?;
    let video = open("video.xml", video_xml)?;
    let mut errors = schema::verify(&vk);
    errors.extend(schema::verify(&video));
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut registry = Registry::default();
    let mut faults = xml::ErrorList::default();
    for document in [&vk, &video] {
        let root = document.root();
        types::read(root, &mut registry, &mut faults);
        values::read(root, &mut registry, &mut faults);
        commands::read(root, &mut registry, &mut faults);
        blocks::read(root, &mut registry, &mut faults);
        side_tables::read(root, &mut registry, &mut faults);
    }
    // Sorted first: what comes to lie where must not depend on the order of the file.
    registry.sort();
    values::apply_extensions(&mut registry, &mut faults);
    blocks::keep_required(&mut registry);
    registry.find_introductions();
    blocks::check_references(&registry, &mut faults);
    if faults.errors.is_empty() { Ok(registry) } else { Err(faults.errors) }
}

fn open<'a>(file: &'static str, text: &'a str) -> Result<xml::XmlDocument<'a>, Vec<RegistryError>> {
    xml::XmlDocument::parse(file, text).map_err(|error| vec![error])
}
