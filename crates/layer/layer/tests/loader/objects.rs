//! Objects come and go, handles are used again, and ids are not.

use std::collections::HashSet;

use ash::vk;

use crate::child::child;
use crate::world::{Setup, World, entry};

const PRINT: [(&str, &str); 1] = [("LAVASCOPE_PRINT", "{folder}/print.txt")];

/// The ids that one command gave out, in their order: what stands in a line of its second half.
fn made_by<'a>(printed: &'a str, command: &str, ty: &str) -> Vec<&'a str> {
    let (mut ids, mut is_inside) = (Vec::new(), false);
    let head = format!("{command} ->");
    for line in printed.lines() {
        if line.starts_with("vk") {
            is_inside = line == head;
        } else if is_inside {
            let words = line.split(|it: char| !it.is_ascii_alphanumeric() && it != '#');
            ids.extend(words.filter(|it| it.strip_prefix(ty).is_some_and(|it| it.starts_with('#'))));
        }
    }
    ids
}

fn assert_never_repeated(printed: &str, command: &str, ty: &str, count: usize) {
    let ids = made_by(printed, command, ty);
    assert_eq!(ids.len(), count, "{command}");
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), count, "{command}");
}

#[test]
fn ten_thousand_buffers_have_ten_thousand_ids() {
    let Some(outcome) = child("objects::ten_thousand_buffers_have_ten_thousand_ids", &PRINT, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        let mut alive = Vec::new();
        for value in 0..10_000 {
            alive.push(world.create_buffer());
            if value % 3 != 0 {
                world.destroy_buffer(alive.swap_remove(value % alive.len()));
            }
        }
        alive.into_iter().for_each(|it| world.destroy_buffer(it));
        world.destroy();
    }) else {
        return;
    };
    let printed = outcome.file("print.txt");
    assert!(!printed.contains("#unknown"));
    assert_never_repeated(&printed, "vkCreateBuffer", "VkBuffer", 10_000);
}

#[test]
fn what_comes_out_of_pools_ends_with_them() {
    let Some(outcome) = child("objects::what_comes_out_of_pools_ends_with_them", &PRINT, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        for _ in 0..20 {
            use_command_pool(&world);
            use_descriptor_pool(&world);
        }
        world.destroy();
    }) else {
        return;
    };
    let printed = outcome.file("print.txt");
    assert!(!printed.contains("#unknown"), "{}", unknown_in(&printed));
    assert_never_repeated(&printed, "vkAllocateCommandBuffers", "VkCommandBuffer", 20 * 10);
    assert_never_repeated(&printed, "vkAllocateDescriptorSets", "VkDescriptorSet", 20 * 4 * 8);
}

/// Where it is, for a test that fails.
fn unknown_in(printed: &str) -> String {
    let lines: Vec<&str> = printed.lines().collect();
    let at = lines.iter().position(|it| it.contains("#unknown")).unwrap_or(0);
    lines[at.saturating_sub(10)..(at + 3).min(lines.len())].join("\n")
}

/// Ten command buffers: some freed, all reset, the rest destroyed with the pool.
fn use_command_pool(world: &World) {
    let pool = world.command_pool();
    let buffers = world.command_buffers(pool, 6);
    for buffer in &buffers {
        world.record(*buffer, 2);
        world.submit(*buffer);
    }
    // SAFETY: `submit` waited for all command buffers, which are of this pool, and those that are freed are used no
    // more (lifetime, owner). The count of zero breaks a rule, and then nothing is read (null driver).
    unsafe {
        let reset = world.device.reset_command_buffer(buffers[5], vk::CommandBufferResetFlags::RELEASE_RESOURCES);
        reset.expect("the null driver resets");
        world.device.free_command_buffers(pool, &buffers[..3]);
        // Not allowed by the specification, and no reason to forget the pool.
        let free = world.device.fp_v1_0().free_command_buffers;
        free(world.device.handle(), pool, 0, buffers.as_ptr());
        world.device.reset_command_pool(pool, vk::CommandPoolResetFlags::empty()).expect("the null driver resets");
    }
    for command_buffer in world.command_buffers(pool, 4) {
        world.record(command_buffer, 1);
    }
    world.record(buffers[3], 1);
    // SAFETY: nothing of the pool is pending, and nobody has the handles afterwards (lifetime, owner).
    unsafe { world.device.destroy_command_pool(pool, None) };
}

/// Four times eight sets: reset in between, some freed, the rest destroyed with the pool.
fn use_descriptor_pool(world: &World) {
    let device = &world.device;
    let ty = vk::DescriptorType::UNIFORM_BUFFER;
    let sizes = [vk::DescriptorPoolSize { ty, descriptor_count: 64 }];
    let bindings = [vk::DescriptorSetLayoutBinding::default().descriptor_count(1).descriptor_type(ty)];
    let buffer = world.create_buffer();
    // SAFETY: each object is created, used and destroyed in this order in this block or by the caller, what structures
    // point to lives in this frame, and only this thread uses the queue and the pool; work is waited for before its
    // objects end (lifetime, owner).
    unsafe {
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let layout = device.create_descriptor_set_layout(&info, None).expect("the null driver makes layouts");
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(64).pool_sizes(&sizes);
        let info = info.flags(vk::DescriptorPoolCreateFlags::FREE_DESCRIPTOR_SET);
        let pool = device.create_descriptor_pool(&info, None).expect("the null driver makes pools");
        for _ in 0..4 {
            let layouts = [layout; 8];
            let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
            let sets = device.allocate_descriptor_sets(&info).expect("the null driver makes sets");
            device.free_descriptor_sets(pool, &sets[..2]).expect("the null driver frees sets");
            let infos = [vk::DescriptorBufferInfo::default().buffer(buffer).range(16)];
            let write = vk::WriteDescriptorSet::default().dst_set(sets[7]).descriptor_type(ty).buffer_info(&infos);
            device.update_descriptor_sets(&[write], &[]);
            let flags = vk::DescriptorPoolResetFlags::empty();
            device.reset_descriptor_pool(pool, flags).expect("the null driver resets");
        }
        device.destroy_descriptor_pool(pool, None);
        device.destroy_descriptor_set_layout(layout, None);
    }
    world.destroy_buffer(buffer);
}

#[test]
fn what_a_pipeline_is_made_of_keeps_its_names() {
    let Some(outcome) = child("objects::what_a_pipeline_is_made_of_keeps_its_names", &PRINT, || {
        let entry = entry();
        let world = Setup::OFF.world(&entry);
        (0..3).for_each(|_| use_pipeline(&world));
        world.destroy();
    }) else {
        return;
    };
    let printed = outcome.file("print.txt");
    for ty in ["VkPipelineLayout", "VkShaderModule", "VkPipeline"] {
        assert!(printed.contains(&format!("{ty}#2")), "{ty}");
        assert!(!printed.contains(&format!("{ty}#3")), "{ty} has more names than there are objects");
    }
}

/// A compute pipeline, whose layout and shader the create info names again in what the call gives back.
fn use_pipeline(world: &World) {
    let device = &world.device;
    let code = [0x0723_0203, 0x0001_0000, 0, 1, 0];
    // SAFETY: each object is created, used and destroyed in this order in this block, and what structures point to
    // lives in this frame (lifetime). The code is a header alone (null driver).
    unsafe {
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        let module = device.create_shader_module(&info, None).expect("the null driver makes modules");
        let info = vk::PipelineLayoutCreateInfo::default();
        let layout = device.create_pipeline_layout(&info, None).expect("the null driver makes layouts");
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        let made = device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
        let pipelines = made.expect("the null driver makes pipelines");
        pipelines.iter().for_each(|it| device.destroy_pipeline(*it, None));
        device.destroy_pipeline_layout(layout, None);
        device.destroy_shader_module(module, None);
    }
}

#[test]
fn memory_does_not_grow_with_what_is_gone() {
    let name = "objects::memory_does_not_grow_with_what_is_gone";
    let Some(outcome) = child(name, &[("LAVASCOPE_REPORT", "{folder}/report")], || {
        let entry = entry();
        let world = Setup::STATS.world(&entry);
        world.create_and_destroy_buffers(20_000);
        (0..40).for_each(|_| use_command_pool(&world));
        let before = resident_kib();
        world.create_and_destroy_buffers(100_000);
        (0..200).for_each(|_| use_command_pool(&world));
        let grown = resident_kib().saturating_sub(before);
        world.destroy();
        // A byte for each of those calls would be little; a record or an object of each would be 20 MiB and more.
        assert!(grown < 12 << 10, "{grown} KiB more");
    }) else {
        return;
    };
    assert_eq!(outcome.stats().of("vkCreateBuffer"), 120_000);
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).expect("Linux says it");
    line.trim().trim_end_matches(" kB").parse().expect("it is a number")
}
