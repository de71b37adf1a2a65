//! Commands of which something becomes known only after they were recorded: descriptors and indices that may change
//! until the submission, and attachments that a secondary command buffer gets from whoever executes it.
//!
//! Most command buffers that are recorded again are executed where they were executed before. So the attachments of the
//! last time are told with the commands; if it turns out that they are others, the listener is told again.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, Command};

use crate::device::TrackedDevice;
use crate::draw::attachment::{AttachmentSet, AttachmentUse};
use crate::draw::rendering::CurrentAttachments;
use crate::listener::TrackerOutput;
use crate::shader::accesses::SubmitTimeUse;

/// The commands of a command buffer that are not complete. What they have lies one behind the other.
#[derive(Debug, Default)]
pub(crate) struct IncompleteCommands {
    commands: Vec<IncompleteCommand>,
    fixed: Vec<Access>,
    attachment_uses: Vec<AttachmentUse>,
    inherited: InheritedAttachments,
    /// Whether something waits for the submission.
    has_submit_time_uses: bool,
}

/// A recorded command that is not complete.
#[derive(Debug)]
struct IncompleteCommand {
    /// Its place in the command buffer.
    index: u32,
    /// What is known of it.
    fixed: Range<usize>,
    /// What waits for attachments.
    attachment_uses: Range<usize>,
    /// Of most, only attachments are missing.
    submit_time: Option<Box<SubmitTimeUses>>,
}

/// What waits for the submission.
#[derive(Debug)]
struct SubmitTimeUses {
    /// Descriptors may change at any time.
    uses: Vec<SubmitTimeUse>,
    /// What the listener knows.
    reported: Vec<Access>,
}

/// The attachments that the listener knows the commands of a command buffer with.
#[derive(Clone, Debug, Default)]
pub(crate) enum InheritedAttachments {
    #[default]
    Unknown,
    /// Those of the last time that it was recorded: nobody has executed it since.
    Predicted(Arc<AttachmentSet>),
    Known(Arc<AttachmentSet>),
}

impl InheritedAttachments {
    fn attachments(&self) -> Option<&AttachmentSet> {
        match self {
            InheritedAttachments::Unknown => None,
            InheritedAttachments::Predicted(targets) | InheritedAttachments::Known(targets) => Some(targets),
        }
    }

    fn accesses(&self, touches: &[AttachmentUse]) -> Vec<Access> {
        self.attachments().map_or(Vec::new(), |it| it.accesses(touches))
    }
}

impl IncompleteCommands {
    /// Nothing is recorded any more.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.fixed.clear();
        self.attachment_uses.clear();
        self.has_submit_time_uses = false;
        if let InheritedAttachments::Known(targets) = &self.inherited {
            self.inherited = InheritedAttachments::Predicted(Arc::clone(targets));
        }
    }

    /// The attachments that are known, or foreseen.
    pub(crate) fn attachments(&self) -> Option<&AttachmentSet> {
        self.inherited.attachments()
    }

    /// A command with what is known of it.
    fn push(&mut self, index: u32, fixed: &[Access], touches: Range<usize>) {
        let first = self.fixed.len();
        self.fixed.extend_from_slice(fixed);
        let fixed = first..self.fixed.len();
        self.commands.push(IncompleteCommand { index, fixed, attachment_uses: touches, submit_time: None });
    }

    /// What of the last command waits for the submission, and all that was told of it.
    fn add_submit_time_uses(&mut self, uses: Vec<SubmitTimeUse>, told: Vec<Access>) {
        self.has_submit_time_uses = true;
        if let Some(last) = self.commands.last_mut() {
            last.submit_time = Some(Box::new(SubmitTimeUses { uses, reported: told }));
        }
    }

    fn push_attachment_uses(&mut self, touches: &[AttachmentUse]) -> Range<usize> {
        let first = self.attachment_uses.len();
        self.attachment_uses.extend_from_slice(touches);
        first..self.attachment_uses.len()
    }

    /// The command at this place is gone, if it was the last one.
    pub(crate) fn pop(&mut self, index: u32) {
        if let Some(gone) = self.commands.pop_if(|it| it.index == index) {
            self.fixed.truncate(gone.fixed.start);
        }
    }
}

impl TrackedDevice {
    /// Records an action command, some of which may become known later.
    pub(crate) fn record_incomplete_action(
        &mut self,
        buffer: vk::CommandBuffer,
        mut told: Vec<Access>,
        touches: &[AttachmentUse],
        uses: Vec<SubmitTimeUse>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let (mut known, is_inherited) =
            (told.len(), matches!(own.state.attachments, CurrentAttachments::Inherited { .. }));
        let targets = match &own.state.attachments {
            CurrentAttachments::None => None,
            CurrentAttachments::Known(targets) => Some(&**targets),
            CurrentAttachments::Inherited { .. } => own.incomplete.attachments(),
        };
        if let Some(targets) = targets {
            targets.add_accesses(touches, &mut told);
        }
        if !is_inherited {
            known = told.len();
        }
        uses.iter().for_each(|it| self.predict_use(it, &mut told));
        let touches = if is_inherited { touches } else { &[] };
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let index = own.push_action(&told, out);
        if !touches.is_empty() || !uses.is_empty() {
            let touches = own.incomplete.push_attachment_uses(touches);
            own.incomplete.push(index, &told[..known], touches);
        }
        match uses.is_empty() {
            true => self.return_spare_accesses(told),
            false => {
                *out.change_count += 1;
                own.incomplete.add_submit_time_uses(uses, told);
            }
        }
    }

    /// Records a draw whose attachments whoever executes the command buffer knows. They touch what [`TrackedDevice::last_draw`]
    /// says.
    pub(crate) fn record_inherited_draw(
        &mut self,
        buffer: vk::CommandBuffer,
        mut told: Vec<Access>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let known = told.len();
        told.extend_from_slice(self.last_draw.accesses());
        let index = own.push_action(&told, out);
        let touches = self.last_draw.stored_uses(|it| own.incomplete.push_attachment_uses(it));
        if !touches.is_empty() {
            own.incomplete.push(index, &told[..known], touches);
        }
        self.return_spare_accesses(told);
    }

    /// A secondary command buffer is executed where these are the attachments; none, where nobody knows them.
    pub(crate) fn inherit_attachments(
        &mut self,
        secondary: u64,
        targets: Option<&Arc<AttachmentSet>>,
        out: &mut TrackerOutput<'_>,
    ) {
        let before = self.inherited_attachments(secondary);
        let now = match (targets, &before) {
            (Some(targets), _) => InheritedAttachments::Known(Arc::clone(targets)),
            (None, InheritedAttachments::Predicted(_)) => InheritedAttachments::Unknown,
            (None, _) => before.clone(),
        };
        let changed = self.set_inherited_attachments(secondary, now, out);
        if let InheritedAttachments::Known(_) = before {
            for _ in 0..changed {
                out.report_untracked("one secondary command buffer that draws to different attachments");
            }
        }
    }

    /// The attachments that the listener knows a secondary command buffer with.
    pub(crate) fn inherited_attachments(&self, secondary: u64) -> InheritedAttachments {
        self.command_buffers.get(secondary).map_or(InheritedAttachments::Unknown, |it| it.incomplete.inherited.clone())
    }

    /// The listener knows a secondary command buffer with these attachments from now on. Gives how many of its commands
    /// had others.
    pub(crate) fn set_inherited_attachments(
        &mut self,
        secondary: u64,
        now: InheritedAttachments,
        out: &mut TrackerOutput<'_>,
    ) -> usize {
        let Some(own) = self.command_buffers.get_mut(secondary) else { return 0 };
        let before = std::mem::replace(&mut own.incomplete.inherited, now.clone());
        let mut changed = 0;
        if !own.incomplete.attachment_uses.is_empty() && before.attachments() != now.attachments() {
            let waiting = &own.incomplete;
            for command in waiting.commands.iter().filter(|it| !it.attachment_uses.is_empty()) {
                let touches = &waiting.attachment_uses[command.attachment_uses.clone()];
                let (old, new) = (before.accesses(touches), now.accesses(touches));
                changed += usize::from(!old.is_empty() && old != new);
                if command.submit_time.is_none() && old != new {
                    let all = waiting.fixed[command.fixed.clone()].iter().cloned().chain(new).collect();
                    out.listener.replace_command(out.at, own.id, command.index, Command::Action(all));
                }
            }
        }
        self.report_submit_time_uses(secondary, TrackedDevice::predict_use, out);
        changed
    }

    /// A command buffer is submitted: what its descriptors are counts from now on.
    pub(crate) fn resolve_at_submission(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        self.report_submit_time_uses(buffer, TrackedDevice::resolve_use, out);
        let executed = self.command_buffers.get_mut(buffer).map_or(Vec::new(), |it| std::mem::take(&mut it.executed));
        for secondary in executed.iter().filter(|it| **it != buffer) {
            self.report_submit_time_uses(*secondary, TrackedDevice::resolve_use, out);
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.executed = executed;
        }
    }

    /// Tells what the late uses of a command buffer are now, where that is something else than before.
    fn report_submit_time_uses(
        &mut self,
        buffer: u64,
        now_is: fn(&TrackedDevice, &SubmitTimeUse, &mut Vec<Access>),
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffers.get_mut(buffer).filter(|it| it.incomplete.has_submit_time_uses) else {
            return;
        };
        let (id, mut waiting) = (own.id, std::mem::take(&mut own.incomplete));
        for command in &mut waiting.commands {
            let Some(open) = &mut command.submit_time else { continue };
            let mut now = waiting.fixed[command.fixed.clone()].to_vec();
            now.extend(waiting.inherited.accesses(&waiting.attachment_uses[command.attachment_uses.clone()]));
            open.uses.iter().for_each(|it| now_is(self, it, &mut now));
            if now != open.reported {
                out.listener.replace_command(out.at, id, command.index, Command::Action(now.clone()));
                open.reported = now;
            }
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.incomplete = waiting;
        }
    }
}
