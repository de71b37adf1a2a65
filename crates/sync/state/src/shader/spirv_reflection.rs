//! Shader reflection from SPIR-V.

use std::ops::Range;
use std::sync::Mutex;

use lavascope_abi::ShaderStageFlagBits;
use lavascope_spirv::{
    AccessBytes, AccessKind, AccessMode, AccessTarget, DescriptorElement as Picked, DescriptorKind, InterfaceKind,
    InterfaceVariable, Module, Reflection, Specialization, ValueSource,
};
use lavascope_sync_ir::Certainty;

use crate::shader::interface::{
    AddressUse, DescriptorArrayIndex, DescriptorUse, Reflect, ShaderCode, ShaderInterface, TileReads,
};

/// Built-in outputs that select a layer: `Layer` and `ViewportIndex`.
const LAYERS: [u32; 2] = [9, 10];

/// Shader reflection with a cache of the last shaders, because related pipelines share them.
#[derive(Default)]
pub struct SpirvReflection {
    cache: Mutex<Vec<CachedReflection>>,
    is_cache_disabled: bool,
}

impl SpirvReflection {
    /// Reflection without a cache.
    pub fn uncached() -> SpirvReflection {
        SpirvReflection { is_cache_disabled: true, ..SpirvReflection::default() }
    }
}

struct CachedReflection {
    key: ReflectionKey,
    interface: Option<ShaderInterface>,
}

#[derive(Clone, PartialEq, Eq)]
struct ReflectionKey {
    words: Vec<u32>,
    entry_point: String,
    model: u32,
    constants: Vec<(u32, Vec<u8>)>,
}

/// The number of cached shaders.
const CACHE_MAX: usize = 16;

impl Reflect for SpirvReflection {
    fn reflect(&self, code: &ShaderCode<'_>) -> Option<ShaderInterface> {
        let key = ReflectionKey {
            words: code.words.to_vec(),
            entry_point: code.entry_point.to_owned(),
            model: model_of(code.stage)?,
            constants: code.constants.iter().map(|(id, bytes)| (*id, bytes.to_vec())).collect(),
        };
        if self.is_cache_disabled {
            return read(&key);
        }
        let mut last = self.cache.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(known) = last.iter().find(|it| it.key == key) {
            return known.interface.clone();
        }
        let interface = read(&key);
        if last.len() == CACHE_MAX {
            last.remove(0);
        }
        last.push(CachedReflection { key, interface: interface.clone() });
        interface
    }
}

fn read(key: &ReflectionKey) -> Option<ShaderInterface> {
    let module = Module::parse(&key.words).ok()?;
    let is_wanted = |it: &lavascope_spirv::EntryPoint| it.name == key.entry_point && it.model == key.model;
    let entry = module.entries().iter().position(is_wanted)?;
    let constants = Specialization::new(key.constants.iter().cloned());
    let reflection = lavascope_spirv::reflect(&module, entry, &constants).ok()?;
    Some(interface_of(&reflection))
}

fn interface_of(reflection: &Reflection) -> ShaderInterface {
    let locations = |kind: InterfaceKind, is_used: fn(&InterfaceVariable) -> bool| {
        let used = reflection.interface.iter().filter(|it| it.kind == kind && is_used(it));
        used.fold(0, |all, it| all | bits(it))
    };
    let is_layer = |it: &InterfaceVariable| it.is_written && it.built_in.is_some_and(|it| LAYERS.contains(&it));
    ShaderInterface {
        descriptors: descriptors_of(reflection),
        addresses: addresses_of(reflection),
        workgroup_size: reflection.workgroup_size,
        has_early_tests: reflection.tests.early,
        outputs: locations(InterfaceKind::Output, |it| it.is_written),
        inputs: locations(InterfaceKind::Input, |it| it.is_read),
        writes_layer: reflection.interface.iter().any(is_layer),
        tile: TileReads {
            colors: reflection.color_reads.iter().filter(|it| **it < u64::BITS).fold(0, |all, it| all | 1 << it),
            depth: reflection.reads_depth,
            stencil: reflection.reads_stencil,
            unordered: reflection.unordered_reads,
        },
        is_partial: !reflection.is_complete,
    }
}

/// The locations of a variable, one for each column of each array element.
fn bits(interface_variable: &InterfaceVariable) -> u64 {
    let Some(first) = interface_variable.location.filter(|it| *it < u64::BITS) else { return 0 };
    let count = interface_variable.columns.max(1).saturating_mul(interface_variable.count.unwrap_or(1).max(1));
    let end = first.saturating_add(count).min(u64::BITS);
    (first..end).fold(0, |all, it| all | 1 << it)
}

fn descriptors_of(reflection: &Reflection) -> Vec<DescriptorUse> {
    let has_order = reflection.interlock.is_some_and(|it| it.is_ordered);
    let mut found: Vec<DescriptorUse> = Vec::new();
    for access in reflection.accesses.iter().filter(|it| touches_memory(it)) {
        let AccessTarget::Descriptor { descriptor, element, bytes } = &access.target else { continue };
        let Some(descriptor) = reflection.descriptors.get(*descriptor) else { continue };
        let new = DescriptorUse {
            element: match element {
                Picked::Constant(element) => DescriptorArrayIndex::One(*element),
                Picked::Dynamic(Some(from)) => DescriptorArrayIndex::Read(ValueSource::clone(from)),
                Picked::Dynamic(None) => DescriptorArrayIndex::Unknown,
            },
            reads: access.mode.reads(),
            writes: access.mode.writes(),
            bytes: bytes.map(range),
            per_invocation: access.per_invocation.clone(),
            certainty: certainty_of(access, bytes.is_some_and(|it| it.is_exact), descriptor.kind),
            is_ordered: has_order && descriptor.is_coherent,
            is_atomic: access.kind == AccessKind::Atomic,
            ..DescriptorUse::new(descriptor.set, descriptor.binding)
        };
        if !found.iter_mut().any(|it| merge_uses(it, &new)) {
            found.push(new);
        }
    }
    found
}

fn addresses_of(reflection: &Reflection) -> Vec<AddressUse> {
    let mut found: Vec<AddressUse> = Vec::new();
    for access in reflection.accesses.iter().filter(|it| touches_memory(it)) {
        let AccessTarget::Address { from, bytes } = &access.target else { continue };
        let new = AddressUse {
            from: from.clone(),
            reads: access.mode.reads(),
            writes: access.mode.writes(),
            is_structure: access.kind == AccessKind::Trace,
            bytes: range(*bytes),
            per_invocation: access.per_invocation.clone(),
            certainty: certainty_of(access, bytes.is_exact, DescriptorKind::StorageBuffer),
            is_atomic: access.kind == AccessKind::Atomic,
        };
        if !found.contains(&new) {
            found.push(new);
        }
    }
    found
}

fn touches_memory(access: &lavascope_spirv::ShaderAccess) -> bool {
    access.mode != AccessMode::None && access.kind != AccessKind::Query
}

fn range(bytes: AccessBytes) -> Range<u64> {
    bytes.start..bytes.end.unwrap_or(u64::MAX)
}

/// Merges a use into another of the same descriptor, if they are equal or their bytes are adjacent.
fn merge_uses(own: &mut DescriptorUse, other: &DescriptorUse) -> bool {
    let is_alike = |own: &DescriptorUse| DescriptorUse { bytes: other.bytes.clone(), ..own.clone() } == *other;
    match (&own.bytes, &other.bytes) {
        (Some(one), Some(two)) if own.per_invocation.is_none() && one.start <= two.end && two.start <= one.end => {
            let both = one.start.min(two.start)..one.end.max(two.end);
            let is_joined = is_alike(own);
            if is_joined {
                own.bytes = Some(both);
            }
            is_joined
        }
        _ => own == other,
    }
}

/// Only the device knows which texels of an image or which parts of an acceleration structure are read. An input
/// attachment is read at the positions of fragments.
fn certainty_of(access: &lavascope_spirv::ShaderAccess, is_exact: bool, kind: DescriptorKind) -> Certainty {
    let is_all = is_exact || kind == DescriptorKind::InputAttachment;
    match (access.is_certain, is_all) {
        (false, _) => Certainty::Maybe,
        (true, false) => Certainty::Somewhere,
        (true, true) => Certainty::Certain,
    }
}

/// The `ExecutionModel` of a stage.
fn model_of(stage: ShaderStageFlagBits) -> Option<u32> {
    use ShaderStageFlagBits as Stage;
    let models = [
        (Stage::VERTEX, 0),
        (Stage::TESSELLATION_CONTROL, 1),
        (Stage::TESSELLATION_EVALUATION, 2),
        (Stage::GEOMETRY, 3),
        (Stage::FRAGMENT, 4),
        (Stage::COMPUTE, 5),
        (Stage::RAYGEN_KHR, 5313),
        (Stage::INTERSECTION_KHR, 5314),
        (Stage::ANY_HIT_KHR, 5315),
        (Stage::CLOSEST_HIT_KHR, 5316),
        (Stage::MISS_KHR, 5317),
        (Stage::CALLABLE_KHR, 5318),
        (Stage::TASK_EXT, 5364),
        (Stage::MESH_EXT, 5365),
    ];
    models.iter().find(|it| it.0 == stage).map(|it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_file(name: &str, stage: ShaderStageFlagBits, constants: Vec<(u32, &[u8])>) -> ShaderInterface {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../gpu/spirv/tests/shaders").join(name);
        let bytes = std::fs::read(path).expect("a shader");
        let words: Vec<u32> = bytes.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect();
        let code = ShaderCode { words: &words, entry_point: "main", stage, constants };
        let reflection = SpirvReflection::default();
        let first = reflection.reflect(&code).expect("an interface");
        assert_eq!(reflection.reflect(&code), Some(first.clone()));
        first
    }

    fn of_binding(interface: &ShaderInterface, binding: u32) -> Vec<(bool, bool, Option<std::ops::Range<u64>>)> {
        let uses = interface.descriptors.iter().filter(|it| it.set == 0 && it.binding == binding);
        uses.map(|it| (it.reads, it.writes, it.bytes.clone())).collect()
    }

    #[test]
    fn descriptors_are_read_written_or_left_alone() {
        let kinds = read_file("kinds.frag.spv", ShaderStageFlagBits::FRAGMENT, Vec::new());
        assert_eq!(of_binding(&kinds, 0), [(true, false, Some(0..16))]);
        assert_eq!(of_binding(&kinds, 1), [(true, true, Some(8..12))]);
        assert_eq!(of_binding(&kinds, 2), [(true, false, None)]);
        assert_eq!(of_binding(&kinds, 6), [(false, true, None)]);
        let certainty = |binding| kinds.descriptors.iter().find(|it| it.binding == binding).map(|it| it.certainty);
        assert_eq!([0, 1, 10].map(certainty), [Some(Certainty::Certain); 3]);
        assert_eq!([2, 6].map(certainty), [Some(Certainty::Somewhere); 2]);
        // A sampler, a texture size query, an array length, and an unused variable.
        for binding in [4, 11, 12] {
            assert_eq!(of_binding(&kinds, binding), []);
        }
        assert!(kinds.descriptors.iter().all(|it| it.set == 0));
        assert_eq!((kinds.inputs, kinds.outputs, kinds.has_early_tests), (1, 1, false));
    }

    #[test]
    fn locations_and_early_tests_are_reported() {
        let vertex = read_file("inputs.vert.spv", ShaderStageFlagBits::VERTEX, Vec::new());
        assert_eq!(vertex.inputs, 0b1011_1111);
        let early = read_file("early.frag.spv", ShaderStageFlagBits::FRAGMENT, Vec::new());
        assert_eq!((early.has_early_tests, early.outputs), (true, 0b1010));
    }

    #[test]
    fn what_fragments_do_one_after_the_other_is_reported() {
        let ordered = read_file("ordered.frag.spv", ShaderStageFlagBits::FRAGMENT, Vec::new());
        assert!(ordered.descriptors.iter().any(|it| it.is_ordered), "{ordered:?}");
        let kinds = read_file("kinds.frag.spv", ShaderStageFlagBits::FRAGMENT, Vec::new());
        assert!(kinds.descriptors.iter().all(|it| !it.is_ordered));
    }

    #[test]
    fn specialization_decides_what_is_accessed() {
        let plain = read_file("special.comp.spv", ShaderStageFlagBits::COMPUTE, Vec::new());
        let special =
            read_file("special.comp.spv", ShaderStageFlagBits::COMPUTE, vec![(1, &[1, 0, 0, 0]), (2, &[2, 0, 0, 0])]);
        let writes = |it: &ShaderInterface, binding| it.descriptors.iter().any(|it| it.binding == binding && it.writes);
        assert_eq!([1, 2, 3].map(|it| writes(&plain, it)), [false, false, false]);
        assert_eq!([1, 2, 3].map(|it| writes(&special, it)), [true, false, true]);
    }

    #[test]
    fn what_is_no_shader_has_no_interface() {
        let stage = ShaderStageFlagBits::COMPUTE;
        let code = ShaderCode { words: &[0x0723_0203, 0, 0], entry_point: "main", stage, constants: Vec::new() };
        assert_eq!(SpirvReflection::default().reflect(&code), None);
    }
}
