//! The cost of packing, checking and unpacking a call, with 100,000 live objects.

use std::hint::black_box;

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::*;
use lavascope_bench::{Bench, Suite};
use lavascope_collections::TaggedMap;
use lavascope_marshal::{Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker, fast_pack};
use lavascope_record::check;
use lavascope_record::pack_context::NoPackContext;

const OBJECTS: u64 = 100_000;

/// A full map of the type that the layer uses.
struct Live(TaggedMap);

impl IdResolver for Live {
    #[inline(always)]
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        let id = self.0.get(handle, ty as u8).and_then(|raw| ObjectId::from_raw_typed(raw, ty));
        id.unwrap_or(ObjectId::unknown(ty))
    }
}

impl HandleResolver for Live {
    fn handle(&self, id: ObjectId) -> u64 {
        handle(id.serial())
    }
}

/// Handles as from an allocator: scattered multiples of 64.
fn handle(serial: u64) -> u64 {
    0x7f00_0000_0000 + serial.wrapping_mul(0x9e37_79b1) % (1 << 30) * 64
}

fn live() -> Live {
    let map = TaggedMap::with_capacity(1000);
    for serial in 0..OBJECTS {
        for ty in [HandleType::Image, HandleType::CommandBuffer, HandleType::DescriptorSet, HandleType::PipelineLayout]
        {
            if (ty == HandleType::Image || serial % 8 == 0)
                && let Some(id) = ObjectId::new(ty, serial)
            {
                map.insert(handle(serial) + ty as u64, id.raw());
            }
        }
    }
    Live(map)
}

fn object(ty: HandleType, serial: u64) -> u64 {
    handle(serial) + ty as u64
}

fn draw() -> CmdDrawParams {
    CmdDrawParams {
        command_buffer: CommandBuffer(object(HandleType::CommandBuffer, 16)),
        vertex_count: 3,
        instance_count: 1,
        first_vertex: 0,
        first_instance: 0,
    }
}

fn image_barrier(serial: u64) -> ImageMemoryBarrier2 {
    ImageMemoryBarrier2 {
        src_stage_mask: PipelineStageFlags2::COPY,
        src_access_mask: AccessFlags2::TRANSFER_WRITE,
        dst_stage_mask: PipelineStageFlags2::FRAGMENT_SHADER,
        dst_access_mask: AccessFlags2::SHADER_SAMPLED_READ,
        image: Image(object(HandleType::Image, serial)),
        ..ImageMemoryBarrier2::zeroed()
    }
}

/// A barrier with two images, in C memory with stable addresses.
struct Barrier {
    images: Box<[ImageMemoryBarrier2; 2]>,
    info: Box<DependencyInfo>,
}

impl Barrier {
    fn new(first: u64) -> Barrier {
        let images = Box::new([image_barrier(first), image_barrier(first + 1)]);
        let info = Box::new(DependencyInfo {
            image_memory_barrier_count: 2,
            p_image_memory_barriers: Ptr::to_slice(&images[..]),
            ..DependencyInfo::zeroed()
        });
        Barrier { images, info }
    }

    fn params(&self) -> CmdPipelineBarrier2Params {
        CmdPipelineBarrier2Params {
            command_buffer: CommandBuffer(object(HandleType::CommandBuffer, 16)),
            p_dependency_info: Ptr::to(&self.info),
        }
    }
}

const STREAM_WORDS: usize = 1 << 16;

/// Keeps the buffer in the processor cache, as a buffer that is drained would be.
fn rewind(stream: &mut RecordBuffer) {
    if stream.words().len() > STREAM_WORDS - 1024 {
        stream.clear();
    }
}

fn main() {
    let live = live();
    let mut suite = Suite::default();
    add_packing(&mut suite, &live);
    add_cold(&mut suite, &live);
    add_reading(&mut suite, &live);
    suite.main();
}

fn add_packing<'a>(suite: &mut Suite<'a>, live: &'a Live) {
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let params = draw();
    suite.add(Bench {
        name: "pack vkCmdDraw".into(),
        limit: Some(8.0),
        bare: None,
        run: Box::new(move |times| {
            for call in 0..times {
                rewind(&mut stream);
                // SAFETY: a draw has no pointers. Those of a barrier point into its boxes, with as many elements as it
                // states.
                black_box(unsafe { fast_pack::cmd_draw(&mut stream, live, call, black_box(&params)) });
            }
        }),
    });
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let barrier = Barrier::new(40);
    suite.add(Bench {
        name: "pack vkCmdPipelineBarrier2, 2 images".into(),
        limit: Some(35.0),
        bare: None,
        run: Box::new(move |times| {
            let params = barrier.params();
            for call in 0..times {
                rewind(&mut stream);
                // SAFETY: a draw has no pointers. Those of a barrier point into its boxes, with as many elements as it
                // states.
                black_box(unsafe { fast_pack::cmd_pipeline_barrier2(&mut stream, live, call, black_box(&params)) });
            }
            black_box(&barrier.images);
        }),
    });
    add_walked(suite, live);
}

fn add_walked<'a>(suite: &mut Suite<'a>, live: &'a Live) {
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let params = draw();
    suite.add(Bench {
        name: "walk vkCmdDraw".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            let image = std::ptr::from_ref(&params).cast();
            let mut packer = Packer::new(live, &NoPackContext);
            for call in 0..times {
                rewind(&mut stream);
                // SAFETY: a draw has no pointers.
                black_box(unsafe { packer.pack_parameters(&mut stream, Command::CmdDraw, black_box(image), call) });
            }
        }),
    });
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let barrier = Barrier::new(40);
    suite.add(Bench {
        name: "walk vkCmdPipelineBarrier2, 2 images".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            let params = barrier.params();
            let image = std::ptr::from_ref(&params).cast();
            let mut packer = Packer::new(live, &NoPackContext);
            for call in 0..times {
                rewind(&mut stream);
                // SAFETY: the pointers of the barrier point into boxes that live as long as this closure.
                black_box(unsafe {
                    packer.pack_parameters(&mut stream, Command::CmdPipelineBarrier2, black_box(image), call)
                });
            }
        }),
    });
}

/// Every call uses other objects, so that each look-up misses the processor cache.
fn add_cold<'a>(suite: &mut Suite<'a>, live: &'a Live) {
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    suite.add(Bench {
        name: "pack vkCmdDraw, cold objects".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            for call in 0..times {
                rewind(&mut stream);
                let serial = call.wrapping_mul(7919) % (OBJECTS / 8) * 8;
                let params = CmdDrawParams {
                    command_buffer: CommandBuffer(object(HandleType::CommandBuffer, serial)),
                    ..draw()
                };
                // SAFETY: a draw has no pointers. Those of a barrier point into its boxes, with as many elements as it
                // states.
                black_box(unsafe { fast_pack::cmd_draw(&mut stream, live, call, black_box(&params)) });
            }
        }),
    });
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let barriers: Vec<Barrier> = (0..OBJECTS / 16).map(|it| Barrier::new(it * 7919 % (OBJECTS - 1))).collect();
    suite.add(Bench {
        name: "pack vkCmdPipelineBarrier2, 2 images, cold objects".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            for call in 0..times {
                rewind(&mut stream);
                let params = barriers[call as usize % barriers.len()].params();
                // SAFETY: a draw has no pointers. Those of a barrier point into its boxes, with as many elements as it
                // states.
                black_box(unsafe { fast_pack::cmd_pipeline_barrier2(&mut stream, live, call, black_box(&params)) });
            }
        }),
    });
}

fn add_reading<'a>(suite: &mut Suite<'a>, live: &'a Live) {
    let mut stream = RecordBuffer::with_capacity(STREAM_WORDS);
    let barrier = Barrier::new(40);
    let params = barrier.params();
    // SAFETY: the pointers of `barrier` point into its boxes, with as many elements as it states.
    let words = unsafe { fast_pack::cmd_pipeline_barrier2(&mut stream, live, 1, &params) };
    let words = words.unwrap_or_default().to_vec();
    let copy = words.clone();
    suite.add(Bench {
        name: "check vkCmdPipelineBarrier2, 2 images".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            for _ in 0..times {
                black_box(check(black_box(&copy))).ok();
            }
        }),
    });
    suite.add(Bench {
        name: "unpack vkCmdPipelineBarrier2, 2 images".into(),
        limit: None,
        bare: None,
        run: Box::new(move |times| {
            let unpacker = Unpacker { handles: live, purpose: UnpackPurpose::Driver };
            let mut arena = Arena::default();
            let Ok(record) = check(&words) else { return };
            for call in 0..times {
                black_box(unpacker.unpack(black_box(record), &mut arena)).ok();
                if call % 64 == 63 {
                    arena.clear();
                }
            }
        }),
    });
}
