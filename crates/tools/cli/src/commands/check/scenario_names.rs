//! What the things of a program are called that was written as a scenario: its own names, and lines of its text.

use lavascope_diag::DiagnosticObject;
use lavascope_explain::{NumberedNames, ProgramNames};
use lavascope_scenario::{ScenarioSource, StatementId, TextLocation};
use lavascope_sync_ir::{
    CommandBufferId, CommandLocation, EventId, FenceId, HostStep, ProgramLocation, QueueId, Region, RenderPassId,
    ResourceId, SemaphoreId,
};

pub(crate) struct ScenarioNames<'a>(pub(crate) &'a ScenarioSource<'a>);

impl ScenarioNames<'_> {
    fn spot(&self, site: StatementId) -> Option<TextLocation<'_>> {
        self.0.location(site)
    }

    /// How often a primary command buffer is executed.
    fn executions(&self, buffer: CommandBufferId) -> usize {
        let steps = self.0.scenario.program.steps.iter();
        let batches =
            steps.filter_map(|it| if let HostStep::Submit { batches, .. } = it { Some(batches) } else { None });
        batches.flatten().flat_map(|it| &it.command_buffers).filter(|it| **it == buffer).count()
    }
}

impl ProgramNames for ScenarioNames<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        name(&self.0.scenario.names.resources, resource.0)
    }

    fn region(&self, resource: ResourceId, region: &Region) -> String {
        self.0.part(resource, region)
    }

    fn object(&self, resource: ResourceId) -> DiagnosticObject {
        DiagnosticObject {
            name: Some(self.resource(resource)),
            ..NumberedNames(&self.0.scenario.program).object(resource)
        }
    }

    /// What is written there, without the number of its line: texts change above it.
    fn path(&self, place: &ProgramLocation, stage: u64) -> Vec<String> {
        let Some(site) = self.0.statement_at(place) else { return vec![self.function(place, stage)] };
        let owner = match site {
            StatementId::Command { command_buffer, .. } => {
                format!("{}: ", name(&self.0.scenario.names.command_buffers, command_buffer))
            }
            StatementId::Step(_) => String::new(),
        };
        let statement = self.spot(site).map_or_else(|| self.function(place, stage), |it| it.statement.to_owned());
        vec![format!("{owner}{statement}")]
    }

    fn queue(&self, queue: QueueId) -> String {
        format!("queue {}", name(&self.0.scenario.names.queues, queue.0))
    }

    fn location(&self, place: &ProgramLocation) -> String {
        let at = match place {
            ProgramLocation::Step(step) => return self.step(*step),
            ProgramLocation::Command(at) => at,
        };
        let Some(StatementId::Command { command_buffer, index }) = self.0.statement_at(place) else {
            return self.batch(at.step, at.batch);
        };
        let mut text = self.recorded_command(CommandBufferId(command_buffer), index);
        let primary = ProgramLocation::Command(CommandLocation { path: at.path[..1].to_vec(), ..at.clone() });
        let Some(StatementId::Command { command_buffer: primary, index }) = self.0.statement_at(&primary) else {
            return text;
        };
        let primary = CommandBufferId(primary);
        if at.path.len() > 1 {
            text += &format!(", executed at {}", self.recorded_command(primary, index));
        }
        if self.executions(primary) > 1 {
            text += &format!(", submitted at {}", self.batch(at.step, at.batch));
        }
        text
    }

    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String {
        let own = name(&self.0.scenario.names.command_buffers, buffer.0);
        match self.spot(StatementId::Command { command_buffer: buffer.0, index: command }) {
            Some(spot) => format!("line {} of {own}", spot.line),
            None => format!("the end of {own}"),
        }
    }

    fn function(&self, place: &ProgramLocation, stage: u64) -> String {
        let function = NumberedNames(&self.0.scenario.program).function(place, stage);
        let first = || self.0.location(self.0.statement_at(place)?)?.statement.split(' ').next();
        // Commands that only access something have no name in Vulkan here; the scenario has a word for them.
        match first() {
            Some(word) if !function.starts_with("vk") && word != "access" && word != "host" => word.to_owned(),
            _ => function,
        }
    }

    fn step(&self, step: u32) -> String {
        self.spot(StatementId::Step(step)).map_or("the submission".to_owned(), |it| format!("line {}", it.line))
    }

    fn batch(&self, step: u32, batch: u32) -> String {
        match self.0.scenario.program.steps.get(step as usize) {
            Some(HostStep::Submit { batches, .. }) if batches.len() > 1 => {
                format!("batch {batch} of {}", self.step(step))
            }
            _ => self.step(step),
        }
    }

    fn render_pass(&self, pass: RenderPassId) -> String {
        format!("pass {}", name(&self.0.scenario.names.render_passes, pass.0))
    }

    fn semaphore(&self, semaphore: SemaphoreId) -> String {
        let known = self.0.scenario.names.semaphores.get(semaphore.0 as usize);
        format!("semaphore {}", known.map_or("?", |it| &it.name))
    }

    fn event(&self, event: EventId) -> String {
        format!("event {}", name(&self.0.scenario.names.events, event.0))
    }

    fn fence(&self, fence: FenceId) -> String {
        format!("fence {}", name(&self.0.scenario.names.fences, fence.0))
    }

    fn source(&self, place: &ProgramLocation) -> Option<String> {
        let spot = self.spot(self.0.statement_at(place)?)?;
        Some(format!("`{}`", spot.statement))
    }
}

fn name(all: &[String], index: u32) -> String {
    all.get(index as usize).cloned().unwrap_or_else(|| format!("?{index}"))
}
