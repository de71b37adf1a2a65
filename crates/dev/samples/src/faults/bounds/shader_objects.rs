//! Shader objects that access more than is bound: they are bound one by one, instead of pipelines.

use ash::{ext, vk};

use crate::arguments::SampleOptions;
use crate::common::{BarrierScope, Buffer, Feature, MemoryPlacement, Needs, Shader, scope, shader, words_of_bytes};
use crate::failure::Failure;
use crate::faults::bound_pipeline::{SCREEN, ShaderResource, described_set};
use crate::faults::commands::draws::{GREEN_FLOATS, picture};
use crate::faults::context::{EXTENT, FaultContext, SIZE, WORDS};
use crate::faults::faults;

faults! {
    compute: "bounds-object", "a shader object reads behind the end of a storage buffer.",
    set: "bounds-object-constants", "a shader object reads behind a buffer; it has all push constants that there may be.",
    full: "bounds-object-full", "a shader object reads behind a buffer; it has all push constants and all sets.",
    many: "bounds-object-many", "six reads of each invocation of a shader object are behind a buffer.",
    linked: "bounds-object-linked", "a vertex shader that is linked to a fragment shader reads behind a storage buffer.",
    apart: "bounds-object-apart", "a vertex shader that is drawn with two fragment shaders reads behind a storage buffer.",
    uniform: "bounds-object-uniform", "a fragment shader object reads more than a uniform buffer has.",
    binary: "bounds-object-binary", "a shader object, of which a binary is taken, reads behind a storage buffer.",
    observed: "observed-object", "two dispatches of shader objects write parts of a buffer that overlap; where stands in memory.",
}

const NEEDS: Needs = Needs {
    features: &[Feature::ShaderObject, Feature::DynamicRendering],
    extensions: &[ext::shader_object::NAME],
    ..Needs::NOTHING
};
const COMPUTE: vk::ShaderStageFlags = vk::ShaderStageFlags::COMPUTE;

/// How much of the limits a layout uses besides what its shaders need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LayoutSpace {
    Free,
    NoConstants,
    Full,
}

/// Shader objects, and what they use.
struct BoundShaderObjects<'a> {
    lab: &'a FaultContext<'a>,
    functions: ext::shader_object::Device,
    shaders: Vec<(vk::ShaderStageFlags, vk::ShaderEXT)>,
    layout: vk::PipelineLayout,
    set: vk::DescriptorSet,
}

impl<'a> BoundShaderObjects<'a> {
    fn new(
        lab: &'a FaultContext,
        shaders: &[Shader],
        flags: vk::ShaderCreateFlagsEXT,
        bound: &[ShaderResource],
        room: LayoutSpace,
    ) -> Result<BoundShaderObjects<'a>, Failure> {
        // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
        let limits = unsafe { lab.instance.handle.get_physical_device_properties(lab.physical_device) }.limits;
        let (set_layout, set) = described_set(lab, bound)?;
        let mut sets = vec![set_layout];
        if room == LayoutSpace::Full {
            let empty = lab.set_layout_of(&vk::DescriptorSetLayoutCreateInfo::default())?;
            sets.resize(limits.max_bound_descriptor_sets as usize, empty);
        }
        let range = vk::PushConstantRange { stage_flags: COMPUTE, offset: 0, size: limits.max_push_constants_size };
        let range = (room != LayoutSpace::Free).then_some(range);
        let layout = lab.pipeline_layout(&sets, range)?;
        let functions = ext::shader_object::Device::new(&lab.instance.handle, &lab.device);
        let info = |shader: &Shader| {
            let next = match shader.stage() {
                vk::ShaderStageFlags::VERTEX => vk::ShaderStageFlags::FRAGMENT,
                _ => vk::ShaderStageFlags::empty(),
            };
            let info = vk::ShaderCreateInfoEXT::default().flags(flags).stage(shader.stage()).next_stage(next);
            info.code_type(vk::ShaderCodeTypeEXT::SPIRV)
                .name(c"main")
                .set_layouts(&sets)
                .push_constant_ranges(range.as_slice())
        };
        let codes: Vec<Vec<u32>> = shaders.iter().map(|it| words_of_bytes(it.code)).collect();
        let infos: Vec<_> = shaders.iter().zip(&codes).map(|(it, code)| with_code(info(it), code)).collect();
        // SAFETY: `infos` live until the call returns, and the feature is enabled (lifetime, feature).
        let made = unsafe { functions.create_shaders(&infos, None) }.map_err(|it| it.1)?;
        let made = shaders.iter().zip(made).map(|(it, made)| (it.stage(), lab.name(made, it.name))).collect();
        Ok(BoundShaderObjects { lab, functions, shaders: made, layout, set })
    }

    /// Binds some of the objects, and the set.
    fn bind(&self, commands: vk::CommandBuffer, which: &[usize]) {
        let stages: Vec<_> = which.iter().map(|it| self.shaders[*it].0).collect();
        let shaders: Vec<_> = which.iter().map(|it| self.shaders[*it].1).collect();
        let is_compute = stages.contains(&COMPUTE);
        let point = if is_compute { vk::PipelineBindPoint::COMPUTE } else { vk::PipelineBindPoint::GRAPHICS };
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            self.functions.cmd_bind_shaders(commands, &stages, &shaders);
            self.lab.device.cmd_bind_descriptor_sets(commands, point, self.layout, 0, &[self.set], &[]);
        }
    }

    fn dispatch(&self, commands: vk::CommandBuffer) {
        self.bind(commands, &[0]);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { self.lab.device.cmd_dispatch(commands, WORDS as u32 / 64, 1, 1) };
    }

    /// All dynamic state that a pipeline would have defined.
    fn set_state(&self, commands: vk::CommandBuffer) {
        let (device, functions) = (&self.lab.device, &self.functions);
        let (width, height) = (EXTENT.width as f32, EXTENT.height as f32);
        let viewport = vk::Viewport { x: 0.0, y: 0.0, width, height, min_depth: 0.0, max_depth: 1.0 };
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            device.cmd_set_viewport_with_count(commands, &[viewport]);
            device.cmd_set_scissor_with_count(commands, &[EXTENT.into()]);
            device.cmd_set_rasterizer_discard_enable(commands, false);
            device.cmd_set_primitive_topology(commands, vk::PrimitiveTopology::TRIANGLE_LIST);
            device.cmd_set_primitive_restart_enable(commands, false);
            device.cmd_set_cull_mode(commands, vk::CullModeFlags::NONE);
            device.cmd_set_front_face(commands, vk::FrontFace::COUNTER_CLOCKWISE);
            device.cmd_set_depth_bias_enable(commands, false);
            device.cmd_set_depth_test_enable(commands, false);
            device.cmd_set_depth_write_enable(commands, false);
            device.cmd_set_stencil_test_enable(commands, false);
            functions.cmd_set_vertex_input(commands, &[], &[]);
            functions.cmd_set_rasterization_samples(commands, vk::SampleCountFlags::TYPE_1);
            functions.cmd_set_sample_mask(commands, vk::SampleCountFlags::TYPE_1, &[u32::MAX]);
            functions.cmd_set_alpha_to_coverage_enable(commands, false);
            functions.cmd_set_polygon_mode(commands, vk::PolygonMode::FILL);
            functions.cmd_set_color_blend_enable(commands, 0, &[vk::FALSE]);
            functions.cmd_set_color_write_mask(commands, 0, &[vk::ColorComponentFlags::RGBA]);
        }
    }
}

impl Drop for BoundShaderObjects<'_> {
    fn drop(&mut self) {
        // SAFETY: the device is idle after waiting, so no submitted command uses the object (lifetime).
        unsafe {
            let _ = self.lab.device.device_wait_idle();
            self.shaders.iter().for_each(|it| self.functions.destroy_shader(it.1, None));
        }
    }
}

fn with_code<'a>(info: vk::ShaderCreateInfoEXT<'a>, words: &'a [u32]) -> vk::ShaderCreateInfoEXT<'a> {
    vk::ShaderCreateInfoEXT { code_size: size_of_val(words), p_code: words.as_ptr().cast(), ..info }
}

fn storage(lab: &FaultContext, name: &str, bytes: u64) -> Result<Buffer, Failure> {
    let usage = vk::BufferUsageFlags::STORAGE_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    lab.buffer(name, bytes, usage, MemoryPlacement::Device)
}

fn none() -> vk::ShaderCreateFlagsEXT {
    vk::ShaderCreateFlagsEXT::empty()
}

/// The source has half the words.
fn double(options: &SampleOptions, room: LayoutSpace) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [target] = lab.word_buffers(["target"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let objects = BoundShaderObjects::new(&lab, &[shader!("double.comp")], none(), &bound, room)?;
    lab.run_once("double", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        objects.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[14; WORDS])
}

fn compute(options: &SampleOptions) -> Result<(), Failure> {
    double(options, LayoutSpace::Free)
}

fn set(options: &SampleOptions) -> Result<(), Failure> {
    double(options, LayoutSpace::NoConstants)
}

fn full(options: &SampleOptions) -> Result<(), Failure> {
    double(options, LayoutSpace::Full)
}

/// The first fault of an invocation is remembered with its details, the others as bits; so it is done again and again.
fn many(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE * 6))?;
    let [target] = lab.word_buffers(["target"])?;
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let objects = BoundShaderObjects::new(&lab, &[shader!("many.comp")], none(), &bound, LayoutSpace::Free)?;
    lab.run_once("fill", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::ALL);
    })?;
    let is_checked = std::env::var_os("LAVASCOPE_GPU").is_some();
    for _ in 0..if is_checked { lab.planted_or_fixed(20, 1) } else { 1 } {
        lab.run_once("sum", |commands| {
            lab.memory_barrier(commands, scope::COMPUTE_WRITE, scope::ALL);
            objects.dispatch(commands);
        })?;
        if is_checked && !lab.is_fixed() {
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    }
    lab.expect(&target, scope::COMPUTE_WRITE, &[42; WORDS])
}

/// The two triangles of the picture.
const CORNERS: [f32; 12] = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 1.0];
const VERTEX_READ: BarrierScope =
    BarrierScope { stages: vk::PipelineStageFlags::VERTEX_SHADER, access: vk::AccessFlags::SHADER_READ };

/// Draws with the vertex shader and each of the fragment shaders; half of the corners may be there.
fn corners(options: &SampleOptions, shaders: &[Shader], flags: vk::ShaderCreateFlagsEXT) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let count = lab.planted_or_fixed(6, 12);
    let corners = storage(&lab, "corners", count as u64 * 4)?;
    let objects =
        BoundShaderObjects::new(&lab, shaders, flags, &[ShaderResource::Storage(&[corners])], LayoutSpace::Free)?;
    let write = |commands| {
        let words: Vec<u32> = CORNERS[..count].iter().map(|it| it.to_bits()).collect();
        lab.update(commands, &corners, &words);
        lab.memory_barrier(commands, scope::COPY_WRITE, VERTEX_READ);
    };
    picture(&lab, (scope::COPY_WRITE, VERTEX_READ), write, |commands| {
        objects.set_state(commands);
        for fragment in 1..shaders.len() {
            objects.bind(commands, &[0, fragment]);
            // SAFETY: live objects, recorded by this thread, inside of rendering (lifetime, owner).
            unsafe { lab.device.cmd_draw(commands, 6, 1, 0, 0) };
        }
    })
}

fn linked(options: &SampleOptions) -> Result<(), Failure> {
    corners(options, &[shader!("corners.vert"), shader!("green.frag")], vk::ShaderCreateFlagsEXT::LINK_STAGE)
}

fn apart(options: &SampleOptions) -> Result<(), Failure> {
    corners(options, &[shader!("corners.vert"), shader!("green.frag"), shader!("green.frag")], none())
}

/// Half of the color is there.
fn uniform(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let usage = vk::BufferUsageFlags::UNIFORM_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
    let paint = lab.buffer("paint", lab.planted_or_fixed(8, 16), usage, MemoryPlacement::Device)?;
    let shaders = [SCREEN, shader!("uniform.frag")];
    let flags = vk::ShaderCreateFlagsEXT::LINK_STAGE;
    let objects =
        BoundShaderObjects::new(&lab, &shaders, flags, &[ShaderResource::Uniform(&paint)], LayoutSpace::Free)?;
    let write = |commands| {
        lab.update(commands, &paint, &GREEN_FLOATS[..lab.planted_or_fixed(2, 4)]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::UNIFORM_READ);
    };
    picture(&lab, (scope::COPY_WRITE, scope::UNIFORM_READ), write, |commands| {
        objects.set_state(commands);
        objects.bind(commands, &[0, 1]);
        // SAFETY: live objects, recorded by this thread, inside of rendering (lifetime, owner).
        unsafe { lab.device.cmd_draw(commands, 6, 1, 0, 0) };
    })
}

/// An object created from the binary does the same. A layer cannot check its contents, and it is correct.
fn binary(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &NEEDS)?;
    let [target, whole] = lab.word_buffers(["target", "whole"])?;
    let source = storage(&lab, "source", lab.planted_or_fixed(SIZE / 2, SIZE))?;
    let shader = shader!("double.comp");
    let bound = [ShaderResource::Storage(&[source]), ShaderResource::Storage(&[target])];
    let objects = BoundShaderObjects::new(&lab, &[shader], none(), &bound, LayoutSpace::Free)?;
    // SAFETY: a live object, and the feature is enabled (lifetime, feature).
    let bytes = unsafe { objects.functions.get_shader_binary_data(objects.shaders[0].1) }?;
    // Binaries are aligned to 16 bytes.
    let mut words = vec![0_u128; bytes.len().div_ceil(16)];
    for (word, part) in words.iter_mut().zip(bytes.chunks(16)) {
        let mut whole = [0; 16];
        whole[..part.len()].copy_from_slice(part);
        *word = u128::from_ne_bytes(whole);
    }
    let (set_layout, set) =
        described_set(&lab, &[ShaderResource::Storage(&[whole]), ShaderResource::Storage(&[target])])?;
    let layouts = [set_layout];
    let info = vk::ShaderCreateInfoEXT::default().stage(COMPUTE).code_type(vk::ShaderCodeTypeEXT::BINARY);
    let info = vk::ShaderCreateInfoEXT { code_size: bytes.len(), p_code: words.as_ptr().cast(), ..info };
    let info = info.name(c"main").set_layouts(&layouts);
    // SAFETY: `info` lives until the call returns, and the feature is enabled (lifetime, feature).
    let made = unsafe { objects.functions.create_shaders(&[info], None) }.map_err(|it| it.1)?;
    let layout = lab.pipeline_layout(&layouts, None)?;
    let functions = objects.functions.clone();
    let second = BoundShaderObjects { lab: &lab, functions, shaders: vec![(COMPUTE, made[0])], layout, set };
    lab.run_once("double", |commands| {
        lab.fill_buffer(commands, &source, (0, source.size), 7);
        lab.fill(commands, &whole, 8);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
        objects.dispatch(commands);
        lab.memory_barrier(commands, scope::COMPUTE_WRITE, scope::COMPUTE_WRITE);
        second.dispatch(commands);
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[16; WORDS])
}

/// Both are the same shader, which finds in another buffer where it begins.
fn observed(options: &SampleOptions) -> Result<(), Failure> {
    const HALF: usize = WORDS / 2;
    let lab = FaultContext::new(options, &NEEDS)?;
    let [target, first, second] = lab.word_buffers(["target", "first", "second"])?;
    let objects = |place: Buffer| {
        let bound = [ShaderResource::Storage(&[target]), ShaderResource::Storage(&[place])];
        BoundShaderObjects::new(&lab, &[shader!("place.comp")], none(), &bound, LayoutSpace::Free)
    };
    let both = [objects(first)?, objects(second)?];
    lab.run_once("where", |commands| {
        lab.update(commands, &first, &[0]);
        lab.update(commands, &second, &[lab.planted_or_fixed(HALF / 2, HALF) as u32]);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COMPUTE_READ);
    })?;
    lab.run_once("write twice", |commands| {
        for shader_objects in &both {
            shader_objects.bind(commands, &[0]);
            // SAFETY: live objects, recorded by this thread (lifetime, owner).
            unsafe { lab.device.cmd_dispatch(commands, HALF as u32 / 64, 1, 1) };
        }
    })?;
    lab.expect(&target, scope::COMPUTE_WRITE, &[1; WORDS])
}
