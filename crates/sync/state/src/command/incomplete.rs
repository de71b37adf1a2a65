//! Commands that are not completely known when they are recorded.
//!
//! Descriptors and indices may change until submission, and a secondary command buffer gets its attachments from the
//! primary that executes it. A command buffer that is recorded again is usually executed with the same attachments. So
//! the listener gets the attachments of the last time; if they turn out to differ, the commands are replaced.

use std::ops::Range;
use std::sync::Arc;

use lavascope_abi as vk;
use lavascope_sync_ir::{Access, Certainty, Command};

use crate::device::TrackedDevice;
use crate::draw::attachment::{AttachmentSet, AttachmentUse};
use crate::draw::indirect_arguments::LaunchCertainty;
use crate::draw::rendering::CurrentAttachments;
use crate::listener::{TrackerOutput, is_write};
use crate::shader::accesses::{ShaderUses, SubmitTimeUse};

/// The incomplete commands of a command buffer. Their accesses and attachment uses are stored in common lists.
#[derive(Debug, Default)]
pub(crate) struct IncompleteCommands {
    commands: Vec<IncompleteCommand>,
    fixed: Vec<Access>,
    attachment_uses: Vec<AttachmentUse>,
    inherited: InheritedAttachments,
    /// Whether some command depends on the submission.
    has_submit_time_uses: bool,
}

/// A recorded command that is not completely known.
#[derive(Debug)]
struct IncompleteCommand {
    /// Its index in the command buffer.
    index: u32,
    launch: CommandLaunch,
    /// The accesses that are known.
    fixed: Range<usize>,
    /// The attachment uses.
    attachment_uses: Range<usize>,
    /// None for most commands, which depend only on attachments.
    submit_time: Option<Box<SubmitTimeUses>>,
}

/// Whether a command launches anything.
#[derive(Clone, Debug)]
pub(crate) struct CommandLaunch {
    /// How many of its first accesses it makes in any case: reads of its parameters.
    pub(crate) unconditional: usize,
    pub(crate) certainty: LaunchCertainty,
}

impl CommandLaunch {
    pub(crate) const CERTAIN: CommandLaunch = CommandLaunch { unconditional: 0, certainty: LaunchCertainty::Certain };
}

/// Parameters that are not read decide whether these accesses are made.
pub(crate) fn mark_if_launched(accesses: &mut [Access]) {
    accesses.iter_mut().for_each(|it| it.certainty = it.certainty.if_launched());
}

/// When the accesses of a command are given to the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReportTime {
    Recording,
    Submission,
}

/// The uses that are resolved at submission.
#[derive(Debug)]
struct SubmitTimeUses {
    /// For example descriptors that may be updated until then.
    uses: Vec<SubmitTimeUse>,
    /// The accesses that the listener has received.
    reported: Vec<Access>,
}

/// The attachments of a secondary command buffer that the listener assumes.
#[derive(Clone, Debug, Default)]
pub(crate) enum InheritedAttachments {
    #[default]
    Unknown,
    /// The attachments of the previous recording; this one has not been executed yet.
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

    fn accesses(&self, attachment_uses: &[AttachmentUse]) -> Vec<Access> {
        self.attachments().map_or(Vec::new(), |it| it.accesses(attachment_uses))
    }
}

impl IncompleteCommands {
    /// Recording starts again.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.fixed.clear();
        self.attachment_uses.clear();
        self.has_submit_time_uses = false;
        if let InheritedAttachments::Known(targets) = &self.inherited {
            self.inherited = InheritedAttachments::Predicted(Arc::clone(targets));
        }
    }

    /// The known or predicted attachments.
    pub(crate) fn attachments(&self) -> Option<&AttachmentSet> {
        self.inherited.attachments()
    }

    /// Adds a command with its known accesses.
    fn push(&mut self, index: u32, fixed: &[Access], attachment_uses: Range<usize>, launch: CommandLaunch) {
        let first = self.fixed.len();
        self.fixed.extend_from_slice(fixed);
        let fixed = first..self.fixed.len();
        self.commands.push(IncompleteCommand { index, launch, fixed, attachment_uses, submit_time: None });
    }

    /// Adds possible reads of the last command.
    fn push_possible_reads(&mut self, reads: &[Access]) {
        if let Some(last) = self.commands.last_mut() {
            self.fixed.extend_from_slice(reads);
            last.fixed.end = self.fixed.len();
        }
    }

    /// Sets what the last command resolves at submission, and the accesses that the listener received.
    fn add_submit_time_uses(&mut self, uses: Vec<SubmitTimeUse>, reported: Vec<Access>) {
        self.has_submit_time_uses = true;
        if let Some(last) = self.commands.last_mut() {
            last.submit_time = Some(Box::new(SubmitTimeUses { uses, reported }));
        }
    }

    fn push_attachment_uses(&mut self, attachment_uses: &[AttachmentUse]) -> Range<usize> {
        let first = self.attachment_uses.len();
        self.attachment_uses.extend_from_slice(attachment_uses);
        first..self.attachment_uses.len()
    }

    /// Removes the command at this index, if it is the last one.
    pub(crate) fn pop(&mut self, index: u32) {
        if let Some(gone) = self.commands.pop_if(|it| it.index == index) {
            self.fixed.truncate(gone.fixed.start);
        }
    }
}

impl TrackedDevice {
    /// Records an action command that may be completed later.
    pub(crate) fn record_incomplete_action(
        &mut self,
        buffer: vk::CommandBuffer,
        uses: ShaderUses,
        attachment_uses: &[AttachmentUse],
        launch: &CommandLaunch,
        out: &mut TrackerOutput<'_>,
    ) {
        let ShaderUses { fixed: mut accesses, submit_time: uses } = uses;
        let Some(own) = self.command_buffers.get(buffer.0) else { return };
        let (mut known, is_inherited) =
            (accesses.len(), matches!(own.state.attachments, CurrentAttachments::Inherited { .. }));
        let targets = match &own.state.attachments {
            CurrentAttachments::None => None,
            CurrentAttachments::Known(targets) => Some(&**targets),
            CurrentAttachments::Inherited { .. } => own.incomplete.attachments(),
        };
        if let Some(targets) = targets {
            targets.add_accesses(attachment_uses, &mut accesses);
        }
        if !is_inherited {
            known = accesses.len();
        }
        uses.iter().for_each(|it| self.predict_use(it, &mut accesses));
        let attachment_uses = if is_inherited { attachment_uses } else { &[] };
        let is_certain = matches!(launch.certainty, LaunchCertainty::Certain);
        let conditional = if is_certain { Vec::new() } else { accesses[..known].to_vec() };
        if !is_certain {
            self.apply_launch(launch, ReportTime::Recording, &mut accesses);
        }
        let possible_reads = out.possible_reads.clone();
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let index = own.notify_action(&accesses, out);
        let is_known = uses.is_empty() && !matches!(launch.certainty, LaunchCertainty::AtSubmission(_));
        if !attachment_uses.is_empty() || !is_known {
            let attachment_uses = own.incomplete.push_attachment_uses(attachment_uses);
            let fixed = if is_certain { &accesses[..known] } else { &conditional };
            own.incomplete.push(index, fixed, attachment_uses, launch.clone());
            own.incomplete.push_possible_reads(&possible_reads);
        }
        match is_known {
            true => self.return_spare_accesses(accesses),
            false => {
                *out.change_count += 1;
                accesses.extend(possible_reads);
                own.incomplete.add_submit_time_uses(uses, accesses);
            }
        }
    }

    /// Changes the accesses of a command that may launch nothing. What is launched nowhere, or not known yet, leaves
    /// possible reads: barriers for them count.
    fn apply_launch(&self, launch: &CommandLaunch, time: ReportTime, accesses: &mut Vec<Access>) {
        let submitted = match &launch.certainty {
            LaunchCertainty::AtSubmission(_) if time == ReportTime::Recording => LaunchCertainty::Never,
            LaunchCertainty::AtSubmission(arguments) => self.submitted_launch_certainty(arguments),
            other => other.clone(),
        };
        let conditional = launch.unconditional.min(accesses.len());
        match submitted {
            LaunchCertainty::Certain | LaunchCertainty::AtSubmission(_) => {}
            LaunchCertainty::Unknown => mark_if_launched(&mut accesses[conditional..]),
            LaunchCertainty::Never => {
                let possible: Vec<Access> = accesses.drain(conditional..).filter_map(possible_read).collect();
                accesses.extend(possible);
            }
        }
        accesses.sort_by_key(|it| it.certainty == Certainty::Unreported);
    }

    /// Records a draw in a secondary command buffer that inherits its attachments. [`TrackedDevice::last_draw`] has the
    /// attachment uses.
    pub(crate) fn record_inherited_draw(
        &mut self,
        buffer: vk::CommandBuffer,
        mut accesses: Vec<Access>,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let known = accesses.len();
        accesses.extend_from_slice(self.last_draw.accesses());
        let possible_reads = out.possible_reads.clone();
        let index = own.notify_action(&accesses, out);
        let attachment_uses = self.last_draw.stored_uses(|it| own.incomplete.push_attachment_uses(it));
        if !attachment_uses.is_empty() {
            own.incomplete.push(index, &accesses[..known], attachment_uses, CommandLaunch::CERTAIN);
            own.incomplete.push_possible_reads(&possible_reads);
        }
        self.return_spare_accesses(accesses);
    }

    /// A secondary command buffer is executed with these attachments; none if they are unknown.
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

    /// The attachments of a secondary command buffer that the listener assumes.
    pub(crate) fn inherited_attachments(&self, secondary: u64) -> InheritedAttachments {
        self.command_buffers.get(secondary).map_or(InheritedAttachments::Unknown, |it| it.incomplete.inherited.clone())
    }

    /// Sets the attachments of a secondary command buffer. Returns how many of its commands had other attachments
    /// before.
    pub(crate) fn set_inherited_attachments(
        &mut self,
        secondary: u64,
        now: InheritedAttachments,
        out: &mut TrackerOutput<'_>,
    ) -> usize {
        let Some(own) = self.command_buffers.get_mut(secondary) else { return 0 };
        let before = std::mem::replace(&mut own.incomplete.inherited, now.clone());
        let mut changed = 0;
        if !own.incomplete.attachment_uses.is_empty()
            && before.attachments() != now.attachments()
            && let Some(own) = self.command_buffers.get(secondary)
        {
            let waiting = &own.incomplete;
            for command in waiting.commands.iter().filter(|it| !it.attachment_uses.is_empty()) {
                let attachment_uses = &waiting.attachment_uses[command.attachment_uses.clone()];
                let (old, new) = (before.accesses(attachment_uses), now.accesses(attachment_uses));
                changed += usize::from(!old.is_empty() && old != new);
                if command.submit_time.is_none() && old != new {
                    let mut all: Vec<Access> =
                        waiting.fixed[command.fixed.clone()].iter().cloned().chain(new).collect();
                    self.apply_launch(&command.launch, ReportTime::Recording, &mut all);
                    out.listener.replace_command(out.at, own.id, command.index, Command::Action(all));
                }
            }
        }
        self.report_submit_time_uses(secondary, ReportTime::Recording, out);
        changed
    }

    /// Resolves the descriptors of a submitted command buffer to their current contents.
    pub(crate) fn resolve_at_submission(&mut self, buffer: u64, out: &mut TrackerOutput<'_>) {
        self.report_submit_time_uses(buffer, ReportTime::Submission, out);
        let executed = self.command_buffers.get_mut(buffer).map_or(Vec::new(), |it| std::mem::take(&mut it.executed));
        for secondary in executed.iter().filter(|it| **it != buffer) {
            self.report_submit_time_uses(*secondary, ReportTime::Submission, out);
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.executed = executed;
        }
    }

    /// Replaces commands whose late uses have changed since the last report.
    fn report_submit_time_uses(&mut self, buffer: u64, time: ReportTime, out: &mut TrackerOutput<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer).filter(|it| it.incomplete.has_submit_time_uses) else {
            return;
        };
        let (id, mut waiting) = (own.id, std::mem::take(&mut own.incomplete));
        for command in &mut waiting.commands {
            let Some(open) = &mut command.submit_time else { continue };
            let mut now = waiting.fixed[command.fixed.clone()].to_vec();
            now.extend(waiting.inherited.accesses(&waiting.attachment_uses[command.attachment_uses.clone()]));
            for time_use in &open.uses {
                match time {
                    ReportTime::Recording => self.predict_use(time_use, &mut now),
                    ReportTime::Submission => self.resolve_use(time_use, &mut now),
                }
            }
            self.apply_launch(&command.launch, time, &mut now);
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

/// What is left of an access that is not made.
fn possible_read(access: Access) -> Option<Access> {
    (!is_write(access.access)).then_some(Access { certainty: Certainty::Unreported, ..access })
}
