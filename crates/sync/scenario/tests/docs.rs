//! The examples of `docs/scenarios.md` are scenarios, in canonical form.

use lavascope_scenario::{parse, print};

#[test]
fn every_example_is_canonical() {
    let page = include_str!("../../../../docs/scenarios.md");
    let mut examples = 0;
    for block in page.split("```text\n").skip(1) {
        let text = block.split("```").next().expect("a block has an end");
        let scenario = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(print(&scenario), text);
        examples += 1;
    }
    assert_eq!(examples, 5);
}
