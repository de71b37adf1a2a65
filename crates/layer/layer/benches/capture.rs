//! What a capture costs: nanoseconds added to a recorded command, bytes in the file, and how it goes with threads.
//!
//! One program records state and draws with arguments that vary, seeded. It runs bare, captured by us, and captured by
//! GFXReconstruct where that is installed, in turns, each in a process of its own; the least of the rounds counts, since
//! these machines are noisy.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ash::vk;
use lavascope_bench::{BenchEntry, Suite};
use lavascope_test_support::{find_lavapipe, layer_library, set_driver, write_null_driver_manifest};
use rustix::time::{ClockId, clock_gettime};

/// Set in the processes that record: how many threads.
const CHILD: &str = "LAVASCOPE_BENCH_THREADS";
/// Commands that a thread records, and between two resets of its command buffer.
const COMMANDS: u64 = 1_000_000;
const BATCH: u64 = 10_000;
const ROUNDS: usize = 5;
const OURS: &str = "VK_LAYER_LAVASCOPE_inspect";
const PEER: &str = "VK_LAYER_LUNARG_gfxreconstruct";
const PEER_MANIFEST: &str = "/usr/share/vulkan/explicit_layer.d/VkLayer_gfxreconstruct.json";

/// Nanoseconds that may be added to a recorded command, and bytes that one may have.
const ADDED_MAX: f64 = 60.0;
const BYTES_MAX: f64 = 8.0;
/// The time of four threads to that of four processes: nine tenths of what those reach.
const THREADS_MAX: f64 = 1.0 / 0.9;

fn main() {
    if let Some(threads) = std::env::var(CHILD).ok().and_then(|it| it.parse().ok()) {
        return record(threads);
    }
    if std::env::args().any(|it| it == "--list" || it == "--count") {
        return;
    }
    let stage = CaptureBench::new();
    let mut suite = Suite::default();
    for (driver, manifest) in stage.drivers() {
        for threads in [1, 4] {
            let (stage, manifest) = (&stage, manifest.clone());
            suite.add_value(&format!("{driver}: a command recorded by {threads} threads, captured"), move || {
                stage.added(&manifest, threads)
            });
        }
    }
    suite.add_value("bytes in the file for a command", || stage.bytes());
    suite.add_value("null: the time of 4 threads to that of 4 processes, captured", || stage.threads_to_processes());
    suite.main();
}

/// How a program runs.
#[derive(Clone, Copy, PartialEq)]
enum CaptureLayer {
    Nothing,
    Us,
    Peer,
}

/// What a program said about itself: the CPU time of a command, the least of the batches, and its wall time.
#[derive(Clone, Copy)]
struct RunTimes {
    nanoseconds: f64,
    seconds: f64,
}

struct CaptureBench {
    exe: PathBuf,
    folder: PathBuf,
    null_driver: PathBuf,
}

impl CaptureBench {
    fn new() -> CaptureBench {
        let exe = std::env::current_exe().expect("a program knows where it is");
        let libraries = exe.parent().expect("a program lies in a folder");
        let folder = libraries.join("bench_capture");
        std::fs::create_dir_all(&folder).expect("the build folder can be written");
        let layer = format!(
            r#"{{"file_format_version":"1.2.0","layer":{{"name":"{OURS}","type":"GLOBAL","library_path":{:?},
            "api_version":"1.4.0","implementation_version":"1","description":"",
            "functions":{{"vkNegotiateLoaderLayerInterfaceVersion":"vkNegotiateLoaderLayerInterfaceVersion"}}}}}}"#,
            layer_library().to_string_lossy()
        );
        std::fs::write(folder.join("layer.json"), layer).expect("the folder is ours");
        let null_driver = write_null_driver_manifest(&folder);
        CaptureBench { exe, folder, null_driver }
    }

    fn drivers(&self) -> Vec<(&'static str, PathBuf)> {
        let lavapipe = find_lavapipe().map(|it| ("lavapipe", it));
        std::iter::once(("null", self.null_driver.clone())).chain(lavapipe).collect()
    }

    fn has_peer() -> bool {
        Path::new(PEER_MANIFEST).exists()
    }

    /// Starts a program; the trace gets a number, for those that run at once.
    fn start(&self, driver: &Path, under: CaptureLayer, threads: u32, number: u32) -> Child {
        let mut command = Command::new(&self.exe);
        for (key, _) in std::env::vars_os() {
            if key.to_str().is_some_and(|it| it.starts_with("VK_") || it.starts_with("LAVASCOPE_")) {
                command.env_remove(key);
            }
        }
        set_driver(command.env(CHILD, threads.to_string()), driver);
        match under {
            CaptureLayer::Nothing => {}
            CaptureLayer::Us => {
                command.env("VK_INSTANCE_LAYERS", OURS).env("VK_LAYER_PATH", &self.folder);
                command.env("LAVASCOPE_CAPTURE", self.trace(under, number));
            }
            CaptureLayer::Peer => {
                command.env("VK_INSTANCE_LAYERS", PEER).env("GFXRECON_CAPTURE_FILE", self.trace(under, number));
                command.env("GFXRECON_CAPTURE_FILE_TIMESTAMP", "false").env("GFXRECON_LOG_LEVEL", "error");
            }
        }
        command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the program that runs can be run again")
    }

    fn trace(&self, under: CaptureLayer, number: u32) -> PathBuf {
        let ending = if under == CaptureLayer::Us { "lava" } else { "gfxr" };
        self.folder.join(format!("trace-{number}.{ending}"))
    }

    fn run(&self, driver: &Path, under: CaptureLayer, threads: u32) -> RunTimes {
        finish(self.start(driver, under, threads, 0))
    }

    /// What is added to a command, beside the peer in the same rounds.
    fn added(&self, driver: &Path, threads: u32) -> BenchEntry {
        let (mut bare, mut ours, mut peer) = (f64::INFINITY, f64::INFINITY, f64::INFINITY);
        for _ in 0..ROUNDS {
            bare = bare.min(self.run(driver, CaptureLayer::Nothing, threads).nanoseconds);
            ours = ours.min(self.run(driver, CaptureLayer::Us, threads).nanoseconds);
            if CaptureBench::has_peer() {
                peer = peer.min(self.run(driver, CaptureLayer::Peer, threads).nanoseconds);
            }
        }
        BenchEntry {
            unit: "ns".to_owned(),
            bare: Some(bare),
            ours,
            peer: peer.is_finite().then_some(peer),
            added: Some(ours - bare),
            limit: Some(ADDED_MAX),
            ..BenchEntry::default()
        }
    }

    fn bytes(&self) -> BenchEntry {
        let size = |under| {
            self.run(&self.null_driver, under, 1);
            std::fs::metadata(self.trace(under, 0)).map_or(f64::NAN, |it| it.len() as f64 / COMMANDS as f64)
        };
        let peer = CaptureBench::has_peer().then(|| size(CaptureLayer::Peer));
        BenchEntry {
            unit: "B".to_owned(),
            ours: size(CaptureLayer::Us),
            peer,
            limit: Some(BYTES_MAX),
            ..BenchEntry::default()
        }
    }

    fn threads_to_processes(&self) -> BenchEntry {
        let ratio = |under| {
            let (mut together, mut apart) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..ROUNDS {
                together = together.min(self.run(&self.null_driver, under, 4).seconds);
                let all: Vec<Child> = (0..4).map(|it| self.start(&self.null_driver, under, 1, it)).collect();
                apart = apart.min(all.into_iter().map(|it| finish(it).seconds).fold(0.0, f64::max));
            }
            together / apart
        };
        let peer = CaptureBench::has_peer().then(|| ratio(CaptureLayer::Peer));
        BenchEntry {
            unit: "x".to_owned(),
            ours: ratio(CaptureLayer::Us),
            peer,
            limit: Some(THREADS_MAX),
            ..BenchEntry::default()
        }
    }
}

fn finish(child: Child) -> RunTimes {
    let output = child.wait_with_output().expect("the program can be waited for");
    assert!(output.status.success(), "recording failed: {}", output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|it| it.parse().ok()).collect();
    let [nanoseconds, seconds] = numbers[..] else { panic!("it said: {text}") };
    RunTimes { nanoseconds, seconds }
}

/// Records on so many threads and says how long that took.
fn record(threads: u32) {
    // SAFETY: the structures live until their calls return, and each object is made of those before it and destroyed
    // when the threads have ended; nothing is submitted. Family 0 has a queue on every device.
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
        let range = vk::PushConstantRange::default().stage_flags(vk::ShaderStageFlags::VERTEX).size(16);
        let ranges = [range];
        let layout = vk::PipelineLayoutCreateInfo::default().push_constant_ranges(&ranges);
        let layout = device.create_pipeline_layout(&layout, None).expect("it makes layouts");
        let buffer = vk::BufferCreateInfo::default().size(1 << 20).usage(vk::BufferUsageFlags::VERTEX_BUFFER);
        let buffer = device.create_buffer(&buffer, None).expect("it makes buffers");
        let began = now(ClockId::Monotonic);
        let least = std::thread::scope(|scope| {
            let device = &device;
            let work = move |seed| move || record_on_thread(device, layout, buffer, seed);
            let all: Vec<_> = (0..threads).map(|seed| scope.spawn(work(seed))).collect();
            all.into_iter().map(|it| it.join().expect("it records")).fold(f64::INFINITY, f64::min)
        });
        let seconds = (now(ClockId::Monotonic) - began) / 1e9;
        device.destroy_buffer(buffer, None);
        device.destroy_pipeline_layout(layout, None);
        device.destroy_device(None);
        instance.destroy_instance(None);
        println!("{least} {seconds}");
    }
}

/// The CPU time of a command on this thread, the least of all batches.
fn record_on_thread(device: &ash::Device, layout: vk::PipelineLayout, buffer: vk::Buffer, seed: u32) -> f64 {
    let mut random = u64::from(seed) + 1;
    let mut next = move || {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (random >> 40) as u32
    };
    // SAFETY: a live device, whose pool and command buffer only this thread has: each is made, reset and recorded here.
    // The draws are outside of a render pass, without a pipeline, and the buffer has no memory: that is never
    // submitted, and the drivers that are measured (ours and lavapipe) only keep commands until then.
    unsafe {
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).expect("it makes pools");
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).expect("it makes command buffers")[0];
        let mut least = f64::INFINITY;
        for _ in 0..COMMANDS / BATCH {
            device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()).expect("it is reset");
            device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).expect("it begins");
            let began = now(ClockId::ThreadCPUTime);
            for _ in 0..BATCH / 5 {
                let (width, height) = (next() % 4096, next() % 4096);
                let viewport = vk::Viewport { width: width as f32, height: height as f32, ..vk::Viewport::default() };
                device.cmd_set_viewport(commands, 0, &[viewport]);
                let scissor = vk::Rect2D { extent: vk::Extent2D { width, height }, ..vk::Rect2D::default() };
                device.cmd_set_scissor(commands, 0, &[scissor]);
                device.cmd_bind_vertex_buffers(commands, 0, &[buffer], &[u64::from(next() % 1024) * 16]);
                let constants: [u8; 16] = std::array::from_fn(|it| (next() >> it) as u8);
                device.cmd_push_constants(commands, layout, vk::ShaderStageFlags::VERTEX, 0, &constants);
                device.cmd_draw(commands, 3 * (1 + next() % 100), 1, next() % 1000, 0);
            }
            least = least.min((now(ClockId::ThreadCPUTime) - began) / BATCH as f64);
            device.end_command_buffer(commands).expect("it ends");
        }
        device.destroy_command_pool(pool, None);
        least
    }
}

fn now(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
