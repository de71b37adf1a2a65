//! Bytes of the host's own memory that a call reads: a capture keeps them before the call.

use lavascope_record::HostBytes;

/// More than a record of a sane trace asks for.
const BYTES_MAX: u64 = 1 << 32;

/// By region of the next call that reads.
#[derive(Default)]
pub(crate) struct HostMemory {
    regions: Vec<Vec<u8>>,
}

impl HostMemory {
    /// A piece of what a region reads. False if it cannot be.
    pub(crate) fn store(&mut self, host_bytes: &HostBytes<'_>) -> bool {
        const REGIONS_MAX: u64 = 1 << 16;
        let end = host_bytes.first.saturating_add(host_bytes.bytes.len() as u64);
        // Pieces come one behind the other, so memory grows with the file.
        let held = self.regions.get(host_bytes.region as usize).map_or(0, Vec::len) as u64;
        if host_bytes.region >= REGIONS_MAX || end > BYTES_MAX || host_bytes.first > held {
            return false;
        }
        let at = host_bytes.region as usize;
        if self.regions.len() <= at {
            self.regions.resize_with(at + 1, Vec::new);
        }
        let region = &mut self.regions[at];
        region.resize(region.len().max(end as usize), 0);
        region[host_bytes.first as usize..end as usize].copy_from_slice(host_bytes.bytes);
        true
    }

    /// Where the bytes of a region are.
    pub(crate) fn address(&self, region: u64) -> Option<u64> {
        let region = self.regions.get(usize::try_from(region).ok()?)?;
        Some(region.as_ptr().expose_provenance() as u64)
    }

    pub(crate) fn clear(&mut self) {
        self.regions.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_together_and_gaps_are_refused() {
        let mut host = HostMemory::default();
        let piece = |region, first, bytes| HostBytes { region, first, bytes };
        assert!(host.store(&piece(1, 0, b"abc")) && host.store(&piece(1, 3, b"de")));
        assert_eq!(host.regions[1], b"abcde");
        assert!(!host.store(&piece(1, 6, b"x")) && !host.store(&piece(1 << 40, 0, b"x")));
        assert!(host.address(1).is_some() && host.address(2).is_none());
    }
}
