//! The tables against vulkanalia-sys, another generator's work from nearly the same registry.
//!
//! It knows what the installed C headers of `c_layout.rs` are too old for.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;

use lavascope_abi::Structure;

const BITS_LAST: &str = "vulkanalia puts bit-fields behind the other fields; C keeps the order of the declaration";
const FLAGS_64: &str = "the registry's typedef is VkFlags64; vulkanalia has 32 bits, as there is no bit above them yet";
const GENERIC: &str = "it has no structure type of its own; vulkanalia's default is zero";

/// Structures that vulkanalia has otherwise, and why we do not follow it.
const OTHERWISE: &[(&str, &str)] = &[
    ("VkAccelerationStructureInstanceKHR", BITS_LAST),
    ("VkAccelerationStructureMatrixMotionInstanceNV", BITS_LAST),
    ("VkAccelerationStructureSRTMotionInstanceNV", BITS_LAST),
    ("VkBaseInStructure", GENERIC),
    ("VkBaseOutStructure", GENERIC),
    ("VkClusterAccelerationStructureBuildTriangleClusterInfoNV", BITS_LAST),
    ("VkClusterAccelerationStructureBuildTriangleClusterTemplateInfoNV", BITS_LAST),
    ("VkClusterAccelerationStructureInstantiateClusterInfoNV", BITS_LAST),
    ("VkDecompressMemoryInfoEXT", FLAGS_64),
    ("VkMemoryBarrierAccessFlags3KHR", FLAGS_64),
];

/// Compares one structure: its size, its alignment, the offsets of its fields, its structure type.
///
/// The numbers are statics: as values within one function they take the compiler minutes.
macro_rules! same {
    ($checker:ident, $place:ident::$name:ident { s_type: s_type, $($own:ident: $other:ident,)* }) => {{
        fn structure_type() -> i32 {
            <$crate::$place::$name as Default>::default().s_type.as_raw()
        }
        $checker.structure_type(<lavascope_abi::$name as $crate::Structure>::layout(), structure_type());
        same_fields!($checker, $place::$name { s_type: s_type, $($own: $other,)* });
    }};
    ($checker:ident, $place:ident::$name:ident { $($own:ident: $other:ident,)* }) => {
        same_fields!($checker, $place::$name { $($own: $other,)* });
    };
}

macro_rules! same_fields {
    ($checker:ident, $place:ident::$name:ident { $($own:ident: $other:ident,)* }) => {{
        static FIELDS: &[(&str, usize, usize)] = &[$((
            stringify!($own),
            $crate::offset_of!(lavascope_abi::$name, $own),
            $crate::offset_of!($crate::$place::$name, $other),
        ),)*];
        static OURS: [usize; 2] = [size_of::<lavascope_abi::$name>(), align_of::<lavascope_abi::$name>()];
        static THEIRS: [usize; 2] = [size_of::<$crate::$place::$name>(), align_of::<$crate::$place::$name>()];
        $checker.structure(<lavascope_abi::$name as $crate::Structure>::layout(), OURS, THEIRS, FIELDS);
    }};
}

use vulkanalia_sys as vk;
use vulkanalia_sys::video;

#[rustfmt::skip]
#[path = "generated/vulkanalia.rs"]
mod list;

#[test]
fn layouts_are_those_of_vulkanalia() {
    let mut compared = Compared::default();
    list::compare_all(&mut compared);
    compared.finish();
}

/// The number of comparisons, and the differences.
#[derive(Default)]
struct Compared {
    structures: usize,
    offsets: usize,
    structure_types: usize,
    /// Structure or field, and the difference.
    differences: BTreeMap<String, String>,
}

impl Compared {
    fn structure(
        &mut self,
        layout: &lavascope_abi::desc::Layout,
        ours: [usize; 2],
        theirs: [usize; 2],
        fields: &[(&str, usize, usize)],
    ) {
        self.structures += 1;
        self.offsets += fields.len();
        if ours != theirs {
            self.differences.insert(layout.name.to_owned(), format!("size and alignment {ours:?}, theirs {theirs:?}"));
        }
        if ours != [layout.size as usize, layout.align as usize] {
            let text = format!("size and alignment {ours:?}, but {} and {} in our table", layout.size, layout.align);
            self.differences.insert(layout.name.to_owned(), text);
        }
        for (field, own, other) in fields.iter().filter(|it| it.1 != it.2) {
            self.differences.insert(format!("{}.{field}", layout.name), format!("at {own}, theirs at {other}"));
        }
    }

    fn structure_type(&mut self, layout: &lavascope_abi::desc::Layout, theirs: i32) {
        self.structure_types += 1;
        if layout.s_type() != Some(theirs) {
            let text = format!("structure type {:?}, theirs {theirs}", layout.s_type());
            self.differences.insert(format!("{}.sType", layout.name), text);
        }
    }

    fn finish(mut self) {
        let owner = |item: &String| item.split('.').next().unwrap_or(item).to_owned();
        let differ: BTreeSet<String> = self.differences.keys().map(owner).collect();
        self.differences.retain(|item, _| !OTHERWISE.iter().any(|it| it.0 == owner(item)));
        let unused: Vec<&str> = OTHERWISE.iter().map(|it| it.0).filter(|it| !differ.contains(*it)).collect();
        let lines: Vec<String> = self.differences.iter().map(|(item, text)| format!("{item}: {text}")).collect();
        assert!(lines.is_empty(), "vulkanalia says otherwise:\n{}", lines.join("\n"));
        assert!(unused.is_empty(), "exceptions that are no longer needed: {unused:?}");
        let Compared { structures, offsets, structure_types, .. } = self;
        println!("{structures} structures, {offsets} offsets, {structure_types} structure types");
        assert!(structures > 1200, "the list has too few structures: {structures}");
        assert!(offsets > 7000, "the list has too few fields: {offsets}");
        assert!(structure_types > 900, "the list has too few structure types: {structure_types}");
    }
}
