//! Answering a command from its description alone: handles are handed out, enumerations are empty, structures zero.

use lavascope_abi::desc::{Blob, Direction, Field, Layout, Len, Place, Pointer, Target, Ty};
use lavascope_abi::{Command, HandleType, Result, Structure, structure_by_type};

use crate::objects::next_handle;

/// Writes every output of a call, and says how it went: what could have been deferred was done at once.
///
/// # Safety
///
/// `params` must be valid parameters of `command`.
pub(crate) unsafe fn answer<T: Structure>(command: Command, params: &T) -> Result {
    let layout = command.desc().parameters;
    let base = std::ptr::from_ref(params).expose_provenance() as u64;
    let mut result = Result::SUCCESS;
    for field in layout.fields {
        match &field.ty {
            // SAFETY: the caller says so.
            Ty::Pointer(pointer) => unsafe { output(layout, base, field, pointer) },
            Ty::Handle(HandleType::DeferredOperationKHR) if field.name == "deferredOperation" => {
                // SAFETY: the handle lies in the parameters.
                let operation = unsafe { read(base + u64::from(field.at), 8) };
                if operation != 0 {
                    result = Result::OPERATION_NOT_DEFERRED_KHR;
                }
            }
            _ => {}
        }
    }
    result
}

/// # Safety
///
/// `base` must be the address of valid parameters with this layout, and `field` one of them.
unsafe fn output(layout: &Layout, base: u64, field: &Field, pointer: &Pointer) {
    // SAFETY: the pointer lies in the parameters.
    let to = unsafe { read(base + u64::from(field.at), 8) };
    if to == 0 {
        return;
    }
    if pointer.direction == Direction::In {
        // SAFETY: an input that is not null is valid.
        unsafe { chained_outputs(base, to, pointer) };
        return;
    }
    if is_count(layout, field) {
        let width = element_size(&pointer.to);
        // SAFETY: an output that is not null is valid.
        unsafe { zero(to, width) };
        return;
    }
    // SAFETY: lengths lie in the parameters or behind one of their pointers.
    let count = unsafe { length(base, pointer) };
    for at in 0..count {
        let element = to + at * element_size(&pointer.to);
        // SAFETY: valid for `count` elements by the command's valid usage.
        unsafe { element_output(element, pointer) };
    }
}

/// Inputs may have structures in their chains that point to outputs, such as the feedback of a pipeline's creation.
///
/// # Safety
///
/// As for [`output`], where `to` is what `pointer` leads to.
unsafe fn chained_outputs(base: u64, to: u64, pointer: &Pointer) {
    let Target::Struct(layout) = &pointer.to else { return };
    if layout.s_type().is_none() {
        return;
    }
    // SAFETY: lengths lie in the parameters or behind one of their pointers.
    for at in 0..unsafe { length(base, pointer) } {
        // SAFETY: a structure that tells its type has its link at this place.
        let mut next = unsafe { read(to + at * u64::from(layout.size) + 8, 8) };
        while next != 0 {
            // SAFETY: the chain of a valid structure.
            let known = structure_by_type(unsafe { read(next, 4) } as i32);
            for (layout, field) in known.iter().flat_map(|it| it.fields.iter().map(move |field| (it, field))) {
                if let Ty::Pointer(pointer) = &field.ty
                    && pointer.direction != Direction::In
                {
                    // SAFETY: a structure of that type.
                    unsafe { output(layout, next, field, pointer) };
                }
            }
            // SAFETY: as above.
            next = unsafe { read(next + 8, 8) };
        }
    }
}

/// # Safety
///
/// `to` must be valid for one element of `pointer`.
unsafe fn element_output(to: u64, pointer: &Pointer) {
    match &pointer.to {
        Target::Handle(ty) if !ty.is_dispatchable() => {
            let place = std::ptr::with_exposed_provenance_mut::<u64>(to as usize);
            // SAFETY: the caller says so.
            unsafe { place.write(next_handle(*ty)) };
        }
        // SAFETY: the caller says so.
        Target::Struct(layout) => unsafe { clear(to, layout) },
        // SAFETY: a structure that tells its type begins with it.
        Target::AnyStruct => unsafe { clear_chain(to) },
        // SAFETY: the caller says so.
        it => unsafe { zero(to, element_size(it)) },
    }
}

/// Whether another parameter is as long as this one says: then the answer is none.
fn is_count(layout: &Layout, field: &Field) -> bool {
    layout.fields.iter().any(|it| match &it.ty {
        Ty::Pointer(Pointer { len: Len::At(place) | Len::Scaled { of: place, .. }, .. }) => place.through == field.at,
        _ => false,
    })
}

/// # Safety
///
/// As for [`output`].
unsafe fn length(base: u64, pointer: &Pointer) -> u64 {
    match pointer.len {
        Len::Fixed(count) => u64::from(count),
        // SAFETY: the caller says so.
        Len::At(place) => unsafe { at(base, place) },
        Len::Scaled { of, add, divide } => {
            // SAFETY: the caller says so.
            (unsafe { at(base, of) } + u64::from(add)) / u64::from(divide)
        }
        Len::Terminated | Len::Rule(_) => 0,
    }
}

/// # Safety
///
/// `base` must be the address of a structure that has `place`, and pointers on the way valid or null.
unsafe fn at(base: u64, place: Place) -> u64 {
    if place.through == Place::HERE {
        // SAFETY: the caller says so.
        return unsafe { read(base + u64::from(place.at), place.width) };
    }
    // SAFETY: the caller says so.
    let owner = unsafe { read(base + u64::from(place.through), 8) };
    // SAFETY: the caller says so; null leads nowhere.
    if owner == 0 { 0 } else { unsafe { read(owner + u64::from(place.at), place.width) } }
}

fn element_size(target: &Target) -> u64 {
    match target {
        Target::Values(ty) => u64::from(ty.size()),
        Target::Struct(layout) => u64::from(layout.size),
        // As large as the properties say.
        Target::Blob(Blob::OpaqueCaptureDescriptor) => 8,
        Target::Handle(_) | Target::Pointer(_) | Target::Opaque => 8,
        Target::Text | Target::Blob(_) | Target::Template | Target::AnyStruct => 1,
    }
}

/// Zeros an output structure and what is chained to it; types, chains and pointers stay the application's.
///
/// # Safety
///
/// `to` must be a valid output structure of this layout.
pub(crate) unsafe fn clear(to: u64, layout: &Layout) {
    for field in layout.fields {
        let is_kept = matches!(field.ty, Ty::Chain | Ty::Pointer(_) | Ty::Opaque) || field.name == "sType";
        if !is_kept {
            let size = u64::from(field.ty.size()) * u64::from(field.count);
            // SAFETY: the field lies in the structure.
            unsafe { zero(to + u64::from(field.at), size) };
        }
        if matches!(field.ty, Ty::Chain) {
            // SAFETY: the chain of a valid structure.
            unsafe { clear_chain(read(to + u64::from(field.at), 8)) };
        }
    }
}

/// # Safety
///
/// `first` must be null or a structure that tells its type.
unsafe fn clear_chain(first: u64) {
    if first == 0 {
        return;
    }
    // SAFETY: the caller says that it begins with its type.
    let s_type = unsafe { read(first, 4) } as i32;
    match structure_by_type(s_type) {
        // SAFETY: the structure has the layout of its type.
        Some(layout) => unsafe { clear(first, layout) },
        // SAFETY: unknown, but still a link.
        None => unsafe { clear_chain(read(first + 8, 8)) },
    }
}

/// # Safety
///
/// `at` must be valid for `width` bytes.
pub(crate) unsafe fn read(at: u64, width: u8) -> u64 {
    let mut bytes = [0; 8];
    let from = std::ptr::with_exposed_provenance::<u8>(at as usize);
    // SAFETY: the caller says so, and no width is larger than a word.
    unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), usize::from(width.min(8))) };
    u64::from_le_bytes(bytes)
}

/// # Safety
///
/// `at` must be valid for `size` bytes to write.
unsafe fn zero(at: u64, size: u64) {
    // SAFETY: the caller says so.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(at as usize).write_bytes(0, size as usize) };
}
