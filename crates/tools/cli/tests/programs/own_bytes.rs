//! `replay` of a program that puts bytes of the driver's own into memory: on a device with others, those are there.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use lavascope_abi::ObjectId;
use lavascope_record::{HostWrite, Outcome, RecordPhase, check};
use lavascope_test_support::set_driver;
use serde_json::{Value, json};

use crate::bad_input::compiled;
use crate::common::{output, text};
use crate::hostile::read_from;
use crate::test_environment::{TestEnvironment, succeed};

/// Of each buffer of the program.
const SIZE: usize = 1024;

/// What a trace has of the driver's own, and all that was written into memory.
#[derive(Default)]
struct TraceContents {
    /// Two handles of shader groups, two descriptors, an address inside of a buffer; in the order of the calls.
    own: Vec<Vec<u8>>,
    addresses: Vec<u64>,
    memories: BTreeMap<ObjectId, Vec<u8>>,
}

impl TraceContents {
    fn read(path: &Path) -> TraceContents {
        let mut all = TraceContents::default();
        for piece in read_from(path) {
            if let Some(written) = HostWrite::parse(&piece.words) {
                all.write(&written);
            } else if piece.head().kind == RecordPhase::Leave as u8 {
                let record = check(&piece.words).expect("it is whole");
                match Outcome::of(record) {
                    Some(Outcome::GetRayTracingShaderGroupHandlesKHR(outputs)) => {
                        all.own.extend(outputs.p_data().chunks(32).map(<[u8]>::to_vec));
                    }
                    Some(Outcome::GetDescriptorEXT(outputs)) => all.own.push(outputs.p_descriptor().to_vec()),
                    Some(Outcome::GetBufferDeviceAddress(outputs)) => all.addresses.push(outputs.result),
                    _ => {}
                }
            }
        }
        // Bytes that were never another than zero need not be written.
        all.memories.values_mut().for_each(|it| it.resize(SIZE, 0));
        all.own.push((all.addresses[4] + 64).to_le_bytes().to_vec());
        all
    }

    fn write(&mut self, written: &HostWrite<'_>) {
        let memory = self.memories.entry(written.memory()).or_default();
        for (offset, bytes) in written.runs() {
            let end = offset as usize + bytes.len();
            memory.resize(memory.len().max(end), 0);
            memory[offset as usize..end].copy_from_slice(bytes);
        }
    }

    /// Memory with the bytes of another device, and how many there are.
    fn moved(&self, memory: &[u8], other: &TraceContents) -> (Vec<u8>, usize) {
        let (mut bytes, mut count, mut at) = (memory.to_vec(), 0, 0);
        while at < bytes.len() {
            match self.own.iter().zip(&other.own).find(|it| bytes[at..].starts_with(it.0)) {
                Some((there, here)) => {
                    bytes[at..at + here.len()].copy_from_slice(here);
                    (count, at) = (count + 1, at + there.len());
                }
                None => at += 8,
            }
        }
        (bytes, count)
    }
}

/// As a device of some kind, whose copies are real.
fn with_device_salt(command: &mut Command, salt: &str) {
    command.env("LAVASCOPE_NULL_SALT", salt).env("LAVASCOPE_NULL_EXECUTE", "transfer");
}

fn captured(stage: &TestEnvironment) {
    let program = compiled(stage, "own_bytes.c");
    let mut command = stage.lavascope();
    command.args(["capture", "--results", "-o", "trace.lava", "--"]).arg(program);
    set_driver(&mut command, stage.null_driver());
    with_device_salt(&mut command, "1");
    succeed(&mut command);
}

#[test]
fn bytes_of_the_driver_are_those_of_the_device_that_replays() {
    let stage = TestEnvironment::new("replay-own-bytes");
    captured(&stage);
    let there = TraceContents::read(&stage.folder.join("trace.lava"));
    for (round, options) in [&["--threads", "1"][..], &[]].into_iter().enumerate() {
        let file = format!("again-{round}.lava");
        let mut command = stage.lavascope();
        command.args(["replay", "--null", "--json", "--verify", "--recapture", &file, "trace.lava"]).args(options);
        command.env("LAVASCOPE_CAPTURE_RESULTS", "1");
        with_device_salt(&mut command, "2");
        let result = succeed(&mut command);
        let result: Value = serde_json::from_slice(&result.stdout).expect("JSON");
        assert_eq!(result["different_bytes"].as_u64(), Some(0), "{result:#}");
        assert!(result["equal_bytes"].as_u64() > Some(0), "{result:#}");
        let here = TraceContents::read(&stage.folder.join(file));
        assert_eq!((there.own.len(), here.own.len()), (5, 5));
        assert!(there.own.iter().zip(&here.own).all(|it| it.0 != it.1), "all of it is another here");
        let mut count = 0;
        for (id, memory) in &there.memories {
            let (want, moved) = there.moved(memory, &here);
            assert_eq!(here.memories.get(id), Some(&want), "{id}");
            count += moved;
        }
        // What the host wrote, and what the device made of it.
        assert_eq!((there.memories.len(), count), (6, 10));
    }
}

#[test]
fn descriptors_of_another_size_are_refused_with_their_call() {
    let stage = TestEnvironment::new("replay-own-sizes");
    captured(&stage);
    let sizes = json!({ "storageBufferDescriptorSize": 16, "robustStorageBufferDescriptorSize": 16 });
    let all = json!({
        "extensions": {
            "VK_KHR_acceleration_structure": 1,
            "VK_KHR_deferred_host_operations": 1,
            "VK_KHR_ray_tracing_pipeline": 1,
            "VK_EXT_descriptor_buffer": 1,
        },
        "features": {
            "VkPhysicalDeviceVulkan12Features": { "bufferDeviceAddress": true },
            "VkPhysicalDeviceRayTracingPipelineFeaturesKHR": { "rayTracingPipeline": true },
            "VkPhysicalDeviceDescriptorBufferFeaturesEXT": { "descriptorBuffer": true },
        },
        "properties": { "VkPhysicalDeviceDescriptorBufferPropertiesEXT": sizes },
    });
    let profile = stage.folder.join("profile.json");
    std::fs::write(&profile, json!({ "capabilities": { "all": all } }).to_string()).expect("it can be written");
    let expected = "vkGetDescriptorEXT: descriptors of this type have another size on this device";
    // A plan knows it. Without one it is the call that tells: the device has the name of that of the trace.
    for (options, code) in [(&["--dry-run"][..], 1), (&[], 2)] {
        let mut command = stage.lavascope();
        command.args(["replay", "--null", "trace.lava"]).args(options).env("LAVASCOPE_NULL_PROFILE", &profile);
        with_device_salt(&mut command, "1");
        let result = output(&mut command);
        let said = text(&[result.stdout, result.stderr].concat());
        assert!(result.status.code() == Some(code) && said.contains(expected), "{:?}: {said}", result.status);
    }
}
