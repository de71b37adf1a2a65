//! A thin layer over `roxmltree`: places, items, typed attributes and collected faults.

use crate::error::{RegistryError, XmlPosition};

pub(crate) use roxmltree::Node;

/// One registry file, parsed.
pub(crate) struct XmlDocument<'a> {
    pub(crate) file: &'static str,
    xml: roxmltree::Document<'a>,
}

impl<'a> XmlDocument<'a> {
    pub(crate) fn parse(file: &'static str, text: &'a str) -> Result<XmlDocument<'a>, RegistryError> {
        match roxmltree::Document::parse(text) {
            Ok(xml) => Ok(XmlDocument { file, xml }),
            Err(error) => {
                let at = error.pos();
                let place = XmlPosition { file, line: at.row, column: at.col };
                Err(RegistryError::Xml { place, reason: error.to_string() })
            }
        }
    }

    pub(crate) fn root(&self) -> RegistryRoot<'_, 'a> {
        RegistryRoot { file: self.file, node: self.xml.root_element() }
    }
}

/// The `<registry>` element together with the name of its file.
#[derive(Clone, Copy)]
pub(crate) struct RegistryRoot<'d, 'a> {
    pub(crate) file: &'static str,
    pub(crate) node: Node<'d, 'a>,
}

impl<'d, 'a: 'd> RegistryRoot<'d, 'a> {
    /// Elements at `path` below the root, `types/type` for example.
    pub(crate) fn at(self, path: &str) -> Vec<Node<'d, 'a>> {
        let mut level = vec![self.node];
        for name in path.split('/') {
            level = level.into_iter().flat_map(|it| children(it, name).collect::<Vec<_>>()).collect();
        }
        level
    }
}

/// The faults found so far. Reading continues after a fault, so that one run shows all of them.
#[derive(Default)]
pub(crate) struct ErrorList {
    pub(crate) errors: Vec<RegistryError>,
}

impl ErrorList {
    /// A required attribute; its absence is a fault and reads as empty.
    pub(crate) fn attribute<'a>(
        &mut self,
        root: RegistryRoot<'_, '_>,
        node: Node<'a, '_>,
        name: &'static str,
    ) -> &'a str {
        node.attribute(name).unwrap_or_else(|| {
            self.errors.push(RegistryError::MissingAttribute {
                place: position(root.file, node),
                item: item(node),
                element: node.tag_name().name().to_owned(),
                attribute: name,
            });
            ""
        })
    }

    /// Notes a value that cannot be understood.
    pub(crate) fn bad_value(
        &mut self,
        root: RegistryRoot<'_, '_>,
        node: Node<'_, '_>,
        attribute: &str,
        expected: &'static str,
    ) {
        self.errors.push(RegistryError::BadValue {
            place: position(root.file, node),
            item: item(node),
            attribute: attribute.to_owned(),
            value: node.attribute(attribute).unwrap_or_default().to_owned(),
            expected,
        });
    }

    /// An optional whole number.
    pub(crate) fn number(&mut self, root: RegistryRoot<'_, '_>, node: Node<'_, '_>, name: &'static str) -> Option<u32> {
        let parsed = node.attribute(name)?.parse();
        if parsed.is_err() {
            self.bad_value(root, node, name, "a whole number");
        }
        parsed.ok()
    }
}

pub(crate) fn children<'d, 'a: 'd>(node: Node<'d, 'a>, name: &str) -> impl Iterator<Item = Node<'d, 'a>> {
    node.children().filter(move |it| it.has_tag_name(name))
}

pub(crate) fn child<'d, 'a: 'd>(node: Node<'d, 'a>, name: &str) -> Option<Node<'d, 'a>> {
    children(node, name).next()
}

/// The text of a child element, trimmed.
pub(crate) fn child_text<'d, 'a: 'd>(node: Node<'d, 'a>, name: &str) -> Option<&'d str> {
    child(node, name).and_then(|it| it.text()).map(str::trim)
}

/// A comma-separated attribute as a list.
pub(crate) fn list(node: Node<'_, '_>, name: &str) -> Vec<String> {
    let text = node.attribute(name).unwrap_or_default();
    text.split(',').map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned).collect()
}

pub(crate) fn text(node: Node<'_, '_>, name: &str) -> Option<String> {
    node.attribute(name).map(str::to_owned)
}

/// Whether the element is meant for the `vulkan` API; no `api` attribute means every API.
pub(crate) fn is_for_vulkan(node: Node<'_, '_>) -> bool {
    node.attribute("api").is_none_or(|it| it.split(',').any(|api| api == "vulkan"))
}

pub(crate) fn position(file: &'static str, node: Node<'_, '_>) -> XmlPosition {
    let at = node.document().text_pos_at(node.range().start);
    XmlPosition { file, line: at.row, column: at.col }
}

/// The name of the nearest enclosing type, command, enum or extension.
pub(crate) fn item(node: Node<'_, '_>) -> String {
    node.ancestors()
        .filter(|it| !matches!(it.tag_name().name(), "member" | "param" | "proto" | "name" | "type" if it.parent_element().is_some_and(|up| matches!(up.tag_name().name(), "member" | "param" | "proto"))))
        .find_map(own_name)
        .unwrap_or_else(|| "registry".to_owned())
}

fn own_name(node: Node<'_, '_>) -> Option<String> {
    let proto = child(node, "proto").unwrap_or(node);
    let name = node.attribute("name").or_else(|| child_text(proto, "name"))?;
    Some(name.to_owned())
}
