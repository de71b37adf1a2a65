//! What the layer adds to a call, through the real loader, on several drivers.
//!
//! Five instances live in one process: bare, under the layer with everything off, with a reader that gets every record,
//! and with one that validates, without and with call stacks. Their batches take turns. Each driver has a process of its own, since the loader reads
//! the environment once.

mod setup;

use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr;

use ash::vk;
use lavascope_bench::{Bench, Suite};
use lavascope_test_support::{find_lavapipe, set_driver, write_null_driver_manifest};
use setup::{layer_folder, switch_validation_off, write_file};

/// Set in the processes that measure: the driver's name in the table.
const DRIVER: &str = "LAVASCOPE_BENCH_DRIVER";
const LAYER: &CStr = c"VK_LAYER_LAVASCOPE_inspect";
/// Commands between two resets of a command buffer.
const RECORDED_MAX: u64 = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(driver) = std::env::var(DRIVER) {
        return suite(&driver).main();
    }
    let exe = std::env::current_exe().expect("a program knows where it is");
    let folder = exe.parent().expect("a program lies in a folder");
    let wanted = match &arguments[..] {
        [first, name, ..] if first == "--count" => Some(name.clone()),
        _ => None,
    };
    for (name, manifest) in drivers(folder) {
        if wanted.as_ref().is_some_and(|it| !it.starts_with(&name)) {
            continue;
        }
        let mut command = Command::new(&exe);
        set_driver(command.args(&arguments).env(DRIVER, &name), &manifest);
        command.env("VK_LAYER_PATH", layer_folder(folder, "bench_layer")).env_remove("VK_INSTANCE_LAYERS");
        switch_validation_off(&mut command);
        if wanted.is_some() {
            // Valgrind counts in this process, so the measuring one takes its place.
            use std::os::unix::process::CommandExt;
            panic!("{}", command.exec());
        }
        let status = command.status().expect("the program that runs can be run again");
        assert!(status.success(), "measuring on {name} failed");
    }
}

/// The drivers that are here, with their manifests.
fn drivers(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut drivers = vec![("null".to_owned(), write_null_driver_manifest(folder))];
    let mock = ["/usr/lib/chromium/libVkICD_mock_icd.so"].iter().map(PathBuf::from).find(|it| it.exists());
    let mock = std::env::var_os("LAVASCOPE_BENCH_MOCK_DRIVER").map(PathBuf::from).or(mock);
    match mock {
        Some(library) => {
            let text = lavascope_loader::manifests::driver_manifest(&library.to_string_lossy());
            drivers.push(("mock".to_owned(), write_file(folder, "mock_driver.json", &text)));
        }
        None => eprintln!("no mock driver here (LAVASCOPE_BENCH_MOCK_DRIVER names its library): not measured"),
    }
    drivers.extend(find_lavapipe().map(|it| ("lavapipe".to_owned(), it)));
    drivers
}

/// Under what a program runs.
#[derive(Clone, Copy, PartialEq)]
enum OverheadMode {
    Nothing,
    LayerOff,
    LayerReading,
    Validated,
    /// With the call stacks of commands that can be a part of a finding.
    Backtraced,
}

/// What is measured, in the order of its figures.
#[derive(Clone, Copy)]
enum MeasuredCall {
    Draw,
    BindDescriptorSets,
    Submit,
}

fn suite(driver: &str) -> Suite<'static> {
    let [bare, off, reading, validated, backtraced] = [
        OverheadMode::Nothing,
        OverheadMode::LayerOff,
        OverheadMode::LayerReading,
        OverheadMode::Validated,
        OverheadMode::Backtraced,
    ]
    .map(Program::leaked);
    let mut suite = Suite::default();
    for (what, name) in [
        (MeasuredCall::Draw, "vkCmdDraw"),
        (MeasuredCall::BindDescriptorSets, "vkCmdBindDescriptorSets"),
        (MeasuredCall::Submit, "vkQueueSubmit"),
    ] {
        let programs = [
            (off, "off"),
            (reading, "reading"),
            (validated, "validating"),
            (backtraced, "validating with call stacks"),
        ];
        for (program, label) in programs {
            let limit = match (driver, what, label) {
                ("null", MeasuredCall::Draw | MeasuredCall::BindDescriptorSets, "off") => Some(2.0),
                ("null", MeasuredCall::Draw, "reading") => Some(15.0),
                _ => None,
            };
            suite.add(Bench {
                name: format!("{driver}: {name}, layer {label}"),
                limit,
                run: Box::new(move |times| program.run(what, times)),
                bare: Some(Box::new(move |times| bare.run(what, times))),
            });
        }
    }
    suite
}

/// A device with a command buffer to record into, and the functions as an engine keeps them.
struct Program {
    begin: vk::PFN_vkBeginCommandBuffer,
    end: vk::PFN_vkEndCommandBuffer,
    draw: vk::PFN_vkCmdDraw,
    bind: vk::PFN_vkCmdBindDescriptorSets,
    submit: vk::PFN_vkQueueSubmit,
    wait_idle: vk::PFN_vkQueueWaitIdle,
    queue: vk::Queue,
    command_buffer: vk::CommandBuffer,
    /// Recorded, with nothing in it.
    empty: vk::CommandBuffer,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
}

impl Program {
    fn leaked(under: OverheadMode) -> &'static Program {
        Box::leak(Box::new(Program::new(under).expect("the driver makes what every driver can make")))
    }

    fn new(under: OverheadMode) -> Result<Program, vk::Result> {
        // SAFETY: the initializers of the loader have no preconditions. The structures live until their calls return,
        // each object is made of those before it, and all of them are kept to the end of the process; the queue and
        // family exist on every device.
        unsafe {
            let entry = Box::leak(Box::new(ash::Entry::load().expect("there is a loader")));
            let instance = instance(entry, under)?;
            let physical = instance.enumerate_physical_devices()?[0];
            let priorities = [1.0];
            let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&priorities)];
            let device =
                instance.create_device(physical, &vk::DeviceCreateInfo::default().queue_create_infos(&queues), None)?;
            let pool = device.create_command_pool(
                &vk::CommandPoolCreateInfo::default().flags(vk::CommandPoolCreateFlags::RESET_COMMAND_BUFFER),
                None,
            )?;
            let buffers = device.allocate_command_buffers(
                &vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(2),
            )?;
            device.begin_command_buffer(
                buffers[1],
                &vk::CommandBufferBeginInfo::default().flags(vk::CommandBufferUsageFlags::SIMULTANEOUS_USE),
            )?;
            device.end_command_buffer(buffers[1])?;
            let (layout, set) = descriptors(&device)?;
            let functions = device.fp_v1_0();
            Ok(Program {
                begin: functions.begin_command_buffer,
                end: functions.end_command_buffer,
                draw: functions.cmd_draw,
                bind: functions.cmd_bind_descriptor_sets,
                submit: functions.queue_submit,
                wait_idle: functions.queue_wait_idle,
                queue: device.get_device_queue(0, 0),
                command_buffer: buffers[0],
                empty: buffers[1],
                layout,
                set,
            })
        }
    }

    fn run(&self, what: MeasuredCall, times: u64) {
        match what {
            MeasuredCall::Draw => self.record(times, |command_buffer| {
                // SAFETY: `record` gives a command buffer in the recording state that only this thread uses. It is
                // never submitted, so that no draw happens outside of a render pass.
                unsafe { (self.draw)(command_buffer, 3, 1, 0, 0) }
            }),
            MeasuredCall::BindDescriptorSets => self.record(times, |command_buffer| {
                let (point, set) = (vk::PipelineBindPoint::GRAPHICS, &raw const self.set);
                // SAFETY: `record` gives a command buffer in the recording state that only this thread uses; layout and
                // set are kept to the end, and `set` points to one handle.
                unsafe { (self.bind)(command_buffer, point, self.layout, 0, 1, set, 0, ptr::null()) }
            }),
            MeasuredCall::Submit => self.submit(times),
        }
    }

    fn record(&self, times: u64, command: impl Fn(vk::CommandBuffer)) {
        let mut left = times;
        while left > 0 {
            let run = left.min(RECORDED_MAX);
            // SAFETY: the command buffer is never submitted, so that it is not pending, and its pool lets it be begun
            // again (VUID-vkBeginCommandBuffer-commandBuffer-00050). Only this thread uses it.
            let begun = unsafe { (self.begin)(self.command_buffer, &vk::CommandBufferBeginInfo::default()) };
            assert_eq!(begun, vk::Result::SUCCESS);
            for _ in 0..run {
                command(self.command_buffer);
            }
            // SAFETY: begun above, so that it is in the recording state (VUID-vkEndCommandBuffer-commandBuffer-00059).
            let ended = unsafe { (self.end)(self.command_buffer) };
            assert_eq!(ended, vk::Result::SUCCESS);
            left -= run;
        }
    }

    fn submit(&self, times: u64) {
        let buffers = [self.empty];
        let submit = vk::SubmitInfo::default().command_buffers(&buffers);
        for value in 0..times {
            // SAFETY: only this thread uses the queue; `empty` was recorded for simultaneous use, so that it may be
            // pending already (VUID-vkQueueSubmit-pCommandBuffers-00071), and `submit` lives until the call returns.
            let submitted = unsafe { (self.submit)(self.queue, 1, &submit, vk::Fence::null()) };
            assert_eq!(submitted, vk::Result::SUCCESS);
            if value % 64 == 63 {
                self.wait();
            }
        }
        self.wait();
    }

    fn wait(&self) {
        // SAFETY: a live queue that only this thread uses.
        let waited = unsafe { (self.wait_idle)(self.queue) };
        assert_eq!(waited, vk::Result::SUCCESS);
    }
}

/// An instance, with the layer's settings in its chain.
fn instance(entry: &ash::Entry, under: OverheadMode) -> Result<ash::Instance, vk::Result> {
    let application = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_1);
    let layers: &[*const c_char] = if under == OverheadMode::Nothing { &[] } else { &[LAYER.as_ptr()] };
    let names: &[&'static CStr] = match under {
        OverheadMode::Nothing | OverheadMode::LayerOff => &[],
        OverheadMode::LayerReading => &[c"stats"],
        OverheadMode::Validated => &[c"sync"],
        OverheadMode::Backtraced => &[c"sync", c"backtrace"],
    };
    let value = 1u32.to_ne_bytes();
    let setting = |name: &&'static CStr| vk::LayerSettingEXT {
        value_count: 1,
        ..vk::LayerSettingEXT::default()
            .layer_name(LAYER)
            .setting_name(name)
            .ty(vk::LayerSettingTypeEXT::BOOL32)
            .values(&value)
    };
    let mut settings: Vec<vk::LayerSettingEXT> = names.iter().map(setting).collect();
    let mode = [c"async".as_ptr()];
    if names.contains(&c"sync") {
        settings.push(vk::LayerSettingEXT {
            value_count: 1,
            p_values: (&raw const mode).cast(),
            ..vk::LayerSettingEXT::default()
                .layer_name(LAYER)
                .setting_name(c"sync_mode")
                .ty(vk::LayerSettingTypeEXT::STRING)
        });
    }
    let mut chained = vk::LayerSettingsCreateInfoEXT::default().settings(&settings);
    let info = vk::InstanceCreateInfo::default().application_info(&application).enabled_layer_names(layers);
    // SAFETY: the structures above live until the call returns, and the names of layers end with a zero.
    unsafe { entry.create_instance(&info.push_next(&mut chained), None) }
}

/// A pipeline layout with one uniform buffer, and a set for it.
fn descriptors(device: &ash::Device) -> Result<(vk::PipelineLayout, vk::DescriptorSet), vk::Result> {
    let ty = vk::DescriptorType::UNIFORM_BUFFER;
    let bindings = [vk::DescriptorSetLayoutBinding::default()
        .descriptor_count(1)
        .descriptor_type(ty)
        .stage_flags(vk::ShaderStageFlags::ALL_GRAPHICS)];
    let sizes = [vk::DescriptorPoolSize { ty, descriptor_count: 1 }];
    // SAFETY: the structures live until their calls return, the pool has room for the one set, and all objects are kept
    // to the end of the process.
    unsafe {
        let layouts = [device
            .create_descriptor_set_layout(&vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings), None)?];
        let layout =
            device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default().set_layouts(&layouts), None)?;
        let pool = device
            .create_descriptor_pool(&vk::DescriptorPoolCreateInfo::default().max_sets(1).pool_sizes(&sizes), None)?;
        let info = vk::DescriptorSetAllocateInfo::default().descriptor_pool(pool).set_layouts(&layouts);
        Ok((layout, device.allocate_descriptor_sets(&info)?[0]))
    }
}
