//! Enum values and constants: the `<enums>` sections, and what versions and extensions add to them.

use crate::error::RegistryError;
use crate::model::*;
use crate::xml::*;

pub(crate) fn read(root: RegistryRoot<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    for node in root.at("enums") {
        let name = faults.attribute(root, node, "name").to_owned();
        match faults.attribute(root, node, "type") {
            "constants" => read_constants(root, node, registry, faults),
            kind => {
                let mut read = Enum {
                    width: faults.number(root, node, "bitwidth").unwrap_or(32),
                    is_bitmask: kind == "bitmask",
                    ..Enum::default()
                };
                for value in children(node, "enum").filter(|it| is_for_vulkan(*it)) {
                    read_value(root, value, &mut read, faults);
                }
                registry.enums.insert(name, read);
            }
        }
    }
}

fn read_value(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, into: &mut Enum, faults: &mut ErrorList) {
    let name = faults.attribute(root, node, "name").to_owned();
    if let Some(alias) = text(node, "alias") {
        into.aliases.insert(name, alias);
    } else if let Some(bit) = faults.number(root, node, "bitpos") {
        into.values.push(EnumValue { name, value: 1 << bit });
    } else if let Some(value) = node.attribute("value").and_then(integer) {
        into.values.push(EnumValue { name, value });
    } else {
        faults.bad_value(root, node, "value", "an integer");
    }
}

fn read_constants(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    for constant in children(node, "enum") {
        let name = faults.attribute(root, constant, "name").to_owned();
        let text = faults.attribute(root, constant, "value");
        match constant_value(constant.attribute("type"), text) {
            Some(value) => drop(registry.constants.insert(name, Constant { value })),
            None => faults.bad_value(root, constant, "value", "a constant"),
        }
    }
}

fn constant_value(c_type: Option<&str>, text: &str) -> Option<ConstantValue> {
    if let Some(quoted) = text.strip_prefix('"') {
        return Some(ConstantValue::Text(quoted.trim_end_matches('"').to_owned()));
    }
    match c_type {
        Some("float") => text.trim_end_matches(['f', 'F']).parse().ok().map(ConstantValue::F32),
        Some("uint64_t") => complement(text).map(ConstantValue::U64),
        _ => complement(text).map(|it| ConstantValue::U32(it as u32)),
    }
}

/// A number, or its complement written as `(~0U)` or `(~1U)`.
fn complement(text: &str) -> Option<u64> {
    let inner = text.trim_matches(['(', ')']);
    match inner.strip_prefix('~') {
        Some(rest) => integer(rest.trim_end_matches(['U', 'L'])).map(|it| !(it as u64)),
        None => integer(inner.trim_end_matches(['U', 'L'])).map(|it| it as u64),
    }
}

/// A decimal or hexadecimal integer.
pub(crate) fn integer(text: &str) -> Option<i64> {
    match text.trim().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|it| it as i64),
        None => text.trim().parse().ok(),
    }
}

/// An `<enum>` inside a `<require>`. Extension values are numbered from one thousand million.
pub(crate) fn enum_extension(
    root: RegistryRoot<'_, '_>,
    node: Node<'_, '_>,
    extension_number: Option<i64>,
    faults: &mut ErrorList,
) -> EnumExtension {
    let name = faults.attribute(root, node, "name").to_owned();
    let extends = text(node, "extends");
    let value = if let Some(alias) = text(node, "alias") {
        EnumExtensionValue::Alias(alias)
    } else if let Some(bit) = faults.number(root, node, "bitpos") {
        EnumExtensionValue::Number(1 << bit)
    } else if let Some(offset) = faults.number(root, node, "offset") {
        let number = faults.number(root, node, "extnumber").map(i64::from).or(extension_number);
        let value = 1_000_000_000 + (number.unwrap_or_default() - 1) * 1000 + i64::from(offset);
        EnumExtensionValue::Number(if node.attribute("dir") == Some("-") { -value } else { value })
    } else if let Some(value) = node.attribute("value") {
        match (integer(value), value.strip_prefix('"')) {
            (Some(number), _) => EnumExtensionValue::Number(number),
            (None, Some(quoted)) => EnumExtensionValue::Text(quoted.trim_end_matches('"').to_owned()),
            (None, None) => complement(value).map_or_else(
                || EnumExtensionValue::Alias(value.to_owned()),
                |it| EnumExtensionValue::Number(it as i64),
            ),
        }
    } else {
        EnumExtensionValue::Reference
    };
    EnumExtension { name, extends, value }
}

/// Puts what the blocks add into the enums and constants.
pub(crate) fn apply_extensions(registry: &mut Registry, faults: &mut ErrorList) {
    let blocks = std::mem::take(&mut registry.versions_and_extensions);
    for block in &blocks {
        for added in &block.enums {
            match &added.extends {
                Some(name) => match registry.enums.get_mut(name) {
                    Some(into) => add_value(into, added, block, faults),
                    None => {
                        faults.errors.push(RegistryError::Undefined { item: added.name.clone(), name: name.clone() })
                    }
                },
                None => add_constant(registry, added),
            }
        }
    }
    registry.versions_and_extensions = blocks;
}

fn add_value(into: &mut Enum, added: &EnumExtension, block: &VersionOrExtension, faults: &mut ErrorList) {
    match &added.value {
        EnumExtensionValue::Alias(to) => drop(into.aliases.insert(added.name.clone(), to.clone())),
        EnumExtensionValue::Number(value) => match into.values.iter().find(|it| it.name == added.name) {
            Some(have) if have.value != *value => faults.errors.push(RegistryError::Conflict {
                item: block.name.clone(),
                name: added.name.clone(),
                first: have.value,
                second: *value,
            }),
            Some(_) => {}
            None => into.values.push(EnumValue { name: added.name.clone(), value: *value }),
        },
        EnumExtensionValue::Text(_) | EnumExtensionValue::Reference => {}
    }
}

fn add_constant(registry: &mut Registry, added: &EnumExtension) {
    let value = match &added.value {
        EnumExtensionValue::Number(value) => match u32::try_from(*value) {
            Ok(value) => ConstantValue::U32(value),
            Err(_) => ConstantValue::U64(*value as u64),
        },
        EnumExtensionValue::Text(text) => ConstantValue::Text(text.clone()),
        EnumExtensionValue::Alias(to) => ConstantValue::Alias(to.clone()),
        EnumExtensionValue::Reference => return,
    };
    registry.constants.entry(added.name.clone()).or_insert(Constant { value });
}

#[cfg(test)]
mod tests {
    use super::{complement, integer};

    #[test]
    fn integers_in_both_bases() {
        assert_eq!(integer("0x7FFFFFFF"), Some(0x7fff_ffff));
        assert_eq!(integer("-12"), Some(-12));
        assert_eq!(integer("twelve"), None);
    }

    #[test]
    fn complements_keep_their_width() {
        assert_eq!(complement("(~0ULL)"), Some(u64::MAX));
        assert_eq!(complement("(~1U)").map(|it| it as u32), Some(u32::MAX - 1));
    }
}
