//! `vkGetInstanceProcAddr` and `vkGetDeviceProcAddr` give what they would give without us.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};

use ash::vk;
use lavascope_abi::COMMAND_NAMES;

use crate::child::child;
use crate::world::{Setup, World, entry};

/// Names that no registry has.
const MADE_UP: [&str; 4] = ["vkFooEXT", "vkCmdDrawFromTheFuture", "", "CreateInstance"];

/// The commands that an instance and its device have, by name.
fn found(entry: &ash::Entry, world: &World) -> [BTreeSet<&'static str>; 2] {
    let names = || COMMAND_NAMES.iter().map(|it| it.0).chain(MADE_UP);
    let c_name = |it: &str| CString::new(it).expect("a name has no zero");
    let (instance, device) = (world.instance.handle(), world.device.handle());
    // SAFETY: the instance is alive, and the name ends with a zero and lives until the call returns (lifetime).
    let has = |it: &&str| unsafe { entry.get_instance_proc_addr(instance, c_name(it).as_ptr()) }.is_some();
    let get = world.instance.fp_v1_0().get_device_proc_addr;
    // SAFETY: the device is alive, and the name ends with a zero and lives until the call returns (lifetime).
    let device_has = |it: &&str| unsafe { get(device, c_name(it).as_ptr()) }.is_some();
    [names().filter(has).collect(), names().filter(device_has).collect()]
}

/// Compares an instance under us with one without us, made with the same extensions.
fn compare(extensions: &[&CStr], device_extensions: &[&CStr]) {
    let entry = entry();
    let [bare, off, stats] = [Setup::BARE, Setup::OFF, Setup::STATS].map(|setup| {
        let world = Setup { extensions, device_extensions, ..setup }.world(&entry);
        let found = found(&entry, &world);
        world.destroy();
        found
    });
    assert!(bare[0].contains("vkCreateDevice") && bare[1].contains("vkCmdDraw"));
    assert!(MADE_UP.iter().all(|it| !bare[0].contains(it)));
    for (found, with) in [(off, "switched off"), (stats, "that counts")] {
        for (found, (bare, level)) in found.iter().zip(bare.iter().zip(["instance", "device"])) {
            let [more, less]: [Vec<_>; 2] = [found.difference(bare).collect(), bare.difference(found).collect()];
            assert!(more.is_empty() && less.is_empty(), "{level}, with a layer {with}: {more:?} more, {less:?} less");
        }
    }
}

fn names(properties: &[vk::ExtensionProperties]) -> Vec<CString> {
    let name = |it: &vk::ExtensionProperties| it.extension_name_as_c_str().expect("a name").to_owned();
    properties.iter().map(name).collect()
}

#[test]
fn without_extensions_there_are_the_same_commands() {
    child("proc_addr::without_extensions_there_are_the_same_commands", &[], || compare(&[], &[]));
}

#[test]
fn with_all_extensions_there_are_the_same_commands() {
    child("proc_addr::with_all_extensions_there_are_the_same_commands", &[], || {
        let entry = entry();
        let world = Setup::BARE.world(&entry);
        // SAFETY: the world's instance is alive, and the physical device is of it (lifetime).
        let (instance, device) = unsafe {
            let physical = world.instance.enumerate_physical_devices().expect("the null driver has a device")[0];
            let device = world.instance.enumerate_device_extension_properties(physical).expect("it lists them");
            (names(&entry.enumerate_instance_extension_properties(None).expect("it lists them")), names(&device))
        };
        world.destroy();
        assert!(instance.len() > 5 && device.len() > 200, "{} and {}", instance.len(), device.len());
        let [instance, device]: [Vec<&CStr>; 2] = [&instance, &device].map(|it| it.iter().map(|it| &**it).collect());
        compare(&instance, &device);
    });
}

#[test]
fn some_commands_need_no_instance() {
    child("proc_addr::some_commands_need_no_instance", &[("VK_INSTANCE_LAYERS", "VK_LAYER_LAVASCOPE_inspect")], || {
        let entry = entry();
        // SAFETY: `vkGetInstanceProcAddr` takes a null instance for global commands; the name ends with a zero.
        let has = |it: &CStr| unsafe { entry.get_instance_proc_addr(vk::Instance::null(), it.as_ptr()) }.is_some();
        for name in [
            c"vkCreateInstance",
            c"vkEnumerateInstanceVersion",
            c"vkEnumerateInstanceLayerProperties",
            c"vkEnumerateInstanceExtensionProperties",
        ] {
            assert!(has(name), "{name:?}");
        }
        for name in [c"vkCreateDevice", c"vkDestroyInstance", c"vkCmdDraw", c"vkFooEXT"] {
            assert!(!has(name), "{name:?}");
        }
    });
}
