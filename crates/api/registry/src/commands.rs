//! The `<commands>` section.

use crate::model::*;
use crate::types::{field, type_ref};
use crate::xml::*;

pub(crate) fn read(root: RegistryRoot<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    for node in root.at("commands/command").into_iter().filter(|it| is_for_vulkan(*it)) {
        if let (Some(name), Some(alias)) = (text(node, "name"), text(node, "alias")) {
            registry.aliases.insert(name, alias);
            continue;
        }
        let Some(proto) = child(node, "proto") else {
            faults.bad_value(root, node, "proto", "a prototype");
            continue;
        };
        let name = child_text(proto, "name").unwrap_or_default().to_owned();
        let command = command(root, node, proto, faults);
        registry.commands.insert(name, command);
    }
}

fn command(
    root: RegistryRoot<'_, '_>,
    node: Node<'_, '_>,
    proto: Node<'_, '_>,
    faults: &mut ErrorList,
) -> RegistryCommand {
    let parameters = children(node, "param").filter(|it| is_for_vulkan(*it));
    let implicit = child(node, "implicitexternsyncparams");
    RegistryCommand {
        result: type_ref(root, proto, faults),
        parameters: parameters.map(|it| field(root, it, faults)).collect(),
        success_codes: list(node, "successcodes"),
        error_codes: list(node, "errorcodes"),
        queues: list(node, "queues"),
        allow_no_queues: node.attribute("allownoqueues") == Some("true"),
        render_pass: text(node, "renderpass").unwrap_or_default(),
        video_coding: text(node, "videocoding").unwrap_or_default(),
        command_buffer_level: list(node, "cmdbufferlevel"),
        tasks: list(node, "tasks"),
        conditional_rendering: node.attribute("conditionalrendering") == Some("true"),
        implicit_extern_sync: implicit
            .into_iter()
            .flat_map(|it| children(it, "param"))
            .filter_map(|it| it.text())
            .map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect(),
    }
}
