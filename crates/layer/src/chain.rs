//! Finding the next layer in the chain of a create call, and moving the chain on to it.

use lavascope_abi::{FnPtr, Opaque, Ptr};

use crate::interface::{DEVICE_LINK, LINK_INFO, LOADER_DATA, Link, Next, SetLoaderData};

/// The next layer's functions, taken out of the chain, which then leads to the layer after it.
///
/// # Safety
///
/// `p_next` must be the chain of a create info that the loader handed to this layer.
pub(crate) unsafe fn take_next(p_next: Ptr<Opaque>, s_type: i32) -> Option<&'static Next> {
    let mut link = p_next.cast::<Link>();
    while !link.is_null() {
        // SAFETY: every structure of a chain begins with its type and its own chain; the loader's own structures,
        // which alone are looked into further, are writable and live as long as the instance or device.
        let it = unsafe { &mut *link.as_mut_ptr() };
        if it.s_type == s_type && it.function == LINK_INFO {
            // SAFETY: a link of this kind leads to the rest of the layers, or is null by mistake of the loader.
            let next = unsafe { it.next.as_ptr().as_ref() }?;
            it.next = next.p_next;
            return Some(next);
        }
        link = it.p_next;
    }
    None
}

/// How the loader is told of dispatchable objects of ours.
///
/// # Safety
///
/// `p_next` must be the chain of a `vkCreateDevice` that the loader handed to this layer.
pub(crate) unsafe fn loader_data(p_next: Ptr<Opaque>) -> Option<SetLoaderData> {
    let mut link = p_next.cast::<Link>();
    while !link.is_null() {
        // SAFETY: as above.
        let it = unsafe { &*link.as_ptr() };
        if it.s_type == DEVICE_LINK && it.function == LOADER_DATA {
            // SAFETY: a link of this kind has such a function, or null.
            return unsafe { std::mem::transmute::<FnPtr, Option<SetLoaderData>>(FnPtr(it.next.0)) };
        }
        link = it.p_next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::INSTANCE_LINK;

    fn next(p_next: Ptr<Next>) -> Next {
        Next { p_next, get_instance_proc_addr: None, get_other_proc_addr: None }
    }

    #[test]
    fn the_chain_moves_on() {
        let last: &'static Next = Box::leak(Box::new(next(Ptr::NULL)));
        let first: &'static Next = Box::leak(Box::new(next(Ptr::to(last))));
        let link = Link { s_type: INSTANCE_LINK, p_next: Ptr::NULL, function: LINK_INFO, next: Ptr::to(first) };
        let other = Link { s_type: INSTANCE_LINK, p_next: Ptr::to(&link), function: 1, next: Ptr::new(0xbad) };
        let chain = Ptr::to(&other).cast();
        // SAFETY: the chain above is what a loader makes.
        unsafe {
            assert!(take_next(chain, DEVICE_LINK).is_none());
            assert!(take_next(chain, INSTANCE_LINK).is_some_and(|it| std::ptr::eq(it, first)));
            assert!(take_next(chain, INSTANCE_LINK).is_some_and(|it| std::ptr::eq(it, last)));
            assert!(take_next(chain, INSTANCE_LINK).is_none());
        }
    }
}
