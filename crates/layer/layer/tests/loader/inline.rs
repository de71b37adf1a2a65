//! Inline validation: a hazard is reported in the call that causes it, and a callback can cancel that call.

use ash::vk;

use crate::child::child;
use crate::hazards::{BufferApp, CODE, INLINE, set_callback_result, take_received};
use crate::world::{World, entry};

/// The null driver executes fills.
const EXECUTE: [(&str, &str); 1] = [("LAVASCOPE_NULL_EXECUTE", "transfer")];
const REPORT: [(&str, &str); 1] = [("LAVASCOPE_REPORT", "{folder}/report")];

#[test]
fn a_hazard_inside_of_a_command_buffer_is_reported_in_the_command() {
    let name = "inline::a_hazard_inside_of_a_command_buffer_is_reported_in_the_command";
    let Some(outcome) = child(name, &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.begin(0);
        app.fill(0, 0, 1);
        assert_eq!(take_received(), []);
        app.fill(0, 32, 2);
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!((received_message.thread, received_message.name.as_str()), (std::thread::current().id(), CODE));
        assert!(
            received_message.text.starts_with("vkCmdFillBuffer(): WRITE_AFTER_WRITE hazard detected."),
            "{}",
            received_message.text
        );
        assert!(
            received_message.text.contains("command 2 of VkCommandBuffer#0: vkCmdFillBuffer"),
            "{}",
            received_message.text
        );
        assert!(
            received_message.text.contains("Fix (verified)") && !received_message.text.contains("submit"),
            "{}",
            received_message.text
        );
        app.barrier(0);
        app.fill(0, 32, 3);
        app.end(0);
        app.submit(0).expect("the null driver submits");
        app.wait();
        assert_eq!(take_received(), [], "it was told");
        app.destroy();
    }) else {
        return;
    };
    assert!(!outcome.stderr.contains("SYNC-HAZARD"), "what was heard is not logged: {}", outcome.stderr);
}

/// A secondary command buffer is checked where it is executed, after the commands of the primary one.
#[test]
fn a_hazard_of_a_secondary_command_buffer_is_reported_in_the_execute() {
    child("inline::a_hazard_of_a_secondary_command_buffer_is_reported_in_the_execute", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        let [bare, guarded] = app.secondaries();
        app.record_secondary(bare, |it| app.fill_in(it, 0, 1));
        app.record_secondary(guarded, |command_buffer| {
            app.barrier_in(command_buffer);
            app.fill_in(command_buffer, 0, 2);
        });
        app.begin(0);
        app.fill(0, 0, 3);
        app.execute(0, guarded);
        assert_eq!(take_received(), [], "its own barrier comes first");
        app.execute(0, bare);
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!(received_message.name, CODE);
        assert!(
            received_message.text.contains("executed by command 3 of VkCommandBuffer#0"),
            "{}",
            received_message.text
        );
        set_callback_result(true);
        app.execute(0, bare);
        set_callback_result(false);
        assert_eq!(take_received().len(), 1);
        app.barrier(0);
        app.fill(0, 0, 4);
        app.end(0);
        app.submit(0).expect("the null driver submits");
        app.wait();
        assert_eq!(take_received(), [], "it was told");
        app.destroy();
    });
}

#[test]
fn a_hazard_between_subpasses_is_reported_in_the_next_subpass() {
    child("inline::a_hazard_between_subpasses_is_reported_in_the_next_subpass", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        let (pass, framebuffer) = two_subpasses(&app.world);
        let area = vk::Rect2D { extent: vk::Extent2D { width: 16, height: 16 }, ..vk::Rect2D::default() };
        let info = vk::RenderPassBeginInfo::default().render_pass(pass).framebuffer(framebuffer).render_area(area);
        app.begin(0);
        let (device, contents) = (&app.world.device, vk::SubpassContents::INLINE);
        // SAFETY: recorded here, with live objects (lifetime, owner).
        unsafe {
            device.cmd_begin_render_pass(app.commands[0], &info, contents);
            assert_eq!(take_received(), []);
            device.cmd_next_subpass(app.commands[0], contents);
            let heard = take_received();
            assert!(heard.iter().any(|it| it.text.starts_with("vkCmdNextSubpass():")), "{heard:#?}");
            device.cmd_end_render_pass(app.commands[0]);
        }
        app.end(0);
        take_received();
        app.submit(0).expect("the null driver submits");
        app.wait();
        assert_eq!(take_received(), [], "it was told");
        app.destroy();
    });
}

/// A render pass whose subpasses use one image in two layouts, without a dependency.
fn two_subpasses(world: &World) -> (vk::RenderPass, vk::Framebuffer) {
    let format = vk::Format::R8G8B8A8_UNORM;
    let attachment = vk::AttachmentDescription::default()
        .format(format)
        .samples(vk::SampleCountFlags::TYPE_1)
        .load_op(vk::AttachmentLoadOp::CLEAR)
        .final_layout(vk::ImageLayout::GENERAL);
    let layouts = [vk::ImageLayout::COLOR_ATTACHMENT_OPTIMAL, vk::ImageLayout::GENERAL];
    let colors = layouts.map(|layout| [vk::AttachmentReference { attachment: 0, layout }]);
    let subpasses = [0, 1].map(|it| vk::SubpassDescription::default().color_attachments(&colors[it]));
    let attachments = [attachment];
    let info = vk::RenderPassCreateInfo::default().attachments(&attachments).subpasses(&subpasses);
    let image = vk::ImageCreateInfo::default()
        .image_type(vk::ImageType::TYPE_2D)
        .format(format)
        .extent(vk::Extent3D { width: 16, height: 16, depth: 1 })
        .mip_levels(1)
        .array_layers(1)
        .samples(vk::SampleCountFlags::TYPE_1)
        .usage(vk::ImageUsageFlags::COLOR_ATTACHMENT);
    let device = &world.device;
    // SAFETY: each object is made of those before it, what structures point to lives in this frame, and the memory is
    // larger than the image (lifetime). The caller leaves all of it to the device (null driver).
    unsafe {
        let pass = device.create_render_pass(&info, None).expect("the null driver makes render passes");
        let image = device.create_image(&image, None).expect("the null driver makes images");
        let size = vk::MemoryAllocateInfo::default().allocation_size(1 << 16);
        let memory = device.allocate_memory(&size, None).expect("the null driver has memory");
        device.bind_image_memory(image, memory, 0).expect("it can be bound");
        let range = vk::ImageSubresourceRange::default().aspect_mask(vk::ImageAspectFlags::COLOR);
        let view = vk::ImageViewCreateInfo::default()
            .image(image)
            .view_type(vk::ImageViewType::TYPE_2D)
            .format(format)
            .subresource_range(range.level_count(1).layer_count(1));
        let views = [device.create_image_view(&view, None).expect("the null driver makes views")];
        let info = vk::FramebufferCreateInfo::default().render_pass(pass).attachments(&views);
        let framebuffer = device.create_framebuffer(&info.width(16).height(16).layers(1), None);
        (pass, framebuffer.expect("the null driver makes framebuffers"))
    }
}

#[test]
fn a_hazard_between_submissions_is_reported_in_the_submit() {
    child("inline::a_hazard_between_submissions_is_reported_in_the_submit", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.record(0, &[(0, 1)]);
        app.record(1, &[(0, 2)]);
        app.submit(0).expect("the null driver submits");
        assert_eq!(take_received(), []);
        app.submit(1).expect("a callback that does not mind changes nothing");
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert!(received_message.text.contains("submit 2 on VkQueue#0"), "{}", received_message.text);
        app.destroy();
    });
}

#[test]
fn a_command_that_is_given_up_leaves_no_trace() {
    child("inline::a_command_that_is_given_up_leaves_no_trace", &EXECUTE, || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.begin(0);
        app.fill(0, 0, 1);
        set_callback_result(true);
        app.fill(0, 32, 2);
        assert_eq!(take_received().len(), 1);
        // It would conflict with the cancelled command, but not with the earlier ones.
        app.fill(0, 64, 3);
        assert_eq!(take_received(), []);
        // And the command that was given up conflicts again, with the same.
        app.fill(0, 32, 2);
        let heard = take_received();
        assert_eq!(heard.len(), 2, "with both of the others: {heard:#?}");
        assert!(heard[0].text.contains("command 3 of VkCommandBuffer#0"), "{}", heard[0].text);
        app.end(0);
        app.submit(0).expect("nothing is wrong with it");
        app.wait();
        assert_eq!(take_received(), []);
        assert_eq!([0, 32, 60, 64, 96].map(|it| app.word(it)), [1, 1, 1, 3, 3], "the driver never saw it");
        set_callback_result(false);
        app.destroy();
    });
}

#[test]
fn a_submission_that_is_given_up_leaves_no_trace() {
    child("inline::a_submission_that_is_given_up_leaves_no_trace", &EXECUTE, || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.record(0, &[(0, 1)]);
        app.record(1, &[(32, 2)]);
        app.submit(0).expect("the null driver submits");
        set_callback_result(true);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        let fence = unsafe { app.world.device.create_fence(&vk::FenceCreateInfo::default(), None) };
        let fence = fence.expect("the null driver makes fences");
        assert_eq!(app.submit_with(1, fence), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        assert_eq!(take_received().len(), 1);
        // SAFETY: a live fence, whose submission the layer refused, so that no queue has it
        // (VUID-vkDestroyFence-fence-01120; lifetime).
        unsafe {
            assert_eq!(app.world.device.get_fence_status(fence), Ok(false), "the driver never saw it");
            app.world.device.destroy_fence(fence, None);
        }
        // Conflicts with the cancelled command only.
        app.record(0, &[(64, 3)]);
        app.submit(0).expect("nothing is wrong with it");
        assert_eq!(take_received(), []);
        // Conflicts with both of the others.
        assert_eq!(app.submit(1), Err(vk::Result::ERROR_VALIDATION_FAILED_EXT));
        let heard = take_received();
        assert_eq!(heard.len(), 2, "{heard:#?}");
        app.wait();
        app.submit(1).expect("after the wait nothing is wrong with it");
        app.wait();
        assert_eq!(take_received(), []);
        set_callback_result(false);
        assert_eq!([0, 32, 64, 92, 96].map(|it| app.word(it)), [1, 2, 2, 2, 3]);
        app.destroy();
    });
}

#[test]
fn work_that_waits_at_the_end_of_its_device_is_reported_then() {
    child("inline::work_that_waits_at_the_end_of_its_device_is_reported_then", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.record(0, &[(0, 1)]);
        app.submit_after(0, 3);
        app.submit(0).expect("the null driver submits");
        assert_eq!(take_received(), []);
        app.destroy_device();
        let heard = take_received();
        let [received_message] = &heard[..] else { panic!("one message, not {heard:#?}") };
        assert_eq!(received_message.name, "SYNC-NEVER-EXECUTED");
        assert!(received_message.text.contains("VkSemaphore#0 with the value 3"), "{}", received_message.text);
        assert!(received_message.text.contains("One submission behind it waits with it"), "{}", received_message.text);
        app.destroy_instance();
        assert_eq!(take_received(), []);
    });
}

/// The signal reports the hazards of the work that waited for it.
#[test]
fn a_hazard_of_work_that_waited_is_reported_in_the_signal() {
    child("inline::a_hazard_of_work_that_waited_is_reported_in_the_signal", &[], || {
        let entry = entry();
        let app = BufferApp::new(&entry, INLINE);
        app.record(0, &[(0, 1)]);
        app.record(1, &[(0, 2)]);
        let semaphore = app.submit_after(0, 3);
        app.submit(1).expect("the null driver submits");
        assert_eq!(take_received(), []);
        let info = vk::SemaphoreSignalInfo::default().semaphore(semaphore).value(3);
        // SAFETY: the structure lives until the call returns, and its parent is alive (lifetime).
        unsafe { app.world.device.signal_semaphore(&info) }.expect("the null driver signals");
        assert_eq!(take_received().len(), 1);
        app.destroy_device();
        assert_eq!(take_received(), []);
        app.destroy_instance();
    });
}

/// Without a messenger, messages go to the log, and no call is cancelled.
#[test]
fn the_log_gives_nothing_up() {
    let name = "inline::the_log_gives_nothing_up";
    let Some(outcome) = child(name, &EXECUTE, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, INLINE);
        app.record(0, &[(0, 1), (32, 2)]);
        app.submit(0).expect("the null driver submits");
        app.submit(0).expect("the null driver submits");
        app.wait();
        assert_eq!([0, 32].map(|it| app.word(it)), [1, 2]);
        app.destroy();
    }) else {
        return;
    };
    // Inside of the command buffer once, and between its two submissions.
    for (function, count) in [("vkCmdFillBuffer", 1), ("vkQueueSubmit", 3)] {
        let logged = format!("lavascope: error: [ {CODE} | MessageID = 0x5c0ec5d6 ] {function}()");
        assert_eq!(outcome.stderr.matches(&logged).count(), count, "{}", outcome.stderr);
    }
}

/// The report has each of many findings with its severity and its first line. A note reports once that explanations are
/// cut.
#[test]
fn what_is_cut_of_many_findings_is_reported_once() {
    let Some(outcome) = child("inline::what_is_cut_of_many_findings_is_reported_once", &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, INLINE);
        app.record(0, &[(0, 1); 206]);
        app.destroy();
    }) else {
        return;
    };
    let problems = outcome.of_kind("problem");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0]["text"], "5 findings without a proposed fix: 200 findings before have been given one");
    assert_eq!(problems[0]["severity"], "note");
    // Others only add the command after the access, which is recorded later.
    let mut findings = outcome.of_kind("finding");
    findings.retain(|it| it["occurrences"].as_u64().is_some_and(|it| it > 0));
    assert_eq!(findings.len(), 205);
    let parts = |at: usize| (&findings[at]["severity"], &findings[at]["title"]);
    assert_eq!(parts(0), parts(204));
    assert_eq!(findings[204]["severity"], "error");
}

#[test]
fn the_report_has_what_is_found_inline() {
    let Some(outcome) = child("inline::the_report_has_what_is_found_inline", &REPORT, || {
        let entry = entry();
        let app = BufferApp::silent(&entry, INLINE);
        app.record(0, &[(0, 1)]);
        for _ in 0..101 {
            app.submit(0).expect("the null driver submits");
        }
        println!("1 passed");
        std::process::exit(0);
    }) else {
        return;
    };
    let counts: Vec<u64> = outcome.of_kind("finding").iter().filter_map(|it| it["occurrences"].as_u64()).collect();
    assert_eq!(counts.iter().sum::<u64>(), 100, "{counts:?}");
    assert!(outcome.of_kind("bug").is_empty());
}
