//! Answering a command from its description alone: handles are handed out, enumerations are empty, structures zero.

use lavascope_abi::desc::{Blob, Direction, Field, IntegerLocation, Layout, Len, Pointee, Pointer, Ty};
use lavascope_abi::{Command, HandleType, Result, Structure, structure_by_type};

use crate::calls::object_table::next_handle;

/// Writes every output of a call, and says how it went: what could have been deferred was done at once.
///
/// # Safety
///
/// `params` must be parameters of `command` that are valid by its valid usage: pointers are null or lead to as many
/// elements as their lengths say, and outputs may be written.
pub(crate) unsafe fn write_outputs<T: Structure>(command: Command, params: &T) -> Result {
    let layout = command.desc().parameters;
    let base = std::ptr::from_ref(params).expose_provenance() as u64;
    let mut result = Result::SUCCESS;
    for field in layout.fields {
        match &field.ty {
            // SAFETY: the field is one of these valid parameters, by the contract of this function.
            Ty::Pointer(pointer) => unsafe { output(layout, base, field, pointer) },
            Ty::Handle(HandleType::DeferredOperationKHR) if field.name == "deferredOperation" => {
                // SAFETY: the handle is one of the parameters, of eight bytes.
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
    // SAFETY: the field is a pointer of eight bytes in the parameters, by the contract of this function.
    let to = unsafe { read(base + u64::from(field.at), 8) };
    if to == 0 {
        return;
    }
    if pointer.direction == Direction::In {
        // SAFETY: `to` is what this pointer of the valid parameters leads to.
        unsafe { chained_outputs(base, to, pointer) };
        return;
    }
    if is_count(layout, field) {
        let width = element_size(&pointer.to);
        // SAFETY: an output of valid parameters that is not null leads to at least one element, of this size.
        unsafe { zero(to, width) };
        return;
    }
    // SAFETY: the pointer is one of these valid parameters, and so is its length, or it lies behind one of them.
    let count = unsafe { length(base, pointer) };
    for at in 0..count {
        let element = to + at * element_size(&pointer.to);
        // SAFETY: an output of valid parameters that is not null leads to `count` elements, which may be written.
        unsafe { element_output(element, pointer) };
    }
}

/// Inputs may have structures in their chains that point to outputs, such as the feedback of a pipeline's creation.
///
/// # Safety
///
/// As for [`output`], where `to` is what `pointer` leads to.
unsafe fn chained_outputs(base: u64, to: u64, pointer: &Pointer) {
    let Pointee::Struct(layout) = &pointer.to else { return };
    if layout.s_type().is_none() {
        return;
    }
    // SAFETY: the pointer is one of these valid parameters, and so is its length, or it lies behind one of them.
    for at in 0..unsafe { length(base, pointer) } {
        // SAFETY: an input of valid parameters leads to so many structures of this layout; one that tells its type has
        // its chain at eight.
        let mut next = unsafe { read(to + at * u64::from(layout.size) + 8, 8) };
        while next != 0 {
            // SAFETY: each link of the chain of a valid structure leads to one that begins with its type.
            let known = structure_by_type(unsafe { read(next, 4) } as i32);
            for (layout, field) in known.iter().flat_map(|it| it.fields.iter().map(move |field| (it, field))) {
                if let Ty::Pointer(pointer) = &field.ty
                    && pointer.direction != Direction::In
                {
                    // SAFETY: the structure at `next` is valid and has the layout of its type, and the field is one of
                    // its.
                    unsafe { output(layout, next, field, pointer) };
                }
            }
            // SAFETY: behind its type, each structure of a chain has the next link, at eight.
            next = unsafe { read(next + 8, 8) };
        }
    }
}

/// # Safety
///
/// `to` must lead to one element of what `pointer` leads to, which may be written.
unsafe fn element_output(to: u64, pointer: &Pointer) {
    match &pointer.to {
        Pointee::Handle(ty) if !ty.is_dispatchable() => {
            let place = std::ptr::with_exposed_provenance_mut::<u64>(to as usize);
            // SAFETY: the element is a handle of eight bytes that may be written, by the contract of this function.
            unsafe { place.write(next_handle(*ty)) };
        }
        // SAFETY: the element is a structure of this layout that may be written, by the contract of this function.
        Pointee::Struct(layout) => unsafe { clear(to, layout) },
        // SAFETY: the element is a structure that begins with its type, by the contract of this function.
        Pointee::AnyStruct => unsafe { clear_chain(to) },
        // SAFETY: the element has this size and may be written, by the contract of this function.
        pointee => unsafe { zero(to, element_size(pointee)) },
    }
}

/// Whether another parameter is as long as this one says: then the answer is none.
fn is_count(layout: &Layout, field: &Field) -> bool {
    layout.fields.iter().any(|item| match &item.ty {
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
        // SAFETY: `base` is the address of the parameters that have the length, by the contract of `output`.
        Len::At(place) => unsafe { read_length(base, place) },
        Len::Scaled { of, add, divide } => {
            // SAFETY: `base` is the address of the parameters that have the length, by the contract of `output`.
            (unsafe { read_length(base, of) } + u64::from(add)) / u64::from(divide)
        }
        Len::Terminated | Len::Rule(_) => 0,
    }
}

/// # Safety
///
/// `base` must be the address of a structure that has `place`, and pointers on the way valid or null.
unsafe fn read_length(base: u64, place: IntegerLocation) -> u64 {
    if place.through == IntegerLocation::HERE {
        // SAFETY: the structure at `base` has `place`, by the contract of this function.
        return unsafe { read(base + u64::from(place.at), place.width) };
    }
    // SAFETY: the structure at `base` has the pointer to the owner of `place`, by the contract of this function.
    let owner = unsafe { read(base + u64::from(place.through), 8) };
    // SAFETY: a pointer on the way is null or valid, by the contract of this function, and this one is not null.
    if owner == 0 { 0 } else { unsafe { read(owner + u64::from(place.at), place.width) } }
}

fn element_size(target: &Pointee) -> u64 {
    match target {
        Pointee::Values(ty) => u64::from(ty.size()),
        Pointee::Struct(layout) => u64::from(layout.size),
        // As large as the properties say.
        Pointee::Blob(Blob::OpaqueCaptureDescriptor) => 8,
        Pointee::Handle(_) | Pointee::Pointer(_) | Pointee::Opaque => 8,
        Pointee::Text | Pointee::Blob(_) | Pointee::Template | Pointee::AnyStruct => 1,
    }
}

/// Zeros an output structure and its chain; types, chains and pointers stay the application's.
///
/// # Safety
///
/// `to` must lead to a valid output structure of this layout with a valid chain, all of it to write, and to which
/// nobody has a reference.
pub(crate) unsafe fn clear(to: u64, layout: &Layout) {
    for field in layout.fields {
        let is_kept = matches!(field.ty, Ty::Chain | Ty::Pointer(_) | Ty::Opaque) || field.name == "sType";
        if !is_kept {
            let size = u64::from(field.ty.size()) * u64::from(field.count);
            // SAFETY: the layout has a field of this size at this place, and the structure may be written, by the
            // contract of this function.
            unsafe { zero(to + u64::from(field.at), size) };
        }
        if matches!(field.ty, Ty::Chain) {
            // SAFETY: the field is a link of eight bytes, and the chain is valid, by the contract of this function.
            unsafe { clear_chain(read(to + u64::from(field.at), 8)) };
        }
    }
}

/// # Safety
///
/// `first` must be null, or lead to a valid output structure that begins with its type and its chain, as for [`clear`].
unsafe fn clear_chain(first: u64) {
    if first == 0 {
        return;
    }
    // SAFETY: `first` is not null, so a structure begins there with its type, by the contract of this function.
    let s_type = unsafe { read(first, 4) } as i32;
    match structure_by_type(s_type) {
        // SAFETY: a valid structure has the layout of its type, and its chain is valid, by the contract of this
        // function.
        Some(layout) => unsafe { clear(first, layout) },
        // SAFETY: a structure of any type has its link at eight, and its chain is valid, by the contract of this
        // function.
        None => unsafe { clear_chain(read(first + 8, 8)) },
    }
}

/// # Safety
///
/// `at` must be valid to read for `width` bytes.
pub(crate) unsafe fn read(at: u64, width: u8) -> u64 {
    let mut bytes = [0; 8];
    let from = std::ptr::with_exposed_provenance::<u8>(at as usize);
    // SAFETY: `width` bytes may be read, by the contract of this function; no more than the eight of `bytes` are
    // copied.
    unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), usize::from(width.min(8))) };
    u64::from_le_bytes(bytes)
}

/// # Safety
///
/// `at` must be valid for `size` bytes to write.
unsafe fn zero(at: u64, size: u64) {
    // SAFETY: `size` bytes may be written, by the contract of this function.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(at as usize).write_bytes(0, size as usize) };
}
