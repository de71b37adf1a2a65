//! `run --gpu`: what shaders access out of bounds is reported, and nothing else changes.

use crate::common::{output, text};
use crate::displays::XServer;
use crate::faults::{is_only_for_null, is_rare};
use crate::test_environment::{TestEnvironment, names, samples, succeed, unwrapped};

use lavascope_test_support::{set_driver, swiftshader};

/// A finding: what its message is called, what it says, and how often it happened.
pub(crate) type Expected = (&'static str, &'static [&'static str], u64);

pub(crate) const STORAGE: &str = "VUID-vkCmdDispatch-storageBuffers-06936";
const STORAGE_IN_DRAW: &str = "VUID-vkCmdDraw-storageBuffers-06936";
const ADDRESS: &str = "VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819";
const TEXELS: &str = "UNASSIGNED-Descriptor Texel Buffer texel out of bounds";

/// Samples, and what is found in them.
const FAULTS: [(&str, &[Expected]); 31] = [
    (
        "fault-bounds-read",
        &[(
            STORAGE,
            &[
                "where 512 bytes are bound",
                "binding = 0",
                "with indices from 128 to 255",
                "10:     target[at] = source[at] * 2u;",
            ],
            128,
        )],
    ),
    (
        "fault-bounds-write",
        &[(
            STORAGE,
            &[
                "where 512 bytes are bound",
                "binding = 1",
                "with indices from 128 to 255",
                "file double.comp at line 10",
            ],
            128,
        )],
    ),
    (
        "fault-bounds-array",
        &[(
            STORAGE,
            &[
                "where 64 bytes are bound to descriptor 2",
                "with indices from 16 to 255",
                "Stage = Compute. Global invocation ID (x, y, z) = (",
            ],
            240,
        )],
    ),
    (
        "fault-bounds-uniform",
        &[(
            "VUID-vkCmdDraw-uniformBuffers-06935",
            &[
                "bytes 0 to 15, where 8 bytes are bound",
                "Stage = Fragment. Fragment coord (x,y) = (",
                "vkCmdDraw (",
                "Pipeline (uniform.frag)(",
            ],
            256,
        )],
    ),
    (
        // The lines are in NonSemantic.Shader.DebugInfo.100.
        "fault-bounds-texels",
        &[(
            TEXELS,
            &[
                "of 128 (set = 0, binding = 0)",
                "with indices from 128 to 255",
                "texels_debuginfo.comp at line 10",
                "10:     target[at] = texelFetch(source, int(at)).x;",
            ],
            128,
        )],
    ),
    ("fault-bounds-texels-write", &[(TEXELS, &["of 128 (set = 0, binding = 1)", "store_texels.comp at line 10"], 128)]),
    (
        "fault-bounds-index",
        &[(
            "VUID-vkCmdDispatch-None-10068",
            &[
                "Index of 4 used to index descriptor array of length 4 (set = 0, binding = 0)",
                "with index 4",
                "pick.comp at line 11",
            ],
            256,
        )],
    ),
    (
        "fault-bounds-never-written",
        &[(
            "VUID-vkCmdDispatch-None-08114",
            &[
                "Storage buffer descriptor index 2 was never written (set = 0, binding = 0)",
                "with index 2",
                "pick.comp at line 11",
            ],
            256,
        )],
    ),
    (
        // Line 100 is that of the file that the shader names by `#line`.
        "fault-bounds-three",
        &[
            (
                STORAGE,
                &["where 512 bytes are bound", "binding = 0", "sum.glsl at line 101", "101:     uint one = first[at];"],
                128,
            ),
            (
                STORAGE,
                &[
                    "where 256 bytes are bound",
                    "binding = 1",
                    "with indices from 64 to 255",
                    "102:     uint two = second[at];",
                ],
                192,
            ),
            (
                STORAGE,
                &[
                    "where 512 bytes are bound",
                    "binding = 2",
                    "sum.glsl at line 103",
                    "103:     target[at] = one + two;",
                ],
                128,
            ),
        ],
    ),
    ("fault-bounds-loop", &[(STORAGE, &["with index 128.", "until.glsl at line 9, column 11."], 256)]),
    (
        "fault-bounds-wrap",
        &[(
            STORAGE,
            &["with indices from 1073741824 to 1073742079", "where 1024 bytes are bound", "far.comp at line 11"],
            256,
        )],
    ),
    (
        // There is no file, and each entry point has a pipeline of its own.
        // One place in the source, which two pipelines share.
        "fault-bounds-shared",
        &[(STORAGE, &["with indices from 128 to 255", "occurred at line 7, column 12.", "(dispatch 0 of"], 256)],
    ),
    (
        "fault-bounds-vertex",
        &[(
            STORAGE_IN_DRAW,
            &["with indices from 3 to 5", "Stage = Vertex. Vertex index = ", "corners.vert at line 7"],
            3,
        )],
    ),
    (
        "fault-bounds-geometry",
        &[(
            STORAGE_IN_DRAW,
            &[
                "with indices from 3 to 5",
                "Stage = Geometry. Primitive ID = 1, invocation ID = 0",
                "corners.geom at line 10",
            ],
            3,
        )],
    ),
    (
        "fault-bounds-tessellation",
        &[
            (
                STORAGE_IN_DRAW,
                &[
                    "with indices from 3 to 5",
                    "Stage = Tessellation Control. Invocation ID = ",
                    "primitive ID = 1",
                    "corners.tesc at line 8",
                ],
                3,
            ),
            (
                STORAGE_IN_DRAW,
                &[
                    "with index 1.",
                    "Stage = Tessellation Evaluation. Primitive ID = 1, TessCoord (u, v) = (",
                    "corners.tese at line 10",
                ],
                3,
            ),
        ],
    ),
    (
        "fault-bounds-discard",
        &[(STORAGE_IN_DRAW, &["with indices from 128 to 255", "Stage = Fragment", "discard.frag at line 9"], 128)],
    ),
    (
        "fault-bounds-address",
        &[(
            ADDRESS,
            &[
                "4 bytes at device address 0x",
                "0 bytes behind the end of buffer (source)",
                "which has 1020 bytes",
                "with index 255",
                "address.comp at line 11",
                "target.words[at] = source.words[at] * 2u;",
            ],
            1,
        )],
    ),
    (
        "fault-bounds-address-null",
        &[(ADDRESS, &["the address is null", "with indices from 0 to 255", "address.comp at line 11"], 256)],
    ),
    (
        "fault-bounds-address-freed",
        &[(ADDRESS, &["in buffer (source)", "which was destroyed", "with indices from 0 to 255"], 256)],
    ),
    (
        "fault-bounds-linked",
        &[(STORAGE_IN_DRAW, &["with indices from 3 to 5", "Stage = Vertex", "corners.vert at line 7"], 3)],
    ),
    // Pending twice at once, in a secondary command buffer, and nobody waits for a fence.
    ("fault-bounds-again", &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 256)]),
    ("fault-bounds-exit", &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 128)]),
    ("fault-bounds-pushed", &[(STORAGE, &["binding = 0", "where 512 bytes", "with indices from 128 to 255"], 128)]),
    ("fault-bounds-pushed-template", &[(STORAGE, &["binding = 0", "where 512 bytes", "from 128 to 255"], 128)]),
    (
        "fault-bounds-pushed-never",
        &[("VUID-vkCmdDispatch-None-08114", &["index 2 was never written (set = 0, binding = 0)"], 256)],
    ),
    ("fault-bounds-pushed-kept", &[(STORAGE, &["binding = 0", "where 512 bytes", "from 128 to 255"], 256)]),
    (
        "fault-bounds-labels",
        &[(STORAGE, &["in \"frame::around::inside\")", "Command buffer (inside)", "from 128 to 255"], 128)],
    ),
    ("fault-bounds-families", &[(STORAGE, &["binding = 0", "where 512 bytes", "from 128 to 255"], 256)]),
    ("fault-bounds-full-sets", &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 128)]),
    ("fault-bounds-full-constants", &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 128)]),
    ("fault-bounds-full", &[(STORAGE, &["binding = 0", "with indices from 128 to 255"], 128)]),
];

/// The same where descriptors may be indexed freely.
const INDEXING_FAULTS: [(&str, &[Expected]); 2] = [
    (
        "fault-bounds-sampler-index",
        &[(
            "VUID-vkCmdDraw-None-10068",
            &[
                "Index of 6 used to index descriptor array of length 6 (set = 0, binding = 0)",
                "Stage = Fragment. Fragment coord (x,y) = (",
                "12:     vec4 one = texture(tex[tex_ind], place);",
            ],
            256,
        )],
    ),
    (
        "fault-bounds-sampler-never",
        &[(
            "VUID-vkCmdDraw-None-08114",
            &[
                "Image descriptor index 1 was never written (set = 0, binding = 2)",
                "13:     vec4 other = texture(open[nonuniformEXT(late)], place);",
            ],
            256,
        )],
    ),
];

/// Runs a sample with its fault and without it.
pub(crate) fn assert_findings(
    stage: &TestEnvironment,
    name: &str,
    expected: &[Expected],
    change: impl Fn(&mut std::process::Command),
) {
    // Without `--stats`, so that nobody records calls.
    let mut command = stage.under_layer(&["--gpu", "--json", "report.json"], samples());
    change(command.arg(name));
    let run = output(&mut command);
    assert_eq!(run.status.code(), Some(1), "{name}: {}", text(&run.stderr));
    let report = stage.report();
    let findings = report.0["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), expected.len(), "{name}: {:#}", report.0);
    for (code, parts, count) in expected {
        let says =
            |it: &&serde_json::Value| parts.iter().all(|part| it["message"].as_str().unwrap_or("").contains(part));
        let finding = findings.iter().find(says);
        let finding = finding.unwrap_or_else(|| panic!("{name}: {parts:?}: {:#}", report.0));
        assert_eq!((&finding["code"], &finding["severity"]), (&(*code).into(), &"error".into()), "{name}");
        assert_eq!(invocations(finding), *count, "{name}: {finding:#}");
        let said = finding["message"].as_str().unwrap_or_default();
        for part in
            ["of command buffer ", "Command buffer (", "Pipeline (", "Shader Module (", "Shader Instruction Index = "]
        {
            assert!(said.contains(part), "{name}: {part}: {said}");
        }
    }
    let mut command = stage.under_layer_with_report(&["--gpu"], samples());
    change(command.args([name, "--fixed"]));
    succeed(&mut command);
    stage.report().assert_clean(name);
}

#[test]
fn accesses_out_of_bounds_are_reported_and_fixed_ones_are_not() {
    let stage = TestEnvironment::new("gpu-bounds");
    for (name, expected) in FAULTS {
        assert_findings(&stage, name, expected, |_| ());
    }
}

/// A dispatch counts once for each execution of its command buffer: submitted twice, pending twice at once, or recorded
/// again.
#[test]
fn each_execution_of_a_dispatch_counts() {
    let stage = TestEnvironment::new("gpu-executions");
    for (name, occurrences, note) in [
        ("fault-bounds-read", 1, "128 invocations in 1 dispatch"),
        ("fault-bounds-again", 2, "128 invocations in each of 2 dispatches"),
        ("fault-bounds-pushed-kept", 2, "128 invocations in each of 2 dispatches"),
        ("fault-bounds-families", 2, "128 invocations in each of 2 dispatches"),
    ] {
        output(stage.under_layer_with_report(&["--gpu"], samples()).arg(name));
        let report = stage.report();
        let finding = &report.0["findings"][0];
        let found = (finding["occurrences"].as_u64(), finding["notes"][0].as_str());
        assert_eq!(found, (Some(occurrences), Some(note)), "{name}: {finding:#}");
    }
}

/// What a hexadecimal handle of an object looks like.
fn has_handle(text: &str) -> bool {
    let digits = |it: &str| it.chars().take_while(char::is_ascii_hexdigit).count();
    text.split("0x").skip(1).any(|it| digits(it) >= 6)
}

/// The command that called a shader has its line, its number and its names, and no handle; a buffer has its name.
#[test]
fn findings_show_the_command_that_called_the_shader() {
    let stage = TestEnvironment::new("gpu-places");
    for (name, place, title) in [
        (
            "fault-bounds-read",
            "VkCommandBuffer#0 \"read\"",
            "source[128] is past the end of buffer \"source\" (128 elements)",
        ),
        (
            "fault-bounds-bare",
            "VkCommandBuffer#0 \"double\"",
            "element 128 is past the end of buffer \"source\" (128 elements)",
        ),
        (
            "fault-bounds-address",
            "VkCommandBuffer#0 \"double\"",
            "source.words[255] is past the end of buffer \"source\" (1020 bytes), read by its device address",
        ),
    ] {
        let mut command = stage.lavascope();
        command.args(["run", "--gpu", "--json", "a.json", "--format=text=a.text", "--format=short=a.short"]);
        command.args(["--format=markdown=a.markdown", "--"]).arg(samples()).args([name, "--no-check"]);
        assert_eq!(output(&mut command).status.code(), Some(1), "{name}");
        let read = |file: &str| std::fs::read_to_string(stage.folder.join(file)).expect(file);
        let report: serde_json::Value = serde_json::from_str(&read("a.json")).expect("JSON");
        let finding = &report["findings"][0];
        assert_eq!(finding["title"], title, "{name}: {finding:#}");
        assert!(!finding["fixes"][0]["text"].as_str().unwrap_or_default().is_empty(), "{name}: {finding:#}");
        let access = &finding["accesses"][0];
        let shown = access["place"].as_str().unwrap_or_default();
        assert!(shown.starts_with("command ") && shown.ends_with(&format!(" of {place}")), "{name}: {shown}");
        let frames = access["stack"]["frames"].as_array().expect("frames");
        let is_sample = |it: &serde_json::Value| it["source"]["file"].as_str().is_some_and(|it| it.ends_with(".rs"));
        assert!(frames.iter().any(is_sample), "{name}: {access:#}");
        for file in ["a.text", "a.short", "a.markdown"] {
            assert!(!has_handle(&read(file)), "{name}: {}", read(file));
        }
        assert!(read("a.text").contains("called by this dispatch, in \""), "{name}: {}", read("a.text"));
        // A shader without a file has the line of its command.
        let line = read("a.short");
        let file = if name == "fault-bounds-bare" { ".rs:" } else { ".comp:" };
        assert!(line.split(": error: ").next().is_some_and(|it| it.contains(file)), "{name}: {line}");
    }
}

/// Without synchronization validation, draws and dispatches are counted, and handles are not shown either.
#[test]
fn a_command_is_named_without_synchronization_validation() {
    let stage = TestEnvironment::new("gpu-places-alone");
    let mut command = stage.lavascope();
    command.args(["run", "--gpu", "--no-sync", "--"]).arg(samples()).args(["fault-bounds-read", "--no-check"]);
    let said = unwrapped(&text(&output(&mut command).stderr)).replace("\n|", "");
    assert!(!has_handle(&said), "{said}");
    assert!(said.contains("by this dispatch, in \"read\": dispatch 1 of"), "{said}");
}

#[test]
fn arrays_of_pictures_are_checked_where_descriptors_may_be_indexed() {
    let driver = swiftshader();
    let stage = TestEnvironment::new("gpu-indexing");
    let change = |command: &mut std::process::Command| {
        set_driver(command, &driver);
    };
    for (name, expected) in INDEXING_FAULTS {
        assert_findings(&stage, name, expected, change);
    }
}

/// Whether something in a sample cannot be checked, which is reported.
fn is_unchecked(name: &str) -> bool {
    ["-binary", "-unmapped"].iter().any(|it| name.ends_with(it))
}

/// What lavapipe lacks is at least called right: nothing fails, and nothing is reported that is not so.
#[test]
fn rare_extensions_are_taken_on_the_null_driver() {
    let stage = TestEnvironment::new("gpu-rare");
    let all: Vec<String> = names().into_iter().filter(|it| is_rare(it)).collect();
    assert!(all.len() >= 15, "{all:?}");
    for name in all {
        for planted in [&[][..], &["--fixed"]] {
            let mut command = stage.under_layer_with_report(&["--gpu", "--null-driver"], samples());
            let run = succeed(command.args([&name, "--no-check"]).args(planted));
            assert_eq!(stage.report().0["findings"].as_array().map(Vec::len), Some(0), "{name}");
            let said = text(&run.stderr);
            assert_eq!(said.matches("not checked").count(), usize::from(is_unchecked(&name)), "{name}: {said}");
        }
    }
}

/// The calls of a sample, as the null driver gets them.
fn calls(stage: &TestEnvironment, arguments: &[&str]) -> Vec<String> {
    let log = stage.folder.join("calls.txt");
    let _ = std::fs::remove_file(&log);
    let mut command = stage.under_layer(&["--gpu", "--null-driver"], samples());
    succeed(command.args(arguments).arg("--no-check").env("LAVASCOPE_NULL_LOG", &log));
    let text = std::fs::read_to_string(&log).expect("a log");
    text.lines().map(str::to_owned).collect()
}

/// Shaders are led to their tables before whatever runs them.
#[test]
fn tables_are_reported_before_rare_commands() {
    let stage = TestEnvironment::new("gpu-rare-calls");
    // A sample without push constants, what runs its shaders, and what must not be called.
    let all = [
        ("object", "vkCmdDispatch", "vkCmdBindPipeline"),
        ("object-linked", "vkCmdDraw", "vkCmdBindPipeline"),
        ("buffered", "vkCmdDispatch", "vkCmdBindDescriptorSets"),
        ("chained-module", "vkCmdDispatch", "vkCreateShadersEXT"),
        ("rays-library", "vkCmdTraceRaysKHR", "vkDeferredOperationJoinKHR"),
        ("generated", "vkCmdExecuteGeneratedCommandsNV", "vkCreateShadersEXT"),
    ];
    for (name, runs, never) in all {
        let calls = calls(&stage, &[&format!("fault-bounds-{name}")]);
        let at = calls.iter().position(|it| it == runs).unwrap_or_else(|| panic!("{name}: {calls:?}"));
        assert_eq!(calls[at - 1], "vkCmdPushConstants", "{name}: {calls:?}");
        assert!(!calls.iter().any(|it| it == never), "{name}: {calls:?}");
    }
    // Too little is bound, and that is known: the objects are made again with branches, one by one.
    let made = |arguments: &[&str]| calls(&stage, arguments).iter().filter(|it| *it == "vkCreateShadersEXT").count();
    assert_eq!(made(&["fault-bounds-object-uniform", "--fixed"]), 1);
    assert_eq!(made(&["fault-bounds-object-uniform"]), 3);
    // Of the binary that the application takes an object is made without checks, and destroyed in the end.
    let calls = calls(&stage, &["fault-bounds-object-binary"]);
    let count = |name: &str| calls.iter().filter(|it| *it == name).count();
    assert_eq!((count("vkCreateShadersEXT"), count("vkDestroyShaderEXT")), (3, 3), "{calls:?}");
}

/// Handles have their names in messages, and places the labels around them.
#[test]
fn findings_name_objects_and_labels() {
    let stage = TestEnvironment::new("gpu-names");
    output(stage.under_layer_with_report(&["--gpu"], samples()).arg("fault-bounds-three"));
    let report = stage.report();
    let finding = &report.0["findings"][0];
    let said = finding["message"].as_str().unwrap_or_default();
    for part in ["Command buffer (add)(0x", "Pipeline (three.comp)(0x", "Shader Module (three.comp)(0x", "three faults"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(finding["function"], "vkCmdDispatch", "{finding:#}");
    assert_eq!(finding["accesses"][0]["labels"], "add::three faults", "{finding:#}");
    let properties = finding["properties"].as_array().expect("properties");
    let property = |key: &str| properties.iter().find(|it| it["key"] == key).map(|it| it["value"].clone());
    for (key, value) in [("set", "0"), ("file", "sum.glsl"), ("draw", "0")] {
        assert_eq!(property(key), Some(value.into()), "{key}: {finding:#}");
    }
    assert!(property("line").is_some() && property("instruction").is_some(), "{finding:#}");
}

#[test]
fn what_shaders_print_is_shown_with_its_line() {
    let stage = TestEnvironment::new("gpu-printf");
    let run = succeed(stage.under_layer_with_report(&["--printf"], samples()).arg("printf"));
    let shown = text(&[run.stdout, run.stderr].concat());
    let lines = [
        "printf.comp:14: invocation 5: the square of 15 is 225, half of it 112.5",
        "printf.comp:14: invocation 37: the square of 47 is 2209, half of it 1104.5",
    ];
    for line in lines {
        assert_eq!(shown.matches(line).count(), 1, "{line}: {shown}");
    }
    stage.report().assert_clean("printf");
    let prints = &stage.report().0["processes"][0]["prints"];
    assert_eq!(prints.as_array().map(Vec::len), Some(2), "{prints:#}");
    assert_eq!((&prints[0]["file"], &prints[0]["line"]), (&"printf.comp".into(), &14.into()), "{prints:#}");
    assert_eq!(prints[0]["command"], "vkCmdDispatch");
    // Without the wish nothing is printed, and faults are not looked for by it.
    let run = succeed(stage.under_layer_with_report(&["--gpu"], samples()).arg("printf"));
    assert!(!text(&[run.stdout, run.stderr].concat()).contains("the square of"));
    succeed(stage.under_layer_with_report(&["--printf"], samples()).arg("fault-bounds-read"));
    stage.report().assert_clean("fault-bounds-read");
}

/// The names that users of the Khronos layer know.
#[test]
fn printing_is_switched_on_by_khronos_names() {
    let stage = TestEnvironment::new("gpu-printf-khronos");
    let line = "invocation 5: the square of 15 is 225";
    let all: [&[(&str, &str)]; 4] = [
        &[("VK_LAYER_PRINTF_ENABLE", "1"), ("VK_LAYER_PRINTF_TO_STDOUT", "1")],
        &[("VK_LAYER_ENABLES", "VK_VALIDATION_FEATURE_ENABLE_DEBUG_PRINTF_EXT"), ("VK_LAYER_PRINTF_TO_STDOUT", "1")],
        &[("VK_LAYER_VALIDATE_GPU_BASED", "GPU_BASED_DEBUG_PRINTF"), ("VK_LAYER_PRINTF_TO_STDOUT", "1")],
        &[("VK_LAYER_PRINTF_ENABLE", "1"), ("VK_LAYER_PRINTF_TO_STDOUT", "1"), ("VK_LAYER_PRINTF_VERBOSE", "1")],
    ];
    for variables in all {
        let run = succeed(stage.under_layer(&[], samples()).arg("printf").envs(variables.iter().copied()));
        assert_eq!(text(&run.stdout).matches(line).count(), 1, "{variables:?}: {}", text(&run.stdout));
        assert_eq!(text(&run.stdout).contains("Stage = Compute"), variables.len() == 3, "{variables:?}");
    }
    // Each of the two takes 13 words.
    let variables = [("VK_LAYER_PRINTF_ENABLE", "1"), ("VK_LAYER_PRINTF_BUFFER_SIZE", "64")];
    let run = output(stage.under_layer_with_report(&[], samples()).arg("printf").envs(variables));
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    let report = stage.report();
    assert_eq!(report.0["processes"][0]["prints"].as_array().map(Vec::len), Some(1), "{:#}", report.0);
    let said = report.0["processes"][0]["problems"][0]["text"].as_str().unwrap_or_default();
    assert!(said.contains("needed 104 bytes; set printf_buffer_size"), "{said}");
}

/// The samples compare their results themselves.
#[test]
fn results_are_the_same_where_shaders_check_themselves() {
    let (stage, screen) = (TestEnvironment::new("gpu-same"), XServer::start());
    for name in names() {
        if is_only_for_null(&name) {
            continue;
        }
        let mut command = stage.under_layer_with_report(&["--gpu"], samples());
        command.arg(&name).env("DISPLAY", &screen.display);
        if name.starts_with("fault-") {
            command.arg("--fixed");
        }
        succeed(&mut command);
        stage.report().assert_clean(&name);
    }
}

/// A thread may read what the shaders of another thread's command buffer found, while that thread records it anew.
#[test]
fn threads_that_hand_over_command_buffers_keep_their_tables() {
    let stage = TestEnvironment::new("gpu-hand-over");
    let wanted = std::env::var("LAVASCOPE_TEST_RUNS").ok().and_then(|it| it.parse().ok());
    for _ in 0..wanted.unwrap_or(5) {
        let mut command = stage.under_layer_with_report(&["--gpu"], samples());
        succeed(command.args(["threads-handoff", "--threads", "16", "--frames", "60"]));
        stage.report().assert_clean("threads-handoff");
    }
}

/// A shader with many sites remembers the first fault of an invocation; for the others it is made again.
#[test]
fn faults_that_were_only_seen_get_their_details_later() {
    let stage = TestEnvironment::new("gpu-many");
    let run = output(stage.under_layer_with_report(&["--gpu"], samples()).arg("fault-bounds-many"));
    assert_eq!(run.status.code(), Some(1), "{}", text(&run.stderr));
    let report = stage.report();
    let findings = report.0["findings"].as_array().expect("findings");
    assert_eq!(findings.len(), 6, "{:#}", report.0);
    for (line, factor) in (10..16).zip(1..) {
        let text = |it: &serde_json::Value| it["message"].as_str().unwrap_or_default().to_owned();
        let is_it = |it: &&serde_json::Value| text(it).contains(&format!("many.comp at line {line}"));
        let finding = findings.iter().find(is_it).unwrap_or_else(|| panic!("line {line}: {:#}", report.0));
        let said = text(finding);
        let range = format!("with indices from {} to {}", 128 * factor, 255 * factor);
        assert!(said.contains(&range), "{range}: {said}");
        assert!(said.contains("where 512 bytes are bound"), "{said}");
    }
    succeed(stage.under_layer_with_report(&["--gpu"], samples()).args(["fault-bounds-many", "--fixed"]));
    stage.report().assert_clean("fault-bounds-many");
}

/// No allocation of ours, or few: that is reported once, the program goes on, and its results are right.
#[test]
fn without_memory_for_checks_a_program_goes_on() {
    let stage = TestEnvironment::new("gpu-no-memory");
    // The last ones have tables in a set of ours, and in constants.
    let all: [&[&str]; 6] = [
        &["descriptors"],
        &["compute"],
        &["triangle-dynamic"],
        &["threads"],
        &["fault-bounds-full-constants", "--fixed"],
        &["fault-bounds-full", "--fixed"],
    ];
    for arguments in all {
        let name = arguments[0];
        for allowed in 0..8 {
            let mut command = stage.under_layer_with_report(&["--gpu"], samples());
            let run = output(command.args(arguments).env("LAVASCOPE_GPU_ALLOCATIONS", allowed.to_string()));
            // Where not even the device can be prepared, the check that was asked for is not made.
            let is_impossible = text(&run.stderr).contains("no device of this run can make the checks");
            let code = if is_impossible { 2 } else { 0 };
            assert_eq!(run.status.code(), Some(code), "{name}, {allowed}: {}", text(&run.stderr));
            assert_eq!(stage.report().0["exit_code"], 0, "{name}, {allowed}: the program goes on");
            let said = text(&run.stderr).matches("setting gpu: there is no memory for checks").count();
            assert!(said <= 1, "{name}, {allowed}: {}", text(&run.stderr));
            assert!(allowed > 0 || said == 1 && is_impossible, "{name}: {}", text(&run.stderr));
        }
    }
}

/// The records of calls are of the calls that the application made.
#[test]
fn hazards_are_found_beside_checks() {
    let stage = TestEnvironment::new("gpu-and-sync");
    let run =
        output(stage.under_layer_with_report(&["--gpu", "--sync"], samples()).arg("fault-missing-barrier-compute"));
    assert!(text(&run.stderr).contains("error[RAW]: "), "{}", text(&run.stderr));
    let run = output(stage.under_layer_with_report(&["--gpu", "--sync"], samples()).arg("fault-bounds-write"));
    let said = text(&run.stderr);
    assert!(said.contains("error[STORAGE-BOUNDS]: ") && !said.contains("error[WA"), "{said}");
}

/// A trace has the shaders, so a fault can be found when it is performed again.
#[test]
fn a_captured_fault_is_found_when_it_is_replayed() {
    let stage = TestEnvironment::new("gpu-replay");
    for (options, code) in [(&["--fixed"][..], 0), (&[], 1)] {
        let mut capture = stage.lavascope();
        capture.args(["capture", "-o", "trace.lava", "--"]).arg(samples()).arg("fault-bounds-three").args(options);
        succeed(&mut capture);
        for what in ["gpu", "all"] {
            let mut command = stage.lavascope();
            let run = output(command.args(["replay", "trace.lava", "--verbose", "--validate", what]));
            let said = text(&run.stderr);
            assert_eq!(run.status.code(), Some(code), "{what}: {said}");
            let line = "102:     uint two = second[at];";
            assert_eq!(said.contains("error[STORAGE-BOUNDS]: "), code == 1, "{what}: {said}");
            assert_eq!(said.contains("It happened 192 times") && said.contains(line), code == 1, "{what}: {said}");
            // A reason names what a user of `replay` can change.
            assert!(!said.contains("(off by "), "{what}: {said}");
            assert_eq!(said.contains("synchronization (--validate all)"), what == "gpu", "{what}: {said}");
        }
        let mut command = stage.lavascope();
        succeed(command.args(["replay", "trace.lava", "--validate", "sync"]));
    }
}

/// In how many invocations a shader fault occurred; it counts once for each draw.
pub(crate) fn invocations(finding: &serde_json::Value) -> u64 {
    let facts = finding["properties"].as_array().map_or(&[][..], Vec::as_slice);
    let own = facts.iter().find(|it| it["key"] == "invocations").and_then(|it| it["value"].as_str());
    own.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// How often a fault of a sample was reported, where the sample or its surroundings ask for checks.
fn fault_count(stage: &TestEnvironment, options: &[&str], variables: &[(&str, &str)], name: &str) -> u64 {
    let run = output(stage.under_layer_with_report(options, samples()).arg(name).envs(variables.iter().copied()));
    assert!(matches!(run.status.code(), Some(0 | 1)), "{variables:?}: {}", text(&run.stderr));
    let report = stage.report();
    let findings = report.0["findings"].as_array().expect("findings");
    findings.iter().map(invocations).sum()
}

/// `VK_EXT_validation_features`, `VK_EXT_layer_settings`, a settings file, and variables.
#[test]
fn checks_are_switched_on_in_all_the_ways_of_khronos() {
    let stage = TestEnvironment::new("gpu-khronos");
    let assisted = "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT";
    let slot = "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT";
    let both = format!("{assisted},{slot}");
    let ways: [&[(&str, &str)]; 8] = [
        &[("LAVASCOPE_SAMPLE_ENABLES", "gpu")],
        &[("LAVASCOPE_SAMPLE_ENABLES", "gpu,slot")],
        &[("LAVASCOPE_SAMPLE_ENABLES", "settings")],
        &[("VK_LAYER_GPUAV_ENABLE", "1")],
        &[("VK_LAYER_ENABLES", assisted)],
        &[("VK_LAYER_ENABLES", &both)],
        &[("VK_LAYER_VALIDATE_GPU_BASED", "GPU_BASED_GPU_ASSISTED")],
        &[("VK_KHRONOS_VALIDATION_GPUAV_ENABLE", "true")],
    ];
    for variables in ways {
        assert_eq!(fault_count(&stage, &[], variables, "fault-bounds-read"), 128, "{variables:?}");
    }
    for off in [&[][..], &[("LAVASCOPE_SAMPLE_ENABLES", "slot")]] {
        assert_eq!(fault_count(&stage, &[], off, "fault-bounds-read"), 0, "it is off by default");
    }
    for line in [assisted, &both] {
        let file = format!("khronos_validation.enables = {line}\n");
        std::fs::write(stage.folder.join("vk_layer_settings.txt"), file).expect("it can be written");
        assert_eq!(fault_count(&stage, &[], &[], "fault-bounds-read"), 128, "{line}");
    }
}

/// Kinds of checks, and which shaders and pipelines have them.
#[test]
fn what_is_checked_can_be_chosen() {
    /// A sample, variables, and how many faults are reported.
    type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u64);
    let stage = TestEnvironment::new("gpu-chosen");
    let all: [Case<'_>; 14] = [
        ("fault-bounds-read", &[("VK_LAYER_GPUAV_BUFFER_OOB", "0")], 0),
        ("fault-bounds-texels", &[("LAVASCOPE_GPU_BUFFER_BOUNDS", "0")], 0),
        ("fault-bounds-index", &[("LAVASCOPE_GPU_BUFFER_BOUNDS", "0")], 256),
        ("fault-bounds-index", &[("VK_LAYER_GPUAV_DESCRIPTOR_CHECKS", "0")], 0),
        ("fault-bounds-read", &[("VK_LAYER_GPUAV_DESCRIPTOR_CHECKS", "0")], 128),
        ("fault-bounds-read", &[("VK_LAYER_GPUAV_SHADER_INSTRUMENTATION", "0")], 0),
        ("fault-bounds-read", &[("LAVASCOPE_MESSAGE_ID_FILTER", "VUID-vkCmdDispatch-storageBuffers-06936")], 0),
        ("fault-bounds-read", &[("VK_LAYER_MESSAGE_ID_FILTER", "0xace7baff")], 0),
        ("fault-bounds-read", &[("VK_LAYER_GPUAV_SELECT_INSTRUMENTED_SHADERS", "1")], 0),
        (
            "fault-bounds-read",
            &[("VK_LAYER_GPUAV_SELECT_INSTRUMENTED_SHADERS", "1"), ("VK_LAYER_GPUAV_SHADERS_TO_INSTRUMENT", "^double")],
            128,
        ),
        ("fault-bounds-read", &[("LAVASCOPE_GPU_SHADERS", "triple")], 0),
        ("fault-bounds-shared", &[("LAVASCOPE_GPU_SHADERS", "^triple$")], 128),
        ("fault-bounds-shared", &[("LAVASCOPE_GPU_SHADERS", "^ma,^triple$")], 256),
        ("fault-bounds-shared", &[], 256),
    ];
    for (name, variables, count) in all {
        assert_eq!(fault_count(&stage, &["--gpu"], variables, name), count, "{name} {variables:?}");
    }
    let options: [(&str, &[&str], u64); 4] = [
        ("fault-bounds-shared", &["--gpu", "--sample", "2"], 128),
        // The pipeline gets this name after it is created; the shader with the fault has another one.
        ("fault-bounds-vertex", &["--gpu", "--shaders", "green"], 3),
        ("fault-bounds-vertex", &["--gpu", "--shaders", "blue"], 0),
        ("fault-bounds-vertex", &["--gpu", "--shaders", "corners"], 3),
    ];
    for (name, options, count) in options {
        assert_eq!(fault_count(&stage, options, &[], name), count, "{name} {options:?}");
    }
    let run = output(stage.under_layer_with_report(&["--gpu", "--shaders", "("], samples()).arg("fault-bounds-read"));
    assert!(text(&run.stderr).contains("setting gpu_shaders"), "{}", text(&run.stderr));
}

/// Shaders with checks are kept, used again, and made again where their files are damaged.
#[test]
fn shaders_with_checks_are_kept_on_disk() {
    let stage = TestEnvironment::new("gpu-cache");
    let folder = stage.folder.join("kept");
    let variables = [("LAVASCOPE_GPU_CACHE", "1"), ("LAVASCOPE_GPU_CACHE_FOLDER", folder.to_str().expect("a path"))];
    let files = || {
        let all = std::fs::read_dir(&folder).expect("a folder").map(|it| it.expect("a file").path());
        all.map(|it| (std::fs::metadata(&it).and_then(|it| it.modified()).expect("a time"), it)).collect::<Vec<_>>()
    };
    assert_eq!(fault_count(&stage, &["--gpu"], &variables, "fault-bounds-read"), 128);
    let first = files();
    assert!(!first.is_empty());
    assert_eq!(fault_count(&stage, &["--gpu"], &variables, "fault-bounds-read"), 128);
    assert_eq!(files(), first, "they are used, and not written again");
    for (_, path) in &first {
        let mut bytes = std::fs::read(path).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(path, bytes).expect("it can be written");
    }
    assert_eq!(fault_count(&stage, &["--gpu"], &variables, "fault-bounds-read"), 128);
    assert_eq!(files().len(), first.len());
    let whole = |it: &(_, std::path::PathBuf)| std::fs::read(&it.1).expect("a file").len() > 100;
    assert!(files().iter().all(whole));
}

/// It has everything, ray tracing and acceleration structures too, and runs no shaders.
#[test]
fn every_sample_runs_with_checks_on_the_null_driver() {
    let stage = TestEnvironment::new("gpu-null");
    // One of them ends without destroying anything, as it is meant to.
    for name in names().into_iter().filter(|it| it != "fault-bounds-exit") {
        succeed(stage.under_layer_with_report(&["--null-driver", "--gpu"], samples()).args([&name, "--no-check"]));
        if !is_unchecked(&name) {
            stage.report().assert_clean(&name);
        }
    }
}
