//! Makes a program as small as it gets while something about it stays true.

use lavascope_sync_ir::Program;

use super::edit::{EditSet, apply_edit, count_edits};

/// Edits that `is_interesting` undoes, to make a program valid, would go on forever.
const STEPS_MAX: usize = 400;

/// The smallest program that small edits lead to and that `is_interesting` still accepts.
pub fn shrink(program: &Program, is_interesting: &dyn Fn(&Program) -> bool) -> Program {
    let mut smallest = program.clone();
    for _ in 0..STEPS_MAX {
        let numbers = 0..count_edits(&smallest, EditSet::All);
        let next = numbers.map(|it| apply_edit(&smallest, EditSet::All, it)).find(|it| is_interesting(it));
        match next {
            Some(next) => smallest = next,
            None => break,
        }
    }
    clear_unused_buffers(smallest)
}

/// Empties command buffers that nothing uses; their numbers stay.
pub fn clear_unused_buffers(mut program: Program) -> Program {
    let mut used = vec![false; program.command_buffers.len()];
    let mut open: Vec<usize> = submitted(&program);
    while let Some(item) = open.pop() {
        if !std::mem::replace(&mut used[item], true) {
            open.extend(executed(&program, item));
        }
    }
    let unused = program.command_buffers.iter_mut().zip(used).filter(|(_, used)| !used);
    unused.for_each(|(buffer, _)| buffer.commands.clear());
    program
}

fn submitted(program: &Program) -> Vec<usize> {
    let batches = program.steps.iter().flat_map(|step| match step {
        lavascope_sync_ir::HostStep::Submit { batches, .. } => batches.as_slice(),
        _ => &[],
    });
    batches.flat_map(|it| it.command_buffers.iter().map(|it| it.0 as usize)).collect()
}

fn executed(program: &Program, buffer: usize) -> Vec<usize> {
    let commands = program.command_buffers[buffer].commands.iter();
    let lists = commands.filter_map(|command| match command {
        lavascope_sync_ir::Command::Execute(buffers) => Some(buffers),
        _ => None,
    });
    lists.flatten().map(|it| it.0 as usize).collect()
}
