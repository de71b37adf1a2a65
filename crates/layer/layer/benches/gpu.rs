//! What checks in shaders add: to recorded dispatches and draws, to a submission, to dispatches by the number of buffers
//! that have addresses, and to the creation of pipelines.
//!
//! On lavapipe, through the real loader. Bare and checked programs take turns, and the same under the Khronos layer with
//! nothing but GPU-assisted validation on: the one that is installed, or the library that the environment variable
//! `LAVASCOPE_BENCH_KHRONOS_LIBRARY` names.

#[path = "setup/khronos.rs"]
mod khronos;
#[path = "gpu/program.rs"]
mod program;
mod setup;
#[path = "gpu/shaders.rs"]
mod shaders;

use std::cell::RefCell;
use std::rc::Rc;

use khronos::write_settings;
use lavascope_bench::{Bench, BenchEntry, Peer, Suite};
use lavascope_platform::process::exit_immediately;
use lavascope_test_support::{find_lavapipe, set_driver};
use program::{Mode, Program, has_khronos};
use setup::{layer_folder, switch_validation_off};

/// Set in the process that measures: the loader reads the environment once.
const CHILD: &str = "LAVASCOPE_BENCH_CHILD";
/// Nanoseconds that may be added to a recorded dispatch or draw, and to a submission with the wait for it.
const RECORDED_MAX: f64 = 400.0;
const SUBMITTED_MAX: f64 = 15_000.0;
/// The part that may be added of what the Khronos layer adds.
const SHARE_MAX: f64 = 1.0;
/// To bare.
const DISPATCH_MAX: f64 = 5.0;
const PIPELINE_MAX: f64 = 3.0;
/// The same, where shaders record what they touch.
const OBSERVED_PIPELINE_MAX: f64 = 4.0;
/// The modes whose times are compared.
const COMPARED: [Mode; 3] = [Mode::Bare, Mode::Checked, Mode::Khronos];
/// The slowest dispatch to the fastest, by the number of buffers with addresses.
const FLAT_MAX: f64 = 1.5;
const BUFFERS: [usize; 3] = [2, 1_000, 100_000];
/// Accesses to a buffer, and as many at addresses.
const ACCESSES: [u32; 2] = [50, 200];
const ROUNDS: u32 = 9;

/// Of the layer since 1.4: what its shaders check, and nothing else.
const KHRONOS_NEW_SETTINGS: &str = "\
khronos_validation.gpuav_enable = true
khronos_validation.gpuav_buffers_validation = false
khronos_validation.check_command_buffer = false
";
/// Of the version that Debian 12 has, 1.3.239.
const KHRONOS_SETTINGS: &str = "\
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT
khronos_validation.disables = VK_VALIDATION_FEATURE_DISABLE_CORE_CHECKS_EXT,VK_VALIDATION_FEATURE_DISABLE_OBJECT_LIFETIMES_EXT,VK_VALIDATION_FEATURE_DISABLE_API_PARAMETERS_EXT,VK_VALIDATION_FEATURE_DISABLE_THREAD_SAFETY_EXT,VK_VALIDATION_FEATURE_DISABLE_UNIQUE_HANDLES_EXT
khronos_validation.report_flags = error
";

fn main() {
    if std::env::var_os(CHILD).is_some() {
        let mut suite = suite();
        suite.main();
        // The Khronos layer of Chromium aborts when it is unloaded after GPU-assisted validation.
        exit_immediately(0);
    }
    let Some(driver) = find_lavapipe() else {
        eprintln!("nothing is measured without lavapipe: `apt-get install mesa-vulkan-drivers`");
        return;
    };
    let exe = std::env::current_exe().expect("a program knows where it is");
    let folder = exe.parent().expect("a program lies in a folder");
    let layer = layer_folder(folder, "bench_layer_for_gpu");
    write_settings(&layer, KHRONOS_NEW_SETTINGS, KHRONOS_SETTINGS);
    let mut command = std::process::Command::new(&exe);
    command.args(std::env::args().skip(1)).env(CHILD, "1").env_remove("VK_LAYER_PATH");
    command.env("VK_ADD_LAYER_PATH", &layer).env("VK_LAYER_SETTINGS_PATH", &layer);
    set_driver(&mut command, &driver).env_remove("VK_INSTANCE_LAYERS");
    // Each pipeline is compiled anew, and by one thread.
    command.env("MESA_SHADER_CACHE_DISABLE", "true").env("LP_NUM_THREADS", "1");
    switch_validation_off(&mut command);
    // Valgrind counts in this process, so the measuring one takes its place.
    use std::os::unix::process::CommandExt;
    panic!("{}", command.exec());
}

fn suite() -> Suite<'static> {
    let mut suite = Suite::default();
    add(&mut suite, "recorded dispatch, checked", RECORDED_MAX, Program::dispatches);
    add(&mut suite, "recorded dispatch with another set, checked", RECORDED_MAX, Program::dispatches_with_sets);
    add(
        &mut suite,
        "recorded dispatch with one of 1000 sets, checked",
        RECORDED_MAX,
        Program::dispatches_with_many_sets,
    );
    add(&mut suite, "recorded draw, checked", RECORDED_MAX, Program::draws);
    add_observed(&mut suite, "recorded barrier and dispatch, checked and observed", Program::ordered_dispatches);
    add_observed(&mut suite, "recorded draw, checked and observed", Program::draws);
    add(&mut suite, "submit of a dispatch and the wait for it, checked", SUBMITTED_MAX, Program::submits);
    let programs: Rc<RefCell<Vec<(Mode, Program)>>> = Rc::default();
    for count in BUFFERS {
        let all = Rc::clone(&programs);
        suite.add_value(&format!("dispatch with {count} buffers that have addresses, to bare"), move || {
            compared(&mut all.borrow_mut(), DISPATCH_MAX, |it| it.addressed(count))
        });
    }
    let all = Rc::clone(&programs);
    suite.add_value("the slowest of these dispatches to the fastest", move || flatness(&mut all.borrow_mut()));
    for count in ACCESSES {
        let all = Rc::clone(&programs);
        suite.add_value(&format!("pipeline with {count} and {count} accesses, to bare"), move || {
            compared(&mut all.borrow_mut(), PIPELINE_MAX, |it| it.pipeline_of(count))
        });
        let all = Rc::clone(&programs);
        suite.add_value(&format!("pipeline with {count} and {count} accesses, observed, to bare"), move || {
            observed(&mut all.borrow_mut(), OBSERVED_PIPELINE_MAX, |it| it.pipeline_of(count))
        });
    }
    suite
}

/// Programs are made when they are first needed: valgrind counts one entry at a time.
fn bench(mode: Mode, run: fn(&mut Program, u64)) -> Box<dyn FnMut(u64)> {
    let mut program = None;
    Box::new(move |times| run(program.get_or_insert_with(|| Program::new(mode)), times))
}

fn add(suite: &mut Suite<'static>, name: &str, limit: f64, run: fn(&mut Program, u64)) {
    let (checked, bare) = (bench(Mode::Checked, run), Some(bench(Mode::Bare, run)));
    let ours = Bench { name: name.to_owned(), limit: Some(limit), run: checked, bare };
    match has_khronos() {
        true => suite.add_with_peer(ours, Peer { run: bench(Mode::Khronos, run), share_limit: SHARE_MAX }),
        false => suite.add(ours),
    }
}

/// With the search for hazards as well; there is no limit.
fn add_observed(suite: &mut Suite<'static>, name: &str, run: fn(&mut Program, u64)) {
    let (observed, bare) = (bench(Mode::Observed, run), Some(bench(Mode::Bare, run)));
    suite.add(Bench { name: name.to_owned(), limit: None, run: observed, bare });
}

/// The smallest of several times, of each mode in turn.
fn least_times<const COUNT: usize>(
    all: &mut Vec<(Mode, Program)>,
    modes: [Mode; COUNT],
    work: impl Fn(&mut Program) -> f64,
) -> [Option<f64>; COUNT] {
    let mut least = [None; COUNT];
    for _ in 0..ROUNDS {
        for (at, mode) in modes.into_iter().enumerate() {
            if mode == Mode::Khronos && !has_khronos() {
                continue;
            }
            if !all.iter().any(|it| it.0 == mode) {
                all.push((mode, Program::new(mode)));
            }
            let program = all.iter_mut().find(|it| it.0 == mode).map(|it| work(&mut it.1));
            least[at] = [least[at], program].into_iter().flatten().reduce(f64::min);
        }
    }
    least
}

fn compared(all: &mut Vec<(Mode, Program)>, limit: f64, work: impl Fn(&mut Program) -> f64) -> BenchEntry {
    let [bare, ours, peer] = least_times(all, COMPARED, work);
    let bare = bare.unwrap_or(1.0);
    BenchEntry {
        unit: "times bare".to_owned(),
        ours: ours.unwrap_or(0.0) / bare,
        peer: peer.map(|it| it / bare),
        limit: Some(limit),
        ..BenchEntry::default()
    }
}

/// With the search for hazards as well; the peer has nothing like that.
fn observed(all: &mut Vec<(Mode, Program)>, limit: f64, work: impl Fn(&mut Program) -> f64) -> BenchEntry {
    let [bare, ours] = least_times(all, [Mode::Bare, Mode::Observed], work);
    BenchEntry {
        unit: "times bare".to_owned(),
        ours: ours.unwrap_or(0.0) / bare.unwrap_or(1.0),
        limit: Some(limit),
        ..BenchEntry::default()
    }
}

fn flatness(all: &mut Vec<(Mode, Program)>) -> BenchEntry {
    let times = BUFFERS.map(|count| least_times(all, COMPARED, |it| it.addressed(count)));
    let of = |at: usize| {
        let times = times.iter().filter_map(|it| it[at]);
        let (least, most) = times.fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
        most / least
    };
    let peer = times[0][2].map(|_| of(2));
    BenchEntry { unit: "times".to_owned(), ours: of(1), peer, limit: Some(FLAT_MAX), ..BenchEntry::default() }
}
