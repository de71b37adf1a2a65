//! Accesses in the names of the source, whatever its lines are.

mod common;

use common::{shader, words};
use lavascope_spirv::{AccessDescription, InstructionIndex, Module};
use spirv::Op;

/// What the stores and loads of a module access that go to resources.
fn accesses(module: &Module) -> Vec<AccessDescription> {
    let all = (0..module.len()).map(|it| module.instruction(InstructionIndex(it)));
    let memory = all.filter(|it| it.is(Op::Store) || it.is(Op::Load) || it.is(Op::ImageFetch));
    memory.filter_map(|it| module.describe_access(it.at)).filter(|it| !it.path.is_empty()).collect()
}

#[test]
fn members_and_indices_have_the_names_of_the_source() {
    let all = accesses(&shader("arrays.comp"));
    let texts: Vec<String> = all.iter().map(|it| it.text(None, Some(7))).collect();
    for text in ["fixed_[3].words[0]", "fixed_[7].words[2]", "open[5]", "open[7]", "which"] {
        assert!(texts.iter().any(|it| it == text), "{text}: {texts:?}");
    }
    let chosen = all.iter().find(|it| it.ordinal == 3 && it.is_write).map(|it| it.text(Some(2), Some(9)));
    assert_eq!(chosen.as_deref(), Some("fixed_[2].words[3]"));
    assert!(all.iter().all(|it| it.function == "main"), "{all:?}");
    let writes: Vec<_> = all.iter().filter(|it| it.is_write).map(|it| (it.ordinal, it.variable.as_deref())).collect();
    assert_eq!(writes, (0..4).map(|it| (it, Some("fixed_"))).collect::<Vec<_>>());
}

#[test]
fn a_new_line_changes_no_description() {
    for path in common::compiled() {
        let before = words(&path);
        let module = Module::parse(&before).expect("a module");
        let mut after = before.clone();
        let mut at = 5;
        while at < after.len() {
            if after[at] & 0xffff == Op::Line as u32 {
                after[at + 2] += 1;
            }
            at += (after[at] >> 16).max(1) as usize;
        }
        let other = Module::parse(&after).expect("a module");
        assert_eq!(accesses(&module), accesses(&other), "{}", path.display());
    }
}

#[test]
fn what_is_no_access_has_no_description() {
    let module = shader("arrays.comp");
    assert_eq!(module.describe_access(InstructionIndex(0)), None);
    assert_eq!(module.describe_access(InstructionIndex(u32::MAX)), None);
}
