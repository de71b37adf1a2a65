//! Records with one known defect: the error has the right type, and names item and field.

mod common;

use common::SimHandles;
use lavascope_abi::*;
use lavascope_marshal::{Arena, HandleResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker};
use lavascope_record::walk::WalkPass;
use lavascope_record::{CheckError, RecordFault, check};
use lavascope_sim::SyntheticObjects;

/// Words of a barrier with two buffer barriers: header 2, parameters 2, dependency info 8, barriers 2 * 10.
const PARAMETERS: usize = 2;
const INFO: usize = 4;
const BARRIERS: usize = 12;

fn barrier() -> Vec<u64> {
    let barriers = [BufferMemoryBarrier2::zeroed(), BufferMemoryBarrier2::zeroed()];
    let info = DependencyInfo {
        buffer_memory_barrier_count: 2,
        p_buffer_memory_barriers: Ptr::to_slice(&barriers),
        ..DependencyInfo::zeroed()
    };
    let params = CmdPipelineBarrier2Params { command_buffer: CommandBuffer(0), p_dependency_info: Ptr::to(&info) };
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&SimHandles, &SyntheticObjects);
    // SAFETY: the parameters point to one `DependencyInfo` and that to two barriers, all of them local.
    unsafe { packer.pack_parameters(&mut stream, Command::CmdPipelineBarrier2, std::ptr::from_ref(&params).cast(), 1) }
        .to_vec()
}

/// The error after one word is changed.
fn error(at: usize, value: u64) -> CheckError {
    let mut words = barrier();
    assert!(check(&words).is_ok());
    words[at] = value;
    match check(&words) {
        Ok(_) => panic!("word {at} as {value:#x} is accepted"),
        Err(error) => error,
    }
}

#[test]
fn a_truncated_record_is_named_as_such() {
    let words = barrier();
    for end in 0..words.len() {
        assert_eq!(check(&words[..end]).err().map(|it| it.fault), Some(RecordFault::Truncated), "{end} words");
    }
}

#[test]
fn an_offset_past_the_end_names_structure_and_byte() {
    let error = error(INFO + 5, 8 * 1000);
    assert_eq!(
        (error.item, error.at, error.fault),
        ("VkDependencyInfo", (INFO as u64 + 5) * 8, RecordFault::WrongOffset)
    );
    assert_eq!(
        error.to_string(),
        "VkDependencyInfo: byte 72 of the record: a pointer is not null, a mark or the next block's place"
    );
}

#[test]
fn a_cycle_cannot_be_expressed() {
    // The chain of the dependency info points to the dependency info.
    assert_eq!(error(INFO + 1, INFO as u64 * 8).fault, RecordFault::WrongOffset);
    // The parameters point to themselves.
    assert_eq!(error(PARAMETERS + 1, PARAMETERS as u64 * 8).fault, RecordFault::WrongOffset);
    // The chain of a barrier points back to the first barrier.
    assert_eq!(error(BARRIERS + 1, BARRIERS as u64 * 8).fault, RecordFault::WrongOffset);
}

#[test]
fn a_count_that_overflows_is_named() {
    let count_and_padding = u64::from(u32::MAX);
    let error = error(INFO + 4, count_and_padding);
    assert_eq!((error.item, error.fault), ("VkDependencyInfo", RecordFault::CountOverflow));
}

#[test]
fn a_count_that_is_a_little_too_large_reaches_past_the_end() {
    assert_eq!(error(INFO + 4, 3).fault, RecordFault::PastEnd);
}

#[test]
fn a_count_that_is_too_small_leaves_bytes() {
    assert_eq!(error(INFO + 4, 1).fault, RecordFault::TrailingBytes);
}

#[test]
fn dirty_padding_and_foreign_handles_are_refused() {
    assert_eq!(error(INFO + 4, 2 | 1 << 32).fault, RecordFault::DirtyPadding);
    let image = ObjectId::new(HandleType::Image, 1).map_or(0, ObjectId::raw);
    assert_eq!(error(PARAMETERS, image).fault, RecordFault::WrongHandle);
}

/// `from_trusted` makes records of unchecked words. Unpacking them may panic, but reads nothing after their end.
#[test]
fn a_count_that_was_never_checked_stops_unpacking() {
    struct Same;
    impl HandleResolver for Same {
        fn handle(&self, id: ObjectId) -> u64 {
            id.raw()
        }
    }
    let unpack = |words: &[u64]| {
        let unpacker = Unpacker { handles: &Same, purpose: UnpackPurpose::Driver };
        let layout = Command::CmdDrawMultiEXT.desc().parameters;
        unpacker.unpack_image(bytes_of_slice(words), layout, WalkPass::Enter, &mut Arena::default()).is_ok()
    };
    let infos = [[MultiDrawInfoEXT::zeroed(); 2]; 2];
    let params = CmdDrawMultiEXTParams {
        draw_count: 2,
        p_vertex_info: Ptr::to(&infos[0][0]),
        stride: size_of_val(&infos[0]) as u32,
        ..CmdDrawMultiEXTParams::zeroed()
    };
    let (mut stream, mut packer) = (RecordBuffer::default(), Packer::new(&SimHandles, &SyntheticObjects));
    let image = std::ptr::from_ref(&params).cast();
    // SAFETY: the parameters point to two elements with one between them, all of them local.
    let mut words = unsafe { packer.pack_parameters(&mut stream, Command::CmdDrawMultiEXT, image, 1) }.to_vec();
    assert!(unpack(&words));
    let count = &mut words[PARAMETERS + 1];
    assert_eq!(*count, 2);
    *count = 3;
    assert!(std::panic::catch_unwind(|| unpack(&words)).is_err(), "the third element is behind the record");
}
