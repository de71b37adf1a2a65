//! Compute shaders in HLSL, made of small parts as those in GLSL are.

use super::corpus::{FLOWS, Shader};

/// Memory that is accessed: what declares it, how it is read with `I` and `J` for indices, and how `V` is written.
const MEMORY: &[(&str, &str, &str, &str)] = &[
    ("structured", "[[vk::binding(0)]] RWStructuredBuffer<uint> b;", "b[I]", "b[I] = V"),
    (
        "structure",
        "struct S { float3 x; uint y[3]; float2x3 z; }; [[vk::binding(0)]] RWStructuredBuffer<S> b;",
        "b[I].y[J] + uint(b[I].x[J]) + uint(b[I].z[1][J])",
        "b[I].y[J] = V; b[I].x = float3(V, 1, 2)",
    ),
    (
        "whole",
        "struct S { uint x; uint y[3]; }; [[vk::binding(0)]] RWStructuredBuffer<S> b;",
        "b[I].x",
        "S s = b[I]; s.y[J] = V; b[I + 1] = s",
    ),
    ("bytes", "[[vk::binding(0)]] RWByteAddressBuffer b;", "b.Load(I * 4) + b.Load2(I * 8).y", "b.Store(I * 4, V)"),
    ("texels", "[[vk::binding(0)]] RWBuffer<uint> b;", "b[I]", "b[I] = V"),
    (
        "two",
        "[[vk::binding(0)]] RWStructuredBuffer<uint> b; [[vk::binding(2)]] StructuredBuffer<uint4> c; [[vk::binding(3)]] Buffer<uint> d;",
        "c[I][J] + d[I]",
        "b[I] = V",
    ),
    (
        "shared",
        "groupshared uint w[8]; [[vk::binding(0)]] RWStructuredBuffer<uint> b;",
        "b[I]",
        "w[(I >> 6) & 7] = V; b[I] = w[(I >> 6) & 7] + 1",
    ),
    ("atomic", "[[vk::binding(0)]] RWByteAddressBuffer b;", "b.Load(I * 4)", "uint o; b.InterlockedAdd(I * 4, V, o)"),
    (
        "constants",
        "[[vk::binding(0)]] RWStructuredBuffer<uint> b; [[vk::binding(2)]] cbuffer C { uint4 table[600]; row_major float3x4 m[4]; };",
        "table[I][J] + uint(m[J][1][J])",
        "b[I] = V",
    ),
];

/// Flows that HLSL does not know in this form.
const LEFT_OUT: &[&str] = &["switch"];

pub(crate) fn all() -> Vec<Shader> {
    let mut all = Vec::new();
    for (memory, declaration, read, write) in MEMORY {
        for (flow, shape) in FLOWS.iter().filter(|it| !LEFT_OUT.contains(&it.0)) {
            let mut number = 0;
            // A name may be declared once in a block.
            let body: String = shape
                .split('X')
                .enumerate()
                .map(|(at, part)| {
                    number += 1;
                    let statement = format!(
                        "{{ v = {read}; uint w{number} = v + v; {}; }}",
                        write.replace('V', &format!("w{number}"))
                    );
                    if at == 0 { part.to_owned() } else { format!("{statement}{part}") }
                })
                .collect();
            let helper = format!("void helper() {{ v = {read}; uint w0 = v + 1; {}; }}", write.replace('V', "w0"));
            let source = format!(
                "{declaration}\nstatic uint I; static uint J; static uint v;\n{helper}\n\
                 [[vk::binding(1)]] cbuffer U {{ uint first; uint second; }};\n\
                 [numthreads(8, 1, 1)] void main(uint3 id : SV_DispatchThreadID) {{\n\
                 I = id.x * 64 + first; J = second;\n{body}\n}}\n"
            );
            all.push(Shader { name: format!("hlsl_{memory}_{flow}"), stage: "comp", source });
        }
    }
    all
}
