//! Transfers that are executed, and those that are not.

use lavascope_abi::*;

use super::test_device::{MappedBuffer, TestDevice, out, vk};

const PRIMARY: CommandBufferLevel = CommandBufferLevel::PRIMARY;

fn copy(world: &TestDevice, commands: CommandBuffer, from: &MappedBuffer, to: &MappedBuffer, region: BufferCopy) {
    vk!(FnCmdCopyBuffer(world.instance; commands, from.buffer, to.buffer, 1, Ptr::to(&region)));
}

#[test]
fn buffers_are_copied_filled_and_updated() {
    let world = TestDevice::executing();
    let (a, b) = (world.buffer(64), world.buffer(64));
    let commands = world.command_buffer(PRIMARY);
    vk!(FnCmdFillBuffer(world.instance; commands, a.buffer, 0, WHOLE_SIZE, 0x0102_0304));
    let data = [9u8; 8];
    vk!(FnCmdUpdateBuffer(world.instance; commands, a.buffer, 8, 8, Ptr::to(&data[0]).cast()));
    copy(&world, commands, &a, &b, BufferCopy { src_offset: 4, dst_offset: 0, size: 16 });
    assert_eq!(a.read(), [0; 64]);
    world.run(commands);
    assert_eq!(a.read()[..20], [4, 3, 2, 1, 4, 3, 2, 1, 9, 9, 9, 9, 9, 9, 9, 9, 4, 3, 2, 1]);
    assert_eq!(b.read()[..20], [4, 3, 2, 1, 9, 9, 9, 9, 9, 9, 9, 9, 4, 3, 2, 1, 0, 0, 0, 0]);
}

#[test]
fn by_default_nothing_is_executed() {
    let world = TestDevice::new();
    let a = world.buffer(64);
    let commands = world.command_buffer(PRIMARY);
    vk!(FnCmdFillBuffer(world.instance; commands, a.buffer, 0, WHOLE_SIZE, 7));
    world.run(commands);
    assert_eq!(a.read(), [0; 64]);
}

#[test]
fn secondary_command_buffers_are_executed() {
    let world = TestDevice::executing();
    let (a, b) = (world.buffer(16), world.buffer(16));
    let secondary = world.command_buffer(CommandBufferLevel::SECONDARY);
    copy(&world, secondary, &a, &b, BufferCopy { src_offset: 0, dst_offset: 0, size: 16 });
    let primary = world.command_buffer(PRIMARY);
    vk!(FnCmdExecuteCommands(world.instance; primary, 1, Ptr::to(&secondary)));
    a.write(b"sixteen bytes...");
    world.run(primary);
    assert_eq!(b.read(), b"sixteen bytes...");
    a.write(b"other sixteen...");
    world.run(primary);
    assert_eq!(b.read(), b"other sixteen...");
}

pub(crate) fn image(world: &TestDevice, width: u32, height: u32) -> (Image, DeviceMemory) {
    let mut info = ImageCreateInfo::zeroed();
    info.image_type = ImageType::_2D;
    info.format = Format::R8G8B8A8_UNORM;
    info.extent = Extent3D { width, height, depth: 1 };
    info.mip_levels = 1;
    info.array_layers = 1;
    info.samples = SampleCountFlags::_1;
    let mut image = Image(0);
    vk!(FnCreateImage(world.instance; world.device, Ptr::to(&info), Ptr::NULL, out(&mut image)));
    let mut needs = MemoryRequirements::zeroed();
    vk!(FnGetImageMemoryRequirements(world.instance; world.device, image, out(&mut needs)));
    assert!(needs.size >= u64::from(width * height * 4) && needs.memory_type_bits & 1 != 0);
    let memory = world.memory(needs.size);
    vk!(FnBindImageMemory(world.instance; world.device, image, memory, 0));
    (image, memory)
}

pub(crate) fn whole(width: u32, height: u32) -> BufferImageCopy {
    let mut region = BufferImageCopy::zeroed();
    region.image_subresource.aspect_mask = ImageAspectFlags::COLOR;
    region.image_subresource.layer_count = 1;
    region.image_extent = Extent3D { width, height, depth: 1 };
    region
}

#[test]
fn images_are_copied_and_cleared() {
    let world = TestDevice::executing();
    let (from, to) = (world.buffer(4 * 4 * 4), world.buffer(4 * 4 * 4));
    let ((a, _), (b, _)) = (image(&world, 4, 4), image(&world, 4, 4));
    let texels: Vec<u8> = (0..64).collect();
    from.write(&texels);
    let layout = ImageLayout::GENERAL;
    let commands = world.command_buffer(PRIMARY);
    let color = ClearColorValue { words: [1.0f32.to_bits(), 0, 0, 1.0f32.to_bits()] };
    let mut range = ImageSubresourceRange::zeroed();
    range.aspect_mask = ImageAspectFlags::COLOR;
    range.level_count = REMAINING_MIP_LEVELS;
    range.layer_count = REMAINING_ARRAY_LAYERS;
    vk!(FnCmdClearColorImage(world.instance; commands, b, layout, Ptr::to(&color), 1, Ptr::to(&range)));
    let region = whole(4, 4);
    vk!(FnCmdCopyBufferToImage(world.instance; commands, from.buffer, a, layout, 1, Ptr::to(&region)));
    // The middle of one image into the corner of the other.
    let mut part = ImageCopy::zeroed();
    part.src_subresource = region.image_subresource;
    part.dst_subresource = region.image_subresource;
    part.src_offset = Offset3D { x: 1, y: 1, z: 0 };
    part.extent = Extent3D { width: 2, height: 2, depth: 1 };
    vk!(FnCmdCopyImage(world.instance; commands, a, layout, b, layout, 1, Ptr::to(&part)));
    vk!(FnCmdCopyImageToBuffer(world.instance; commands, b, layout, to.buffer, 1, Ptr::to(&region)));
    world.run(commands);
    let out = to.read();
    assert_eq!(out[..8], texels[20..28]);
    assert_eq!(out[8..16], [255, 0, 0, 255, 255, 0, 0, 255]);
    assert_eq!(out[16..24], texels[36..44]);
    assert_eq!(out[32..48], [255, 0, 0, 255].repeat(4));
}
