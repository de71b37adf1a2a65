//! Compiling, checking and disassembling modules with the tools of others.

#![allow(dead_code, reason = "no test binary uses all of it")]

use std::{
    collections::BTreeSet,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use lavascope_instrument::{Guard, InstrumentOptions, InstrumentedModule, RootLocation, instrument};
use lavascope_spirv::Module;

pub(crate) mod corpus;
pub(crate) mod corpus_dispatch;
pub(crate) mod hlsl;
pub(crate) mod mutate;
pub(crate) mod test_images;
pub(crate) mod vulkan;

/// All ways of instrumentation that are tested.
pub(crate) fn all_options() -> Vec<InstrumentOptions> {
    let roots =
        [RootLocation::Descriptor { set: 7 }, RootLocation::PushConstant { offset: 120 }, RootLocation::Specialization];
    let mut all = Vec::new();
    for root in roots {
        for guard in [Guard::Select, Guard::Branch] {
            for immediate in [BTreeSet::new(), (0..500).collect()] {
                let touches = matches!(root, RootLocation::PushConstant { .. });
                let zeros = root == RootLocation::Specialization;
                all.push(InstrumentOptions {
                    guard,
                    immediate,
                    prints: true,
                    touches,
                    zero_faulty_loads: zeros,
                    ..InstrumentOptions::new(root)
                });
            }
        }
    }
    all
}

pub(crate) fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

/// Every compiled shader of the repository.
pub(crate) fn compiled_shaders() -> Vec<(String, Vec<u32>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folders = ["spirv/tests/shaders", "../dev/samples/shaders"].map(|it| root.join(it));
    let files = folders.iter().flat_map(|it| std::fs::read_dir(it).expect("the folder of the shaders"));
    let mut paths: Vec<PathBuf> = files.map(|it| it.expect("a file").path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "spv"));
    paths.sort();
    let name = |it: &Path| it.file_name().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|it| (name(it), words(&std::fs::read(it).expect("a shader")))).collect()
}

/// Compute shaders that were compiled from WGSL and Slang.
pub(crate) fn wgsl_and_slang_shaders() -> Vec<(String, Vec<u32>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shaders");
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder of the shaders").map(|it| it.expect("a file").path()).collect();
    paths.retain(|it| it.extension().is_some_and(|it| it == "spv"));
    paths.sort();
    let name = |it: &Path| it.file_stem().expect("a name").to_string_lossy().into_owned();
    paths.iter().map(|it| (name(it), without_language(words(&std::fs::read(it).expect("a shader"))))).collect()
}

/// Older validators know no number for the newer languages.
fn without_language(mut words: Vec<u32>) -> Vec<u32> {
    let module = Module::parse(&words).expect("a module");
    let sources: Vec<usize> =
        module.all().filter(|it| it.is(spirv::Op::Source)).map(|it| module.words_of(0..it.at.0) + 5).collect();
    sources.iter().for_each(|it| words[it + 1] = 0);
    words
}

/// Gives bytes to a tool and takes what it prints.
fn run_tool(program: &str, package: &str, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut tool = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|_| panic!("{program}: on Debian and Ubuntu `apt-get install {package}` brings it"));
    tool.stdin.take().expect("a pipe").write_all(input).expect("the tool reads");
    let output = tool.wait_with_output().expect("the tool ends");
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|it| it.to_le_bytes()).collect()
}

/// The errors that the validator finds in a module.
pub(crate) fn validation_errors(words: &[u32], environment: &str) -> Option<String> {
    let arguments = ["--target-env", environment, "--scalar-block-layout", "-"];
    run_tool("spirv-val", "spirv-tools", &arguments, &bytes(words)).err()
}

pub(crate) fn disassemble(words: &[u32]) -> String {
    let text = run_tool("spirv-dis", "spirv-tools", &["--no-color", "--raw-id", "-"], &bytes(words)).expect("a module");
    String::from_utf8(text).expect("text")
}

pub(crate) fn optimize(words: &[u32], environment: &str) -> Vec<u32> {
    let target = format!("--target-env={environment}");
    let arguments = [&target, "--scalar-block-layout", "--preserve-bindings", "-O", "-", "-o", "-"];
    self::words(&run_tool("spirv-opt", "spirv-tools", &arguments, &bytes(words)).expect("the optimizer does"))
}

pub(crate) fn assemble(text: &str) -> Vec<u32> {
    let arguments = ["--target-env", "vulkan1.3", "-", "-o", "-"];
    words(&run_tool("spirv-as", "spirv-tools", &arguments, text.as_bytes()).expect("it assembles"))
}

/// Compiles GLSL of a stage (`comp`, `frag` and so on).
pub(crate) fn compile(source: &str, stage: &str, environment: &str) -> Vec<u32> {
    compile_with(source, &["--stdin", "-V", "-g", "--target-env", environment, "-S", stage])
}

/// Compiles HLSL of a compute shader.
pub(crate) fn compile_hlsl(source: &str, environment: &str) -> Vec<u32> {
    compile_with(source, &["--stdin", "-V", "-D", "-e", "main", "-g", "--target-env", environment, "-S", "comp"])
}

fn compile_with(source: &str, arguments: &[&str]) -> Vec<u32> {
    use std::sync::atomic::{AtomicU32, Ordering};
    // Relaxed: the numbers only have to differ.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let target = std::env::temp_dir().join(format!("lavascope-{}-{number}.spv", std::process::id()));
    let path = target.to_string_lossy().into_owned();
    let arguments = [arguments, &["--quiet", "-o", &path]].concat();
    if let Err(error) = run_tool("glslangValidator", "glslang-tools", &arguments, source.as_bytes()) {
        panic!("{error}\n{source}");
    }
    let compiled = words(&std::fs::read(&target).expect("a compiled shader"));
    std::fs::remove_file(&target).expect("a file that goes");
    compiled
}

pub(crate) fn instrumented(words: &[u32], options: &InstrumentOptions) -> InstrumentedModule {
    instrument(&Module::parse(words).expect("a module"), options).expect("a module that can be instrumented")
}
