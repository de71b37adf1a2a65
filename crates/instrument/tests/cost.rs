//! temp
mod common;
use common::{compile, instrumented, vulkan::Gpu};
use lavascope_instrument::{Guard, Options, Root};
use std::time::Instant;
#[test]
fn cost() {
    let gpu = Gpu::new();
    for (kind, n) in [(3, 50), (3, 200), (1, 200), (2, 200)] {
        let mut body = String::new();
        for k in 0..n {
            if kind & 1 != 0 {
                body += &format!("x += a[(i * {}u + {k}u) ^ x];\n", k + 3);
            }
            if kind & 2 != 0 {
                body += &format!("x += p.at[(x * {}u) ^ {k}u];\n", k + 5);
            }
        }
        let src = format!(
            "#version 460\n#extension GL_EXT_buffer_reference : require\nlayout(local_size_x=64) in;
            layout(set=0,binding=0) buffer A {{ uint a[]; }};
            layout(buffer_reference, std430, buffer_reference_align=4) buffer W {{ uint at[]; }};
            layout(push_constant) uniform P {{ W p; }};
            void main() {{ uint i = gl_GlobalInvocationID.x; uint x = i; {body} a[i] = x; }}"
        );
        let words = compile(&src, "comp", "vulkan1.3");
        for (name, w) in [("bare", None), ("select", Some(Guard::Select)), ("branch", Some(Guard::Branch))] {
            let made =
                w.map(|guard| instrumented(&words, &Options { guard, ..Options::new(Root::Descriptor { set: 7 }) }));
            let w = made.as_ref().map_or(&words, |it| &it.words);
            let mut best = f64::MAX;
            for _ in 0..3 {
                let t = Instant::now();
                gpu.create(w);
                best = best.min(t.elapsed().as_secs_f64());
            }
            if let Ok(dir) = std::env::var("COST_DUMP") {
                std::fs::write(
                    format!("{dir}/{kind}-{n}-{name}.spv"),
                    w.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<u8>>(),
                )
                .unwrap();
            }
            let dispatch = common::vulkan::Dispatch {
                bound: vec![common::vulkan::Bound::storage(0, vec![0; 64])],
                addressed: vec![vec![0; 64]],
                groups: 1,
                ..Default::default()
            };
            let mut whole = f64::MAX;
            for _ in 0..2 {
                let t = Instant::now();
                match &made {
                    Some(made) => drop(gpu.run_checked(made, Root::Descriptor { set: 7 }, &dispatch)),
                    None if kind == 1 => drop(gpu.run(w, &dispatch)),
                    None => {}
                }
                whole = whole.min(t.elapsed().as_secs_f64());
            }
            print!("run {:.1} ms ", whole * 1e3);
            println!("{kind} {n} {name}: {:.1} ms, {} bytes", best * 1e3, w.len() * 4);
        }
    }
}
