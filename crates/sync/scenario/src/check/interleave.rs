//! The orders in which the steps of threads can arrive.

use lavascope_sync_ir::HostStep;

use crate::{Scenario, Variation};

/// The scenario with the steps of neighboring threads in every order that keeps each thread's own, up to `count_max`.
pub fn interleavings(scenario: &Scenario, count_max: usize) -> Vec<Variation> {
    let mut orders: Vec<Vec<u32>> = vec![Vec::new()];
    let mut now = 0;
    let mut threads = scenario.threads.iter().peekable();
    while let Some(first) = threads.next() {
        let mut group = vec![first.steps.clone()];
        while let Some(next) = threads.next_if(|it| it.steps.start == group[group.len() - 1].end) {
            group.push(next.steps.clone());
        }
        let serial = now..first.steps.start;
        now = group[group.len() - 1].end;
        let merged = merges(&group, count_max);
        orders = orders
            .iter()
            .flat_map(|head| {
                merged
                    .iter()
                    .map(|tail| head.iter().copied().chain(serial.clone()).chain(tail.iter().copied()).collect())
            })
            .take(count_max)
            .collect();
    }
    let end = now..scenario.program.steps.len() as u32;
    orders.into_iter().enumerate().map(|(at, order)| variation(scenario, at, order, end.clone())).collect()
}

fn variation(scenario: &Scenario, at: usize, mut steps: Vec<u32>, end: std::ops::Range<u32>) -> Variation {
    steps.extend(end);
    let mut program = scenario.program.clone();
    program.steps = steps.iter().map(|it| step(scenario, *it)).collect();
    Variation { name: format!("interleaving {at}"), program, steps }
}

fn step(scenario: &Scenario, at: u32) -> HostStep {
    scenario.program.steps[at as usize].clone()
}

/// All merges of ranges; the first has one range behind the other.
fn merges(ranges: &[std::ops::Range<u32>], count_max: usize) -> Vec<Vec<u32>> {
    let mut found = Vec::new();
    let mut left = ranges.to_vec();
    extend(&mut left, &mut Vec::new(), &mut found, count_max);
    found
}

fn extend(left: &mut [std::ops::Range<u32>], order: &mut Vec<u32>, found: &mut Vec<Vec<u32>>, count_max: usize) {
    if found.len() >= count_max {
        return;
    }
    if left.iter().all(|it| it.is_empty()) {
        found.push(order.clone());
        return;
    }
    for at in 0..left.len() {
        let before = left[at].clone();
        let Some(step) = left[at].next() else { continue };
        order.push(step);
        extend(left, order, found, count_max);
        order.pop();
        left[at] = before;
    }
}
