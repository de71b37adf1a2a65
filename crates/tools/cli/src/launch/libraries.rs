//! Our libraries that the Vulkan loader loads, and the manifests that name them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use lavascope_loader::manifests::{self, ManifestKind, ManifestProblem};

/// One of our libraries.
pub(crate) struct Library {
    file: &'static str,
    /// The environment variable that can name another file.
    variable: &'static str,
    package: &'static str,
    kind: ManifestKind,
}

pub(crate) const LAYER: Library = Library {
    file: "libVkLayer_lavascope.so",
    variable: "LAVASCOPE_LAYER_LIBRARY",
    package: "lavascope-layer",
    kind: ManifestKind::ExplicitLayer,
};

pub(crate) const NULL_DRIVER: Library = Library {
    file: "liblavascope_null_driver.so",
    variable: "LAVASCOPE_NULL_DRIVER_LIBRARY",
    package: "lavascope-null-driver",
    kind: ManifestKind::Driver,
};

impl Library {
    pub(crate) fn file(&self) -> &'static str {
        self.file
    }

    /// The path of the library: from the environment variable, or near this program.
    pub(crate) fn find(&self) -> Result<String> {
        let path = match std::env::var_os(self.variable).filter(|it| !it.is_empty()) {
            Some(path) if Path::new(&path).is_file() => PathBuf::from(path),
            Some(path) => bail!("{} is {}, which is not a file", self.variable, path.display()),
            None => self.near_this_program()?,
        };
        let path = std::path::absolute(path).context("the current folder is not known")?;
        utf8(&path).map(str::to_owned)
    }

    fn near_this_program(&self) -> Result<PathBuf> {
        let program = std::env::current_exe().context("the place of this program is not known")?;
        let folder = program.parent().unwrap_or(Path::new("."));
        let places = ["", "deps", "../lib"].map(|it| folder.join(it).join(self.file));
        places.iter().find(|it| it.is_file()).cloned().with_context(|| {
            let (file, folder, package) = (self.file, folder.display(), self.package);
            format!(
                "{file} is not beside this program in {folder}; build it with `cargo build --release --package \
                 {package}`, or name it in {}",
                self.variable
            )
        })
    }

    /// Writes a manifest, and creates the folder if it does not exist. A loader that reads the
    /// folder at the same time sees the complete old file or the complete new file. The manifest is
    /// not written if the loader cannot load its library.
    pub(crate) fn write_manifest(&self, folder: &Path, file: &str, text: &str) -> Result<PathBuf> {
        fs::create_dir_all(folder).with_context(|| format!("the folder {} cannot be made", folder.display()))?;
        let path = folder.join(file);
        let draft = folder.join(format!(".{file}.{}", std::process::id()));
        let write = || -> Result<()> {
            fs::write(&draft, text)?;
            self.check(&draft)?;
            Ok(fs::rename(&draft, &path)?)
        };
        if let Err(error) = write() {
            // The removal fails if the draft was not created.
            let _ = fs::remove_file(&draft);
            return Err(error.context(format!("the manifest {} cannot be written", path.display())));
        }
        Ok(path)
    }

    /// Fails if the loader cannot load the library of a manifest.
    fn check(&self, manifest: &Path) -> Result<()> {
        let variable = if self.kind == ManifestKind::Driver { "VK_DRIVER_FILES" } else { "VK_LAYER_PATH" };
        let variables = |name: &str| (name == variable).then(|| manifest.as_os_str().to_owned());
        let seen = if self.kind == ManifestKind::Driver {
            manifests::drivers(&variables)
        } else {
            manifests::layers(&variables)
        };
        let seen = seen.into_iter().find(|it| it.path == manifest);
        match seen.with_context(|| format!("{} is not seen", manifest.display()))?.problem {
            None => Ok(()),
            Some(ManifestProblem::WrongArchitecture { library, found, wanted, .. }) => bail!(
                "{} is for {found}, this machine is {wanted}; build {} here, or name another file in {}",
                library.display(),
                self.package,
                self.variable
            ),
            Some(ManifestProblem::BadLibrary { library, reason, .. }) => {
                bail!("{} is not a library: {reason}; name another file in {}", library.display(), self.variable)
            }
            Some(problem) => bail!("{problem}"),
        }
    }
}

/// A folder of this user for manifests that are needed only while a program runs. It is the first
/// folder that can be created: XDG_RUNTIME_DIR may belong to another user (`su`), or may not exist
/// (containers).
pub(crate) fn private_folder(name: &str) -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    let bases = [variable("XDG_RUNTIME_DIR"), variable("XDG_CACHE_HOME"), variable("HOME").map(|it| it.join(".cache"))];
    let mut refusals = Vec::new();
    for folder in bases.into_iter().flatten().map(|it| it.join("lavascope").join(name)) {
        match fs::create_dir_all(&folder) {
            // The loader separates the folders of a list with `:`.
            Ok(()) if utf8(&folder)?.contains(':') => refusals.push(format!("{} has a `:`", folder.display())),
            Ok(()) => return Ok(folder),
            Err(error) => refusals.push(format!("{}: {error}", folder.display())),
        }
    }
    if refusals.is_empty() {
        bail!("no folder for manifests: none of XDG_RUNTIME_DIR, XDG_CACHE_HOME and HOME names one");
    }
    bail!("no folder for manifests: {}; set XDG_RUNTIME_DIR to one that can be written", refusals.join("; "))
}

/// The path as UTF-8, which manifests and variables require.
pub(crate) fn utf8(path: &Path) -> Result<&str> {
    path.to_str().with_context(|| format!("{} is not UTF-8, which a manifest must be", path.display()))
}
