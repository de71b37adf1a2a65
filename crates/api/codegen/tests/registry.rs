//! Reads the pinned registry and converts it into code.

use std::path::{Path, PathBuf};

use lavascope_codegen::{REGISTRY_VERSION, emit};
use lavascope_registry::{Registry, parse};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3).map(Path::to_path_buf).unwrap_or_default()
}

fn text(name: &str) -> String {
    let path = root().join("target/registry").join(REGISTRY_VERSION).join("vulkan_object").join(name);
    match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) => panic!("{name}: {error}; `cargo xtask test` and `cargo xtask codegen` fetch it"),
    }
}

fn registry(vk_xml: &str) -> Registry {
    match parse(vk_xml, &text("video.xml")) {
        Ok(registry) => registry,
        Err(errors) => panic!("{errors:#?}"),
    }
}

fn files(registry: &Registry) -> lavascope_codegen::Files {
    match emit(registry, "") {
        Ok(files) => files,
        Err(errors) => panic!("{errors:#?}"),
    }
}

#[test]
fn the_order_of_extensions_in_the_file_does_not_matter() {
    let vk = text("vk.xml");
    let shuffled = reverse_extensions(&vk);
    assert_ne!(vk, shuffled);
    let (left, right) = (files(&registry(&vk)), files(&registry(&shuffled)));
    let differing: Vec<_> = left.iter().filter(|it| right.get(it.0) != Some(it.1)).map(|it| it.0).collect();
    assert!(differing.is_empty(), "{differing:?}");
    assert_eq!(left.len(), right.len());
}

/// Reverses the order of the `<extension>` elements.
fn reverse_extensions(vk: &str) -> String {
    let (start, end) = (vk.find("<extension ").unwrap_or(0), vk.rfind("</extension>").unwrap_or(0));
    let end = end + "</extension>".len();
    let mut elements: Vec<&str> = vk[start..end].split_inclusive("</extension>").collect();
    elements.reverse();
    format!("{}{}{}", &vk[..start], elements.join("\n"), &vk[end..])
}

#[test]
fn the_registry_is_read_whole() {
    let item = registry(&text("vk.xml"));
    let unions = item.structs.values().filter(|it| it.is_union).count();
    let dispatchable = item.handles.values().filter(|it| it.dispatchable).count();
    assert_eq!(item.header_version, 366);
    assert_eq!(item.commands.len(), 737);
    assert_eq!((item.structs.len() - unions, unions), (1539, 16));
    assert_eq!((item.handles.len(), dispatchable), (59, 6));
    assert_eq!(item.enums.len(), 380);
    assert_eq!((item.sync.stages.len(), item.sync.accesses.len(), item.sync.pipelines.len()), (46, 51, 17));
    assert_eq!(item.formats.len(), 297);
}

#[test]
fn an_unknown_attribute_is_an_error_with_its_place() {
    let vk = text("vk.xml").replacen("<command ", "<command colour=\"red\" ", 1);
    let errors = parse(&vk, &text("video.xml")).err().unwrap_or_default();
    let [lavascope_registry::RegistryError::UnknownAttribute { place, attribute, element, .. }] = &errors[..] else {
        panic!("{errors:?}")
    };
    assert_eq!((place.file, attribute.as_str(), element.as_str()), ("vk.xml", "colour", "command"));
    assert!(place.line > 1000, "{place}");
}
