//! Command buffers of one queue family each: a command pool belongs to a family, and so do its command buffers.

use std::collections::BTreeMap;

use lavascope_sync_ir::{Command, CommandBufferId, HostStep, Program};

/// The program with a copy of a command buffer for each queue family beyond the first one that executes it.
pub(crate) fn with_buffers_of_one_family(program: &Program) -> Program {
    let mut made = program.clone();
    let mut buffers = FamilyBuffers::default();
    let mut steps = std::mem::take(&mut made.steps);
    for step in &mut steps {
        let HostStep::Submit { queue, batches, .. } = step else { continue };
        let family = program.queues[queue.0 as usize].family;
        for buffer in batches.iter_mut().flat_map(|it| &mut it.command_buffers) {
            *buffer = buffers.of_family(&mut made, *buffer, family);
        }
    }
    made.steps = steps;
    made
}

#[derive(Default)]
struct FamilyBuffers {
    /// The first family that executes a command buffer.
    first: BTreeMap<CommandBufferId, u32>,
    copies: BTreeMap<(CommandBufferId, u32), CommandBufferId>,
}

impl FamilyBuffers {
    fn of_family(&mut self, program: &mut Program, buffer: CommandBufferId, family: u32) -> CommandBufferId {
        if *self.first.entry(buffer).or_insert(family) == family {
            self.replace_executed(program, buffer, family);
            return buffer;
        }
        if let Some(copy) = self.copies.get(&(buffer, family)) {
            return *copy;
        }
        let copy = CommandBufferId(program.command_buffers.len() as u32);
        program.command_buffers.push(program.command_buffers[buffer.0 as usize].clone());
        self.copies.insert((buffer, family), copy);
        self.first.insert(copy, family);
        self.replace_executed(program, copy, family);
        copy
    }

    fn replace_executed(&mut self, program: &mut Program, buffer: CommandBufferId, family: u32) {
        let mut commands = program.command_buffers[buffer.0 as usize].commands.clone();
        for command in &mut commands {
            let Command::Execute(all) = command else { continue };
            all.iter_mut().for_each(|it| *it = self.of_family(program, *it, family));
        }
        program.command_buffers[buffer.0 as usize].commands = commands;
    }
}
