//! Where the settings file is looked for, and what may be wrong with it.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use lavascope_settings::sources::gather;
use lavascope_settings::{FILE_SIZE_BYTES_MAX, Sources, resolve};

const LINE: &str = "lavascope_inspect.print = -\n";

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).expect("a folder");
    path
}

fn write(path: &Path) -> PathBuf {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, LINE).expect("a file");
    path.to_owned()
}

fn gathered(variables: &[(&str, &Path)], current: &Path) -> Sources {
    let environment = variables.iter().map(|(name, value)| (OsString::from(name), value.into())).collect();
    gather(environment, current)
}

/// The file that is read, if any, and the problems, each without the folder of the test.
fn outcome(sources: &Sources, folder: &Path) -> (Option<String>, Vec<String>) {
    let short = |text: &str| text.replace(&format!("{}/", folder.display()), "");
    let problems = resolve(sources).1.iter().map(|it| short(&it.to_string())).collect();
    (sources.file.as_ref().map(|it| short(&it.path)), problems)
}

#[test]
fn the_file_is_found_where_the_khronos_library_finds_it() {
    let root = folder("found");
    let current = root.join("current");
    assert_eq!(outcome(&gathered(&[], &current), &root), (None, vec![]));
    write(&current.join("vk_layer_settings.txt"));
    let sources = gathered(&[], &current);
    assert_eq!(outcome(&sources, &root), (Some("current/vk_layer_settings.txt".to_owned()), vec![]));
    assert!(resolve(&sources).0.print.is_some());

    let named = write(&root.join("named/vk_layer_settings.txt"));
    let other = write(&root.join("named/other.txt"));
    for (path, expected) in [(named.parent().expect("a folder"), "vk_layer_settings.txt"), (&other, "other.txt")] {
        let sources = gathered(&[("VK_LAYER_SETTINGS_PATH", path)], &current);
        assert_eq!(outcome(&sources, &root), (Some(format!("named/{expected}")), vec![]));
    }

    let user = root.join("user");
    write(&user.join(".local/share/vulkan/settings.d/vk_layer_settings.txt"));
    let sources = gathered(&[("HOME", &user), ("VK_LAYER_SETTINGS_PATH", &other)], &current);
    let configured = "user/.local/share/vulkan/settings.d/vk_layer_settings.txt";
    let note = format!("VK_LAYER_SETTINGS_PATH: note: not used, since Vulkan Configurator left {configured}");
    assert_eq!(outcome(&sources, &root), (Some(configured.to_owned()), vec![note]));
    write(&root.join("data/vulkan/settings.d/vk_layer_settings.txt"));
    let sources = gathered(&[("HOME", &user), ("XDG_DATA_HOME", &root.join("data"))], &current);
    let configured = "data/vulkan/settings.d/vk_layer_settings.txt";
    assert_eq!(outcome(&sources, &root), (Some(configured.to_owned()), vec![]));
}

#[test]
fn a_file_that_cannot_be_used_is_said_and_forgotten() {
    let root = folder("unusable");
    fs::create_dir(root.join("vk_layer_settings.txt")).expect("a folder");
    let said = "vk_layer_settings.txt: error: a folder, not a settings file".to_owned();
    assert_eq!(outcome(&gathered(&[], &root), &root), (None, vec![said]));

    let missing = root.join("missing");
    let said = "VK_LAYER_SETTINGS_PATH: warning: missing does not exist, so the current folder is searched";
    let sources = gathered(&[("VK_LAYER_SETTINGS_PATH", &missing)], &root.join("empty"));
    assert_eq!(outcome(&sources, &root), (None, vec![said.to_owned()]));

    let large = root.join("large.txt");
    fs::File::create(&large).expect("a file").set_len(FILE_SIZE_BYTES_MAX * 64).expect("a large file");
    let sources = gathered(&[("VK_LAYER_SETTINGS_PATH", &large)], &root);
    assert!(sources.file.as_ref().is_some_and(|it| it.bytes.len() as u64 == FILE_SIZE_BYTES_MAX + 1));
    let said = format!("large.txt: error: larger than {FILE_SIZE_BYTES_MAX} bytes, so it is not read");
    assert_eq!(outcome(&sources, &root), (Some("large.txt".to_owned()), vec![said]));

    #[cfg(unix)]
    {
        let sources = gathered(&[("VK_LAYER_SETTINGS_PATH", Path::new("/dev/zero"))], &root);
        let said = "/dev/zero: error: not a plain file, so it is not read".to_owned();
        assert_eq!(outcome(&sources, &root), (None, vec![said]));
    }
}

#[test]
fn only_variables_of_interest_are_kept() {
    let variables = [("PATH", Path::new("x")), ("LAVASCOPE_PRINT", Path::new("-")), ("VK_SYNC", Path::new("x"))];
    let names: Vec<_> = gathered(&variables, Path::new("nowhere")).environment.into_iter().map(|it| it.0).collect();
    assert_eq!(names, ["LAVASCOPE_PRINT", "VK_SYNC"]);
}
