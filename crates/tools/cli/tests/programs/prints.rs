//! What shaders print, beside the Khronos layer of Chromium.

use std::collections::BTreeMap;

use crate::below::newer_khronos_folder;
use crate::common::text;
use crate::test_environment::{TestEnvironment, samples, succeed};

/// A vector with more components than its conversion prints: the Khronos layer prints the rest by the next conversion.
const OTHER_THERE: u32 = 16;

/// The lines of the sample, by their number.
fn numbered(output: &str) -> BTreeMap<u32, String> {
    let number = |line: &str| line.get(..2)?.parse().ok();
    output.lines().filter_map(|line| Some((number(line)?, line.trim_end().to_owned()))).collect()
}

#[test]
fn prints_are_those_of_the_khronos_layer() {
    let stage = TestEnvironment::new("prints-khronos");
    let print_settings = [("VK_LAYER_PRINTF_ENABLE", "1"), ("VK_LAYER_PRINTF_TO_STDOUT", "1")];
    let room = ("VK_LAYER_PRINTF_BUFFER_SIZE", "65536");
    let run =
        succeed(stage.under_layer_with_report(&[], samples()).arg("printf-formats").envs(print_settings).envs([room]));
    // Ours begins with the place: `formats.comp:13: `.
    let printed: Vec<String> = text(&run.stdout)
        .lines()
        .filter_map(|it| Some(it.strip_prefix("formats.comp:")?.split_once(": ")?.1.into()))
        .collect();
    let own = numbered(&printed.join("\n"));
    let mut command = stage.bare(samples());
    command.arg("printf-formats").envs(print_settings).envs([room, ("VK_LAYER_PRINTF_ONLY_PRESET", "1")]);
    command.env("VK_INSTANCE_LAYERS", "VK_LAYER_KHRONOS_validation").env("VK_LAYER_PATH", newer_khronos_folder(&stage));
    let theirs = succeed(&mut command);
    let mut theirs = numbered(&text(&theirs.stdout));
    assert_ne!(theirs.remove(&OTHER_THERE), own.get(&OTHER_THERE).cloned(), "the exception is needed");
    assert_eq!(own.get(&OTHER_THERE).map(String::as_str), Some("16 7.000000, 7.000000 7"));
    let own: BTreeMap<u32, String> = own.into_iter().filter(|it| it.0 != OTHER_THERE).collect();
    assert_eq!((own.len(), theirs.keys().max()), (17, Some(&17)), "{own:#?}");
    assert_eq!(own, theirs);
}
