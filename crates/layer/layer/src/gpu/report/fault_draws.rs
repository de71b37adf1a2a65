//! In how many draws and dispatches a fault happened, and in which frames.
//!
//! A draw counts once for each execution of its command buffer: each submission, and in secondary command buffers each
//! submission of a primary one.

use std::collections::HashMap;

use lavascope_abi::ObjectId;
use lavascope_diag::FrameRange;
use lavascope_findings::FrameSpan;

use super::findings::FaultSite;

/// A command buffer whose records are read.
pub(crate) struct ExecutedCommands<'a> {
    pub(crate) handle: u64,
    /// The number in the order of allocation.
    pub(crate) number: u32,
    /// Its id in the records.
    pub(crate) object: Option<ObjectId>,
    pub(crate) queue_labels: &'a [String],
    /// Of each execution since the last reading, the frame.
    pub(crate) frames: &'a [u64],
}

/// The draws with faults, by site.
#[derive(Default)]
pub(crate) struct FaultDraws {
    sites: HashMap<FaultSite, SiteDraws>,
    /// The number of presentations so far, which is the number of the current frame.
    pub(crate) presented: u64,
}

/// The draws with faults of a site.
#[derive(Clone, Copy)]
pub(crate) struct SiteDraws {
    pub(crate) count: u64,
    frames: FrameRange,
}

impl FaultDraws {
    /// A draw was executed in these frames, with a fault.
    pub(super) fn add(&mut self, site: FaultSite, frames: &[u64]) {
        let frames = if frames.is_empty() { &[self.presented][..] } else { frames };
        let new = SiteDraws { count: 0, frames: FrameRange::new(frames[0]) };
        let own = self.sites.entry(site).or_insert(new);
        own.count += frames.len() as u64;
        frames.iter().for_each(|it| own.frames.add(*it));
    }

    /// The number of draws, at least one, and the frames, if there are frames.
    pub(super) fn of(&self, site: &FaultSite) -> (u64, Option<FrameRange>) {
        let own = self.sites.get(site);
        let frames = own.map(|it| it.frames).filter(|_| self.presented > 0);
        (own.map_or(1, |it| it.count), frames)
    }

    /// Takes the draws of some pipelines or shader objects.
    pub(crate) fn take(&mut self, is_it: impl Fn(u32) -> bool) -> FaultDraws {
        let sites = self.sites.extract_if(|it, _| is_it(it.pipeline())).collect();
        FaultDraws { sites, presented: self.presented }
    }
}

/// The frames that are new since some were reported.
pub(super) fn new_frames(all: Option<FrameRange>, reported: u64) -> Option<FrameSpan> {
    let all = all.filter(|it| it.count > reported)?;
    Some(FrameSpan { count: all.count - reported, ..FrameSpan::from(all) })
}

#[cfg(test)]
mod tests {
    use lavascope_instrument::Check;

    use super::*;

    #[test]
    fn a_draw_counts_once_for_each_execution_and_frame() {
        let site = |instruction| FaultSite {
            pipeline: 1,
            stage: 0,
            instruction,
            check: Check::Buffer,
            binding: None,
            element: None,
        };
        let mut draws = FaultDraws::default();
        draws.add(site(7), &[0, 0, 1]);
        assert_eq!(draws.of(&site(7)), (3, None), "nothing was presented");
        draws.presented = 2;
        assert_eq!(draws.of(&site(7)), (3, Some(FrameRange { first: 0, last: 1, count: 2 })));
        draws.add(site(7), &[]);
        assert_eq!(draws.of(&site(7)), (4, Some(FrameRange { first: 0, last: 2, count: 3 })));
        assert_eq!(draws.of(&site(8)), (1, None));
        let (count, frames) = draws.take(|it| it == 1).of(&site(7));
        assert_eq!((count, new_frames(frames, 1).map(|it| it.count), new_frames(frames, 3)), (4, Some(2), None));
        assert_eq!(draws.of(&site(7)), (1, None));
    }
}
