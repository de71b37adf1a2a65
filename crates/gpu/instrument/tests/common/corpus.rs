//! Shaders made of small parts: every kind of access, in every stage, in every shape of control flow.

/// A shader in GLSL.
pub(crate) struct Shader {
    pub(crate) name: String,
    pub(crate) stage: &'static str,
    pub(crate) source: String,
}

const HEAD: &str = "#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_nonuniform_qualifier : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_demote_to_helper_invocation : require
#extension GL_EXT_samplerless_texture_functions : require
#extension GL_ARB_sparse_texture2 : require
#extension GL_EXT_control_flow_attributes : enable
";

fn shader(name: impl Into<String>, stage: &'static str, body: &str) -> Shader {
    Shader { name: name.into(), stage, source: format!("{HEAD}{body}") }
}

/// Memory that is accessed: what declares it, and an access with `I` for an index. `T` is the type of an element.
const MEMORY: &[(&str, &str, &str)] = &[
    ("storage", "layout(set=0, binding=0, scalar) buffer B { uint n; T a[]; } b;", "b.a[I]"),
    ("storage_fixed", "layout(set=0, binding=0, scalar) buffer B { T a[512]; } b;", "b.a[I]"),
    (
        "storage_nested",
        "struct S { T x; T y[3]; }; layout(set=0, binding=0, scalar) buffer B { S a[]; } b;",
        "b.a[I].y[J]",
    ),
    ("storage_array", "layout(set=0, binding=0, scalar) buffer B { T a[]; } b[4];", "b[J].a[I]"),
    ("storage_rows", "layout(set=0, binding=0, scalar) buffer B { T a[][3]; } b;", "b.a[I][J]"),
    ("storage_open", "layout(set=0, binding=0, scalar) buffer B { T a[]; } b[];", "b[nonuniformEXT(J)].a[I]"),
    (
        "address",
        "layout(buffer_reference, scalar) buffer B { T a[]; }; layout(push_constant) uniform P { B b; } p;",
        "p.b.a[I]",
    ),
    (
        "address_list",
        "layout(buffer_reference, scalar) buffer B; layout(buffer_reference, scalar) buffer B { B next; T a[512]; }; layout(push_constant) uniform P { B b; } p;",
        "p.b.next.next.a[I]",
    ),
];

const TYPES: &[&str] =
    &["uint", "float", "vec3", "vec4", "mat3", "mat2x4", "uint8_t", "f16vec2", "uint64_t", "double", "ivec2", "bool32"];

/// Control flow around a statement `X`; `I` and `J` are numbers. Each invocation has 64 values of `I` to itself.
pub(crate) const FLOWS: &[(&str, &str)] = &[
    ("straight", "X;"),
    ("twice", "X; X;"),
    ("branch", "if (I > 3u) { X; } else { J += 1u; } X;"),
    ("loop", "for (uint k = 0; k < 8u; k++) { I += k; X; }"),
    ("loop_break", "while (true) { X; if ((I & 63u) > 20u) break; I++; if (I == 7u) continue; X; }"),
    ("do_while", "do { X; I++; } while ((I & 63u) < 9u);"),
    ("switch", "switch (I) { case 0u: X; case 1u: J = 2u; break; case 5u: X; break; default: X; }"),
    (
        "nested",
        "for (uint k = 0; k < 4u; k++) { for (uint l = 0; l < 4u; l++) { if (k == l) { X; continue; } X; } X; }",
    ),
    ("early", "if (I == 3u) return; X; if (J == 3u) { X; return; } X;"),
    ("ternary", "uint q = I > 4u ? I : J; X; I = q; X;"),
    ("function", "helper(); X;"),
];

/// Every kind of memory with every type and some control flow, in compute shaders.
pub(crate) fn memory() -> Vec<Shader> {
    let mut all = Vec::new();
    for (at, (memory, declaration, access)) in MEMORY.iter().enumerate() {
        for (number, ty) in TYPES.iter().enumerate() {
            let ty = if *ty == "bool32" { "uvec4" } else { ty };
            let (flow, shape) = FLOWS[(at * 5 + number) % FLOWS.len()];
            all.push(kernel(&format!("{memory}_{ty}_{flow}"), declaration, access, ty, shape));
        }
    }
    for (memory, declaration, access) in MEMORY {
        for (flow, shape) in FLOWS {
            all.push(kernel(&format!("{memory}_flow_{flow}"), declaration, access, "uint", shape));
        }
    }
    all
}

fn kernel(name: &str, declaration: &str, access: &str, ty: &str, shape: &str) -> Shader {
    let declaration = declaration.replace("T ", &format!("{ty} "));
    let statement = "v = ACCESS; ACCESS = v + v".replace("ACCESS", access);
    let body = shape.replace('X', &statement);
    let helper = format!("void helper() {{ {statement}; }}");
    let source = format!(
        "layout(local_size_x = 8) in;\n{declaration}\nuint I; uint J; {ty} v;\n{helper}\n\
         layout(set=0, binding=1) uniform U {{ uint first; uint second; }} u;\n\
         void main() {{\nI = gl_GlobalInvocationID.x * 64u + u.first; J = u.second;\n{body}\n}}\n"
    );
    shader(name, "comp", &source)
}

/// Fragment shaders that use images.
const IMAGES: &[(&str, &str)] = &[
    ("sample", "o = texture(t[n], p.xy);"),
    ("sample_lod", "o = textureLod(t[n], p.xy, 1.0);"),
    ("sample_grad", "o = textureGrad(t[n], p.xy, p.xy, p.zw);"),
    ("sample_dref", "o = vec4(texture(s[nonuniformEXT(n)], p.xyz));"),
    ("sample_dref_lod", "o = vec4(textureLod(s[nonuniformEXT(n)], p.xyz, 0.0));"),
    ("sample_proj", "o = textureProj(t[n], p.xyz);"),
    ("sample_proj_lod", "o = textureProjLod(t[n], p.xyz, 0.0);"),
    ("sample_proj_dref", "o = vec4(textureProj(s[nonuniformEXT(n)], p));"),
    ("sample_proj_dref_lod", "o = vec4(textureProjLod(s[nonuniformEXT(n)], p, 0.0));"),
    ("gather", "o = textureGather(t[n], p.xy, 1);"),
    ("dref_gather", "o = textureGather(s[nonuniformEXT(n)], p.xy, p.z);"),
    ("query_lod", "o = vec4(textureQueryLod(t[n], p.xy), 0, 0);"),
    ("sparse", "sparseTextureARB(t[n], p.xy, o);"),
    ("sparse_lod", "sparseTextureLodARB(t[n], p.xy, 0.0, o);"),
    ("sparse_dref", "float f; sparseTextureARB(s[nonuniformEXT(n)], p.xyz, f); o = vec4(f);"),
    ("sparse_dref_lod", "float f; sparseTextureLodARB(s[nonuniformEXT(n)], p.xyz, 0.0, f); o = vec4(f);"),
    ("sparse_gather", "sparseTextureGatherARB(t[n], p.xy, o);"),
    ("sparse_dref_gather", "sparseTextureGatherARB(s[nonuniformEXT(n)], p.xy, p.z, o);"),
    ("fetch", "o = texelFetch(t[n], ivec2(p.xy), 0);"),
    ("fetch_ms", "o = texelFetch(ms[n], ivec2(p.xy), 1);"),
    ("sparse_fetch", "sparseTexelFetchARB(t[n], ivec2(p.xy), 0, o);"),
    ("read", "o = imageLoad(w[n], ivec2(p.xy));"),
    ("sparse_read", "sparseImageLoadARB(w[n], ivec2(p.xy), o);"),
    ("write", "imageStore(w[n], ivec2(p.xy), p); o = p;"),
    ("size_lod", "o = vec4(textureSize(t[n], 0), 0, 0);"),
    ("size", "o = vec4(imageSize(w[n]), 0, 0);"),
    ("levels", "o = vec4(textureQueryLevels(t[n]));"),
    ("samples", "o = vec4(textureSamples(ms[n]));"),
    ("texel_fetch", "o = texelFetch(b[n], int(p.x));"),
    ("texel_fetch_one", "o = texelFetch(tb, int(p.x));"),
    ("texel_read", "o = vec4(imageLoad(c[n], int(p.x)));"),
    ("texel_write", "imageStore(c[n], int(p.x), uvec4(n)); o = p;"),
    ("texel_atomic", "o = vec4(imageAtomicAdd(c[n], int(p.x), 1u));"),
    ("image_atomic", "o = vec4(imageAtomicMax(a[n], ivec2(p.xy), 4u));"),
    ("image_atomic_exchange", "o = vec4(imageAtomicCompSwap(a[n], ivec2(p.xy), 4u, 5u));"),
    ("separate", "o = texture(sampler2D(i[n], m[n + 1]), p.xy);"),
    (
        "separate_twice",
        "o = texture(sampler2D(i[n], m[1]), p.xy); imageStore(w[n], ivec2(0), o); o += texture(sampler2D(i[n], m[1]), p.yx);",
    ),
    ("after_write", "imageStore(w[n], ivec2(0), p); o = texture(sampler2D(i[1], m[n]), p.xy);"),
    ("known", "o = texture(t[2], p.xy) + texelFetch(t[1], ivec2(0), 0);"),
    (
        "loop",
        "o = p; for (uint k = 0; k < n; k++) { o += textureLod(t[k], p.xy, 0.0); imageStore(w[k], ivec2(k), o); }",
    ),
    ("discard", "o = texture(t[n], p.xy); if (o.x > 0.5) discard; o += texture(t[n + 1], p.xy);"),
    ("demote", "o = texture(t[n], p.xy); if (o.x > 0.5) demote; o += texture(t[n + 1], p.xy);"),
    ("masked", "o = texture(i_at(n & 3u), p.xy);"),
];

/// Every instruction that uses an image, with one of an array.
pub(crate) fn images() -> Vec<Shader> {
    let declarations = "
        layout(set=0, binding=0) uniform sampler2D t[6];
        layout(set=0, binding=1) uniform sampler2DShadow s[];
        layout(set=0, binding=2) uniform texture2D i[4];
        layout(set=0, binding=3) uniform sampler m[4];
        layout(set=0, binding=4, rgba8) uniform image2D w[3];
        layout(set=0, binding=5) uniform samplerBuffer b[3];
        layout(set=0, binding=6, r32ui) uniform uimageBuffer c[3];
        layout(set=0, binding=7, r32ui) uniform uimage2D a[3];
        layout(set=0, binding=8) uniform sampler2DMS ms[3];
        layout(set=0, binding=9) uniform textureBuffer tb;
        layout(location=0) flat in uint n;
        layout(location=1) in vec4 p;
        layout(location=0) out vec4 o;";
    let helper = "#define i_at(K) sampler2D(i[K], m[0])\n";
    let mut all: Vec<Shader> = Vec::new();
    for (name, body) in IMAGES {
        all.push(shader(
            format!("image_{name}"),
            "frag",
            &format!("{helper}{declarations}\nvoid main() {{ {body} }}\n"),
        ));
    }
    let parameter = "vec4 pick(sampler2D x, vec2 p) { return texture(x, p); }";
    let body =
        format!("{helper}{declarations}\n{parameter}\nvoid main() {{ o = pick(t[n], p.xy) + pick(t[0], p.yx); }}\n");
    all.push(shader("image_parameter", "frag", &body));
    all
}

/// Atomics, lengths, copies, constants and what else compute shaders do.
pub(crate) fn others() -> Vec<Shader> {
    let head = "layout(local_size_x = 8) in;
        struct S { uint x; vec3 y; mat3 z; };
        layout(set=0, binding=0) buffer B { uint n; uint a[]; } b;
        layout(set=0, binding=1) buffer C { S s[]; } c[3];
        layout(set=0, binding=2) uniform U { uint k; vec4 v[8]; layout(row_major) mat4x3 m[4]; mat4 c[2]; } u;
        layout(buffer_reference, std430) buffer R { uint n; S s[]; };
        layout(push_constant) uniform P { R r; uint q; } p;
        layout(constant_id = 3) const uint Z = 5;
        layout(constant_id = 1) const uint Y = 9;
        shared uint w[64];
        #define i gl_GlobalInvocationID.x\n";
    let bodies = [
        ("atomics", "atomicAdd(b.a[i], 1u); atomicMax(b.n, 3u); b.a[i + 1] = atomicExchange(b.a[i + 2], 4u);"),
        ("atomics_array", "atomicAdd(c[i].s[i].x, atomicCompSwap(c[0].s[i].x, 1u, 2u));"),
        ("atomics_address", "atomicAdd(p.r.s[i].x, 1u); atomicAdd(p.r.n, 2u);"),
        ("length", "b.n = b.a.length() + c[i].s.length();"),
        ("structure", "S s = c[1].s[i]; c[i].s[1] = s; p.r.s[i] = s; s = p.r.s[i + 1]; c[0].s[0] = s;"),
        ("matrix", "b.a[i] = uint(u.m[i][p.q].x + u.m[i][1][p.q] + u.c[p.q][i][2] + c[0].s[i].z[p.q][1]);"),
        ("vector", "b.a[i] = uint(u.v[p.q][i]); c[0].s[i].y[p.q] = 1.0;"),
        ("masked", "b.a[0] = uint(u.v[i & 7u].x + u.v[i % 8u].y + u.v[gl_LocalInvocationIndex].z);"),
        ("special", "uint l[Z]; l[i % Z] = Y; b.a[l[0]] = 4u;"),
        ("shared", "w[i & 63u] = b.a[i]; barrier(); b.a[i] = w[63u - (i & 63u)];"),
        ("constant", "b.a[3] = b.a[5] + b.a[0]; b.a[7] = u.k;"),
        ("header", "for (uint j = 0; b.a[j] != 0u; j++) { b.a[j] = 1u; }"),
        ("header_store", "uint j = 0; while (atomicAdd(b.a[j], 1u) < 10u) { j++; }"),
        ("calls", "for (int j = 0; j < 3; j++) { if (b.a[j] > 2u) return; }"),
        ("signed", "int j = int(i) - 5; b.a[j] = 3u; b.a[max(j, 0)] += 1u;"),
        ("wide", "uint64_t j = i; b.a[uint(j)] = 1u;"),
        ("pointer_loop", "R r = p.r; for (uint j = 0; j < 4u; j++) { r.s[j].x += r.n; r = R(uint64_t(r) + 16ul); }"),
    ];
    let model = "#pragma use_vulkan_memory_model\n#extension GL_KHR_memory_scope_semantics : require\n";
    let special = format!("{model}{head}void main() {{ atomicAdd(b.a[i], 1u); b.a[i + 1] = p.r.s[i].x; }}\n");
    let last = shader("memory_model", "comp", &special);
    bodies
        .iter()
        .map(|(name, body)| shader(*name, "comp", &format!("{head}void main() {{ {body} }}\n")))
        .chain([last])
        .collect()
}

const MESH: &str = "#extension GL_EXT_mesh_shader : require\n";
const RAYS: &str = "#extension GL_EXT_ray_tracing : require\n";
const QUERY: &str = "#extension GL_EXT_ray_query : require\n";
/// Shaders of stages: name, stage, extension, and the rest.
const STAGES: &[(&str, &str, &str, &str)] = &[
    ("vertex", "vert", "", "void main() { touch(gl_VertexIndex); gl_Position = vec4(b.a[gl_InstanceIndex]); }"),
    ("vertex_bare", "vert", "", "void main() { touch(p.q); gl_Position = vec4(1); }"),
    (
        "control",
        "tesc",
        "",
        "layout(vertices = 3) out; void main() { touch(gl_InvocationID); gl_TessLevelOuter[0] = 1.0; gl_out[gl_InvocationID].gl_Position = gl_in[gl_InvocationID].gl_Position; }",
    ),
    ("evaluation", "tese", "", "layout(triangles) in; void main() { touch(p.q); gl_Position = gl_in[0].gl_Position; }"),
    (
        "evaluation_coord",
        "tese",
        "",
        "layout(triangles) in; void main() { touch(gl_PrimitiveID); gl_Position = vec4(gl_TessCoord, 1); }",
    ),
    (
        "geometry",
        "geom",
        "",
        "layout(triangles) in; layout(triangle_strip, max_vertices = 3) out; void main() { touch(gl_InvocationID); gl_PrimitiveID = gl_PrimitiveIDIn; gl_Position = gl_in[0].gl_Position; EmitVertex(); touch(1); EndPrimitive(); }",
    ),
    (
        "fragment",
        "frag",
        "",
        "layout(location=0) out vec4 o; void main() { touch(uint(gl_FragCoord.x)); o = vec4(1); }",
    ),
    ("fragment_bare", "frag", "", "layout(location=0) out vec4 o; void main() { touch(p.q); o = vec4(1); }"),
    (
        "fragment_kill",
        "frag",
        "",
        "layout(location=0) out vec4 o; void gone(uint i) { touch(i); if (i > 2u) discard; touch(i + 1u); } void main() { gone(p.q); o = vec4(1); }",
    ),
    (
        "fragment_early",
        "frag",
        "",
        "layout(early_fragment_tests) in; layout(location=0) out vec4 o; void main() { if (p.q == 1u) return; touch(p.q); o = vec4(1); }",
    ),
    (
        "task",
        "task",
        MESH,
        "layout(local_size_x = 4) in; taskPayloadSharedEXT uint load; void main() { touch(gl_LocalInvocationIndex); load = 1u; EmitMeshTasksEXT(1, 1, 1); }",
    ),
    (
        "mesh",
        "mesh",
        MESH,
        "layout(local_size_x = 4) in; layout(triangles, max_vertices = 3, max_primitives = 1) out; void main() { SetMeshOutputsEXT(3, 1); touch(gl_GlobalInvocationID.x); gl_MeshVerticesEXT[0].gl_Position = vec4(1); gl_PrimitiveTriangleIndicesEXT[0] = uvec3(0, 1, 2); }",
    ),
    (
        "generation",
        "rgen",
        RAYS,
        "layout(location=0) rayPayloadEXT vec4 l; void main() { touch(gl_LaunchIDEXT.x); traceRayEXT(scene[p.q], 0, 255, 0, 0, 0, vec3(0), 0.0, vec3(1), 10.0, 0); touch(uint(l.x)); }",
    ),
    (
        "intersection",
        "rint",
        RAYS,
        "hitAttributeEXT vec2 h; void main() { touch(gl_PrimitiveID); h = vec2(1); reportIntersectionEXT(1.0, 0u); }",
    ),
    (
        "any_hit",
        "rahit",
        RAYS,
        "hitAttributeEXT vec2 h; void main() { touch(gl_PrimitiveID); if (h.x > 0.5) ignoreIntersectionEXT; touch(2); if (h.y > 0.5) terminateRayEXT; }",
    ),
    (
        "closest_hit",
        "rchit",
        RAYS,
        "layout(location=0) rayPayloadInEXT vec4 l; void main() { touch(gl_InstanceCustomIndexEXT); l = vec4(1); }",
    ),
    ("miss", "rmiss", RAYS, "layout(location=0) rayPayloadInEXT vec4 l; void main() { touch(p.q); l = vec4(0); }"),
    (
        "callable",
        "rcall",
        RAYS,
        "layout(location=0) callableDataInEXT vec4 l; void main() { touch(p.q); l = vec4(0); }",
    ),
    (
        "query",
        "comp",
        QUERY,
        "layout(local_size_x = 8) in; void main() { rayQueryEXT q; rayQueryInitializeEXT(q, scene[p.q], 0, 255, vec3(0), 0.0, vec3(1), 10.0); while (rayQueryProceedEXT(q)) { touch(1); } touch(gl_GlobalInvocationID.x); }",
    ),
];

/// Every stage.
pub(crate) fn stages() -> Vec<Shader> {
    let head = "layout(set=0, binding=0) buffer B { uint n; uint a[]; } b;
        layout(set=0, binding=1) uniform U { uint k[4]; } u[3];
        layout(buffer_reference, std430) buffer R { uint a[]; };
        layout(push_constant) uniform P { R r; uint q; } p;
        void touch(uint i) { b.a[i] = u[i].k[p.q] + p.r.a[i]; }\n";
    let scene = "layout(set=0, binding=3) uniform accelerationStructureEXT scene[2];\n";
    let mut made = Vec::new();
    for (name, stage, extension, body) in STAGES {
        let scene = if extension.contains("ray") { scene } else { "" };
        made.push(shader(format!("stage_{name}"), stage, &format!("{extension}{scene}{head}{body}\n")));
    }
    made
}
