//! The settings in the layer's manifest are those of the table, in the form of the loader's layer schema.

use lavascope_settings::{SETTINGS, Setting, SettingKind, Settings, SettingsFile, Sources, manifest_features, resolve};
use serde_json::Value;

/// Every setting of the manifest, those inside of others too, with the setting it is inside of.
fn entries() -> Vec<(Value, Option<String>)> {
    fn add(list: &Value, parent: Option<&str>, to: &mut Vec<(Value, Option<String>)>) {
        for entry in list.as_array().expect("a list of settings") {
            to.push((entry.clone(), parent.map(str::to_owned)));
            if entry.get("settings").is_some() {
                add(&entry["settings"], entry["key"].as_str(), to);
            }
        }
    }
    let mut entries = Vec::new();
    add(&manifest_features()["settings"], None, &mut entries);
    entries
}

fn setting_of(entry: &Value) -> &'static Setting {
    SETTINGS.iter().find(|it| entry["key"] == it.name).unwrap_or_else(|| panic!("{entry} is no setting"))
}

/// A value of the manifest, as Vulkan Configurator writes it into its file.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[test]
fn the_manifest_has_every_setting_that_is_obeyed_once() {
    let mut keys: Vec<String> = entries().iter().map(|it| text_of(&it.0["key"])).collect();
    let mut wanted: Vec<&str> = SETTINGS.iter().filter(|it| it.exists).map(|it| it.name).collect();
    keys.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(keys, wanted);
}

#[test]
fn texts_types_and_defaults_are_those_of_the_table() {
    for (entry, _) in entries() {
        let setting = setting_of(&entry);
        assert_eq!(entry["description"], setting.help);
        let (kind, extra) = (entry["type"].as_str().expect("a type"), &entry["default"]);
        let (is_right, has_type) = match setting.kind {
            SettingKind::Flag => (kind == "BOOL", extra.is_boolean()),
            SettingKind::Int { .. } => (kind == "INT", extra.is_u64()),
            SettingKind::Choice(_) | SettingKind::Level(_) => (kind == "ENUM", extra.is_string()),
            SettingKind::Choices(_) => (kind == "FLAGS", extra.is_array()),
            SettingKind::Frames => (kind == "STRING", extra.is_string()),
            SettingKind::Path | SettingKind::Output => (kind.starts_with("SAVE_F"), extra.is_string()),
            SettingKind::MessageIds | SettingKind::Texts | SettingKind::Rules | SettingKind::FrameRanges => {
                (kind == "LIST", extra.is_array())
            }
        };
        assert!(is_right && has_type, "{entry:#}");
    }
}

/// What Vulkan Configurator writes for every default gives the settings of the table, without a problem.
#[test]
fn the_defaults_as_a_file_are_the_defaults() {
    let entries = entries();
    let line = |entry: &Value| {
        let (key, value) = (text_of(&entry["key"]), text_of(&entry["default"]));
        format!("lavascope_inspect.{key} = {value}\n")
    };
    let lines = entries.iter().map(|it| line(&it.0));
    let bytes = lines.collect::<String>().into_bytes();
    let file = SettingsFile { path: "vk_layer_settings.txt".to_owned(), bytes };
    let (settings, problems) = resolve(&Sources { file: Some(file), ..Sources::default() });
    assert!(problems.is_empty(), "{problems:?}");
    let values = |it: &Settings| it.explain().into_iter().map(|it| (it.name, it.value)).collect::<Vec<_>>();
    assert_eq!(values(&settings), values(&resolve(&Sources::default()).0));
}

/// The shape that the schema asks for: required keys, known words, and nothing else.
#[test]
fn the_shape_is_that_of_the_layer_schema() {
    const REQUIRED: [&str; 5] = ["key", "label", "description", "type", "default"];
    const OPTIONAL: [&str; 8] = ["env", "status", "platforms", "view", "range", "flags", "dependence", "settings"];
    const TYPES: [&str; 9] =
        ["BOOL", "INT", "ENUM", "FLAGS", "LIST", "STRING", "SAVE_FILE", "SAVE_FOLDER", "LOAD_FILE"];
    for (entry, parent) in entries() {
        let fields = entry.as_object().expect("an object");
        assert!(REQUIRED.iter().all(|it| fields.contains_key(*it)), "{entry:#}");
        assert!(fields.keys().all(|it| REQUIRED.iter().chain(&OPTIONAL).any(|known| known == it)), "{entry:#}");
        assert!(TYPES.iter().any(|it| entry["type"] == *it), "{entry:#}");
        assert_eq!(fields.contains_key("range"), entry["type"] == "INT", "{entry:#}");
        assert_eq!(fields.contains_key("flags"), entry["type"] == "ENUM" || entry["type"] == "FLAGS", "{entry:#}");
        for flag in entry["flags"].as_array().into_iter().flatten() {
            assert!(["key", "label", "description"].iter().all(|it| flag[it].is_string()), "{entry:#}");
        }
        let needs = parent.map(|it| serde_json::json!({ "mode": "ALL", "settings": [{ "key": it, "value": true }] }));
        assert_eq!(entry.get("dependence"), needs.as_ref(), "{entry:#}");
    }
    let features = manifest_features();
    for preset in features["presets"].as_array().expect("presets") {
        assert!(preset["label"].is_string() && preset["description"].is_string(), "{preset:#}");
        for value in preset["settings"].as_array().expect("settings") {
            assert!(setting_of(value).kind == SettingKind::Flag && value["value"].is_boolean(), "{preset:#}");
        }
    }
}

#[test]
fn labels_are_words_for_people() {
    let label_of = |key: &str| {
        let found = entries().into_iter().find(|it| it.0["key"] == key);
        found.map(|it| text_of(&it.0["label"]))
    };
    assert_eq!(label_of("gpu_buffer_bounds").as_deref(), Some("GPU buffer bounds"));
    assert_eq!(label_of("sync").as_deref(), Some("Synchronization"));
}
