//! Finds the settings file and reads the environment: the only place of this crate that touches the system.
//!
//! The file is looked for where the Khronos library looks: what Vulkan Configurator left in the user's data folder,
//! then `VK_LAYER_SETTINGS_PATH`, a file or a folder, then the current folder.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::environment::is_of_interest;
use crate::file::{FILE_SIZE_BYTES_MAX, SettingsFile};
use crate::problem::{MessageSeverity, Problem, SettingSource};
use crate::{ApplicationSettings, Settings, Sources, resolve};

const FILE_NAME: &str = "vk_layer_settings.txt";
const PATH_VARIABLE: &str = "VK_LAYER_SETTINGS_PATH";

/// The settings of this process, and what is wrong with them.
pub fn read(application: ApplicationSettings) -> (Settings, Vec<Problem>) {
    let sources = gather(std::env::vars_os().collect(), Path::new(""));
    resolve(&Sources { application, ..sources })
}

/// What can be found from such an environment in such a current folder; an empty path is that of the process.
pub fn gather(environment: Vec<(OsString, OsString)>, current: &Path) -> Sources {
    let mut problems = Vec::new();
    let path = find_file(&environment, current, &mut problems);
    let file = load(&path).unwrap_or_else(|message| {
        let place = SettingSource::File { path: path.display().to_string(), at: None };
        problems.push(Problem::new(MessageSeverity::Error, &place, message));
        None
    });
    let environment = environment.into_iter().filter(|it| is_of_interest(&it.0)).collect();
    Sources { file, environment, application: ApplicationSettings::default(), problems }
}

fn find_file(environment: &[(OsString, OsString)], current: &Path, problems: &mut Vec<Problem>) -> PathBuf {
    let variable = |name: &str| {
        let found = environment.iter().find(|it| it.0 == name).map(|it| &it.1[..]);
        found.filter(|it| !it.is_empty())
    };
    let named = variable(PATH_VARIABLE).map(|it| current.join(it));
    let mut report = |severity, message| {
        problems.push(Problem::new(severity, &SettingSource::Variable(PATH_VARIABLE.to_owned()), message));
    };
    if let Some(configured) = configurator_path(variable).filter(|it| it.is_file()) {
        if named.is_some() {
            let message = format!("not used, since Vulkan Configurator left {}", configured.display());
            report(MessageSeverity::Note, message);
        }
        return configured;
    }
    match named {
        Some(named) if named.is_dir() => named.join(FILE_NAME),
        Some(named) if named.exists() => named,
        Some(named) => {
            report(
                MessageSeverity::Warning,
                format!("{} does not exist, so the current folder is searched", named.display()),
            );
            current.join(FILE_NAME)
        }
        None => current.join(FILE_NAME),
    }
}

fn configurator_path<'a>(variable: impl Fn(&str) -> Option<&'a OsStr>) -> Option<PathBuf> {
    let data = variable("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| variable("HOME").map(|it| Path::new(it).join(".local/share")))?;
    Some(data.join("vulkan/settings.d").join(FILE_NAME))
}

/// No file is nothing to speak of; otherwise the error says what is wrong with it.
fn load(path: &Path) -> Result<Option<SettingsFile>, String> {
    match path.metadata() {
        Ok(item) if item.is_file() => {}
        Ok(item) if item.is_dir() => return Err("a folder, not a settings file".to_owned()),
        // Opening a pipe could wait forever.
        Ok(_) => return Err("not a plain file, so it is not read".to_owned()),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    let mut bytes = Vec::new();
    // One byte more shows that there would be more.
    let result = File::open(path).and_then(|it| it.take(FILE_SIZE_BYTES_MAX + 1).read_to_end(&mut bytes));
    match result {
        Ok(_) => Ok(Some(SettingsFile { path: path.display().to_string(), bytes })),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}
