"""Draws a triangle offscreen with wgpu and prints a hash of its pixels.

With a number as argument, that many threads draw several times, each on a device of its own, at the same time.
"""

import hashlib
import struct
import sys
import threading

import wgpu

SIZE = 128
ROUNDS = 3

SHADER = """
struct Corner { @builtin(position) position: vec4f, @location(0) color: vec3f }

@vertex fn corner(@location(0) position: vec2f, @location(1) color: vec3f) -> Corner {
    return Corner(vec4f(position, 0.0, 1.0), color);
}

@group(0) @binding(0) var<uniform> tint: vec4f;

@fragment fn pixel(corner: Corner) -> @location(0) vec4f {
    return vec4f(corner.color, 1.0) * tint;
}
"""

CORNERS = struct.pack("15f", -0.8, -0.7, 1, 0, 0, 0.9, -0.4, 0, 1, 0, 0.1, 0.8, 0, 0, 1)


class Scene:
    """All that is drawn with, on a device of its own."""

    def __init__(self, adapter):
        self.device = adapter.request_device_sync()
        module = self.device.create_shader_module(code=SHADER)
        attributes = [
            {"format": "float32x2", "offset": 0, "shader_location": 0},
            {"format": "float32x3", "offset": 8, "shader_location": 1},
        ]
        corners = {"array_stride": 20, "step_mode": "vertex", "attributes": attributes}
        self.pipeline = self.device.create_render_pipeline(
            layout="auto",
            vertex={"module": module, "entry_point": "corner", "buffers": [corners]},
            primitive={"topology": "triangle-list"},
            fragment={"module": module, "entry_point": "pixel", "targets": [{"format": "rgba8unorm"}]},
        )
        self.corners = self.device.create_buffer_with_data(data=CORNERS, usage="VERTEX")

    def draw(self, tint):
        texture = self.device.create_texture(
            size=(SIZE, SIZE, 1), format="rgba8unorm", usage="RENDER_ATTACHMENT|COPY_SRC"
        )
        uniform = self.device.create_buffer_with_data(data=struct.pack("4f", *tint), usage="UNIFORM")
        group = self.device.create_bind_group(
            layout=self.pipeline.get_bind_group_layout(0),
            entries=[{"binding": 0, "resource": {"buffer": uniform, "offset": 0, "size": 16}}],
        )
        encoder = self.device.create_command_encoder()
        target = {
            "view": texture.create_view(),
            "clear_value": (0.1, 0.2, 0.3, 1),
            "load_op": "clear",
            "store_op": "store",
        }
        render_pass = encoder.begin_render_pass(color_attachments=[target])
        render_pass.set_pipeline(self.pipeline)
        render_pass.set_bind_group(0, group)
        render_pass.set_vertex_buffer(0, self.corners)
        render_pass.draw(3)
        render_pass.end()
        self.device.queue.submit([encoder.finish()])
        place = {"texture": texture, "mip_level": 0, "origin": (0, 0, 0)}
        layout = {"offset": 0, "bytes_per_row": SIZE * 4, "rows_per_image": SIZE}
        return bytes(self.device.queue.read_texture(place, layout, (SIZE, SIZE, 1)))


def work(adapter, number, hashes):
    scene = Scene(adapter)
    digest = hashlib.sha256()
    for round_number in range(ROUNDS):
        pixels = scene.draw((1 - 0.2 * round_number, 1 / (number + 1), 1, 1))
        assert len(set(pixels)) > 50, "nothing was drawn"
        digest.update(pixels)
    hashes[number] = digest.hexdigest()


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    adapter = wgpu.gpu.request_adapter_sync(power_preference="low-power", force_fallback_adapter=False)
    print(adapter.info["device"], adapter.info["backend_type"])
    hashes = [None] * count
    threads = [threading.Thread(target=work, args=(adapter, number, hashes)) for number in range(1, count)]
    for thread in threads:
        thread.start()
    work(adapter, 0, hashes)
    for thread in threads:
        thread.join()
    assert None not in hashes, "a thread failed"
    for it in hashes:
        print(it)


main()
