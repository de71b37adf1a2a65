//! Settings that make no sense and applications that do not: the application goes on, or fails, as it would alone.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;

use crate::common::{output, text};
use crate::test_environment::{TestEnvironment, samples, succeed, unwrapped};

const SETTINGS: &str = "\
# A comment.
lavascope_inspect.statz = on
lavascope_inspect.stats = perhaps
  lavascope_inspect.capture_flush_ms = 60001
";

#[test]
fn a_settings_file_with_mistakes() {
    let stage = TestEnvironment::new("settings");
    std::fs::write(stage.folder.join("vk_layer_settings.txt"), SETTINGS).expect("writable");
    let wanted = [
        "warning: vk_layer_settings.txt:2:1: \"lavascope_inspect.statz\" is not a setting",
        "did you mean `lavascope_inspect.stats`?",
        "error: vk_layer_settings.txt:3:27: stats cannot be \"perhaps\"; allowed: on, off, ",
        "error: vk_layer_settings.txt:4:40: capture_flush_ms cannot be \"60001\"; allowed: a whole number from 1 to 60000",
    ];
    let run = succeed(stage.under_layer(&["--json", "report.json"], samples()).arg("triangle-dynamic"));
    let report = stage.report();
    assert_eq!(report.0["processes"][0]["problems"].as_array().map(Vec::len), Some(3), "{:#}", report.0);
    // Without `run`, the layer says it itself.
    let mut command = stage.bare(samples());
    command.env("VK_ADD_LAYER_PATH", stage.folder.join("cache/lavascope/layer"));
    let alone = succeed(command.arg("triangle-dynamic").env("VK_INSTANCE_LAYERS", "VK_LAYER_LAVASCOPE_inspect"));
    for said in [text(&run.stderr), text(&alone.stderr)].map(|it| unwrapped(&it)) {
        for part in wanted {
            assert_eq!(said.matches(part).count(), 1, "not once `{part}` in\n{said}");
        }
    }
}

#[test]
fn a_null_create_info() {
    let stage = TestEnvironment::new("null-create-info");
    let program = compiled(&stage, "null_create_info.c");
    for driver in [&[][..], &["--null-driver"]] {
        for command in ["vkCreateInstance", "vkCreateDevice", "vkCreateBuffer", "vkCreateFence"] {
            // Under `run` without the layer, so that the two differ in nothing else.
            let alone = [driver, &["--exit-code", "app"]].concat();
            let mut bare = stage.under_layer(&alone, "env");
            let want = ended(bare.args(["-u", "VK_INSTANCE_LAYERS"]).arg(&program).arg(command));
            assert!([10, 11, 128 + 6, 128 + 11].contains(&want), "{command} {driver:?} ends with {want}");
            for options in [&[][..], &["--stats"], &["--print", "calls.txt"]] {
                let options = [&alone[..], options].concat();
                let got = ended(stage.under_layer(&options, &program).arg(command));
                assert_eq!(got, want, "{command} {options:?}");
            }
        }
    }
}

/// Its exit code, as a shell tells it, after it did what it was made for.
fn ended(command: &mut Command) -> i32 {
    let output = output(command);
    let said = text(&output.stderr);
    assert_eq!(text(&output.stdout), "before\n", "{command:?}\n{said}");
    output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default())
}

pub(crate) fn compiled(stage: &TestEnvironment, source: &str) -> std::path::PathBuf {
    let program = stage.folder.join("program");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(source);
    let mut command = Command::new("cc");
    succeed(command.args(["-Wall", "-Werror"]).arg(source).arg("-o").arg(&program).arg("-lvulkan"));
    program
}
