//! Lists the names of the features that a device enables.

use lavascope_abi::desc::{Layout, Ty};
use lavascope_abi::{DeviceCreateInfo, PhysicalDeviceFeatures, Ptr, Structure, structure_by_type};
use lavascope_record::View;

/// The size of `VkBaseInStructure`: the type of the structure, and the pointer to the next one.
const CHAIN_HEAD: u64 = 16;

/// The features in `pEnabledFeatures`, and those in the structures of the `pNext` chain.
pub(crate) fn of(info: View<'_, DeviceCreateInfo>) -> Vec<String> {
    let bytes_of = |at: u64, layout: &Layout| info.values(Ptr::<u8>::new(at), layout.size.into());
    let old = PhysicalDeviceFeatures::layout();
    let mut all = switched_on(old, bytes_of(info.p_enabled_features.0, old));
    let mut at = info.p_next.0;
    // The record was checked, so the chain ends.
    while let Some((head, next)) = info.values(Ptr::<u8>::new(at), CHAIN_HEAD).split_at_checked(8) {
        let s_type = i32::from_le_bytes(std::array::from_fn(|it| head[it]));
        if let Some(layout) = structure_by_type(s_type).filter(|it| is_features(it.name)) {
            all.extend(switched_on(layout, bytes_of(at, layout)));
        }
        at = u64::from_le_bytes(std::array::from_fn(|it| next[it]));
    }
    all
}

/// Whether a structure is a `VkPhysicalDevice…Features`, with or without a vendor suffix.
fn is_features(name: &str) -> bool {
    name.starts_with("VkPhysicalDevice") && name.contains("Features")
}

fn switched_on(layout: &Layout, bytes: &[u8]) -> Vec<String> {
    let mut all = Vec::new();
    for field in layout.fields {
        let at = field.at as usize;
        match field.ty {
            Ty::Bool32 if bytes.get(at..at + 4).is_some_and(|it| it != [0; 4]) => all.push(field.name.to_owned()),
            Ty::Struct(inner) => all.extend(switched_on(inner, bytes.get(at..).unwrap_or_default())),
            _ => {}
        }
    }
    all
}
