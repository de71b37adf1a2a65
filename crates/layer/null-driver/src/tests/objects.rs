//! Memory, addresses, pools, swapchains: objects that must behave.

use lavascope_abi::*;

use super::test_device::{TestDevice, out, vk};
use crate::capabilities::settings::DriverSettings;

#[test]
fn memory_maps_and_buffers_have_addresses() {
    let world = TestDevice::new();
    let buffer = world.buffer(1 << 20);
    buffer.write(b"kept");
    assert_eq!(&buffer.read()[..4], b"kept");
    let mut info = BufferDeviceAddressInfo::zeroed();
    info.buffer = buffer.buffer;
    let address = vk!(FnGetBufferDeviceAddress(world.instance; world.device, Ptr::to(&info)));
    let mut of_memory = DeviceMemoryOpaqueCaptureAddressInfo::zeroed();
    of_memory.memory = buffer.memory;
    let memory = vk!(FnGetDeviceMemoryOpaqueCaptureAddress(world.instance; world.device, Ptr::to(&of_memory)));
    assert!(address != 0 && address == memory);
    // Freed, the same address can be had again.
    vk!(FnFreeMemory(world.instance; world.device, buffer.memory, Ptr::NULL));
    let mut wanted = MemoryOpaqueCaptureAddressAllocateInfo::zeroed();
    wanted.opaque_capture_address = memory;
    let mut info = MemoryAllocateInfo::zeroed();
    info.allocation_size = 4096;
    info.p_next = Ptr::to(&wanted).cast();
    let allocate = || {
        let mut memory = DeviceMemory(0);
        let result = vk!(FnAllocateMemory(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut memory)));
        (result, memory)
    };
    let (result, again) = allocate();
    assert_eq!(result, Result::SUCCESS);
    of_memory.memory = again;
    let found = vk!(FnGetDeviceMemoryOpaqueCaptureAddress(world.instance; world.device, Ptr::to(&of_memory)));
    assert_eq!(found, memory);
    assert_eq!(allocate().0, Result::ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS);
}

#[test]
fn heaps_have_an_end() {
    let world = TestDevice::with(DriverSettings { heap_bytes: 1 << 20, ..DriverSettings::new() });
    let allocate = |size: u64| {
        let mut info = MemoryAllocateInfo::zeroed();
        info.allocation_size = size;
        let mut memory = DeviceMemory(0);
        let result = vk!(FnAllocateMemory(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut memory)));
        (result, memory)
    };
    let (result, first) = allocate(1 << 19);
    assert_eq!(result, Result::SUCCESS);
    assert_eq!(allocate((1 << 19) + 1).0, Result::ERROR_OUT_OF_DEVICE_MEMORY);
    assert_eq!(allocate(u64::MAX).0, Result::ERROR_OUT_OF_DEVICE_MEMORY);
    vk!(FnFreeMemory(world.instance; world.device, first, Ptr::NULL));
    assert_eq!(allocate(1 << 20).0, Result::SUCCESS);
}

#[test]
fn memory_of_the_application_is_used_as_it_is() {
    let world = TestDevice::new();
    let own = vec![5u8; 8192];
    let mut import = ImportMemoryHostPointerInfoEXT::zeroed();
    import.handle_type = ExternalMemoryHandleTypeFlags::HOST_ALLOCATION_EXT;
    import.p_host_pointer = Ptr::to(&own[0]).cast();
    let mut info = MemoryAllocateInfo::zeroed();
    info.allocation_size = 8192;
    info.memory_type_index = 1;
    info.p_next = Ptr::to(&import).cast();
    let mut memory = DeviceMemory(0);
    vk!(FnAllocateMemory(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut memory)));
    assert_eq!(world.map(memory).cast_const(), own.as_ptr());
    vk!(FnFreeMemory(world.instance; world.device, memory, Ptr::NULL));
}

#[test]
fn descriptor_pools_can_be_exhausted() {
    let world = TestDevice::new();
    let mut binding = DescriptorSetLayoutBinding::zeroed();
    binding.descriptor_type = DescriptorType::STORAGE_BUFFER;
    binding.descriptor_count = 3;
    let mut info = DescriptorSetLayoutCreateInfo::zeroed();
    info.binding_count = 1;
    info.p_bindings = Ptr::to(&binding);
    let mut layout = DescriptorSetLayout(0);
    vk!(FnCreateDescriptorSetLayout(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut layout)));
    let size = DescriptorPoolSize { type_: DescriptorType::STORAGE_BUFFER, descriptor_count: 7 };
    let mut info = DescriptorPoolCreateInfo::zeroed();
    info.max_sets = 10;
    info.pool_size_count = 1;
    info.p_pool_sizes = Ptr::to(&size);
    let mut pool = DescriptorPool(0);
    vk!(FnCreateDescriptorPool(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut pool)));
    let allocate = || {
        let mut info = DescriptorSetAllocateInfo::zeroed();
        info.descriptor_pool = pool;
        info.descriptor_set_count = 1;
        info.p_set_layouts = Ptr::to(&layout);
        let mut set = DescriptorSet(7);
        let result = vk!(FnAllocateDescriptorSets(world.instance; world.device, Ptr::to(&info), out(&mut set)));
        (result, set)
    };
    let (first, second, third) = (allocate(), allocate(), allocate());
    assert_eq!([first.0, second.0], [Result::SUCCESS; 2]);
    assert_eq!((third.0, third.1.0), (Result::ERROR_OUT_OF_POOL_MEMORY, 0));
    assert_ne!(first.1, second.1);
    vk!(FnFreeDescriptorSets(world.instance; world.device, pool, 1, Ptr::to(&first.1)));
    assert_eq!(allocate().0, Result::SUCCESS);
    vk!(FnResetDescriptorPool(world.instance; world.device, pool, DescriptorPoolResetFlags(0)));
    assert_eq!((allocate().0, allocate().0), (Result::SUCCESS, Result::SUCCESS));
    let mut bytes = 0u64;
    vk!(FnGetDescriptorSetLayoutSizeEXT(world.instance; world.device, layout, out(&mut bytes)));
    assert_eq!(bytes, 96);
}

#[test]
fn swapchain_images_come_in_turn() {
    let world = TestDevice::new();
    let mut info = SwapchainCreateInfoKHR::zeroed();
    info.min_image_count = 2;
    info.image_format = Format::B8G8R8A8_UNORM;
    info.image_extent = Extent2D { width: 64, height: 64 };
    info.image_array_layers = 1;
    let mut swapchain = SwapchainKHR(0);
    vk!(FnCreateSwapchainKHR(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut swapchain)));
    let acquired = world.semaphore(None);
    let acquire = |timeout, semaphore| {
        let mut index = 9u32;
        let to = out(&mut index);
        let result =
            vk!(FnAcquireNextImageKHR(world.instance; world.device, swapchain, timeout, semaphore, Fence(0), to));
        (result, index)
    };
    assert_eq!(acquire(u64::MAX, acquired), (Result::SUCCESS, 0));
    assert_eq!(acquire(0, Semaphore(0)), (Result::SUCCESS, 1));
    assert_eq!(acquire(0, Semaphore(0)).0, Result::NOT_READY);
    assert_eq!(acquire(1_000_000, Semaphore(0)).0, Result::TIMEOUT);
    let rendered = world.semaphore(None);
    world.submit(world.queues[0], (acquired, 0), &[], (rendered, 0), Fence(0));
    let (index, id) = (0u32, 42u64);
    let mut ids = PresentIdKHR::zeroed();
    ids.swapchain_count = 1;
    ids.p_present_ids = Ptr::to(&id);
    let mut present = PresentInfoKHR::zeroed();
    present.p_next = Ptr::to(&ids).cast();
    present.wait_semaphore_count = 1;
    present.p_wait_semaphores = Ptr::to(&rendered);
    present.swapchain_count = 1;
    present.p_swapchains = Ptr::to(&swapchain);
    present.p_image_indices = Ptr::to(&index);
    let wait = |timeout| vk!(FnWaitForPresentKHR(world.instance; world.device, swapchain, 42, timeout));
    assert_eq!(wait(0), Result::TIMEOUT);
    assert_eq!(vk!(FnQueuePresentKHR(world.instance; world.queues[0], Ptr::to(&present))), Result::SUCCESS);
    assert_eq!(wait(0), Result::SUCCESS);
    assert_eq!(acquire(0, Semaphore(0)), (Result::SUCCESS, 0));
    vk!(FnDestroySwapchainKHR(world.instance; world.device, swapchain, Ptr::NULL));
}

#[test]
fn private_data_is_kept_per_object() {
    let world = TestDevice::new();
    let (info, mut slot) = (PrivateDataSlotCreateInfo::zeroed(), PrivateDataSlot(0));
    vk!(FnCreatePrivateDataSlot(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut slot)));
    let ty = ObjectType::DEVICE;
    vk!(FnSetPrivateData(world.instance; world.device, ty, world.device.0, slot, 17));
    let get = |handle| {
        let mut value = 1u64;
        vk!(FnGetPrivateData(world.instance; world.device, ty, handle, slot, out(&mut value)));
        value
    };
    assert_eq!((get(world.device.0), get(world.device.0 + 1)), (17, 0));
    vk!(FnDestroyPrivateDataSlot(world.instance; world.device, slot, Ptr::NULL));
}

#[test]
fn a_profile_takes_extensions_features_and_limits_away() {
    let folder = std::env::temp_dir().join(format!("lavascope-null-{}", std::process::id()));
    let text = r#"{ "capabilities": { "a": { "extensions": { "VK_KHR_swapchain": 70 },
        "features": { "VkPhysicalDeviceFeatures": { "geometryShader": true } },
        "properties": { "VkPhysicalDeviceLimits": { "maxImageDimension2D": 4096 } } } } }"#;
    assert!(std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(folder.join("p.json"), text)).is_ok());
    let mut settings = DriverSettings::new();
    match crate::capabilities::profile::Profile::read(&folder.join("p.json")) {
        Ok(profile) => settings.apply(profile),
        Err(error) => panic!("{error}"),
    }
    let world = TestDevice::with(settings);
    let (mut count, mut features) = (0u32, PhysicalDeviceFeatures::zeroed());
    let (none, to) = (Ptr::NULL, out(&mut count));
    vk!(FnEnumerateDeviceExtensionProperties(world.instance; world.physical, none, to, Ptr::NULL));
    vk!(FnGetPhysicalDeviceFeatures(world.instance; world.physical, out(&mut features)));
    let mut properties = PhysicalDeviceProperties::zeroed();
    vk!(FnGetPhysicalDeviceProperties(world.instance; world.physical, out(&mut properties)));
    assert_eq!(count, 1);
    assert!(features.geometry_shader.is_true() && !features.logic_op.is_true());
    assert_eq!(properties.limits.max_image_dimension2_d, 4096);
    assert_eq!(properties.limits.max_image_dimension1_d, 16384);
    let mut info = DeviceCreateInfo::zeroed();
    let mut wanted = PhysicalDeviceFeatures::zeroed();
    wanted.logic_op = Bool32::TRUE;
    info.p_enabled_features = Ptr::to(&wanted);
    let mut device = Device(0);
    let result = vk!(FnCreateDevice(world.instance; world.physical, Ptr::to(&info), Ptr::NULL, out(&mut device)));
    assert_eq!(result, Result::ERROR_FEATURE_NOT_PRESENT);
    drop(world);
    assert!(std::fs::remove_dir_all(&folder).is_ok());
}
