//! Memory with a copy (`capture_memory = copy`): what the host and the device write side by side reaches both, on the
//! same pages and at the same time.

use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;
use lavascope_record::HostWrite;
use lavascope_test_support::{TestRng, lavapipe};
use lavascope_trace::{MergedReader, Trace};

use crate::child::child;
use crate::world::{Setup, World, entry};

const WORDS: usize = 24 << 10;
const BYTES: u64 = WORDS as u64 * 4;
const ROUNDS: u32 = 60;
const THREADS: usize = 3;

/// A buffer with memory of its own, which is mapped.
struct MappedBuffer {
    buffer: vk::Buffer,
    memory: vk::DeviceMemory,
    host: *const AtomicU32,
}

impl MappedBuffer {
    fn new(world: &World) -> MappedBuffer {
        let device = &world.device;
        let usage = vk::BufferUsageFlags::TRANSFER_DST | vk::BufferUsageFlags::TRANSFER_SRC;
        let info = vk::BufferCreateInfo::default().size(BYTES).usage(usage);
        // SAFETY: new objects of a device that is alive; the memory is as large as the buffer needs, of a type that the
        // host sees and that is coherent, and it is mapped once (lifetime, owner).
        unsafe {
            let buffer = device.create_buffer(&info, None).expect("made");
            let requirements = device.get_buffer_memory_requirements(buffer);
            let physical = world.instance.enumerate_physical_devices().expect("there is one")[0];
            let properties = world.instance.get_physical_device_memory_properties(physical);
            let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
            let ty = (0..properties.memory_type_count)
                .find(|it| properties.memory_types[*it as usize].property_flags.contains(wanted))
                .expect("every device has one");
            let info = vk::MemoryAllocateInfo::default().allocation_size(requirements.size).memory_type_index(ty);
            let memory = device.allocate_memory(&info, None).expect("there is room");
            device.bind_buffer_memory(buffer, memory, 0).expect("bound");
            let host = device.map_memory(memory, 0, BYTES, vk::MemoryMapFlags::empty()).expect("mapped");
            MappedBuffer { buffer, memory, host: host.cast() }
        }
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        assert!(at < WORDS, "the word lies in the buffer");
        // SAFETY: the memory is mapped as long as `self` is used, and has so many words.
        unsafe { &*self.host.add(at) }
    }

    fn destroy(self, device: &ash::Device) {
        // SAFETY: the device is idle, and nobody uses them afterwards (lifetime).
        unsafe {
            device.unmap_memory(self.memory);
            device.destroy_buffer(self.buffer, None);
            device.free_memory(self.memory, None);
        }
    }
}

/// How the host waits for the device.
#[derive(Clone, Copy)]
enum Wait {
    Fence,
    Poll,
    Queue,
    Device,
}

struct Recorder<'a> {
    world: &'a World,
    pool: vk::CommandPool,
    fence: vk::Fence,
}

impl<'a> Recorder<'a> {
    fn new(world: &'a World) -> Recorder<'a> {
        let device = &world.device;
        // SAFETY: new objects of a device that is alive (lifetime).
        unsafe {
            let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).expect("made");
            let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("made");
            Recorder { world, pool, fence }
        }
    }

    fn destroy(self) {
        // SAFETY: `submit` has waited for what used them (lifetime).
        unsafe {
            self.world.device.destroy_fence(self.fence, None);
            self.world.device.destroy_command_pool(self.pool, None);
        }
    }

    /// Submits commands, does something meanwhile, and waits.
    fn submit(&self, wait: Wait, record: impl FnOnce(vk::CommandBuffer), meanwhile: impl FnOnce()) {
        let World { device, queue, .. } = self.world;
        let info = vk::CommandBufferAllocateInfo::default().command_pool(self.pool).command_buffer_count(1);
        // SAFETY: a new command buffer, recorded here, submitted once and freed after the device is done with it; only
        // this thread uses the pool, the queue and the fence (lifetime, owner).
        unsafe {
            let commands = device.allocate_command_buffers(&info).expect("allocated")[0];
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("begun");
            record(commands);
            device.end_command_buffer(commands).expect("ended");
            let buffers = [commands];
            let submit = vk::SubmitInfo::default().command_buffers(&buffers);
            device.queue_submit(*queue, &[submit], self.fence).expect("submitted");
            meanwhile();
            match wait {
                Wait::Fence => device.wait_for_fences(&[self.fence], true, u64::MAX).expect("waited"),
                Wait::Poll => while !device.get_fence_status(self.fence).expect("asked") {},
                Wait::Queue => device.queue_wait_idle(*queue).expect("waited"),
                Wait::Device => device.device_wait_idle().expect("waited"),
            }
            device.wait_for_fences(&[self.fence], true, u64::MAX).expect("waited");
            device.reset_fences(&[self.fence]).expect("reset");
            device.free_command_buffers(self.pool, &[commands]);
        }
    }
}

/// The words of even index are the host's, the others are the device's.
fn run_rounds(seed: u64) {
    let entry = entry();
    let world = Setup::OFF.world(&entry);
    let device = &world.device;
    let recorder = Recorder::new(&world);
    let (shared, result) = (MappedBuffer::new(&world), MappedBuffer::new(&world));
    let expected: Vec<AtomicU32> = (0..WORDS).map(|_| AtomicU32::new(0)).collect();
    let waits = [Wait::Fence, Wait::Poll, Wait::Queue, Wait::Device];
    let mut rng = TestRng::new(seed);
    for round in 1..=ROUNDS {
        let fills: Vec<(usize, u32)> = (0..40).map(|_| (rng.below(WORDS / 2) * 2 + 1, rng.below(4) as u32)).collect();
        let record = |commands| {
            for (at, value) in &fills {
                // SAFETY: recorded here; the word lies in the buffer.
                unsafe { device.cmd_fill_buffer(commands, shared.buffer, *at as u64 * 4, 4, *value) };
                let barrier = vk::MemoryBarrier::default()
                    .src_access_mask(vk::AccessFlags::TRANSFER_WRITE)
                    .dst_access_mask(vk::AccessFlags::TRANSFER_WRITE);
                let stage = vk::PipelineStageFlags::TRANSFER;
                let none = vk::DependencyFlags::empty();
                // SAFETY: recorded here.
                unsafe { device.cmd_pipeline_barrier(commands, stage, stage, none, &[barrier], &[], &[]) };
            }
        };
        let seeds: Vec<u64> = (0..THREADS).map(|_| rng.below(1 << 30) as u64).collect();
        let write = || {
            std::thread::scope(|scope| {
                for (thread, seed) in seeds.iter().enumerate() {
                    let (shared, expected) = (shared.host.expose_provenance(), &expected);
                    scope.spawn(move || write_words(shared, expected, (thread, *seed, round)));
                }
            });
        };
        recorder.submit(waits[rng.below(4)], record, write);
        fills.iter().for_each(|(at, value)| expected[*at].store(*value, Ordering::Relaxed));
        for (at, wanted) in expected.iter().enumerate() {
            let found = shared.word(at).load(Ordering::Relaxed);
            assert_eq!(found, wanted.load(Ordering::Relaxed), "round {round}, word {at}");
        }
        if round % 3 == 0 {
            let region = vk::BufferCopy { size: BYTES, ..Default::default() };
            // SAFETY: recorded here; both buffers have so many bytes.
            let copy = |commands| unsafe { device.cmd_copy_buffer(commands, shared.buffer, result.buffer, &[region]) };
            recorder.submit(waits[rng.below(4)], copy, || ());
            for (at, wanted) in expected.iter().enumerate() {
                let found = result.word(at).load(Ordering::Relaxed);
                assert_eq!(found, wanted.load(Ordering::Relaxed), "what the device has in round {round}, word {at}");
            }
        }
    }
    shared.destroy(device);
    result.destroy(device);
    recorder.destroy();
    world.destroy();
}

fn write_words(shared: usize, expected: &[AtomicU32], (thread, seed, round): (usize, u64, u32)) {
    let mut rng = TestRng::new(seed);
    for _ in 0..30 {
        let at = (rng.below(WORDS / 2 / THREADS) * THREADS + thread) * 2;
        // The lowest byte often stays, and others are zeros.
        let value = if rng.below(2) == 0 { round << 8 } else { rng.below(3) as u32 };
        // SAFETY: the memory is mapped until the scope of the threads ends, and has so many words.
        unsafe { &*std::ptr::with_exposed_provenance::<AtomicU32>(shared).add(at) }.store(value, Ordering::Relaxed);
        expected[at].store(value, Ordering::Relaxed);
    }
}

fn environment<'a>(method: &'a str, driver: Option<&'a str>) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", method),
        ("LAVASCOPE_REPORT", "{folder}/report"),
        ("LAVASCOPE_NULL_EXECUTE", "transfer"),
    ];
    all.extend(driver.iter().flat_map(|it| [("VK_DRIVER_FILES", *it), ("VK_ICD_FILENAMES", *it)]));
    all
}

fn check_rounds(name: &str, method: &str, driver: Option<&str>, seed: u64) {
    let Some(outcome) = child(name, &environment(method, driver), || run_rounds(seed)) else { return };
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
    // What the device wrote is not mistaken for a host write.
    let file = outcome.bytes("trace.lava");
    let trace = Trace::open(&file).expect("a trace");
    let (mut merged, mut size) = (MergedReader::new(&trace, None), 0);
    while let Some(merged_record) = merged.take_next().expect("whole") {
        let Some(written) = HostWrite::parse(merged_record.record) else { continue };
        size += written.size();
        for (at, bytes) in written.runs() {
            let mut words = at / 4..(at + bytes.len() as u64).div_ceil(4);
            assert!(words.all(|it| it % 2 == 0), "{} bytes at {at}", bytes.len());
        }
    }
    assert!(size > 1000, "{size} bytes were written");
}

#[test]
fn host_and_device_write_to_the_same_pages() {
    check_rounds("memory_copy::host_and_device_write_to_the_same_pages", "copy", None, 1);
}

#[test]
fn host_and_device_write_to_the_same_pages_on_lavapipe() {
    let name = "memory_copy::host_and_device_write_to_the_same_pages_on_lavapipe";
    check_rounds(name, "copy", Some(&lavapipe().to_string_lossy()), 2);
}

/// The driver runs on the processor and imports memory of the layer: the system reports the writes of both sides.
#[test]
fn a_driver_on_the_processor_is_told_apart_from_the_host() {
    let name = "memory_copy::a_driver_on_the_processor_is_told_apart_from_the_host";
    check_rounds(name, "auto", Some(&lavapipe().to_string_lossy()), 5);
}

/// The host resets what the device has counted: the trace has the zero, although it had a zero there before.
#[test]
fn what_the_host_sets_back_is_in_the_trace() {
    let name = "memory_copy::what_the_host_sets_back_is_in_the_trace";
    let driver = lavapipe();
    let driver = driver.to_string_lossy();
    let Some(outcome) = child(name, &environment("auto", Some(&driver)), || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let device = &world.device;
        let (recorder, counter) = (Recorder::new(&world), MappedBuffer::new(&world));
        for _ in 0..3 {
            // SAFETY: recorded here; the words lie in the buffer.
            let count = |commands| unsafe { device.cmd_fill_buffer(commands, counter.buffer, 64, 8, 0x0505_0505) };
            recorder.submit(Wait::Fence, count, || ());
            assert_eq!(counter.word(17).swap(0, Ordering::Relaxed), 0x0505_0505);
        }
        recorder.submit(Wait::Fence, |_| (), || ());
        assert_eq!([16, 17].map(|it| counter.word(it).load(Ordering::Relaxed)), [0x0505_0505, 0]);
        counter.destroy(device);
        recorder.destroy();
        world.destroy();
    }) else {
        return;
    };
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
    let file = outcome.bytes("trace.lava");
    let trace = Trace::open(&file).expect("a trace");
    let (mut merged, mut writes) = (MergedReader::new(&trace, None), Vec::new());
    while let Some(merged_record) = merged.take_next().expect("whole") {
        let written = HostWrite::parse(merged_record.record);
        writes.extend(written.iter().flat_map(|it| it.runs()).map(|it| (it.0, it.1.to_vec())));
    }
    assert_eq!(writes, vec![(68, vec![0; 4]); 3]);
}

/// How a program can write to mapped memory besides plain stores.
const PAGE_WRITES: &[fn(*mut u8, usize, u8)] = &[
    // A call of the system writes.
    |to, size, value| {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        std::io::Write::write_all(&mut writer, &vec![value; size]).expect("there is room in a pipe");
        // SAFETY: the memory is mapped, with so many bytes.
        let read = unsafe { libc::read(std::os::fd::AsRawFd::as_raw_fd(&reader), to.cast(), size) };
        assert_eq!(read, size as isize, "{}", std::io::Error::last_os_error());
    },
    // Vectors, past the caches.
    #[cfg(target_arch = "x86_64")]
    |to, size, value| {
        for at in (0..size).step_by(16) {
            // SAFETY: the memory is mapped, with so many bytes, and begins with a page.
            unsafe {
                use std::arch::x86_64::{_mm_set1_epi8, _mm_stream_si128};
                _mm_stream_si128(to.add(at).cast(), _mm_set1_epi8(value.cast_signed()));
            }
        }
        // SAFETY: every processor with the stores above has it.
        unsafe { std::arch::x86_64::_mm_sfence() };
    },
    // The kernel drops the pages, and they are zeros; then they are written.
    |to, size, value| {
        // SAFETY: whole pages of mapped memory, whose contents nobody needs.
        assert_eq!(unsafe { libc::madvise(to.cast(), size, libc::MADV_DONTNEED) }, 0);
        // SAFETY: the memory is mapped, with so many bytes.
        unsafe { to.write_bytes(value, size) };
    },
    // A forked process exists while the memory is written, and has written to its own view of it.
    |to, size, value| {
        // SAFETY: the new process writes to memory that is mapped, and ends at once.
        let child = unsafe {
            let child = libc::fork();
            if child == 0 {
                to.write_bytes(!value, 8);
                libc::_exit(0);
            }
            child
        };
        let mut status = 0;
        // SAFETY: a process that this one has started, and a place of ours.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        // SAFETY: the memory is mapped, with so many bytes.
        unsafe { to.write_bytes(value, size) };
    },
    // Huge pages are asked for.
    |to, size, value| {
        // SAFETY: whole pages of mapped memory. The system may have no huge pages.
        unsafe { libc::madvise(to.cast(), size, libc::MADV_HUGEPAGE) };
        // SAFETY: the memory is mapped, with so many bytes.
        unsafe { to.write_bytes(value, size) };
    },
];

fn write_in_all_ways() {
    const PAGES: usize = 4096 * 2;
    let entry = entry();
    let world = Setup::OFF.world(&entry);
    let device = &world.device;
    let recorder = Recorder::new(&world);
    let (shared, result) = (MappedBuffer::new(&world), MappedBuffer::new(&world));
    for round in 1..=4u8 {
        for (at, write) in PAGE_WRITES.iter().enumerate() {
            let value = round * 16 + at as u8;
            let region = vk::BufferCopy { size: BYTES, ..Default::default() };
            write(shared.host.cast_mut().cast::<u8>().wrapping_add(at * PAGES), PAGES, value);
            // SAFETY: recorded here; both buffers have so many bytes.
            let copy = |commands| unsafe { device.cmd_copy_buffer(commands, shared.buffer, result.buffer, &[region]) };
            recorder.submit(Wait::Fence, copy, || ());
            let words = at * PAGES / 4..(at + 1) * PAGES / 4;
            let wanted = u32::from_ne_bytes([value; 4]);
            let differing = words.into_iter().find(|it| result.word(*it).load(Ordering::Relaxed) != wanted);
            assert_eq!(differing, None, "round {round}, way {at}: the first other word");
        }
    }
    // SAFETY: whole pages of mapped memory, whose contents nobody needs.
    assert_eq!(unsafe { libc::madvise(shared.host.cast_mut().cast(), PAGES, libc::MADV_DONTNEED) }, 0);
    let region = vk::BufferCopy { size: BYTES, ..Default::default() };
    // SAFETY: recorded here; both buffers have so many bytes.
    let copy = |commands| unsafe { device.cmd_copy_buffer(commands, shared.buffer, result.buffer, &[region]) };
    recorder.submit(Wait::Fence, copy, || ());
    let differing = (0..PAGES / 4).find(|it| result.word(*it).load(Ordering::Relaxed) != 0);
    assert_eq!(differing, None, "pages that were dropped are zeros for the device, too");
    shared.destroy(device);
    result.destroy(device);
    recorder.destroy();
    world.destroy();
}

fn check_ways(name: &str, method: &str, driver: Option<&str>) {
    let Some(outcome) = child(name, &environment(method, driver), write_in_all_ways) else { return };
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
    let file = outcome.bytes("trace.lava");
    let metadata = Trace::open(&file).expect("a trace").metadata();
    let detection = metadata.iter().find_map(|it| it["memory_detection"].as_array()).expect("it is described");
    assert_eq!(detection[0]["method"], "copy", "the memory has a copy: {detection:?}");
}

#[test]
fn every_way_to_write_reaches_the_device() {
    check_ways("memory_copy::every_way_to_write_reaches_the_device", "copy", None);
}

#[test]
fn every_way_to_write_reaches_a_driver_on_the_processor() {
    let name = "memory_copy::every_way_to_write_reaches_a_driver_on_the_processor";
    check_ways(name, "auto", Some(&lavapipe().to_string_lossy()));
}

/// A capture that has ended leaves the copies: nobody listens any more, and the data still has to arrive.
#[test]
fn data_arrives_after_the_capture_has_ended() {
    let name = "memory_copy::data_arrives_after_the_capture_has_ended";
    let environment = [
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", "copy"),
        ("LAVASCOPE_CAPTURE_SUBMITS", "2..10"),
        ("LAVASCOPE_REPORT", "{folder}/report"),
        ("LAVASCOPE_NULL_EXECUTE", "transfer"),
    ];
    let Some(outcome) = child(name, &environment, || run_rounds(3)) else { return };
    assert_eq!(outcome.of_kind("bug"), Vec::<serde_json::Value>::new());
}

/// A bug of the layer disables it: the program goes on with its copies.
#[test]
fn data_arrives_after_a_bug_has_disabled_the_layer() {
    let name = "memory_copy::data_arrives_after_a_bug_has_disabled_the_layer";
    let environment = [
        ("LAVASCOPE_CAPTURE", "{folder}/trace.lava"),
        ("LAVASCOPE_CAPTURE_MEMORY", "copy"),
        ("LAVASCOPE_REPORT", "{folder}/report"),
        ("LAVASCOPE_NULL_EXECUTE", "transfer"),
        ("LAVASCOPE_TEST_PANIC", "vkCmdFillBuffer@100"),
    ];
    let Some(outcome) = child(name, &environment, || run_rounds(4)) else { return };
    assert_eq!(outcome.of_kind("bug").len(), 1);
}
