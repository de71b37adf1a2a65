//! The contents of a memory, as far as the host wrote them.

use std::ops::Range;

use lavascope_record::HostWrite;
use rustc_hash::FxHashMap;

/// The known contents.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum HostContents {
    /// Nothing was reported yet.
    #[default]
    NotReported,
    Known(ContentPages),
    /// Not stored: too large, not needed, or the device may write there, too.
    Unknown,
}

/// Pages that are not all zero.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ContentPages(FxHashMap<u64, Box<[u8]>>);

const PAGE: u64 = 4096;

impl HostContents {
    pub(crate) fn write(&mut self, written: HostWrite<'_>) {
        if let HostContents::NotReported = self {
            *self = HostContents::Known(ContentPages::default());
        }
        let HostContents::Known(pages) = self else { return };
        written.runs().for_each(|(first, bytes)| pages.write(first, bytes));
    }

    /// The number of stored pages.
    pub(crate) fn pages(&self) -> usize {
        match self {
            HostContents::Known(pages) => pages.0.len(),
            HostContents::NotReported | HostContents::Unknown => 0,
        }
    }
}

impl ContentPages {
    fn write(&mut self, first: u64, mut bytes: &[u8]) {
        let mut at = first;
        while !bytes.is_empty() {
            let (page, inside) = (at / PAGE, (at % PAGE) as usize);
            let (now, later) = bytes.split_at(bytes.len().min(PAGE as usize - inside));
            let own = self.0.entry(page).or_insert_with(|| vec![0; PAGE as usize].into_boxed_slice());
            own[inside..inside + now.len()].copy_from_slice(now);
            (bytes, at) = (later, at + now.len() as u64);
        }
    }

    pub(crate) fn read(&self, bytes: Range<u64>) -> Vec<u8> {
        let mut all = Vec::with_capacity((bytes.end - bytes.start) as usize);
        let mut at = bytes.start;
        while at < bytes.end {
            let (page, inside) = (at / PAGE, (at % PAGE) as usize);
            let size = (bytes.end - at).min(PAGE - inside as u64) as usize;
            match self.0.get(&page) {
                Some(own) => all.extend_from_slice(&own[inside..inside + size]),
                None => all.resize(all.len() + size, 0),
            }
            at += size as u64;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zero() {
        let mut pages = ContentPages::default();
        let bytes: Vec<u8> = (0..10_000).map(|it| (it % 251) as u8 + 1).collect();
        pages.write(PAGE - 5, &bytes);
        pages.write(PAGE + 1, &[0, 0]);
        let read = pages.read(PAGE - 7..PAGE + 5);
        assert_eq!(read, [0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 9, 10]);
        assert_eq!(pages.read(9 * PAGE..9 * PAGE + 3), [0; 3]);
        assert_eq!(pages.read(PAGE - 5 + 9_998..PAGE - 5 + 10_001)[2], 0);
    }
}
