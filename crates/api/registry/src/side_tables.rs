//! The smaller tables: synchronization, formats, dynamic states, SPIR-V and video codecs.

use crate::model::SpirvProperty;
use crate::model::*;
use crate::xml::*;

pub(crate) fn read(root: RegistryRoot<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    read_sync(root, &mut registry.sync, faults);
    for node in root.at("formats/format") {
        let name = faults.attribute(root, node, "name").to_owned();
        let format = format(root, node, faults);
        registry.formats.insert(name, format);
    }
    for node in root.at("dynamicstates/dynamicstate") {
        let name = faults.attribute(root, node, "name").to_owned();
        registry.dynamic_states.insert(name, dynamic_state(node));
    }
    for node in root.at("spirvextensions/spirvextension") {
        let name = faults.attribute(root, node, "name").to_owned();
        registry.spirv_extensions.insert(name, spirv_enables(node));
    }
    for node in root.at("spirvcapabilities/spirvcapability") {
        let name = faults.attribute(root, node, "name").to_owned();
        registry.spirv_capabilities.insert(name, spirv_enables(node));
    }
    for node in root.at("videocodecs/videocodec") {
        registry.video_codecs.push(VideoCodec {
            name: faults.attribute(root, node, "name").to_owned(),
            extend: text(node, "extend"),
            value: text(node, "value"),
            capabilities: children(node, "videocapabilities").filter_map(|it| text(it, "struct")).collect(),
        });
    }
}

fn read_sync(root: RegistryRoot<'_, '_>, sync: &mut SyncTables, faults: &mut ErrorList) {
    for node in root.at("sync/syncstage") {
        sync.stages.push(SyncStage {
            name: faults.attribute(root, node, "name").to_owned(),
            alias: text(node, "alias"),
            queues: child_list(node, "syncsupport", "queues"),
            equivalent: child_list(node, "syncequivalent", "stage"),
        });
    }
    for node in root.at("sync/syncaccess") {
        sync.accesses.push(SyncAccess {
            name: faults.attribute(root, node, "name").to_owned(),
            alias: text(node, "alias"),
            stages: child_list(node, "syncsupport", "stage"),
            equivalent: child_list(node, "syncequivalent", "access"),
        });
    }
    for node in root.at("sync/syncpipeline") {
        let stages = children(node, "syncpipelinestage").map(|child| SyncPipelineStage {
            name: child.text().unwrap_or_default().trim().to_owned(),
            ordered: child.attribute("order") != Some("None"),
            before: text(child, "before"),
        });
        sync.pipelines.push(SyncPipeline {
            name: faults.attribute(root, node, "name").to_owned(),
            depends: list(node, "depends"),
            stages: stages.collect(),
        });
    }
}

fn child_list(node: Node<'_, '_>, element: &str, attribute: &str) -> Vec<String> {
    child(node, element).map(|it| list(it, attribute)).unwrap_or_default()
}

fn format(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> Format {
    let extent: Vec<u32> = list(node, "blockExtent").iter().filter_map(|it| it.parse().ok()).collect();
    let components = children(node, "component").map(|item| FormatComponent {
        name: faults.attribute(root, item, "name").to_owned(),
        bits: item.attribute("bits").and_then(|bits| bits.parse().ok()),
        numeric_format: faults.attribute(root, item, "numericFormat").to_owned(),
        plane: faults.number(root, item, "planeIndex"),
    });
    let components = components.collect();
    let planes = children(node, "plane").map(|item| FormatPlane {
        index: faults.number(root, item, "index").unwrap_or_default(),
        width_divisor: faults.number(root, item, "widthDivisor").unwrap_or(1),
        height_divisor: faults.number(root, item, "heightDivisor").unwrap_or(1),
        compatible: faults.attribute(root, item, "compatible").to_owned(),
    });
    let planes = planes.collect();
    Format {
        class: faults.attribute(root, node, "class").to_owned(),
        block_size: faults.number(root, node, "blockSize").unwrap_or_default(),
        texels_per_block: faults.number(root, node, "texelsPerBlock").unwrap_or(1),
        block_extent: extent.try_into().unwrap_or([1, 1, 1]),
        packed: faults.number(root, node, "packed"),
        compressed: text(node, "compressed"),
        chroma: text(node, "chroma"),
        components,
        planes,
        spirv_image_format: child(node, "spirvimageformat").and_then(|it| text(it, "name")),
    }
}

fn dynamic_state(node: Node<'_, '_>) -> DynamicState {
    DynamicState {
        shader_stage: list(node, "shaderstage"),
        substate: text(node, "pipelinesubstate"),
        requires_rasterization: node.attribute("requiresrasterization") == Some("true"),
        commands: children(node, "dynamicstatecmd").filter_map(|it| text(it, "name")).collect(),
    }
}

fn spirv_enables(node: Node<'_, '_>) -> Vec<SpirvEnable> {
    children(node, "enable")
        .map(|child| SpirvEnable {
            version: text(child, "version"),
            extension: text(child, "extension"),
            feature: text(child, "struct").zip(text(child, "feature")),
            property: text(child, "property")
                .zip(text(child, "member"))
                .zip(text(child, "value"))
                .map(|((structure, member), value)| SpirvProperty { structure, member, value }),
        })
        .collect()
}
