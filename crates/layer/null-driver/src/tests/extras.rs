//! Ray tracing, video, sharing and deferring: paths that machines without a GPU never took.

use lavascope_abi::*;

use super::test_device::{NO_SEMAPHORE, TestDevice, out, vk};
use crate::capabilities::settings::DriverSettings;

#[test]
fn acceleration_structures_have_sizes_and_addresses() {
    let world = TestDevice::new();
    let mut build = AccelerationStructureBuildGeometryInfoKHR::zeroed();
    build.geometry_count = 2;
    let counts = [1000u32, 24];
    let mut sizes = AccelerationStructureBuildSizesInfoKHR::zeroed();
    let on_device = AccelerationStructureBuildTypeKHR::DEVICE_KHR;
    let (info, counts) = (Ptr::to(&build), Ptr::to_slice(&counts));
    vk!(FnGetAccelerationStructureBuildSizesKHR(world.instance; world.device, on_device, info, counts, out(&mut sizes)));
    assert_eq!(sizes.acceleration_structure_size, 4096 + 1024 * 64);
    assert!(sizes.build_scratch_size > 0 && sizes.update_scratch_size > 0);
    let buffer = world.buffer(sizes.acceleration_structure_size + 256);
    let mut info = AccelerationStructureCreateInfoKHR::zeroed();
    info.buffer = buffer.buffer;
    info.offset = 256;
    info.size = sizes.acceleration_structure_size;
    let mut structure = AccelerationStructureKHR(0);
    let (device, to) = (world.device, out(&mut structure));
    vk!(FnCreateAccelerationStructureKHR(world.instance; device, Ptr::to(&info), Ptr::NULL, to));
    let mut asked = AccelerationStructureDeviceAddressInfoKHR::zeroed();
    asked.acceleration_structure = structure;
    let address = vk!(FnGetAccelerationStructureDeviceAddressKHR(world.instance; device, Ptr::to(&asked)));
    let mut of_buffer = BufferDeviceAddressInfo::zeroed();
    of_buffer.buffer = buffer.buffer;
    let base = vk!(FnGetBufferDeviceAddress(world.instance; device, Ptr::to(&of_buffer)));
    assert_eq!(address, base + 256);
    vk!(FnDestroyAccelerationStructureKHR(world.instance; device, structure, Ptr::NULL));
}

#[test]
fn shader_groups_have_handles_of_their_own() {
    let world = TestDevice::new();
    let handles = || {
        let mut bytes = [0u8; 96];
        let to = out(&mut bytes).cast();
        let get = vk!(FnGetRayTracingShaderGroupHandlesKHR(world.instance; world.device, Pipeline(5), 1, 3, 96, to));
        assert_eq!(get, Result::SUCCESS);
        bytes
    };
    let bytes = handles();
    assert_eq!(bytes, handles());
    assert!(bytes[..32] != bytes[32..64] && bytes[32..64] != bytes[64..]);
}

#[test]
fn what_is_the_drivers_own_is_another_with_another_salt() {
    let own = |salt: u64| {
        let world = TestDevice::with(DriverSettings { salt, ..DriverSettings::new() });
        let (mut handle, mut descriptor) = ([0u8; 32], [0u8; 32]);
        let to = out(&mut handle).cast();
        vk!(FnGetRayTracingShaderGroupHandlesKHR(world.instance; world.device, Pipeline(5), 0, 1, 32, to));
        let mut info = DescriptorGetInfoEXT::zeroed();
        info.type_ = DescriptorType::SAMPLER;
        let to = out(&mut descriptor).cast();
        vk!(FnGetDescriptorEXT(world.instance; world.device, Ptr::to(&info), 32, to));
        (handle, descriptor)
    };
    assert_eq!(own(1), own(1));
    assert!(own(1).0 != own(2).0 && own(1).1 != own(2).1);
}

#[test]
fn what_could_be_deferred_is_done() {
    let world = TestDevice::new();
    let mut operation = DeferredOperationKHR(0);
    let (device, to) = (world.device, out(&mut operation));
    vk!(FnCreateDeferredOperationKHR(world.instance; device, Ptr::NULL, to));
    let info = RayTracingPipelineCreateInfoKHR::zeroed();
    let create = |operation| {
        let (mut pipeline, cache) = (Pipeline(0), PipelineCache(0));
        let (info, to) = (Ptr::to(&info), out(&mut pipeline));
        let result =
            vk!(FnCreateRayTracingPipelinesKHR(world.instance; device, operation, cache, 1, info, Ptr::NULL, to));
        assert_ne!(pipeline.0, 0);
        result
    };
    assert_eq!(create(operation), Result::OPERATION_NOT_DEFERRED_KHR);
    assert_eq!(create(DeferredOperationKHR(0)), Result::SUCCESS);
    assert_eq!(vk!(FnGetDeferredOperationResultKHR(world.instance; device, operation)), Result::SUCCESS);
}

#[test]
fn pipeline_feedback_is_written() {
    let world = TestDevice::new();
    let mut whole = PipelineCreationFeedback { flags: PipelineCreationFeedbackFlags(77), duration: 77 };
    let mut stages = [PipelineCreationFeedback { flags: PipelineCreationFeedbackFlags(77), duration: 77 }; 2];
    let mut feedback = PipelineCreationFeedbackCreateInfo::zeroed();
    feedback.p_pipeline_creation_feedback = out(&mut whole);
    feedback.pipeline_stage_creation_feedback_count = 2;
    feedback.p_pipeline_stage_creation_feedbacks = out(&mut stages).cast();
    let mut info = ComputePipelineCreateInfo::zeroed();
    info.p_next = Ptr::to(&feedback).cast();
    let (mut pipeline, cache) = (Pipeline(0), PipelineCache(0));
    let (info, to) = (Ptr::to(&info), out(&mut pipeline));
    let result = vk!(FnCreateComputePipelines(world.instance; world.device, cache, 1, info, Ptr::NULL, to));
    assert_eq!((result, whole.flags.0, whole.duration), (Result::SUCCESS, 0, 0));
    assert!(stages.iter().all(|it| it.duration == 0) && pipeline.0 != 0);
}

#[test]
fn video_has_capabilities_formats_and_memory() {
    let world = TestDevice::new();
    let mut profile = VideoProfileInfoKHR::zeroed();
    profile.video_codec_operation = VideoCodecOperationFlagsKHR::DECODE_H265_KHR;
    let mut h265 = VideoDecodeH265CapabilitiesKHR::zeroed();
    let mut capabilities = VideoCapabilitiesKHR::zeroed();
    capabilities.p_next = out(&mut h265).cast();
    let to = out(&mut capabilities);
    let result = vk!(FnGetPhysicalDeviceVideoCapabilitiesKHR(world.instance; world.physical, Ptr::to(&profile), to));
    assert_eq!((result, capabilities.max_dpb_slots), (Result::SUCCESS, 17));
    assert!(capabilities.std_header_version.extension_name.starts_with(b"VK_STD_vulkan_video_codec_h265_decode\0"));
    let (mut count, asked) = (0u32, PhysicalDeviceVideoFormatInfoKHR::zeroed());
    let (asked, to) = (Ptr::to(&asked), out(&mut count));
    vk!(FnGetPhysicalDeviceVideoFormatPropertiesKHR(world.instance; world.physical, asked, to, Ptr::NULL));
    assert!(count > 0);
    let mut formats = vec![VideoFormatPropertiesKHR::zeroed(); count as usize];
    let (to, list) = (out(&mut count), out(&mut formats[0]));
    vk!(FnGetPhysicalDeviceVideoFormatPropertiesKHR(world.instance; world.physical, asked, to, list));
    assert!(formats.iter().all(|it| it.format != Format::UNDEFINED));
}

#[test]
fn semaphores_are_shared_through_descriptors() {
    let world = TestDevice::new();
    let (from, to) = (world.semaphore(Some(3)), world.semaphore(Some(0)));
    let mut info = SemaphoreGetFdInfoKHR::zeroed();
    info.semaphore = from;
    info.handle_type = ExternalSemaphoreHandleTypeFlags::OPAQUE_FD;
    let mut fd = -1;
    let result = vk!(FnGetSemaphoreFdKHR(world.instance; world.device, Ptr::to(&info), out(&mut fd)));
    assert!(result == Result::SUCCESS && fd >= 0);
    let mut import = ImportSemaphoreFdInfoKHR::zeroed();
    import.semaphore = to;
    import.handle_type = info.handle_type;
    import.fd = fd;
    assert_eq!(vk!(FnImportSemaphoreFdKHR(world.instance; world.device, Ptr::to(&import))), Result::SUCCESS);
    assert_eq!(world.counter(to), 3);
    world.submit(world.queues[0], NO_SEMAPHORE, &[], (from, 8), Fence(0));
    assert_eq!(world.counter(to), 8);
}

#[test]
fn memory_is_shared_through_descriptors() {
    let world = TestDevice::new();
    let file = ExternalMemoryHandleTypeFlags::OPAQUE_FD;
    let allocate = |chain: Ptr<Opaque>| {
        let mut info = MemoryAllocateInfo::zeroed();
        info.allocation_size = 4096;
        info.memory_type_index = 1;
        info.p_next = chain;
        let mut memory = DeviceMemory(0);
        let (info, to) = (Ptr::to(&info), out(&mut memory));
        assert_eq!(vk!(FnAllocateMemory(world.instance; world.device, info, Ptr::NULL, to)), Result::SUCCESS);
        memory
    };
    let mut export = ExportMemoryAllocateInfo::zeroed();
    export.handle_types = file;
    let first = allocate(Ptr::to(&export).cast());
    let mut info = MemoryGetFdInfoKHR::zeroed();
    info.memory = first;
    info.handle_type = file;
    let mut import = ImportMemoryFdInfoKHR::zeroed();
    import.handle_type = file;
    let to = out(&mut import.fd);
    assert_eq!(vk!(FnGetMemoryFdKHR(world.instance; world.device, Ptr::to(&info), to)), Result::SUCCESS);
    let second = allocate(Ptr::to(&import).cast());
    let (a, b) = (world.map(first), world.map(second));
    assert_ne!(a, b);
    // SAFETY: two mappings of the same page, used by this thread alone.
    let seen = unsafe {
        a.write(9);
        b.read()
    };
    assert_eq!(seen, 9);
    vk!(FnFreeMemory(world.instance; world.device, first, Ptr::NULL));
    vk!(FnFreeMemory(world.instance; world.device, second, Ptr::NULL));
}

#[test]
fn images_are_copied_by_the_host() {
    let world = TestDevice::new();
    let (image, _) = super::execution::image(&world, 4, 2);
    let (texels, mut back): (Vec<u8>, Vec<u8>) = ((0..32).collect(), vec![0; 32]);
    let whole = super::execution::whole(4, 2);
    let mut region = MemoryToImageCopy::zeroed();
    region.p_host_pointer = Ptr::to(&texels[0]).cast();
    region.image_subresource = whole.image_subresource;
    region.image_extent = whole.image_extent;
    let mut info = CopyMemoryToImageInfo::zeroed();
    info.dst_image = image;
    info.region_count = 1;
    info.p_regions = Ptr::to(&region);
    assert_eq!(vk!(FnCopyMemoryToImage(world.instance; world.device, Ptr::to(&info))), Result::SUCCESS);
    let mut region = ImageToMemoryCopy::zeroed();
    region.p_host_pointer = out(&mut back[0]).cast();
    region.image_subresource = whole.image_subresource;
    region.image_extent = whole.image_extent;
    let mut info = CopyImageToMemoryInfo::zeroed();
    info.src_image = image;
    info.region_count = 1;
    info.p_regions = Ptr::to(&region);
    assert_eq!(vk!(FnCopyImageToMemory(world.instance; world.device, Ptr::to(&info))), Result::SUCCESS);
    assert_eq!(back, texels);
}
