//! Compares bytes with instructions of the processor.

/// Bytes that are compared together.
const BLOCK: usize = u64::BITS as usize;

/// One bit for each byte: whether it differs.
#[inline]
pub fn changed_bytes(old: &[u8; BLOCK], new: &[u8; BLOCK]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8};
        const SIZE: usize = 16;
        (0..BLOCK / SIZE).fold(0, |all, part| {
            // SAFETY: every x86_64 has these instructions. Both arrays have 16 bytes at the offset, which need no alignment.
            let equal = unsafe {
                let load = |bytes: &[u8; BLOCK]| _mm_loadu_si128(bytes.as_ptr().add(part * SIZE).cast());
                _mm_movemask_epi8(_mm_cmpeq_epi8(load(old), load(new)))
            };
            all | u64::from(!(equal as u16)) << (part * SIZE)
        })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        old.iter().zip(new).enumerate().fold(0, |all, (index, it)| all | u64::from(it.0 != it.1) << index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_bit() {
        let old: [u8; BLOCK] = std::array::from_fn(|it| it as u8);
        for at in 0..BLOCK {
            let mut new = old;
            new[at] ^= 0x80;
            new[0] ^= 1;
            assert_eq!(changed_bytes(&old, &new), 1 | 1 << at);
        }
        assert_eq!((changed_bytes(&old, &old), changed_bytes(&old, &old.map(|it| !it))), (0, u64::MAX));
    }
}
