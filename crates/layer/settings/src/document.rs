//! `docs/settings.md`, from the table.

use std::fmt::Write;

use crate::table::{Alias, SETTINGS, Setting};

const PAGE_INTRO: &str = "\
# Settings

The settings of the layer `VK_LAYER_LAVASCOPE_inspect`, from the table in `crates/layer/settings/src/table.rs`.
`LAVASCOPE_BLESS=1 cargo test -p lavascope-settings` writes this page.

A setting comes from these sources; a later one wins over an earlier one:

1. its default;
2. the file `vk_layer_settings.txt`;
3. the environment;
4. the application: `VK_EXT_validation_features` and `VK_EXT_validation_flags`, then `VK_EXT_layer_settings`;
5. variables named `LAVASCOPE_NAME`.

With the Khronos layer the file and the whole environment win over `VK_EXT_layer_settings`.

Where a setting has names of the Khronos layer, those count too; within one source our own name wins.
A value that cannot be used is reported and changes nothing.
What is marked \"not yet\" is accepted, and reported as something that this version cannot do.

## All settings

| name | default | values | what it does | names in the Khronos layer |
| --- | --- | --- | --- | --- |
";

const PAGE_WORDS: &str = "
## Words of the older lists

The Khronos layer had lists of words before it had a setting for each; the words that mean something here:

| list | word | meaning |
| --- | --- | --- |
";

const PAGE_SOURCES: &str = "
The numbers of `VK_EXT_validation_features` mean the same as these words.
Switching off core checks changes nothing, because this layer has none.
Switching off all checks switches `sync` off, unless the same source enables it.

## Which mode is the default

Without `lavascope run`, the layer validates inside of each call (`sync_mode = inline`), as the Khronos layer does.
A debugger then stops at the call that completes a hazard, and a messenger callback can skip that call.
`lavascope run` sets `sync_mode = async`, which costs the program less; `--inline`, or the variable `LAVASCOPE_SYNC_MODE`, changes that.

## The file

Lines are `lavascope_inspect.NAME = VALUE`, or `khronos_validation.NAME = VALUE` with a Khronos name.
`#` begins a comment; the last line for a name counts; lines of other layers are passed over.
The words of a list have commas between them, or, where there is no comma, colons (semicolons on Windows).

The first of these is read:

1. `$XDG_DATA_HOME/vulkan/settings.d/vk_layer_settings.txt` (without that variable, `.local/share` in `$HOME`), which Vulkan Configurator writes;
2. `$VK_LAYER_SETTINGS_PATH`, a file, or a folder with `vk_layer_settings.txt` in it;
3. `vk_layer_settings.txt` in the current folder.

## The environment

Names are in capitals; the strongest form comes first:

1. `LAVASCOPE_NAME`, which is stronger than the application too: whoever runs a program has the last word, and `lavascope run` speaks through it;
2. `VK_LAYER_LAVASCOPE_INSPECT_NAME`, `VK_LAVASCOPE_INSPECT_NAME`, `VK_INSPECT_NAME`;
3. with a Khronos name `VK_LAYER_NAME`, `VK_KHRONOS_VALIDATION_NAME`, `VK_VALIDATION_NAME`, `VK_NAME`.

An empty variable counts as not set; so does a line of the file without a value, if the default is empty.

## The application

`VkLayerSettingEXT` counts when its layer is `VK_LAYER_LAVASCOPE_inspect`, or `VK_LAYER_KHRONOS_validation` with a Khronos name.
Numbers may have any of the types; of several elements for one setting the first counts.
";

/// The whole page.
pub fn document() -> String {
    let mut page = PAGE_INTRO.to_owned();
    for setting in SETTINGS {
        row(&mut page, [name(setting), code(setting.default), values(setting), setting.help.to_owned(), keys(setting)]);
    }
    page.push_str(PAGE_WORDS);
    for setting in SETTINGS {
        for alias in setting.aliases {
            if let Alias::Word(list, word, value) = alias {
                row(&mut page, [code(list), code(word), code(&format!("{} = {value}", setting.name))]);
            }
        }
    }
    page.push_str(PAGE_SOURCES);
    page
}

fn row<const COLUMNS: usize>(page: &mut String, cells: [String; COLUMNS]) {
    for cell in cells {
        let gap = if cell.is_empty() { "" } else { " " };
        let _ = write!(page, "|{gap}{cell} ");
    }
    page.push_str("|\n");
}

fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn name(setting: &Setting) -> String {
    let state = if setting.exists { "" } else { " (not yet)" };
    format!("`{}`{state}", setting.name)
}

fn values(setting: &Setting) -> String {
    match setting.kind {
        crate::SettingKind::Flag => "flag".to_owned(),
        kind => kind.allowed(),
    }
}

fn keys(setting: &Setting) -> String {
    let key = |alias: &Alias| match alias {
        Alias::Key(key) => Some(code(key)),
        Alias::Word(..) => None,
    };
    setting.aliases.iter().filter_map(key).collect::<Vec<_>>().join(", ")
}
