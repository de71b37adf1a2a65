//! Queries: how many samples a triangle covers, read by the host and copied by the device; and two timestamps.

use ash::vk;

use super::triangle::{self, BACKGROUND, EXTENT, FORMAT};
use crate::Sample;
use crate::arguments::SampleOptions;
use crate::common::{Feature, Gpu, MemoryPlacement, Needs, RenderTarget, scope};
use crate::failure::Failure;

pub(crate) const SAMPLE: Sample = Sample {
    name: "queries",
    about: "Counts the samples of a triangle with an occlusion query, and takes timestamps around it.",
    run,
};

const NEEDS: Needs = Needs { features: &[Feature::OcclusionQueryPrecise], ..Needs::NOTHING };
const RESULT_FLAGS: vk::QueryResultFlags =
    vk::QueryResultFlags::from_raw(vk::QueryResultFlags::TYPE_64.as_raw() | vk::QueryResultFlags::WAIT.as_raw());

fn run(options: &SampleOptions) -> Result<(), Failure> {
    let gpu = Gpu::new(&NEEDS)?;
    // SAFETY: `Gpu` has the physical device from its own instance, which it drops last (lifetime).
    let limits = unsafe { gpu.instance.handle.get_physical_device_properties(gpu.physical_device) }.limits;
    if limits.timestamp_compute_and_graphics == vk::FALSE {
        return Err(Failure::Unsupported("the device has queues without timestamps".to_owned()));
    }
    let usage = vk::ImageUsageFlags::COLOR_ATTACHMENT | vk::ImageUsageFlags::TRANSFER_SRC;
    let image = gpu.image("canvas", FORMAT, EXTENT, 1, usage)?;
    let render_pass = gpu.render_pass(FORMAT)?;
    let framebuffer = gpu.framebuffer(render_pass, &[image])?;
    let pipeline = triangle::pipeline(&gpu, RenderTarget::Subpass(render_pass, 0))?;
    let vertices = triangle::vertices(&gpu)?;
    let samples = gpu.query_pool(vk::QueryType::OCCLUSION, 1)?;
    let times = gpu.query_pool(vk::QueryType::TIMESTAMP, 2)?;
    let copied = gpu.buffer("copied results", 8, vk::BufferUsageFlags::TRANSFER_DST, MemoryPlacement::Host)?;
    gpu.run_once("counted triangle", |commands| {
        let clear = [BACKGROUND];
        let begin = vk::RenderPassBeginInfo::default().render_pass(render_pass).framebuffer(framebuffer);
        let begin = begin.render_area(EXTENT.into()).clear_values(&clear);
        // SAFETY: live objects, recorded by this thread, and the feature is enabled (lifetime, owner, feature).
        unsafe {
            gpu.device.cmd_reset_query_pool(commands, samples, 0, 1);
            gpu.device.cmd_reset_query_pool(commands, times, 0, 2);
            gpu.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::TOP_OF_PIPE, times, 0);
            gpu.device.cmd_begin_render_pass(commands, &begin, vk::SubpassContents::INLINE);
            gpu.device.cmd_begin_query(commands, samples, 0, vk::QueryControlFlags::PRECISE);
        }
        triangle::draw(&gpu, commands, pipeline, &vertices);
        // SAFETY: live objects, recorded by this thread, inside of the render pass and of the query that began above
        // (lifetime, owner, feature).
        unsafe {
            gpu.device.cmd_end_query(commands, samples, 0);
            gpu.device.cmd_end_render_pass(commands);
            gpu.device.cmd_write_timestamp(commands, vk::PipelineStageFlags::BOTTOM_OF_PIPE, times, 1);
            gpu.device.cmd_copy_query_pool_results(commands, samples, 0, 1, copied.handle, 0, 8, RESULT_FLAGS);
        }
        gpu.buffer_barrier(commands, &copied, scope::COPY_WRITE, scope::HOST_READ);
    })?;
    let (mut count, mut stamps) = ([0u64; 1], [0u64; 2]);
    // SAFETY: the queries were ended in a submission that is done, and the slices have room for them (lifetime).
    unsafe {
        gpu.device.get_query_pool_results(samples, 0, &mut count, RESULT_FLAGS)?;
        gpu.device.get_query_pool_results(times, 0, &mut stamps, RESULT_FLAGS)?;
    }
    triangle::check_coverage(options, count[0])?;
    let words = gpu.read(&copied)?;
    triangle::check_coverage(options, u64::from(words[0]) | u64::from(words[1]) << 32)?;
    let in_order = u64::from(stamps[0] <= stamps[1]);
    options.check.number("the order of the timestamps", in_order, 1..2)?;
    triangle::check(options, &gpu.picture(&image)?)
}
