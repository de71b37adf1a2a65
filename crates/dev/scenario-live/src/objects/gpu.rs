//! The loader, an instance with its layers, and the device that programs are performed on.

use std::ffi::{CStr, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_platform::library::{Library, VULKAN_LOADER};

use crate::error::LiveError;
use crate::objects::calls::{GlobalCalls, InstanceCalls, call, check, out, text_ptr};
use crate::objects::device::ReusableDevice;

/// Extensions of the instance that performances use.
pub const INSTANCE_EXTENSIONS: [&CStr; 3] = [c"VK_EXT_debug_utils", c"VK_KHR_surface", c"VK_EXT_headless_surface"];

/// Extensions of the device that performances use.
pub const DEVICE_EXTENSIONS: [&CStr; 21] = [
    c"VK_KHR_swapchain",
    c"VK_EXT_transform_feedback",
    c"VK_EXT_conditional_rendering",
    c"VK_EXT_mesh_shader",
    c"VK_EXT_fragment_density_map",
    c"VK_KHR_fragment_shading_rate",
    c"VK_KHR_acceleration_structure",
    c"VK_KHR_deferred_host_operations",
    c"VK_KHR_ray_tracing_pipeline",
    c"VK_KHR_ray_query",
    c"VK_KHR_video_queue",
    c"VK_KHR_video_encode_queue",
    c"VK_KHR_load_store_op_none",
    c"VK_EXT_nested_command_buffer",
    c"VK_KHR_maintenance7",
    c"VK_EXT_image_drm_format_modifier",
    c"VK_EXT_shader_viewport_index_layer",
    c"VK_EXT_rasterization_order_attachment_access",
    c"VK_EXT_descriptor_buffer",
    c"VK_EXT_device_generated_commands",
    c"VK_AMD_buffer_marker",
];

const API_VERSION: u32 = 1 << 22 | 4 << 12;

/// The messages of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// Such as `SYNC-HAZARD-READ-AFTER-WRITE`.
    pub name: String,
    pub text: String,
    /// The call in which it came, such as `cmd_draw`.
    pub call: &'static str,
    /// The label of the command that was being recorded; empty if none was.
    pub label: String,
}

/// An instance, and its first physical device.
pub struct LiveGpu {
    pub(crate) vk: InstanceCalls,
    instance: vk::Instance,
    pub(crate) physical: vk::PhysicalDevice,
    /// The capabilities of each queue family, and its number of queues.
    pub(crate) families: Vec<(u32, u32)>,
    /// A type of memory that the host can map.
    pub(crate) memory_type: u32,
    pub(crate) surface: vk::SurfaceKHR,
    messenger: vk::DebugUtilsMessengerEXT,
    /// Not a `Box`: moving one asserts that no other pointer leads to its contents, and the messenger has one.
    messages: Arc<Mutex<Vec<ReceivedMessage>>>,
    /// Devices that no performance uses now.
    idle_devices: Mutex<Vec<ReusableDevice>>,
    // Last, so that it is closed after everything that leads into it.
    _library: Library,
}

impl LiveGpu {
    /// An instance with the layers of these names, on the driver that the loader finds.
    pub fn open(layers: &[&CStr]) -> Result<LiveGpu, LiveError> {
        // SAFETY: the initializers of the Vulkan loader have no preconditions: programs open it at any time.
        let library = unsafe { Library::open(VULKAN_LOADER) }.map_err(|it| LiveError::Loader(it.to_string()))?;
        // SAFETY: the loader exports `vkGetInstanceProcAddr` with the prototype of the specification, which is this type;
        // the library is kept beside all functions that come from it.
        let get = unsafe { library.get::<vk::FnGetInstanceProcAddr>("vkGetInstanceProcAddr") };
        let get = get.map_err(|it| LiveError::Loader(it.to_string()))?;
        // SAFETY: VUID-vkGetInstanceProcAddr-pName-parameter: a `CStr` ends with a zero.
        // VUID-vkGetInstanceProcAddr-instance-parameter: the instance is null, or alive as it is here.
        let find = |instance: vk::Instance, name: &CStr| unsafe { get(instance, text_ptr(name)) };
        // SAFETY: vkGetInstanceProcAddr without an instance gives the global command that it is asked for, or null.
        let global = unsafe { GlobalCalls::find(|name| find(vk::Instance(0), name)) }?;
        let instance = create_instance(&global, layers)?;
        // SAFETY: vkGetInstanceProcAddr gives the command of the instance that it is asked for, or null.
        let vk = unsafe { InstanceCalls::find(|name| find(instance, name)) }?;
        let (physical, families) = first_physical_device(&vk, instance)?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let messenger = create_messenger(&vk, instance, &heard)?;
        let memory_type = mappable_memory_type(&vk, physical)?;
        let surface = create_surface(&vk, instance)?;
        Ok(LiveGpu {
            vk,
            instance,
            physical,
            families,
            memory_type,
            surface,
            messenger,
            messages: heard,
            idle_devices: Mutex::default(),
            _library: library,
        })
    }

    /// An idle device with these queues.
    pub(crate) fn take_idle_device(&self, queue_counts: &[(u32, u32)]) -> Option<ReusableDevice> {
        let mut idle = self.idle_devices.lock().unwrap_or_else(PoisonError::into_inner);
        let at = idle.iter().position(|it| it.queue_counts == queue_counts)?;
        Some(idle.swap_remove(at))
    }

    pub(crate) fn keep_idle_device(&self, device: ReusableDevice) {
        self.idle_devices.lock().unwrap_or_else(PoisonError::into_inner).push(device);
    }

    /// The messages since the last call.
    pub(crate) fn take_messages(&self) -> Vec<ReceivedMessage> {
        std::mem::take(&mut *self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for LiveGpu {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut *self.idle_devices.lock().unwrap_or_else(PoisonError::into_inner));
        idle.into_iter().for_each(ReusableDevice::destroy);
        call!(self.vk, destroy_surface(self.instance, self.surface, Ptr::NULL));
        call!(self.vk, destroy_debug_utils_messenger(self.instance, self.messenger, Ptr::NULL));
        call!(self.vk, destroy_instance(self.instance, Ptr::NULL));
    }
}

fn create_instance(vk: &GlobalCalls, layers: &[&CStr]) -> Result<vk::Instance, LiveError> {
    let application = vk::ApplicationInfo { api_version: API_VERSION, ..vk::ApplicationInfo::zeroed() };
    let layers: Vec<Ptr<u8>> = layers.iter().map(|it| text_ptr(it)).collect();
    let extensions = INSTANCE_EXTENSIONS.map(text_ptr);
    let info = vk::InstanceCreateInfo {
        p_application_info: Ptr::to(&application),
        enabled_layer_count: layers.len() as u32,
        pp_enabled_layer_names: Ptr::to_slice(&layers),
        enabled_extension_count: extensions.len() as u32,
        pp_enabled_extension_names: Ptr::to_slice(&extensions),
        ..vk::InstanceCreateInfo::zeroed()
    };
    let mut instance = vk::Instance(0);
    check("vkCreateInstance", call!(vk, create_instance(Ptr::to(&info), Ptr::NULL, out(&mut instance))))?;
    Ok(instance)
}

type QueueFamilies = Vec<(u32, u32)>;

fn first_physical_device(
    vk: &InstanceCalls,
    instance: vk::Instance,
) -> Result<(vk::PhysicalDevice, QueueFamilies), LiveError> {
    let mut count = 1;
    let mut physical = vk::PhysicalDevice(0);
    let result = call!(vk, enumerate_physical_devices(instance, out(&mut count), out(&mut physical)));
    check("vkEnumeratePhysicalDevices", result)?;
    let mut count = 0;
    call!(vk, get_physical_device_queue_family_properties(physical, out(&mut count), Ptr::NULL));
    let mut all = vec![vk::QueueFamilyProperties::zeroed(); count as usize];
    let first = Ptr::new(all.as_mut_ptr().expose_provenance() as u64);
    call!(vk, get_physical_device_queue_family_properties(physical, out(&mut count), first));
    Ok((physical, all.iter().map(|it| (it.queue_flags.0, it.queue_count)).collect()))
}

fn mappable_memory_type(vk: &InstanceCalls, physical: vk::PhysicalDevice) -> Result<u32, LiveError> {
    let mut memory = vk::PhysicalDeviceMemoryProperties::zeroed();
    call!(vk, get_physical_device_memory_properties(physical, out(&mut memory)));
    let wanted = vk::MemoryPropertyFlags::HOST_VISIBLE.0;
    let is_it = |it: &u32| memory.memory_types[*it as usize].property_flags.0 & wanted == wanted;
    let found = (0..memory.memory_type_count).find(is_it);
    found.ok_or_else(|| LiveError::Missing("memory that the host can map".to_owned()))
}

fn create_messenger(
    vk: &InstanceCalls,
    instance: vk::Instance,
    heard: &Mutex<Vec<ReceivedMessage>>,
) -> Result<vk::DebugUtilsMessengerEXT, LiveError> {
    use vk::DebugUtilsMessageSeverityFlagsEXT as Severity;
    let listen: DebugCallback = debug_callback;
    let info = vk::DebugUtilsMessengerCreateInfoEXT {
        message_severity: Severity(Severity::ERROR_EXT.0 | Severity::WARNING_EXT.0 | Severity::INFO_EXT.0),
        message_type: vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION_EXT,
        pfn_user_callback: vk::FnPtr((listen as *const ()).expose_provenance() as u64),
        p_user_data: Ptr::to(heard).cast(),
        ..vk::DebugUtilsMessengerCreateInfoEXT::zeroed()
    };
    let mut messenger = vk::DebugUtilsMessengerEXT(0);
    let result = call!(vk, create_debug_utils_messenger(instance, Ptr::to(&info), Ptr::NULL, out(&mut messenger)));
    check("vkCreateDebugUtilsMessengerEXT", result)?;
    Ok(messenger)
}

fn create_surface(vk: &InstanceCalls, instance: vk::Instance) -> Result<vk::SurfaceKHR, LiveError> {
    let info = vk::HeadlessSurfaceCreateInfoEXT::zeroed();
    let mut surface = vk::SurfaceKHR(0);
    let result = call!(vk, create_headless_surface(instance, Ptr::to(&info), Ptr::NULL, out(&mut surface)));
    check("vkCreateHeadlessSurfaceEXT", result)?;
    Ok(surface)
}

type DebugCallback = unsafe extern "system" fn(
    vk::DebugUtilsMessageSeverityFlagsEXT,
    vk::DebugUtilsMessageTypeFlagsEXT,
    *const vk::DebugUtilsMessengerCallbackDataEXT,
    *const c_void,
) -> vk::Bool32;

/// The messenger callback.
unsafe extern "system" fn debug_callback(
    _severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _ty: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT,
    user: *const c_void,
) -> vk::Bool32 {
    // SAFETY: the specification of PFN_vkDebugUtilsMessengerCallbackEXT makes `data` valid during the call, and `user` the
    // `pUserData` of the messenger: the list of `LiveGpu::open`, which `LiveGpu` keeps until the messenger is destroyed.
    let (data, heard) = unsafe { (&*data, &*user.cast::<Mutex<Vec<ReceivedMessage>>>()) };
    let owned = |byte: Ptr<u8>| match byte.is_null() {
        true => String::new(),
        // SAFETY: VUID-VkDebugUtilsMessengerCallbackDataEXT-pMessageIdName-parameter and -pMessage-parameter: a text that
        // is not null is a null-terminated UTF-8 string.
        false => unsafe { CStr::from_ptr(byte.as_ptr().cast()) }.to_string_lossy().into_owned(),
    };
    let message = ReceivedMessage {
        name: owned(data.p_message_id_name),
        text: owned(data.p_message),
        call: crate::objects::calls::current_call(),
        label: crate::objects::calls::current_label(),
    };
    heard.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    vk::Bool32::FALSE
}
