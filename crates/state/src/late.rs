//! Commands of which something becomes known only after they were recorded: descriptors that may change until the
//! submission, and attachments that a secondary command buffer gets from whoever executes it.

use lavascope_abi as vk;
use lavascope_program::{Access, Command};

use crate::attachment::{Targets, Touch};
use crate::device::Device;
use crate::listener::Out;
use crate::rendering::Scene;
use crate::shader_use::LateUse;

/// A recorded command that is not complete.
#[derive(Debug)]
pub(crate) struct Late {
    /// Its place in the command buffer.
    pub(crate) index: u32,
    /// What is known of it.
    fixed: Vec<Access>,
    /// What waits for attachments, and what came of it.
    touches: Vec<Touch>,
    attached: Vec<Access>,
    /// What waits for the submission.
    uses: Vec<LateUse>,
    /// What the listener knows.
    told: Vec<Access>,
    /// Whether that may be something else by now: descriptors may change at any time, attachments do not.
    is_open: bool,
}

impl Device {
    /// Records an action command, some of which may become known later.
    pub(crate) fn act_on(
        &mut self,
        buffer: vk::CommandBuffer,
        mut fixed: Vec<Access>,
        touches: &[Touch],
        uses: Vec<LateUse>,
        out: &mut Out<'_>,
    ) {
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let is_inherited = matches!(own.state.scene, Scene::Inherited { .. });
        if uses.is_empty() && (touches.is_empty() || !is_inherited) {
            if let Scene::Known(targets) = &own.state.scene {
                targets.add_accesses(touches, &mut fixed);
            }
            own.push_action(&fixed, out);
            self.give_room(fixed);
            return;
        }
        let (attached, touches) = match &own.state.scene {
            Scene::Known(targets) => (targets.accesses(touches), Vec::new()),
            Scene::Inherited { .. } => (Vec::new(), touches.to_vec()),
            Scene::None => (Vec::new(), Vec::new()),
        };
        let resolved = uses.iter().flat_map(|it| self.resolve(it));
        let told: Vec<Access> = fixed.iter().chain(&attached).cloned().chain(resolved).collect();
        let Some(own) = self.command_buffers.get_mut(buffer.0) else { return };
        let index = own.push_action(&told, out);
        if !touches.is_empty() || !uses.is_empty() {
            let is_open = !uses.is_empty();
            own.late.push(Late { index, fixed, touches, attached, uses, told, is_open });
        }
    }

    /// A secondary command buffer is executed where these are the attachments.
    pub(crate) fn attach(&mut self, secondary: u64, targets: &Targets, out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(secondary) else { return };
        for it in own.late.iter_mut().filter(|it| !it.touches.is_empty()) {
            let attached = targets.accesses(&it.touches);
            if !it.attached.is_empty() && it.attached != attached {
                out.missing("one secondary command buffer that draws to different attachments");
            }
            it.is_open |= it.attached != attached;
            it.attached = attached;
        }
        self.tell_late(secondary, out);
    }

    /// What came of the attachments that a secondary command buffer waits for.
    pub(crate) fn attached(&self, secondary: u64) -> Vec<Vec<Access>> {
        let late = self.command_buffers.get(secondary).map_or(&[][..], |it| &it.late);
        late.iter().filter(|it| !it.touches.is_empty()).map(|it| it.attached.clone()).collect()
    }

    /// It is as it was before it was executed.
    pub(crate) fn set_attached(&mut self, secondary: u64, attached: Vec<Vec<Access>>, out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(secondary) else { return };
        for (it, attached) in own.late.iter_mut().filter(|it| !it.touches.is_empty()).zip(attached) {
            (it.attached, it.is_open) = (attached, true);
        }
        self.tell_late(secondary, out);
    }

    /// A command buffer is submitted: what its descriptors are counts from now on.
    pub(crate) fn settle(&mut self, buffer: u64, out: &mut Out<'_>) {
        self.tell_late(buffer, out);
        let executed = self.command_buffers.get(buffer).map_or(Vec::new(), |it| it.executed.clone());
        for secondary in executed.into_iter().filter(|it| *it != buffer) {
            self.tell_late(secondary, out);
        }
    }

    fn tell_late(&mut self, buffer: u64, out: &mut Out<'_>) {
        let Some(own) = self.command_buffers.get_mut(buffer) else { return };
        let (id, mut late) = (own.id, std::mem::take(&mut own.late));
        for it in late.iter_mut().filter(|it| it.is_open) {
            it.is_open = !it.uses.is_empty();
            let resolved = it.uses.iter().flat_map(|it| self.resolve(it));
            let now: Vec<Access> = it.fixed.iter().chain(&it.attached).cloned().chain(resolved).collect();
            if now != it.told {
                out.listener.amend(out.at, id, it.index, Command::Action(now.clone()));
                it.told = now;
            }
        }
        if let Some(own) = self.command_buffers.get_mut(buffer) {
            own.late = late;
        }
    }
}
