//! The manifest files that lead the loader to drivers and layers, and their errors.
//!
//! Follows the search order that the loader documents for Linux (LoaderDriverInterface.md, LoaderLayerInterface.md).
//! Nothing is loaded. For every file the result is a [`Manifest`], with a [`ManifestProblem`] if it is invalid.
//!
//! Absent on purpose: the Windows registry and the bundle folders of macOS; there only the variables are followed.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::elf;

/// No manifest is near this; a larger file is not one.
const MANIFEST_SIZE_BYTES_MAX: u64 = 1 << 20;

/// One driver or layer that a manifest file offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// The manifest file.
    pub path: PathBuf,
    pub kind: ManifestKind,
    /// A layer's name; for a driver, which has none, the name of the file.
    pub name: String,
    pub api_version: Option<String>,
    /// As written: a bare name is looked up by the system, other paths start from the manifest.
    pub library_path: Option<String>,
    pub problem: Option<ManifestProblem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ManifestKind {
    Driver,
    ExplicitLayer,
    ImplicitLayer,
}

/// An error in a manifest or in the library that it names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum ManifestProblem {
    #[error("{}: cannot be read: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}:{column}: {reason}", path.display())]
    BadJson { path: PathBuf, line: usize, column: usize, reason: String },
    #[error("{}: {field} is missing or not a text", path.display())]
    MissingField { path: PathBuf, field: String },
    #[error("{}: its library {} does not exist", path.display(), library.display())]
    MissingLibrary { path: PathBuf, library: PathBuf },
    #[error("{}: its library {} cannot be used: {reason}", path.display(), library.display())]
    BadLibrary { path: PathBuf, library: PathBuf, reason: String },
    #[error("{}: its library {} is for {found}, not for {wanted}", path.display(), library.display())]
    WrongArchitecture { path: PathBuf, library: PathBuf, found: String, wanted: String },
}

/// Where variables come from: [`process_variables`], or a table in tests.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// The variables of this process.
pub fn process_variables(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Every driver that the loader would consider.
pub fn drivers(variables: Variables<'_>) -> Vec<Manifest> {
    let forced =
        paths_in_variable(variables, "VK_DRIVER_FILES").or_else(|| paths_in_variable(variables, "VK_ICD_FILENAMES"));
    let paths = forced.unwrap_or_else(|| {
        let mut paths = paths_in_variable(variables, "VK_ADD_DRIVER_FILES").unwrap_or_default();
        paths.extend(standard_folders(variables, "vulkan/icd.d"));
        paths
    });
    read_all(&paths, ManifestKind::Driver)
}

/// Every layer that the loader would consider, explicit ones first.
pub fn layers(variables: Variables<'_>) -> Vec<Manifest> {
    let explicit = paths_in_variable(variables, "VK_LAYER_PATH").unwrap_or_else(|| {
        let mut paths = paths_in_variable(variables, "VK_ADD_LAYER_PATH").unwrap_or_default();
        paths.extend(standard_folders(variables, "vulkan/explicit_layer.d"));
        paths
    });
    let implicit = standard_folders(variables, "vulkan/implicit_layer.d");
    let mut manifests = read_all(&explicit, ManifestKind::ExplicitLayer);
    manifests.extend(read_all(&implicit, ManifestKind::ImplicitLayer));
    manifests
}

/// The paths in a variable; none if it is unset or empty.
fn paths_in_variable(variables: Variables<'_>, name: &str) -> Option<Vec<PathBuf>> {
    let value = variables(name).filter(|it| !it.is_empty())?;
    Some(std::env::split_paths(&value).filter(|it| !it.as_os_str().is_empty()).collect())
}

/// The standard folders in the loader's order, whether or not they exist.
fn standard_folders(variables: Variables<'_>, suffix: &str) -> Vec<PathBuf> {
    let home = variables("HOME").filter(|it| !it.is_empty()).map(PathBuf::from);
    let in_home = |name: &str, folder: &str| {
        paths_in_variable(variables, name).unwrap_or_else(|| home.iter().map(|it| it.join(folder)).collect())
    };
    let or_default = |name: &str, defaults: &[&str]| {
        paths_in_variable(variables, name).unwrap_or_else(|| defaults.iter().map(PathBuf::from).collect())
    };
    let mut folders = in_home("XDG_CONFIG_HOME", ".config");
    folders.extend(or_default("XDG_CONFIG_DIRS", &["/etc/xdg"]));
    folders.push(PathBuf::from("/etc"));
    folders.extend(in_home("XDG_DATA_HOME", ".local/share"));
    folders.extend(or_default("XDG_DATA_DIRS", &["/usr/local/share", "/usr/share"]));
    folders.into_iter().map(|it| it.join(suffix)).collect()
}

/// The manifests at `paths`: files themselves, and the `.json` files of folders by name.
fn read_all(paths: &[PathBuf], kind: ManifestKind) -> Vec<Manifest> {
    let mut seen = Vec::new();
    let mut manifests = Vec::new();
    for path in paths.iter().flat_map(|it| files_of(it)) {
        // Two variables may name the same folder, and folders may be links to each other.
        let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if !seen.contains(&identity) {
            seen.push(identity);
            manifests.extend(read(&path, kind));
        }
    }
    manifests
}

fn files_of(path: &Path) -> Vec<PathBuf> {
    let is_json = |it: &PathBuf| it.extension().is_some_and(|it| it == "json");
    match fs::read_dir(path) {
        Ok(entries) => {
            let mut files: Vec<_> = entries.flatten().map(|it| it.path()).filter(is_json).collect();
            files.sort();
            files
        }
        // A missing standard folder is no error; a missing file that a variable names is.
        Err(_) if path.exists() || is_json(&path.to_owned()) => vec![path.to_owned()],
        Err(_) => vec![],
    }
}

/// The contents of the file: one driver, or one or more layers.
fn read(path: &Path, kind: ManifestKind) -> Vec<Manifest> {
    let document = match parse(path) {
        Ok(document) => document,
        Err(problem) => return vec![invalid_manifest(path, kind, problem)],
    };
    let key = if kind == ManifestKind::Driver { "ICD" } else { "layer" };
    match (document.get(key), document.get("layers")) {
        (Some(object), _) => vec![read_entry(path, kind, key, object)],
        (None, Some(Value::Array(layers))) if kind != ManifestKind::Driver => {
            layers.iter().enumerate().map(|(at, it)| read_entry(path, kind, &format!("layers[{at}]"), it)).collect()
        }
        _ => vec![invalid_manifest(path, kind, missing_field(path, key))],
    }
}

fn parse(path: &Path) -> Result<Value, ManifestProblem> {
    let unreadable = |reason: String| ManifestProblem::Unreadable { path: path.to_owned(), reason };
    let metadata = fs::metadata(path).map_err(|it| unreadable(it.to_string()))?;
    // Reading a pipe would wait for a writer.
    if !metadata.is_file() {
        return Err(unreadable("it is not a plain file".to_owned()));
    }
    if metadata.len() > MANIFEST_SIZE_BYTES_MAX {
        return Err(unreadable(format!("it has {} bytes, too many for a manifest", metadata.len())));
    }
    let bytes = fs::read(path).map_err(|it| unreadable(it.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|it| bad_json(path, &it))
}

fn bad_json(path: &Path, error: &serde_json::Error) -> ManifestProblem {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    // The place is in the fields; the text would say it twice.
    let reason = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text).to_owned();
    ManifestProblem::BadJson { path: path.to_owned(), line, column, reason }
}

fn read_entry(path: &Path, kind: ManifestKind, key: &str, object: &Value) -> Manifest {
    let text = |field: &str| object.get(field).and_then(Value::as_str).map(str::to_owned);
    let library_path = text("library_path");
    let name = if kind == ManifestKind::Driver { None } else { text("name") };
    // A layer made of other layers has no library of its own.
    let needs_library = object.get("component_layers").is_none();
    let problem = if kind != ManifestKind::Driver && name.is_none() {
        Some(missing_field(path, &format!("{key}.name")))
    } else {
        match &library_path {
            Some(library) => library_problem(path, library),
            None if needs_library => Some(missing_field(path, &format!("{key}.library_path"))),
            None => None,
        }
    };
    Manifest {
        path: path.to_owned(),
        kind,
        name: name.unwrap_or_else(|| file_name(path)),
        api_version: text("api_version"),
        library_path,
        problem,
    }
}

fn library_problem(manifest: &Path, library_path: &str) -> Option<ManifestProblem> {
    let is_bare_name = !library_path.contains(std::path::is_separator);
    if is_bare_name {
        return None;
    }
    let library = manifest.parent().unwrap_or(Path::new("")).join(library_path);
    let path = manifest.to_owned();
    if !library.exists() {
        return Some(ManifestProblem::MissingLibrary { path, library });
    }
    if !library.is_file() {
        return Some(ManifestProblem::BadLibrary { path, library, reason: "it is not a plain file".to_owned() });
    }
    let wanted = elf::native()?;
    match elf::architecture(&library) {
        Ok(Some(found)) if found == wanted => None,
        Ok(Some(found)) => Some(ManifestProblem::WrongArchitecture { path, library, found, wanted }),
        Ok(None) => Some(ManifestProblem::BadLibrary { path, library, reason: "it is not an ELF file".to_owned() }),
        Err(error) => Some(ManifestProblem::BadLibrary { path, library, reason: error.to_string() }),
    }
}

fn invalid_manifest(path: &Path, kind: ManifestKind, problem: ManifestProblem) -> Manifest {
    let problem = Some(problem);
    Manifest { path: path.to_owned(), kind, name: file_name(path), api_version: None, library_path: None, problem }
}

fn missing_field(path: &Path, field: &str) -> ManifestProblem {
    ManifestProblem::MissingField { path: path.to_owned(), field: field.to_owned() }
}

fn file_name(path: &Path) -> String {
    path.file_stem().map_or_else(|| path.display().to_string(), |it| it.to_string_lossy().into_owned())
}

/// The text of a driver's manifest, with the path of its library as a loader shall open it.
pub fn driver_manifest(library_path: &str) -> String {
    let api_version = format!("1.4.{}", lavascope_abi::HEADER_VERSION);
    let value = serde_json::json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": library_path, "api_version": api_version },
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests;
