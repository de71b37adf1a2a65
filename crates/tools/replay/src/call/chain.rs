//! Chains of structures in C memory: what does not belong here is taken out.

use lavascope_abi::Structure;

/// The first members of every structure of a chain.
#[repr(C)]
struct ChainLink {
    s_type: i32,
    next: *mut ChainLink,
}

/// Takes structures out of the chain of `head`, which is a structure that has one.
///
/// # Safety
///
/// `head` must lead to a structure that begins with its type and its chain. Each link of the chain must be null or lead
/// to such a structure, writable and not referred to by anybody else during the call, and the chain must end.
pub(crate) unsafe fn retain<T: Structure>(head: *mut T, keep: impl Fn(i32) -> bool) {
    let mut at = head.cast::<ChainLink>();
    // SAFETY: by the contract of this function, `at` leads to a structure that begins with a `ChainLink`, and so does each
    // link that is not null.
    unsafe {
        while !(*at).next.is_null() {
            let next = (*at).next;
            if keep((*next).s_type) {
                at = next;
            } else {
                (*at).next = (*next).next;
            }
        }
    }
}

/// Finds a structure in the chain of `head`.
///
/// # Safety
///
/// As [`retain`].
pub(crate) unsafe fn find<T: Structure, U: Structure>(head: *mut T) -> Option<*mut U> {
    let wanted = U::layout().s_type()?;
    let mut at = head.cast::<ChainLink>();
    // SAFETY: by the contract of `retain`, `at` leads to a structure that begins with a `ChainLink`, and so does each link
    // that is not null.
    unsafe {
        while !(*at).next.is_null() {
            at = (*at).next;
            if (*at).s_type == wanted {
                return Some(at.cast());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use lavascope_abi as vk;
    use lavascope_abi::Ptr;

    use super::*;

    #[test]
    fn a_structure_is_taken_out_and_the_rest_stays() {
        let last = vk::PhysicalDeviceVulkan12Features::zeroed();
        let middle = vk::PhysicalDeviceVulkan11Features {
            p_next: Ptr::to(&last).cast(),
            ..vk::PhysicalDeviceVulkan11Features::zeroed()
        };
        let mut head = vk::DeviceCreateInfo { p_next: Ptr::to(&middle).cast(), ..vk::DeviceCreateInfo::zeroed() };
        let out = vk::PhysicalDeviceVulkan11Features::layout().s_type().expect("it has one");
        // SAFETY: three structures of this stack frame, the last of which ends the chain.
        unsafe {
            retain(&raw mut head, |it| it != out);
        }
        assert_eq!(head.p_next, Ptr::to(&last).cast());
        // SAFETY: structures of this stack frame, the last of which ends the chain.
        unsafe {
            retain(&raw mut head, |_| false);
        }
        assert!(head.p_next.is_null());
        // SAFETY: structures of this stack frame, the last of which ends the chain.
        unsafe {
            retain(&raw mut head, |_| true);
        }
    }
}
