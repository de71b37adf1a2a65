//! The few Vulkan calls, as safe functions over an open loader.
//!
//! All unsafe code of the crate. An [`Instance`] keeps its [`Loader`] borrowed, so no function outlives its library.

use std::ffi::CStr;

use lavascope_abi as abi;
use lavascope_abi::{FnPtr, Ptr, Structure};
use lavascope_platform::library::Library;

use crate::info::{LoaderError, Version};

/// How often a list may grow between asking for its length and its elements.
const ENUMERATE_TRIES_MAX: u32 = 8;

/// An open loader with its global commands.
pub(crate) struct Loader {
    library_name: &'static str,
    get_instance_proc_addr: abi::FnGetInstanceProcAddr,
    // Last, so that it is closed after everything that points into it.
    _library: Library,
}

impl Loader {
    pub(crate) fn open(library_name: &'static str) -> Result<Loader, LoaderError> {
        // SAFETY: the initializers of the Vulkan loader have no preconditions: programs open it at any time.
        let library = unsafe { Library::open(library_name) }
            .map_err(|it| LoaderError::NotFound { library: library_name.to_owned(), reason: it.reason() })?;
        // SAFETY: the loader exports `vkGetInstanceProcAddr` with the prototype of the specification, which is this type;
        // the pointer is kept beside the library.
        let symbol = unsafe { library.get::<abi::FnGetInstanceProcAddr>("vkGetInstanceProcAddr") };
        let get_instance_proc_addr = symbol.map_err(|_| missing(library_name, c"vkGetInstanceProcAddr"))?;
        Ok(Loader { library_name, get_instance_proc_addr, _library: library })
    }

    /// The highest instance version; loaders of Vulkan 1.0 have no command for it.
    pub(crate) fn version(&self) -> Result<Version, LoaderError> {
        let Some(address) = self.address(abi::Instance(0), c"vkEnumerateInstanceVersion") else {
            return Ok(Version::new(1, 0, 0));
        };
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkEnumerateInstanceVersion, whose prototype is this type.
        let function: abi::FnEnumerateInstanceVersion = unsafe { std::mem::transmute(address) };
        let mut packed = 0;
        // SAFETY: VUID-vkEnumerateInstanceVersion-pApiVersion-parameter: it points to a `u32` of ours.
        check("vkEnumerateInstanceVersion", unsafe { function(out(&mut packed)) })?;
        Ok(Version::from_packed(packed))
    }

    pub(crate) fn layers(&self) -> Result<Vec<abi::LayerProperties>, LoaderError> {
        let address = self.required(abi::Instance(0), c"vkEnumerateInstanceLayerProperties")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkEnumerateInstanceLayerProperties, whose prototype is this type.
        let function: abi::FnEnumerateInstanceLayerProperties = unsafe { std::mem::transmute(address) };
        enumerate("vkEnumerateInstanceLayerProperties", abi::LayerProperties::zeroed(), |count, first| {
            // SAFETY: VUID-vkEnumerateInstanceLayerProperties-pPropertyCount-parameter and -pProperties-parameter: `list`
            // passes a count of its own, and null or as many elements as that says.
            unsafe { function(count, first) }
        })
    }

    pub(crate) fn extensions(&self) -> Result<Vec<abi::ExtensionProperties>, LoaderError> {
        let address = self.required(abi::Instance(0), c"vkEnumerateInstanceExtensionProperties")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkEnumerateInstanceExtensionProperties, whose prototype is this type.
        let function: abi::FnEnumerateInstanceExtensionProperties = unsafe { std::mem::transmute(address) };
        enumerate("vkEnumerateInstanceExtensionProperties", abi::ExtensionProperties::zeroed(), |count, first| {
            // SAFETY: VUID-vkEnumerateInstanceExtensionProperties-pLayerName-parameter allows no name.
            // VUID-vkEnumerateInstanceExtensionProperties-pPropertyCount-parameter and -pProperties-parameter: `list` passes
            // a count of its own, and null or as many elements as that says.
            unsafe { function(Ptr::NULL, count, first) }
        })
    }

    /// An instance without layers. `extensions` must be ones that [`Loader::extensions`] names, else the call fails.
    pub(crate) fn create_instance(
        &self,
        version: Version,
        extensions: &[&'static CStr],
        flags: abi::InstanceCreateFlags,
    ) -> Result<LoaderInstance<'_>, LoaderError> {
        let address = self.required(abi::Instance(0), c"vkCreateInstance")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkCreateInstance, whose prototype is this type.
        let function: abi::FnCreateInstance = unsafe { std::mem::transmute(address) };
        let application = abi::ApplicationInfo {
            p_application_name: c_str_ptr(c"lavascope"),
            api_version: version.packed(),
            ..abi::ApplicationInfo::zeroed()
        };
        let names: Vec<Ptr<u8>> = extensions.iter().map(|it| c_str_ptr(it)).collect();
        let info = abi::InstanceCreateInfo {
            flags,
            p_application_info: Ptr::to(&application),
            enabled_extension_count: names.len() as u32,
            pp_enabled_extension_names: Ptr::to_slice(&names),
            ..abi::InstanceCreateInfo::zeroed()
        };
        let mut handle = abi::Instance(0);
        // SAFETY: VUID-vkCreateInstance-pCreateInfo-parameter: the structures, the names behind them and the handle
        // live until the call returns.
        match unsafe { function(Ptr::to(&info), Ptr::NULL, out(&mut handle)) } {
            abi::Result::ERROR_INCOMPATIBLE_DRIVER => Err(LoaderError::NoDriver),
            result => check("vkCreateInstance", result).map(|()| LoaderInstance { loader: self, handle }),
        }
    }

    fn address(&self, instance: abi::Instance, command: &CStr) -> Option<*const ()> {
        // SAFETY: VUID-vkGetInstanceProcAddr-instance-parameter: it is null, or that of an `Instance`, which borrows the
        // loader. VUID-vkGetInstanceProcAddr-pName-parameter: a `CStr` ends with a zero.
        let FnPtr(address) = unsafe { (self.get_instance_proc_addr)(instance, c_str_ptr(command)) };
        (address != 0).then(|| std::ptr::with_exposed_provenance(address as usize))
    }

    fn required(&self, instance: abi::Instance, command: &CStr) -> Result<*const (), LoaderError> {
        self.address(instance, command).ok_or_else(|| missing(self.library_name, command))
    }
}

/// A live instance; dropping it destroys it.
pub(crate) struct LoaderInstance<'a> {
    loader: &'a Loader,
    handle: abi::Instance,
}

impl LoaderInstance<'_> {
    pub(crate) fn physical_devices(&self) -> Result<Vec<LoaderPhysicalDevice<'_>>, LoaderError> {
        let address = self.loader.required(self.handle, c"vkEnumeratePhysicalDevices")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkEnumeratePhysicalDevices, whose prototype is this type.
        let function: abi::FnEnumeratePhysicalDevices = unsafe { std::mem::transmute(address) };
        let handles = enumerate("vkEnumeratePhysicalDevices", abi::PhysicalDevice(0), |count, first| {
            // SAFETY: VUID-vkEnumeratePhysicalDevices-instance-parameter: `self` destroys it when it is dropped, not before.
            // VUID-vkEnumeratePhysicalDevices-pPhysicalDeviceCount-parameter and -pPhysicalDevices-parameter: `list` passes
            // a count of its own, and null or as many elements as that says.
            unsafe { function(self.handle, count, first) }
        })?;
        Ok(handles.into_iter().map(|handle| LoaderPhysicalDevice { instance: self, handle }).collect())
    }
}

impl Drop for LoaderInstance<'_> {
    fn drop(&mut self) {
        // Without the command the instance cannot be destroyed, and there is no way to report that.
        if let Some(address) = self.loader.address(self.handle, c"vkDestroyInstance") {
            // SAFETY: vkGetInstanceProcAddr gave `address` for vkDestroyInstance, whose prototype is this type.
            let function: abi::FnDestroyInstance = unsafe { std::mem::transmute(address) };
            // SAFETY: VUID-vkDestroyInstance-instance-00629: we made no objects from it, and nobody else has it.
            unsafe { function(self.handle, Ptr::NULL) };
        }
    }
}

/// A physical device of a live instance.
pub(crate) struct LoaderPhysicalDevice<'a> {
    instance: &'a LoaderInstance<'a>,
    handle: abi::PhysicalDevice,
}

impl LoaderPhysicalDevice<'_> {
    pub(crate) fn properties(&self) -> Result<abi::PhysicalDeviceProperties, LoaderError> {
        let address = self.instance.loader.required(self.instance.handle, c"vkGetPhysicalDeviceProperties")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkGetPhysicalDeviceProperties, whose prototype is this type.
        let function: abi::FnGetPhysicalDeviceProperties = unsafe { std::mem::transmute(address) };
        let mut properties = abi::PhysicalDeviceProperties::zeroed();
        // SAFETY: VUID-vkGetPhysicalDeviceProperties-physicalDevice-parameter: `self` borrows the instance that it is of.
        // VUID-vkGetPhysicalDeviceProperties-pProperties-parameter: the structure is a local one.
        unsafe { function(self.handle, out(&mut properties)) };
        Ok(properties)
    }

    pub(crate) fn extensions(&self) -> Result<Vec<abi::ExtensionProperties>, LoaderError> {
        let address = self.instance.loader.required(self.instance.handle, c"vkEnumerateDeviceExtensionProperties")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkEnumerateDeviceExtensionProperties, whose prototype is this type.
        let function: abi::FnEnumerateDeviceExtensionProperties = unsafe { std::mem::transmute(address) };
        enumerate("vkEnumerateDeviceExtensionProperties", abi::ExtensionProperties::zeroed(), |count, first| {
            // SAFETY: VUID-vkEnumerateDeviceExtensionProperties-physicalDevice-parameter: `self` borrows its instance.
            // VUID-vkEnumerateDeviceExtensionProperties-pPropertyCount-parameter and -pProperties-parameter: `list` passes a
            // count of its own, and null or as many elements as that says.
            unsafe { function(self.handle, Ptr::NULL, count, first) }
        })
    }

    /// Makes a logical device with one queue and without extensions, and destroys it.
    pub(crate) fn try_device(&self) -> Result<(), LoaderError> {
        let (loader, instance) = (self.instance.loader, self.instance.handle);
        let create = loader.required(instance, c"vkCreateDevice")?;
        let destroy = loader.required(instance, c"vkDestroyDevice")?;
        // SAFETY: vkGetInstanceProcAddr gave the address for vkCreateDevice, whose prototype is this type.
        let create: abi::FnCreateDevice = unsafe { std::mem::transmute(create) };
        // SAFETY: vkGetInstanceProcAddr gave the address for vkDestroyDevice, whose prototype is this type.
        let destroy: abi::FnDestroyDevice = unsafe { std::mem::transmute(destroy) };
        let priority = 1.0f32;
        let queue = abi::DeviceQueueCreateInfo {
            queue_count: 1,
            p_queue_priorities: Ptr::to(&priority),
            ..abi::DeviceQueueCreateInfo::zeroed()
        };
        let info = abi::DeviceCreateInfo {
            queue_create_info_count: 1,
            p_queue_create_infos: Ptr::to(&queue),
            ..abi::DeviceCreateInfo::zeroed()
        };
        let mut device = abi::Device(0);
        // SAFETY: VUID-vkCreateDevice-physicalDevice-parameter: `self` borrows the instance that it is of.
        // VUID-vkCreateDevice-pCreateInfo-parameter: every physical device has a queue family 0, and what the structures
        // name lives until the call returns.
        check("vkCreateDevice", unsafe { create(self.handle, Ptr::to(&info), Ptr::NULL, out(&mut device)) })?;
        // SAFETY: VUID-vkDestroyDevice-device-05137: nothing was made from it.
        unsafe { destroy(device, Ptr::NULL) };
        Ok(())
    }

    /// None if the instance has no `vkGetPhysicalDeviceProperties2`. The caller knows that the device has the
    /// structure; another device leaves it zero.
    pub(crate) fn driver_properties(&self) -> Option<abi::PhysicalDeviceDriverProperties> {
        let address = self.instance.loader.address(self.instance.handle, c"vkGetPhysicalDeviceProperties2")?;
        // SAFETY: vkGetInstanceProcAddr gave `address` for vkGetPhysicalDeviceProperties2, whose prototype is this type.
        let function: abi::FnGetPhysicalDeviceProperties2 = unsafe { std::mem::transmute(address) };
        let mut driver = abi::PhysicalDeviceDriverProperties::zeroed();
        let mut properties = abi::PhysicalDeviceProperties2::zeroed();
        properties.p_next = out(&mut driver).cast();
        // SAFETY: VUID-vkGetPhysicalDeviceProperties2-physicalDevice-parameter: `self` borrows the instance that it is of.
        // VUID-vkGetPhysicalDeviceProperties2-pProperties-parameter: `zeroed` sets the types of both structures, which are
        // local ones.
        unsafe { function(self.handle, out(&mut properties)) };
        Some(driver)
    }
}

/// Vulkan's way to give a list: ask how many, then ask for as many.
///
/// `call` is given a count and null, or a count and room for as many elements.
fn enumerate<T: Copy>(
    command: &'static str,
    zero: T,
    call: impl Fn(Ptr<u32>, Ptr<T>) -> abi::Result,
) -> Result<Vec<T>, LoaderError> {
    let mut result = abi::Result::INCOMPLETE;
    for _ in 0..ENUMERATE_TRIES_MAX {
        let mut count = 0;
        check(command, call(out(&mut count), Ptr::NULL))?;
        let mut elements = vec![zero; count as usize];
        let first = if count == 0 { Ptr::NULL } else { Ptr::new(elements.as_mut_ptr().expose_provenance() as u64) };
        result = call(out(&mut count), first);
        // INCOMPLETE means that the list grew in between.
        if result != abi::Result::INCOMPLETE {
            check(command, result)?;
            elements.truncate(count as usize);
            return Ok(elements);
        }
    }
    Err(failed(command, result))
}

fn check(command: &'static str, result: abi::Result) -> Result<(), LoaderError> {
    if result.0 < 0 { Err(failed(command, result)) } else { Ok(()) }
}

fn failed(command: &str, result: abi::Result) -> LoaderError {
    let name = abi::RESULT_ENUM.values.iter().find(|it| it.0 == i64::from(result.0));
    let result = name.map_or_else(|| format!("VkResult {}", result.0), |it| it.1.to_owned());
    LoaderError::Failed { command: command.to_owned(), result }
}

fn missing(library: &str, command: &CStr) -> LoaderError {
    LoaderError::MissingCommand { library: library.to_owned(), command: command.to_string_lossy().into_owned() }
}

/// A pointer that the callee writes through. `Ptr::to` is for what it only reads.
fn out<T>(target: &mut T) -> Ptr<T> {
    Ptr::new(std::ptr::from_mut(target).expose_provenance() as u64)
}

fn c_str_ptr(text: &CStr) -> Ptr<u8> {
    Ptr::new(text.as_ptr().expose_provenance() as u64)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_missing_library_is_named() {
        let Err(error) = Loader::open("liblavascope-no-such-library.so") else { panic!("there is no such library") };
        assert!(matches!(&error, LoaderError::NotFound { library, .. } if library.contains("no-such")), "{error}");
    }

    #[test]
    fn a_list_that_grows_for_ever_is_an_error() {
        let calls = Cell::new(0);
        let result = enumerate("vkEnumeratePhysicalDevices", 0u32, |_, _| {
            calls.set(calls.get() + 1);
            abi::Result::INCOMPLETE
        });
        let error = result.expect_err("the list never ends");
        assert_eq!(error.to_string(), "vkEnumeratePhysicalDevices failed with VK_INCOMPLETE");
        assert_eq!(calls.get(), 2 * ENUMERATE_TRIES_MAX);
    }

    #[test]
    fn an_unknown_result_is_a_number() {
        assert_eq!(failed("vkX", abi::Result(-77)).to_string(), "vkX failed with VkResult -77");
    }
}
