//! Lines of source files, as the reports show them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use lavascope_findings::SourceLocation;

/// Larger files are not read: nobody writes them by hand.
const BYTES_MAX: u64 = 8 << 20;

/// The files that were read; none for those that cannot be read.
#[derive(Default)]
pub(crate) struct SourceLines {
    files: HashMap<String, Option<Vec<String>>>,
    /// Paths below this folder are shown relative to it.
    root: Option<PathBuf>,
}

impl SourceLines {
    /// Adds the line itself if its file is there, and shortens the path.
    pub(crate) fn complete(&mut self, source: &mut SourceLocation) {
        if source.text.is_none() && source.line > 0 {
            let lines = self.files.entry(source.file.clone()).or_insert_with_key(|it| read(Path::new(it)));
            let line = lines.as_ref().and_then(|it| it.get(source.line as usize - 1));
            source.text = line.cloned();
        }
        if self.root.is_none() {
            self.root = source_root();
        }
        if let Some(short) = self.root.as_ref().and_then(|it| Path::new(&source.file).strip_prefix(it).ok()) {
            source.file = short.display().to_string();
        }
    }
}

/// The repository that the current folder is in, since code scanning services expect paths from there; else the
/// current folder.
fn source_root() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    let repository = current.ancestors().find(|it| it.join(".git").exists());
    Some(repository.unwrap_or(&current).to_owned())
}

fn read(path: &Path) -> Option<Vec<String>> {
    let about = fs::metadata(path).ok()?;
    if !about.is_file() || about.len() > BYTES_MAX {
        return None;
    }
    let bytes = fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_paths_are_short() {
        let mut lines = SourceLines::default();
        let location = |file: &str, line| SourceLocation { file: file.to_owned(), line, ..SourceLocation::default() };
        let mut own = location(&format!("{}/src/report/source_lines.rs", env!("CARGO_MANIFEST_DIR")), 1);
        lines.complete(&mut own);
        let root = source_root().expect("there is a current folder");
        assert!(own.file.ends_with("src/report/source_lines.rs") && !Path::new(&own.file).is_absolute(), "{own:?}");
        assert!(root.join(&own.file).is_file());
        assert_eq!(own.text.as_deref(), Some("//! Lines of source files, as the reports show them."));
        for (file, line) in [("/no/such/file.c", 3), ("source_lines.rs", 0), ("/dev/null", 1), ("src", 1)] {
            let mut other = location(file, line);
            lines.complete(&mut other);
            assert_eq!((other.file.as_str(), other.text), (file, None));
        }
    }
}
