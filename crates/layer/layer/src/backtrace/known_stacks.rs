//! The stacks that a thread has met, so that it need not walk them again.
//!
//! A stack is known by the return addresses on it and by their places. From the innermost frame on: the depth and the
//! command fix the place of the application's return address, since frames of ours have fixed sizes. A return address
//! fixes the function and so the size of its frame, which is where the next return address is. As long as the words at
//! these places are known return addresses, the frames are those of an earlier walk. The first word that is not leads
//! to a new walk.
//!
//! A loop finds its stack by one comparison with the last one of the same caller (`recent`). A helper function that is
//! called from many lines finds it frame by frame (`links`).

use lavascope_abi::Command;
use lavascope_platform::stack::{ReturnAddress, word_at};

use super::stack_table;

/// Entries of `recent`, a power of two.
const RECENT: usize = 256;
/// Entries of `links` in the beginning and at most, powers of two. A full table is emptied.
const LINKS_MIN: usize = 256;
const LINKS_MAX: usize = 1 << 15;

pub(super) struct KnownStacks {
    /// Where the return address of the application is above the depth, in bytes, by command. Zero if unknown.
    distances: Vec<u16>,
    recent: Vec<RecentStack>,
    links: Vec<StackLink>,
    link_count: usize,
    /// Nodes of the tree of known stacks. Zero is its root.
    node_count: u32,
    generation: u32,
}

/// A stack as it was at some depth.
#[derive(Clone, Default)]
struct RecentStack {
    /// Zero if there is none.
    depth: usize,
    frames: Box<[ReturnAddress]>,
    stack: u32,
}

/// The step from one frame of a known stack to the next.
#[derive(Clone, Copy, Default)]
struct StackLink {
    /// The frames so far.
    from: u32,
    /// Zero if there is no link.
    to: u32,
    /// The return address that was found.
    word: usize,
    /// The place of the next return address. Zero at the outermost frame, and then `stack` is the number.
    next_place: usize,
    stack: u32,
}

impl Default for KnownStacks {
    fn default() -> KnownStacks {
        KnownStacks {
            distances: vec![0; Command::ALL.len()],
            recent: vec![RecentStack::default(); RECENT],
            links: vec![StackLink::default(); LINKS_MIN],
            link_count: 0,
            node_count: 0,
            generation: stack_table::generation(),
        }
    }
}

impl KnownStacks {
    /// The number of the stack above a depth, if it is known.
    ///
    /// # Safety
    ///
    /// The depth must be in a frame of the calling thread that is live, and this must be a thread that inserted all that
    /// was inserted.
    #[inline(always)]
    pub(super) unsafe fn find(&mut self, depth: usize, command: Command) -> Option<u32> {
        let distance = usize::from(self.distances[command as usize]);
        if distance == 0 {
            return None;
        }
        // SAFETY: the return address of the application is so far above, since a walk found it there and our frames
        // between have fixed sizes.
        let caller = unsafe { word_at(depth + distance) };
        let recent = &self.recent[recent_index(depth, caller)];
        if recent.depth == depth
            && self.generation == stack_table::generation()
            // SAFETY: places of frames above the depth. As long as the words are the same, so are the frames, and the
            // next place is on the stack as well.
            && recent.frames.iter().all(|it| unsafe { word_at(it.at) } == it.address)
        {
            return Some(recent.stack);
        }
        // SAFETY: the contract of this function, and the place is that of the application's return address, as above.
        unsafe { self.find_by_frames(depth, depth + distance) }
    }

    /// # Safety
    ///
    /// As for `find`, and `place` must be that of the application's return address.
    #[inline(never)]
    unsafe fn find_by_frames(&mut self, depth: usize, place: usize) -> Option<u32> {
        if self.generation != stack_table::generation() {
            *self = KnownStacks::default();
            return None;
        }
        // The first link is from the depth to the place, so that other depths have other nodes.
        let first = self.links[self.link_index(0, depth ^ place << 1)];
        let (mut node, mut place, mut count) = (first.to, first.next_place, 0);
        while node != 0 {
            // SAFETY: the place of the return address of the next frame: those before it are the ones of a walk.
            let word = unsafe { word_at(place) };
            let link = self.links[self.link_index(node, word)];
            (node, place, count) = (link.to, link.next_place, count + 1);
            if node != 0 && place == 0 {
                return Some(link.stack);
            }
            // Links only lead outwards, to at most as many frames as a walk has.
            debug_assert!(count < 1000, "links have no circles");
        }
        None
    }

    /// Remembers a stack that was walked.
    pub(super) fn insert(&mut self, depth: usize, command: Command, frames: &[ReturnAddress], stack: u32) {
        let Some(first) = frames.first() else { return };
        let Ok(distance) = u16::try_from(first.at.wrapping_sub(depth)) else { return };
        if self.generation != stack_table::generation() {
            *self = KnownStacks::default();
        }
        self.distances[command as usize] = distance;
        self.recent[recent_index(depth, first.address)] = RecentStack { depth, frames: frames.into(), stack };
        if self.link_count + frames.len() + 1 > LINKS_MAX / 2 {
            (self.links, self.link_count, self.node_count) = (vec![StackLink::default(); LINKS_MIN], 0, 0);
        }
        let mut node = self.add_link(0, depth ^ first.at << 1, first.at, 0);
        for (index, frame) in frames.iter().enumerate() {
            let next_place = frames.get(index + 1).map_or(0, |it| it.at);
            node = self.add_link(node, frame.address, next_place, stack);
        }
    }

    /// The link of a word, which is made if there is none.
    fn add_link(&mut self, from: u32, word: usize, next_place: usize, stack: u32) -> u32 {
        if (self.link_count + 1) * 2 > self.links.len() {
            let links = std::mem::take(&mut self.links);
            self.links = vec![StackLink::default(); links.len() * 2];
            for link in links.into_iter().filter(|it| it.to != 0) {
                let index = self.link_index(link.from, link.word);
                self.links[index] = link;
            }
        }
        let index = self.link_index(from, word);
        let link = &mut self.links[index];
        if link.to == 0 {
            self.node_count += 1;
            self.link_count += 1;
            *link = StackLink { from, to: self.node_count, word, next_place, stack };
        } else if link.next_place != next_place || next_place == 0 {
            // A walk went further than another, or frames have another size: the last walk counts.
            (link.next_place, link.stack) = (next_place, stack);
        }
        link.to
    }

    /// The entry of a link, or the free one where it belongs.
    #[inline(always)]
    fn link_index(&self, from: u32, word: usize) -> usize {
        let mask = self.links.len() - 1;
        let mut index = hash(word ^ (from as usize) << 40, mask);
        loop {
            let link = &self.links[index];
            if link.to == 0 || (link.from == from && link.word == word) {
                return index;
            }
            index = (index + 1) & mask;
        }
    }
}

#[inline(always)]
fn recent_index(depth: usize, caller: usize) -> usize {
    hash(depth.rotate_left(20) ^ caller, RECENT - 1)
}

#[inline(always)]
fn hash(word: usize, mask: usize) -> usize {
    ((word as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & mask
}
