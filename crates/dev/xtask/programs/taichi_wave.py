"""A wave on a grid with taichi: kernels that read and write fields, step after step."""

import taichi as ti

STEPS = 30
SIDE = 64

ti.init(arch=ti.vulkan, log_level=ti.ERROR)
height = ti.field(ti.f32, (SIDE, SIDE))
speed = ti.field(ti.f32, (SIDE, SIDE))
total = ti.field(ti.i32, ())


@ti.kernel
def start():
    for i, j in height:
        height[i, j] = 1.0 if (i - SIDE // 2) ** 2 + (j - SIDE // 2) ** 2 < 20 else 0.0


@ti.kernel
def push():
    for i, j in height:
        if 0 < i < SIDE - 1 and 0 < j < SIDE - 1:
            around = height[i - 1, j] + height[i + 1, j] + height[i, j - 1] + height[i, j + 1]
            speed[i, j] += 0.2 * (around - 4 * height[i, j])


@ti.kernel
def move():
    for i, j in height:
        height[i, j] += speed[i, j]
        # Whole numbers: the order in which they are added does not matter.
        total[None] += ti.cast(height[i, j] * 1000, ti.i32)


start()
for step in range(STEPS):
    total[None] = 0
    push()
    move()
    if step % 10 == 9:
        print(step, total[None])
