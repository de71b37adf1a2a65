//! Finding the next layer in the chain of a create call, and moving the chain on to it.

use lavascope_abi::{FnPtr, Opaque, Ptr};

use crate::loader::interface::{
    LAYER_LINK_INFO, LOADER_DATA_CALLBACK, LOADER_DEVICE_CREATE_INFO, LayerCreateInfo, LayerLink, SetLoaderData,
};

/// The beginning of every structure of a chain. Others may be smaller than a [`LayerCreateInfo`], so no more of them is read.
#[repr(C)]
struct StructureHeader {
    s_type: i32,
    p_next: Ptr<Opaque>,
}

/// The next layer's functions, taken out of the chain, which then leads to the layer after it.
///
/// # Safety
///
/// `p_next` must be the chain of a create info that the loader handed to this layer, in a call that has not returned
/// yet.
pub(crate) unsafe fn take_next_link(p_next: Ptr<Opaque>, s_type: i32) -> Option<LayerLink> {
    // SAFETY: the contract of this function is that of `find_link`.
    let link = unsafe { find_link(p_next, s_type, LAYER_LINK_INFO) }?;
    // SAFETY: by the loader's layer interface a link of this kind leads to the rest of the layers, which the loader
    // keeps until the create call returns. Null, by a mistake of the loader, is none.
    let next = unsafe { (*link).layer_info.as_ptr().as_ref() }?;
    // SAFETY: the layer interface has every layer move the link on before it calls the next one, so the link is
    // writable. The loader makes it for one create call, and this thread makes that call.
    unsafe { (*link).layer_info = next.p_next };
    Some(*next)
}

/// Where a chain stands, so that a create call can be repeated: each layer moves it on.
pub(crate) struct ChainPosition {
    link: *mut LayerCreateInfo,
    layer_info: Ptr<LayerLink>,
}

impl ChainPosition {
    /// # Safety
    ///
    /// As for [`take_next_link`].
    pub(crate) unsafe fn of(p_next: Ptr<Opaque>, s_type: i32) -> Option<ChainPosition> {
        // SAFETY: the contract of this function is that of `find_link`, which gives a link of the chain.
        let link = unsafe { find_link(p_next, s_type, LAYER_LINK_INFO) }?;
        // SAFETY: `find_link` found it in the valid chain of the contract.
        Some(ChainPosition { link, layer_info: unsafe { (*link).layer_info } })
    }

    /// Moves the chain back.
    ///
    /// # Safety
    ///
    /// The create call of the chain must not have returned to the loader.
    pub(crate) unsafe fn restore(&self) {
        // SAFETY: the link is writable (`take_next_link`), and is there until the create call returns.
        unsafe { (*self.link).layer_info = self.layer_info };
    }
}

/// How the loader learns of dispatchable objects of ours.
///
/// # Safety
///
/// `p_next` must be the chain of a `vkCreateDevice` that the loader handed to this layer, which has not returned yet.
pub(crate) unsafe fn find_set_loader_data(p_next: Ptr<Opaque>) -> Option<SetLoaderData> {
    // SAFETY: the contract of this function is that of `find_link`.
    let link = unsafe { find_link(p_next, LOADER_DEVICE_CREATE_INFO, LOADER_DATA_CALLBACK) }?;
    // SAFETY: `find_link` gives a link of the chain, which is alive by the contract of this function.
    let function = unsafe { (*link).layer_info };
    // SAFETY: by the loader's layer interface a link of this kind has such a function in that place, or null, which is
    // none.
    unsafe { std::mem::transmute::<FnPtr, Option<SetLoaderData>>(FnPtr(function.0)) }
}

/// The first link of a chain with a type and a function.
///
/// # Safety
///
/// `p_next` must be the chain of a create info that the loader handed to this layer, in a call that has not returned
/// yet.
unsafe fn find_link(p_next: Ptr<Opaque>, s_type: i32, function: i32) -> Option<*mut LayerCreateInfo> {
    let mut at = p_next;
    while !at.is_null() {
        // SAFETY: VUID-VkInstanceCreateInfo-pNext-pNext and VUID-VkDeviceCreateInfo-pNext-pNext: every structure of a
        // chain begins with its type and its own chain, and lives until the create call returns.
        let header = unsafe { &*at.cast::<StructureHeader>().as_ptr() };
        let link = at.cast::<LayerCreateInfo>().as_mut_ptr();
        // SAFETY: applications do not chain structures of the loader's types, so that one of them is a link.
        if header.s_type == s_type && unsafe { (*link).function } == function {
            return Some(link);
        }
        at = header.p_next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loader::interface::{GetProcAddr, LOADER_INSTANCE_CREATE_INFO, out};

    unsafe extern "system" fn get(_: u64, _: Ptr<u8>) -> FnPtr {
        FnPtr::default()
    }

    #[test]
    fn the_chain_moves_on() {
        let last = LayerLink { p_next: Ptr::NULL, get_instance_proc_addr: None, get_other_proc_addr: None };
        let first = LayerLink {
            p_next: Ptr::to(&last),
            get_instance_proc_addr: Some(get as GetProcAddr),
            get_other_proc_addr: None,
        };
        let mut link = LayerCreateInfo {
            s_type: LOADER_INSTANCE_CREATE_INFO,
            p_next: Ptr::NULL,
            function: LAYER_LINK_INFO,
            layer_info: Ptr::to(&first),
        };
        let mut other = LayerCreateInfo {
            s_type: LOADER_INSTANCE_CREATE_INFO,
            p_next: out(&mut link),
            function: 1,
            layer_info: Ptr::new(0xbad),
        };
        // Smaller than a link, with another type.
        let header = StructureHeader { s_type: LOADER_INSTANCE_CREATE_INFO + 1000, p_next: out(&mut other).cast() };
        let chain = Ptr::to(&header).cast();
        // SAFETY: the chain above is what a loader makes.
        unsafe {
            assert!(take_next_link(chain, LOADER_DEVICE_CREATE_INFO).is_none());
            assert!(
                take_next_link(chain, LOADER_INSTANCE_CREATE_INFO)
                    .is_some_and(|it| it.get_instance_proc_addr.is_some())
            );
            assert!(
                take_next_link(chain, LOADER_INSTANCE_CREATE_INFO)
                    .is_some_and(|it| it.get_instance_proc_addr.is_none())
            );
            assert!(take_next_link(chain, LOADER_INSTANCE_CREATE_INFO).is_none());
        }
    }

    #[test]
    fn the_function_of_the_loader_is_found_behind_small_structures() {
        let mut link = LayerCreateInfo {
            s_type: LOADER_DEVICE_CREATE_INFO,
            p_next: Ptr::NULL,
            function: LOADER_DATA_CALLBACK,
            layer_info: Ptr::new(0x1000),
        };
        let header = StructureHeader { s_type: 1, p_next: out(&mut link).cast() };
        // SAFETY: the chain above is what a loader makes, and nobody calls the function.
        unsafe {
            assert!(find_set_loader_data(Ptr::to(&header).cast()).is_some_and(|it| it as usize == 0x1000));
            assert!(find_set_loader_data(Ptr::NULL).is_none());
        }
    }
}
