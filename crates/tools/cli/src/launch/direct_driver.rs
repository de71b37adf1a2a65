//! Finds out whether a program loads a Vulkan driver itself, without the Vulkan loader.
//!
//! No layer sees the calls of such a program, and it looks like a program without Vulkan. So a thread looks
//! from time to time at the libraries of the program and of its child processes, until a layer reports something.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use lavascope_loader::manifests;
use lavascope_platform::process;

/// The time between two looks grows up to this.
const INTERVAL_MAX: Duration = Duration::from_millis(200);

/// Looks at a process until it is dropped.
pub(crate) struct DriverWatch {
    shared: Arc<SharedFindings>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Default)]
struct SharedFindings {
    is_over: AtomicBool,
    processes: Mutex<BTreeMap<u32, VulkanLibraries>>,
}

/// The libraries for Vulkan of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct VulkanLibraries {
    has_loader: bool,
    driver: Option<PathBuf>,
}

impl DriverWatch {
    /// Begins to look at a process. `is_under_layer` says whether that is not needed any more.
    pub(crate) fn start(process: u32, is_under_layer: impl Fn() -> bool + Send + 'static) -> DriverWatch {
        let shared = Arc::<SharedFindings>::default();
        let own = Arc::clone(&shared);
        let watch = move || {
            let drivers = driver_names();
            let mut interval = Duration::from_millis(5);
            while !own.is_over.load(Ordering::Relaxed) && !is_under_layer() {
                own.look(process, &drivers);
                thread::park_timeout(interval);
                interval = (2 * interval).min(INTERVAL_MAX);
            }
        };
        // Without a thread, nothing is known, as for a program that ends at once.
        let thread = thread::Builder::new().name("lavascope-drivers".to_owned()).spawn(watch).ok();
        DriverWatch { shared, thread }
    }

    /// The driver that a process loaded without the loader.
    pub(crate) fn end(mut self) -> Option<PathBuf> {
        self.stop();
        let processes = self.shared.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.values().find(|it| !it.has_loader).and_then(|it| it.driver.clone())
    }

    fn stop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A look that panicked has found nothing.
            let _ = thread.join();
        }
    }
}

impl Drop for DriverWatch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl SharedFindings {
    fn look(&self, process: u32, drivers: &[String]) {
        for process in process::with_descendants(process) {
            let found = vulkan_libraries(&process::mapped_libraries(process), drivers);
            if found != VulkanLibraries::default() {
                let mut processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
                let known = processes.entry(process).or_default();
                known.has_loader |= found.has_loader;
                known.driver = known.driver.take().or(found.driver);
            }
        }
    }
}

fn file_name(path: &Path) -> &str {
    path.file_name().and_then(|it| it.to_str()).unwrap_or_default()
}

/// The files of the drivers of this machine that serve nothing but Vulkan.
fn driver_names() -> Vec<String> {
    let drivers = manifests::drivers(&manifests::process_variables);
    let libraries = drivers.iter().filter_map(|it| it.library_path.as_deref());
    let names = libraries.map(|it| file_name(Path::new(it)).to_owned());
    // The library of a vendor for OpenGL may be its Vulkan driver as well.
    names.filter(|it| it.contains("vulkan") || it.starts_with("libvk_")).collect()
}

/// A library that the Vulkan driver of NVIDIA loads, and its OpenGL driver does not.
const NVIDIA_COMPILER: &str = "libnvidia-glvkspirv.so";

fn vulkan_libraries(libraries: &[PathBuf], drivers: &[String]) -> VulkanLibraries {
    let is_driver = |library: &&PathBuf| {
        let name = file_name(library);
        drivers.iter().any(|it| it == name)
            || (name.starts_with("libvulkan_") && name.contains(".so"))
            || name.starts_with(NVIDIA_COMPILER)
    };
    VulkanLibraries {
        has_loader: libraries.iter().any(|it| file_name(it).starts_with("libvulkan.so")),
        driver: libraries.iter().find(is_driver).cloned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_without_a_loader_is_seen() {
        let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
        let found = |all: &[&str]| vulkan_libraries(&paths(all), &["libvk_swiftshader.so".to_owned()]);
        let of = |has_loader, driver: Option<&str>| VulkanLibraries { has_loader, driver: driver.map(PathBuf::from) };
        assert_eq!(found(&["/usr/lib/libc.so.6"]), VulkanLibraries::default());
        assert_eq!(found(&["/usr/lib/libvulkan_lvp.so"]), of(false, Some("/usr/lib/libvulkan_lvp.so")));
        assert_eq!(found(&["/x/libvk_swiftshader.so"]), of(false, Some("/x/libvk_swiftshader.so")));
        let both = found(&["/usr/lib/libvulkan.so.1.3.239", "/usr/lib/libvulkan_lvp.so"]);
        assert_eq!(both, of(true, Some("/usr/lib/libvulkan_lvp.so")));
        // A program with OpenGL has it.
        assert_eq!(found(&["/usr/lib/libGLX_nvidia.so.0"]), VulkanLibraries::default());
    }
}
