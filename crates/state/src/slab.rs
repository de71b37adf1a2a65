//! Objects by id: pages of slots, since ids are dense and never used again.
//!
//! A page all of whose objects are dead is one mark; what is kept grows with what is alive.

/// Objects in a page.
const PAGE: usize = 64;
/// More objects of one type than this are not followed: a record may hold any number.
const PAGES_MAX: usize = 1 << 20;
const SERIAL_MASK: u64 = (1 << 56) - 1;

/// Objects of one type, by the handles that stand in records.
pub(crate) struct Slab<T> {
    pages: Vec<Page<T>>,
    live: usize,
}

enum Page<T> {
    Empty,
    Dead,
    Used(Slots<T>),
}

struct Slots<T> {
    slots: Box<[Option<T>; PAGE]>,
    /// One bit for each object that is gone.
    dead: u64,
}

impl<T> Slots<T> {
    /// Made where it stays: on the stack a page would be part of the frame of every function that may make one, and
    /// that frame is touched page by page whenever such a function is called.
    #[cold]
    #[inline(never)]
    fn new(dead: u64) -> Slots<T> {
        let slots: Vec<Option<T>> = std::iter::repeat_with(|| None).take(PAGE).collect();
        match slots.try_into() {
            Ok(slots) => Slots { slots, dead },
            Err(_) => unreachable!("it has as many slots as were taken"),
        }
    }
}

/// What is known of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Never,
    Alive,
    Dead,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { pages: Vec::new(), live: 0 }
    }
}

impl<T> Slab<T> {
    /// Adds an object; null and unknown handles, and numbers beyond reason, are left out.
    pub(crate) fn insert(&mut self, handle: u64, value: T) {
        let Some((page, slot)) = place(handle) else { return };
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || Page::Empty);
        }
        if let Page::Empty | Page::Dead = self.pages[page] {
            let dead = if matches!(self.pages[page], Page::Dead) { u64::MAX } else { 0 };
            self.pages[page] = Page::Used(Slots::new(dead));
        }
        if let Page::Used(slots) = &mut self.pages[page] {
            self.live += usize::from(slots.slots[slot].is_none());
            slots.slots[slot] = Some(value);
            slots.dead &= !(1 << slot);
        }
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        let (page, slot) = place(handle)?;
        match self.pages.get(page)? {
            Page::Used(slots) => slots.slots[slot].as_ref(),
            Page::Empty | Page::Dead => None,
        }
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let (page, slot) = place(handle)?;
        match self.pages.get_mut(page)? {
            Page::Used(slots) => slots.slots[slot].as_mut(),
            Page::Empty | Page::Dead => None,
        }
    }

    /// The object dies; that it was there stays known.
    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let (page, slot) = place(handle)?;
        let it = self.pages.get_mut(page)?;
        let Page::Used(slots) = it else { return None };
        let gone = slots.slots[slot].take()?;
        slots.dead |= 1 << slot;
        self.live -= 1;
        if slots.dead == u64::MAX {
            *it = Page::Dead;
        }
        Some(gone)
    }

    pub(crate) fn life(&self, handle: u64) -> Life {
        let Some((page, slot)) = place(handle) else { return Life::Never };
        match self.pages.get(page) {
            Some(Page::Used(slots)) if slots.slots[slot].is_some() => Life::Alive,
            Some(Page::Used(slots)) if slots.dead >> slot & 1 != 0 => Life::Dead,
            Some(Page::Dead) => Life::Dead,
            _ => Life::Never,
        }
    }

    /// How many are alive.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.live
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let used = self.pages.iter_mut().filter_map(|it| match it {
            Page::Used(slots) => Some(slots),
            Page::Empty | Page::Dead => None,
        });
        used.flat_map(|it| it.slots.iter_mut().flatten())
    }

    /// Those that are alive, in the order of their serial numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let used = self.pages.iter().filter_map(|it| match it {
            Page::Used(slots) => Some(slots),
            Page::Empty | Page::Dead => None,
        });
        used.flat_map(|it| it.slots.iter().flatten())
    }
}

/// The page and the slot of a handle.
fn place(handle: u64) -> Option<(usize, usize)> {
    let serial = usize::try_from(handle & SERIAL_MASK).ok()?;
    let page = serial / PAGE;
    (handle != 0 && page < PAGES_MAX).then_some((page, serial % PAGE))
}

#[cfg(test)]
mod tests {
    use lavascope_abi::{HandleType, ObjectId};

    use super::*;

    fn handle(serial: u64) -> u64 {
        ObjectId::new(HandleType::Buffer, serial).map_or(0, ObjectId::raw)
    }

    #[test]
    fn a_page_of_dead_objects_takes_no_room_and_is_remembered() {
        let mut slab = Slab::default();
        for serial in 0..1000 {
            slab.insert(handle(serial), serial);
        }
        for serial in 0..990 {
            assert_eq!(slab.remove(handle(serial)), Some(serial));
        }
        assert_eq!((slab.len(), slab.get(handle(995))), (10, Some(&995)));
        assert_eq!(
            (slab.life(handle(3)), slab.life(handle(995)), slab.life(handle(5000))),
            (Life::Dead, Life::Alive, Life::Never)
        );
        let used = slab.pages.iter().filter(|it| matches!(it, Page::Used(_))).count();
        assert_eq!(used, 1);
    }

    #[test]
    fn null_and_unknown_handles_are_nobody() {
        let mut slab = Slab::default();
        slab.insert(0, 1);
        slab.insert(ObjectId::unknown(HandleType::Buffer).raw(), 2);
        assert_eq!(slab.len(), 0);
        assert_eq!(slab.get(0), None);
    }
}
