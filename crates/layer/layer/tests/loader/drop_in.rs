//! Behavior of the Khronos layer on which existing programs rely.

use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

use ash::vk;

use crate::child::child;
use crate::hazards::{ASYNC, BufferApp, CODE, DEBUG_UTILS, INLINE, messenger_info, set_callback_result, take_received};
use crate::world::{LAYER, LayerSettingValue, SECOND_NAME, Setup, entry};

const HAZARD: &[(u64, u32)] = &[(0, 1), (32, 2)];
/// A program that asks for the Khronos layer, by its name.
const KHRONOS: Setup<'static> = Setup { layers: &[SECOND_NAME], extensions: &[DEBUG_UTILS], ..Setup::BARE };
const ON: LayerSettingValue = LayerSettingValue::Bool(vk::TRUE);

#[test]
fn a_message_is_an_error_of_validation_with_name_number_and_objects() {
    child("drop_in::a_message_is_an_error_of_validation_with_name_number_and_objects", &[], || {
        let entry = entry();
        let app = BufferApp::of(&entry, Setup { khronos: &[(c"validate_sync", ON)], ..KHRONOS });
        app.name(app.buffer, c"the tea");
        app.name(app.commands[0], c"the pot");
        app.record(0, HAZARD);
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!(received_message.severity, vk::DebugUtilsMessageSeverityFlagsEXT::ERROR);
        assert_eq!(received_message.ty, vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
        assert_eq!((received_message.name.as_str(), received_message.number.cast_unsigned()), (CODE, 0x5c0e_c5d6));
        let buffer = (vk::ObjectType::BUFFER, vk::Handle::as_raw(app.buffer), Some("the tea".to_owned()));
        let commands =
            (vk::ObjectType::COMMAND_BUFFER, vk::Handle::as_raw(app.commands[0]), Some("the pot".to_owned()));
        assert_eq!(received_message.objects, [buffer, commands]);
        app.destroy();
    });
}

/// The messenger in the chain of the instance is for the time of its creation and destruction.
#[test]
fn each_occurrence_is_heard_once_and_not_by_the_chained_messenger() {
    let name = "drop_in::each_occurrence_is_heard_once_and_not_by_the_chained_messenger";
    child(name, &[], || {
        let entry = entry();
        let setup = Setup { khronos: &[(c"validate_sync", ON)], utils: Some(messenger_info()), ..KHRONOS };
        let app = BufferApp::of(&entry, setup);
        for _ in 0..3 {
            app.record(0, HAZARD);
        }
        app.destroy();
        assert_eq!(take_received().len(), 3);
        let silent = BufferApp::silent_of(&entry, setup);
        silent.record(0, HAZARD);
        silent.destroy();
        assert_eq!(take_received(), []);
    });
}

static REPORTED: AtomicU32 = AtomicU32::new(0);

unsafe extern "system" fn skip_call(
    flags: vk::DebugReportFlagsEXT,
    _: vk::DebugReportObjectTypeEXT,
    _: u64,
    _: usize,
    number: i32,
    _: *const c_char,
    _: *const c_char,
    _: *mut c_void,
) -> vk::Bool32 {
    if number.cast_unsigned() != 0x5c0e_c5d6 {
        return vk::FALSE;
    }
    assert_eq!(flags, vk::DebugReportFlagsEXT::ERROR);
    REPORTED.fetch_add(1, Ordering::Relaxed);
    vk::TRUE
}

#[test]
fn a_callback_of_debug_report_can_give_a_call_up() {
    let name = "drop_in::a_callback_of_debug_report_can_give_a_call_up";
    child(name, &[("LAVASCOPE_NULL_EXECUTE", "transfer")], || {
        let entry = entry();
        let extensions = [DEBUG_UTILS, c"VK_EXT_debug_report"];
        let app = BufferApp::silent_of(
            &entry,
            Setup { extensions: &extensions, khronos: &[(c"validate_sync", ON)], ..KHRONOS },
        );
        let functions = ash::ext::debug_report::Instance::new(&entry, &app.world.instance);
        let info = vk::DebugReportCallbackCreateInfoEXT::default()
            .flags(vk::DebugReportFlagsEXT::ERROR)
            .pfn_callback(Some(skip_call));
        let (create, destroy) =
            (functions.fp().create_debug_report_callback_ext, functions.fp().destroy_debug_report_callback_ext);
        let mut callback = vk::DebugReportCallbackEXT::null();
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let result = unsafe { create(functions.instance(), &info, std::ptr::null(), &mut callback) };
        assert_eq!(result, vk::Result::SUCCESS);
        app.record(0, HAZARD);
        app.submit(0).expect("what is wrong with it was given up");
        app.wait();
        assert_eq!((REPORTED.load(Ordering::Relaxed), app.word(32)), (1, 1));
        // SAFETY: nobody has the handle afterwards, and no other thread makes calls that could call back (lifetime,
        // owner).
        unsafe { destroy(functions.instance(), callback, std::ptr::null()) };
        app.destroy();
    });
}

/// A callback of another thread's call, in the mode where that is too late: nothing is given up.
#[test]
fn off_thread_nothing_is_given_up() {
    child("drop_in::off_thread_nothing_is_given_up", &[("LAVASCOPE_NULL_EXECUTE", "transfer")], || {
        let entry = entry();
        let app = BufferApp::new(&entry, ASYNC);
        set_callback_result(true);
        app.record(0, HAZARD);
        while take_received().is_empty() {
            app.submit(1).ok();
            app.wait();
        }
        app.submit(0).expect("it is too late for that");
        app.wait();
        assert_eq!(app.word(32), 2);
        set_callback_result(false);
        app.destroy();
    });
}

/// In the call that hands the image over.
#[test]
fn a_hazard_of_a_presentation_is_reported_in_the_present() {
    child("drop_in::a_hazard_of_a_presentation_is_reported_in_the_present", &[], || {
        let entry = entry();
        let extensions = [DEBUG_UTILS, c"VK_KHR_surface", c"VK_EXT_headless_surface"];
        let setup = Setup {
            extensions: &extensions,
            device_extensions: &[c"VK_KHR_swapchain"],
            khronos: &[(c"validate_sync", ON)],
            ..KHRONOS
        };
        let app = BufferApp::of(&entry, setup);
        present_too_early(&entry, &app);
        app.destroy();
    });
}

fn present_too_early(entry: &ash::Entry, app: &BufferApp) {
    let (instance, device) = (&app.world.instance, &app.world.device);
    let headless = ash::ext::headless_surface::Instance::new(entry, instance);
    let surfaces = ash::khr::surface::Instance::new(entry, instance);
    let functions = ash::khr::swapchain::Device::new(instance, device);
    // SAFETY: each object is created, used and destroyed in this order in this block, what structures point to lives in
    // this frame, and only this thread uses the queue and the swapchain (lifetime, owner). The image is presented
    // without a semaphore, in another layout (null driver).
    unsafe {
        let surface = headless.create_headless_surface(&vk::HeadlessSurfaceCreateInfoEXT::default(), None);
        let surface = surface.expect("the null driver makes surfaces");
        let info = vk::SwapchainCreateInfoKHR::default()
            .surface(surface)
            .min_image_count(2)
            .image_format(vk::Format::B8G8R8A8_UNORM)
            .image_extent(vk::Extent2D { width: 16, height: 16 })
            .image_array_layers(1)
            .image_usage(vk::ImageUsageFlags::TRANSFER_DST);
        let swapchain = functions.create_swapchain(&info, None).expect("the null driver makes swapchains");
        let images = functions.get_swapchain_images(swapchain).expect("it has images");
        let fence = device.create_fence(&vk::FenceCreateInfo::default(), None).expect("the null driver makes fences");
        let acquired = functions.acquire_next_image(swapchain, u64::MAX, vk::Semaphore::null(), fence);
        let index = acquired.expect("there is an image").0;
        device.wait_for_fences(&[fence], true, u64::MAX).expect("it is signaled");
        app.begin(0);
        let range =
            vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR).level_count(1).layer_count(1);
        let (commands, color) = (app.commands[0], vk::ClearColorValue::default());
        device.cmd_clear_color_image(commands, images[index as usize], vk::ImageLayout::GENERAL, &color, &[range]);
        app.end(0);
        app.submit(0).expect("the null driver submits");
        assert_eq!(take_received(), []);
        let (swapchains, indices) = ([swapchain], [index]);
        let present = vk::PresentInfoKHR::default().swapchains(&swapchains).image_indices(&indices);
        set_callback_result(true);
        assert_eq!(functions.queue_present(app.world.queue, &present), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        set_callback_result(false);
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!(received_message.name, "SYNC-HAZARD-PRESENT-AFTER-WRITE");
        assert!(
            received_message.text.starts_with("vkQueuePresentKHR(): PRESENT_AFTER_WRITE hazard detected."),
            "{}",
            received_message.text
        );
        app.wait();
        functions.queue_present(app.world.queue, &present).expect("after the wait nothing is wrong with it");
        assert_eq!(take_received(), []);
        device.destroy_fence(fence, None);
        functions.destroy_swapchain(swapchain, None);
        surfaces.destroy_surface(surface, None);
    }
}

#[test]
fn the_feature_switches_it_on() {
    child("drop_in::the_feature_switches_it_on", &[], || {
        let entry = entry();
        let features = [vk::ValidationFeatureEnableEXT::SYNCHRONIZATION_VALIDATION];
        let app = BufferApp::of(&entry, Setup { features: &features, ..KHRONOS });
        app.record(0, HAZARD);
        assert_eq!(take_received().len(), 1);
        app.destroy();
        let app = BufferApp::of(&entry, KHRONOS);
        app.record(0, HAZARD);
        assert_eq!(take_received(), [], "nobody asked for it");
        app.destroy();
    });
}

#[test]
fn filters_and_limits_addressed_to_the_khronos_layer_count() {
    child("drop_in::filters_and_limits_addressed_to_the_khronos_layer_count", &[], || {
        let entry = entry();
        let heard = |more: &[(&'static std::ffi::CStr, LayerSettingValue)]| {
            let settings = [&[(c"validate_sync", ON)], more].concat();
            let app = BufferApp::of(&entry, Setup { khronos: &settings, ..KHRONOS });
            for _ in 0..20 {
                app.record(0, HAZARD);
            }
            app.destroy();
            take_received().len()
        };
        assert_eq!(heard(&[]), 10);
        assert_eq!(heard(&[(c"duplicate_message_limit", LayerSettingValue::Number(3))]), 3);
        assert_eq!(heard(&[(c"enable_message_limit", LayerSettingValue::Bool(vk::FALSE))]), 20);
        assert_eq!(heard(&[(c"message_id_filter", LayerSettingValue::Text(c"SYNC-HAZARD-WRITE-AFTER-WRITE"))]), 0);
        assert_eq!(heard(&[(c"message_id_filter", LayerSettingValue::Text(c"0x5c0ec5d6"))]), 0);
        assert_eq!(heard(&[(c"message_id_filter", LayerSettingValue::Text(c"SYNC-HAZARD-READ-AFTER-WRITE"))]), 10);
    });
}

/// Only hazards inside of one command buffer, if no other validation is requested.
#[test]
fn submissions_are_checked_unless_switched_off() {
    child("drop_in::submissions_are_checked_unless_switched_off", &[], || {
        let entry = entry();
        let heard = |is_on: vk::Bool32| {
            let settings =
                [(c"validate_sync", ON), (c"syncval_submit_time_validation", LayerSettingValue::Bool(is_on))];
            let app = BufferApp::of(&entry, Setup { khronos: &settings, ..KHRONOS });
            app.record(0, HAZARD);
            app.record(1, &[(128, 3)]);
            for _ in 0..3 {
                app.submit(1).expect("the null driver submits");
            }
            app.destroy();
            take_received().len()
        };
        // Once while it is recorded, and twice when it is submitted again.
        assert_eq!((heard(vk::FALSE), heard(vk::TRUE)), (1, 3));
    });
}

#[test]
fn labels_are_a_path_and_accesses_have_their_stage() {
    child("drop_in::labels_are_a_path_and_accesses_have_their_stage", &[], || {
        let entry = entry();
        let settings = [(c"validate_sync", ON), (c"syncval_message_extra_properties", ON)];
        let app = BufferApp::of(&entry, Setup { khronos: &settings, ..KHRONOS });
        app.begin(0);
        for name in [c"Frame", c"Shadows", c"Clear"] {
            app.label(0, Some(name));
        }
        app.fill(0, 0, 1);
        app.label(0, None);
        app.label(0, Some(c"Fill"));
        app.fill(0, 0, 2);
        (0..3).for_each(|_| app.label(0, None));
        app.end(0);
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        let accesses = "VK_ACCESS_2_TRANSFER_WRITE_BIT accesses at VK_PIPELINE_STAGE_2_CLEAR_BIT";
        for part in [
            accesses,
            "vkCmdFillBuffer in Frame::Shadows::Fill",
            "debug_region = Frame::Shadows::Fill",
            "prior_debug_region = Frame::Shadows::Clear",
            "message_type = BufferError",
            "hazard_type = WRITE_AFTER_WRITE",
            "command = vkCmdFillBuffer",
        ] {
            assert!(received_message.text.contains(part), "no `{part}` in\n{}", received_message.text);
        }
        assert!(!received_message.text.contains("submit_index"), "{}", received_message.text);
        app.destroy();
    });
}

#[test]
fn facts_of_a_submission_say_which_it_was() {
    child("drop_in::facts_of_a_submission_say_which_it_was", &[], || {
        let entry = entry();
        let settings = [(c"validate_sync", ON), (c"syncval_message_extra_properties", ON)];
        let app = BufferApp::of(&entry, Setup { khronos: &settings, ..KHRONOS });
        app.record(0, &[(0, 1)]);
        app.submit(0).expect("the null driver submits");
        app.submit(0).expect("the null driver submits");
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        for part in ["message_type = SubmitTimeError", "submit_index = 0", "command_buffer_index = 0"] {
            assert!(received_message.text.contains(part), "no `{part}` in\n{}", received_message.text);
        }
        app.destroy();
    });
}

/// The second of us in the chain passes everything through.
#[test]
fn under_both_names_a_hazard_is_reported_once() {
    child("drop_in::under_both_names_a_hazard_is_reported_once", &[], || {
        let entry = entry();
        for layers in [[LAYER, SECOND_NAME], [SECOND_NAME, LAYER]] {
            let app = BufferApp::of(&entry, Setup { layers: &layers, settings: INLINE, ..KHRONOS });
            app.record(0, HAZARD);
            assert_eq!(take_received().len(), 1);
            app.destroy();
            assert_eq!(take_received(), []);
        }
    });
}

/// The limits that a program sees: descriptor sets, and descriptors by both structures that have them.
fn limits(entry: &ash::Entry, setup: Setup<'_>) -> [u32; 4] {
    let world = setup.world(entry);
    let mut indexing = vk::PhysicalDeviceDescriptorIndexingProperties::default();
    let mut all = vk::PhysicalDeviceVulkan12Properties::default();
    // SAFETY: the physical device is of the live instance, and the chain has two structures of this frame, each once
    // (lifetime).
    let (first, second) = unsafe {
        let physical = world.instance.enumerate_physical_devices().expect("the null driver has a device")[0];
        let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut indexing).push_next(&mut all);
        world.instance.get_physical_device_properties2(physical, &mut properties);
        let second = properties.properties.limits.max_bound_descriptor_sets;
        (world.instance.get_physical_device_properties(physical).limits.max_bound_descriptor_sets, second)
    };
    world.destroy();
    let indexing = indexing.max_update_after_bind_descriptors_in_all_pools;
    [first, second, indexing, all.max_update_after_bind_descriptors_in_all_pools]
}

#[test]
fn one_descriptor_set_can_be_kept_for_the_layer() {
    child("drop_in::one_descriptor_set_can_be_kept_for_the_layer", &[], || {
        let entry = entry();
        let bare = limits(&entry, Setup::BARE);
        assert_eq!(limits(&entry, KHRONOS), bare);
        let want = [bare[0] - 1, bare[1] - 1, bare[2].min(1 << 22), bare[3].min(1 << 22)];
        let features = [vk::ValidationFeatureEnableEXT::GPU_ASSISTED_RESERVE_BINDING_SLOT];
        assert_eq!(limits(&entry, Setup { features: &features, ..KHRONOS }), want);
        // Whether there is a messenger or not.
        let settings = [(c"validate_sync", ON), (c"gpuav_reserve_binding_slot", ON)];
        assert_eq!(limits(&entry, Setup { khronos: &settings, ..KHRONOS }), want);
    });
}
