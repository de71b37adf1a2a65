//! Which elements and attributes a registry file may have.
//!
//! Later readers can then read the parts that they need and ignore nothing by accident: a new element in a newer
//! registry fails here, with its place, and asks for a decision.

use crate::error::RegistryError;
use crate::xml::{Node, XmlDocument, item, position};

/// Path of an element and the attributes it may carry. Sorted by path.
const ELEMENTS: &[(&str, &[&str])] = &[
    ("registry", &[]),
    ("registry/commands", &["comment"]),
    (
        "registry/commands/command",
        &[
            "alias",
            "allownoqueues",
            "api",
            "cmdbufferlevel",
            "comment",
            "conditionalrendering",
            "errorcodes",
            "export",
            "name",
            "queues",
            "renderpass",
            "successcodes",
            "tasks",
            "videocoding",
        ],
    ),
    ("registry/commands/command/implicitexternsyncparams", &[]),
    ("registry/commands/command/implicitexternsyncparams/param", &[]),
    (
        "registry/commands/command/param",
        &["altlen", "api", "externsync", "len", "noautovalidity", "objecttype", "optional", "stride", "validstructs"],
    ),
    ("registry/commands/command/param/name", &[]),
    ("registry/commands/command/param/type", &[]),
    ("registry/commands/command/proto", &[]),
    ("registry/commands/command/proto/name", &[]),
    ("registry/commands/command/proto/type", &[]),
    ("registry/comment", &[]),
    ("registry/dynamicstates", &[]),
    ("registry/dynamicstates/dynamicstate", &["name", "pipelinesubstate", "requiresrasterization", "shaderstage"]),
    ("registry/dynamicstates/dynamicstate/dynamicstatecmd", &["name", "pipeline", "pipelineonly"]),
    ("registry/dynamicstates/dynamicstate/enable", &["extension", "feature", "requires", "struct"]),
    ("registry/dynamicstates/dynamicstate/statecondition", &["special", "state"]),
    ("registry/enums", &["bitwidth", "comment", "name", "type"]),
    ("registry/enums/comment", &[]),
    ("registry/enums/enum", &["alias", "api", "bitpos", "comment", "deprecated", "name", "type", "value"]),
    ("registry/enums/unused", &["comment", "start"]),
    ("registry/extensions", &["comment"]),
    (
        "registry/extensions/extension",
        &[
            "author",
            "comment",
            "contact",
            "depends",
            "deprecatedby",
            "name",
            "nofeatures",
            "number",
            "obsoletedby",
            "platform",
            "promotedto",
            "provisional",
            "ratified",
            "sortorder",
            "specialuse",
            "supported",
            "type",
        ],
    ),
    ("registry/extensions/extension/deprecate", &["explanationlink"]),
    ("registry/extensions/extension/deprecate/command", &["name", "supersededby"]),
    ("registry/extensions/extension/deprecate/feature", &["name", "struct"]),
    ("registry/extensions/extension/deprecate/type", &["name", "supersededby"]),
    ("registry/extensions/extension/remove", &[]),
    ("registry/extensions/extension/remove/feature", &["name", "struct"]),
    ("registry/extensions/extension/require", &["api", "comment", "depends"]),
    ("registry/extensions/extension/require/command", &["comment", "name"]),
    ("registry/extensions/extension/require/comment", &[]),
    (
        "registry/extensions/extension/require/enum",
        &[
            "alias",
            "api",
            "bitpos",
            "comment",
            "deprecated",
            "dir",
            "extends",
            "extnumber",
            "name",
            "offset",
            "protect",
            "type",
            "value",
        ],
    ),
    ("registry/extensions/extension/require/feature", &["name", "struct"]),
    ("registry/extensions/extension/require/type", &["comment", "name"]),
    ("registry/feature", &["api", "apitype", "comment", "depends", "name", "number"]),
    ("registry/feature/deprecate", &["explanationlink"]),
    ("registry/feature/deprecate/command", &["name", "supersededby"]),
    ("registry/feature/deprecate/type", &["name", "supersededby"]),
    ("registry/feature/remove", &["comment", "reasonlink"]),
    ("registry/feature/remove/command", &["name"]),
    ("registry/feature/remove/comment", &[]),
    ("registry/feature/remove/enum", &["name"]),
    ("registry/feature/remove/feature", &["name", "struct"]),
    ("registry/feature/remove/type", &["name"]),
    ("registry/feature/require", &["comment", "depends"]),
    ("registry/feature/require/command", &["name"]),
    ("registry/feature/require/comment", &[]),
    (
        "registry/feature/require/enum",
        &["alias", "api", "bitpos", "comment", "deprecated", "dir", "extends", "extnumber", "name", "offset", "value"],
    ),
    ("registry/feature/require/feature", &["name", "struct"]),
    ("registry/feature/require/type", &["comment", "name"]),
    ("registry/formats", &[]),
    (
        "registry/formats/format",
        &["blockExtent", "blockSize", "chroma", "class", "compressed", "name", "packed", "texelsPerBlock"],
    ),
    ("registry/formats/format/component", &["bits", "name", "numericFormat", "planeIndex"]),
    ("registry/formats/format/plane", &["compatible", "heightDivisor", "index", "widthDivisor"]),
    ("registry/formats/format/spirvimageformat", &["name"]),
    ("registry/platforms", &["comment"]),
    ("registry/platforms/platform", &["comment", "name", "protect"]),
    ("registry/spirvcapabilities", &["comment"]),
    ("registry/spirvcapabilities/spirvcapability", &["name"]),
    (
        "registry/spirvcapabilities/spirvcapability/enable",
        &["alias", "extension", "feature", "member", "property", "requires", "struct", "value", "version"],
    ),
    ("registry/spirvextensions", &["comment"]),
    ("registry/spirvextensions/spirvextension", &["name"]),
    ("registry/spirvextensions/spirvextension/enable", &["extension", "version"]),
    ("registry/sync", &["comment"]),
    ("registry/sync/syncaccess", &["alias", "name"]),
    ("registry/sync/syncaccess/comment", &[]),
    ("registry/sync/syncaccess/syncequivalent", &["access"]),
    ("registry/sync/syncaccess/syncsupport", &["stage"]),
    ("registry/sync/syncpipeline", &["depends", "name"]),
    ("registry/sync/syncpipeline/syncpipelinestage", &["before", "order"]),
    ("registry/sync/syncstage", &["alias", "name"]),
    ("registry/sync/syncstage/syncequivalent", &["stage"]),
    ("registry/sync/syncstage/syncsupport", &["queues"]),
    ("registry/tags", &["comment"]),
    ("registry/tags/tag", &["author", "contact", "name"]),
    ("registry/types", &["comment"]),
    ("registry/types/comment", &[]),
    (
        "registry/types/type",
        &[
            "alias",
            "allowduplicate",
            "api",
            "bitvalues",
            "category",
            "comment",
            "name",
            "objtypeenum",
            "parent",
            "requiredlimittype",
            "requires",
            "returnedonly",
            "structextends",
        ],
    ),
    ("registry/types/type/comment", &[]),
    (
        "registry/types/type/member",
        &[
            "altlen",
            "api",
            "deprecated",
            "externsync",
            "featurelink",
            "flagsextend",
            "flagsextendmember",
            "len",
            "limittype",
            "noautovalidity",
            "objecttype",
            "optional",
            "selection",
            "selector",
            "values",
        ],
    ),
    ("registry/types/type/member/comment", &[]),
    ("registry/types/type/member/enum", &[]),
    ("registry/types/type/member/name", &["alias"]),
    ("registry/types/type/member/type", &[]),
    ("registry/types/type/name", &[]),
    ("registry/types/type/param", &[]),
    ("registry/types/type/param/name", &[]),
    ("registry/types/type/param/type", &[]),
    ("registry/types/type/proto", &[]),
    ("registry/types/type/proto/name", &[]),
    ("registry/types/type/proto/type", &[]),
    ("registry/types/type/type", &[]),
    ("registry/videocodecs", &[]),
    ("registry/videocodecs/videocodec", &["extend", "name", "value"]),
    ("registry/videocodecs/videocodec/videocapabilities", &["struct"]),
    ("registry/videocodecs/videocodec/videoformat", &["extend", "name", "usage"]),
    ("registry/videocodecs/videocodec/videoformat/videoformatproperties", &["struct"]),
    ("registry/videocodecs/videocodec/videoformat/videorequirecapabilities", &["member", "struct", "value"]),
    ("registry/videocodecs/videocodec/videoprofiles", &["struct"]),
    ("registry/videocodecs/videocodec/videoprofiles/videoprofilemember", &["name"]),
    ("registry/videocodecs/videocodec/videoprofiles/videoprofilemember/videoprofile", &["name", "value"]),
];

/// Every element and attribute that this version of Lavascope does not know.
pub(crate) fn verify(document: &XmlDocument<'_>) -> Vec<RegistryError> {
    let mut errors = Vec::new();
    let root = document.root().node;
    verify_element(document.file, root, root.tag_name().name(), &mut errors);
    errors
}

fn verify_element(file: &'static str, node: Node<'_, '_>, path: &str, errors: &mut Vec<RegistryError>) {
    let Ok(at) = ELEMENTS.binary_search_by_key(&path, |it| it.0) else {
        let element = node.tag_name().name().to_owned();
        errors.push(RegistryError::UnknownElement { place: position(file, node), item: item(node), element });
        return;
    };
    for attribute in node.attributes().filter(|it| !ELEMENTS[at].1.contains(&it.name())) {
        errors.push(RegistryError::UnknownAttribute {
            place: position(file, node),
            item: item(node),
            element: node.tag_name().name().to_owned(),
            attribute: attribute.name().to_owned(),
        });
    }
    for child in node.children().filter(Node::is_element) {
        verify_element(file, child, &format!("{path}/{}", child.tag_name().name()), errors);
    }
}

#[cfg(test)]
mod tests {
    use super::ELEMENTS;

    #[test]
    fn elements_are_sorted_for_the_search() {
        assert!(ELEMENTS.is_sorted_by_key(|it| it.0));
    }
}
