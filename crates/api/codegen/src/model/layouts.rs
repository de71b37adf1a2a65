//! Computes layouts: sizes, offsets, padding, and the fixups for the walkers.
//!
//! The rules are those of the C ABI for 64-bit little-endian targets, where every type is aligned to its size.

use std::collections::{BTreeMap, BTreeSet};

use lavascope_registry::{self as registry, Registry};

use crate::CodegenError;
use crate::model::names;
use crate::model::overrides;
use crate::model::overrides::OverrideKind;
use crate::model::pointers;
use crate::model::*;

/// The layouts computed so far, and the errors found.
pub(crate) struct LayoutBuilder<'r> {
    pub(crate) registry: &'r Registry,
    pub(crate) layouts: BTreeMap<String, Layout>,
    pub(crate) errors: Vec<CodegenError>,
    /// Structures and members that a parameter lists as externally synchronized.
    exclusive: BTreeSet<(String, String)>,
}

/// A type that is stored by value.
#[derive(Clone)]
pub(crate) struct ValueType {
    pub(crate) size: u32,
    pub(crate) align: u32,
    pub(crate) rust_type: String,
    pub(crate) ty: Ty,
}

/// The structure or command whose fields get their layout.
pub(crate) struct FieldOwner<'a> {
    pub(crate) name: &'a str,
    pub(crate) is_command: bool,
    pub(crate) is_union: bool,
    pub(crate) returned_only: bool,
    pub(crate) fields: &'a [registry::RegistryField],
}

impl<'r> LayoutBuilder<'r> {
    pub(crate) fn new(registry: &'r Registry) -> Self {
        LayoutBuilder { registry, layouts: BTreeMap::new(), errors: Vec::new(), exclusive: exclusive_members(registry) }
    }

    pub(crate) fn error(&mut self, item: &str, problem: &str) {
        self.errors.push(CodegenError { item: item.to_owned(), problem: problem.to_owned() });
    }

    /// The layout of a structure or union, computed once.
    pub(crate) fn structure(&mut self, c_name: &str) -> Layout {
        let c_name = self.registry.resolve(c_name).to_owned();
        if let Some(done) = self.layouts.get(&c_name) {
            return done.clone();
        }
        let registry = self.registry;
        let Some(other) = registry.structs.get(&c_name) else {
            self.error(&c_name, "not a structure");
            return self.lay_out(&FieldOwner {
                name: &c_name,
                is_command: false,
                is_union: false,
                returned_only: false,
                fields: &[],
            });
        };
        let owner = FieldOwner {
            name: &c_name,
            is_command: false,
            is_union: other.is_union,
            returned_only: other.returned_only,
            fields: &other.fields,
        };
        let mut layout = self.lay_out(&owner);
        layout.rust_name = names::type_name(&c_name);
        layout.s_type = other.s_type().and_then(|name| self.enum_value("VkStructureType", name));
        self.layouts.insert(c_name, layout.clone());
        layout
    }

    /// Computes the offsets of the fields, then their fixups.
    pub(crate) fn lay_out(&mut self, owner: &FieldOwner<'_>) -> Layout {
        let mut layout = Layout {
            c_name: owner.name.to_owned(),
            rust_name: String::new(),
            size: 0,
            align: 1,
            s_type: None,
            is_union: owner.is_union,
            returned_only: owner.returned_only,
            fields: vec![],
            fixups: vec![],
            gaps: vec![],
            keep: vec![],
        };
        let mut bits = BitFieldRun::default();
        for field in owner.fields {
            match field.ty.bits {
                Some(width) => self.place_bits(field, width, &mut bits, &mut layout),
                None => {
                    bits = BitFieldRun::default();
                    self.place_field(owner, field, &mut layout);
                }
            }
        }
        let end = layout.fields.iter().map(|it| it.at + it.size).max().unwrap_or(0);
        layout.size = end.next_multiple_of(layout.align);
        self.add_work(owner, &mut layout);
        if !owner.is_union {
            add_gaps(self, &mut layout);
            add_keep(self, owner, &mut layout);
        }
        layout
    }

    fn place_field(&mut self, owner: &FieldOwner<'_>, field: &registry::RegistryField, layout: &mut Layout) {
        let value = self.field_value(owner, field);
        let count = if value.is_array_parameter() { 1 } else { self.array_count(owner, &field.ty) };
        let end = layout.fields.iter().map(|it| it.at + it.size).max().unwrap_or(0);
        let at = if owner.is_union { 0 } else { end.next_multiple_of(value.align) };
        layout.align = layout.align.max(value.align);
        let mut rust_type = value.rust_type.clone();
        if !field.ty.is_pointer() {
            for extent in field.ty.array.iter().rev() {
                rust_type = format!("[{rust_type}; {}]", self.extent(owner, extent));
            }
        }
        layout.fields.push(Field {
            c_name: field.name.clone(),
            rust_name: names::field_name(&field.name),
            rust_type,
            at,
            size: value.size * count,
            ty: value.ty,
            count,
            optional: field.optional.first().copied().unwrap_or(false),
            extern_sync: self.is_exclusive(owner, field),
        });
    }

    /// Whether a field must be externally synchronized during the call.
    pub(crate) fn is_exclusive(&self, owner: &FieldOwner<'_>, field: &registry::RegistryField) -> bool {
        match field.extern_sync {
            registry::ExternSync::Always | registry::ExternSync::Maybe => true,
            // The rule is about members of what the parameter points to, not about the parameter.
            registry::ExternSync::Of(_) => false,
            registry::ExternSync::No => self.exclusive.contains(&(owner.name.to_owned(), field.name.clone())),
        }
    }

    /// Adds a bit field. Bit fields share 32-bit words, from the lowest bit up.
    fn place_bits(&mut self, field: &registry::RegistryField, width: u32, run: &mut BitFieldRun, layout: &mut Layout) {
        let is_new_word = run.used == 0 || run.used + width > 32;
        if is_new_word {
            let end = layout.fields.iter().map(|it| it.at + it.size).max().unwrap_or(0);
            *run = BitFieldRun { at: end.next_multiple_of(4), used: 0 };
            layout.align = layout.align.max(4);
        }
        let words_before = layout.fields.iter().filter(|it| it.rust_name.starts_with("bits_")).count();
        layout.fields.push(Field {
            c_name: field.name.clone(),
            rust_name: if is_new_word { format!("bits_{words_before}") } else { String::new() },
            rust_type: if is_new_word { "u32".to_owned() } else { String::new() },
            at: run.at,
            size: 4,
            ty: Ty::Bits { shift: run.used, width },
            count: 1,
            optional: true,
            extern_sync: false,
        });
        run.used += width;
    }

    /// The type of a field in memory: a value or a pointer.
    fn field_value(&mut self, owner: &FieldOwner<'_>, field: &registry::RegistryField) -> ValueType {
        if field.ty.is_pointer() {
            return pointers::pointer_type(self, owner, field);
        }
        let mut value = self.value(owner.name, &field.ty.base);
        if field.object_type.is_some() {
            value.ty = Ty::TypedHandle;
        }
        value
    }

    /// A type that is stored by value, from its C name.
    pub(crate) fn value(&mut self, item: &str, c_name: &str) -> ValueType {
        let registry = self.registry;
        let c_name = registry.resolve(c_name);
        if let Some(value) = c_value(c_name) {
            return value;
        }
        if registry.handles.contains_key(c_name) {
            return ValueType::new(8, names::type_name(c_name), Ty::Handle(c_name.to_owned()));
        }
        if let Some(bitmask) = registry.bitmasks.get(c_name) {
            let bits = bitmask.bits.clone().filter(|it| registry.enums.contains_key(it));
            let ty = match bits {
                Some(bits) => Ty::Flags(bits),
                None => Ty::Plain(if bitmask.width == 64 { "U64" } else { "U32" }),
            };
            return ValueType::new(bitmask.width / 8, names::type_name(c_name), ty);
        }
        if let Some(enumeration) = registry.enums.get(c_name) {
            let ty = if enumeration.is_bitmask { Ty::Flags(c_name.to_owned()) } else { Ty::Enum(c_name.to_owned()) };
            return ValueType::new(enumeration.width / 8, names::type_name(c_name), ty);
        }
        if registry.function_pointers.contains_key(c_name) {
            return ValueType::new(8, "FnPtr".to_owned(), Ty::Opaque);
        }
        if registry.structs.contains_key(c_name) {
            let layout = self.structure(c_name);
            let rust_type = layout.rust_name.clone();
            return ValueType { size: layout.size, align: layout.align, rust_type, ty: Ty::Struct(c_name.to_owned()) };
        }
        self.platform_value(item, c_name)
    }

    fn platform_value(&mut self, item: &str, c_name: &str) -> ValueType {
        if let Some((_, size, is_object)) = overrides::EXTERNAL_VALUES.iter().find(|it| it.0 == c_name) {
            let (rust, plain) = if *size == 4 { ("u32", "U32") } else { ("u64", "U64") };
            let ty = if *is_object { Ty::Opaque } else { Ty::Plain(plain) };
            return ValueType::new(*size, rust.to_owned(), ty);
        }
        match self.registry.base_types.get(c_name).and_then(|it| it.to.clone()) {
            Some(to) if to.is_pointer() => ValueType::new(8, "Ptr<Opaque>".to_owned(), Ty::Opaque),
            Some(to) => self.value(item, &to.base),
            None => {
                self.error(item, &format!("the size of `{c_name}` is not known"));
                ValueType::new(8, "u64".to_owned(), Ty::Plain("U64"))
            }
        }
    }

    fn array_count(&mut self, owner: &FieldOwner<'_>, ty: &registry::TypeRef) -> u32 {
        if ty.is_pointer() {
            return 1;
        }
        ty.array.iter().map(|it| self.extent(owner, it)).product()
    }

    /// An array size: a number or a named constant.
    pub(crate) fn extent(&mut self, owner: &FieldOwner<'_>, text: &str) -> u32 {
        if let Ok(number) = text.parse() {
            return number;
        }
        let mut name = text;
        loop {
            match self.registry.constants.get(name).map(|it| &it.value) {
                Some(registry::ConstantValue::U32(value)) => return *value,
                Some(registry::ConstantValue::Alias(to)) => name = to,
                _ => {
                    self.error(owner.name, &format!("array size `{text}` is not a constant"));
                    return 1;
                }
            }
        }
    }

    pub(crate) fn enum_value(&mut self, enum_name: &str, value: &str) -> Option<i64> {
        let enumeration = self.registry.enums.get(enum_name)?;
        let value = enumeration.aliases.get(value).map_or(value, String::as_str);
        let found = enumeration.values.iter().find(|it| it.name == value).map(|it| it.value);
        if found.is_none() {
            self.error(enum_name, &format!("has no value `{value}`"));
        }
        found
    }

    fn add_work(&mut self, owner: &FieldOwner<'_>, layout: &mut Layout) {
        let fields = layout.fields.clone();
        for field in &fields {
            let source = owner.fields.iter().find(|it| it.name == field.c_name);
            self.add_tail(owner, source, field, &mut layout.fixups);
            match &field.ty {
                Ty::Plain("Char") if field.count > 1 => {
                    layout.fixups.push(Fixup::Text { at: field.at, size: field.size });
                }
                Ty::Handle(ty) => {
                    layout.fixups.push(Fixup::Handles {
                        at: field.at,
                        count: field.count,
                        ty: ty.clone(),
                        exclusive: field.extern_sync,
                    });
                }
                Ty::TypedHandle => self.add_typed_handle(owner, source, field, &fields, &mut layout.fixups),
                Ty::Chain => layout.fixups.push(Fixup::Chain { at: field.at }),
                Ty::Pointer(pointer) => {
                    let item = format!("{}.{}", owner.name, field.c_name);
                    if matches!(overrides::find(&item), Some(OverrideKind::SettingValues)) {
                        layout.fixups.push(self.setting_values(field, &fields));
                    } else {
                        layout.fixups.push(Fixup::Pointer { at: field.at, pointer: pointer.clone() });
                    }
                }
                Ty::Opaque => layout.fixups.push(Fixup::Opaque { at: field.at }),
                Ty::Struct(c_name) => self.add_inline(owner, source, c_name, field, &fields, &mut layout.fixups),
                Ty::Plain(_) | Ty::Enum(_) | Ty::Flags(_) | Ty::Bits { .. } => {}
            }
        }
    }

    /// The elements of an inline array after its length are undefined, so they are not recorded.
    fn add_tail(
        &mut self,
        owner: &FieldOwner<'_>,
        source: Option<&registry::RegistryField>,
        field: &Field,
        work: &mut Vec<Fixup>,
    ) {
        let is_array = field.count > 1 && !matches!(field.ty, Ty::Plain("Char"));
        let len = source.filter(|it| !it.ty.is_pointer()).and_then(|it| it.len.first());
        if let (true, Some(registry::Length::Path(path))) = (is_array, len)
            && let Some(count) = pointers::integer_location(self, owner, path)
        {
            let array = Span { at: field.at, size: field.size };
            work.push(Fixup::Tail { array, element: field.size / field.count, count });
        }
    }

    fn add_typed_handle(
        &mut self,
        owner: &FieldOwner<'_>,
        source: Option<&registry::RegistryField>,
        field: &Field,
        fields: &[Field],
        work: &mut Vec<Fixup>,
    ) {
        let sibling = source.and_then(|it| it.object_type.as_deref()).unwrap_or_default();
        match fields.iter().find(|it| it.c_name == sibling) {
            Some(ty) => {
                let is_report = matches!(&ty.ty, Ty::Enum(name) if name == "VkDebugReportObjectTypeEXT");
                let place = IntegerLocation { through: None, at: ty.at, width: 4 };
                work.push(Fixup::TypedHandle { at: field.at, ty: place, is_report, exclusive: field.extern_sync });
            }
            None => self.error(owner.name, &format!("no sibling `{sibling}` for `{}`", field.c_name)),
        }
    }

    /// Adds the fixups of an inline structure to those of its owner. A union has fixups that depend on its selector.
    fn add_inline(
        &mut self,
        owner: &FieldOwner<'_>,
        source: Option<&registry::RegistryField>,
        c_name: &str,
        field: &Field,
        fields: &[Field],
        work: &mut Vec<Fixup>,
    ) {
        let inner = self.structure(c_name);
        if !inner.is_union {
            for element in 0..field.count {
                work.extend(inner.fixups.iter().map(|it| it.shifted(field.at + element * inner.size)));
            }
            return;
        }
        let selector = source.and_then(|it| it.selector.as_deref());
        if inner.fixups.is_empty() && selector.is_none() {
            return;
        }
        if c_name.starts_with("VkDeviceOrHostAddress") {
            work.push(Fixup::DeviceOrHost { at: field.at });
            return;
        }
        let selector = selector.unwrap_or_default();
        let Some(sibling) = fields.iter().find(|it| it.c_name == selector) else {
            self.error(owner.name, &format!("no selector for union `{}`", field.c_name));
            return;
        };
        let Ty::Enum(enum_name) = &sibling.ty else {
            self.error(owner.name, &format!("the selector `{selector}` is not an enum"));
            return;
        };
        let cases = self.cases(c_name, enum_name, field.at);
        let selector = IntegerLocation { through: None, at: sibling.at, width: sibling.size };
        work.push(Fixup::Select { union: Span { at: field.at, size: field.size }, selector, cases });
    }

    fn cases(&mut self, union: &str, enum_name: &str, at: u32) -> Vec<Case> {
        let registry = self.registry;
        let layout = self.structure(union);
        let members = &registry.structs[union].fields;
        let mut cases = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let field = &layout.fields[index];
            let values: Vec<i64> = member.selection.iter().filter_map(|it| self.enum_value(enum_name, it)).collect();
            let (work, gaps) = match &field.ty {
                Ty::Struct(c_name) => {
                    let inner = self.structure(c_name);
                    (inner.fixups, inner.gaps)
                }
                Ty::Pointer(pointer) => (vec![Fixup::Pointer { at: 0, pointer: pointer.clone() }], vec![]),
                Ty::Handle(ty) => (vec![Fixup::Handles { at: 0, count: 1, ty: ty.clone(), exclusive: false }], vec![]),
                _ => (vec![], vec![]),
            };
            cases.push(Case {
                values,
                field: index as u32,
                size: field.size,
                fixups: work.iter().map(|it| it.shifted(at)).collect(),
                gaps: gaps.iter().map(|it| Span { at: it.at + at, size: it.size }).collect(),
            });
        }
        cases
    }

    /// `VkLayerSettingEXT::pValues`: depending on `type`, numbers of four or eight bytes, or strings.
    fn setting_values(&mut self, field: &Field, fields: &[Field]) -> Fixup {
        let place = |name: &str, width| {
            let at = fields.iter().find(|it| it.c_name == name).map_or(0, |it| it.at);
            IntegerLocation { through: None, at, width }
        };
        let len = Len::At(place("valueCount", 4));
        let pointer = |to| Pointer {
            to,
            len: len.clone(),
            read: ReadCondition::Always,
            direction: Direction::In,
            stride: None,
            exclusive: false,
        };
        let text = Pointer {
            to: Pointee::Text,
            len: Len::Terminated,
            read: ReadCondition::Always,
            direction: Direction::In,
            stride: None,
            exclusive: false,
        };
        let case = |values: &[i64], to| Case {
            values: values.to_vec(),
            field: 0,
            size: 8,
            fixups: vec![Fixup::Pointer { at: field.at, pointer: Box::new(pointer(to)) }],
            gaps: vec![],
        };
        Fixup::Select {
            union: Span { at: field.at, size: 8 },
            selector: place("type", 4),
            cases: vec![
                case(&[0, 1, 3, 5], Pointee::Values(4, "u32".to_owned(), Ty::Plain("U32"))),
                case(&[2, 4, 6], Pointee::Values(8, "u64".to_owned(), Ty::Plain("U64"))),
                case(&[7], Pointee::Pointer(Box::new(text))),
            ],
        }
    }
}

#[derive(Default)]
struct BitFieldRun {
    at: u32,
    used: u32,
}

impl ValueType {
    pub(crate) fn new(size: u32, rust_type: String, ty: Ty) -> ValueType {
        ValueType { size, align: size, rust_type, ty }
    }

    /// Parameters that are declared as arrays are pointers.
    fn is_array_parameter(&self) -> bool {
        matches!(self.ty, Ty::Pointer(_) | Ty::Chain | Ty::Opaque)
    }
}

/// The types of C and the scalar types of Vulkan.
fn c_value(c_name: &str) -> Option<ValueType> {
    let (size, rust, ty) = match c_name {
        "uint8_t" => (1, "u8", "U8"),
        "int8_t" => (1, "i8", "I8"),
        "char" => (1, "u8", "Char"),
        "uint16_t" => (2, "u16", "U16"),
        "int16_t" => (2, "i16", "I16"),
        "uint32_t" | "VkFlags" | "VkSampleMask" => (4, "u32", "U32"),
        "int32_t" | "int" => (4, "i32", "I32"),
        "float" => (4, "f32", "F32"),
        "VkBool32" => (4, "Bool32", "Bool32"),
        "uint64_t" | "VkDeviceSize" | "VkFlags64" => (8, "u64", "U64"),
        "int64_t" => (8, "i64", "I64"),
        "double" => (8, "f64", "F64"),
        "size_t" => (8, "u64", "Size"),
        "VkDeviceAddress" => (8, "u64", "DeviceAddress"),
        _ => return None,
    };
    Some(ValueType::new(size, rust.to_owned(), Ty::Plain(ty)))
}

/// Padding between fields and inside inline structures.
fn add_gaps(layouts: &mut LayoutBuilder<'_>, layout: &mut Layout) {
    let mut end = 0;
    let mut gaps = Vec::new();
    for field in &layout.fields {
        if field.at > end {
            gaps.push(Span { at: end, size: field.at - end });
        }
        if let Ty::Struct(c_name) = &field.ty {
            let inner = layouts.structure(c_name);
            for element in 0..field.count {
                let base = field.at + element * inner.size;
                gaps.extend(inner.gaps.iter().map(|it| Span { at: base + it.at, size: it.size }));
            }
        }
        end = end.max(field.at + field.size);
    }
    if layout.size > end {
        gaps.push(Span { at: end, size: layout.size - end });
    }
    layout.gaps = gaps;
}

/// The parts of an output structure that are inputs: its type and the capacities of its arrays.
fn add_keep(layouts: &mut LayoutBuilder<'_>, owner: &FieldOwner<'_>, layout: &mut Layout) {
    let is_all = matches!(overrides::find(owner.name), Some(OverrideKind::KeepAll));
    let mut keep: Vec<Span> = Vec::new();
    for field in &layout.fields {
        let is_capacity = layout.fixups.iter().any(|fixup| match fixup {
            Fixup::Pointer { pointer, .. } => {
                matches!(&pointer.len, Len::At(place) if place.through.is_none() && place.at == field.at)
            }
            _ => false,
        });
        let is_value = !matches!(field.ty, Ty::Chain | Ty::Pointer(_) | Ty::Opaque | Ty::Handle(_));
        if field.c_name == "sType" || is_capacity || is_all && is_value {
            keep.push(Span { at: field.at, size: field.size });
        } else if let Ty::Struct(c_name) = &field.ty {
            // An inline structure has its own entries.
            let inner = layouts.structure(c_name);
            for element in 0..field.count {
                let base = field.at + element * inner.size;
                keep.extend(inner.keep.iter().map(|it| Span { at: base + it.at, size: it.size }));
            }
        }
    }
    layout.keep = keep;
}

/// Members that a parameter lists by a path, like `pDescriptorWrites[].dstSet`.
fn exclusive_members(registry: &Registry) -> BTreeSet<(String, String)> {
    let parameters = registry.commands.values().flat_map(|it| &it.parameters);
    let member = |registry_field: &registry::RegistryField| match &registry_field.extern_sync {
        registry::ExternSync::Of(path) => {
            let member = path.rsplit(['.', '>']).next().unwrap_or_default();
            Some((registry.resolve(&registry_field.ty.base).to_owned(), member.to_owned()))
        }
        _ => None,
    };
    parameters.filter_map(member).collect()
}

impl Fixup {
    /// The same fixup, for an owner that begins `by` bytes earlier.
    pub(crate) fn shifted(&self, by: u32) -> Fixup {
        match self.clone() {
            Fixup::Chain { at } => Fixup::Chain { at: at + by },
            Fixup::Handles { at, count, ty, exclusive } => Fixup::Handles { at: at + by, count, ty, exclusive },
            Fixup::TypedHandle { at, ty, is_report, exclusive } => {
                Fixup::TypedHandle { at: at + by, ty: ty.shifted(by), is_report, exclusive }
            }
            Fixup::Pointer { at, pointer } => Fixup::Pointer { at: at + by, pointer: Box::new(pointer.shifted(by)) },
            Fixup::Opaque { at } => Fixup::Opaque { at: at + by },
            Fixup::Text { at, size } => Fixup::Text { at: at + by, size },
            Fixup::Tail { array, element, count } => {
                let array = Span { at: array.at + by, size: array.size };
                Fixup::Tail { array, element, count: count.shifted(by) }
            }
            Fixup::DeviceOrHost { at } => Fixup::DeviceOrHost { at: at + by },
            Fixup::Select { union, selector, cases } => Fixup::Select {
                union: Span { at: union.at + by, size: union.size },
                selector: selector.shifted(by),
                cases: cases.into_iter().map(|it| it.shifted(by)).collect(),
            },
        }
    }
}

impl Case {
    fn shifted(mut self, by: u32) -> Case {
        self.fixups = self.fixups.iter().map(|it| it.shifted(by)).collect();
        self.gaps = self.gaps.iter().map(|it| Span { at: it.at + by, size: it.size }).collect();
        self
    }
}

impl IntegerLocation {
    fn shifted(self, by: u32) -> IntegerLocation {
        match self.through {
            None => IntegerLocation { at: self.at + by, ..self },
            Some(through) => IntegerLocation { through: Some(through + by), ..self },
        }
    }
}

impl Pointer {
    fn shifted(&self, by: u32) -> Pointer {
        let mut pointer = self.clone();
        pointer.len = match pointer.len {
            Len::At(place) => Len::At(place.shifted(by)),
            Len::Scaled { of, add, divide } => Len::Scaled { of: of.shifted(by), add, divide },
            other => other,
        };
        pointer.read = match pointer.read {
            ReadCondition::Is(place, values) => ReadCondition::Is(place.shifted(by), values),
            ReadCondition::Has(place, bits) => ReadCondition::Has(place.shifted(by), bits),
            ReadCondition::Lacks(place, bits) => ReadCondition::Lacks(place.shifted(by), bits),
            other => other,
        };
        pointer.stride = pointer.stride.map(|place| place.shifted(by));
        pointer
    }
}
