//! The functions of the driver, found by their names when they are first needed.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicUsize, Ordering};

use lavascope_abi as vk;
use lavascope_abi::Command;
use lavascope_platform::library::{Library, VULKAN_LOADER};

use crate::error::ReplayError;
use crate::generated::names;

/// The system's loader.
pub(crate) struct Loader {
    pub(crate) get_instance_proc_addr: vk::FnGetInstanceProcAddr,
    /// Never closed: drivers have threads that outlive their last call.
    _library: ManuallyDrop<Library>,
}

impl Loader {
    pub(crate) fn open() -> Result<Loader, ReplayError> {
        // SAFETY: the system's loader is a library made to be opened; its initializers have no preconditions.
        let library = unsafe { Library::open(VULKAN_LOADER) }
            .map_err(|it| ReplayError::Loader(format!("the Vulkan loader cannot be opened: {it}")))?;
        // SAFETY: the loader's interface gives this symbol this type, and the pointer is kept beside the library.
        let symbol = unsafe { library.get::<vk::FnGetInstanceProcAddr>("vkGetInstanceProcAddr") };
        let get_instance_proc_addr =
            symbol.map_err(|it| ReplayError::Loader(format!("the Vulkan loader lacks a function: {it}")))?;
        Ok(Loader { get_instance_proc_addr, _library: ManuallyDrop::new(library) })
    }
}

/// Whom functions are asked of.
#[derive(Clone, Copy)]
pub(crate) enum ProcAddrSource {
    /// The loader, for an instance or none.
    Instance(vk::FnGetInstanceProcAddr, vk::Instance),
    Device(vk::FnGetDeviceProcAddr, vk::Device),
}

/// The functions of an instance or device.
pub(crate) struct Functions {
    source: ProcAddrSource,
    found: Box<[AtomicUsize]>,
}

/// Asked for, and not there.
const MISSING: usize = 1;

impl Functions {
    pub(crate) fn new(source: ProcAddrSource) -> Functions {
        Functions { source, found: Command::ALL.iter().map(|_| AtomicUsize::new(0)).collect() }
    }

    /// The instance, if they are those of one.
    pub(crate) fn instance(&self) -> Option<vk::Instance> {
        match self.source {
            ProcAddrSource::Instance(_, instance) => Some(instance),
            ProcAddrSource::Device(..) => None,
        }
    }

    /// The function of a command, if the driver has it.
    pub(crate) fn get(&self, command: Command) -> Option<*const ()> {
        let slot = &self.found[command as usize];
        let address = match slot.load(Ordering::Relaxed) {
            0 => {
                let address = self.look_up(command);
                slot.store(address, Ordering::Relaxed);
                address
            }
            address => address,
        };
        (address != MISSING).then(|| std::ptr::with_exposed_provenance(address))
    }

    #[cold]
    fn look_up(&self, command: Command) -> usize {
        for name in names(command) {
            let text = vk::Ptr::new(name.as_ptr().expose_provenance() as u64);
            // SAFETY: the name ends in a zero. Commands are only looked up for an owner whose instance or device
            // exists: its id was found in the table of objects, or it is being created or destroyed by this thread.
            let vk::FnPtr(address) = unsafe {
                match self.source {
                    ProcAddrSource::Instance(get, instance) => get(instance, text),
                    ProcAddrSource::Device(get, device) => get(device, text),
                }
            };
            if address != 0 {
                return address as usize;
            }
        }
        MISSING
    }
}

/// Calls a function of a table by its command and type, where the driver has it.
macro_rules! driver {
    ($functions:expr, $command:ident, $ty:ident($($argument:expr),* $(,)?)) => {{
        match $functions.get(lavascope_abi::Command::$command) {
            Some(address) => {
                // SAFETY: the macro's user names the type that the function of this command has.
                let function = unsafe { std::mem::transmute::<*const (), lavascope_abi::$ty>(address) };
                // SAFETY: the replay makes these calls for itself: handles are those of a `Device`, which is destroyed
                // after everything that has it, or were made just before; pointers are null or lead to values of the
                // frame around the macro.
                Some(unsafe { function($($argument),*) })
            }
            None => None,
        }
    }};
}
pub(crate) use driver;
