//! The `features` of the layer's manifest: every setting with its text, as Vulkan Configurator shows it.
//!
//! The form is that of the manifests of the Khronos layer. The loader skips this part.

use serde_json::{Value, json};

use crate::table::{SETTINGS, Setting};
use crate::value::SettingKind;

/// Settings of [`SettingKind::Path`] that name a folder.
const FOLDERS: [&str; 2] = ["gpu_cache_folder", "screenshots"];

/// Words that a label spells in another way than their setting's name does.
const SPELLINGS: [(&str, &str); 5] =
    [("gpu", "GPU"), ("id", "ID"), ("mib", "MiB"), ("ms", "(ms)"), ("sync", "synchronization")];

/// What users want at once.
struct Preset {
    label: &'static str,
    description: &'static str,
    /// The flags that are on; the other one of these two is off.
    flags: &'static [&'static str],
}

const PRESET_FLAGS: [&str; 2] = ["sync", "gpu"];

const PRESETS: [Preset; 3] = [
    Preset { label: "Synchronization", description: "Find synchronization hazards.", flags: &["sync"] },
    Preset { label: "Shaders", description: "Find accesses of shaders that are out of bounds.", flags: &["gpu"] },
    Preset {
        label: "Synchronization and shaders",
        description: "Find both, and hazards that depend on values only the shader knows.",
        flags: &["sync", "gpu"],
    },
];

/// The value of `features` in the layer's manifest, with the settings that this version obeys.
pub fn manifest_features() -> Value {
    let presets = PRESETS.map(|preset| {
        let values = PRESET_FLAGS.map(|key| json!({ "key": key, "value": preset.flags.contains(&key) }));
        json!({
            "label": preset.label,
            "description": preset.description,
            "platforms": ["LINUX"],
            "status": "STABLE",
            "settings": values,
        })
    });
    let top = SETTINGS.iter().filter(|it| it.exists && parent_of(it).is_none());
    json!({ "presets": presets, "settings": top.map(entry).collect::<Vec<_>>() })
}

/// The flag that a setting belongs to: `gpu` for `gpu_cache`.
fn parent_of(setting: &Setting) -> Option<&'static Setting> {
    let is_parent = |other: &&Setting| {
        let rest = setting.name.strip_prefix(other.name).and_then(|it| it.strip_prefix('_'));
        other.exists && other.kind == SettingKind::Flag && rest.is_some()
    };
    SETTINGS.iter().filter(is_parent).max_by_key(|it| it.name.len())
}

fn entry(setting: &Setting) -> Value {
    let mut entry = json!({
        "key": setting.name,
        "label": label(setting.name),
        "description": setting.help,
        "status": "STABLE",
        "platforms": ["LINUX"],
        "env": format!("LAVASCOPE_{}", setting.name.to_uppercase()),
        "type": type_name(setting),
        "default": default(setting),
    });
    match setting.kind {
        SettingKind::Int { min, max } => entry["range"] = json!({ "min": min, "max": max }),
        SettingKind::Choice(words) | SettingKind::Level(words) | SettingKind::Choices(words) => {
            let flag = |it: &&str| json!({ "key": it, "label": it, "description": it });
            entry["flags"] = words.iter().map(flag).collect();
        }
        _ => {}
    }
    if let Some(parent) = parent_of(setting) {
        let needs = json!({ "key": parent.name, "value": true });
        entry["dependence"] = json!({ "mode": "ALL", "settings": [needs] });
    }
    let children = SETTINGS.iter().filter(|it| it.exists && parent_of(it).is_some_and(|it| it.name == setting.name));
    let children: Vec<Value> = children.map(self::entry).collect();
    if !children.is_empty() {
        entry["settings"] = children.into();
    }
    entry
}

/// The name of the kind in the schema. Its `FRAMES` has ranges of another form than ours, so those are texts.
fn type_name(setting: &Setting) -> &'static str {
    match setting.kind {
        SettingKind::Flag => "BOOL",
        SettingKind::Int { .. } => "INT",
        SettingKind::Choice(_) | SettingKind::Level(_) => "ENUM",
        SettingKind::Choices(_) => "FLAGS",
        SettingKind::MessageIds | SettingKind::Texts | SettingKind::Rules | SettingKind::FrameRanges => "LIST",
        SettingKind::Path if FOLDERS.contains(&setting.name) => "SAVE_FOLDER",
        SettingKind::Path | SettingKind::Output => "SAVE_FILE",
        SettingKind::Frames => "STRING",
    }
}

/// The default as a value of the type; a test of the table parses each default.
fn default(setting: &Setting) -> Value {
    let text = setting.default;
    match type_name(setting) {
        "BOOL" => json!(text == "on"),
        "INT" => json!(text.parse::<u64>().ok()),
        "FLAGS" | "LIST" => text.split(',').filter(|it| !it.is_empty()).collect(),
        _ => json!(text),
    }
}

/// `gpu_buffer_bounds` as "GPU buffer bounds".
fn label(name: &str) -> String {
    let spell = |word| SPELLINGS.iter().find(|it| it.0 == word).map_or(word, |it| it.1);
    let label = name.split('_').map(spell).collect::<Vec<_>>().join(" ");
    let mut letters = label.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
