//! A process exits in one thread while another destroys its devices: freed memory is never read.

use std::time::{Duration, Instant};

use ash::vk;

use crate::child::exiting_child;
use crate::gpu::{Compute, GPU};
use crate::world::{Setup, World, entry};

const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];
/// How often the race is run. `LAVASCOPE_TEST_RUNS` asks for more.
const RUNS: u32 = 30;
/// Devices of one process: each is a chance for the race.
const DEVICES: usize = 8;
/// The latest moment at which the process ends, after the devices begin to.
const DELAY_MAX: Duration = Duration::from_micros(1500);

/// A device with commands whose shaders check themselves, so that there is something to read at the end.
struct CheckedDevice {
    world: World,
    compute: Compute,
    pool: vk::CommandPool,
}

impl CheckedDevice {
    fn new(entry: &ash::Entry) -> CheckedDevice {
        let world = Setup { settings: GPU, ..Setup::OFF }.world(entry);
        let (compute, pool) = (Compute::new(&world, 1), world.command_pool());
        (0..8).for_each(|_| _ = compute.recorded(&world, pool, 2));
        CheckedDevice { world, compute, pool }
    }

    fn destroy(self) {
        // SAFETY: `recorded` waits for what it submits, so the device uses nothing of the pool.
        unsafe { self.world.device.destroy_command_pool(self.pool, None) };
        self.compute.destroy(&self.world);
        self.world.destroy();
    }
}

/// Which moment of the race a run tries.
fn delay() -> Duration {
    let seed = u64::from(std::process::id()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Duration::from_nanos(seed % DELAY_MAX.as_nanos() as u64)
}

#[test]
fn an_exit_while_devices_are_destroyed_reads_nothing_that_is_gone() {
    let name = "exits::an_exit_while_devices_are_destroyed_reads_nothing_that_is_gone";
    let wanted = std::env::var("LAVASCOPE_TEST_RUNS").ok().and_then(|it| it.parse().ok());
    for run in 0..wanted.unwrap_or(RUNS) {
        let outcome = exiting_child(name, &REPORT, || {
            let entry = entry();
            let all: Vec<CheckedDevice> = (0..DEVICES).map(|_| CheckedDevice::new(&entry)).collect();
            let (begun, is_begun) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                begun.send(Instant::now()).expect("the other end waits");
                all.into_iter().for_each(CheckedDevice::destroy);
                // The process ends in the other thread.
                std::thread::park();
            });
            let start = is_begun.recv().expect("the thread sends");
            while start.elapsed() < delay() {
                std::hint::spin_loop();
            }
            std::process::exit(0);
        });
        if let Some(outcome) = outcome {
            assert!(outcome.of_kind("bug").is_empty(), "run {run}: {}", outcome.stderr);
        }
    }
}
