//! Indexed, instanced draws whose parameters the device reads from a buffer; descriptors come from an update
//! template, and are pushed where the device can.

use ash::{khr, vk};

use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{
    BarrierScope, Buffer, Feature, Gpu, GraphicsPipeline, MemoryPlacement, Needs, RenderTarget, binding_of, scope,
    shader,
};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "indirect",
    about: "Draws indexed instances indirectly, with an update template and push descriptors.",
    run,
};

const NEEDS: Needs = Needs {
    features: &[Feature::MultiDrawIndirect, Feature::DrawIndirectFirstInstance],
    extensions_optional: &[khr::push_descriptor::NAME],
    ..Needs::NOTHING
};
const FORMAT: vk::Format = vk::Format::R8G8B8A8_UNORM;
const EXTENT: vk::Extent2D = vk::Extent2D { width: 64, height: 64 };
const CELLS: u32 = 8;
const INSTANCES: u32 = 16;
const UNIFORM: vk::DescriptorType = vk::DescriptorType::UNIFORM_BUFFER;
const PALETTE: [[u8; 4]; 4] = [[255, 0, 0, 255], [0, 255, 0, 255], [51, 102, 255, 255], [255, 204, 0, 255]];
const BACKGROUND: [u8; 4] = [0, 0, 0, 0];
const INDIRECT_READ: BarrierScope =
    BarrierScope { stages: vk::PipelineStageFlags::DRAW_INDIRECT, access: vk::AccessFlags::INDIRECT_COMMAND_READ };

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let canvas = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
    let render_pass = gpu.render_pass(FORMAT)?;
    let framebuffer = gpu.framebuffer(render_pass, &[canvas])?;
    let mesh = Mesh::new(&gpu)?;
    let uniforms = Uniforms::new(&gpu)?;
    let pipeline = pipeline(&gpu, uniforms.layout, RenderTarget::Subpass(render_pass, 0))?;
    gpu.run_once("indirect draws", |commands| {
        let bytes: Vec<u8> = draws().into_iter().flatten().flat_map(u32::to_ne_bytes).collect();
        let clear = [vk::ClearValue::default()];
        let begin = vk::RenderPassBeginInfo::default().render_pass(render_pass).framebuffer(framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_update_buffer(commands, mesh.draws.handle, 0, &bytes) };
        gpu.buffer_barrier(commands, &mesh.draws, scope::COPY_WRITE, INDIRECT_READ);
        gpu.set_viewport_and_scissor(commands, EXTENT);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            gpu.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            gpu.device.cmd_bind_pipeline(commands, vk::PipelineBindPoint::GRAPHICS, pipeline);
        }
        uniforms.bind(&gpu, commands);
        mesh.draw(&gpu, commands);
        // SAFETY: recorded by this thread, inside of the render pass that began above (owner).
        unsafe { gpu.device.cmd_end_render_pass(commands) };
    })?;
    let picture = gpu.picture(&canvas)?;
    picture.save(options)?;
    let cell_of_pixel = EXTENT.width / CELLS;
    options.check.picture(&picture, 1, |x, y| expected(x / cell_of_pixel, y / cell_of_pixel))
}

/// Two commands: indices, instances, first index, vertex offset, first instance.
fn draws() -> [[u32; 5]; 2] {
    let half = INSTANCES / 2;
    [[6, half, 0, 0, 0], [6, half, 0, 0, half]]
}

/// The column and row that an instance covers.
fn cell(instance: u32) -> (u32, u32) {
    (instance % CELLS, instance / CELLS * 3 + instance % 2)
}

fn expected(column: u32, row: u32) -> [u8; 4] {
    let instance = (0..INSTANCES).find(|it| cell(*it) == (column, row));
    instance.map_or(BACKGROUND, |it| PALETTE[it as usize % PALETTE.len()])
}

fn pipeline(gpu: &Gpu, layout: vk::PipelineLayout, target: RenderTarget) -> Result<vk::Pipeline, Failure> {
    let binding = |binding, input_rate| vk::VertexInputBindingDescription { binding, stride: 8, input_rate };
    let format = vk::Format::R32G32_SFLOAT;
    let attribute = |at| vk::VertexInputAttributeDescription { location: at, binding: at, format, offset: 0 };
    gpu.graphics_pipeline(&GraphicsPipeline {
        vertex: shader!("indirect.vert"),
        fragment: shader!("color.frag"),
        middle_stages: &[],
        layout,
        bindings: &[binding(0, vk::VertexInputRate::VERTEX), binding(1, vk::VertexInputRate::INSTANCE)],
        attributes: &[attribute(0), attribute(1)],
        target,
    })
}

struct Mesh {
    corners: Buffer,
    cells: Buffer,
    indices: Buffer,
    draws: Buffer,
}

impl Mesh {
    fn new(gpu: &Gpu) -> Result<Mesh, Failure> {
        let vertex = vk::BufferUsageFlags::VERTEX_BUFFER;
        let corners = gpu.buffer("corners", 32, vertex, MemoryPlacement::Host)?;
        gpu.write_floats(&corners, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
        let floats: Vec<f32> = (0..INSTANCES).map(cell).flat_map(|(column, row)| [column as f32, row as f32]).collect();
        let cells = gpu.buffer("cells", u64::from(INSTANCES) * 8, vertex, MemoryPlacement::Host)?;
        gpu.write_floats(&cells, &floats)?;
        let indices = gpu.buffer("indices", 24, vk::BufferUsageFlags::INDEX_BUFFER, MemoryPlacement::Host)?;
        gpu.write(&indices, &[0, 1, 2, 2, 1, 3])?;
        let usage = vk::BufferUsageFlags::INDIRECT_BUFFER | vk::BufferUsageFlags::TRANSFER_DST;
        let draws = gpu.buffer("draws", size_of_val(&draws()) as u64, usage, MemoryPlacement::Device)?;
        Ok(Mesh { corners, cells, indices, draws })
    }

    fn draw(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        let (count, stride) = (draws().len() as u32, size_of::<vk::DrawIndexedIndirectCommand>() as u32);
        // SAFETY: live objects, recorded by this thread, inside of a render pass (lifetime, owner, feature).
        unsafe {
            let buffers = [self.corners.handle, self.cells.handle];
            gpu.device.cmd_bind_vertex_buffers(commands, 0, &buffers, &[0, 0]);
            gpu.device.cmd_bind_index_buffer(commands, self.indices.handle, 0, vk::IndexType::UINT32);
            gpu.device.cmd_draw_indexed_indirect(commands, self.draws.handle, 0, count, stride);
        }
    }
}

/// Set 0 has the palette, set 1 the size of a cell.
struct Uniforms {
    layout: vk::PipelineLayout,
    palette: vk::DescriptorSet,
    grid: Grid,
}

enum Grid {
    Pushed(khr::push_descriptor::Device, Buffer),
    Bound(vk::DescriptorSet),
}

impl Uniforms {
    fn new(gpu: &Gpu) -> Result<Uniforms, Failure> {
        let usage = vk::BufferUsageFlags::UNIFORM_BUFFER;
        let colors = gpu.buffer("palette", 64, usage, MemoryPlacement::Host)?;
        gpu.write_floats(&colors, &PALETTE.as_flattened().iter().map(|it| f32::from(*it) / 255.0).collect::<Vec<_>>())?;
        let size = gpu.buffer("cell size", 16, usage, MemoryPlacement::Host)?;
        gpu.write_floats(&size, &[2.0 / CELLS as f32, 2.0 / CELLS as f32, 0.0, 0.0])?;

        let stages = vk::ShaderStageFlags::VERTEX;
        let palette_layout = gpu.set_layout(&[UNIFORM], stages)?;
        let pool = gpu.descriptor_pool(2, &[(UNIFORM, 2)])?;
        let palette = gpu.descriptor_set(pool, palette_layout)?;
        update_by_template(gpu, palette, palette_layout, &colors)?;
        let (grid_layout, grid) = if gpu.has_extension(khr::push_descriptor::NAME) {
            let bindings = [binding_of(0, UNIFORM, 1, stages)];
            let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
            let flags = vk::DescriptorSetLayoutCreateFlags::PUSH_DESCRIPTOR_KHR;
            let push = khr::push_descriptor::Device::new(&gpu.instance.handle, &gpu.device);
            (gpu.set_layout_of(&info.flags(flags))?, Grid::Pushed(push, size))
        } else {
            let set = gpu.descriptor_set(pool, palette_layout)?;
            gpu.write_buffers(set, (0, 0), UNIFORM, &[size]);
            (palette_layout, Grid::Bound(set))
        };
        Ok(Uniforms { layout: gpu.pipeline_layout(&[palette_layout, grid_layout], None)?, palette, grid })
    }

    fn bind(&self, gpu: &Gpu, commands: vk::CommandBuffer) {
        let graphics = vk::PipelineBindPoint::GRAPHICS;
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { gpu.device.cmd_bind_descriptor_sets(commands, graphics, self.layout, 0, &[self.palette], &[]) };
        match &self.grid {
            Grid::Pushed(push, size) => {
                let infos = [size.descriptor()];
                let write = [vk::WriteDescriptorSet::default().descriptor_type(UNIFORM).buffer_info(&infos)];
                // SAFETY: live objects, recorded by this thread, and the extension is enabled (lifetime, owner,
                // feature).
                unsafe { push.cmd_push_descriptor_set(commands, graphics, self.layout, 1, &write) };
            }
            Grid::Bound(set) => {
                // SAFETY: live objects, recorded by this thread (lifetime, owner).
                unsafe { gpu.device.cmd_bind_descriptor_sets(commands, graphics, self.layout, 1, &[*set], &[]) };
            }
        }
    }
}

fn update_by_template(
    gpu: &Gpu,
    set: vk::DescriptorSet,
    layout: vk::DescriptorSetLayout,
    buffer: &Buffer,
) -> Result<(), Failure> {
    let entries =
        [vk::DescriptorUpdateTemplateEntry::default().descriptor_count(1).descriptor_type(UNIFORM).offset(0).stride(0)];
    let info = vk::DescriptorUpdateTemplateCreateInfo::default()
        .descriptor_update_entries(&entries)
        .template_type(vk::DescriptorUpdateTemplateType::DESCRIPTOR_SET)
        .descriptor_set_layout(layout);
    let data = buffer.descriptor();
    // SAFETY: `info` and `data` live until the calls return, and `data` is what the template's only entry describes.
    unsafe {
        let template = gpu.destroy_at_end(gpu.device.create_descriptor_update_template(&info, None)?);
        gpu.device.update_descriptor_set_with_template(set, template, (&raw const data).cast());
    }
    Ok(())
}
