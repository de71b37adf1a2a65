@group(0) @binding(0) var<storage, read_write> grid: array<array<array<u32, 4>, 4>>;
@group(0) @binding(1) var<storage, read> limits: array<vec2<u32>>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    for (var y = 0u; y < limits[id.x].x % 5u; y++) {
        var x = 0u;
        while x < 4u {
            grid[id.x][y % 4u][x] += x * y;
            if grid[id.x][y % 4u][x] > 20u { break; }
            x++;
        }
    }
}
