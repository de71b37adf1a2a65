//! Manifests of every brokenness, in folders of their own.

use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// A folder that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("lavascope-manifests-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("the temporary folder is writable");
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("has a folder")).expect("writable");
        fs::write(&path, bytes).expect("writable");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The drivers where only these variables are set.
fn drivers_with(variables: &[(&str, &Path)]) -> Vec<Manifest> {
    let variables: Vec<_> = variables.iter().map(|it| (it.0.to_owned(), it.1.as_os_str().to_owned())).collect();
    drivers(&move |name| variables.iter().find(|it| it.0 == name).map(|it| it.1.clone()))
}

fn driver(text: impl AsRef<[u8]>) -> Manifest {
    let folder = Folder::new();
    let path = folder.write("a.json", text);
    let mut found = drivers_with(&[("VK_DRIVER_FILES", &path)]);
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn icd(library: &str) -> String {
    format!(r#"{{"file_format_version": "1.0.0", "ICD": {{"library_path": {library:?}, "api_version": "1.3.1"}}}}"#)
}

#[test]
fn a_bare_library_name_is_not_checked() {
    let found = driver(icd("libdriver.so"));
    assert_eq!(found.problem, None);
    assert_eq!(found.name, "a");
    assert_eq!(found.api_version.as_deref(), Some("1.3.1"));
    assert_eq!(found.library_path.as_deref(), Some("libdriver.so"));
}

#[test]
fn bad_json_is_reported_with_its_place() {
    let problem = driver("{\n  \"ICD\": {,\n}").problem.expect("not JSON");
    let ManifestProblem::BadJson { line, column, reason, .. } = &problem else { panic!("{problem}") };
    assert_eq!((*line, *column), (2, 11));
    assert!(!reason.contains("line"), "{reason}");
    assert!(problem.to_string().contains("a.json:2:11: "), "{problem}");
}

#[test]
fn bytes_of_any_kind_are_a_problem_and_no_panic() {
    let deep = "[".repeat(100_000);
    for bytes in [&b""[..], b"\xff\xfe\0", b"null", b"[]", b"3", b"\"ICD\"", b"{\"ICD\": 7}", deep.as_bytes()] {
        assert!(driver(bytes).problem.is_some(), "{:?}", &bytes[..bytes.len().min(20)]);
    }
}

#[test]
fn a_missing_field_is_named() {
    let problem = driver(r#"{"ICD": {"api_version": "1.0.0"}}"#).problem;
    assert!(matches!(problem, Some(ManifestProblem::MissingField { field, .. }) if field == "ICD.library_path"));
    let problem = driver(r#"{"layer": {}}"#).problem;
    assert!(matches!(problem, Some(ManifestProblem::MissingField { field, .. }) if field == "ICD"));
}

#[test]
fn a_missing_library_is_named_relative_to_the_manifest() {
    let folder = Folder::new();
    let path = folder.write("icd.d/a.json", icd("../lib/libno.so"));
    let found = drivers_with(&[("VK_ICD_FILENAMES", &path)]);
    let library = folder.0.join("icd.d").join("../lib/libno.so");
    assert_eq!(found[0].problem, Some(ManifestProblem::MissingLibrary { path, library }));
}

#[cfg(all(unix, not(target_vendor = "apple")))]
#[test]
fn a_library_of_another_machine_is_distinguished_from_one_of_ours() {
    assert!(elf::native().is_some(), "`native` has no name for the processor {}", std::env::consts::ARCH);
    let folder = Folder::new();
    let mut header = b"\x7fELF\x02\x01".to_vec();
    header.resize(18, 0);
    header.extend(8u16.to_le_bytes());
    folder.write("libother.so", &header);
    let other = folder.write("other.json", icd("./libother.so"));
    let problem = drivers_with(&[("VK_DRIVER_FILES", &other)])[0].problem.clone();
    assert!(matches!(problem, Some(ManifestProblem::WrongArchitecture { found, .. }) if found == "ELF machine 8"));

    let program = std::env::current_exe().expect("tests have a file");
    let own = folder.write("own.json", icd(program.to_str().expect("a plain path")));
    assert_eq!(drivers_with(&[("VK_DRIVER_FILES", &own)])[0].problem, None);

    folder.write("libtext.so", "INPUT(libother.so)");
    let text = folder.write("text.json", icd("./libtext.so"));
    let problem = drivers_with(&[("VK_DRIVER_FILES", &text)])[0].problem.clone();
    assert!(matches!(problem, Some(ManifestProblem::BadLibrary { .. })));
}

#[test]
fn a_named_file_that_is_not_there_is_a_problem_and_a_folder_is_not() {
    let folder = Folder::new();
    let found = drivers_with(&[("VK_DRIVER_FILES", &folder.0.join("gone.json"))]);
    assert!(matches!(found[0].problem, Some(ManifestProblem::Unreadable { .. })));
    assert!(drivers_with(&[("VK_DRIVER_FILES", &folder.0.join("gone"))]).is_empty());
    assert!(drivers_with(&[("VK_DRIVER_FILES", &folder.0)]).is_empty());
}

#[test]
fn folders_are_read_once_and_in_order() {
    let folder = Folder::new();
    folder.write("config/vulkan/icd.d/b.json", icd("libb.so"));
    folder.write("config/vulkan/icd.d/a.json", icd("liba.so"));
    folder.write("config/vulkan/icd.d/a.txt", "not a manifest");
    folder.write("data/vulkan/icd.d/c.json", icd("libc.so"));
    let (config, data) = (folder.0.join("config"), folder.0.join("data"));
    let added = folder.write("d.json", icd("libd.so"));
    let found = drivers_with(&[
        ("XDG_CONFIG_HOME", &config),
        ("XDG_CONFIG_DIRS", &config),
        ("XDG_DATA_HOME", &data),
        ("XDG_DATA_DIRS", &data),
        ("VK_ADD_DRIVER_FILES", &added),
    ]);
    let names: Vec<_> = found.iter().filter(|it| it.path.starts_with(&folder.0)).map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["d", "a", "b", "c"]);
}

#[test]
fn forced_drivers_hide_added_and_standard_ones() {
    let folder = Folder::new();
    let (forced, older) = (folder.write("x.json", icd("libx.so")), folder.write("y.json", icd("liby.so")));
    let found =
        drivers_with(&[("VK_DRIVER_FILES", &forced), ("VK_ICD_FILENAMES", &older), ("VK_ADD_DRIVER_FILES", &older)]);
    assert_eq!(found.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["x"]);
}

#[test]
fn a_file_may_hold_many_layers_and_layers_of_layers() {
    let folder = Folder::new();
    folder.write(
        "many.json",
        r#"{"layers": [{"name": "VK_LAYER_A", "library_path": "liba.so"}, {"library_path": "libb.so"},
            {"name": "VK_LAYER_C", "component_layers": ["VK_LAYER_A"]}, {"name": "VK_LAYER_D"}]}"#,
    );
    let path = folder.0.clone();
    let found = layers(&move |name| (name == "VK_LAYER_PATH").then(|| path.as_os_str().to_owned()));
    let ours: Vec<_> = found.iter().filter(|it| it.kind == ManifestKind::ExplicitLayer).collect();
    assert_eq!(ours.len(), 4);
    assert_eq!((ours[0].name.as_str(), &ours[0].problem), ("VK_LAYER_A", &None));
    assert!(matches!(&ours[1].problem, Some(ManifestProblem::MissingField { field, .. }) if field == "layers[1].name"));
    assert_eq!(ours[2].problem, None);
    assert!(
        matches!(&ours[3].problem, Some(ManifestProblem::MissingField { field, .. }) if field == "layers[3].library_path")
    );
}
