//! Objects by id: pages of slots, since ids are dense and never used again.
//!
//! A page without live objects is two words, and a shelf all of whose objects are dead is one mark: what is kept grows
//! with what is alive.

/// Objects in a page.
const PAGE: usize = 64;
/// Pages on a shelf.
const SHELF: usize = 64;
/// More objects of one type than on so many shelves are not followed: a record may hold any number.
const SHELVES_MAX: usize = 1 << 20;
const SERIAL_MASK: u64 = (1 << 56) - 1;

/// Objects of one type, by the handles that stand in records.
pub(crate) struct Slab<T> {
    shelves: Vec<Shelf<T>>,
    /// The page of the last object that came: the next one may go there too, so it stays.
    newest: Option<(usize, usize)>,
}

struct Shelf<T> {
    pages: Option<Box<[Page<T>; SHELF]>>,
    /// All objects are gone, and with them the pages.
    is_dead: bool,
}

struct Page<T> {
    slots: Option<Box<[Option<T>; PAGE]>>,
    /// One bit for each object that is there, and for each that is gone.
    live: u64,
    dead: u64,
}

impl<T> Default for Page<T> {
    fn default() -> Page<T> {
        Page { slots: None, live: 0, dead: 0 }
    }
}

impl<T> Shelf<T> {
    #[cold]
    #[inline(never)]
    fn with_pages(&mut self) -> &mut [Page<T>; SHELF] {
        let dead = if self.is_dead { u64::MAX } else { 0 };
        self.is_dead = false;
        self.pages.get_or_insert_with(|| filled(|| Page { dead, ..Page::default() }))
    }
}

/// Made where it stays: on the stack it would be part of the frame of every function that may make one, and that frame
/// is touched page by page whenever such a function is called.
#[cold]
#[inline(never)]
fn filled<T, const N: usize>(make: impl FnMut() -> T) -> Box<[T; N]> {
    let all: Vec<T> = std::iter::repeat_with(make).take(N).collect();
    match all.try_into() {
        Ok(all) => all,
        Err(_) => unreachable!("it has as many as were taken"),
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
        Slab { shelves: Vec::new(), newest: None }
    }
}

impl<T> Slab<T> {
    /// Adds an object; null and unknown handles, and numbers beyond reason, are left out.
    pub(crate) fn insert(&mut self, handle: u64, value: T) {
        let Some((shelf, page, slot)) = place(handle) else { return };
        if self.newest != Some((shelf, page)) {
            self.turn_to(shelf, page);
        }
        let own = &mut self.shelves[shelf];
        let pages = match &mut own.pages {
            Some(pages) => pages,
            None => own.with_pages(),
        };
        let own = &mut pages[page];
        let slots = own.slots.get_or_insert_with(|| filled(|| None));
        slots[slot] = Some(value);
        own.live |= 1 << slot;
        own.dead &= !(1 << slot);
    }

    /// Objects come into another page than before.
    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, shelf: usize, page: usize) {
        let old = self.newest.replace((shelf, page));
        if self.shelves.len() <= shelf {
            self.shelves.resize_with(shelf + 1, || Shelf { pages: None, is_dead: false });
        }
        if let Some(old) = old {
            self.tidy(old);
        }
    }

    /// A page may have no use for its slots any more, nor a shelf for its pages.
    #[inline(never)]
    fn tidy(&mut self, (shelf, page): (usize, usize)) {
        let Some(own) = self.shelves.get_mut(shelf) else { return };
        let Some(pages) = &mut own.pages else { return };
        if pages[page].live == 0 {
            pages[page].slots = None;
        }
        if pages[page].dead == u64::MAX && pages.iter().all(|it| it.dead == u64::MAX) {
            own.pages = None;
            own.is_dead = true;
        }
    }

    fn page(&self, shelf: usize, page: usize) -> Option<&Page<T>> {
        Some(&self.shelves.get(shelf)?.pages.as_ref()?[page])
    }

    fn page_mut(&mut self, shelf: usize, page: usize) -> Option<&mut Page<T>> {
        Some(&mut self.shelves.get_mut(shelf)?.pages.as_mut()?[page])
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        let (shelf, page, slot) = place(handle)?;
        self.page(shelf, page)?.slots.as_ref()?[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let (shelf, page, slot) = place(handle)?;
        self.page_mut(shelf, page)?.slots.as_mut()?[slot].as_mut()
    }

    /// The object dies; that it was there stays known.
    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let (shelf, page, slot) = place(handle)?;
        let is_newest = self.newest == Some((shelf, page));
        let own = self.page_mut(shelf, page)?;
        let gone = own.slots.as_mut()?[slot].take()?;
        own.live &= !(1 << slot);
        own.dead |= 1 << slot;
        if own.live == 0 && (!is_newest || own.dead == u64::MAX) {
            self.tidy((shelf, page));
        }
        Some(gone)
    }

    pub(crate) fn life(&self, handle: u64) -> Life {
        let Some((shelf, page, slot)) = place(handle) else { return Life::Never };
        match self.page(shelf, page) {
            Some(own) if own.live >> slot & 1 != 0 => Life::Alive,
            Some(own) if own.dead >> slot & 1 != 0 => Life::Dead,
            None if self.shelves.get(shelf).is_some_and(|it| it.is_dead) => Life::Dead,
            _ => Life::Never,
        }
    }

    /// How many are alive.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let pages = self.shelves.iter_mut().filter_map(|it| it.pages.as_mut()).flat_map(|it| it.iter_mut());
        pages.filter_map(|it| it.slots.as_mut()).flat_map(|it| it.iter_mut().flatten())
    }

    /// Those that are alive, in the order of their serial numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let pages = self.shelves.iter().filter_map(|it| it.pages.as_ref()).flat_map(|it| it.iter());
        pages.filter_map(|it| it.slots.as_ref()).flat_map(|it| it.iter().flatten())
    }
}

/// The shelf, the page and the slot of a handle.
fn place(handle: u64) -> Option<(usize, usize, usize)> {
    let serial = usize::try_from(handle & SERIAL_MASK).ok()?;
    let shelf = serial / (SHELF * PAGE);
    (handle != 0 && shelf < SHELVES_MAX).then_some((shelf, serial / PAGE % SHELF, serial % PAGE))
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
        assert_eq!(room(&slab), (1, 1));
    }

    /// Shelves that have pages, and pages that have slots.
    fn room<T>(slab: &Slab<T>) -> (usize, usize) {
        let shelves: Vec<_> = slab.shelves.iter().filter_map(|it| it.pages.as_ref()).collect();
        (shelves.len(), shelves.iter().flat_map(|it| it.iter()).filter(|it| it.slots.is_some()).count())
    }

    #[test]
    fn a_shelf_of_dead_objects_takes_no_room_and_is_remembered() {
        let mut slab = Slab::default();
        let count = 10 * (SHELF * PAGE) as u64;
        slab.insert(handle(7), 7);
        for serial in 8..count {
            slab.insert(handle(serial), serial);
            assert_eq!(slab.remove(handle(serial)), Some(serial));
        }
        assert_eq!(room(&slab), (1, 1), "that of the one that is alive");
        assert_eq!((slab.life(handle(7)), slab.life(handle(count - 1))), (Life::Alive, Life::Dead));
        assert_eq!((slab.life(handle(6)), slab.life(handle(count))), (Life::Never, Life::Never));
        // As if it had been taken back: it comes again.
        slab.insert(handle(count - 1), 1);
        let [dead, alive] = [count - 2, count - 1].map(|it| slab.life(handle(it)));
        assert_eq!((dead, alive, slab.len()), (Life::Dead, Life::Alive, 2));
    }

    /// Another device may have them, or nobody.
    #[test]
    fn numbers_that_never_come_hold_no_slots() {
        let mut slab = Slab::default();
        for serial in (0..2000).step_by(2) {
            slab.insert(handle(serial), serial);
            slab.remove(handle(serial));
        }
        assert_eq!(room(&slab), (1, 1), "the next one may come into the last page");
        assert_eq!((slab.life(handle(0)), slab.life(handle(1))), (Life::Dead, Life::Never));
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
