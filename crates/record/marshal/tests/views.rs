//! Reading a packed call: typed fields, arrays, strings, chains, and the differences between two calls.

mod common;

use std::ffi::CStr;

use common::SimHandles;
use lavascope_abi::*;
use lavascope_marshal::{Packer, RecordBuffer, outputs_image};
use lavascope_record::compare::{Difference, compare};
use lavascope_record::{Call, Outcome, Record, Sink, Tee, check};
use lavascope_sim::SyntheticObjects;

fn record<'s, T: Structure>(stream: &'s mut RecordBuffer, command: Command, params: &T) -> Record<'s> {
    assert!(std::ptr::eq(command.desc().parameters, T::layout()), "the parameters are of another command");
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    // SAFETY: the parameters belong to this command, and their targets are alive in the caller.
    match check(unsafe { packer.pack_parameters(stream, command, std::ptr::from_ref(params).cast(), 1) }) {
        Ok(record) => record,
        Err(error) => panic!("{error}"),
    }
}

fn buffer_barrier(size: u64) -> BufferMemoryBarrier2 {
    BufferMemoryBarrier2 {
        src_stage_mask: PipelineStageFlags2::COPY,
        dst_access_mask: AccessFlags2::SHADER_READ,
        buffer: Buffer(SyntheticObjects::handle_of(HandleType::Buffer, 5)),
        size,
        ..BufferMemoryBarrier2::zeroed()
    }
}

#[test]
fn arrays_of_structures_are_seen_with_their_ids() {
    let barriers = [buffer_barrier(64), buffer_barrier(128)];
    let info = DependencyInfo {
        buffer_memory_barrier_count: 2,
        p_buffer_memory_barriers: Ptr::to_slice(&barriers),
        ..DependencyInfo::zeroed()
    };
    let params = CmdPipelineBarrier2Params { command_buffer: CommandBuffer(0), p_dependency_info: Ptr::to(&info) };
    let mut stream = RecordBuffer::default();
    let Some(Call::CmdPipelineBarrier2(call)) = Call::of(record(&mut stream, Command::CmdPipelineBarrier2, &params))
    else {
        panic!("not a barrier")
    };
    assert_eq!(call.command_buffer, CommandBuffer(0));
    let Some(info) = call.p_dependency_info() else { panic!("no dependency info") };
    assert!(info.p_image_memory_barriers().is_empty());
    let sizes: Vec<u64> = info.p_buffer_memory_barriers().iter().map(|it| it.size).collect();
    assert_eq!(sizes, [64, 128]);
    let first = info.p_buffer_memory_barriers().get(0).map(|it| it.buffer.0);
    assert_eq!(first, ObjectId::new(HandleType::Buffer, 5).map(ObjectId::raw));
}

#[test]
fn texts_and_chains_are_seen() {
    let name = c"lava";
    let names = [Ptr::<u8>::new(c"VK_A".as_ptr().expose_provenance() as u64), Ptr::NULL];
    let flags = ValidationFlagsEXT { disabled_validation_check_count: 0, ..ValidationFlagsEXT::zeroed() };
    // A structure that is newer than the registry, between two known ones.
    let future = [0x7fff_1234_u64, Ptr::to(&flags).0];
    let application = ApplicationInfo {
        p_application_name: Ptr::new(name.as_ptr().expose_provenance() as u64),
        api_version: 7,
        ..ApplicationInfo::zeroed()
    };
    let info = InstanceCreateInfo {
        p_next: Ptr::new(future.as_ptr().expose_provenance() as u64),
        p_application_info: Ptr::to(&application),
        enabled_extension_count: 2,
        pp_enabled_extension_names: Ptr::to_slice(&names).cast(),
        ..InstanceCreateInfo::zeroed()
    };
    let params =
        CreateInstanceParams { p_create_info: Ptr::to(&info), p_allocator: Ptr::NULL, p_instance: Ptr::PRESENT };
    let mut stream = RecordBuffer::default();
    let record = record(&mut stream, Command::CreateInstance, &params);
    assert!(record.omissions().has(lavascope_record::Omissions::UNKNOWN_STRUCTURES));
    let Some(Call::CreateInstance(call)) = Call::of(record) else { panic!("not an instance") };
    let Some(info) = call.p_create_info() else { panic!("no create info") };
    let application = info.p_application_info();
    assert_eq!(application.and_then(|it| it.p_application_name()), Some(name));
    let texts: Vec<Option<&CStr>> = info.pp_enabled_extension_names().collect();
    assert_eq!(texts, [Some(c"VK_A"), None]);
    let chained: Vec<&str> = info.chain().map(|it| it.layout.name).collect();
    assert_eq!(chained, ["VkValidationFlagsEXT"]);
    assert!(info.chained::<ValidationFlagsEXT>().is_some());
    assert!(info.chained::<DebugUtilsMessengerCreateInfoEXT>().is_none());
}

#[test]
fn outputs_stand_alone() {
    let info = CommandBufferAllocateInfo { command_buffer_count: 2, ..CommandBufferAllocateInfo::zeroed() };
    let buffers = [3, 4].map(|it| CommandBuffer(SyntheticObjects::handle_of(HandleType::CommandBuffer, it)));
    let params = AllocateCommandBuffersParams {
        device: Device(SyntheticObjects::handle_of(HandleType::Device, 1)),
        p_allocate_info: Ptr::to(&info),
        p_command_buffers: Ptr::to_slice(&buffers),
    };
    let (mut image, mut stream) = (Vec::new(), RecordBuffer::default());
    let desc = Command::AllocateCommandBuffers.desc();
    // SAFETY: the parameters belong to this command, and point to values of this frame, as after a successful call.
    assert!(unsafe { outputs_image(desc, std::ptr::from_ref(&params).cast(), 0, &mut image) });
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    // SAFETY: the image was just gathered from parameters that are alive.
    let words = unsafe { packer.pack_outputs(&mut stream, Command::AllocateCommandBuffers, image.as_ptr().cast(), 1) };
    let Ok(record) = check(words.unwrap_or_default()) else { panic!("not a record") };
    let Some(Outcome::AllocateCommandBuffers(outcome)) = Outcome::of(record) else { panic!("another outcome") };
    assert_eq!(outcome.result, Result::SUCCESS);
    let serials = outcome.p_command_buffers().iter().filter_map(|it| ObjectId::from_raw(it.0)).map(ObjectId::serial);
    assert_eq!(serials.collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn capacities_of_outputs_go_into_the_call() {
    let memory = [0xcc_u8; 64];
    let ranges = [HostAddressRangeEXT { address: Ptr::to_slice(&memory), size: 64 }];
    let images = [Image(SyntheticObjects::handle_of(HandleType::Image, 2))];
    let params = GetImageOpaqueCaptureDataEXTParams {
        device: Device(0),
        image_count: 1,
        p_images: Ptr::to_slice(&images),
        p_datas: Ptr::to_slice(&ranges),
    };
    let mut stream = RecordBuffer::default();
    let text = lavascope_record::print::print(record(&mut stream, Command::GetImageOpaqueCaptureDataEXT, &params));
    assert!(text.contains("address = present\n") && text.contains("size = 64\n"), "{text}");
}

#[test]
fn differences_are_named_by_their_path() {
    let params = |size: u64, info: &mut BufferCreateInfo| {
        info.size = size;
        CreateBufferParams {
            device: Device(0),
            p_create_info: Ptr::to(info),
            p_allocator: Ptr::NULL,
            p_buffer: Ptr::PRESENT,
        }
    };
    let (mut left, mut right) = (BufferCreateInfo::zeroed(), BufferCreateInfo::zeroed());
    let (left_params, right_params) = (params(64, &mut left), params(65, &mut right));
    let (mut one, mut two) = (RecordBuffer::default(), RecordBuffer::default());
    let left = record(&mut one, Command::CreateBuffer, &left_params);
    let right = record(&mut two, Command::CreateBuffer, &right_params);
    let difference = |path: &str, left: &str, right: &str| Difference {
        path: path.to_owned(),
        left: Some(left.to_owned()),
        right: Some(right.to_owned()),
    };
    assert_eq!(compare(left, right), [difference("pCreateInfo.size", "64", "65")]);
    assert_eq!(compare(left, left), []);
}

/// Counts the objects that it gets.
#[derive(Default)]
struct Counter(usize, usize);

impl Sink for Counter {
    fn enter(&mut self, _record: Record<'_>) {
        self.0 += 1;
    }

    fn leave(&mut self, _record: Record<'_>) {
        self.1 += 1;
    }
}

#[test]
fn a_tee_feeds_both_sinks() {
    let params =
        CmdDispatchParams { command_buffer: CommandBuffer(0), group_count_x: 1, group_count_y: 2, group_count_z: 3 };
    let mut stream = RecordBuffer::default();
    let record = record(&mut stream, Command::CmdDispatch, &params);
    let mut tee = Tee(Counter::default(), Counter::default());
    tee.enter(record);
    tee.leave(record);
    assert_eq!(((tee.0.0, tee.0.1), (tee.1.0, tee.1.1)), ((1, 1), (1, 1)));
}
