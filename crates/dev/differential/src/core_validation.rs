//! Random programs under the core validation of the Khronos layer: whether the judge compares valid programs.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Result, ensure};
use lavascope_sim::programs::shrink;
use lavascope_sync_ir::Program;

use crate::judge::JudgeFolder;
use crate::layer_process::{ComparedLayer, LayerProcess};
use crate::random_programs::{QUEUE_FLAGS, RandomRun, is_judged, performable_program, text_of, valid_program};
use crate::worker::{LayerMessage, WorkerAnswer};

/// Rules that performances break by design, each with the reason.
const BROKEN_BY_DESIGN: &[(&str, &str)] = &[
    ("VUID-VkSwapchainCreateInfoKHR-presentMode-02839", ONE_IMAGE),
    ("VUID-VkSwapchainCreateInfoKHR-imageFormat-01273", ONE_IMAGE),
    ("VUID-VkPresentInfoKHR-pImageIndices-01430", NO_LAYOUTS),
    ("VUID-vkCmdBeginRenderPass2-initialLayout-03100", NO_LAYOUTS),
    ("VUID-vkCmdClearDepthStencilImage-imageLayout-00011", NO_LAYOUTS),
    ("UNASSIGNED-vkCmdExecuteCommands-commandBuffer-00001", NO_LAYOUTS),
    ("VUID-vkCmdClearColorImage-imageLayout-00004", NO_LAYOUTS),
    ("VUID-vkCmdResetEvent-event-03834", EVENT_RACE),
    ("VUID-vkCmdResetEvent-event-03835", EVENT_RACE),
    ("VUID-vkCmdResetEvent2-event-03831", EVENT_RACE),
    ("VUID-vkCmdResetEvent2-event-03832", EVENT_RACE),
];
const EVENT_RACE: &str = "programs whose commands race for an event are performed, and not compared";
const ONE_IMAGE: &str = "a program has one image of a few texels to present, of any format";
const NO_LAYOUTS: &str = "programs have no layouts outside of render passes";

/// How often a rule is broken, and where first.
struct BrokenRule {
    programs: u64,
    seed: u64,
    text: String,
}

pub(crate) fn run(request: &RandomRun) -> Result<()> {
    let chosen = request.chosen_features()?;
    let folder = JudgeFolder::new()?;
    let mut layer = LayerProcess::new(ComparedLayer::PeerCore, folder.path(), &QUEUE_FLAGS)?;
    let (begin, mut performed, mut invalid) = (Instant::now(), 0, 0u64);
    let mut broken: BTreeMap<String, BrokenRule> = BTreeMap::new();
    for seed in request.seed..request.seed + request.programs {
        let program = performable_program(seed, &chosen[seed as usize % chosen.len()].1);
        let messages = match layer.perform(&text_of(&program))? {
            WorkerAnswer::Performed(messages) => messages,
            WorkerAnswer::Unsupported(_) => continue,
            WorkerAnswer::Failed(why) | WorkerAnswer::Crashed(why) => {
                println!("seed {seed}: {why}");
                continue;
            }
        };
        performed += 1;
        let mut rules: Vec<&LayerMessage> = messages.iter().filter(|it| !is_by_design(it)).collect();
        rules.sort_by(|one, other| one.name.cmp(&other.name));
        rules.dedup_by(|one, other| one.name == other.name);
        invalid += u64::from(!rules.is_empty());
        for message in rules {
            let made = || BrokenRule { programs: 0, seed, text: message.text.clone() };
            broken.entry(message.name.clone()).or_insert_with(made).programs += 1;
        }
    }
    for (rule, BrokenRule { programs, seed, text }) in &broken {
        println!("{programs} programs break {rule}, first seed {seed}: {text}");
    }
    for (rule, BrokenRule { seed, .. }) in broken.iter().take(request.shown_max) {
        let program = performable_program(*seed, &chosen[*seed as usize % chosen.len()].1);
        println!("seed {seed}, {rule}:\n{}", smallest_that_breaks(&mut layer, &program, rule));
    }
    println!("{performed} random programs under core validation in {:.1} s", begin.elapsed().as_secs_f64());
    println!("{} rules are broken, {invalid} random programs are not valid", broken.len());
    ensure!(broken.is_empty(), "{invalid} random programs are not valid");
    Ok(())
}

fn is_by_design(message: &LayerMessage) -> bool {
    BROKEN_BY_DESIGN.iter().any(|it| it.0 == message.name)
}

/// The text of a small program that breaks the same rule.
fn smallest_that_breaks(layer: &mut LayerProcess, program: &Program, rule: &str) -> String {
    let shared = RefCell::new(layer);
    let breaks = |candidate: &Program| {
        let candidate = valid_program(candidate);
        let answer = is_judged(&candidate).then(|| shared.borrow_mut().perform(&text_of(&candidate)));
        matches!(answer, Some(Ok(WorkerAnswer::Performed(messages))) if messages.iter().any(|it| it.name == rule))
    };
    text_of(&valid_program(&shrink(program, &breaks)))
}
