//! Copies, blits, resolves, clears, fills and updates, without the barrier between two of them.

use ash::vk;

use crate::arguments::SampleOptions;
use crate::common::{Needs, scope};
use crate::failure::Failure;
use crate::faults::context::{FaultContext, GREEN_WORD, LAYOUT, WORDS};
use crate::faults::faults;

faults! {
    war_copy: "war-copy", "a fill overwrites the source of a copy that may still read it (write after read).",
    copy_buffer: "copy-buffer", "a buffer is copied while it may still be filled (read after write).",
    update_buffer: "update-buffer",
        "a part of a buffer is updated while all of it may still be filled (write after write).",
    copy_image: "copy-image", "an image is copied to another while it may still be cleared (read after write).",
    copy_buffer_to_image: "copy-buffer-to-image",
        "an image is written from a buffer that may still be filled (read after write).",
    copy_image_to_buffer: "copy-image-to-buffer",
        "an image is copied to a buffer that a copy may still read (write after read).",
    blit_image: "blit-image", "an image is blitted while it may still be cleared (read after write).",
    resolve_image: "resolve-image",
        "a multisampled image is resolved while it may still be cleared (read after write).",
    clear_color_image: "clear-color-image", "an image is cleared while a copy may still read it (write after read).",
    clear_depth_image: "clear-depth-image",
        "a depth image is copied while it may still be cleared (read after write).",
    query_results: "query-results",
        "results of queries are copied on while they may still be written (read after write).",
}

fn war_copy(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    lab.run_once("copy, then overwrite", |commands| {
        lab.fill(commands, &source, 7);
        lab.buffer_barrier(commands, &source, scope::COPY_WRITE, scope::COPY_READ);
        lab.labeled(commands, "read", || lab.copy_buffer(commands, &source, &target));
        lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COPY_WRITE);
        lab.labeled(commands, "write", || lab.fill(commands, &source, 8));
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn copy_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.word_buffers(["source", "target"])?;
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.copy_buffer(commands, &source, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn update_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [buffer] = lab.word_buffers(["buffer"])?;
    lab.run_once("fill and update", |commands| {
        lab.fill(commands, &buffer, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_WRITE);
        lab.update(commands, &buffer, &[1, 2]);
    })?;
    let mut want = [7; WORDS];
    want[..2].copy_from_slice(&[1, 2]);
    lab.expect(&buffer, scope::COPY_WRITE, &want)
}

fn copy_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.color_images(["source", "target"])?;
    lab.run_once("clear and copy", |commands| {
        lab.clear(commands, &source);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        let region = vk::ImageCopy::default().src_subresource(source.layers(0)).dst_subresource(target.layers(0));
        let region = [region.extent(source.extent_of(0))];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_copy_image(commands, source.handle, LAYOUT, target.handle, LAYOUT, &region) };
    })?;
    lab.expect_texels(&target, scope::COPY_WRITE, GREEN_WORD)
}

fn copy_buffer_to_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([source], [target]) = (lab.word_buffers(["source"])?, lab.color_images(["target"])?);
    lab.run_once("fill and copy", |commands| {
        lab.fill(commands, &source, 7);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.write_texels(commands, &source, &target);
    })?;
    lab.expect_texels(&target, scope::COPY_WRITE, 7)
}

fn copy_image_to_buffer(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([buffer, target], [image]) = (lab.word_buffers(["buffer", "target"])?, lab.color_images(["image"])?);
    lab.run_once("copy and overwrite", |commands| {
        lab.clear(commands, &image);
        lab.fill(commands, &buffer, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.copy_buffer(commands, &buffer, &target);
        lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COPY_WRITE);
        lab.read_texels(commands, &image, &buffer);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn blit_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [source, target] = lab.color_images(["source", "target"])?;
    lab.run_once("clear and blit", |commands| {
        lab.clear(commands, &source);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        let end = vk::Offset3D { x: source.extent.width as i32, y: source.extent.height as i32, z: 1 };
        let corners = [vk::Offset3D::default(), end];
        let region = vk::ImageBlit::default().src_subresource(source.layers(0)).dst_subresource(target.layers(0));
        let region = [region.src_offsets(corners).dst_offsets(corners)];
        let (from, to) = (source.handle, target.handle);
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_blit_image(commands, from, LAYOUT, to, LAYOUT, &region, vk::Filter::NEAREST) };
    })?;
    lab.expect_texels(&target, scope::COPY_WRITE, GREEN_WORD)
}

fn resolve_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (source, [target]) = (lab.multisampled_image("source")?, lab.color_images(["target"])?);
    lab.run_once("clear and resolve", |commands| {
        lab.clear(commands, &source);
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        let region = vk::ImageResolve::default().src_subresource(source.layers(0)).dst_subresource(target.layers(0));
        let region = [region.extent(source.extent_of(0))];
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe { lab.device.cmd_resolve_image(commands, source.handle, LAYOUT, target.handle, LAYOUT, &region) };
    })?;
    lab.expect_texels(&target, scope::COPY_WRITE, GREEN_WORD)
}

fn clear_color_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let ([source, target], [image]) = (lab.word_buffers(["source", "target"])?, lab.color_images(["image"])?);
    lab.run_once("copy and clear", |commands| {
        lab.fill(commands, &source, 7);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.write_texels(commands, &source, &image);
        lab.memory_barrier(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &image, &target);
        lab.barrier_if_fixed(commands, scope::COPY_READ, scope::COPY_WRITE);
        lab.clear(commands, &image);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[7; WORDS])
}

fn clear_depth_image(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let (image, [target]) = (lab.depth_image("depths")?, lab.word_buffers(["target"])?);
    lab.run_once("clear and copy", |commands| {
        let value = vk::ClearDepthStencilValue { depth: 0.5, stencil: 0 };
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_clear_depth_stencil_image(commands, image.handle, LAYOUT, &value, &[image.range()]);
        }
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.read_texels(commands, &image, &target);
    })?;
    lab.expect(&target, scope::COPY_WRITE, &[0.5f32.to_bits(); WORDS])
}

fn query_results(options: &SampleOptions) -> Result<(), Failure> {
    let lab = FaultContext::new(options, &Needs::NOTHING)?;
    let [results, target] = lab.word_buffers(["results", "target"])?;
    let pool = lab.query_pool(vk::QueryType::OCCLUSION, WORDS as u32)?;
    lab.run_once("copy results twice", |commands| {
        // SAFETY: live objects, recorded by this thread (lifetime, owner).
        unsafe {
            lab.device.cmd_reset_query_pool(commands, pool, 0, WORDS as u32);
            for query in 0..WORDS as u32 {
                lab.device.cmd_begin_query(commands, pool, query, vk::QueryControlFlags::empty());
                lab.device.cmd_end_query(commands, pool, query);
            }
            let (flags, buffer) = (vk::QueryResultFlags::WAIT, results.handle);
            lab.device.cmd_copy_query_pool_results(commands, pool, 0, WORDS as u32, buffer, 0, 4, flags);
        }
        lab.barrier_if_fixed(commands, scope::COPY_WRITE, scope::COPY_READ);
        lab.copy_buffer(commands, &results, &target);
    })?;
    // Nothing was drawn.
    lab.expect(&target, scope::COPY_WRITE, &[0; WORDS])
}
