//! The `<types>` section: base types, handles, bitmasks, function pointers, structures and unions.

use crate::model::*;
use crate::xml::*;

pub(crate) fn read(root: RegistryRoot<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    for node in root.at("platforms/platform") {
        let name = faults.attribute(root, node, "name").to_owned();
        let protect = faults.attribute(root, node, "protect").to_owned();
        registry.platforms.insert(name, Platform { protect });
    }
    for node in root.at("types/type").into_iter().filter(|it| is_for_vulkan(*it)) {
        read_type(root, node, registry, faults);
    }
}

fn read_type(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, registry: &mut Registry, faults: &mut ErrorList) {
    let name = node.attribute("name").or_else(|| child_text(node, "name"));
    if let (Some(name), Some(alias)) = (name, node.attribute("alias")) {
        registry.aliases.insert(name.to_owned(), alias.to_owned());
        return;
    }
    let category = node.attribute("category").unwrap_or_default();
    if category == "funcpointer" {
        read_function_pointer(root, node, registry, faults);
        return;
    }
    let Some(name) = name.map(str::to_owned) else {
        faults.attribute(root, node, "name");
        return;
    };
    match category {
        "" => read_external(node, name, registry),
        "basetype" => drop(registry.base_types.insert(name, BaseType { to: typedef(node) })),
        "bitmask" => drop(registry.bitmasks.insert(name, bitmask(node))),
        "handle" => drop(registry.handles.insert(name, handle(root, node, faults))),
        "struct" | "union" => drop(registry.structs.insert(name, structure(root, node, faults))),
        // The values come with `<enums>`; here the name alone is stated.
        "enum" => drop(registry.enums.entry(name).or_insert_with(|| Enum { width: 32, ..Enum::default() })),
        "define" => read_define(node, &name, registry),
        "include" => {}
        _ => faults.bad_value(root, node, "category", "a known category of type"),
    }
}

/// Platform types name their header; the C types of `vk_platform` and the video types are not external.
fn read_external(node: Node<'_, '_>, name: String, registry: &mut Registry) {
    let header = node.attribute("requires").unwrap_or_default();
    if header != "vk_platform" && header != "stdint" && !header.starts_with("vk_video/") {
        registry.external_types.insert(name, header.to_owned());
    }
}

/// `typedef uint32_t VkBool32;` has a target; `struct ANativeWindow;` has none; Objective-C types are pointers.
fn typedef(node: Node<'_, '_>) -> Option<TypeRef> {
    if let Some(base) = child_text(node, "type") {
        let pointers = if source(node).contains('*') { vec![false] } else { vec![] };
        return Some(TypeRef { base: base.to_owned(), pointers, array: vec![], bits: None });
    }
    let is_pointer = source(node).contains("typedef void*") || source(node).contains("__IOSurface*");
    is_pointer.then(|| TypeRef { base: "void".to_owned(), pointers: vec![false], array: vec![], bits: None })
}

fn source(node: Node<'_, '_>) -> String {
    node.descendants().filter(Node::is_text).filter_map(|it| it.text()).collect()
}

fn bitmask(node: Node<'_, '_>) -> Bitmask {
    let width = if child_text(node, "type") == Some("VkFlags64") { 64 } else { 32 };
    Bitmask { width, bits: text(node, "requires").or_else(|| text(node, "bitvalues")) }
}

fn handle(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> RegistryHandle {
    RegistryHandle {
        parent: text(node, "parent"),
        object_type: faults.attribute(root, node, "objtypeenum").to_owned(),
        dispatchable: child_text(node, "type") == Some("VK_DEFINE_HANDLE"),
    }
}

fn structure(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> Struct {
    let members = children(node, "member").filter(|it| is_for_vulkan(*it));
    Struct {
        is_union: node.attribute("category") == Some("union"),
        fields: members.map(|it| field(root, it, faults)).collect(),
        returned_only: node.attribute("returnedonly") == Some("true"),
        extends: list(node, "structextends"),
        allow_duplicate: node.attribute("allowduplicate") == Some("true"),
        required_limit_type: node.attribute("requiredlimittype") == Some("true"),
    }
}

fn read_function_pointer(
    root: RegistryRoot<'_, '_>,
    node: Node<'_, '_>,
    registry: &mut Registry,
    faults: &mut ErrorList,
) {
    let Some(proto) = child(node, "proto") else { return faults.bad_value(root, node, "proto", "a prototype") };
    let name = child_text(proto, "name").unwrap_or_default().to_owned();
    let parameters = children(node, "param").map(|it| field(root, it, faults)).collect();
    let result = type_ref(root, proto, faults);
    registry.function_pointers.insert(name, FunctionPointer { result, parameters });
}

fn read_define(node: Node<'_, '_>, name: &str, registry: &mut Registry) {
    if name == "VK_HEADER_VERSION" {
        let number = source(node).split_whitespace().last().and_then(|it| it.parse().ok());
        registry.header_version = number.unwrap_or_default();
    }
}

/// A member or a parameter.
pub(crate) fn field(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> RegistryField {
    RegistryField {
        name: child_text(node, "name").unwrap_or_default().to_owned(),
        ty: type_ref(root, node, faults),
        len: lengths(node),
        optional: list(node, "optional").iter().map(|it| it == "true").collect(),
        extern_sync: extern_sync(node),
        no_auto_validity: node.attribute("noautovalidity") == Some("true"),
        values: text(node, "values"),
        selector: text(node, "selector"),
        selection: list(node, "selection"),
        object_type: text(node, "objecttype"),
        stride: text(node, "stride"),
        valid_structs: list(node, "validstructs"),
        limit_type: text(node, "limittype"),
        deprecated: node.attribute("deprecated").is_some(),
    }
}

fn extern_sync(node: Node<'_, '_>) -> ExternSync {
    match node.attribute("externsync") {
        None => ExternSync::No,
        Some("true") => ExternSync::Always,
        Some("maybe") => ExternSync::Maybe,
        Some(other) => ExternSync::Of(other.trim_start_matches("maybe:").to_owned()),
    }
}

fn lengths(node: Node<'_, '_>) -> Vec<Length> {
    // `altlen` is the C form of a `len` given as mathematics.
    let name = if node.has_attribute("altlen") { "altlen" } else { "len" };
    list(node, name).into_iter().map(length).collect()
}

fn length(text: String) -> Length {
    let is_path = text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '>'));
    match text.parse() {
        Ok(number) => Length::Number(number),
        Err(_) if text == "null-terminated" => Length::NullTerminated,
        Err(_) if is_path => Length::Path(text.split("->").map(str::to_owned).collect()),
        Err(_) => Length::Expression(text),
    }
}

/// Reads `const <type>T</type>* const* <name>n</name>[4]` and its simpler forms.
pub(crate) fn type_ref(root: RegistryRoot<'_, '_>, node: Node<'_, '_>, faults: &mut ErrorList) -> TypeRef {
    let base = child_text(node, "type").unwrap_or_default().to_owned();
    if base.is_empty() {
        faults.bad_value(root, node, "type", "a type");
    }
    let (before, after_type, after_name) = declaration_parts(node);
    let mut pointers = Vec::new();
    let mut is_const = before.contains("const");
    for piece in after_type.split_inclusive('*').filter(|it| it.contains('*')) {
        // A `const` before this star belongs to what the star points to.
        is_const |= piece.contains("const");
        pointers.push(is_const);
        is_const = false;
    }
    let mut array: Vec<String> =
        after_name.split('[').skip(1).filter_map(|it| it.split(']').next()).map(|it| it.trim().to_owned()).collect();
    let bits = after_name.trim().strip_prefix(':').and_then(|it| it.trim().parse().ok());
    // An array parameter is a pointer to its first element.
    if node.has_tag_name("param") && !array.is_empty() {
        pointers.push(true);
        array = vec![array.join("*")];
    }
    TypeRef { base, pointers, array, bits }
}

/// The text before `<type>`, between type and name, and after the name, with constants of array sizes in place.
fn declaration_parts(node: Node<'_, '_>) -> (String, String, String) {
    let mut out = [String::new(), String::new(), String::new()];
    let mut at = 0;
    for child in node.children() {
        match child.tag_name().name() {
            "type" => at = 1,
            "name" => at = 2,
            "comment" => {}
            "enum" => out[at].push_str(child.text().unwrap_or_default()),
            _ => out[at].push_str(child.text().unwrap_or_default()),
        }
    }
    let [before, between, after] = out;
    (before, between, after)
}
