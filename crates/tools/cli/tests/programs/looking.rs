//! Looking into a trace: one numbering of calls and frames for all commands, what `--verify` compares, headless
//! surfaces, and programs that no layer can see.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed, verified};

fn capture(stage: &TestEnvironment, options: &[&str], sample: &[&str]) {
    let mut command = stage.lavascope();
    command.args(["capture", "-o", "trace.lava"]).args(options).arg("--").arg(samples()).args(sample);
    succeed(&mut command);
}

fn stdout(stage: &TestEnvironment, arguments: &[&str]) -> String {
    text(&succeed(stage.lavascope().args(arguments)).stdout)
}

fn json_of(stage: &TestEnvironment, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(stage, arguments)).expect("JSON")
}

/// The calls of a trace: thread, number, command.
fn calls(stage: &TestEnvironment, arguments: &[&str]) -> Vec<(u64, u64, String)> {
    let lines = stdout(stage, &[&["print", "--json", "trace.lava"], arguments].concat());
    let lines = lines.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
    let number = |it: &Value, key: &str| it[key].as_u64().expect("a number");
    let call =
        |it: Value| (number(&it, "thread"), number(&it, "call"), it["command"].as_str().unwrap_or("").to_owned());
    lines.filter(|it| it["kind"] == "enter").map(call).collect()
}

/// The calls that a text names as `COMMAND, call N of thread M`.
fn named_calls(said: &str) -> Vec<(u64, u64, String)> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let trimmed = |it: &str| it.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let mut found: Vec<_> = words
        .windows(6)
        .filter(|it| it[0].contains("vk") && it[1] == "call" && it[3] == "of" && it[4] == "thread")
        .filter_map(|it| Some((trimmed(it[5]).parse().ok()?, it[2].parse().ok()?, trimmed(it[0]))))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// The host writes to mapped memory before a submission, which has a place in the stream and is no call.
#[test]
fn a_call_has_one_number_in_all_commands() {
    let stage = TestEnvironment::new("looking-numbers");
    // The trace has host writes before the calls of the hazard; the live report knows nothing of a trace.
    let sample = ["fault-host-write"];
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "--sync", "-o", "trace.lava", "--"]).arg(samples()).args(sample);
    let under_capture = text(&output(&mut command).stderr);
    let printed = calls(&stage, &[]);
    let writes = stdout(&stage, &["print", "trace.lava"]).matches("// new ").count();
    assert!(writes > 0, "the host writes");
    // Numbers begin with 1 and have no gaps, in each thread.
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for (thread, call, command) in &printed {
        let before = last.insert(*thread, *call).unwrap_or(0);
        assert_eq!(*call, before + 1, "{command} of thread {thread}");
    }
    let live = text(&output(stage.under_layer(&["--sync", "--verbose"], samples()).args(sample)).stderr);
    let inline = text(&output(stage.under_layer(&["--sync", "--inline", "--verbose"], samples()).args(sample)).stderr);
    let checked = output(stage.lavascope().args(["check", "--verbose", "trace.lava"]));
    let checked = text(&[&checked.stdout[..], &checked.stderr].concat());
    let expected = named_calls(&checked);
    assert!(!expected.is_empty(), "{checked}");
    for (said, what) in [(&live, "live"), (&inline, "inline"), (&under_capture, "under capture")] {
        let named = named_calls(said);
        assert!(named.iter().all(|it| printed.contains(it)), "{what}: {named:?}\n{said}");
        assert!(named == expected, "{what}: {named:?}, {expected:?}\n{said}");
    }
    assert!(expected.iter().all(|it| printed.contains(it)), "{expected:?}");
    for (thread, call, command) in &expected {
        let place = format!("{thread}:{call}");
        assert_eq!(calls(&stage, &[&place]), [(*thread, *call, command.clone())]);
        let paused = output(stage.lavascope().args(["replay", "--pause-at", &place, "trace.lava"]));
        let said = format!("before call {call} of thread {thread}, {command};");
        assert!(text(&paused.stderr).contains(&said), "{}", text(&paused.stderr));
    }
    let info = json_of(&stage, &["info", "--json", "trace.lava"]);
    for (thread, call) in &last {
        let own = &info["threads"][thread.to_string()];
        assert_eq!((&own["first_call"], &own["last_call"], &own["calls"]), (&json!(1), &json!(call), &json!(call)));
    }
}

#[test]
fn all_commands_count_the_same_calls() {
    let stage = TestEnvironment::new("looking-counts");
    capture(&stage, &["--results"], &["threads"]);
    let count = calls(&stage, &[]).len();
    assert_eq!(json_of(&stage, &["info", "--json", "trace.lava"])["calls"], count);
    assert_eq!(json_of(&stage, &["check", "--json", "trace.lava"])["files"][0]["calls"], count);
    assert!(stdout(&stage, &["check", "trace.lava"]).contains(&format!("no hazards in {count} calls")));
    assert_eq!(json_of(&stage, &["replay", "--json", "trace.lava"])["calls"], count);
    assert_eq!(json_of(&stage, &["replay", "--json", "--dry-run", "trace.lava"])["calls"], count);
    let trimmed = json_of(&stage, &["trim", "--json", "trace.lava", "--submits", "2..4", "-o", "part.lava"]);
    let part = json_of(&stage, &["info", "--json", "part.lava"]);
    assert_eq!(trimmed["calls"], part["calls"]);
}

#[test]
fn calls_are_selected_by_number_object_command_and_text() {
    let stage = TestEnvironment::new("looking-print");
    capture(&stage, &["--results"], &["threads"]);
    let all = calls(&stage, &[]);
    assert_eq!(calls(&stage, &["2:5..7"]).iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(), [(2, 5), (2, 6)]);
    let submits = calls(&stage, &["--command", "QueueSubmit*"]);
    assert!(!submits.is_empty() && submits.iter().all(|it| it.2.starts_with("vkQueueSubmit")));
    assert_eq!(submits.len(), all.iter().filter(|it| it.2.starts_with("vkQueueSubmit")).count());
    // Its creation comes before its name.
    let named = calls(&stage, &["--object", "picture"]);
    let has = |name: &str| named.iter().any(|it| it.2 == name);
    assert!(has("vkCreateBuffer") && has("vkSetDebugUtilsObjectNameEXT") && has("vkDestroyBuffer"), "{named:?}");
    assert!(named.len() < all.len() / 10, "{named:?}");
    // What the call returned is text of the call.
    let found = stdout(&stage, &["print", "trace.lava", "--grep", "\"picture\"", "--command", "vkBindBufferMemory"]);
    assert!(found.contains("buffer = VkBuffer#") && found.contains("\"picture\""), "{found}");
    assert!(found.contains("vkBindBufferMemory ->\n  result = VK_SUCCESS"), "{found}");
    let refused = |arguments: &[&str], why: &str| {
        let result = output(stage.lavascope().args(["print", "trace.lava"]).args(arguments));
        assert!(result.status.code() == Some(2) && text(&result.stderr).contains(why), "{}", text(&result.stderr));
    };
    refused(&["9:1"], "there is no thread 9");
    refused(&["2:99999"], "thread 2 has no call 99999; its calls are 1 to ");
    refused(&["--object", "nobody"], "no object has the name or id `nobody`");
    refused(&["--command", "vkDrawNothing"], "no command `vkDrawNothing`");
    let printed = stdout(&stage, &["print", "trace.lava"]);
    assert!(printed.contains("apiVersion = 1.3.0\n") && printed.contains("= VK_WHOLE_SIZE\n"), "constants have names");
    assert!(printed.contains("QueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED\n"));
}

#[test]
fn what_the_device_wrote_is_not_the_hosts() {
    let stage = TestEnvironment::new("looking-writes");
    capture(&stage, &["--results"], &["mapped"]);
    let printed = stdout(&stage, &["print", "trace.lava"]);
    assert!(!printed.contains("the host wrote"), "{printed}");
    let (_, behind) = printed.split_once("vkWaitForFences ->").expect("it waits");
    let first = behind.lines().find(|it| it.starts_with("// new ")).expect("the device wrote");
    assert!(first.starts_with("// new after call "), "{first}");
    let info = json_of(&stage, &["info", "--json", "trace.lava"]);
    let written = &info["memory_written"];
    let after = written["bytes_after_waits"].as_u64();
    assert!(after > Some(0) && after < written["bytes"].as_u64(), "{written:#}");
}

#[test]
fn sizes_are_reported_by_kind_frame_and_resource() {
    let stage = TestEnvironment::new("looking-sizes");
    capture(&stage, &["--results", "--headless"], &["present"]);
    let info = json_of(&stage, &["info", "--json", "trace.lava"]);
    let sizes = &info["sizes"];
    let frames = sizes["by_frame"].as_array().expect("a list");
    assert_eq!(frames.len() as u64, info["frames"].as_u64().expect("a number"));
    let sum = |key: &str| frames.iter().filter_map(|it| it[key].as_u64()).sum::<u64>();
    assert!(sum("bytes") > sum("memory_bytes") && sum("memory_bytes") > 0 && sum("submissions") > 0, "{sizes:#}");
    assert!(sizes["by_kind"]["calls"].as_u64() > Some(1000), "{sizes:#}");
    assert_eq!(sizes["largest"][0]["name"], "copy of the frame", "{sizes:#}");
    let shown = stdout(&stage, &["info", "trace.lava"]);
    assert!(shown.contains("size of frame ") && shown.contains("size of VkBuffer#0 \"copy of the frame\""), "{shown}");
}

/// Lavapipe of Debian has no headless surfaces, and the layer has them for the program.
#[test]
fn headless_surfaces_are_there_for_programs() {
    let stage = TestEnvironment::new("looking-headless");
    let result = output(stage.under_layer(&[], samples()).arg("present"));
    assert_eq!(result.status.code(), Some(2), "this driver has none: {}", text(&result.stderr));
    succeed(stage.under_layer(&["--headless"], samples()).arg("present"));
    capture(&stage, &["--headless", "--results"], &["present"]);
    let result = verified(stage.lavascope().args(["replay", "--json", "--verify", "trace.lava"]));
    assert_eq!(result["frames"], 6, "{result:#}");
}

#[test]
fn frames_keep_their_numbers_in_a_part() {
    let stage = TestEnvironment::new("looking-frames");
    capture(&stage, &["--headless", "--results"], &["present"]);
    let presents = |file: &str| {
        let lines = stdout(&stage, &["print", file, "--json", "--command", "vkQueuePresentKHR"]);
        let lines = lines.lines().map(|it| serde_json::from_str::<Value>(it).expect("JSON"));
        let enters = lines.filter(|it| it["kind"] == "enter");
        enters.map(|it| (it["frame"].as_u64(), it["thread"].as_u64(), it["call"].as_u64())).collect::<Vec<_>>()
    };
    let whole = presents("trace.lava");
    succeed(stage.lavascope().args(["trim", "trace.lava", "--frames", "4..6", "-o", "part.lava"]));
    let part = presents("part.lava");
    assert!(part.len() < whole.len() && part.iter().all(|it| whole.contains(it)), "{part:?}, {whole:?}");
    assert_eq!(part.iter().filter_map(|it| it.0).filter(|it| *it >= 4).collect::<Vec<_>>(), [4, 5]);
    // Pictures, `--verify` and a part of the part go by the same numbers.
    let shots = ["--screenshot", "5", "--screenshots", "shots"];
    verified(stage.lavascope().args(["replay", "--json", "--verify", "part.lava"]).args(shots));
    assert!(stage.folder.join("shots/frame-000005.png").exists());
    succeed(stage.lavascope().args(["trim", "part.lava", "--frames", "5", "-o", "frame.lava"]));
    assert_eq!(presents("frame.lava").last(), whole.get(5));
    let sizes = json_of(&stage, &["info", "--json", "frame.lava"]);
    let last = sizes["sizes"]["by_frame"].as_array().and_then(|it| it.last()).map(|it| it["frame"].clone());
    assert_eq!(last, Some(json!(5)));
}

#[test]
fn presented_frames_are_compared() {
    let stage = TestEnvironment::new("looking-presented");
    capture(&stage, &["--headless", "--results"], &["present"]);
    let result = verified(stage.lavascope().args(["replay", "--json", "--verify", "trace.lava"]));
    assert_eq!(result["presented"], json!({ "equal": 6, "different": [] }), "{result:#}");
    // The null driver draws nothing.
    let result = output(stage.lavascope().args(["replay", "--null", "--verify", "trace.lava"]));
    assert_eq!(result.status.code(), Some(1));
    assert!(text(&result.stdout).contains("; 6 differ, the first is frame 0\n"), "{}", text(&result.stdout));
}

#[test]
fn nothing_to_compare_is_no_success() {
    let stage = TestEnvironment::new("looking-nothing");
    capture(&stage, &["--results"], &["recording"]);
    let result = output(stage.lavascope().args(["replay", "--verify", "trace.lava"]));
    assert_eq!(result.status.code(), Some(2));
    let said = text(&result.stdout);
    assert!(said.contains("nothing was compared: the device wrote nothing into mapped memory here"), "{said}");
    let result = output(stage.lavascope().args(["replay", "--verify", "--json", "trace.lava"]));
    let document: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    assert!(result.status.code() == Some(2) && document["not_compared"].is_string(), "{document:#}");
}

/// The driver of the replay computes other bytes than those of the capture.
#[test]
fn a_difference_names_the_buffer_and_its_element() {
    let stage = TestEnvironment::new("looking-difference");
    crate::replay_options::capture_on_null(&stage, &["compute"]);
    let result = output(stage.lavascope().args(["replay", "--json", "--verify", "trace.lava"]));
    let document: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    assert_eq!(result.status.code(), Some(1), "{document:#}");
    let first = &document["first_difference"];
    assert!(first["resource"].as_str().is_some_and(|it| it.starts_with("VkBuffer#")), "{document:#}");
    assert!(first["name"].is_string() && first["offset"].as_u64().is_some_and(|it| it % 4 == 0), "{document:#}");
    assert_ne!(first["recorded"], first["replayed"], "{document:#}");
    let result = output(stage.lavascope().args(["replay", "--verify", "trace.lava"]));
    assert!(text(&result.stdout).contains(", the first in VkBuffer#"), "{}", text(&result.stdout));
}

#[test]
fn differing_pictures_are_written_with_their_difference() {
    let stage = TestEnvironment::new("looking-pictures");
    capture(&stage, &["--headless", "--screenshot", "0..2", "--screenshots", "shots"], &["present"]);
    let arguments = ["replay", "--null", "--json", "--compare", "shots", "--screenshots", "other", "trace.lava"];
    let result = output(stage.lavascope().args(arguments));
    let document: Value = serde_json::from_slice(&result.stdout).expect("JSON");
    assert_eq!(result.status.code(), Some(1), "{document:#}");
    let files = ["other/frame-000001-replay.png", "other/frame-000001-difference.png"];
    assert_eq!(document["pictures"][1]["differing"], json!(files), "{document:#}");
    assert!(files.iter().all(|it| stage.folder.join(it).exists()));
    assert!(stage.folder.join("shots/frame-000001.png").exists());
}

/// A program that opens the library of the driver itself.
#[test]
fn a_driver_without_the_loader_is_reported() {
    let stage = TestEnvironment::new("looking-driver");
    let manifest = std::fs::read_to_string(lavascope_test_support::lavapipe()).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    let library = manifest["ICD"]["library_path"].as_str().expect("a path");
    let script = format!("import ctypes, time; ctypes.CDLL('{library}'); time.sleep(1)");
    let result = output(stage.under_layer(&[], "python3").args(["-c", &script]));
    let said = text(&result.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("itself, without the Vulkan loader, so no layer sees its calls"), "{said}");
    assert!(result.status.code() == Some(2) && said.contains("libvulkan_lvp.so"), "{said}");
    // A child process counts as well, and a program without Vulkan is not accused.
    let result = output(stage.under_layer(&[], "sh").args(["-c", "sleep 0.3; true"]));
    assert!(!text(&result.stderr).contains("without the Vulkan loader"), "{}", text(&result.stderr));
    let parent = format!("python3 -c \"{script}\"; true");
    let result = output(stage.under_layer(&[], "sh").args(["-c", &parent]));
    assert!(text(&result.stderr).contains("without the Vulkan loader"), "{}", text(&result.stderr));
}
