//! Mapped memory of a device, which the processor may not cache: reading it in large pieces, and letting writes arrive.

/// Reads bytes that a device may be writing. Where the processor does not cache them, it fetches whole lines instead of
/// words.
///
/// # Safety
///
/// As many bytes as `to` has must be mapped from `from` on until this returns. Nobody may free them meanwhile; others
/// may write to them.
pub unsafe fn read(from: u64, to: &mut [u8]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("sse4.1") {
        // SAFETY: the contract of this function; the processor has the instruction.
        return unsafe { streaming::read(from, to) };
    }
    // SAFETY: by the contract of this function the bytes are mapped; `to` is ours.
    unsafe { read_plainly(from, to) }
}

/// # Safety
///
/// As for [`read`].
unsafe fn read_plainly(from: u64, to: &mut [u8]) {
    let source = std::ptr::with_exposed_provenance::<u8>(from as usize);
    // SAFETY: the caller's word; `to` is ours.
    unsafe { std::ptr::copy_nonoverlapping(source, to.as_mut_ptr(), to.len()) };
}

/// Writes bytes, and nothing beside them.
///
/// # Safety
///
/// As many bytes as `bytes` has must be mapped from `to` on until this returns, and writable. Others may use the bytes
/// beside them.
pub unsafe fn write(to: u64, bytes: &[u8]) {
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
    // SAFETY: the caller's word; the source is another memory.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
}

/// Writes zeros.
///
/// # Safety
///
/// As for [`write()`], with `size` bytes, which nobody else uses.
pub unsafe fn clear(to: u64, size: usize) {
    let target = std::ptr::with_exposed_provenance_mut::<u8>(to as usize);
    // SAFETY: by the contract of this function these bytes are mapped, and nobody else uses them.
    unsafe { target.write_bytes(0, size) };
}

/// Earlier writes of this thread arrive before its later ones, also those that the processor collects.
pub fn finish_writes() {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(target_arch = "x86_64")]
mod streaming {
    use std::arch::x86_64::{__m128i, _mm_storeu_si128, _mm_stream_load_si128};

    const VECTOR: usize = size_of::<__m128i>();

    /// # Safety
    ///
    /// As for [`super::read`]; the processor must have SSE4.1.
    #[target_feature(enable = "sse4.1")]
    pub(super) unsafe fn read(from: u64, to: &mut [u8]) {
        let head = (from.next_multiple_of(VECTOR as u64) - from).min(to.len() as u64) as usize;
        let (first, rest) = to.split_at_mut(head);
        // SAFETY: the contract of this function, for the first bytes.
        unsafe { super::read_plainly(from, first) };
        let start = from + head as u64;
        let (vectors, tail) = rest.split_at_mut(rest.len() / VECTOR * VECTOR);
        for (at, vector) in vectors.chunks_exact_mut(VECTOR).enumerate() {
            let source = std::ptr::with_exposed_provenance::<__m128i>(start as usize + at * VECTOR);
            // SAFETY: the contract of this function for the source, which is aligned; the target has as many bytes.
            unsafe { _mm_storeu_si128(vector.as_mut_ptr().cast(), _mm_stream_load_si128(source)) };
        }
        // SAFETY: the contract of this function, for the last bytes.
        unsafe { super::read_plainly(start + vectors.len() as u64, tail) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_and_written_at_any_address() {
        let source: Vec<u8> = (0..300).map(|it: u32| it as u8).collect();
        let address = source.as_ptr().expose_provenance() as u64;
        for first in 0..40 {
            for size in [0, 1, 15, 16, 17, 64, 200] {
                let mut found = vec![0xee; size];
                // SAFETY: the bytes lie in the vector.
                unsafe { read(address + first as u64, &mut found) };
                assert_eq!(found, source[first..first + size], "{size} bytes from {first} on");
            }
        }
        let mut target = [7_u8; 8];
        let address = target.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: the bytes lie in the array.
        unsafe {
            write(address + 2, &[1, 2, 3]);
            clear(address + 3, 1);
        }
        finish_writes();
        assert_eq!(target, [7, 7, 1, 0, 3, 7, 7, 7]);
    }
}
