//! API versions and extensions, and the reduction of the model to what they require.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::RegistryError;
use crate::model::*;
use crate::values;
use crate::xml::*;

pub(crate) fn read(root: RegistryRoot<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    for node in root.at("feature").into_iter().filter(|it| is_for_vulkan(*it)) {
        let number = faults.attribute(root, node, "number").to_owned();
        let name = format!("VK_VERSION_{}", number.replace('.', "_"));
        // Newer registries split a version into base, compute and graphics parts; they are one block to us.
        let mut block = match registry.versions_and_extensions.iter().position(|it| it.name == name) {
            Some(at) => registry.versions_and_extensions.remove(at),
            None => empty_version_or_extension(name, number, VersionOrExtensionKind::Version),
        };
        read_requirements(root, node, &mut block, None, faults);
        registry.versions_and_extensions.push(block);
    }
    for node in root.at("extensions/extension") {
        if list(node, "supported").iter().any(|it| it == "vulkan") {
            let block = extension(root, node, faults);
            registry.versions_and_extensions.push(block);
        }
    }
}

fn empty_version_or_extension(name: String, number: String, kind: VersionOrExtensionKind) -> VersionOrExtension {
    VersionOrExtension {
        name,
        number,
        kind,
        platform: None,
        depends: None,
        promoted_to: None,
        deprecated_by: None,
        provisional: false,
        types: vec![],
        commands: vec![],
        enums: vec![],
    }
}

fn extension(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> VersionOrExtension {
    let name = faults.attribute(root, node, "name").to_owned();
    let number = faults.attribute(root, node, "number").to_owned();
    let kind = match node.attribute("type") {
        Some("instance") => VersionOrExtensionKind::InstanceExtension,
        Some("device") => VersionOrExtensionKind::DeviceExtension,
        _ if root.file == "video.xml" => VersionOrExtensionKind::VideoHeader,
        _ => {
            faults.bad_value(root, node, "type", "instance or device");
            VersionOrExtensionKind::DeviceExtension
        }
    };
    let numeric = number.parse().ok();
    let mut block = VersionOrExtension {
        platform: text(node, "platform"),
        depends: text(node, "depends"),
        promoted_to: text(node, "promotedto"),
        deprecated_by: text(node, "deprecatedby"),
        provisional: node.attribute("provisional") == Some("true"),
        ..empty_version_or_extension(name, number, kind)
    };
    read_requirements(root, node, &mut block, numeric, faults);
    block
}

fn read_requirements(
    root: RegistryRoot<'_, '_>,
    node: Node<'_, '_>,
    block: &mut VersionOrExtension,
    extension_number: Option<i64>,
    faults: &mut ErrorList,
) {
    for require in children(node, "require").filter(|it| is_for_vulkan(*it)) {
        for child in require.children().filter(Node::is_element).filter(|it| is_for_vulkan(*it)) {
            match child.tag_name().name() {
                "type" => block.types.push(faults.attribute(root, child, "name").to_owned()),
                "command" => block.commands.push(faults.attribute(root, child, "name").to_owned()),
                "enum" => block.enums.push(values::enum_extension(root, child, extension_number, faults)),
                _ => {}
            }
        }
    }
}

/// Removes everything that no version and no enabled extension requires, directly or through a field.
///
/// A type that is reached through a field only joins the block of the item that needs it.
pub(crate) fn keep_required(registry: &mut Registry) {
    let mut owner: BTreeMap<String, usize> = BTreeMap::new();
    let mut open: Vec<(String, usize)> = Vec::new();
    for (index, block) in registry.versions_and_extensions.iter().enumerate().rev() {
        for name in block.types.iter().chain(&block.commands) {
            open.push((registry.resolve(name).to_owned(), index));
        }
    }
    while let Some((name, index)) = open.pop() {
        if owner.contains_key(&name) {
            continue;
        }
        for needed in types_mentioned_by(registry, &name) {
            open.insert(0, (registry.resolve(&needed).to_owned(), index));
        }
        owner.insert(name, index);
    }
    let kept: BTreeSet<&String> = owner.keys().collect();
    registry.handles.retain(|name, _| kept.contains(name));
    registry.enums.retain(|name, _| kept.contains(name));
    registry.bitmasks.retain(|name, _| kept.contains(name));
    registry.structs.retain(|name, _| kept.contains(name));
    registry.commands.retain(|name, _| kept.contains(name));
    registry.function_pointers.retain(|name, _| kept.contains(name));
    let alias_targets: BTreeMap<String, String> = registry
        .aliases
        .iter()
        .filter(|(_, to)| kept.contains(&registry.resolve(to).to_owned()))
        .map(|(from, to)| (from.clone(), to.clone()))
        .collect();
    registry.aliases = alias_targets;
    for (name, index) in owner {
        let block = &mut registry.versions_and_extensions[index];
        let is_command = registry.commands.contains_key(&name);
        let into = if is_command { &mut block.commands } else { &mut block.types };
        if !into.contains(&name) {
            into.push(name);
        }
    }
    let structs = &mut registry.structs;
    let names: BTreeSet<String> = structs.keys().cloned().collect();
    for structure in structs.values_mut() {
        structure.extends.retain(|name| names.contains(name));
    }
}

/// The names of types that an item's definition mentions.
fn types_mentioned_by(registry: &Registry, name: &str) -> Vec<String> {
    if let Some(structure) = registry.structs.get(name) {
        return structure.fields.iter().map(|it| it.ty.base.clone()).collect();
    }
    if let Some(registry_command) = registry.commands.get(name) {
        let parameters = registry_command.parameters.iter().map(|it| it.ty.base.clone());
        return parameters.chain([registry_command.result.base.clone()]).collect();
    }
    if let Some(function_pointer) = registry.function_pointers.get(name) {
        let parameters = function_pointer.parameters.iter().map(|it| it.ty.base.clone());
        return parameters.chain([function_pointer.result.base.clone()]).collect();
    }
    if let Some(bitmask) = registry.bitmasks.get(name) {
        return bitmask.bits.iter().cloned().collect();
    }
    registry.handles.get(name).and_then(|it| it.parent.clone()).into_iter().collect()
}

/// Every type named by a field must be defined somewhere.
pub(crate) fn check_references(registry: &Registry, faults: &mut ErrorList) {
    let fields = registry.structs.iter().map(|(name, it)| (name, &it.fields));
    let parameters = registry.commands.iter().map(|(name, it)| (name, &it.parameters));
    for (item, fields) in fields.chain(parameters) {
        for field in fields {
            if !is_defined(registry, registry.resolve(&field.ty.base)) {
                let name = field.ty.base.clone();
                faults.errors.push(RegistryError::Undefined { item: item.clone(), name });
            }
        }
    }
}

fn is_defined(registry: &Registry, name: &str) -> bool {
    const C_TYPES: &[&str] = &[
        "void", "char", "float", "double", "int", "size_t", "int8_t", "int16_t", "int32_t", "int64_t", "uint8_t",
        "uint16_t", "uint32_t", "uint64_t",
    ];
    C_TYPES.contains(&name)
        || registry.base_types.contains_key(name)
        || registry.external_types.contains_key(name)
        || registry.function_pointers.contains_key(name)
        || registry.handles.contains_key(name)
        || registry.enums.contains_key(name)
        || registry.bitmasks.contains_key(name)
        || registry.structs.contains_key(name)
}
