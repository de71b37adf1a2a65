//! Which layers and extensions there are, as far as this layer is asked.

use std::ffi::CStr;

use lavascope_abi::*;

use crate::loader::dispatch::dispatch_key;
use crate::loader::interface::{FAILED, LAYER_NAME};
use crate::loader::proc_addr::{CHAINS, c_str};

/// The instance extensions that the layer has of its own, with their versions. The manifests that `lavascope`
/// writes say the same.
pub const INSTANCE_EXTENSIONS: [(&CStr, u32); 5] = [
    (c"VK_EXT_debug_report", 10),
    (c"VK_EXT_debug_utils", 2),
    (c"VK_EXT_layer_settings", 2),
    (c"VK_EXT_validation_features", 6),
    (c"VK_EXT_validation_flags", 3),
];

pub(crate) unsafe extern "system" fn instance_layers(p_count: Ptr<u32>, p_properties: Ptr<LayerProperties>) -> Result {
    let mut layer_properties = LayerProperties::zeroed();
    layer_properties.spec_version = 1 << 22 | 4 << 12 | HEADER_VERSION;
    layer_properties.implementation_version = 1;
    copy_text(LAYER_NAME, &mut layer_properties.layer_name);
    copy_text(c"Lavascope: what a Vulkan program does and where it is wrong", &mut layer_properties.description);
    // SAFETY: VUID-vkEnumerateInstanceLayerProperties-pPropertyCount-parameter and -pProperties-parameter.
    unsafe { write_enumeration(&[layer_properties], p_count, p_properties) }
}

pub(crate) unsafe extern "system" fn device_layers(
    _physical_device: PhysicalDevice,
    p_count: Ptr<u32>,
    p_properties: Ptr<LayerProperties>,
) -> Result {
    // SAFETY: VUID-vkEnumerateDeviceLayerProperties-pPropertyCount-parameter and -pProperties-parameter, which say the
    // same as those of `vkEnumerateInstanceLayerProperties`.
    unsafe { instance_layers(p_count, p_properties) }
}

/// Whether this layer is asked for. Under the Khronos name the question is left to the loader, which has the
/// manifest: the real Khronos layer may be in the same chain.
fn is_ours(name: Option<&CStr>) -> bool {
    name.is_some_and(|it| it == LAYER_NAME)
}

pub(crate) unsafe extern "system" fn instance_extensions(
    p_layer_name: Ptr<u8>,
    p_count: Ptr<u32>,
    p_properties: Ptr<ExtensionProperties>,
) -> Result {
    // SAFETY: VUID-vkEnumerateInstanceExtensionProperties-pLayerName-parameter: null, or a null-terminated name that
    // stays until the call returns.
    if !is_ours(unsafe { c_str(p_layer_name) }) {
        return Result::ERROR_LAYER_NOT_PRESENT;
    }
    let extensions = INSTANCE_EXTENSIONS.map(|(name, version)| {
        let mut extension_properties = ExtensionProperties::zeroed();
        extension_properties.spec_version = version;
        copy_text(name, &mut extension_properties.extension_name);
        extension_properties
    });
    // SAFETY: VUID-vkEnumerateInstanceExtensionProperties-pPropertyCount-parameter and -pProperties-parameter.
    unsafe { write_enumeration(&extensions, p_count, p_properties) }
}

pub(crate) unsafe extern "system" fn device_extensions<const CHAIN: usize>(
    physical_device: PhysicalDevice,
    p_layer_name: Ptr<u8>,
    p_count: Ptr<u32>,
    p_properties: Ptr<ExtensionProperties>,
) -> Result {
    // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-pLayerName-parameter: null, or a null-terminated name that
    // stays until the call returns.
    if is_ours(unsafe { c_str(p_layer_name) }) {
        // The layer has no device extensions.
        // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-pPropertyCount-parameter and -pProperties-parameter.
        return unsafe { write_enumeration(&[], p_count, p_properties) };
    }
    // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-physicalDevice-parameter: a physical device that is alive, and
    // so is its instance, whose key it shares. Both stay so until the call returns.
    let instance = unsafe { CHAINS[CHAIN].instances.get(dispatch_key(physical_device.0)) };
    match instance.and_then(|it| it.table.enumerate_device_extension_properties) {
        // SAFETY: the next function of the chain for this command, with what the application passed to it.
        Some(next) => unsafe { next(physical_device, p_layer_name, p_count, p_properties) },
        None => FAILED,
    }
}

/// The two-call answer: the count, or as many as fit.
///
/// # Safety
///
/// `p_count` must be null or lead to a count that may be written, and `p_properties` must be null or lead to room for
/// as many elements as the count says. Nobody else may use either meanwhile.
pub(crate) unsafe fn write_enumeration<T: Copy>(have: &[T], p_count: Ptr<u32>, p_properties: Ptr<T>) -> Result {
    // SAFETY: the contract of this function: the count is writable, and ours alone. Null is an application's mistake.
    let Some(count) = (unsafe { p_count.as_mut_ptr().as_mut() }) else { return FAILED };
    if p_properties.is_null() {
        *count = have.len() as u32;
        return Result::SUCCESS;
    }
    let copied = have.len().min(*count as usize);
    // SAFETY: the contract of this function: there is room for `*count` elements, and `given` is at most that. It is
    // the application's memory, which does not overlap `have`.
    unsafe { std::ptr::copy_nonoverlapping(have.as_ptr(), p_properties.as_mut_ptr(), copied) };
    *count = copied as u32;
    if copied < have.len() { Result::INCOMPLETE } else { Result::SUCCESS }
}

fn copy_text(from: &CStr, to: &mut [u8]) {
    let bytes = from.to_bytes();
    to[..bytes.len()].copy_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumeration_follows_the_two_call_idiom() {
        let (mut counts, mut layer) = ([9_u32, 1, 0], LayerProperties::zeroed());
        let first = (&raw mut counts).expose_provenance() as u64;
        let p_layer = Ptr::new((&raw mut layer).expose_provenance() as u64);
        // SAFETY: the pointers lead to the two variables above.
        let results = unsafe {
            [
                instance_layers(Ptr::new(first), Ptr::NULL),
                instance_layers(Ptr::new(first + 4), p_layer),
                instance_layers(Ptr::new(first + 8), p_layer),
            ]
        };
        assert_eq!(results, [Result::SUCCESS, Result::SUCCESS, Result::INCOMPLETE]);
        assert_eq!(counts, [1, 1, 0]);
        assert_eq!(CStr::from_bytes_until_nul(&layer.layer_name), Ok(LAYER_NAME));
    }

    #[test]
    fn the_layer_has_the_extensions_through_which_it_is_set() {
        let mut count = 0_u32;
        let p_count = Ptr::new((&raw mut count).expose_provenance() as u64);
        let own = Ptr::new(LAYER_NAME.as_ptr().expose_provenance() as u64);
        // SAFETY: the pointers lead to the variable and the name above.
        unsafe {
            assert_eq!(instance_extensions(own, p_count, Ptr::NULL), Result::SUCCESS);
            assert_eq!(instance_extensions(Ptr::NULL, p_count, Ptr::NULL), Result::ERROR_LAYER_NOT_PRESENT);
        }
        assert_eq!(count, 5);
    }
}
