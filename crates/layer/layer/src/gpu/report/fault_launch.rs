//! Which draw or dispatch ran a shader with a fault, as reports name it: messages have handles instead.

use lavascope_abi::{Command, ObjectId};
use lavascope_diag::DiagnosticObject;
use lavascope_findings::{Finding, NeighborCommands};
use lavascope_instrument::RecordedFault;
use lavascope_validate::{BoundResource, LaunchLocation};

use super::fault_draws::ExecutedCommands;
use crate::gpu::DeviceChecks;
use crate::gpu::draw::recorded_draws::DrawDescription;
use crate::report::rendered_finding::raw_stack;

/// A draw or dispatch, as far as the checks of shaders know it.
pub(crate) struct FaultLaunch {
    command: &'static str,
    /// From zero. None if all draws of a pipeline share their records.
    number: Option<u32>,
    /// As the validator counts it.
    launch: Option<(u32, Command)>,
    /// The command buffer: its id in the records, its number and its name.
    object: Option<ObjectId>,
    command_buffer: u64,
    name: Option<String>,
}

impl FaultLaunch {
    pub(crate) fn new(draw: &DrawDescription, commands: &ExecutedCommands<'_>, name: Option<String>) -> FaultLaunch {
        let is_known = draw.variant.fixed_tables.is_empty();
        FaultLaunch {
            command: draw.command,
            number: is_known.then_some(draw.number),
            launch: draw.launch.filter(|_| is_known),
            object: commands.object,
            command_buffer: commands.object.map_or(commands.number.into(), ObjectId::serial),
            name,
        }
    }

    /// Where it was recorded, as a validation of synchronization knows it. No lock of ours is held.
    pub(crate) fn locate(&self, checks: &DeviceChecks) -> Option<LaunchLocation> {
        checks.device_data()?.locate_launch(self.object?, self.launch?)
    }

    /// `dispatch 2 of VkCommandBuffer#0 "frame"`: without a validation, only draws and dispatches are counted.
    fn place_text(&self) -> String {
        let name = self.name.as_ref().map_or(String::new(), |it| format!(" {it:?}"));
        let commands = format!("VkCommandBuffer#{}{name}", self.command_buffer);
        let word = launch_word(self.command);
        self.number.map_or_else(|| commands.clone(), |it| format!("{word} {} of {commands}", it + 1))
    }

    /// The finding with the place of the command.
    pub(crate) fn place(&self, mut finding: Finding, located: Option<&LaunchLocation>) -> Finding {
        for access in finding.accesses.iter_mut().filter(|it| it.role == "access") {
            access.place = located.map_or_else(|| self.place_text(), |it| it.place.clone());
            access.stack = located.filter(|it| it.stack != 0).map(|it| raw_stack(it.stack)).unwrap_or_default();
            access.neighbors = located.and_then(|it| it.neighbors.as_ref()).map(NeighborCommands::from);
        }
        let command_buffer = located.map_or(self.command_buffer, |it| it.command_buffer);
        let own = finding.objects.iter_mut().filter(|it| it.kind == "VkCommandBuffer");
        own.for_each(|it| it.id = command_buffer);
        debug_assert!(finding.function.is_empty() || finding.function == self.command, "both are of one draw");
        finding
    }
}

/// What a command is, among others of its kind in a command buffer.
pub(crate) fn launch_word(command: &str) -> &'static str {
    match command {
        name if name.starts_with("vkCmdDispatch") => "dispatch",
        name if name.starts_with("vkCmdTraceRays") => "trace",
        name if name.starts_with("vkCmdExecuteGenerated") => "generated command",
        _ => "draw",
    }
}

/// What is bound to a binding, or to the element of it that has the fault. None if that may be one of several.
pub(crate) fn bound_object(
    located: &LaunchLocation,
    binding: Option<(u32, u32)>,
    fault: Option<&RecordedFault>,
) -> Option<DiagnosticObject> {
    let (set, binding) = binding?;
    let element = match *fault? {
        RecordedFault::BufferOutOfBounds { descriptor, .. } => Some(descriptor),
        RecordedFault::TexelOutOfBounds { .. } => None,
        // These are about the descriptor, or have none.
        RecordedFault::IndexOutOfBounds { .. }
        | RecordedFault::Uninitialized { .. }
        | RecordedFault::AddressOutOfBounds { .. } => return None,
    };
    let is_it = |resource: &&BoundResource| {
        (resource.set, resource.binding) == (set, binding) && element.is_none_or(|it| resource.element == it)
    };
    let mut all = located.resources.iter().filter(is_it).map(|it| &it.object);
    let first = all.next()?;
    all.all(|it| it == first).then(|| first.clone())
}

/// `indices 128 to 255`; none if the title has the only index.
pub(crate) fn indices_note((least, most): (u32, u32)) -> Option<String> {
    (least < most).then(|| format!("indices {least} to {most} when it was first found"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_bound_is_known_if_it_is_one_object() {
        let resource = |binding, element, name: &str| BoundResource {
            set: 0,
            binding,
            element,
            object: DiagnosticObject::new("VkBuffer", u64::from(element), Some(name.to_owned())),
        };
        let resources = vec![resource(0, 0, "a"), resource(0, 0, "a"), resource(0, 1, "b"), resource(1, 0, "c")];
        let located = LaunchLocation { place: String::new(), command_buffer: 0, stack: 0, neighbors: None, resources };
        let name = |binding, fault: &RecordedFault| {
            bound_object(&located, Some((0, binding)), Some(fault)).and_then(|it| it.name)
        };
        let bytes = |descriptor| RecordedFault::BufferOutOfBounds { descriptor, index: 0, range: 4 };
        let texel = RecordedFault::TexelOutOfBounds { texel: 1, length: 1 };
        assert_eq!(name(0, &bytes(0)).as_deref(), Some("a"));
        assert_eq!(name(0, &bytes(1)).as_deref(), Some("b"));
        assert_eq!((name(0, &bytes(2)), name(0, &texel)), (None, None));
        assert_eq!(name(1, &texel).as_deref(), Some("c"));
        assert_eq!(name(0, &RecordedFault::Uninitialized { index: 0 }), None);
    }

    #[test]
    fn notes_have_ranges_of_indices() {
        assert_eq!(indices_note((7, 7)), None);
        assert_eq!(indices_note((7, 9)).as_deref(), Some("indices 7 to 9 when it was first found"));
    }
}
