//! What shaders print: numbers of every type, and formats that do not fit their arguments.

mod common;

use common::{
    compile, instrumented, validation_errors,
    vulkan::{BoundBinding, Dispatch, DispatchOutcome, Gpu},
};
use lavascope_instrument::{Checks, InstrumentOptions, RootLocation, ShaderInvocation, print_problems};
use lavascope_spirv::Module;

fn kernel(body: &str) -> Vec<u32> {
    let extensions = [
        "GL_EXT_debug_printf",
        "GL_EXT_buffer_reference",
        "GL_EXT_buffer_reference_uvec2",
        "GL_EXT_shader_explicit_arithmetic_types",
        "GL_EXT_shader_explicit_arithmetic_types_float16",
    ];
    let head: String = extensions.iter().map(|it| format!("#extension {it} : require\n")).collect();
    let head = format!("#version 460\n{head}layout(local_size_x = 64) in;\n");
    compile(&format!("{head}layout(set = 0, binding = 0) buffer To {{ uint to[]; }};\n{body}"), "comp", "vulkan1.3")
}

fn run(gpu: &Gpu, words: &[u32], options: &InstrumentOptions) -> (DispatchOutcome, u32) {
    let made = instrumented(words, options);
    assert_eq!(validation_errors(&made.words, "vulkan1.3"), None);
    let bound = vec![BoundBinding::storage(0, vec![7, 0, 0, 0, 0, 0, 0, 0])];
    let dispatch = Dispatch { bound, groups: 1, ..Dispatch::default() };
    (gpu.run_checked(&made, options.root, &dispatch), made.numbered_sites)
}

/// The texts that a kernel prints.
fn printed(gpu: &Gpu, body: &str) -> Vec<String> {
    let words = kernel(body);
    let module = Module::parse(&words).expect("a module");
    let options = InstrumentOptions { prints: true, ..InstrumentOptions::new(RootLocation::Descriptor { set: 7 }) };
    let (outcome, _) = run(gpu, &words, &options);
    outcome.prints.iter().map(|it| it.text(&module).expect("a print")).collect()
}

#[test]
fn what_shaders_print_can_be_read() {
    let gpu = Gpu::new();
    let words = kernel(
        "void main() {
             uint i = gl_GlobalInvocationID.x;
             if (i == 3) debugPrintfEXT(\"%u of %d: %v2f and 100%%\", i, -5, vec2(0.5, 2.0));
             if (i == 4) to[100] = 1;
         }",
    );
    let module = Module::parse(&words).expect("a module");
    let roots =
        [RootLocation::Descriptor { set: 7 }, RootLocation::PushConstant { offset: 120 }, RootLocation::Specialization];
    for root in roots {
        let options = InstrumentOptions { prints: true, ..InstrumentOptions::new(root) };
        let (outcome, _) = run(&gpu, &words, &options);
        let [print] = &outcome.prints[..] else { panic!("{:?}", outcome.prints) };
        assert_eq!(print.text(&module).as_deref(), Some("3 of -5: 0.500000, 2.000000 and 100%"));
        assert_eq!(print.invocation, ShaderInvocation::Compute { invocation: [3, 0, 0] });
        assert_eq!(outcome.records.len(), 1, "faults are recorded beside it");
        let options = InstrumentOptions { checks: Checks::NONE, ..options };
        let (outcome, sites) = run(&gpu, &words, &options);
        assert_eq!((outcome.prints.len(), outcome.records.len(), sites), (1, 0, 0), "nothing else is added");
    }
}

/// `n` is 7; the compiler does not know that.
#[test]
fn numbers_of_every_type_are_printed() {
    const PRINTS: [(&str, &str); 20] = [
        (r#""%f %d", double(n) / 4.0lf, 5"#, "1.750000 5"),
        (r#""%.3lf|%g", double(n), -double(n)"#, "7.000|-7"),
        (r#""%v3f", dvec3(n, 1, -int(n))"#, "7.000000, 1.000000, -7.000000"),
        (r#""%ld %d", -int64_t(n), 5"#, "-7 5"),
        (r#""%lu %lx", 0xffffffff00000000ul + n, uint64_t(n) << 40"#, "18446744069414584327 70000000000"),
        (r#""%ul|%d", uint64_t(n) << 40, 3"#, "70000000000|3"),
        (r#""%v2ld", i64vec2(-int64_t(n), 1)"#, "-7, 1"),
        (r#""%v4lx", u64vec4(n, 1, 2, 0xabcdef0123456789ul)"#, "7, 1, 2, abcdef0123456789"),
        (r#""%v2ul", u64vec2(n, 255)"#, "7, ff"),
        (r#""%d %x %u", int8_t(-int(n)), int8_t(-int(n)), uint8_t(200 + n)"#, "-7 fffffff9 207"),
        (r#""%hhx %hx", int8_t(-int(n)), int16_t(-int(n))"#, "f9 fff9"),
        (r#""%v3d", i8vec3(-int(n), 1, 2)"#, "-7, 1, 2"),
        (r#""%v2u", u16vec2(n, 65535)"#, "7, 65535"),
        (r#""%v4d", i16vec4(-int(n), 32767, -32768, 0)"#, "-7, 32767, -32768, 0"),
        (r#""%f %.1v2f", float16_t(n), f16vec2(n, -0.5)"#, "7.000000 7.0, -0.5"),
        (r#""%d %u", n == 7, n == 8"#, "1 0"),
        (r#""%v2d", bvec2(n == 7, n == 8)"#, "1, 0"),
        (r#""[%-6d|%+.2e|%06.2f|%#x]", n, float(n), float(n), n"#, "[7     |+7.00e+00|007.00|0x7]"),
        (r#""%*d|%-*.*f|", 4, n, 8, 2, float(n)"#, "   7|7.00    |"),
        (r#""%a %c", 1.5 * float(n), 65 + n"#, "0x1.5p+3 H"),
    ];
    let calls: String =
        PRINTS.iter().enumerate().map(|(at, it)| format!("if (i == {at}) debugPrintfEXT({});\n", it.0)).collect();
    let gpu = Gpu::new();
    let mut texts = printed(&gpu, &format!("void main() {{ uint i = gl_GlobalInvocationID.x, n = to[0];\n{calls}}}"));
    texts.sort_unstable();
    let mut expected = PRINTS.map(|it| it.1.to_owned());
    expected.sort_unstable();
    assert_eq!(texts, expected);
}

#[test]
fn addresses_are_printed() {
    let gpu = Gpu::new();
    let body = "layout(buffer_reference) buffer Far { uint far[]; };
        void main() {
            Far far = Far(uvec2(0x12345678u + to[1], to[0]));
            if (gl_GlobalInvocationID.x == 0) debugPrintfEXT(\"%p %20p|\", far, far);
        }";
    assert_eq!(printed(&gpu, body), ["0x712345678          0x712345678|"]);
}

/// What is wrong with the print of a kernel: whether nothing is printed, and the text.
fn problems(print: &str) -> Vec<(bool, String)> {
    let words = kernel(&format!("void main() {{ debugPrintfEXT({print}); }}"));
    let module = Module::parse(&words).expect("a module");
    print_problems(&module).into_iter().map(|it| (it.1.is_error, it.1.text)).collect()
}

#[test]
fn formats_that_do_not_fit_are_reported_with_their_position() {
    const ERRORS: [(&str, &str); 9] = [
        (r#""x % y""#, "position 3 of \"x % y\" has the conversion specifier `y`"),
        (r#""50%""#, "position 3 of \"50%\" has no conversion specifier"),
        (r#""%q", 1"#, "position 1 of \"%q\" has the conversion specifier `q`, which does not exist"),
        (r#""%v5f", vec4(0)"#, "is a vector without a number of components"),
        (r#""%d %d", 1"#, "\"%d %d\" needs 2 arguments, and there are 1"),
        (r#""%v2f", 1.0"#, "is for a vector, and its argument is none"),
        (r#""a %f", vec2(0)"#, "position 3 of \"a %f\" is for a scalar, and its argument is a vector"),
        (r#""%99999d", 1"#, "has the size 99999; sizes go up to 4095"),
        (r#""%*d", 1.0, 2"#, "has a `*`, but its argument is no integer"),
    ];
    let many = format!(r#""{}"{}"#, "%d".repeat(65), ", 1".repeat(65));
    assert!(matches!(&problems(&many)[..], [(true, text)] if text.contains("has arguments of 65 words; at most 64")));
    for (print, expected) in ERRORS {
        let found = problems(print);
        assert!(matches!(&found[..], [(true, text)] if text.contains(expected)), "{print}: {found:?}");
    }
    const WARNINGS: [(&str, &str); 6] = [
        (r#""%d", 1, 2"#, "has conversions for 1 of 2 arguments"),
        (r#""%v2f", vec3(0)"#, "is for a vector of 2 components, and its argument has 3"),
        (r#""%d", 1.0"#, "is for an integer, and its argument is a floating-point number"),
        (r#""%f", 1"#, "is for a floating-point number, and its argument is none"),
        (r#""%u", 1ul"#, "is for 32 bits, and its argument has 64"),
        (r#""%lu", 1u"#, "is for 64 bits, and its argument has fewer"),
    ];
    for (print, expected) in WARNINGS {
        let found = problems(print);
        assert!(matches!(&found[..], [(false, text)] if text.contains(expected)), "{print}: {found:?}");
    }
    for print in [r#""nothing, 100%%""#, r#""%d %v3f %lx", 1, vec3(0), 1ul"#, r#""%f %lf", 1.0lf, 1.0lf"#] {
        assert_eq!(problems(print), [], "{print}");
    }
}

/// A print with an error prints nothing, and the others go on.
#[test]
fn a_print_with_an_error_is_left_out() {
    let body = "void main() {
        if (gl_GlobalInvocationID.x == 0) debugPrintfEXT(\"%d %d\", 1);
        if (gl_GlobalInvocationID.x == 1) debugPrintfEXT(\"%v2f|%d\", vec3(1, 2, 3), to[0]);
    }";
    assert_eq!(printed(&Gpu::new(), body), ["1.000000, 2.000000|7"]);
}
