//! An instruction that uses several descriptors: a report belongs to the one that is wrong.

mod common;

use ash::vk;
use common::{
    compile, instrumented,
    vulkan::{BoundBinding, Dispatch, Gpu},
};
use lavascope_instrument::{Guard, InstrumentOptions, RecordedFault, RootLocation};

const SOURCE: &str = "
    #version 460
    layout(set = 0, binding = 0) uniform texture2D images;
    layout(set = 0, binding = 1) uniform sampler samplers;
    layout(set = 0, binding = 2) buffer Result { vec4 result[]; };
    layout(local_size_x = 1) in;
    void main() { result[0] = textureLod(sampler2D(images, samplers), vec2(0.5), 0.0); }
";

/// The image at binding 0 and the sampler at binding 1 are used by one instruction.
#[test]
fn an_unwritten_sampler_is_reported_as_itself() {
    let gpu = Gpu::swiftshader();
    let words = compile(SOURCE, "comp", "vulkan1.3");
    let bound = |binding, kind, is_written: bool| BoundBinding {
        binding,
        kind,
        elements: vec![is_written.then(|| (vec![0; 64], 1))],
    };
    for (wrong, immediate) in [(0, 0..0), (1, 0..0), (0, 0..8), (1, 0..8)] {
        let dispatch = Dispatch {
            bound: vec![
                bound(0, vk::DescriptorType::SAMPLED_IMAGE, wrong != 0),
                bound(1, vk::DescriptorType::SAMPLER, wrong != 1),
                BoundBinding::storage(2, vec![0; 16]),
            ],
            groups: 1,
            ..Dispatch::default()
        };
        let options = InstrumentOptions {
            guard: Guard::Branch,
            immediate: immediate.collect(),
            ..InstrumentOptions::new(RootLocation::Descriptor { set: gpu.last_set })
        };
        let made = instrumented(&words, &options);
        let outcome = gpu.run_checked(&made, options.root, &dispatch);
        let [record] = &outcome.records[..] else { panic!("{:?}", outcome.records) };
        assert_eq!(record.fault, RecordedFault::Uninitialized { index: 0 });
        let site = made.site_of(record).expect("a site");
        assert_eq!(site.binding, Some((0, wrong)), "{:?}", made.sites);
    }
}
