//! Stores objects by id. Ids are dense and never reused, so objects are in pages of slots.
//!
//! A page without live objects takes two words. A group of pages whose objects are all dead takes one bit. So memory
//! grows with the number of live objects.

/// Objects per page.
const PAGE_SLOTS: usize = 64;
/// Pages per group.
const GROUP_PAGES: usize = 64;
/// Objects with larger ids are not tracked: a corrupt record may contain any number.
const GROUPS_MAX: usize = 1 << 20;
const SERIAL_MASK: u64 = (1 << 56) - 1;

/// Objects of one type, by handle.
pub(crate) struct Slab<T> {
    groups: Vec<PageGroup<T>>,
    /// The page of the newest object. It is kept when it is empty, because the next object probably goes there.
    newest: Option<(usize, usize)>,
}

struct PageGroup<T> {
    pages: Option<Box<[SlabPage<T>; GROUP_PAGES]>>,
    /// All objects of the group are dead, and their pages are freed.
    is_dead: bool,
}

struct SlabPage<T> {
    slots: Option<Box<[Option<T>; PAGE_SLOTS]>>,
    /// A bit for each live object, and a bit for each dead one.
    live: u64,
    dead: u64,
}

impl<T> Default for SlabPage<T> {
    fn default() -> SlabPage<T> {
        SlabPage { slots: None, live: 0, dead: 0 }
    }
}

impl<T> PageGroup<T> {
    #[cold]
    #[inline(never)]
    fn with_pages(&mut self) -> &mut [SlabPage<T>; GROUP_PAGES] {
        let dead = if self.is_dead { u64::MAX } else { 0 };
        self.is_dead = false;
        self.pages.get_or_insert_with(|| filled(|| SlabPage { dead, ..SlabPage::default() }))
    }
}

/// Not inlined: the page would be built on the stack, and every caller would need a stack frame of that size.
#[cold]
#[inline(never)]
fn filled<T, const N: usize>(make: impl FnMut() -> T) -> Box<[T; N]> {
    let all: Vec<T> = std::iter::repeat_with(make).take(N).collect();
    match all.try_into() {
        Ok(all) => all,
        Err(_) => unreachable!("it has as many as were taken"),
    }
}

/// The lifetime of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectLifetime {
    NeverCreated,
    Alive,
    Destroyed,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { groups: Vec::new(), newest: None }
    }
}

impl<T> Slab<T> {
    /// Adds an object. Null handles, unknown handles and implausible ids are ignored.
    pub(crate) fn insert(&mut self, handle: u64, value: T) {
        let Some((shelf, page, slot)) = locate(handle) else { return };
        if self.newest != Some((shelf, page)) {
            self.set_newest_page(shelf, page);
        }
        let own = &mut self.groups[shelf];
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

    /// Allocates the page of a new object.
    #[cold]
    #[inline(never)]
    fn set_newest_page(&mut self, shelf: usize, page: usize) {
        let old = self.newest.replace((shelf, page));
        if self.groups.len() <= shelf {
            self.groups.resize_with(shelf + 1, || PageGroup { pages: None, is_dead: false });
        }
        if let Some(old) = old {
            self.free_unused(old);
        }
    }

    /// Frees a page without live objects, or a group without pages.
    #[inline(never)]
    fn free_unused(&mut self, (shelf, page): (usize, usize)) {
        let Some(own) = self.groups.get_mut(shelf) else { return };
        let Some(pages) = &mut own.pages else { return };
        if pages[page].live == 0 {
            pages[page].slots = None;
        }
        if pages[page].dead == u64::MAX && pages.iter().all(|it| it.dead == u64::MAX) {
            own.pages = None;
            own.is_dead = true;
        }
    }

    fn page(&self, shelf: usize, page: usize) -> Option<&SlabPage<T>> {
        Some(&self.groups.get(shelf)?.pages.as_ref()?[page])
    }

    fn page_mut(&mut self, shelf: usize, page: usize) -> Option<&mut SlabPage<T>> {
        Some(&mut self.groups.get_mut(shelf)?.pages.as_mut()?[page])
    }

    pub(crate) fn get(&self, handle: u64) -> Option<&T> {
        let (shelf, page, slot) = locate(handle)?;
        self.page(shelf, page)?.slots.as_ref()?[slot].as_ref()
    }

    pub(crate) fn get_mut(&mut self, handle: u64) -> Option<&mut T> {
        let (shelf, page, slot) = locate(handle)?;
        self.page_mut(shelf, page)?.slots.as_mut()?[slot].as_mut()
    }

    /// Removes the object. Its id is still known as dead.
    pub(crate) fn remove(&mut self, handle: u64) -> Option<T> {
        let (shelf, page, slot) = locate(handle)?;
        let is_newest = self.newest == Some((shelf, page));
        let own = self.page_mut(shelf, page)?;
        let gone = own.slots.as_mut()?[slot].take()?;
        own.live &= !(1 << slot);
        own.dead |= 1 << slot;
        if own.live == 0 && (!is_newest || own.dead == u64::MAX) {
            self.free_unused((shelf, page));
        }
        Some(gone)
    }

    pub(crate) fn lifetime(&self, handle: u64) -> ObjectLifetime {
        let Some((shelf, page, slot)) = locate(handle) else { return ObjectLifetime::NeverCreated };
        match self.page(shelf, page) {
            Some(own) if own.live >> slot & 1 != 0 => ObjectLifetime::Alive,
            Some(own) if own.dead >> slot & 1 != 0 => ObjectLifetime::Destroyed,
            None if self.groups.get(shelf).is_some_and(|it| it.is_dead) => ObjectLifetime::Destroyed,
            _ => ObjectLifetime::NeverCreated,
        }
    }

    /// The number of live objects.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.iter().count()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let pages = self.groups.iter_mut().filter_map(|it| it.pages.as_mut()).flat_map(|it| it.iter_mut());
        pages.filter_map(|it| it.slots.as_mut()).flat_map(|it| it.iter_mut().flatten())
    }

    /// The live objects, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let pages = self.groups.iter().filter_map(|it| it.pages.as_ref()).flat_map(|it| it.iter());
        pages.filter_map(|it| it.slots.as_ref()).flat_map(|it| it.iter().flatten())
    }
}

/// The group, page and slot of a handle.
fn locate(handle: u64) -> Option<(usize, usize, usize)> {
    let serial = usize::try_from(handle & SERIAL_MASK).ok()?;
    let shelf = serial / (GROUP_PAGES * PAGE_SLOTS);
    (handle != 0 && shelf < GROUPS_MAX).then_some((shelf, serial / PAGE_SLOTS % GROUP_PAGES, serial % PAGE_SLOTS))
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
            (slab.lifetime(handle(3)), slab.lifetime(handle(995)), slab.lifetime(handle(5000))),
            (ObjectLifetime::Destroyed, ObjectLifetime::Alive, ObjectLifetime::NeverCreated)
        );
        assert_eq!(page_counts(&slab), (1, 1));
    }

    /// The number of groups with pages, and of pages with slots.
    fn page_counts<T>(slab: &Slab<T>) -> (usize, usize) {
        let shelves: Vec<_> = slab.groups.iter().filter_map(|it| it.pages.as_ref()).collect();
        (shelves.len(), shelves.iter().flat_map(|it| it.iter()).filter(|it| it.slots.is_some()).count())
    }

    #[test]
    fn a_shelf_of_dead_objects_takes_no_room_and_is_remembered() {
        let mut slab = Slab::default();
        let count = 10 * (GROUP_PAGES * PAGE_SLOTS) as u64;
        slab.insert(handle(7), 7);
        for serial in 8..count {
            slab.insert(handle(serial), serial);
            assert_eq!(slab.remove(handle(serial)), Some(serial));
        }
        assert_eq!(page_counts(&slab), (1, 1), "that of the one that is alive");
        assert_eq!(
            (slab.lifetime(handle(7)), slab.lifetime(handle(count - 1))),
            (ObjectLifetime::Alive, ObjectLifetime::Destroyed)
        );
        assert_eq!(
            (slab.lifetime(handle(6)), slab.lifetime(handle(count))),
            (ObjectLifetime::NeverCreated, ObjectLifetime::NeverCreated)
        );
        // A cancelled command may insert the same handle again.
        slab.insert(handle(count - 1), 1);
        let [dead, alive] = [count - 2, count - 1].map(|it| slab.lifetime(handle(it)));
        assert_eq!((dead, alive, slab.len()), (ObjectLifetime::Destroyed, ObjectLifetime::Alive, 2));
    }

    /// Ids without an object here may belong to another device.
    #[test]
    fn numbers_that_never_come_hold_no_slots() {
        let mut slab = Slab::default();
        for serial in (0..2000).step_by(2) {
            slab.insert(handle(serial), serial);
            slab.remove(handle(serial));
        }
        assert_eq!(page_counts(&slab), (1, 1), "the next one may come into the last page");
        assert_eq!(
            (slab.lifetime(handle(0)), slab.lifetime(handle(1))),
            (ObjectLifetime::Destroyed, ObjectLifetime::NeverCreated)
        );
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
