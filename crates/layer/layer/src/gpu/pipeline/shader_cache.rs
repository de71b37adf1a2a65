//! A disk cache of instrumented shaders: a folder with one file for each.
//!
//! A file may be damaged. It is used only if it has our magic number, the key of the lookup, a correct checksum and
//! plausible words. Otherwise it counts as missing and is written again. A file is written under another name and then
//! renamed, so that other processes see only complete files.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

use lavascope_instrument::{InstrumentOptions, InstrumentedModule, STORE_VERSION};
use lavascope_platform::files;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::process::library;

const MAGIC: &[u8; 8] = b"LAVASHDR";
/// Magic number, key and checksum.
const HEAD_BYTES: usize = 8 + 16 + 8;
/// Larger files are neither stored nor read.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// If there are more files, the older half is removed.
const FILES_MAX: usize = 4096;
const ENDING: &str = "shader";

/// A folder of instrumented shaders.
pub(crate) struct ShaderCache {
    folder: PathBuf,
    /// The build of the layer, because another build may produce other code.
    build: String,
    /// Makes the names of temporary files unique. Relaxed: numbers must only differ.
    next: AtomicU32,
}

/// The key of a shader: its words, the options, and the build of the layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShaderCacheKey(u128);

impl ShaderCache {
    /// Opens this folder, or the default one for caches.
    pub(crate) fn open(folder: Option<&Path>) -> Result<ShaderCache, String> {
        let folder = folder.map(Path::to_owned).or_else(default_folder).ok_or("there is no home folder for a cache")?;
        let made = files::private_folder().recursive(true).create(&folder);
        made.map_err(|it| format!("{} cannot be made: {it}", folder.display()))?;
        let cache = ShaderCache { folder, build: build(), next: AtomicU32::new(0) };
        cache.remove_oldest();
        Ok(cache)
    }

    /// `chooses` means that a shader with few sites records faults immediately.
    pub(crate) fn key(&self, words: &[u32], options: &InstrumentOptions, chooses: bool) -> ShaderCacheKey {
        let mut bytes = format!("{STORE_VERSION} {} {options:?} {chooses}\n", self.build).into_bytes();
        bytes.extend(words.iter().flat_map(|it| it.to_le_bytes()));
        ShaderCacheKey(xxh3_128(&bytes))
    }

    pub(crate) fn load(&self, key: ShaderCacheKey) -> Option<InstrumentedModule> {
        let file = files::open_own(&self.path(key)).ok()?;
        if file.metadata().ok()?.len() > FILE_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        decode(key, &bytes)
    }

    /// Stores a shader. An error is ignored, because nothing depends on the cache.
    pub(crate) fn store(&self, key: ShaderCacheKey, made: &InstrumentedModule) {
        let bytes = encode(key, made);
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return;
        }
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let beside = self.folder.join(format!("{}-{number}.part", std::process::id()));
        let file = files::private_file().write(true).create_new(true).open(&beside);
        let written = file.and_then(|mut it| it.write_all(&bytes)).and_then(|()| fs::rename(&beside, self.path(key)));
        if written.is_err() {
            let _ = fs::remove_file(&beside);
        }
    }

    fn path(&self, key: ShaderCacheKey) -> PathBuf {
        self.folder.join(format!("{:032x}.{ENDING}", key.0))
    }

    /// Removes the oldest files if there are too many.
    fn remove_oldest(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        let mut all: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .map(|it| it.path())
            .filter(|it| it.extension() == Some(OsStr::new(ENDING)))
            .filter_map(|it| Some((fs::symlink_metadata(&it).ok()?.modified().ok()?, it)))
            .collect();
        if all.len() > FILES_MAX {
            all.sort();
            all.truncate(all.len() - FILES_MAX / 2);
            all.iter().for_each(|it| drop(fs::remove_file(&it.1)));
        }
    }
}

fn default_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|it| !it.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").filter(|it| it.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("lavascope/shaders"))
}

/// Identifies this build of the layer by its version and its file.
fn build() -> String {
    let file = library::module_of(build as fn() -> String as usize).map(|it| it.file).unwrap_or_default();
    let about = fs::metadata(file).ok().map(|it| (it.len(), it.modified().ok()));
    format!("{} {about:?}", env!("CARGO_PKG_VERSION"))
}

fn encode(key: ShaderCacheKey, made: &InstrumentedModule) -> Vec<u8> {
    let words: Vec<u8> = made.to_words().iter().flat_map(|it| it.to_le_bytes()).collect();
    let mut bytes = MAGIC.to_vec();
    bytes.extend(key.0.to_le_bytes());
    bytes.extend(checksum(key, &words).to_le_bytes());
    bytes.extend(words);
    bytes
}

fn decode(key: ShaderCacheKey, bytes: &[u8]) -> Option<InstrumentedModule> {
    let (head, words) = bytes.split_at_checked(HEAD_BYTES)?;
    let expected = [MAGIC, &key.0.to_le_bytes()[..], &checksum(key, words).to_le_bytes()].concat();
    if head != expected || words.len() % 4 != 0 {
        return None;
    }
    let words: Vec<u32> = words.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it)).collect();
    InstrumentedModule::from_words(&words)
}

fn checksum(key: ShaderCacheKey, words: &[u8]) -> u64 {
    xxh3_64(words) ^ key.0 as u64
}

#[cfg(test)]
mod tests {
    use lavascope_instrument::{RootLocation, instrument};
    use lavascope_spirv::Module;

    use super::*;

    const SHADER: &[u8] = include_bytes!("../../../../../dev/samples/shaders/double.comp.spv");

    fn words() -> Vec<u32> {
        SHADER.as_chunks::<4>().0.iter().map(|it| u32::from_le_bytes(*it)).collect()
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("lavascope-cache-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder
    }

    #[test]
    fn what_is_kept_is_found_by_its_content_alone() {
        let folder = folder("content");
        let cache = ShaderCache::open(Some(&folder)).expect("a folder");
        let options = InstrumentOptions::new(RootLocation::Descriptor { set: 7 });
        let made = instrument(&Module::parse(&words()).expect("a module"), &options).expect("checks");
        let key = cache.key(&words(), &options, true);
        assert_eq!(cache.load(key), None);
        cache.store(key, &made);
        assert_eq!(cache.load(key), Some(made.clone()));
        let other = InstrumentOptions { prints: true, ..options.clone() };
        assert_ne!(cache.key(&words(), &other, true), key);
        assert_ne!(cache.key(&words(), &options, false), key);
        assert_eq!(cache.load(cache.key(&words()[..20], &options, true)), None);
        assert_eq!(fs::read_dir(&folder).expect("files").count(), 1, "nothing is left beside it");
        let _ = fs::remove_dir_all(&folder);
    }

    #[test]
    fn damage_counts_as_not_there() {
        let folder = folder("damage");
        let cache = ShaderCache::open(Some(&folder)).expect("a folder");
        let options = InstrumentOptions::new(RootLocation::Descriptor { set: 7 });
        let made = instrument(&Module::parse(&words()).expect("a module"), &options).expect("checks");
        let key = cache.key(&words(), &options, true);
        cache.store(key, &made);
        let whole = fs::read(cache.path(key)).expect("a file");
        for at in (0..whole.len()).step_by(whole.len() / 97) {
            let mut bad = whole.clone();
            bad[at] ^= 0x10;
            fs::write(cache.path(key), &bad).expect("it can be written");
            assert_eq!(cache.load(key), None, "byte {at}");
            fs::write(cache.path(key), &whole[..at]).expect("it can be written");
            assert_eq!(cache.load(key), None, "{at} bytes");
        }
        // A file with another key, or that is not a regular file, is not used either.
        let other = ShaderCacheKey(key.0 ^ 1);
        fs::write(cache.path(other), &whole).expect("it can be written");
        assert_eq!(cache.load(other), None);
        fs::remove_file(cache.path(key)).expect("it is there");
        fs::write(folder.join("elsewhere"), &whole).expect("it can be written");
        std::os::unix::fs::symlink(folder.join("elsewhere"), cache.path(key)).expect("a link");
        assert_eq!(cache.load(key), None);
        cache.store(key, &made);
        assert_eq!(cache.load(key), Some(made), "it is written anew");
        let _ = fs::remove_dir_all(&folder);
    }
}
