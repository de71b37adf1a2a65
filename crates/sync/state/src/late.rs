//! Commands of which something becomes known only after they were recorded: descriptors and indices that may change
//! until the submission, and attachments that a secondary command buffer gets from whoever executes it.
//!
//! Most command buffers that are recorded again are executed where they were executed before. So the attachments of the
//! last time are told with the commands; if it turns out that they are others, the listener is told again.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, Command};

use crate::attachment::{Targets, Touch};
use crate::device::Device;
use crate::listener::Out;
use crate::rendering::Scene;
use crate::shader_use::LateUse;

/// The commands of a command buffer that are not complete. What they have lies one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    commands: Vec<Late>,
    fixed: Vec<Access>,
    touches: Vec<Touch>,
    attached: Attached,
    /// Whether something waits for the submission.
    has_uses: bool,
}

/// A recorded command that is not complete.
#[derive(Debug)]
struct Late {
    /// Its place in the command buffer.
    index: u32,
    /// What is known of it.
    fixed: Range<usize>,
    /// What waits for attachments.
    touches: Range<usize>,
    /// Of most, only attachments are missing.
    open: Option<Box<Open>>,
}

/// What waits for the submission.
#[derive(Debug)]
struct Open {
    /// Descriptors may change at any time.
    uses: Vec<LateUse>,
    /// What the listener knows.
    told: Vec<Access>,
}

/// The attachments that the listener knows the commands of a command buffer with.
#[derive(Clone, Debug, Default)]
pub(crate) enum Attached {
    #[default]
    Nothing,
    /// Those of the last time that it was recorded: nobody has executed it since.
    Foreseen(Arc<Targets>),
    Known(Arc<Targets>),
}

impl Attached {
    fn targets(&self) -> Option<&Targets> {
        match self {
            Attached::Nothing => None,
            Attached::Foreseen(targets) | Attached::Known(targets) => Some(targets),
        }
    }

    fn accesses(&self, touches: &[Touch]) -> Vec<Access> {
        self.targets().map_or(Vec::new(), |it| it.accesses(touches))
    }
}

impl Waiting {
    /// Nothing is recorded any more.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.fixed.clear();
        self.touches.clear();
        self.has_uses = false;
        if let Attached::Known(targets) = &self.attached {
            self.attached = Attached::Foreseen(Arc::clone(targets));
        }
    }

    /// The attachments that are known, or foreseen.
    pub(crate) fn targets(&self) -> Option<&Targets> {
        self.attached.targets()
    }

    /// A command with what is known of it.
    fn push(&mut self, index: u32, fixed: &[Access], touches: Range<usize>) {
        let first = self.fixed.len();
        self.fixed.extend_from_slice(fixed);
        let fixed = first..self.fixed.len();
        self.commands.push(Late { index, fixed, touches, open: None });
    }

    /// What of the last command waits for the submission, and all that was told of it.
    fn add_uses(&mut self, uses: Vec<LateUse>, told: Vec<Access>) {
        self.has_uses = true;
        if let Some(last) = self.commands.last_mut() {
            last.open = Some(Box::new(Open { uses, told }));
        }
    }

    fn push_touches(&mut self, touches: &[Touch]) -> Range<usize> {
        let first = self.touches.len();
        self.touches.extend_from_slice(touches);
        first..self.touches.len()
    }

    /// The command at this place is gone, if it was the last one.
    pub(crate) fn pop(&mut self, index: u32) {
        if let Some(gone) = self.commands.pop_if(|it| it.index == index) {
            self.fixed.truncate(gone.fixed.start);
        }
    }
}

impl Device {
    /// Records an action command, some of which may become known later.
    pub(crate) fn act_on(
        &mut self,
        buffer: vk::CommandBuffer,
        mut told: Vec<Access>,
        touches: &[Touch],
        uses: Vec<LateUse>,
        out: &mut Out<'_>,
    ) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let (mut known, is_inherited) = (told.len(), matches!(own.state.scene, Scene::Inherited { .. }));
        let targets = match &own.state.scene {
            Scene::None => None,
            Scene::Known(targets) => Some(&**targets),
            Scene::Inherited { .. } => own.waiting.targets(),
        };
        if let Some(targets) = targets {
            targets.add_accesses(touches, &mut told);
        }
        if !is_inherited {
            known = told.len();
        }
        uses.iter().for_each(|it| self.foresee(it, &mut told));
        let touches = if is_inherited { touches } else { &[] };
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let index = own.push_action(&told, out);
        if !touches.is_empty() || !uses.is_empty() {
            let touches = own.waiting.push_touches(touches);
            own.waiting.push(index, &told[..known], touches);
        }
        match uses.is_empty() {
            true => self.give_room(told),
            false => {
                *out.changes += 1;
                own.waiting.add_uses(uses, told);
            }
        }
    }

    /// Records a draw whose attachments whoever executes the command buffer knows. They touch what [`Device::drawn`]
    /// says.
    pub(crate) fn act_inherited(&mut self, buffer: vk::CommandBuffer, mut told: Vec<Access>, out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let known = told.len();
        told.extend_from_slice(self.drawn.accesses());
        let index = own.push_action(&told, out);
        let touches = self.drawn.kept_touches(|it| own.waiting.push_touches(it));
        if !touches.is_empty() {
            own.waiting.push(index, &told[..known], touches);
        }
        self.give_room(told);
    }

    /// A secondary command buffer is executed where these are the attachments; none, where nobody knows them.
    pub(crate) fn attach(&mut self, secondary: u64, targets: Option<&Arc<Targets>>, out: &mut Out<'_>) {
        let before = self.attached(secondary);
        let now = match (targets, &before) {
            (Some(targets), _) => Attached::Known(Arc::clone(targets)),
            (None, Attached::Foreseen(_)) => Attached::Nothing,
            (None, _) => before.clone(),
        };
        let changed = self.set_attached(secondary, now, out);
        if let Attached::Known(_) = before {
            for _ in 0..changed {
                out.missing("one secondary command buffer that draws to different attachments");
            }
        }
    }

    /// The attachments that the listener knows a secondary command buffer with.
    pub(crate) fn attached(&self, secondary: u64) -> Attached {
        self.command_buffers.get(secondary).map_or(Attached::Nothing, |it| it.waiting.attached.clone())
    }

    /// The listener knows a secondary command buffer with these attachments from now on. Gives how many of its commands
    /// had others.
    pub(crate) fn set_attached(&mut self, secondary: u64, now: Attached, out: &mut Out<'_>) -> usize {
        let Some(own) = self.command_buffers.get_mut(secondary) else { return 0 };
        let before = std::mem::replace(&mut own.waiting.attached, now.clone());
        let mut changed = 0;
        if !own.waiting.touches.is_empty() && before.targets() != now.targets() {
            let waiting = &own.waiting;
            for it in waiting.commands.iter().filter(|it| !it.touches.is_empty()) {
                let touches = &waiting.touches[it.touches.clone()];
                let (old, new) = (before.accesses(touches), now.accesses(touches));
                changed += usize::from(!old.is_empty() && old != new);
                if it.open.is_none() && old != new {
                    let all = waiting.fixed[it.fixed.clone()].iter().cloned().chain(new).collect();
                    out.listener.amend(out.at, own.id, it.index, Command::Action(all));
                }
            }
        }
        self.tell_late(secondary, Device::foresee, out);
        changed
    }

    /// A command buffer is submitted: what its descriptors are counts from now on.
    pub(crate) fn settle(&mut self, buffer: u64, out: &mut Out<'_>) {
        self.tell_late(buffer, Device::resolve, out);
        let executed = self.command_buffers.get_mut(buffer).map_or(Vec::new(), |it| std::mem::take(&mut it.executed));
        for secondary in executed.iter().filter(|it| **it != buffer) {
            self.tell_late(*secondary, Device::resolve, out);
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.executed = executed;
        }
    }

    /// Tells what the late uses of a command buffer are now, where that is something else than before.
    fn tell_late(&mut self, buffer: u64, now_is: fn(&Device, &LateUse, &mut Vec<Access>), out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer).filter(|it| it.waiting.has_uses) else { return };
        let (id, mut waiting) = (own.id, std::mem::take(&mut own.waiting));
        for it in &mut waiting.commands {
            let Some(open) = &mut it.open else { continue };
            let mut now = waiting.fixed[it.fixed.clone()].to_vec();
            now.extend(waiting.attached.accesses(&waiting.touches[it.touches.clone()]));
            open.uses.iter().for_each(|it| now_is(self, it, &mut now));
            if now != open.told {
                out.listener.amend(out.at, id, it.index, Command::Action(now.clone()));
                open.told = now;
            }
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.waiting = waiting;
        }
    }
}
