//! Tarballs whose bytes depend on nothing but the files in them and the time of the last commit.

use std::path::Path;

use anyhow::Result;

use super::run_tool;

/// Packs `name`, a file or folder in `folder`, by the names that it has there.
pub(super) fn pack(folder: &Path, name: &str, tarball: &Path) -> Result<()> {
    let (file, time) = (tarball.display().to_string(), format!("--mtime=@{}", time_of_the_sources(folder)));
    let owner = ["--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX"];
    let order = ["--sort=name", "--format=ustar", &time, "--use-compress-program=gzip -9n"];
    let words = [&["--create", "--file", &file][..], &owner, &order, &["--", name]].concat();
    run_tool(folder, "tar", &words).map(|_| ())
}

/// In seconds: what the environment says (`SOURCE_DATE_EPOCH`), or the time of the last commit, or a fixed one.
fn time_of_the_sources(folder: &Path) -> u64 {
    let given = std::env::var("SOURCE_DATE_EPOCH").ok();
    let committed = || run_tool(folder, "git", &["log", "-1", "--format=%ct"]).ok();
    given.or_else(committed).and_then(|it| it.trim().parse().ok()).unwrap_or(1_700_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tarball_has_the_files_and_is_the_same_again() {
        let folder = std::env::temp_dir().join(format!("lavascope-archive-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("top/bin")).expect("a folder");
        std::fs::write(folder.join("top/bin/one"), "1").expect("a file");
        std::fs::write(folder.join("top/two"), "22").expect("a file");
        let bytes = |name: &str| {
            let path = folder.join(name);
            pack(&folder, "top", &path).expect("it is packed");
            std::fs::read(path).expect("a tarball")
        };
        assert!(bytes("first.tar.gz") == bytes("second.tar.gz"));
        let listed = run_tool(&folder, "tar", &["--list", "--file", "first.tar.gz"]).expect("a list");
        assert_eq!(listed, "top/\ntop/bin/\ntop/bin/one\ntop/two\n");
        std::fs::remove_dir_all(folder).expect("a folder that can be removed");
    }
}
