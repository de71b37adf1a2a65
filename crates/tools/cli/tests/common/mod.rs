//! What the tests of `run`, `env` and `layer` share.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program with a home of its own, so that nothing of the user's is touched.
pub(crate) fn lavascope(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lavascope"));
    for variable in ["XDG_RUNTIME_DIR", "XDG_DATA_HOME", "VK_LAYER_PATH", "VK_ADD_LAYER_PATH", "VK_INSTANCE_LAYERS"] {
        command.env_remove(variable);
    }
    // The library of this build; one beside the program may be older.
    let library = Path::new(env!("CARGO_BIN_EXE_lavascope")).with_file_name("deps").join("libVkLayer_lavascope.so");
    command.env("HOME", home).env("XDG_CACHE_HOME", home.join("cache")).env("LAVASCOPE_LAYER_LIBRARY", library);
    command
}

/// An empty folder.
pub(crate) fn home(name: &str) -> PathBuf {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&home);
    std::fs::create_dir_all(&home).expect("a folder for the test");
    home
}

pub(crate) fn output(command: &mut Command) -> Output {
    command.output().expect("the program starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
