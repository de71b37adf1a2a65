//! What lies where, and beside what.

#![expect(clippy::single_range_in_vec_init, clippy::cloned_ref_to_slice_refs, reason = "lists of one range are meant")]

use lavascope_abi::{Format, ImageAspectFlags};
use lavascope_sync_ir::{ImageDesc, Tiling};

use super::*;

const MEMORY: MemoryId = MemoryId(3);

fn at(offset: u64, size: u64) -> Option<MemoryBinding> {
    Some(MemoryBinding { memory: MEMORY, offset, size })
}

fn buffer(binding: Option<MemoryBinding>) -> Resource {
    Resource::new(ResourceKind::Buffer { size: 16 }, binding)
}

/// Sixteen texels.
fn image(alias: bool, tiling: Tiling, binding: Option<MemoryBinding>) -> Resource {
    let format = Format::R8G8B8A8_UNORM;
    let kind = ResourceKind::Image(ImageDesc { format, extent: [4, 4, 1], mips: 1, layers: 1, tiling, alias });
    Resource::new(kind, binding)
}

fn tiled(binding: Option<MemoryBinding>) -> Resource {
    image(false, Tiling::Optimal, binding)
}

fn sparse(resource: Resource) -> Resource {
    Resource { is_sparse: true, ..resource }
}

/// All of an image, or some rows of it.
fn region(components: u8, rows: Option<Range<u32>>) -> ImageRegion {
    let area = rows.map(|it| lavascope_sync_ir::Area { offset: [0, it.start, 0], extent: [4, it.end - it.start, 1] });
    let aspects = ImageAspectFlags::COLOR.0;
    ImageRegion { aspects, mips: 0..1, layers: 0..1, area, components: Components(components) }
}

fn is_settled(addresses: &AddressMap, resource: ResourceId, region: &Region) -> bool {
    !matches!(addresses.look_up(resource, region), AddressLookup::NotFixed)
}

fn all() -> Region {
    Region::Image(region(15, None))
}

fn bind(resource: ResourceId, part: SparsePart, size: u64, offset: Option<u64>) -> SparseBind {
    SparseBind { resource, part, size, memory: offset.map(|it| (MEMORY, it)) }
}

#[test]
fn ids_are_given_again() {
    let mut addresses = AddressMap::default();
    let [one, two] = [(); 2].map(|()| addresses.add(&buffer(None)));
    addresses.destroy(one);
    // Something may still wait that uses it.
    let three = addresses.add(&buffer(None));
    assert_eq!([one, two, three], [0, 1, 2].map(ResourceId));
    addresses.remove_destroyed();
    assert_eq!(addresses.add(&buffer(None)), one);
    // Somebody gives this number to another before it is gone.
    addresses.destroy(two);
    addresses.set(two, &buffer(None));
    addresses.remove_destroyed();
    assert_eq!(addresses.add(&buffer(None)), ResourceId(3));
    // A number that is far off: those before it may be given.
    addresses.set(ResourceId(6), &buffer(None));
    let more = [(); 3].map(|()| addresses.add(&buffer(None)).0);
    assert!(more.contains(&4) && more.contains(&5) && more.contains(&7), "{more:?}");
}

#[test]
fn what_may_be_given_is_counted_once() {
    let mut addresses = AddressMap::default();
    for _ in 0..100 {
        addresses.set(ResourceId(4), &buffer(at(0, 16)));
        addresses.destroy(ResourceId(4));
        addresses.remove_destroyed();
    }
    assert!(addresses.free.len() == 5 && addresses.destroyed.is_empty(), "{}", addresses.free.len());
    // So is one that was passed over.
    addresses.set(ResourceId(2), &buffer(None));
    addresses.destroy(ResourceId(2));
    addresses.remove_destroyed();
    assert_eq!(addresses.free.len(), 5);
    let given: Vec<u32> = (0..6).map(|_| addresses.add(&buffer(None)).0).collect();
    assert!((0..6).all(|it| given.contains(&it)), "{given:?}");
}

#[test]
fn resources_are_never_neighbors() {
    let mut addresses = AddressMap::default();
    let none = Resource::new(ResourceKind::Buffer { size: 0 }, None);
    let ids = [buffer(None), none.clone(), none, tiled(None), buffer(None)].map(|it| addresses.add(&it));
    for pair in ids.windows(2) {
        assert!(addresses.whole(pair[0]).end < addresses.whole(pair[1]).start);
    }
    assert_eq!(addresses.whole(ids[0]), 0..16);
    assert_eq!(addresses.ranges(ids[4], &Region::Buffer(4..99)).first().map(|it| it.end - it.start), Some(12));
    assert_eq!(addresses.ranges(ids[4], &Region::Buffer(16..99)), []);
    assert_eq!(addresses.relative_ranges(ids[4], &Region::Buffer(4..99)), [4..16]);
    assert_eq!(addresses.relative_ranges(ids[4], &Region::Buffer(16..99)), []);
    assert_eq!((addresses.ranges(ids[4], &all()), addresses.relative_ranges(ids[4], &all())), (vec![], vec![]));
}

#[test]
fn who_has_addresses_alone() {
    let mut addresses = AddressMap::default();
    let [one, two, far] = [at(0, 16), at(8, 16), at(64, 16)].map(|it| addresses.add(&buffer(it)));
    let over = addresses.add(&tiled(at(0, 64)));
    let twins = [(); 2].map(|()| addresses.add(&image(true, Tiling::Optimal, at(128, 64))));
    let pages = addresses.add(&sparse(buffer(None)));
    for resource_id in [one, two, twins[0], twins[1], pages] {
        assert_eq!(addresses.unshared_ranges(resource_id), [], "{resource_id:?}");
    }
    for resource_id in [far, over] {
        assert_eq!(addresses.unshared_ranges(resource_id), [addresses.whole(resource_id)], "{resource_id:?}");
    }
    addresses.destroy(one);
    addresses.remove_destroyed();
    assert_eq!(addresses.unshared_ranges(two), [addresses.whole(two)]);
    assert_eq!(addresses.unshared_ranges(ResourceId(99)), []);
}

#[test]
fn names_of_one_memory() {
    let mut addresses = AddressMap::default();
    let below = addresses.add(&buffer(at(0, 16)));
    let over = addresses.add(&tiled(at(8, 64)));
    let linear = addresses.add(&image(false, Tiling::Linear, at(4, 64)));
    let beside = addresses.add(&tiled(at(100, 64)));
    let [first, second] = [(); 2].map(|()| addresses.add(&image(true, Tiling::Optimal, at(100, 64))));
    assert_eq!(addresses.aliases_of(over), [below, linear]);
    assert_eq!((addresses.aliases_of(below), addresses.aliases_of(linear)), (vec![over], vec![over]));
    assert_eq!(addresses.aliases_of(beside), [first, second]);
    assert_eq!((addresses.aliases_of(first), addresses.aliases_of(second)), (vec![beside], vec![beside]));
    assert!(addresses.has_aliases(below) && !addresses.has_aliases(ResourceId(99)));
    assert_eq!(addresses.identity(first), addresses.identity(second));
    assert_ne!(addresses.identity(first), addresses.identity(beside));
    // The last bytes of the buffer, and all of the image.
    let base = addresses.whole(below).start;
    let whole = addresses.whole(over);
    assert_eq!(addresses.aliased_ranges(below, &[base..base + 12]), [(base + 8..base + 12, whole.clone())]);
    assert_eq!(addresses.aliased_ranges(below, &[base..base + 8]), []);
    let theirs: Vec<Range<u64>> = addresses.aliased_ranges(over, &[whole]).into_iter().map(|it| it.1).collect();
    assert_eq!(theirs, [base + 8..base + 16, base + 8..base + 68]);
    addresses.destroy(over);
    addresses.remove_destroyed();
    assert!(!addresses.has_aliases(below) && !addresses.has_aliases(linear));
    assert_eq!(addresses.aliases_of(beside), [first, second]);
}

#[test]
fn components_have_addresses_of_their_own() {
    let mut addresses = AddressMap::default();
    let [one, two] = [(); 2].map(|()| addresses.add(&image(true, Tiling::Optimal, at(0, 64))));
    let other = addresses.add(&tiled(None));
    let (red, green) = (Region::Image(region(1, None)), Region::Image(region(2, Some(1..2))));
    assert!(addresses.needs_component_planes(one, &red) && !addresses.needs_component_planes(one, &all()));
    assert!(is_settled(&addresses, one, &all()) && !is_settled(&addresses, one, &red));
    let (old, planes) = addresses.add_component_planes(one);
    assert_eq!((old, addresses.move_count()), (0..16, 1));
    assert!(!addresses.needs_component_planes(two, &red) && is_settled(&addresses, two, &red));
    assert_eq!(planes.windows(2).map(|it| it[1] - it[0]).collect::<Vec<_>>(), [16; 3]);
    assert!(planes[0] > addresses.whole(other).end);
    assert_eq!(addresses.whole(two), planes[0]..planes[3] + 16);
    assert_eq!(addresses.ranges(two, &red), [planes[0]..planes[0] + 16]);
    assert_eq!(addresses.ranges(two, &green), [planes[1] + 4..planes[1] + 8]);
    assert_eq!(addresses.ranges(one, &all()).len(), 4);
    assert_eq!(addresses.regions(two, &(planes[1] + 4..planes[1] + 8)), [green.clone()]);
    assert_eq!(addresses.relative_ranges(two, &green), [4..8]);
    assert_eq!(addresses.relative_regions(two, &(4..8)), [Region::Image(region(15, Some(1..2)))]);
    // What comes later lies elsewhere, and another name of the image has the same.
    let (later, third) = (addresses.add(&tiled(None)), addresses.add(&image(true, Tiling::Optimal, at(0, 64))));
    assert!(addresses.whole(later).start > planes[3] + 16);
    assert_eq!((addresses.whole(third), addresses.identity(third)), (addresses.whole(one), addresses.identity(one)));
    assert_eq!(addresses.whole(other), 17..33);
}

/// A component that the format has not is nothing, and all that it has is all.
#[test]
fn components_are_those_of_the_format() {
    let of = |format| {
        let mut resource = image(false, Tiling::Optimal, at(0, 64));
        let ResourceKind::Image(image) = &mut resource.kind else { panic!("an image") };
        image.format = format;
        resource
    };
    let mut addresses = AddressMap::default();
    let wants = |addresses: &AddressMap, resource_id, components| {
        addresses.needs_component_planes(resource_id, &Region::Image(region(components, None)))
    };
    let (red, alpha) = (addresses.add(&of(Format::R8_UNORM)), addresses.add(&of(Format::A8_UNORM)));
    for components in 0..=15 {
        assert_eq!(wants(&addresses, red, components), components & 1 == 0, "{components}");
        assert_eq!(wants(&addresses, alpha, components), components & 8 == 0, "{components}");
    }
    let two = addresses.add(&of(Format::R8G8_UNORM));
    assert!(wants(&addresses, two, 1) && wants(&addresses, two, 14) && !wants(&addresses, two, 3));
    let (_, planes) = addresses.add_component_planes(two);
    assert_eq!(planes.len(), 2);
    let ranges = |components| addresses.ranges(two, &Region::Image(region(components, None)));
    let both = [planes[0]..planes[0] + 16, planes[1]..planes[1] + 16];
    assert_eq!((ranges(15), ranges(3)), (both.to_vec(), both.to_vec()));
    assert_eq!((ranges(14), ranges(12)), (vec![planes[1]..planes[1] + 16], vec![]));
    assert_eq!(addresses.whole(two), planes[0]..planes[1] + 16);
    // Depth is no color.
    let depth = addresses.add(&of(Format::D16_UNORM));
    assert!((0..=15).all(|it| !wants(&addresses, depth, it)));
    let (_, planes) = addresses.add_component_planes(alpha);
    assert_eq!(addresses.ranges(alpha, &Region::Image(region(15, None))), [planes[0]..planes[0] + 16]);
    assert_eq!(addresses.whole(alpha).end, planes[0] + 16);
}

/// Byte by byte there are no components.
#[test]
fn linear_images_have_no_planes() {
    let mut addresses = AddressMap::default();
    let linear = addresses.add(&image(false, Tiling::Linear, at(32, 64)));
    let base = addresses.whole(linear).start;
    assert!(!addresses.needs_component_planes(linear, &Region::Image(region(1, None))));
    assert_eq!(addresses.ranges(linear, &Region::Image(region(1, Some(1..3)))), [base + 16..base + 48]);
    assert_eq!(addresses.regions(linear, &(base + 16..base + 48)), [Region::Image(region(15, Some(1..3)))]);
}

/// Programs create resources while others have their memory already.
#[test]
fn what_is_added_after_a_binding_is_related_to_it() {
    let mut addresses = AddressMap::default();
    let pages = addresses.add(&sparse(buffer(None)));
    let moves = addresses.move_count();
    addresses.bind(&bind(pages, SparsePart::Bytes(0), 16, Some(32)));
    let over = addresses.add(&image(true, Tiling::Optimal, at(40, 16)));
    let beside = addresses.add(&tiled(at(64, 16)));
    assert!(addresses.has_aliases(pages) && addresses.has_aliases(over) && !addresses.has_aliases(beside));
    assert_eq!(addresses.move_count(), moves);
    assert!(!is_settled(&addresses, pages, &Region::Buffer(0..16)) && is_settled(&addresses, over, &all()));
    assert!(addresses.is_sparse(pages) && !addresses.is_sparse(over));
    addresses.destroy(over);
    addresses.remove_destroyed();
    assert!(!addresses.has_aliases(pages));
}

#[test]
fn pages_of_a_buffer() {
    let mut addresses = AddressMap::default();
    let pages = addresses.add(&sparse(buffer(None)));
    let below = addresses.add(&buffer(at(0, 16)));
    let over = addresses.add(&tiled(at(8, 64)));
    let base = addresses.whole(below).start;
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..16)), []);
    assert_eq!(addresses.bind(&bind(pages, SparsePart::Bytes(8), 8, Some(4))), []);
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..12)), [base + 4..base + 8]);
    assert_eq!(addresses.regions(pages, &(base..base + 8)), [Region::Buffer(8..12)]);
    // The image begins four bytes before the page ends.
    let whole = addresses.whole(over);
    assert_eq!(addresses.aliased_ranges(pages, &[base + 4..base + 12]), [(base + 8..base + 12, whole.clone())]);
    assert_eq!(
        addresses.aliased_ranges(over, &[whole.clone()]).into_iter().map(|it| it.1).collect::<Vec<_>>(),
        [base + 8..base + 16, base + 8..base + 12]
    );
    addresses.bind(&bind(pages, SparsePart::Bytes(12), 4, None));
    assert_eq!((addresses.aliases_of(pages), addresses.aliases_of(over)), (vec![], vec![below]));
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..16)), [base + 4..base + 8]);
    // What is not sparse, or not there, is not bound.
    assert_eq!(addresses.bind(&bind(below, SparsePart::Bytes(0), 16, Some(32))), []);
    assert_eq!(addresses.bind(&bind(ResourceId(99), SparsePart::Bytes(0), 16, Some(32))), []);
    assert_eq!(addresses.ranges(below, &Region::Buffer(0..16)), [base..base + 16]);
}

#[test]
fn blocks_of_an_image() {
    let mut addresses = AddressMap::default();
    let (low, high) = (addresses.add(&buffer(at(0, 16))), addresses.add(&buffer(at(32, 16))));
    let tiles = addresses.add(&sparse(tiled(None)));
    let first = addresses.whole(tiles).start;
    assert_eq!(addresses.ranges(tiles, &all()), []);
    let rows = |rows| SparsePart::Texels(region(15, Some(rows)));
    assert_eq!(addresses.bind(&bind(tiles, rows(0..2), 16, Some(0))), []);
    assert_eq!(addresses.bind(&bind(tiles, rows(2..3), 16, Some(32))), []);
    assert_eq!(addresses.ranges(tiles, &all()), [first..first + 12]);
    assert_eq!((addresses.aliases_of(low), addresses.aliases_of(high)), (vec![tiles], vec![tiles]));
    let (base, top) = (addresses.whole(low).start, addresses.whole(high).start);
    assert_eq!(addresses.aliased_ranges(tiles, &[first..first + 1]), [(first..first + 1, base..base + 16)]);
    assert_eq!(addresses.aliased_ranges(low, &[base..base + 16]), [(base..base + 16, first..first + 8)]);
    assert_eq!(addresses.aliased_ranges(high, &[top..top + 1]), [(top..top + 1, first + 8..first + 12)]);
    // The second row moves to where the third one is; what was there of it is forgotten.
    assert_eq!(addresses.bind(&bind(tiles, rows(1..2), 16, Some(32))), [first + 4..first + 8]);
    assert_eq!(addresses.bind(&bind(tiles, rows(1..2), 16, Some(32))), []);
    assert_eq!(addresses.bind(&bind(tiles, rows(0..1), 16, None)), [first..first + 4]);
    assert_eq!((addresses.aliases_of(low), addresses.aliases_of(high)), (vec![], vec![tiles]));
    // Told apart by components, it has the same memory.
    let (_, planes) = addresses.add_component_planes(tiles);
    let red = Region::Image(region(1, None));
    assert_eq!(addresses.ranges(tiles, &red), [planes[0] + 4..planes[0] + 12]);
    let whole = addresses.whole(tiles);
    assert_eq!(addresses.aliased_ranges(high, &[top..top + 1])[0], (top..top + 1, whole.clone()));
    assert_eq!(addresses.bind(&bind(tiles, rows(1..2), 16, None)), [whole]);
    addresses.destroy(tiles);
    addresses.remove_destroyed();
    assert!(!addresses.has_aliases(high));
}

#[test]
fn bytes_of_a_tiled_image() {
    let mut addresses = AddressMap::default();
    let low = addresses.add(&buffer(at(0, 16)));
    let tiles = addresses.add(&sparse(tiled(None)));
    let whole = addresses.whole(tiles);
    assert_eq!(addresses.bind(&bind(tiles, SparsePart::Bytes(0), 32, Some(8))), []);
    assert_eq!(addresses.ranges(tiles, &all()), [whole.clone()]);
    let base = addresses.whole(low).start;
    assert_eq!(addresses.aliased_ranges(low, &[base..base + 16]), [(base + 8..base + 16, whole.clone())]);
    // Half of it moves away.
    assert_eq!(addresses.bind(&bind(tiles, SparsePart::Bytes(0), 16, Some(64))), [whole.clone()]);
    assert_eq!(addresses.bind(&bind(tiles, SparsePart::Bytes(0), 16, Some(64))), []);
    assert!(!addresses.has_aliases(low) && !addresses.has_aliases(tiles));
}

/// Two sparse images, of which one gets a page that the other has.
#[test]
fn sparse_images_share_a_page() {
    let mut addresses = AddressMap::default();
    let [one, two] = [(); 2].map(|()| addresses.add(&sparse(tiled(None))));
    addresses.bind(&bind(one, SparsePart::Bytes(0), 32, Some(0)));
    addresses.bind(&bind(two, SparsePart::Bytes(0), 32, Some(32)));
    assert!(!addresses.has_aliases(one) && !addresses.has_aliases(two));
    addresses.bind(&bind(two, SparsePart::Bytes(0), 32, Some(31)));
    assert_eq!((addresses.aliases_of(one), addresses.aliases_of(two)), (vec![two], vec![one]));
    addresses.bind(&bind(one, SparsePart::Bytes(0), 32, None));
    assert!(!addresses.has_aliases(one) && !addresses.has_aliases(two));
}

/// Memory that nothing lies in any more is given up sometime, with what is known of it.
#[test]
fn memory_goes_with_what_lies_in_it() {
    let mut addresses = AddressMap::default();
    let pages = addresses.add(&sparse(buffer(None)));
    let mut gone = 0;
    for number in 0..10_000 {
        let memory = Some((MemoryId(number), 0));
        addresses.bind(&SparseBind { resource: pages, part: SparsePart::Bytes(0), size: 16, memory });
        let kind = ResourceKind::Buffer { size: 16 };
        let binding = MemoryBinding { memory: MemoryId(number + 20_000), offset: 0, size: 16 };
        let id = addresses.add(&Resource::new(kind, Some(binding)));
        assert!(id.0 <= 2);
        addresses.destroy(id);
        addresses.remove_destroyed();
        gone += addresses.take_freed_ranges().len();
    }
    assert!(gone > 10_000 && addresses.next < 100, "{gone} {}", addresses.next);
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..16)).len(), 1);
}

/// What is too large, or one too many, is reported and accesses nothing; all else stays apart.
#[test]
fn what_there_is_no_room_for_has_no_addresses() {
    let mut addresses = AddressMap::default();
    let unplaced = |addresses: &mut AddressMap| addresses.take_unplaced().into_iter().collect::<Vec<_>>();
    let nothing = |addresses: &AddressMap, id| addresses.ranges(id, &Region::Buffer(0..16)).is_empty();
    let far = addresses.add(&buffer(at((1 << 40) - 8, 16)));
    let image = addresses.add(&tiled(at((1 << 40) - 8, 16)));
    assert!(nothing(&addresses, far) && addresses.ranges(image, &all()).is_empty());
    assert!(matches!(addresses.look_up(far, &Region::Buffer(0..16)), AddressLookup::Empty));
    assert!(!addresses.has_aliases(far) && addresses.aliases_of(image).is_empty());
    assert_eq!(unplaced(&mut addresses), [(UnplacedReason::MemoryTooLarge, 2)]);
    assert_eq!(unplaced(&mut addresses), []);
    let large = addresses.add(&Resource::new(ResourceKind::Buffer { size: u64::MAX }, None));
    let half = addresses.add(&Resource::new(ResourceKind::Buffer { size: MEMORY_ADDRESSES_BEGIN - 40 }, None));
    let over = addresses.add(&Resource::new(ResourceKind::Buffer { size: 39 }, None));
    assert!(nothing(&addresses, large) && !nothing(&addresses, half) && nothing(&addresses, over));
    assert_eq!(unplaced(&mut addresses), [(UnplacedReason::AddressSpaceFull, 2)]);
    // The planes of an image that has room for itself only.
    let last = addresses.add(&tiled(None));
    assert!(!addresses.ranges(last, &all()).is_empty());
    let red = Region::Image(region(1, None));
    assert!(addresses.needs_component_planes(last, &red));
    assert!(addresses.add_component_planes(last).1.is_empty());
    assert!(addresses.ranges(last, &all()).is_empty() && !addresses.needs_component_planes(last, &red));
    assert_eq!(unplaced(&mut addresses), [(UnplacedReason::AddressSpaceFull, 1)]);
    // Its number may be given again.
    addresses.destroy(far);
    addresses.remove_destroyed();
    assert_eq!(addresses.add(&buffer(at(0, 16))), far);
    assert!(!nothing(&addresses, far));
}

/// A part of something sparse for whose memory there is no room has none.
#[test]
fn what_is_bound_too_far_off_is_not_bound() {
    let mut addresses = AddressMap::default();
    let pages = addresses.add(&sparse(buffer(None)));
    let bind = |offset: u64| bind(pages, SparsePart::Bytes(0), 16, Some(offset));
    addresses.bind(&bind(64));
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..16)).len(), 1);
    addresses.bind(&bind(1 << 40));
    assert_eq!(addresses.ranges(pages, &Region::Buffer(0..16)), []);
    assert_eq!(addresses.take_unplaced().into_iter().collect::<Vec<_>>(), [(UnplacedReason::MemoryTooLarge, 1)]);
}

/// What lies in one run is looked up as one; with planes there is a run in each.
#[test]
fn runs_are_looked_up() {
    let mut addresses = AddressMap::default();
    let image = addresses.add(&tiled(None));
    let runs = |addresses: &AddressMap, region: &Region| match addresses.look_up(image, region) {
        AddressLookup::One(range, _) => (None, range.end - range.start),
        AddressLookup::Many(all, _) => (Some(all.len()), all.iter().map(|it| it.end - it.start).sum()),
        AddressLookup::Empty | AddressLookup::NotFixed => (Some(0), 0),
    };
    let rows = Region::Image(region(15, Some(1..3)));
    assert_eq!((runs(&addresses, &all()), runs(&addresses, &rows)), ((None, 16), (None, 8)));
    addresses.add_component_planes(image);
    assert_eq!((runs(&addresses, &all()), runs(&addresses, &rows)), ((Some(4), 64), (Some(4), 32)));
    assert_eq!(runs(&addresses, &Region::Image(region(4, None))), (None, 16));
}
