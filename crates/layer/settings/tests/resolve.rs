//! Settings from each source, which source wins, and what is said about the rest.

use lavascope_settings::{
    ApplicationSettings, Compression, DebugAction, ExplainedSetting, FrameRange, LayerSetting, MessageId, OutputTarget,
    ReportFlag, SETTINGS, SettingValues, Settings, SettingsFile, Sources, resolve,
};

const SYNC: &str = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT";
const OWN: &str = "VK_LAYER_LAVASCOPE_inspect";
const KHRONOS: &str = "VK_LAYER_KHRONOS_validation";

fn file(text: &str) -> Sources {
    let file = SettingsFile { path: "s.txt".to_owned(), bytes: text.as_bytes().to_vec() };
    Sources { file: Some(file), ..Sources::default() }
}

fn environment(variables: &[(&str, &str)]) -> Sources {
    let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
    Sources { environment, ..Sources::default() }
}

fn application(settings: Vec<LayerSetting>) -> Sources {
    let application = ApplicationSettings { layer_settings: vec![settings], ..ApplicationSettings::default() };
    Sources { application, ..Sources::default() }
}

fn strings(layer: &str, name: &str, values: &[&str]) -> LayerSetting {
    let values = SettingValues::String(values.iter().map(|it| (*it).to_owned()).collect());
    LayerSetting { layer: layer.to_owned(), name: name.to_owned(), values }
}

fn typed(layer: &str, name: &str, values: SettingValues) -> LayerSetting {
    LayerSetting { layer: layer.to_owned(), name: name.to_owned(), values }
}

/// What differs from the defaults, as `name = value (source)`.
fn changed(settings: &Settings) -> Vec<String> {
    let defaults = Settings::default().explain();
    let all = settings.explain().into_iter().zip(defaults).filter(|(it, default)| it != default);
    all.map(|(it, _)| format!("{} = {} ({})", it.name, it.value, it.source)).collect()
}

#[track_caller]
fn check(sources: &Sources, expected: &[&str]) {
    assert_eq!(changed(&resolve(sources).0), expected);
}

/// The problems, without the notes on what does not exist yet: what exists changes, and these tests should not.
fn problems(sources: &Sources) -> Vec<String> {
    let all = resolve(sources).1.into_iter().map(|it| it.to_string());
    all.filter(|it| !it.contains("cannot do yet")).collect()
}

fn sync_setting(value: &str, source: &str) -> ExplainedSetting {
    ExplainedSetting { name: "sync", value: value.to_owned(), source: source.to_owned() }
}

#[test]
fn without_sources_there_are_defaults_and_no_problems() {
    let (settings, problems) = resolve(&Sources::default());
    assert_eq!(settings, Settings::default());
    assert_eq!(problems, []);
    assert_eq!(settings.explain().len(), SETTINGS.len());
    assert_eq!(settings.explain()[0], sync_setting("on", "default"));
    assert!(settings.sync && settings.sync_submit_time && !settings.gpu && settings.print.is_none());
    assert_eq!(settings.report_flags, [ReportFlag::Error, ReportFlag::Warn]);
    assert_eq!(settings.debug_action, [DebugAction::Default]);
    assert_eq!(settings.log_filename, OutputTarget::Stderr);
    assert_eq!(settings.capture_compression, Compression::Zstd);
}

#[test]
fn a_file_is_read_line_by_line() {
    for (text, expected) in [
        ("lavascope_inspect.sync = on", "sync = on (s.txt:1:26)"),
        ("\n\n  lavascope_inspect.sync=yes\r\n", "sync = on (s.txt:3:26)"),
        ("\u{feff}LAVASCOPE_INSPECT.SYNC = TRUE # why", "sync = on (s.txt:1:26)"),
        ("khronos_validation.validate_sync = true", "sync = on (s.txt:1:36)"),
        ("khronos_validation.sync_queue_submit = false", "sync_submit_time = off (s.txt:1:40)"),
        ("lavascope_inspect.validate_sync = 1", "sync = on (s.txt:1:35)"),
        ("lavascope_inspect.sync = off\nlavascope_inspect.sync = on", "sync = on (s.txt:2:26)"),
        ("lavascope_inspect.sync = on\nkhronos_validation.validate_sync = off", "sync = on (s.txt:1:26)"),
        ("khronos_validation.printf_buffer_size = 0x800", "printf_buffer_size = 2048 (s.txt:1:41)"),
        ("lavascope_inspect.screenshots = \"a b\"", "screenshots = a b (s.txt:1:33)"),
        ("lavascope_inspect.capture_frames = 3..7", "capture_frames = 3..7 (s.txt:1:36)"),
        ("lavascope_inspect.capture_compression = LZ4", "capture_compression = lz4 (s.txt:1:41)"),
        ("khronos_validation.report_flags = debug, error", "report_flags = debug,error (s.txt:1:35)"),
        ("khronos_validation.report_flags = debug:error", "report_flags = debug,error (s.txt:1:35)"),
        ("khronos_validation.log_filename = stdout", "log_filename = stdout (s.txt:1:35)"),
        ("lavascope_inspect.gpu_shaders = a::b", "gpu_shaders = a::b (s.txt:1:33)"),
        ("lavascope_inspect.gpu_shaders = a::b, c", "gpu_shaders = a::b,c (s.txt:1:33)"),
        (&format!("khronos_validation.enables = {SYNC}"), "sync = on (s.txt:1:30)"),
    ] {
        assert_eq!(problems(&file(text)), Vec::<String>::new(), "{text}");
        assert_eq!(changed(&resolve(&file(text)).0), [expected], "{text}");
    }
}

#[test]
fn what_belongs_to_others_is_passed_over() {
    let text = "# a comment\n\nkhronos_validation.validate_core = off\nkhronos_validation.sync =\n\
        khronos_validation.message_id_filter =\nlunarg_api_dump.file = TRUE\nfile = 1\n";
    assert_eq!(resolve(&file(text)), (Settings::default(), vec![]));
    let variables = [
        ("VK_LAYER_PATH", "x"),
        ("VK_LAYER_SYNC", "x"),
        ("VK_VALIDATION_WHATEVER", "x"),
        ("VK_INSPECT_WHATEVER", "x"),
        ("LAVASCOPE_LAYER_LIBRARY", "x"),
        ("LAVASCOPE_BLESS", "1"),
        ("LAVASCOPE_NULL_HEAP", "x"),
        ("LAVASCOPE_SAMPLE_FRAMES", "x"),
        ("LAVASCOPE_SYNC", ""),
        ("lavascope_engine", "x"),
        ("PATH", "x"),
    ];
    assert_eq!(resolve(&environment(&variables)), (Settings::default(), vec![]));
    let others = vec![strings("VK_LAYER_LUNARG_api_dump", "sync", &["on"]), strings(KHRONOS, "sync", &["off"])];
    assert_eq!(resolve(&application(others)), (Settings::default(), vec![]));
    let disables =
        ApplicationSettings { disabled_features: (1..8).collect(), disabled_checks: vec![1], ..Default::default() };
    let sources = Sources { application: disables, ..Sources::default() };
    assert_eq!(resolve(&sources), (Settings::default(), vec![]));
}

/// Whatever the sources ask of the Khronos layer that this one does not have is one note.
#[test]
fn settings_of_the_khronos_layer_that_are_not_ours_are_reported_once() {
    let text = "khronos_validation.validate_core = true\nkhronos_validation.fine_grained_locking = 1\n\
        khronos_validation.validate_core = true\nkhronos_validation.thread_safety = false\n";
    let all = Sources {
        environment: environment(&[("VK_KHRONOS_VALIDATION_BEST_PRACTICES", "on")]).environment,
        application: application(vec![strings(KHRONOS, "gpuav_no_such_thing", &["on"])]).application,
        ..file(text)
    };
    let (settings, problems) = resolve(&all);
    assert_eq!(settings, Settings::default());
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let names = "\"best_practices\", \"fine_grained_locking\", \"gpuav_no_such_thing\", \"validate_core\"";
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert!(texts[0].ends_with(&format!("that this layer does not have: {names}")), "{texts:?}");
}

#[test]
fn each_form_of_a_variable_counts() {
    let khronos = ["VK_", "VK_VALIDATION_", "VK_KHRONOS_VALIDATION_", "VK_LAYER_"];
    let own = ["VK_INSPECT_", "VK_LAVASCOPE_INSPECT_", "VK_LAYER_LAVASCOPE_INSPECT_", "LAVASCOPE_"];
    let forms = khronos.map(|it| format!("{it}VALIDATE_SYNC")).into_iter().chain(own.map(|it| format!("{it}SYNC")));
    let forms: Vec<String> = forms.collect();
    for (at, name) in forms.iter().enumerate() {
        check(&environment(&[(name, "1")]), &[&format!("sync = on ({name})")]);
        // Each wins over all that come before it.
        let weaker = forms[..at].iter().map(|it| (it.as_str(), "0"));
        let variables: Vec<_> = [(name.as_str(), "1")].into_iter().chain(weaker).collect();
        check(&environment(&variables), &[&format!("sync = on ({name})")]);
    }
}

#[test]
fn lists_of_words_mean_settings() {
    let gpu = "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT";
    let slot = "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_RESERVE_BINDING_SLOT_EXT";
    let both = ["gpu = on (VK_LAYER_ENABLES)", "gpu_reserve_binding_slot = on (VK_LAYER_ENABLES)"];
    check(&environment(&[("VK_LAYER_ENABLES", gpu)]), &both[..1]);
    check(&environment(&[("VK_LAYER_ENABLES", &format!("{gpu}:{slot}"))]), &both);
    check(&environment(&[("VK_LAYER_ENABLES", &format!("\"{gpu}\", \"{slot}\""))]), &both);
    let submit = "VALIDATION_CHECK_DISABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT";
    check(&environment(&[("VK_LAYER_DISABLES", submit)]), &["sync_submit_time = off (VK_LAYER_DISABLES)"]);
    check(
        &file("khronos_validation.validate_gpu_based = GPU_BASED_DEBUG_PRINTF\nlavascope_inspect.gpu = on\n"),
        &["gpu = on (s.txt:2:25)", "printf = on (s.txt:1:41)"],
    );
    // A key of its own wins over a word in a list, whichever comes first.
    let variables = [("VK_LAYER_ENABLES", SYNC), ("VK_LAYER_VALIDATE_SYNC", "0")];
    assert!(!resolve(&environment(&variables)).0.sync);
    let variables = [("VK_LAYER_GPUAV_ENABLE", "1"), ("VK_LAYER_VALIDATE_GPU_BASED", "GPU_BASED_NONE")];
    assert!(resolve(&environment(&variables)).0.gpu);
}

/// Programs disable all checks and enable one.
#[test]
fn all_checks_can_be_disabled_but_for_what_is_enabled() {
    const ALL: &str = "VK_VALIDATION_FEATURE_DISABLE_ALL_EXT";
    let disables = |features: &[i32], checks: &[i32], enabled: &[i32]| {
        let application = ApplicationSettings {
            disabled_features: features.to_vec(),
            disabled_checks: checks.to_vec(),
            enabled_features: enabled.to_vec(),
            ..ApplicationSettings::default()
        };
        resolve(&Sources { application, ..Sources::default() }).0.sync
    };
    assert!(!disables(&[0], &[], &[]) && !disables(&[], &[0], &[]));
    assert!(disables(&[0], &[], &[2, 4]) && disables(&[], &[0], &[2, 4]));
    check(&environment(&[("VK_LAYER_DISABLES", ALL)]), &["sync = off (VK_LAYER_DISABLES)"]);
    assert!(resolve(&environment(&[("VK_LAYER_DISABLES", ALL), ("VK_LAYER_ENABLES", SYNC)])).0.sync);
    for lines in [[("enables", SYNC), ("disables", ALL)], [("disables", ALL), ("enables", SYNC)]] {
        let text: String = lines.iter().map(|(key, word)| format!("khronos_validation.{key} = {word}\n")).collect();
        assert!(resolve(&file(&text)).0.sync, "{text}");
    }
    assert!(!resolve(&file(&format!("khronos_validation.disables = {ALL}\n"))).0.sync);
}

#[test]
fn a_capture_validates_only_if_sync_is_set() {
    let captured = ("LAVASCOPE_CAPTURE", "a.lava");
    let (settings, _) = resolve(&environment(&[captured]));
    assert_eq!(settings.explain()[0], sync_setting("off", "default with capture"));
    assert!(!settings.sync);
    assert!(resolve(&environment(&[captured, ("LAVASCOPE_SYNC", "on")])).0.sync);
    assert!(resolve(&file("lavascope_inspect.capture = a.lava\nkhronos_validation.validate_sync = on\n")).0.sync);
    assert!(resolve(&file("lavascope_inspect.capture =\n")).0.sync);
}

#[test]
fn the_application_says_it_in_any_type() {
    let on = "sync = on (vkCreateInstance: VkLayerSettingsCreateInfoEXT pSettings[0])";
    for values in [
        SettingValues::Bool32(vec![1]),
        SettingValues::Int32(vec![1]),
        SettingValues::Int64(vec![1]),
        SettingValues::Uint32(vec![1]),
        SettingValues::Uint64(vec![1]),
        SettingValues::Float32(vec![1.0]),
        SettingValues::Float64(vec![1.0]),
        SettingValues::String(vec!["true".to_owned()]),
    ] {
        check(&application(vec![typed(OWN, "sync", values.clone())]), &[on]);
        check(&application(vec![typed(KHRONOS, "validate_sync", values)]), &[on]);
    }
    let several = vec![
        strings(KHRONOS, "message_id_filter", &["0xe4d96472", "VUID-a", "-1, 12"]),
        typed(KHRONOS, "duplicate_message_limit", SettingValues::Int32(vec![3])),
        strings(KHRONOS, "enables", &[SYNC]),
        strings(OWN, "print", &["-"]),
        strings(OWN, "print", &["later"]),
    ];
    let (settings, _) = resolve(&application(several));
    let number = MessageId::Number;
    let name = MessageId::Name("VUID-a".to_owned());
    assert_eq!(settings.message_id_filter, [number(0xe4d9_6472), name, number(u32::MAX), number(12)]);
    assert_eq!((settings.duplicate_message_limit, settings.sync), (3, true));
    assert_eq!(settings.print, Some(OutputTarget::Stderr), "the first of several counts");
}

#[test]
fn features_are_numbers() {
    let features =
        ApplicationSettings { enabled_features: vec![0, 1, 2, 3, 4, 5, -1], ..ApplicationSettings::default() };
    let sources = Sources { application: features, ..Sources::default() };
    let place = "vkCreateInstance: VkValidationFeaturesEXT pEnabledValidationFeatures";
    let expected = [("sync", 4), ("gpu", 0), ("gpu_reserve_binding_slot", 1), ("printf", 3)];
    let expected: Vec<String> = expected.iter().map(|(name, at)| format!("{name} = on ({place}[{at}])")).collect();
    check(&sources, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(
        problems(&sources),
        [
            format!(
                "{place}[2]: note: asked for VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT, which is not a job of this layer"
            ),
            format!("{place}[5]: warning: 5 is not a VkValidationFeatureEnableEXT; allowed: 0 to 4"),
            format!("{place}[6]: warning: -1 is not a VkValidationFeatureEnableEXT; allowed: 0 to 4"),
        ]
    );
}

#[test]
fn a_stronger_source_wins() {
    let mut sources = file("lavascope_inspect.sync = on\nlavascope_inspect.print = file\n");
    check(&sources, &["sync = on (s.txt:1:26)", "print = file (s.txt:2:27)"]);
    sources.environment = environment(&[("VK_SYNC", "0"), ("LAVASCOPE_PRINT", "variable")]).environment;
    check(&sources, &["sync = on (s.txt:1:26)", "print = variable (LAVASCOPE_PRINT)"]);
    // A Khronos name in a stronger source wins over ours in a weaker one.
    sources.environment.push(("VK_VALIDATE_SYNC".into(), "0".into()));
    let (settings, _) = resolve(&sources);
    assert!(!settings.sync);
    assert_eq!(settings.explain()[0], sync_setting("off", "VK_VALIDATE_SYNC"));
    sources.application.enabled_features = vec![4];
    assert!(resolve(&sources).0.sync);
    let khronos = typed(KHRONOS, "validate_sync", SettingValues::Bool32(vec![0]));
    sources.application.layer_settings = vec![vec![khronos]];
    assert!(!resolve(&sources).0.sync);
    sources.application.layer_settings.push(vec![strings(OWN, "sync", &["on"])]);
    let (settings, _) = resolve(&sources);
    let place = "vkCreateInstance: VkLayerSettingsCreateInfoEXT #2 pSettings[0]";
    assert_eq!(settings.explain()[0], sync_setting("on", place));
    assert_eq!(settings.print, Some(OutputTarget::File("variable".into())));
    // Whoever runs the program has the last word.
    sources.environment.push(("LAVASCOPE_SYNC".into(), "off".into()));
    assert!(!resolve(&sources).0.sync);
}

#[test]
fn flags_frames_and_numbers_have_their_forms() {
    let set = |name: &str, value: &str| resolve(&environment(&[(&format!("LAVASCOPE_{name}"), value)]));
    for (text, value) in [("true", true), ("1", true), ("ON", true), ("Yes", true), ("\"on\"", true)] {
        assert_eq!(set("STATS", text).0.stats, value, "{text}");
    }
    for text in ["false", "0", "OFF", "No", "FALSE"] {
        assert!(!set("SYNC_SUBMIT_TIME", text).0.sync_submit_time, "{text}");
    }
    for (text, first, end) in [("5", 5, Some(6)), ("5..", 5, None), ("..5", 0, Some(5)), ("1 .. 2", 1, Some(2))] {
        assert_eq!(set("CAPTURE_FRAMES", text).0.capture_frames, Some(FrameRange { first, end }), "{text}");
    }
    let frames = [
        FrameRange { first: 0, end: Some(2) },
        FrameRange { first: 4, end: Some(5) },
        FrameRange { first: 9, end: None },
    ];
    let (settings, _) = set("SCREENSHOT", "0..2, 4,9..");
    assert_eq!(settings.screenshot, frames);
    assert!(settings.explain().iter().any(|it| (it.name, &*it.value) == ("screenshot", "0..2,4..5,9..")));
    assert_eq!(set("SCREENSHOT", "0..2,x").0.screenshot, []);
    for text in ["5..5", "6..5", "a..b", "-1..", "1...", "1..2..3", "18446744073709551616"] {
        assert_eq!(set("CAPTURE_FRAMES", text).0.capture_frames, None, "{text}");
    }
    for text in ["0", "60001", "-1", "+5", "1.5", "0x", "ten", "99999999999999999999"] {
        let (settings, problems) = set("CAPTURE_FLUSH_MS", text);
        assert_eq!((settings.capture_flush_ms, problems.len()), (100, 1), "{text}");
    }
}

#[test]
fn a_refused_value_leaves_the_weaker_one() {
    let mut sources = file("lavascope_inspect.sync = on\n");
    sources.environment = environment(&[("LAVASCOPE_SYNC", "perhaps")]).environment;
    check(&sources, &["sync = on (s.txt:1:26)"]);
    assert_eq!(
        problems(&sources),
        [r#"LAVASCOPE_SYNC: error: sync cannot be "perhaps"; allowed: on, off, true, false, yes, no, 1, 0"#]
    );
}

#[test]
fn what_does_not_exist_yet_is_said_once() {
    let features: Vec<_> = SETTINGS.iter().filter(|it| ["sync", "gpu", "printf", "stats"].contains(&it.name)).collect();
    assert_eq!(features.len(), 4);
    for feature in features {
        let name = format!("LAVASCOPE_{}", feature.name.to_ascii_uppercase());
        let said: Vec<_> = resolve(&environment(&[(&name, "on")])).1.iter().map(ToString::to_string).collect();
        let warning = format!("{name}: warning: asked for {}, which this version cannot do yet", feature.name);
        assert_eq!(said, if feature.exists { vec![] } else { vec![warning] });
        assert_eq!(resolve(&environment(&[(&name, "off")])).1, [], "what is off need not exist");
    }
    // What refines a feature goes without saying while that is off.
    let refined = [("VK_LAYER_GPUAV_ENABLE", "0"), ("VK_LAYER_GPUAV_RESERVE_BINDING_SLOT", "1")];
    assert_eq!(resolve(&environment(&refined)).1, []);
    // And while that does not exist, it is enough to say so.
    let exists = |name: &str| SETTINGS.iter().any(|it| it.name == name && it.exists);
    let both = resolve(&environment(&[("LAVASCOPE_GPU", "1"), ("LAVASCOPE_GPU_SELECT", "1")])).1;
    assert_eq!(both.len(), usize::from(!exists("gpu") || !exists("gpu_select")));
}

#[test]
fn a_path_need_not_be_text() {
    #[cfg(unix)]
    {
        use std::ffi::OsString;
        use std::os::unix::ffi::OsStringExt;
        let odd = || OsString::from_vec(vec![b'a', 0xff]);
        let environment = vec![("LAVASCOPE_CAPTURE".into(), odd()), ("LAVASCOPE_SYNC".into(), odd())];
        let sources = Sources { environment, ..Sources::default() };
        assert_eq!(resolve(&sources).0.capture, Some(odd().into()));
        assert_eq!(
            problems(&sources),
            ["LAVASCOPE_SYNC: error: sync cannot be \"a\u{fffd}\"; allowed: on, off, true, false, yes, no, 1, 0"]
        );
    }
}

#[test]
fn rules_may_have_commas() {
    let ignored = |text: &str| {
        let environment = vec![("LAVASCOPE_IGNORE".into(), text.into())];
        let (settings, problems) = resolve(&Sources { environment, ..Sources::default() });
        (settings.ignore, problems.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    let (rules, problems) = ignored("object=a{1,3},label=b, code=c");
    assert_eq!((rules.join("|"), problems.len()), ("object=a{1,3}|label=b|code=c".to_owned(), 0));
    let (rules, problems) = ignored("object=a,label=(b");
    assert!(rules.is_empty(), "{rules:?}");
    let said =
        "LAVASCOPE_IGNORE: error: ignore cannot contain this: `label=(b` is not a regular expression: unclosed group";
    assert!(problems[0].starts_with(said), "{problems:?}");
}
