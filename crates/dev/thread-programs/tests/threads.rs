//! Captures and replays random programs whose threads hand over work; see the crate.
//!
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` set their number and the first seed.

use std::ffi::CStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lavascope_test_support::{layer_library, set_driver, write_null_driver_manifest};
use lavascope_thread_programs::{ThreadSharing, check, perform};

const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
/// Set in a child: what it does, the first seed and the end of the seeds.
const CHILD: &str = "THREAD_PROGRAMS_CHILD";
/// The number of programs of a test, and of one process.
const PROGRAMS: u64 = 300;
const BATCH: u64 = 200;
const QUEUES: usize = 2;
const TRACE: &str = "trace.lava";
const COUNTS: &str = "counts.txt";

#[test]
fn random_programs_keep_the_order_of_their_threads() {
    let name = "random_programs_keep_the_order_of_their_threads";
    if let Ok(task) = std::env::var(CHILD) {
        return child(&task);
    }
    let number = |name: &str| std::env::var(name).ok().map(|it| it.parse::<u64>().expect("a number"));
    let programs = number("LAVASCOPE_SAMPLE_PROGRAMS").unwrap_or(PROGRAMS);
    let seed = number("LAVASCOPE_SAMPLE_SEED").unwrap_or(1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the build folder can be written");
    write_manifests(&folder);
    let (mut begin, end) = (seed, seed + programs);
    while begin < end {
        let seeds = begin..end.min(begin + BATCH);
        run(name, &folder, "perform", &seeds);
        let output = run(name, &folder, "check", &seeds);
        for line in String::from_utf8_lossy(&output.stdout).lines().filter(|it| it.starts_with("seeds ")) {
            println!("{line}");
        }
        begin = seeds.end;
    }
    println!("{programs} threaded programs, seeds {seed} to {}: no difference", end - 1);
    let _ = std::fs::remove_dir_all(&folder);
}

fn run(name: &str, folder: &Path, task: &str, seeds: &Range<u64>) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a program knows where it is"));
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).current_dir(folder);
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|it| ["VK_", "LAVASCOPE_", "XDG_"].iter().any(|prefix| it.starts_with(prefix))) {
            command.env_remove(key);
        }
    }
    command.env(CHILD, format!("{task} {} {}", seeds.start, seeds.end)).env("HOME", folder);
    set_driver(&mut command, folder.join("null-driver.json"));
    if task == "perform" {
        command.env("VK_LAYER_PATH", folder).env("LAVASCOPE_CAPTURE", folder.join(TRACE)).env("LAVASCOPE_SYNC", "off");
    }
    let output = command.output().expect("the program that runs can be run again");
    let texts = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert!(output.status.success(), "{task}, seeds {seeds:?}: {}\n{}", output.status, texts.join("\n"));
    output
}

fn child(task: &str) {
    let words: Vec<&str> = task.split(' ').collect();
    let seeds = words[1].parse().expect("a number")..words[2].parse().expect("a number");
    if words[0] == "perform" {
        let counts = perform(LAYER, QUEUES, seeds);
        let line = |it: &Vec<u64>| it.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
        let program = |it: &Vec<Vec<u64>>| it.iter().map(line).collect::<Vec<_>>().join(",");
        let text = counts.iter().map(program).collect::<Vec<_>>().join("\n");
        return std::fs::write(COUNTS, text).expect("the folder is ours");
    }
    let text = std::fs::read_to_string(COUNTS).expect("the programs were performed");
    let line = |it: &str| it.split_whitespace().map(|it| it.parse().expect("a number")).collect();
    let counts = text.lines().map(|it| it.split(',').map(line).collect()).collect();
    let bytes = std::fs::read(PathBuf::from(TRACE)).expect("the programs were captured");
    // Every second batch is replayed on threads that share one from time to time.
    let sharing = match seeds.start / BATCH % 2 {
        0 => ThreadSharing::OnePerStream,
        _ => ThreadSharing::Random(seeds.start),
    };
    let (checked, differences) = match check(&bytes, &counts, QUEUES, seeds.clone(), sharing) {
        Ok(result) => result,
        Err(why) => panic!("{why}"),
    };
    for difference in differences.iter().take(40) {
        println!("\nprogram {}: {}", difference.seed, difference.text);
    }
    assert!(differences.is_empty(), "{} pairs of calls of {checked:?}", differences.len());
    // The line has begun with the name of the test.
    println!("\nseeds {seeds:?}: {checked:?}");
}

fn write_manifests(folder: &Path) {
    write_null_driver_manifest(folder);
    let library = layer_library();
    let text = format!(
        r#"{{"file_format_version": "1.2.0", "layer": {{
            "name": {:?}, "type": "GLOBAL", "library_path": {library:?}, "api_version": "1.4.0",
            "implementation_version": "1", "description": "",
            "functions": {{"vkNegotiateLoaderLayerInterfaceVersion": "vkNegotiateLoaderLayerInterfaceVersion"}}
        }}}}"#,
        LAYER.to_str().expect("a name"),
    );
    std::fs::write(folder.join("layer.json"), text).expect("the folder is ours");
}
