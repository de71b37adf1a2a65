//! Shaders of the stages of a draw that access more than is bound.

use crate::faults::bound_pipeline::DrawShaders;
use ash::{ext, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, Shader, scope, shader};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{BoundPipeline, DYNAMIC, RENDERING, ShaderResource};
use crate::faults::commands::draws::picture;
use crate::faults::context::{FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    vertex: "bounds-vertex", "a vertex shader reads behind the end of a storage buffer.",
    linked: "bounds-linked", "a vertex shader in a part of a pipeline reads behind the end of a storage buffer.",
    geometry: "bounds-geometry", "a geometry shader reads behind the end of a storage buffer.",
    tessellation: "bounds-tessellation", "both stages of tessellation read behind the ends of storage buffers.",
    mesh: "bounds-mesh", "a task and a mesh shader read behind the ends of storage buffers.",
    discard: "bounds-discard", "a fragment shader reads behind the end of a storage buffer, and discards right then.",
    sampler_index: "bounds-sampler-index", "an index is as large as the array of pictures that it chooses from.",
    sampler_never: "bounds-sampler-never", "a picture that is chosen out of an array without a size was never written.",
}

/// The two triangles of the picture.
const CORNERS: [f32; 12] = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0];
const GREEN: Shader = shader!("green.frag");
const ALL_GRAPHICS: BarrierScope =
    BarrierScope { stages: vk::PipelineStageFlags::ALL_GRAPHICS, access: vk::AccessFlags::SHADER_READ };

fn storage(lab: &FaultContext, name: &str, bytes: u64) -> Result<Buffer, Failure> {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    lab.buffer(name, bytes, usage, MemoryPlacement::Device)
}

/// Draws two triangles whose corners are in a storage buffer: all of them, or half.
fn corners(lab: &FaultContext, shaders: DrawShaders<'_>, more: &[(Buffer, Vec<u32>)]) -> Result<(), Failure> {
    let make = |bound: &[ShaderResource]| BoundPipeline::of_shaders(lab, DYNAMIC, shaders, bound);
    corners_of(lab, more, make, |program, commands| program.draw(lab, commands))
}

fn corners_of(
    lab: &FaultContext,
    more: &[(Buffer, Vec<u32>)],
    make: impl FnOnce(&[ShaderResource]) -> Result<BoundPipeline, Failure>,
    draw: impl Fn(&BoundPipeline, vk::CommandBuffer),
) -> Result<(), Failure> {
    let count = lab.planted_or_fixed(6, 12);
    let corners = storage(lab, "corners", count as u64 * 4)?;
    let others: Vec<[Buffer; 1]> = more.iter().map(|it| [it.0]).collect();
    let own = [corners];
    let bound: Vec<ShaderResource> = [ShaderResource::Storage(&own)]
        .into_iter()
        .chain(others.iter().map(|it| ShaderResource::Storage(it)))
        .collect();
    let program = make(&bound)?;
    let write = |commands| {
        let words: Vec<u32> = CORNERS[..count].iter().map(|it| it.to_bits()).collect();
        lab.update(commands, &corners, &words);
        more.iter().for_each(|it| lab.update(commands, &it.0, &it.1));
        lab.memory_barrier(commands, scope::COPY_WRITE, ALL_GRAPHICS);
    };
    picture(lab, (scope::COPY_WRITE, ALL_GRAPHICS), write, |commands| draw(&program, commands))
}

fn vertex(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    corners(&lab, DrawShaders { vertex: shader!("corners.vert"), middle: &[], fragment: GREEN }, &[])
}

fn linked(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::GraphicsPipelineLibrary];
    let extensions = &[ash::khr::pipeline_library::NAME, ash::ext::graphics_pipeline_library::NAME];
    let lab = FaultContext::new(options, &Needs { features, extensions, ..Needs::NOTHING })?;
    let shaders = DrawShaders { vertex: shader!("corners.vert"), middle: &[], fragment: GREEN };
    let make = |bound: &[ShaderResource]| BoundPipeline::linked(&lab, DYNAMIC, shaders, bound);
    corners_of(&lab, &[], make, |program, commands| program.draw(&lab, commands))
}

fn geometry(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::GeometryShader];
    let lab = FaultContext::new(options, &Needs { features, ..Needs::NOTHING })?;
    corners(
        &lab,
        DrawShaders { vertex: shader!("point.vert"), middle: &[shader!("corners.geom")], fragment: GREEN },
        &[],
    )
}

fn tessellation(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::DynamicRendering, Feature::TessellationShader];
    let lab = FaultContext::new(options, &Needs { features, ..Needs::NOTHING })?;
    let middle = [shader!("corners.tesc"), shader!("corners.tese")];
    let count = lab.planted_or_fixed(1, 2);
    let scales = storage(&lab, "scales", count as u64 * 4)?;
    corners(
        &lab,
        DrawShaders { vertex: shader!("point.vert"), middle: &middle, fragment: GREEN },
        &[(scales, vec![1f32.to_bits(); count])],
    )
}

fn mesh(options: &SampleOptions) -> Result<(), Failure> {
    let features = &[Feature::MeshShader, Feature::TaskShader, Feature::DynamicRendering];
    let lab = FaultContext::new(options, &Needs { features, extensions: &[ext::mesh_shader::NAME], ..Needs::NOTHING })?;
    let count = lab.planted_or_fixed(1, 2);
    let scales = storage(&lab, "scales", count as u64 * 4)?;
    let middle = [shader!("corners.mesh")];
    let shaders = DrawShaders { vertex: shader!("corners.task"), middle: &middle, fragment: GREEN };
    let make = |bound: &[ShaderResource]| BoundPipeline::of_shaders(&lab, DYNAMIC, shaders, bound);
    let meshes = ext::mesh_shader::Device::new(&lab.instance.handle, &lab.device);
    corners_of(&lab, &[(scales, vec![1f32.to_bits(); count])], make, |program, commands| {
        program.bind(&lab, commands, &[]);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe { meshes.cmd_draw_mesh_tasks(commands, 1, 1, 1) };
    })
}

fn discard(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &RENDERING)?;
    let count = lab.planted_or_fixed(WORDS as u64 / 2, WORDS as u64);
    let paint = storage(&lab, "paint", count * 4)?;
    let program =
        BoundPipeline::graphics(&lab, DYNAMIC, shader!("discard.frag"), &[ShaderResource::Storage(&[paint])])?;
    let write = |commands| {
        lab.fill_buffer(commands, &paint, (0, count * 4), 1);
        lab.memory_barrier(commands, scope::COPY_WRITE, ALL_GRAPHICS);
    };
    picture(&lab, (scope::COPY_WRITE, ALL_GRAPHICS), write, |commands| program.draw(&lab, commands))
}

const PICTURES: Needs = Needs {
    features: &[
        Feature::DynamicRendering,
        Feature::DescriptorBindingPartiallyBound,
        Feature::RuntimeDescriptorArray,
        Feature::ShaderSampledImageArrayDynamicIndexing,
        Feature::ShaderSampledImageArrayNonUniformIndexing,
    ],
    ..Needs::NOTHING
};

/// Draws with a picture out of six, and one out of those of four that were written.
fn pictures(lab: &FaultContext, choices: [u32; 2], written: u32) -> Result<(), Failure> {
    let [green] = lab.color_images(["green"])?;
    let choice = storage(lab, "choice", SIZE)?;
    let bound = [
        ShaderResource::Pictures(&green, 6, 6),
        ShaderResource::Storage(&[choice]),
        ShaderResource::Pictures(&green, written, 4),
    ];
    let program = BoundPipeline::graphics(lab, DYNAMIC, shader!("many.frag"), &bound)?;
    let write = |commands| {
        lab.clear(commands, &green);
        lab.update(commands, &choice, &choices);
        lab.memory_barrier(commands, scope::COPY_WRITE, ALL_GRAPHICS);
    };
    picture(lab, (scope::COPY_WRITE, ALL_GRAPHICS), write, |commands| program.draw(lab, commands))
}

fn sampler_index(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &PICTURES)?;
    pictures(&lab, [lab.planted_or_fixed(6, 5), 0], 4)
}

fn sampler_never(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &PICTURES)?;
    pictures(&lab, [5, 1], lab.planted_or_fixed(1, 2))
}
