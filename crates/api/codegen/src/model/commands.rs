//! Models the commands: an image of the parameters, and an image of result and outputs.

use std::collections::BTreeSet;

use lavascope_registry as registry;

use crate::model::layouts::{FieldOwner, LayoutBuilder};
use crate::model::names;
use crate::model::overrides;
use crate::model::pointers;
use crate::model::*;

pub(crate) fn command_models(layouts: &mut LayoutBuilder<'_>) -> Vec<CommandModel> {
    let registry = layouts.registry;
    let with_outputs = structures_with_outputs(layouts);
    registry.commands.iter().map(|(name, it)| command(layouts, name, it, &with_outputs)).collect()
}

fn command(
    layouts: &mut LayoutBuilder<'_>,
    c_name: &str,
    command: &registry::RegistryCommand,
    with_outputs: &BTreeSet<String>,
) -> CommandModel {
    let registry = layouts.registry;
    let owner = FieldOwner {
        name: c_name,
        is_command: true,
        is_union: false,
        returned_only: false,
        fields: &command.parameters,
    };
    let mut parameters = layouts.lay_out(&owner);
    parameters.rust_name = format!("{}Params", names::command_name(c_name));
    // Parameter images are whole words, so that the blocks after them are aligned.
    pad_to_words(&mut parameters);
    let result_type = match command.result.base.as_str() {
        "void" => String::new(),
        base if base.starts_with("PFN_") => "FnPtr".to_owned(),
        base => layouts.value(c_name, base).rust_type,
    };
    let outputs = outputs(layouts, &owner, &parameters, command, with_outputs);
    let aliases = registry.aliases.iter().filter(|(_, to)| *to == c_name).map(|(from, _)| from.clone()).collect();
    CommandModel {
        c_name: c_name.to_owned(),
        rust_name: names::command_name(c_name),
        level: level(c_name, command),
        parameters,
        outputs,
        result_type,
        aliases,
        block: registry.introduced_by(c_name).map(|it| it.name.clone()).unwrap_or_default(),
    }
}

fn pad_to_words(layout: &mut Layout) {
    let size = layout.size.next_multiple_of(8);
    if size > layout.size {
        match layout.gaps.last_mut().filter(|it| it.at + it.size == layout.size) {
            Some(gap) => gap.size += size - layout.size,
            None => layout.gaps.push(Span { at: layout.size, size: size - layout.size }),
        }
        layout.size = size;
    }
    layout.align = 8;
}

fn level(c_name: &str, command: &registry::RegistryCommand) -> &'static str {
    if c_name == "vkGetInstanceProcAddr" {
        return "Global";
    }
    match command.parameters.first().map(|it| it.ty.base.as_str()) {
        Some("VkInstance") => "Instance",
        Some("VkPhysicalDevice") => "PhysicalDevice",
        Some("VkDevice" | "VkQueue" | "VkCommandBuffer" | "VkExternalComputeQueueNV") => "Device",
        _ => "Global",
    }
}

/// Structures that lead to an output pointer, through members or chains.
fn structures_with_outputs(layouts: &mut LayoutBuilder<'_>) -> BTreeSet<String> {
    let registry = layouts.registry;
    let mut found = BTreeSet::new();
    loop {
        let before = found.len();
        for (name, item) in &registry.structs {
            let layout = layouts.structure(name);
            if !item.returned_only && layout.fixups.iter().any(|work| reaches_output(work, &found)) {
                found.insert(name.clone());
                found.extend(item.extends.iter().cloned());
            }
            if found.contains(name) {
                found.extend(item.extends.iter().cloned());
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

fn reaches_output(work: &Fixup, found: &BTreeSet<String>) -> bool {
    match work {
        Fixup::Pointer { pointer, .. } => pointer_reaches_output(pointer, found),
        Fixup::Select { cases, .. } => cases.iter().flat_map(|it| &it.fixups).any(|it| reaches_output(it, found)),
        _ => false,
    }
}

fn pointer_reaches_output(pointer: &Pointer, found: &BTreeSet<String>) -> bool {
    pointer.direction != Direction::In
        || match &pointer.to {
            Pointee::Struct(name) => found.contains(name),
            Pointee::Pointer(inner) => pointer_reaches_output(inner, found),
            _ => false,
        }
}

/// First the result, then the integers that are needed as lengths, then the outputs, each once.
fn outputs(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    parameters: &Layout,
    command: &registry::RegistryCommand,
    with_outputs: &BTreeSet<String>,
) -> Option<Outputs> {
    let mut fields: Vec<registry::RegistryField> = Vec::new();
    let mut sources = Vec::new();
    if command.result.base != "void" {
        fields.push(result_field(command));
        sources.push(OutputSource::Result);
    }
    for (index, parameter) in owner.fields.iter().enumerate() {
        let placed = &parameters.fields[index];
        let is_output = is_output(parameter, placed);
        let carries_outputs =
            matches!(&placed.ty, Ty::Pointer(pointer) if pointer_reaches_output(pointer, with_outputs));
        if !is_output && !carries_outputs {
            continue;
        }
        let mut field = parameter.clone();
        for len in &mut field.len {
            add_length(layouts, owner, parameters, len, &mut fields, &mut sources);
        }
        if !fields.iter().any(|it| it.name == field.name) {
            fields.push(field);
            sources.push(OutputSource::Parameter { at: placed.at, is_output });
        }
    }
    if fields.is_empty() {
        return None;
    }
    let name = format!("{}:outputs", owner.name);
    let inner = FieldOwner { name: &name, is_command: true, is_union: false, returned_only: false, fields: &fields };
    let mut layout = layouts.lay_out(&inner);
    layout.rust_name = format!("{}Outputs", names::command_name(owner.name));
    pad_to_words(&mut layout);
    Some(Outputs { layout, sources, result: result_kind(layouts, owner.name, command) })
}

fn is_output(parameter: &registry::RegistryField, placed: &Field) -> bool {
    let is_const = parameter.ty.pointers.iter().any(|it| *it);
    match &placed.ty {
        Ty::Pointer(_) => !is_const,
        _ => false,
    }
}

fn result_field(command: &registry::RegistryCommand) -> registry::RegistryField {
    registry::RegistryField {
        name: "result".to_owned(),
        ty: command.result.clone(),
        len: vec![],
        optional: vec![],
        extern_sync: registry::ExternSync::No,
        no_auto_validity: false,
        values: None,
        selector: None,
        selection: vec![],
        object_type: None,
        stride: None,
        valid_structs: vec![],
        limit_type: None,
        deprecated: false,
    }
}

/// Adds the integer of a length to the outputs, and makes the length refer to it there.
fn add_length(
    layouts: &mut LayoutBuilder<'_>,
    owner: &FieldOwner<'_>,
    parameters: &Layout,
    len: &mut registry::Length,
    fields: &mut Vec<registry::RegistryField>,
    sources: &mut Vec<OutputSource>,
) {
    let path = match len {
        registry::Length::Path(path) => path.clone(),
        registry::Length::Expression(text) => {
            let name: String =
                text.chars().skip_while(|c| !c.is_alphabetic()).take_while(|c| c.is_alphanumeric()).collect();
            vec![name]
        }
        _ => return,
    };
    let Some(index) = owner.fields.iter().position(|it| it.name == path[0]) else { return };
    let (field, source) = if path.len() == 2 {
        let Some(place) = pointers::integer_location(layouts, owner, &path) else { return };
        let inner = layouts.registry.resolve(&owner.fields[index].ty.base).to_owned();
        let members = &layouts.registry.structs[&inner].fields;
        let Some(member) = members.iter().find(|it| it.name == path[1]) else { return };
        *len = registry::Length::Path(vec![member.name.clone()]);
        (member.clone(), OutputSource::Through(place))
    } else {
        let is_output = owner.fields[index].ty.is_pointer();
        (owner.fields[index].clone(), OutputSource::Parameter { at: parameters.fields[index].at, is_output })
    };
    if !fields.iter().any(|it| it.name == field.name) {
        fields.push(field);
        sources.push(source);
    }
}

fn result_kind(layouts: &mut LayoutBuilder<'_>, c_name: &str, command: &registry::RegistryCommand) -> ResultKind {
    match command.result.base.as_str() {
        "void" => ResultKind::Void,
        "VkResult" => {
            let is_mine = |name: &str| name == "*" || name == c_name;
            let codes: Vec<&str> = overrides::UNWRITTEN_ON_SUCCESS
                .iter()
                .filter(|it| is_mine(it.0) && command.success_codes.iter().any(|code| code == it.1))
                .map(|it| it.1)
                .collect();
            let unwritten = codes.iter().filter_map(|it| layouts.enum_value("VkResult", it)).collect();
            let is_always_written = overrides::WRITTEN_ON_FAILURE.iter().any(|it| it.0 == c_name);
            ResultKind::Codes { unwritten, is_always_written }
        }
        _ => ResultKind::Value,
    }
}
