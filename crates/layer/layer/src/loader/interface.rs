//! The structures through which the loader and its layers talk to each other.
//!
//! They are not part of the registry. Spec: the loader's "Layer Interface", version 2.

use lavascope_abi::{Device, FnPtr, Opaque, Ptr, Result};

/// The version of the interface that we speak.
pub(crate) const INTERFACE_VERSION: u32 = 2;
/// `sType` of [`NegotiateLayerInterface`].
pub(crate) const LAYER_NEGOTIATE_INTERFACE_STRUCT: i32 = 1;
/// `sType` of a link in the chain of `vkCreateInstance`.
pub(crate) const LOADER_INSTANCE_CREATE_INFO: i32 = 47;
/// `sType` of a link in the chain of `vkCreateDevice`.
pub(crate) const LOADER_DEVICE_CREATE_INFO: i32 = 48;
/// The kind of link that names the next layer.
pub(crate) const LAYER_LINK_INFO: i32 = 0;
/// The kind of link that has [`SetLoaderData`].
pub(crate) const LOADER_DATA_CALLBACK: i32 = 1;

/// Makes a dispatchable object of a layer's own known to the loader, so that other layers can be called with it.
pub(crate) type SetLoaderData = unsafe extern "system" fn(Device, u64) -> Result;

pub(crate) type GetProcAddr = unsafe extern "system" fn(u64, Ptr<u8>) -> FnPtr;

/// What the loader asks of a layer first.
#[repr(C)]
pub struct NegotiateLayerInterface {
    pub(crate) s_type: i32,
    pub(crate) p_next: Ptr<Opaque>,
    pub(crate) version: u32,
    pub(crate) get_instance_proc_addr: Option<GetProcAddr>,
    pub(crate) get_device_proc_addr: Option<GetProcAddr>,
    pub(crate) get_physical_device_proc_addr: Option<GetProcAddr>,
}

/// A structure that the loader puts into the chains of `vkCreateInstance` and `vkCreateDevice`.
#[repr(C)]
pub(crate) struct LayerCreateInfo {
    pub(crate) s_type: i32,
    pub(crate) p_next: Ptr<LayerCreateInfo>,
    pub(crate) function: i32,
    /// For [`LAYER_LINK_INFO`], the rest of the layers; for [`LOADER_DATA_CALLBACK`] a function.
    pub(crate) layer_info: Ptr<LayerLink>,
}

/// The next layer, or the driver.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct LayerLink {
    pub(crate) p_next: Ptr<LayerLink>,
    pub(crate) get_instance_proc_addr: Option<GetProcAddr>,
    /// In a chain of `vkCreateInstance` the one for physical devices, in one of `vkCreateDevice` the device's.
    pub(crate) get_other_proc_addr: Option<GetProcAddr>,
}

/// `vkEnumerateInstanceLayerProperties` and its kin answer for a layer that is named by its manifest.
pub(crate) const LAYER_NAME: &std::ffi::CStr = c"VK_LAYER_LAVASCOPE_inspect";

/// A pointer through which a function writes one `T`. Whoever calls it looks at `target` again only when the function
/// has returned.
pub(crate) fn out<T>(target: &mut T) -> Ptr<T> {
    Ptr::new(std::ptr::from_mut(target).expose_provenance() as u64)
}

/// The same for all elements of a slice; null for none.
pub(crate) fn out_slice<T>(targets: &mut [T]) -> Ptr<T> {
    if targets.is_empty() { Ptr::NULL } else { Ptr::new(targets.as_mut_ptr().expose_provenance() as u64) }
}

/// The result of a call that could not be made.
pub(crate) const FAILED: Result = Result::ERROR_INITIALIZATION_FAILED;

/// A function asked for by name, or null.
///
/// # Safety
///
/// `get` must be a `vkGet*ProcAddr` of the chain of `handle`, which must be alive, or zero where the command may be
/// asked for without a handle.
pub(crate) unsafe fn next_proc_addr(get: GetProcAddr, handle: u64, name: &std::ffi::CStr) -> FnPtr {
    let name = Ptr::new(name.as_ptr().expose_provenance() as u64);
    // SAFETY: the contract of this function for `get` and `handle`; the name is null-terminated, as
    // VUID-vkGetInstanceProcAddr-pName-parameter and VUID-vkGetDeviceProcAddr-pName-parameter want it.
    unsafe { get(handle, name) }
}
