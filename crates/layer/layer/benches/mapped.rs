//! What it costs to find host writes in memory that stays mapped: nanoseconds added to a submission, and to each page
//! that the host writes between two submissions.
//!
//! One program submits nothing with a fence and waits for it. It runs bare, under synchronization validation and
//! captured, in turns, each in a process of its own; the least of the rounds counts. With `LAVASCOPE_BENCH_MAPPED` set,
//! this binary is that program, also on machines without the benchmark:
//! `LAVASCOPE_BENCH_MAPPED=MEMORIES,BYTES,PAGES,FLAGS lavascope run -- mapped`, where the flags are bits of
//! `VkMemoryPropertyFlags` that the memory must have.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ash::vk;
use lavascope_bench::{BenchEntry, Suite};
use lavascope_platform::clock::thread_nanoseconds;
use lavascope_test_support::{find_lavapipe, layer_library, set_driver, write_null_driver_manifest};

/// Set in the processes that submit: see [`MappedProgram`].
const CHILD: &str = "LAVASCOPE_BENCH_MAPPED";
const LAYER: &str = "VK_LAYER_LAVASCOPE_inspect";
const ROUNDS: usize = 3;
/// Submissions that are measured, in each process.
const SUBMISSIONS: usize = 300;
const PAGE: u64 = 4096;
/// Pages that are written between two submissions, where any are.
const PAGES: u64 = 64;

/// Nanoseconds that may be added to a submission, by memories and their bytes, and to a written page.
const IDLE: [(&str, u64, u64, f64); 3] = [
    ("one memory of 1 MiB", 1, 1 << 20, 2_000.0),
    ("10,000 memories of 16 KiB", 10_000, 16 << 10, 60_000.0),
    ("one memory of 4 GiB", 1, 4 << 30, 1_500_000.0),
];
const PAGE_MAX: f64 = 3_000.0;

fn main() {
    if let Ok(text) = std::env::var(CHILD) {
        return MappedProgram::parse(&text).run();
    }
    if std::env::args().any(|it| it == "--list" || it == "--count") {
        return;
    }
    let bench = MappedBench::new();
    let mut suite = Suite::default();
    for (driver, manifest) in bench.drivers() {
        for tool in [Tool::Sync, Tool::Capture] {
            for (name, memories, bytes, limit) in IDLE {
                let (bench, manifest) = (&bench, manifest.clone());
                let name = format!("{driver}: a submission, {name}, nothing written, {}", tool.name());
                suite.add_value(&name, move || {
                    let program = MappedProgram { memories, bytes, pages: 0, flags: 0 };
                    bench.added(&manifest, tool, &program, 1.0, limit)
                });
            }
            let (bench, manifest) = (&bench, manifest.clone());
            suite.add_value(&format!("{driver}: a written page, {}", tool.name()), move || {
                let program = MappedProgram { memories: 1, bytes: 1 << 20, pages: PAGES, flags: 0 };
                bench.added(&manifest, tool, &program, PAGES as f64, PAGE_MAX)
            });
        }
    }
    suite.main();
}

#[derive(Clone, Copy, PartialEq)]
enum Tool {
    Nothing,
    Sync,
    Capture,
}

impl Tool {
    fn name(self) -> &'static str {
        match self {
            Tool::Nothing => "bare",
            Tool::Sync => "validated",
            Tool::Capture => "captured",
        }
    }
}

struct MappedBench {
    exe: PathBuf,
    folder: PathBuf,
    null_driver: PathBuf,
}

impl MappedBench {
    fn new() -> MappedBench {
        let exe = std::env::current_exe().expect("a program knows where it is");
        let folder = exe.parent().expect("a program lies in a folder").join("bench_mapped");
        std::fs::create_dir_all(&folder).expect("the build folder can be written");
        let layer = format!(
            r#"{{"file_format_version":"1.2.0","layer":{{"name":"{LAYER}","type":"GLOBAL","library_path":{:?},
            "api_version":"1.4.0","implementation_version":"1","description":"",
            "functions":{{"vkNegotiateLoaderLayerInterfaceVersion":"vkNegotiateLoaderLayerInterfaceVersion"}}}}}}"#,
            layer_library().to_string_lossy()
        );
        std::fs::write(folder.join("layer.json"), layer).expect("the folder is ours");
        let null_driver = write_null_driver_manifest(&folder);
        MappedBench { exe, folder, null_driver }
    }

    fn drivers(&self) -> Vec<(&'static str, PathBuf)> {
        let lavapipe = find_lavapipe().map(|it| ("lavapipe", it));
        std::iter::once(("null", self.null_driver.clone())).chain(lavapipe).collect()
    }

    fn run(&self, driver: &Path, tool: Tool, program: &MappedProgram) -> f64 {
        let mut command = Command::new(&self.exe);
        for (key, _) in std::env::vars_os() {
            if key.to_str().is_some_and(|it| it.starts_with("VK_") || it.starts_with("LAVASCOPE_")) {
                command.env_remove(key);
            }
        }
        set_driver(command.env(CHILD, program.text()), driver);
        if tool != Tool::Nothing {
            command.env("VK_INSTANCE_LAYERS", LAYER).env("VK_LAYER_PATH", &self.folder);
        }
        if tool == Tool::Capture {
            command.env("LAVASCOPE_CAPTURE", self.folder.join("trace.lava"));
        }
        let output = command.stderr(Stdio::null()).output().expect("the program that runs can be run again");
        assert!(output.status.success(), "submitting failed: {}", output.status);
        let text = String::from_utf8_lossy(&output.stdout);
        let submission = text.split_whitespace().next().and_then(|it| it.parse().ok());
        submission.unwrap_or_else(|| panic!("it said: {text}"))
    }

    /// What is added to a submission, in parts of it.
    fn added(&self, driver: &Path, tool: Tool, program: &MappedProgram, parts: f64, limit: f64) -> BenchEntry {
        let idle = MappedProgram { pages: 0, ..*program };
        let (mut bare, mut ours) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            // A page counts without the submission, which has a line of its own.
            let submission = |tool| if program.pages == 0 { 0.0 } else { self.run(driver, tool, &idle) };
            bare = bare.min((self.run(driver, Tool::Nothing, program) - submission(Tool::Nothing)) / parts);
            ours = ours.min((self.run(driver, tool, program) - submission(tool)) / parts);
        }
        BenchEntry {
            unit: "ns".to_owned(),
            bare: Some(bare),
            ours,
            added: Some(ours - bare),
            limit: Some(limit),
            ..BenchEntry::default()
        }
    }
}

/// A program whose memories stay mapped while it submits.
#[derive(Clone, Copy)]
struct MappedProgram {
    memories: u64,
    /// Of each memory.
    bytes: u64,
    /// Of the first memory, written before each submission.
    pages: u64,
    /// What the memory must be besides visible to the host and coherent.
    flags: u32,
}

impl MappedProgram {
    fn text(&self) -> String {
        format!("{},{},{},{}", self.memories, self.bytes, self.pages, self.flags)
    }

    fn parse(text: &str) -> MappedProgram {
        let numbers: Vec<u64> = text.split(',').filter_map(|it| it.parse().ok()).collect();
        let [memories, bytes, pages, flags] = numbers[..] else { panic!("{CHILD} needs four numbers, not {text}") };
        MappedProgram { memories, bytes, pages: pages.min(bytes / PAGE), flags: flags as u32 }
    }

    /// Prints the CPU time of a submission with the writes before it, and of the wait after it, the least of all.
    fn run(&self) {
        // SAFETY: the structures live until their calls return, and each object is made of those before it. Everything
        // that is submitted is waited for. The process ends with its device.
        unsafe {
            let entry = ash::Entry::load().expect("there is a loader");
            let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
            let info = vk::InstanceCreateInfo::default().application_info(&application);
            let instance = entry.create_instance(&info, None).expect("there is a driver");
            let physical = instance.enumerate_physical_devices().expect("it has a device")[0];
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
            let device = instance.create_device(physical, &info, None).expect("it makes devices");
            let memory_type = self.memory_type(&instance.get_physical_device_memory_properties(physical));
            let all: Vec<_> = (0..self.memories).map(|_| self.map_memory(&device, memory_type)).collect();
            let address = *all.first().expect("there is a memory");
            let queue = device.get_device_queue(0, 0);
            let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("it makes fences");
            let mut least = [u64::MAX; 2];
            for round in 0..SUBMISSIONS as u32 {
                let began = thread_nanoseconds();
                for page in 0..self.pages {
                    address.add((page * PAGE) as usize).cast::<u32>().write_volatile(round);
                }
                device.queue_submit(queue, &[vk::SubmitInfo::default()], fence).expect("it takes nothing");
                let submitted = thread_nanoseconds();
                device.wait_for_fences(&[fence], true, u64::MAX).expect("it is done");
                least = [least[0].min(submitted - began), least[1].min(thread_nanoseconds() - submitted)];
                device.reset_fences(&[fence]).expect("the fence is done");
            }
            println!("{} {}", least[0], least[1]);
            device.destroy_fence(fence, None);
            device.destroy_device(None);
            instance.destroy_instance(None);
        }
    }

    fn memory_type(&self, memory: &vk::PhysicalDeviceMemoryProperties) -> u32 {
        let flags = vk::MemoryPropertyFlags::HOST_VISIBLE
            | vk::MemoryPropertyFlags::HOST_COHERENT
            | vk::MemoryPropertyFlags::from_raw(self.flags);
        let found = memory.memory_types_as_slice().iter().position(|it| it.property_flags.contains(flags));
        found.unwrap_or_else(|| panic!("no memory is {flags:?}")) as u32
    }

    /// A memory with a buffer that the device can only read.
    ///
    /// # Safety
    ///
    /// The device must be alive, and have the type of memory.
    unsafe fn map_memory(&self, device: &ash::Device, memory_type: u32) -> *mut u8 {
        // SAFETY: the caller's word; the objects are new, and live as long as the device.
        unsafe {
            let usage = vk::BufferUsageFlags::TRANSFER_SRC | vk::BufferUsageFlags::VERTEX_BUFFER;
            let info = vk::BufferCreateInfo::default().size(self.bytes).usage(usage);
            let buffer = device.create_buffer(&info, None).expect("it makes buffers");
            let size = device.get_buffer_memory_requirements(buffer).size;
            let info = vk::MemoryAllocateInfo::default().allocation_size(size).memory_type_index(memory_type);
            let memory = device.allocate_memory(&info, None).expect("it has memory");
            device.bind_buffer_memory(buffer, memory, 0).expect("the memory is large enough");
            device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()).expect("it maps").cast()
        }
    }
}
