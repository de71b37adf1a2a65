//! An instance with its devices, as a test wants it.

use std::ffi::{CStr, c_char};

use ash::vk;

pub(crate) const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
pub(crate) const SECOND_NAME: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The parameters of an instance.
#[derive(Clone, Copy, Default)]
pub(crate) struct Setup<'a> {
    pub(crate) layers: &'a [&'a CStr],
    pub(crate) extensions: &'a [&'a CStr],
    pub(crate) device_extensions: &'a [&'a CStr],
    /// Whether the device has the feature of `VK_EXT_device_fault`.
    pub(crate) wants_faults: bool,
    /// For our layer, through `VK_EXT_layer_settings`.
    pub(crate) settings: &'a [(&'a CStr, &'a CStr)],
    /// For the Khronos layer, in the same way.
    pub(crate) khronos: &'a [(&'a CStr, LayerSettingValue)],
    /// The same, addressed to the Khronos layer.
    pub(crate) khronos_settings: &'a [(&'a CStr, &'a CStr)],
    /// Through `VK_EXT_validation_features`.
    pub(crate) features: &'a [vk::ValidationFeatureEnableEXT],
    pub(crate) utils: Option<vk::DebugUtilsMessengerCreateInfoEXT<'a>>,
    pub(crate) report: Option<vk::DebugReportCallbackCreateInfoEXT<'a>>,
    /// The version that the application asks for, if not 1.3; none of it is no application info at all.
    pub(crate) api_version: Option<Option<u32>>,
}

/// The value of a setting, as applications give it.
#[derive(Clone, Copy)]
pub(crate) enum LayerSettingValue {
    Bool(vk::Bool32),
    Number(u32),
    Text(&'static CStr),
}

impl<'a> Setup<'a> {
    pub(crate) const BARE: Setup<'static> = Setup {
        layers: &[],
        extensions: &[],
        device_extensions: &[],
        wants_faults: false,
        settings: &[],
        khronos: &[],
        khronos_settings: &[],
        features: &[],
        utils: None,
        report: None,
        api_version: None,
    };
    pub(crate) const OFF: Setup<'static> = Setup { layers: &[LAYER], ..Setup::BARE };
    pub(crate) const STATS: Setup<'static> = Setup { settings: &[(c"stats", c"on")], ..Setup::OFF };

    pub(crate) fn instance(&self, entry: &ash::Entry) -> ash::Instance {
        self.try_instance(entry).expect("the null driver makes instances")
    }

    pub(crate) fn try_instance(&self, entry: &ash::Entry) -> Result<ash::Instance, vk::Result> {
        let own = self.settings.iter().map(|it| (LAYER, *it));
        let wanted: Vec<_> = own.chain(self.khronos_settings.iter().map(|it| (SECOND_NAME, *it))).collect();
        let values: Vec<*const c_char> = wanted.iter().map(|it| it.1.1.as_ptr()).collect();
        let setting = |(at, pair): (usize, &(&'static CStr, (&'a CStr, &'a CStr)))| vk::LayerSettingEXT {
            value_count: 1,
            p_values: (&raw const values[at]).cast(),
            ..vk::LayerSettingEXT::default()
                .layer_name(pair.0)
                .setting_name(pair.1.0)
                .ty(vk::LayerSettingTypeEXT::STRING)
        };
        let texts: Vec<*const c_char> = self.khronos.iter().map(|it| it.1.text()).collect();
        let khronos = |(at, pair): (usize, &'a (&'a CStr, LayerSettingValue))| {
            let (ty, p_values) = match &pair.1 {
                LayerSettingValue::Bool(bool) => (vk::LayerSettingTypeEXT::BOOL32, (&raw const *bool).cast()),
                LayerSettingValue::Number(number) => (vk::LayerSettingTypeEXT::UINT32, (&raw const *number).cast()),
                LayerSettingValue::Text(_) => (vk::LayerSettingTypeEXT::STRING, (&raw const texts[at]).cast()),
            };
            let setting = vk::LayerSettingEXT::default().layer_name(SECOND_NAME).setting_name(pair.0).ty(ty);
            vk::LayerSettingEXT { value_count: 1, p_values, ..setting }
        };
        let settings: Vec<vk::LayerSettingEXT> = wanted.iter().enumerate().map(setting).collect();
        let settings = [settings, self.khronos.iter().enumerate().map(khronos).collect()].concat();
        let mut features = vk::ValidationFeaturesEXT::default().enabled_validation_features(self.features);
        let mut chained = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
        let (mut utils, mut report) = (self.utils, self.report);
        let [layers, extensions] = [self.layers, self.extensions].map(pointers);
        let asked = self.api_version.unwrap_or(Some(vk::API_VERSION_1_3));
        let application = vk::ApplicationInfo::default().api_version(asked.unwrap_or_default());
        let mut info = vk::InstanceCreateInfo::default();
        if asked.is_some() {
            info = info.application_info(&application);
        }
        let mut info = info.enabled_layer_names(&layers).enabled_extension_names(&extensions);
        if !settings.is_empty() {
            info = info.push_next(&mut chained);
        }
        if !self.features.is_empty() {
            info = info.push_next(&mut features);
        }
        if let Some(create_info) = utils.as_mut() {
            info = info.push_next(create_info);
        }
        if let Some(create_info) = report.as_mut() {
            info = info.push_next(create_info);
        }
        // SAFETY: the structures above live until the call returns (lifetime).
        unsafe { entry.create_instance(&info, None) }
    }

    pub(crate) fn world(&self, entry: &ash::Entry) -> World {
        World::new(self.instance(entry), self)
    }
}

impl LayerSettingValue {
    fn text(self) -> *const c_char {
        match self {
            LayerSettingValue::Text(value) => value.as_ptr(),
            LayerSettingValue::Bool(_) | LayerSettingValue::Number(_) => std::ptr::null(),
        }
    }
}

fn pointers(names: &[&CStr]) -> Vec<*const c_char> {
    names.iter().map(|it| it.as_ptr()).collect()
}

/// Opens the loader again.
pub(crate) fn entry() -> ash::Entry {
    // SAFETY: the initializers of the loader have no preconditions, and `Entry` keeps the library open.
    unsafe { ash::Entry::load() }.expect("there is a loader")
}

/// The same for worlds that outlive the entry: the loader is never closed.
pub(crate) fn lasting_entry() -> ash::Entry {
    let entry = entry();
    std::mem::forget(entry.clone());
    entry
}

/// An instance and a device.
pub(crate) struct World {
    pub(crate) instance: ash::Instance,
    pub(crate) device: ash::Device,
    pub(crate) queue: vk::Queue,
}

impl World {
    fn new(instance: ash::Instance, setup: &Setup<'_>) -> World {
        let device = device(&instance, setup);
        // SAFETY: `device` asked for one queue of family 0, without flags
        // (VUID-vkGetDeviceQueue-queueFamilyIndex-00384, VUID-vkGetDeviceQueue-queueIndex-00385).
        let queue = unsafe { device.get_device_queue(0, 0) };
        World { instance, device, queue }
    }

    pub(crate) fn destroy(self) {
        // SAFETY: the queue was waited for, and the world is used no more; children that are left are numbers of the
        // null driver (lifetime, null driver).
        unsafe {
            self.device.destroy_device(None);
            self.instance.destroy_instance(None);
        }
    }

    pub(crate) fn create_buffer(&self) -> vk::Buffer {
        let info = vk::BufferCreateInfo::default().size(256).usage(vk::BufferUsageFlags::TRANSFER_DST);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { self.device.create_buffer(&info, None) }.expect("the null driver makes buffers")
    }

    pub(crate) fn destroy_buffer(&self, buffer: vk::Buffer) {
        // SAFETY: nothing is pending that uses it, and nobody has the handle afterwards (lifetime).
        unsafe { self.device.destroy_buffer(buffer, None) };
    }

    pub(crate) fn allocate(&self, bytes: u64) -> vk::DeviceMemory {
        let info = vk::MemoryAllocateInfo::default().allocation_size(bytes);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { self.device.allocate_memory(&info, None) }.expect("the null driver has memory")
    }

    /// Buffers that are made and ended at once.
    pub(crate) fn create_and_destroy_buffers(&self, times: u64) {
        for _ in 0..times {
            self.destroy_buffer(self.create_buffer());
        }
    }

    pub(crate) fn command_pool(&self) -> vk::CommandPool {
        let flags = vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER;
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { self.device.create_command_pool(&vk::CommandPoolCreateInfo::default().flags(flags), None) }
            .expect("the null driver makes pools")
    }

    pub(crate) fn command_buffers(&self, pool: vk::CommandPool, count: u32) -> Vec<vk::CommandBuffer> {
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(count);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { self.device.allocate_command_buffers(&info) }.expect("the null driver makes command buffers")
    }

    /// Records some draws.
    pub(crate) fn record(&self, command_buffer: vk::CommandBuffer, draws: u64) {
        // SAFETY: the command buffer is not pending, its pool lets it be begun again, and only this thread uses it
        // (lifetime, owner). It draws outside of a render pass and without a pipeline (null driver).
        unsafe {
            let begun = self.device.begin_command_buffer(command_buffer, &vk::CommandBufferBeginInfo::default());
            begun.expect("the null driver records");
            for _ in 0..draws {
                self.device.cmd_draw(command_buffer, 3, 1, 0, 0);
            }
            self.device.end_command_buffer(command_buffer).expect("the null driver records");
        }
    }

    pub(crate) fn submit(&self, command_buffer: vk::CommandBuffer) {
        let buffers = [command_buffer];
        let submit = vk::SubmitInfo::default().command_buffers(&buffers);
        // SAFETY: no other thread uses the queue meanwhile, and the command buffer was recorded and is not pending, or
        // was begun for simultaneous use (VUID-vkQueueSubmit-pCommandBuffers-00070, -00071; lifetime, owner).
        unsafe {
            self.device.queue_submit(self.queue, &[submit], vk::Fence::null()).expect("the null driver submits");
            self.device.queue_wait_idle(self.queue).expect("the null driver waits");
        }
    }
}

/// A device with one queue.
pub(crate) fn device(instance: &ash::Instance, setup: &Setup<'_>) -> ash::Device {
    let priorities = [1.0];
    let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
    let extensions = pointers(setup.device_extensions);
    let mut faults = vk::PhysicalDeviceFaultFeaturesEXT::default().device_fault(true);
    let mut info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
    if setup.wants_faults {
        info = info.push_next(&mut faults);
    }
    // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
    unsafe {
        let physical = instance.enumerate_physical_devices().expect("the null driver has a device");
        instance.create_device(physical[0], &info, None).expect("the null driver makes devices")
    }
}
