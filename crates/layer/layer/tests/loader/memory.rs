//! Host writes to mapped memory are in the trace before the call that makes them visible to the device, byte for byte,
//! with every method of detection.
//!
//! A random program is executed twice from one seed: in the child with Vulkan, here with plain vectors. At every
//! submission of the trace, the contents of each memory in the trace must equal the vectors.

use lavascope_test_support::{TestRng, lavapipe};
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::sync::{Barrier, Mutex};

use ash::vk;
use lavascope_abi::Command;
use lavascope_record::{Call, HostWrite, RecordPhase, check};
use lavascope_trace::{MergedReader, Trace};

use crate::child::{ChildOutcome, child};
use crate::world::{Setup, World, entry};

/// Where a memory is in the program; another may be there later.
const SLOTS: usize = 4;
const SIZE_MAX: usize = 200_000;

/// Executes the program.
trait Actor {
    fn allocate(&mut self, slot: usize, size: usize);
    fn map(&mut self, slot: usize, range: Range<usize>, is_second: bool);
    fn write(&mut self, slot: usize, at: usize, bytes: &[u8], how: WriteMethod);
    fn flush(&mut self, slot: usize, range: Range<usize>);
    fn unmap(&mut self, slot: usize);
    fn free(&mut self, slot: usize);
    fn submit(&mut self, is_second: bool);
}

#[derive(Clone, Copy, PartialEq)]
enum WriteMethod {
    Plain,
    /// By a call of the system.
    Read,
    /// By another thread.
    Thread,
}

/// A memory of the program: its size, and what of it is mapped.
struct MemorySlot {
    size: usize,
    mapped: Option<Range<usize>>,
}

/// A random program. Every write is to mapped memory.
fn run_steps(seed: u64, steps: usize, ways: &[WriteMethod], actor: &mut impl Actor) {
    let mut random = TestRng::new(seed);
    let mut slots: [Option<MemorySlot>; SLOTS] = [const { None }; SLOTS];
    for _ in 0..steps {
        let slot = random.below(SLOTS);
        let choice = random.below(20);
        match &mut slots[slot] {
            memory_slot @ None => {
                let size = 1 + random.below(SIZE_MAX);
                actor.allocate(slot, size);
                *memory_slot = Some(MemorySlot { size, mapped: None });
            }
            Some(MemorySlot { size, mapped: mapped @ None }) => {
                let range = if random.below(2) == 0 { 0..*size } else { random.range(0..*size) };
                actor.map(slot, range.clone(), random.below(2) == 0);
                *mapped = Some(range);
            }
            memory_slot @ Some(_) if choice == 0 => {
                actor.free(slot);
                *memory_slot = None;
            }
            Some(MemorySlot { mapped, .. }) if choice == 1 => {
                actor.unmap(slot);
                *mapped = None;
            }
            Some(MemorySlot { mapped: Some(mapped), .. }) if choice < 4 => {
                let range = random.range(mapped.clone());
                actor.flush(slot, range);
            }
            Some(MemorySlot { mapped: Some(mapped), .. }) if choice < 16 => {
                let range = random.range(mapped.clone());
                let size = if random.below(3) == 0 { range.len() } else { range.len().min(1 + random.below(40)) };
                // Few values, so that bytes are often what they were.
                let bytes: Vec<u8> = match random.below(2) {
                    0 => vec![random.below(3) as u8; size],
                    _ => (0..size).map(|_| random.below(4) as u8).collect(),
                };
                actor.write(slot, range.start, &bytes, ways[random.below(ways.len())]);
            }
            _ => actor.submit(random.below(2) == 0),
        }
    }
}

/// The program with Vulkan.
struct LiveActor<'a> {
    world: &'a World,
    /// Whether the system must know which pages are written.
    is_watched: bool,
    memory_type: u32,
    slots: [(vk::DeviceMemory, *mut u8, usize); SLOTS],
    /// Lavapipe of some versions does not have it.
    second: Option<ash::khr::map_memory2::Device>,
    /// Whether memory is mapped where the program wants it.
    is_placed: bool,
}

impl<'a> LiveActor<'a> {
    fn new(world: &'a World, has_second: bool) -> LiveActor<'a> {
        let second = has_second.then(|| ash::khr::map_memory2::Device::new(&world.instance, &world.device));
        let slots = [(vk::DeviceMemory::null(), std::ptr::null_mut(), 0); SLOTS];
        LiveActor { world, is_watched: false, memory_type: visible_type(world), slots, second, is_placed: false }
    }
}

impl LiveActor<'_> {
    /// Maps whole pages at addresses that were reserved for it.
    fn map_placed(&mut self, slot: usize, range: Range<usize>) {
        const PAGE: usize = 4096;
        let (start, end) = (range.start / PAGE * PAGE, range.end.next_multiple_of(PAGE));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the system's choice.
        let reserved = unsafe { libc::mmap(std::ptr::null_mut(), end - start, libc::PROT_NONE, flags, -1, 0) };
        let mut placed = vk::MemoryMapPlacedInfoEXT { p_placed_address: reserved, ..Default::default() };
        let info = vk::MemoryMapInfoKHR::default()
            .flags(vk::MemoryMapFlags::PLACED_EXT)
            .memory(self.slots[slot].0)
            .offset(start as u64)
            .size((end - start) as u64)
            .push_next(&mut placed);
        let second = self.second.as_ref().expect("the extension is there");
        let mut host = std::ptr::null_mut();
        // SAFETY: the memory is not mapped and has these pages; `reserved` is a range of addresses of that size that
        // only this mapping takes (VUID-VkMemoryMapInfo-flags-09570). `info`, `placed` and `host` live here (lifetime,
        // owner).
        let result =
            unsafe { (second.fp().map_memory2_khr)(self.world.device.handle(), &raw const info, &raw mut host) };
        assert_eq!((result, host), (vk::Result::SUCCESS, reserved));
        (self.slots[slot].1, self.slots[slot].2) = (host.cast(), start);
    }
}

/// Whether the kernel is new enough: 6.7.
fn has_page_tracking() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|it| it.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}

/// The system's state of the page of an address: `wr` if it is writable, `uw` if writes are tracked.
fn flags_of(address: usize) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").expect("there are maps");
    let mut is_inside = false;
    for line in maps.lines() {
        let range = line.split_once(' ').and_then(|it| it.0.split_once('-'));
        if let Some((start, end)) = range {
            let number = |it| usize::from_str_radix(it, 16).ok();
            is_inside = number(start).is_some_and(|it| it <= address) && number(end).is_some_and(|it| address < it);
        }
        if let (true, Some(flags)) = (is_inside, line.strip_prefix("VmFlags:")) {
            return flags.split_whitespace().map(str::to_owned).collect();
        }
    }
    Vec::new()
}

fn visible_type(world: &World) -> u32 {
    type_with(world, |it| it.contains(vk::MemoryPropertyFlags::HOST_VISIBLE))
}

/// The first memory type of some kind.
fn type_with(world: &World, is_wanted: impl Fn(vk::MemoryPropertyFlags) -> bool) -> u32 {
    // SAFETY: the world's instance is alive, and the physical device is of it (lifetime).
    let properties = unsafe {
        let physical = world.instance.enumerate_physical_devices().expect("there is one")[0];
        world.instance.get_physical_device_memory_properties(physical)
    };
    let types = &properties.memory_types[..properties.memory_type_count as usize];
    types.iter().position(|it| is_wanted(it.property_flags)).expect("every device has one") as u32
}

impl Actor for LiveActor<'_> {
    fn allocate(&mut self, slot: usize, size: usize) {
        let info = vk::MemoryAllocateInfo::default().allocation_size(size as u64).memory_type_index(self.memory_type);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        self.slots[slot].0 = unsafe { self.world.device.allocate_memory(&info, None) }.expect("there is room");
        // New memory of lavapipe has the contents of an earlier use.
        self.map(slot, 0..size, false);
        self.write(slot, 0, &vec![0; size], WriteMethod::Plain);
        self.unmap(slot);
    }

    fn map(&mut self, slot: usize, range: Range<usize>, is_second: bool) {
        if self.is_placed {
            return self.map_placed(slot, range);
        }
        let (memory, offset, size) = (self.slots[slot].0, range.start as u64, range.len() as u64);
        let info = vk::MemoryMapInfoKHR::default().memory(memory).offset(offset).size(size);
        let device = &self.world.device;
        let mut host = std::ptr::null_mut();
        // SAFETY: the program of the test maps a slot only where it is not mapped (VUID-vkMapMemory-memory-00678), and
        // a range inside of its memory (lifetime, owner).
        unsafe {
            if let Some(second) = self.second.as_ref().filter(|_| is_second) {
                let result = (second.fp().map_memory2_khr)(device.handle(), &raw const info, &raw mut host);
                assert_eq!(result, vk::Result::SUCCESS);
            } else {
                host = device.map_memory(memory, offset, size, vk::MemoryMapFlags::empty()).expect("it can be mapped");
            }
        }
        (self.slots[slot].1, self.slots[slot].2) = (host.cast(), range.start);
        if self.is_watched {
            let is_watched = flags_of(host.addr()).iter().any(|it| it == "uw");
            assert!(is_watched, "the memory is not the one that is watched");
        }
    }

    fn write(&mut self, slot: usize, at: usize, bytes: &[u8], how: WriteMethod) {
        let (_, host, first) = self.slots[slot];
        // SAFETY: the program of the test writes only inside of what `map` mapped from `first` on, and nobody else has
        // a reference there: the layer reads copies that the system makes.
        let to = unsafe { std::slice::from_raw_parts_mut(host.add(at - first), bytes.len()) };
        match how {
            WriteMethod::Plain => to.copy_from_slice(bytes),
            WriteMethod::Thread => {
                std::thread::scope(|scope| _ = scope.spawn(|| to.copy_from_slice(bytes)));
            }
            WriteMethod::Read => {
                let (mut from, mut into) = std::io::pipe().expect("there are pipes");
                std::thread::scope(|scope| {
                    scope.spawn(move || into.write_all(bytes).expect("somebody reads"));
                    std::io::Read::read_exact(&mut from, to).expect("the system writes into mapped memory");
                });
            }
        }
    }

    fn flush(&mut self, slot: usize, range: Range<usize>) {
        let (offset, size) = (range.start as u64, range.len() as u64);
        let range = vk::MappedMemoryRange::default().memory(self.slots[slot].0).offset(offset).size(size);
        // SAFETY: the program of the test flushes only inside of what is mapped
        // (VUID-VkMappedMemoryRange-memory-00684), in ranges that the driver's atom divides (lifetime).
        unsafe { self.world.device.flush_mapped_memory_ranges(&[range]) }.expect("it can be flushed");
    }

    fn unmap(&mut self, slot: usize) {
        // SAFETY: the program of the test unmaps only what is mapped (VUID-vkUnmapMemory-memory-00689), and uses the
        // address no more (lifetime, owner).
        unsafe { self.world.device.unmap_memory(self.slots[slot].0) };
    }

    fn free(&mut self, slot: usize) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { self.world.device.free_memory(self.slots[slot].0, None) };
    }

    fn submit(&mut self, is_second: bool) {
        let World { device, queue, .. } = self.world;
        // SAFETY: a live queue that only this thread uses (lifetime, owner).
        unsafe {
            match is_second {
                true => device.queue_submit2(*queue, &[], vk::Fence::null()),
                false => device.queue_submit(*queue, &[], vk::Fence::null()),
            }
        }
        .expect("nothing can be submitted");
    }
}

type MemoryContents = BTreeMap<u64, Vec<u8>>;

/// The program with vectors.
#[derive(Default)]
struct Model {
    slots: [u64; SLOTS],
    allocated: u64,
    alive: MemoryContents,
    at_submissions: Vec<MemoryContents>,
}

impl Actor for Model {
    fn allocate(&mut self, slot: usize, size: usize) {
        self.slots[slot] = self.allocated;
        self.alive.insert(self.allocated, vec![0; size]);
        self.allocated += 1;
    }

    fn map(&mut self, _: usize, _: Range<usize>, _: bool) {}

    fn write(&mut self, slot: usize, at: usize, bytes: &[u8], _: WriteMethod) {
        let memory = self.alive.get_mut(&self.slots[slot]).expect("it is alive");
        memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn flush(&mut self, _: usize, _: Range<usize>) {}

    fn unmap(&mut self, _: usize) {}

    fn free(&mut self, slot: usize) {
        self.alive.remove(&self.slots[slot]);
    }

    fn submit(&mut self, _: bool) {
        self.at_submissions.push(self.alive.clone());
    }
}

/// The contents of the memories in a trace at each submission, and the number of their bytes in the trace.
fn replay(file: &[u8]) -> (Vec<MemoryContents>, usize) {
    let trace = Trace::open(file).expect("a trace");
    let mut merged = MergedReader::new(&trace, None);
    let (mut alive, mut at_submissions, mut bytes) = (MemoryContents::new(), Vec::new(), 0);
    let (mut sizes, mut count) = (BTreeMap::new(), 0);
    while let Some(merged_record) = merged.take_next().expect("whole") {
        if let Some(written) = HostWrite::parse(merged_record.record) {
            let memory = alive.get_mut(&written.memory().serial()).expect("only what is alive is written to");
            bytes += written.size();
            for (at, bytes) in written.runs() {
                memory[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
            }
            continue;
        }
        let record = check(merged_record.record).expect("a call");
        match (record.phase(), Call::of(record)) {
            (RecordPhase::Enter, Some(Call::AllocateMemory(call))) => {
                sizes.insert(merged_record.stream, call.p_allocate_info().expect("there is one").allocation_size);
            }
            (RecordPhase::Leave, _) if record.command() == Command::AllocateMemory => {
                alive.insert(count, vec![0; sizes[&merged_record.stream] as usize]);
                count += 1;
            }
            (RecordPhase::Enter, Some(Call::FreeMemory(call))) => _ = alive.remove(&(call.memory.0 & 0xffff_ffff)),
            (RecordPhase::Enter, Some(Call::QueueSubmit(_) | Call::QueueSubmit2(_))) => {
                at_submissions.push(alive.clone())
            }
            _ => {}
        }
    }
    assert_eq!((merged.out_of_order(), merged.damages().len()), (0, 0));
    (at_submissions, bytes)
}

fn assert_alike(found: &[MemoryContents], wanted: &[MemoryContents]) {
    assert_eq!(found.len(), wanted.len(), "submissions");
    for (at, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        assert!(found.keys().eq(wanted.keys()), "submission {at}: other memories are alive");
        for (memory, wanted) in wanted {
            let differs = found[memory].iter().zip(wanted).position(|it| it.0 != it.1);
            assert_eq!(differs, None, "submission {at}, memory {memory}: the first byte that differs");
        }
    }
}

const STEPS: usize = 1500;

/// A random program on a driver, in one way.
fn captured(name: &str, method: &str, driver: Option<&str>, ways: &[WriteMethod]) -> Option<ChildOutcome> {
    let mut environment = vec![
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", method),
        ("LAVASCOPE_REPORT", "{folder}/report"),
    ];
    environment.extend(driver.iter().flat_map(|it| [("VK_DRIVER_FILES", *it), ("VK_ICD_FILENAMES", *it)]));
    let seed = 0x5eed ^ name.len() as u64;
    let outcome = child(name, &environment, || {
        let entry = entry();
        let extensions: &[_] = if driver.is_none() { &[c"VK_KHR_map_memory2"] } else { &[] };
        let world = Setup { device_extensions: extensions, ..Setup::OFF }.world(&entry);
        let live = LiveActor::new(&world, driver.is_none());
        run_steps(
            seed,
            STEPS,
            ways,
            &mut LiveActor { is_watched: ["userfaultfd", "copy"].contains(&method) && has_page_tracking(), ..live },
        );
        world.destroy();
    })?;
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
    let mut model = Model::default();
    run_steps(seed, STEPS, ways, &mut model);
    let (found, bytes) = replay(&outcome.bytes("trace.lava"));
    assert_alike(&found, &model.at_submissions);
    assert!(bytes > 1_000_000, "{bytes} bytes were written");
    Some(outcome)
}

/// A random program that requests the addresses of mappings, on the null driver.
fn captured_placed(name: &str, method: &str, ways: &[WriteMethod]) {
    let environment = [
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", method),
        ("LAVASCOPE_REPORT", "{folder}/report"),
    ];
    let outcome = child(name, &environment, || {
        let entry = entry();
        let extensions = &[c"VK_KHR_map_memory2", c"VK_EXT_map_memory_placed"];
        let world = Setup { device_extensions: extensions, ..Setup::OFF }.world(&entry);
        run_steps(7, STEPS, ways, &mut LiveActor { is_placed: true, ..LiveActor::new(&world, true) });
        world.destroy();
    });
    let Some(outcome) = outcome else { return };
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
    let mut model = Model::default();
    run_steps(7, STEPS, ways, &mut model);
    let (found, _) = replay(&outcome.bytes("trace.lava"));
    assert_alike(&found, &model.at_submissions);
}

#[test]
fn comparing_finds_what_is_written_to_placed_memory() {
    captured_placed("memory::comparing_finds_what_is_written_to_placed_memory", "compare", &ALL_WAYS);
}

#[test]
fn faults_tell_what_is_written_to_placed_memory() {
    captured_placed("memory::faults_tell_what_is_written_to_placed_memory", "mprotect", &OWN_WAYS);
}

/// There the driver cannot import the layer's memory: another method is used automatically.
#[test]
fn any_way_finds_what_is_written_to_placed_memory() {
    captured_placed("memory::any_way_finds_what_is_written_to_placed_memory", "auto", &ALL_WAYS);
}

const ALL_WAYS: [WriteMethod; 3] = [WriteMethod::Plain, WriteMethod::Read, WriteMethod::Thread];

#[test]
fn comparing_finds_what_a_random_program_writes() {
    let name = "memory::comparing_finds_what_a_random_program_writes";
    captured(name, "compare", None, &ALL_WAYS);
}

#[test]
fn comparing_finds_what_a_random_program_writes_on_lavapipe() {
    let name = "memory::comparing_finds_what_a_random_program_writes_on_lavapipe";
    captured(name, "compare", Some(&lavapipe().to_string_lossy()), &ALL_WAYS);
}

const THREADS: usize = 4;
const ROUNDS: usize = 60;
const SLICE: usize = 5000;

/// Threads write, then all of them submit at once: each submission reads what all have written.
#[test]
fn what_several_threads_write_is_there_for_each_that_submits() {
    let name = "memory::what_several_threads_write_is_there_for_each_that_submits";
    let environment = [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let mut live = LiveActor::new(&world, false);
        live.allocate(0, THREADS * SLICE);
        live.map(0, 0..THREADS * SLICE, false);
        let host = live.slots[0].1.expose_provenance();
        let (barrier, queue) = (Barrier::new(THREADS), Mutex::new(()));
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let (world, barrier, queue) = (&world, &barrier, &queue);
                scope.spawn(move || {
                    let own = std::ptr::with_exposed_provenance_mut::<u8>(host + thread * SLICE);
                    // SAFETY: `THREADS * SLICE` bytes are mapped from `host` on until the scope ends, and each thread
                    // has a slice of its own; nobody else has a reference there.
                    let own = unsafe { std::slice::from_raw_parts_mut(own, SLICE) };
                    for round in 0..ROUNDS {
                        own.fill(round as u8 + 1);
                        barrier.wait();
                        let _guard = queue.lock();
                        // SAFETY: the mutex is held, so that only this thread uses the queue (owner).
                        unsafe { world.device.queue_submit(world.queue, &[], vk::Fence::null()) }.expect("submitted");
                        drop(_guard);
                        barrier.wait();
                    }
                });
            }
        });
        world.destroy();
    }) else {
        return;
    };
    let (found, _) = replay(&outcome.bytes("trace.lava"));
    assert_eq!(found.len(), THREADS * ROUNDS);
    for (at, tree_map) in found.iter().enumerate() {
        let round = (at / THREADS) as u8 + 1;
        assert!(tree_map[&0].iter().all(|it| *it == round), "submission {at}");
    }
}

/// The host writes, and the calls that make them visible to the device, in their order.
fn host_write_records(file: &[u8]) -> Vec<String> {
    let trace = Trace::open(file).expect("a trace");
    let (mut merged, mut records) = (MergedReader::new(&trace, None), Vec::new());
    while let Some(merged_record) = merged.take_next().expect("whole") {
        match HostWrite::parse(merged_record.record) {
            Some(host_write) => records.extend(host_write.runs().map(|it| format!("{}: {:?}", it.0, it.1))),
            None => {
                let record = check(merged_record.record).expect("a call");
                let is_enter = record.phase() == RecordPhase::Enter;
                let readers = [Command::QueueSubmit, Command::SetEvent, Command::FlushMappedMemoryRanges];
                let is_read = readers.contains(&record.command());
                records.extend((is_enter && is_read).then(|| record.command().desc().name.to_owned()));
            }
        }
    }
    records
}

/// Writes to memory that is not coherent are visible only after a flush. Before the first flush it is unknown whether
/// the application flushes at all.
#[test]
fn memory_that_is_not_coherent_is_reported_when_it_is_flushed() {
    let name = "memory::memory_that_is_not_coherent_is_reported_when_it_is_flushed";
    let environment = [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let ty = type_with(&world, |property_flags| {
            property_flags.contains(vk::MemoryPropertyFlags::HOST_VISIBLE)
                && !property_flags.contains(vk::MemoryPropertyFlags::HOST_COHERENT)
        });
        let info = vk::MemoryAllocateInfo::default().allocation_size(8192).memory_type_index(ty);
        let World { device, queue, .. } = &world;
        // SAFETY: new memory of 8192 bytes, which is mapped whole while it is written and flushed, unmapped and then
        // freed; only this thread uses it and the queue, to which nothing that uses it is submitted (lifetime, owner).
        unsafe {
            let memory = device.allocate_memory(&info, None).expect("there is room");
            let flush = |offset, size| {
                let range = vk::MappedMemoryRange::default().memory(memory).offset(offset).size(size);
                device.flush_mapped_memory_ranges(&[range]).expect("flushed");
            };
            let submit = || device.queue_submit(*queue, &[], vk::Fence::null()).expect("submitted");
            let host: *mut u8 =
                device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).expect("mapped").cast();
            host.write(1);
            submit();
            host.add(100).write(3);
            host.add(5000).write(2);
            flush(4096, 4096);
            submit();
            flush(0, vk::WHOLE_SIZE);
            device.unmap_memory(memory);
            device.free_memory(memory, None);
        }
        world.destroy();
    }) else {
        return;
    };
    let flush = "vkFlushMappedMemoryRanges";
    let wanted = ["0: [1]", "vkQueueSubmit", "5000: [2]", flush, "vkQueueSubmit", "100: [3]", flush];
    assert_eq!(host_write_records(&outcome.bytes("trace.lava")), wanted);
}

/// Imported host memory is accessible without a mapping, and setting an event allows the device to continue.
#[test]
fn imported_memory_and_events_count() {
    let name = "memory::imported_memory_and_events_count";
    const SIZE: usize = 8192;
    let environment = [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let world = Setup { device_extensions: &[c"VK_EXT_external_memory_host"], ..Setup::OFF }.world(&entry);
        let layout = std::alloc::Layout::from_size_align(SIZE, 4096).expect("a power of two");
        // SAFETY: the layout has a size that is not zero.
        let host = unsafe { std::alloc::alloc_zeroed(layout) };
        let handle_type = vk::ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
        let mut import = vk::ImportMemoryHostPointerInfoEXT::default().handle_type(handle_type);
        import.p_host_pointer = host.cast();
        let info =
            vk::MemoryAllocateInfo::default().allocation_size(SIZE as u64).memory_type_index(visible_type(&world));
        let device = &world.device;
        // SAFETY: `host` has `SIZE` bytes, more than 5000, is aligned to a page, and is given back after the memory
        // made of it was freed (VUID-VkImportMemoryHostPointerInfoEXT-handleType-01750). Nothing that uses the memory
        // or the event is submitted (lifetime, owner).
        unsafe {
            host.write(1);
            let memory = device.allocate_memory(&info.push_next(&mut import), None).expect("imported");
            let event = device.create_event(&vk::EventCreateInfo::default(), None).expect("made");
            device.queue_submit(world.queue, &[], vk::Fence::null()).expect("submitted");
            host.add(5000).write(2);
            device.set_event(event).expect("set");
            device.free_memory(memory, None);
            host.write(77);
            device.queue_submit(world.queue, &[], vk::Fence::null()).expect("submitted");
            device.destroy_event(event, None);
            std::alloc::dealloc(host, layout);
        }
        world.destroy();
    }) else {
        return;
    };
    let records = host_write_records(&outcome.bytes("trace.lava"));
    assert_eq!(records, ["0: [1]", "vkQueueSubmit", "5000: [2]", "vkSetEvent", "vkQueueSubmit"]);
}

#[test]
fn the_system_tells_what_a_random_program_writes() {
    let name = "memory::the_system_tells_what_a_random_program_writes";
    captured(name, "userfaultfd", None, &ALL_WAYS);
}

#[test]
fn the_system_tells_what_a_random_program_writes_on_lavapipe() {
    let name = "memory::the_system_tells_what_a_random_program_writes_on_lavapipe";
    captured(name, "userfaultfd", Some(&lavapipe().to_string_lossy()), &ALL_WAYS);
}

#[test]
fn a_copy_shows_what_a_random_program_writes() {
    let name = "memory::a_copy_shows_what_a_random_program_writes";
    captured(name, "copy", None, &ALL_WAYS);
}

#[test]
fn a_copy_shows_what_a_random_program_writes_on_lavapipe() {
    let name = "memory::a_copy_shows_what_a_random_program_writes_on_lavapipe";
    captured(name, "copy", Some(&lavapipe().to_string_lossy()), &ALL_WAYS);
}

/// The driver runs on the processor: the program gets a copy, and the system reports the pages of both sides.
#[test]
fn two_sides_show_what_a_random_program_writes_on_lavapipe() {
    let name = "memory::two_sides_show_what_a_random_program_writes_on_lavapipe";
    captured(name, "auto", Some(&lavapipe().to_string_lossy()), &ALL_WAYS);
}

/// Memory of the device that the host sees: the driver does not import it, and the processor does not cache it.
#[test]
fn memory_of_the_device_has_a_copy_by_itself() {
    let name = "memory::memory_of_the_device_has_a_copy_by_itself";
    let environment = [("LAVASCOPE_CAPTURE", "{folder}/trace.lava"), ("LAVASCOPE_REPORT", "{folder}/report")];
    let Some(outcome) = child(name, &environment, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let flags = vk::MemoryPropertyFlags::DEVICE_LOCAL | vk::MemoryPropertyFlags::HOST_VISIBLE;
        let memory_type = type_with(&world, |it| it.contains(flags));
        let live = LiveActor::new(&world, false);
        run_steps(9, STEPS, &ALL_WAYS, &mut LiveActor { is_watched: true, memory_type, ..live });
        world.destroy();
    }) else {
        return;
    };
    let mut model = Model::default();
    run_steps(9, STEPS, &ALL_WAYS, &mut model);
    let file = outcome.bytes("trace.lava");
    assert_alike(&replay(&file).0, &model.at_submissions);
    let trace = Trace::open(&file).expect("a trace");
    let metadata = trace.metadata();
    let detection = metadata.iter().find_map(|it| it["memory_detection"].as_array()).expect("it is described");
    let methods: Vec<(u64, &str)> = detection
        .iter()
        .map(|it| (it["type"].as_u64().expect("a number"), it["method"].as_str().expect("a word")))
        .collect();
    assert_eq!(methods, [(1, "userfaultfd"), (2, "userfaultfd"), (3, "userfaultfd"), (4, "copy")]);
}

#[test]
fn comparing_finds_what_is_written_to_placed_memory_instead_of_a_copy() {
    let name = "memory::comparing_finds_what_is_written_to_placed_memory_instead_of_a_copy";
    captured_placed(name, "copy", &ALL_WAYS);
}

/// Calls of the system cannot write to pages that fault.
const OWN_WAYS: [WriteMethod; 2] = [WriteMethod::Plain, WriteMethod::Thread];

#[test]
fn faults_tell_what_a_random_program_writes() {
    let name = "memory::faults_tell_what_a_random_program_writes";
    captured(name, "mprotect", None, &OWN_WAYS);
}

#[test]
fn faults_tell_what_a_random_program_writes_on_lavapipe() {
    let name = "memory::faults_tell_what_a_random_program_writes_on_lavapipe";
    captured(name, "mprotect", Some(&lavapipe().to_string_lossy()), &OWN_WAYS);
}

/// A program that handles its own faults keeps them, whether it asked for them before us or after.
#[test]
fn a_program_keeps_its_own_faults() {
    let name = "memory::a_program_keeps_its_own_faults";
    let environment = [
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", "mprotect"),
        ("LAVASCOPE_REPORT", "{folder}/report"),
    ];
    let Some(outcome) = child(name, &environment, || {
        let own = own_faults::Page::new();
        own_faults::install();
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let mut live = LiveActor::new(&world, false);
        live.allocate(0, 100_000);
        live.map(0, 0..100_000, false);
        live.submit(false);
        let flags = flags_of(live.slots[0].1.addr() + 50_000);
        assert!(!flags.is_empty() && !flags.iter().any(|it| it == "wr"), "{flags:?}");
        own.fault();
        live.write(0, 50_000, b"one", WriteMethod::Plain);
        live.submit(false);
        own_faults::install();
        live.submit(false);
        live.write(0, 60_000, b"two", WriteMethod::Plain);
        own.fault();
        live.submit(false);
        live.write(0, 70_000, b"three", WriteMethod::Plain);
        live.submit(false);
        assert_eq!(own_faults::count(), 2);
        world.destroy();
    }) else {
        return;
    };
    let (found, _) = replay(&outcome.bytes("trace.lava"));
    let last = &found.last().expect("there are submissions")[&0];
    assert_eq!(&last[50_000..50_003], b"one");
    assert_eq!((&last[60_000..60_003], &last[70_000..70_005]), (&b"two"[..], &b"three"[..]));
}

/// A program that makes a page writable when it is written.
mod own_faults {
    use std::ffi::{c_int, c_void};
    use std::sync::atomic::{AtomicUsize, Ordering};

    const SIZE: usize = 4096;
    static PAGE: AtomicUsize = AtomicUsize::new(0);
    static COUNT: AtomicUsize = AtomicUsize::new(0);

    pub(crate) struct Page(*mut u8);

    impl Page {
        pub(crate) fn new() -> Page {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            // SAFETY: a new anonymous mapping at an address of the system's choice.
            let page = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, libc::PROT_READ, flags, -1, 0) };
            PAGE.store(page.expose_provenance(), Ordering::Relaxed);
            Page(page.cast())
        }

        pub(crate) fn fault(&self) {
            // SAFETY: the page is this test's own mapping, to which no reference leads. The write faults, `handle`
            // makes the page writable, and the system makes the write again.
            unsafe {
                libc::mprotect(self.0.cast(), SIZE, libc::PROT_READ);
                self.0.write_volatile(1);
            }
        }
    }

    pub(crate) fn install() {
        // SAFETY: `sigaction` is plain data, for which zeros are valid. `handle` has the type that SA_SIGINFO asks for,
        // and only uses atomics and `mprotect`, or aborts.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handle as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO;
            libc::sigaction(libc::SIGSEGV, &raw const action, std::ptr::null_mut());
        }
    }

    pub(crate) fn count() -> usize {
        COUNT.load(Ordering::Relaxed)
    }

    extern "C" fn handle(_: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
        // SAFETY: with SA_SIGINFO the system passes a valid structure, and for SIGSEGV it has an address.
        let address = unsafe { (*info).si_addr() }.addr();
        let page = PAGE.load(Ordering::Relaxed);
        if !(page..page + SIZE).contains(&address) {
            std::process::abort();
        }
        COUNT.fetch_add(1, Ordering::Relaxed);
        let place = std::ptr::with_exposed_provenance_mut(page);
        // SAFETY: `PAGE` is the mapping that `Page::new` made, of `SIZE` bytes.
        unsafe { libc::mprotect(place, SIZE, libc::PROT_READ | libc::PROT_WRITE) };
    }
}
