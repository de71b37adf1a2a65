//! Samples under the layer on the null driver under valgrind: nothing of ours is lost or used wrongly.

use std::path::Path;

use crate::test_environment::{TestEnvironment, samples, succeed};

const OURS: [&str; 2] = ["libVkLayer_lavascope.so", "liblavascope_null_driver.so"];
/// What a static still has at the end; a hash map is "possibly lost" because it points behind its beginning.
const HARMLESS: [&str; 2] = ["Leak_StillReachable", "Leak_PossiblyLost"];

#[test]
fn one_thread_leaks_nothing() {
    examine("triangle-dynamic");
}

#[test]
fn many_threads_leak_nothing() {
    examine("threads");
}

#[test]
fn a_swapchain_leaks_nothing() {
    examine("present");
}

fn examine(name: &str) {
    let stage = TestEnvironment::new(&format!("valgrind-{name}"));
    let mut command = stage.under_layer_with_report(&["--null-driver"], "valgrind");
    // The loader unloads libraries; without their names the stacks would say nothing.
    command.args(["--leak-check=full", "--show-leak-kinds=all", "--keep-debuginfo=yes", "--num-callers=60"]);
    command.args(["--quiet", "--xml=yes", "--xml-file=valgrind.xml"]).arg(samples()).args([name, "--no-check"]);
    succeed(&mut command);
    stage.report().assert_clean(name);
    let errors = errors(&stage.folder.join("valgrind.xml"));
    // Statics of ours remain until the end, so stacks of ours are recognized.
    assert!(errors.iter().any(|it| is_ours(it)), "no stack of {} errors is ours", errors.len());
    for error in errors.iter().filter(|it| is_ours(it)) {
        let kind = element(error, "kind").expect("every error has a kind");
        assert!(HARMLESS.contains(&kind), "{name}: {kind}: {}", described(error));
    }
}

/// The text of each error.
fn errors(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("what valgrind wrote");
    assert!(text.trim_end().ends_with("</valgrindoutput>"), "valgrind did not finish");
    text.split("<error>").skip(1).filter_map(|it| it.split("</error>").next()).map(str::to_owned).collect()
}

fn is_ours(error: &str) -> bool {
    OURS.iter().any(|it| error.contains(&format!("/{it}</obj>")))
}

/// The content of the first element of that name.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split_once(&format!("<{name}>"))?.1.split("<").next()
}

/// What it is, and the functions on its way.
fn described(error: &str) -> String {
    let what = element(error, "text").or_else(|| element(error, "what")).unwrap_or_default();
    let frames = error.split("<frame>").skip(1).map(|text| {
        let part = |name| element(text, name).unwrap_or("?");
        format!("  {} ({}:{})", part("fn"), part("file"), part("line"))
    });
    [what.to_owned()].into_iter().chain(frames).collect::<Vec<_>>().join("\n")
}
