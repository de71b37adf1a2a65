//! Every command that creates something, called by its description with structures that say little but their type.

use lavascope_abi::desc::{CommandLevel, Direction, Field, Layout, Len, Pointee, Pointer, Ty};
use lavascope_abi::*;

use super::test_device::{TestDevice, out, vk};
use crate::capabilities::properties::Limit;
use crate::capabilities::settings::{API_VERSION, Execute};
use crate::instance::entry_point;

/// Calls a command with up to eight parameters of a word each, which is how integers and pointers are passed here.
fn call(command: Command, words: &[u64]) -> i32 {
    assert!(words.len() <= 9, "{}", command.desc().name);
    let mut all = [0; 9];
    all[..words.len()].copy_from_slice(words);
    let [a, b, c, d, e, f, g, h, i] = all;
    type Any = unsafe extern "system" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;
    let function = entry_point(command, Execute::Nothing);
    // SAFETY: in the calling conventions of our targets, parameters that are not floats are passed as words, and a
    // function ignores further ones. The command returns a `VkResult`, which is an `i32`.
    let function = unsafe { std::mem::transmute::<FnPtr, Any>(function) };
    // SAFETY: the words are handles of the test's world, counts of one, null, or addresses of 512 words each, which is
    // more than any structure has, zero but for their type.
    unsafe { function(a, b, c, d, e, f, g, h, i) }
}

/// Memory for what a parameter points to: zeros, and the structure's type.
fn target(layout: Option<&Layout>) -> Vec<u64> {
    let mut words = vec![0; 512];
    if let Some(s_type) = layout.and_then(Layout::s_type) {
        words[0] = u64::from(s_type as u32);
    }
    words
}

/// The handle that a command hands out, if it is one that creates.
fn created(layout: &'static Layout) -> Option<(&'static Field, &'static Pointer)> {
    layout.fields.iter().find_map(|field| match &field.ty {
        Ty::Pointer(pointer) if pointer.direction == Direction::Out => match pointer.to {
            Pointee::Handle(ty) if !ty.is_dispatchable() => Some((field, *pointer)),
            _ => None,
        },
        _ => None,
    })
}

#[test]
fn every_creation_succeeds_with_a_handle() {
    let world = TestDevice::new();
    let mut count = 0;
    for command in Command::ALL {
        let desc = command.desc();
        let is_creation = desc.name.starts_with("vkCreate");
        let Some((out, pointer)) = created(desc.parameters).filter(|_| is_creation) else { continue };
        // Libraries inside structures decide these; they have tests of their own.
        if desc.name == "vkCreatePipelineBinariesKHR" {
            continue;
        }
        let mut memory: Vec<Vec<u64>> = Vec::new();
        let mut words = Vec::new();
        for field in desc.parameters.fields {
            words.push(match (&field.ty, desc.level) {
                (Ty::Handle(HandleType::Instance), _) => world.instance.0,
                (Ty::Handle(HandleType::PhysicalDevice), _) => world.physical.0,
                (Ty::Handle(HandleType::Device), _) => world.device.0,
                (Ty::Pointer(item), _) => {
                    let layout = if let Pointee::Struct(layout) = &item.to { Some(*layout) } else { None };
                    memory.push(target(layout));
                    memory.last_mut().map_or(0, |it| it.as_mut_ptr().expose_provenance() as u64)
                }
                (
                    Ty::Opaque,
                    CommandLevel::Device | CommandLevel::Instance | CommandLevel::PhysicalDevice | CommandLevel::Global,
                ) => 0,
                // Counts of arrays.
                (Ty::U32, _) => 1,
                _ => 0,
            });
        }
        let result = call(*command, &words);
        let at = desc.parameters.fields.iter().position(|it| it.at == out.at).unwrap_or_default();
        // SAFETY: `memory` keeps the words of each pointer alive, and this is the address of one of them.
        let handle = unsafe { std::ptr::with_exposed_provenance::<u64>(words[at] as usize).read() };
        assert_eq!(result, 0, "{}", desc.name);
        assert_ne!(handle, 0, "{} {:?}", desc.name, matches!(pointer.len, Len::Fixed(1)));
        count += 1;
    }
    assert!(count > 70, "{count}");
}

#[test]
fn every_command_has_an_entry_point() {
    for command in Command::ALL {
        assert_ne!(entry_point(*command, Execute::Nothing).0, 0, "{}", command.desc().name);
        assert_ne!(entry_point(*command, Execute::Transfer).0, 0, "{}", command.desc().name);
    }
    let draw = |execute| entry_point(Command::CmdCopyBuffer, execute);
    assert_ne!(draw(Execute::Nothing), draw(Execute::Transfer));
}

#[test]
fn features_are_all_on_and_limits_are_there() {
    let world = TestDevice::new();
    let mut mesh = PhysicalDeviceMeshShaderFeaturesEXT::zeroed();
    let mut ray = PhysicalDeviceRayTracingPipelineFeaturesKHR::zeroed();
    ray.p_next = out(&mut mesh).cast();
    let mut features = PhysicalDeviceFeatures2::zeroed();
    features.p_next = out(&mut ray).cast();
    vk!(FnGetPhysicalDeviceFeatures2(world.instance; world.physical, out(&mut features)));
    assert!(features.features.geometry_shader.is_true() && ray.ray_tracing_pipeline.is_true());
    assert!(mesh.mesh_shader.is_true() && mesh.task_shader.is_true());
    let mut ray = PhysicalDeviceRayTracingPipelinePropertiesKHR::zeroed();
    let mut properties = PhysicalDeviceProperties2::zeroed();
    properties.p_next = out(&mut ray).cast();
    vk!(FnGetPhysicalDeviceProperties2(world.instance; world.physical, out(&mut properties)));
    assert_eq!(properties.properties.api_version, API_VERSION);
    assert_eq!(properties.properties.limits.max_image_dimension2_d, 16384);
    assert_eq!(properties.properties.limits.max_compute_work_group_size, [1024, 1024, 64]);
    assert_eq!(properties.properties.limits.min_texel_offset, -8);
    assert_eq!(properties.properties.limits.point_size_range, [1.0, 2047.9375]);
    assert_eq!((ray.shader_group_handle_size, ray.shader_group_base_alignment), (32, 64));
}

/// Memory for a structure, with its type set.
fn structure(layout: &Layout) -> Vec<u64> {
    let mut words = vec![0; layout.size.div_ceil(8) as usize];
    words[0] = u64::from(layout.s_type_raw as u32);
    words
}

fn number(words: &[u64], at: u32) -> u32 {
    (words[at as usize / 8] >> (at % 8 * 8)) as u32
}

#[test]
fn every_feature_of_every_structure_is_on() {
    let world = TestDevice::new();
    let mut count = 0;
    for layout in STRUCTURES.iter().filter(|it| it.name.contains("Features") && it.s_type().is_some()) {
        let is_ours = layout.name.starts_with("VkPhysicalDevice") && layout.name != "VkPhysicalDeviceFeatures2";
        if !is_ours {
            continue;
        }
        let mut words = structure(layout);
        let mut features = PhysicalDeviceFeatures2::zeroed();
        features.p_next = out(&mut words[0]).cast();
        vk!(FnGetPhysicalDeviceFeatures2(world.instance; world.physical, out(&mut features)));
        for field in layout.fields.iter().filter(|it| matches!(it.ty, Ty::Bool32)) {
            assert_eq!(number(&words, field.at), 1, "{}.{}", layout.name, field.name);
            count += 1;
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn no_limit_is_left_at_zero() {
    let world = TestDevice::new();
    let zero = ["splitBarrierReservedSharedMemory", "cooperativeMatrixWorkgroupScopeReservedSharedMemory"];
    let none = ["numMetrics", "computeCapabilityMinor"];
    let mut count = 0;
    for (name, limits) in crate::generated::limits::LIMITS {
        let Some(layout) = structure_by_name(name).filter(|it| it.s_type().is_some()) else { continue };
        let mut words = structure(layout);
        let mut properties = PhysicalDeviceProperties2::zeroed();
        properties.p_next = out(&mut words[0]).cast();
        vk!(FnGetPhysicalDeviceProperties2(world.instance; world.physical, out(&mut properties)));
        for (member, limit) in *limits {
            let field = layout.fields.iter().find(|it| it.name == *member);
            let has_values = |item: &&Field| match item.ty {
                Ty::Flags(desc) => !desc.values.is_empty(),
                Ty::U32 | Ty::U64 => true,
                _ => false,
            };
            let Some(field) = field.filter(has_values) else { continue };
            let is_limited = matches!(limit, Limit::Max | Limit::Min | Limit::Mask | Limit::Bits);
            if !is_limited || zero.contains(member) || none.contains(member) {
                continue;
            }
            assert_ne!(number(&words, field.at) | number(&words, field.at + field.ty.size() - 4), 0, "{name}.{member}");
            count += 1;
        }
    }
    assert!(count > 300, "{count}");
}
