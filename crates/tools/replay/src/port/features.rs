//! Features that a device does not have: a trace may have asked for more than it uses.

use lavascope_abi as vk;
use lavascope_abi::desc::{Layout, Ty};
use lavascope_abi::{Ptr, Structure, structure_by_type};

use crate::call::functions::{Functions, driver};
use crate::port::instance::out;

/// The first members of every structure of a chain.
#[repr(C)]
struct ChainLink {
    s_type: i32,
    next: *mut ChainLink,
}

/// Takes out of the request what the device does not have; gives the names of it.
///
/// # Safety
///
/// `info` must lead to a valid structure with a valid chain, all of it writable and referred to by nobody else.
pub(crate) unsafe fn remove_unsupported(
    functions: &Functions,
    physical: vk::PhysicalDevice,
    info: *mut vk::DeviceCreateInfo,
) -> Vec<&'static str> {
    let mut gone = Vec::new();
    let mut here = vk::PhysicalDeviceFeatures::zeroed();
    driver!(functions, GetPhysicalDeviceFeatures, FnGetPhysicalDeviceFeatures(physical, out(&mut here)));
    // SAFETY: the structure and its chain are valid, by the contract of this function: each link begins with a `ChainLink`,
    // and has the layout of its type. `here` has the layout of the features that it is compared with.
    unsafe {
        if !(*info).p_enabled_features.is_null() {
            let wanted = (*info).p_enabled_features.as_mut_ptr().cast();
            clear_unsupported(vk::PhysicalDeviceFeatures::layout(), wanted, (&raw const here).cast(), &mut gone);
        }
        let mut at = (*info.cast::<ChainLink>()).next;
        while !at.is_null() {
            if let Some(layout) = structure_by_type((*at).s_type).filter(|it| is_features(it)) {
                remove_unsupported_in(functions, physical, layout, at.cast(), &mut gone);
            }
            at = (*at).next;
        }
    }
    gone
}

fn is_features(layout: &Layout) -> bool {
    layout.name.starts_with("VkPhysicalDevice") && layout.name.contains("Features")
}

/// # Safety
///
/// `wanted` must lead to a structure of this layout, writable and referred to by nobody else.
unsafe fn remove_unsupported_in(
    functions: &Functions,
    physical: vk::PhysicalDevice,
    layout: &'static Layout,
    wanted: *mut u8,
    gone: &mut Vec<&'static str>,
) {
    let is_all = layout.name == "VkPhysicalDeviceFeatures2";
    let mut own = vec![0u64; (layout.size as usize).div_ceil(8)];
    let mut all = vk::PhysicalDeviceFeatures2::zeroed();
    if !is_all {
        own[0] = layout.s_type().unwrap_or(0) as u32 as u64;
        all.p_next = Ptr::new(own.as_mut_ptr().expose_provenance() as u64);
    }
    driver!(functions, GetPhysicalDeviceFeatures2, FnGetPhysicalDeviceFeatures2(physical, out(&mut all)));
    let here = if is_all { (&raw const all).cast() } else { own.as_ptr().cast() };
    // SAFETY: `wanted` has this layout, by the contract of this function; `here` leads to words of this frame that are
    // as large and were zero, or to `all`, which has it.
    unsafe { clear_unsupported(layout, wanted, here, gone) };
}

/// # Safety
///
/// Both must lead to structures of this layout, aligned as those; the first must be writable and referred to by nobody
/// else.
unsafe fn clear_unsupported(layout: &'static Layout, wanted: *mut u8, here: *const u8, gone: &mut Vec<&'static str>) {
    for field in layout.fields {
        let at = field.at as usize;
        match field.ty {
            Ty::Bool32 => {
                // SAFETY: the layout has a number of four bytes at this place, and both have the layout, by the
                // contract of this function.
                unsafe {
                    let wanted = wanted.add(at).cast::<u32>();
                    if wanted.read() != 0 && here.add(at).cast::<u32>().read() == 0 {
                        wanted.write(0);
                        gone.push(field.name);
                    }
                }
            }
            // SAFETY: the layout has this structure at this place, and both have the layout, by the contract of this
            // function.
            Ty::Struct(inner) => unsafe { clear_unsupported(inner, wanted.add(at), here.add(at), gone) },
            _ => {}
        }
    }
}
