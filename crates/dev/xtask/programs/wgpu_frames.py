"""Frames with wgpu, without a window: a compute shader moves points, a render pass draws them, a copy reads them."""

import wgpu

FRAMES = 20
POINTS = 256
SIZE = (64, 64)

SHADER = """
@group(0) @binding(0) var<storage, read_write> points: array<vec2f>;

@compute @workgroup_size(64)
fn move_points(@builtin(global_invocation_id) id: vec3u) {
    let p = points[id.x];
    points[id.x] = fract(p + vec2f(0.01, 0.02));
}

@vertex
fn corner(@location(0) point: vec2f) -> @builtin(position) vec4f {
    return vec4f(point * 2.0 - 1.0, 0.0, 1.0);
}

@fragment
fn paint() -> @location(0) vec4f {
    return vec4f(0.0, 1.0, 0.0, 1.0);
}
"""


def main():
    adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    print(adapter.info["device"], adapter.info["backend_type"])
    device = adapter.request_device_sync()
    module = device.create_shader_module(code=SHADER)
    usage = wgpu.BufferUsage
    points = device.create_buffer(size=POINTS * 8, usage=usage.STORAGE | usage.VERTEX | usage.COPY_DST | usage.COPY_SRC)
    texture = device.create_texture(
        size=(*SIZE, 1),
        format="rgba8unorm",
        usage=wgpu.TextureUsage.RENDER_ATTACHMENT | wgpu.TextureUsage.COPY_SRC,
    )
    layout = device.create_bind_group_layout(
        entries=[{"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": "storage"}}]
    )
    group = device.create_bind_group(
        layout=layout,
        entries=[{"binding": 0, "resource": {"buffer": points, "offset": 0, "size": points.size}}],
    )
    compute = device.create_compute_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[layout]),
        compute={"module": module, "entry_point": "move_points"},
    )
    attribute = {"format": "float32x2", "offset": 0, "shader_location": 0}
    render = device.create_render_pipeline(
        layout=device.create_pipeline_layout(bind_group_layouts=[]),
        vertex={
            "module": module,
            "entry_point": "corner",
            "buffers": [{"array_stride": 8, "step_mode": "vertex", "attributes": [attribute]}],
        },
        primitive={"topology": "point-list"},
        fragment={"module": module, "entry_point": "paint", "targets": [{"format": "rgba8unorm"}]},
    )
    for frame in range(FRAMES):
        if frame % 5 == 0:
            start = [(at * 0.37 + frame) % 1.0 for at in range(POINTS * 2)]
            device.queue.write_buffer(points, 0, memoryview(bytearray(pack(start))))
        encoder = device.create_command_encoder()
        pass_ = encoder.begin_compute_pass()
        pass_.set_pipeline(compute)
        pass_.set_bind_group(0, group)
        pass_.dispatch_workgroups(POINTS // 64)
        pass_.end()
        color = {"view": texture.create_view(), "clear_value": (0, 0, 0, 1), "load_op": "clear", "store_op": "store"}
        pass_ = encoder.begin_render_pass(color_attachments=[color])
        pass_.set_pipeline(render)
        pass_.set_vertex_buffer(0, points)
        pass_.draw(POINTS)
        pass_.end()
        device.queue.submit([encoder.finish()])
        if frame % 5 == 4:
            layout_of_data = {"bytes_per_row": SIZE[0] * 4, "rows_per_image": SIZE[1]}
            data = device.queue.read_texture({"texture": texture}, layout_of_data, (*SIZE, 1))
            print(frame, sum(data[1::4]) > 0)


def pack(floats):
    import struct

    return struct.pack(f"{len(floats)}f", *floats)


main()
