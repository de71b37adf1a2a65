//! Command buffers, command by command. All calls for one command of the program are inside of a label with its
//! location, so that messages show which command they are about.

use std::ffi::CString;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};
use lavascope_sync_ir::{Barrier, Command, RenderPassId, SetEvent, WaitEvents};

use crate::error::LiveError;
use crate::objects::calls::{call, check, set_current_label, text_ptr};
use crate::objects::device::LiveDevice;
use crate::plan::live_command::{LiveAttachments, LiveCommand};
use crate::recording::render_pass::SubpassContentsKind;

/// How the commands of a program are recorded: the Vulkan commands for each, and the open scopes.
pub(crate) struct RecordingPlan {
    /// For each command buffer, for each command.
    pub(crate) commands: Vec<Vec<Vec<LiveCommand>>>,
    /// For each command buffer the attachments to which another command buffer began to render.
    pub(crate) inherited: Vec<Option<LiveAttachments>>,
}

/// The label of a command.
pub fn command_label(command_buffer: u32, index: u32) -> String {
    format!("{command_buffer}.{index}")
}

impl LiveDevice<'_> {
    pub(crate) fn record(&self, plan: &RecordingPlan, at: usize) -> Result<(), LiveError> {
        let program = self.scenario.program;
        let buffer = self.command_buffers[at];
        self.begin(buffer, plan.inherited[at].as_ref(), program.command_buffers[at].is_secondary)?;
        let commands = &program.command_buffers[at].commands;
        let mut subpass = plan.inherited[at].as_ref().and_then(|it| it.pass);
        for (index, command) in commands.iter().enumerate() {
            let label = command_label(at as u32, index as u32);
            let name = CString::new(label.clone()).unwrap_or_default();
            set_current_label(label);
            let info = vk::DebugUtilsLabelEXT { p_label_name: text_ptr(&name), ..vk::DebugUtilsLabelEXT::zeroed() };
            call!(self.vk, cmd_begin_label(buffer, Ptr::to(&info)));
            match command {
                Command::BeginRenderPass { pass, .. } => subpass = Some((*pass, 0)),
                Command::NextSubpass => subpass = subpass.map(|it| (it.0, it.1 + 1)),
                Command::EndRenderPass => subpass = None,
                Command::Barrier(barrier) => self.record_barrier(buffer, barrier, self.flags_of_barrier(subpass)),
                _ => {}
            }
            self.record_command(buffer, command, &commands[index + 1..])?;
            for deed in &plan.commands[at][index] {
                self.record_live_command(buffer, deed)?;
            }
            call!(self.vk, cmd_end_label(buffer));
            set_current_label(String::new());
        }
        check("vkEndCommandBuffer", call!(self.vk, end_command_buffer(buffer)))
    }

    fn begin(
        &self,
        buffer: vk::CommandBuffer,
        inherited: Option<&LiveAttachments>,
        is_secondary: bool,
    ) -> Result<(), LiveError> {
        use vk::CommandBufferUsageFlags as Flags;
        let mut flags = Flags::SIMULTANEOUS_USE.0;
        let (formats, [depth, stencil]) = inherited.map_or((Vec::new(), [vk::Format(0); 2]), |it| self.formats(it));
        let rendering = vk::CommandBufferInheritanceRenderingInfo {
            flags: vk::RenderingFlags(inherited.map_or(0, |it| it.rendering_flags)),
            view_mask: inherited.map_or(0, |it| it.view_mask),
            color_attachment_count: formats.len() as u32,
            p_color_attachment_formats: Ptr::to_slice(&formats),
            depth_attachment_format: depth,
            stencil_attachment_format: stencil,
            rasterization_samples: vk::SampleCountFlagBits::_1,
            ..vk::CommandBufferInheritanceRenderingInfo::zeroed()
        };
        let mut inheritance = vk::CommandBufferInheritanceInfo::zeroed();
        if let Some(targets) = inherited {
            flags |= Flags::RENDER_PASS_CONTINUE.0;
            match targets.pass {
                Some((pass, subpass)) => {
                    inheritance.render_pass = self.passes[pass.0 as usize];
                    inheritance.subpass = subpass;
                }
                None => inheritance.p_next = Ptr::to(&rendering).cast(),
            }
        }
        let info = vk::CommandBufferBeginInfo {
            flags: Flags(flags),
            p_inheritance_info: if is_secondary { Ptr::to(&inheritance) } else { Ptr::NULL },
            ..vk::CommandBufferBeginInfo::zeroed()
        };
        check("vkBeginCommandBuffer", call!(self.vk, begin_command_buffer(buffer, Ptr::to(&info))))
    }

    /// A command other than an action.
    fn record_command(
        &self,
        buffer: vk::CommandBuffer,
        command: &Command,
        following: &[Command],
    ) -> Result<(), LiveError> {
        match command {
            Command::Action(_) | Command::Barrier(_) => {}
            Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
                let stages = vk::PipelineStageFlags(*stages as u32);
                call!(self.vk, cmd_set_event(buffer, self.events[event.0 as usize], stages));
            }
            Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
                let lists = self.barriers_2(dependencies);
                let info = lists.info();
                call!(self.vk, cmd_set_event2(buffer, self.events[event.0 as usize], Ptr::to(&info)));
            }
            Command::ResetEvent { event, stages } => {
                let stages = vk::PipelineStageFlags2(*stages);
                call!(self.vk, cmd_reset_event2(buffer, self.events[event.0 as usize], stages));
            }
            Command::WaitEvents(wait) => self.record_wait_events(buffer, wait),
            Command::BeginRenderPass { pass, views, area } => {
                self.begin_pass(buffer, *pass, views, *area, SubpassContentsKind::of(following))?;
            }
            Command::NextSubpass => self.next_subpass(buffer, SubpassContentsKind::of(following)),
            Command::EndRenderPass => {
                let end = vk::SubpassEndInfo::zeroed();
                call!(self.vk, cmd_end_render_pass2(buffer, Ptr::to(&end)));
            }
            Command::BeginRendering(rendering) => {
                self.begin_rendering(buffer, rendering, SubpassContentsKind::of(following))?
            }
            Command::EndRendering => call!(self.vk, cmd_end_rendering(buffer)),
            Command::Execute(all) => {
                let all: Vec<vk::CommandBuffer> = all.iter().map(|it| self.command_buffers[it.0 as usize]).collect();
                call!(self.vk, cmd_execute_commands(buffer, all.len() as u32, Ptr::to_slice(&all)));
            }
        }
        Ok(())
    }

    /// In a subpass a barrier is part of a dependency of the subpass on itself, which is by region, and local to each
    /// view.
    fn flags_of_barrier(&self, subpass: Option<(RenderPassId, u32)>) -> vk::DependencyFlags {
        let Some((pass, subpass)) = subpass else { return vk::DependencyFlags(0) };
        let own = self.scenario.program.render_passes[pass.0 as usize].subpasses.get(subpass as usize);
        let view_local = if own.is_some_and(|it| it.view_mask != 0) { vk::DependencyFlags::VIEW_LOCAL.0 } else { 0 };
        vk::DependencyFlags(vk::DependencyFlags::BY_REGION.0 | view_local)
    }

    fn record_barrier(&self, buffer: vk::CommandBuffer, barrier: &Barrier, flags: vk::DependencyFlags) {
        match barrier {
            Barrier::Sync1 { src_stages, dst_stages, dependencies } => {
                let lists = self.barriers_1(dependencies);
                let (src, dst) = (*src_stages as u32, *dst_stages as u32);
                call!(
                    self.vk,
                    cmd_pipeline_barrier(
                        buffer,
                        vk::PipelineStageFlags(src),
                        vk::PipelineStageFlags(dst),
                        flags,
                        lists.memory.len() as u32,
                        Ptr::to_slice(&lists.memory),
                        lists.buffers.len() as u32,
                        Ptr::to_slice(&lists.buffers),
                        lists.images.len() as u32,
                        Ptr::to_slice(&lists.images),
                    )
                );
            }
            Barrier::Sync2 { dependencies } => {
                let lists = self.barriers_2(dependencies);
                let info = vk::DependencyInfo { dependency_flags: flags, ..lists.info() };
                call!(self.vk, cmd_pipeline_barrier2(buffer, Ptr::to(&info)));
            }
        }
    }

    fn record_wait_events(&self, buffer: vk::CommandBuffer, wait: &WaitEvents) {
        match wait {
            WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => {
                let lists = self.barriers_1(dependencies);
                let events: Vec<vk::Event> = events.iter().map(|it| self.events[it.0 as usize]).collect();
                let (src, dst) = (*src_stages as u32, *dst_stages as u32);
                call!(
                    self.vk,
                    cmd_wait_events(
                        buffer,
                        events.len() as u32,
                        Ptr::to_slice(&events),
                        vk::PipelineStageFlags(src),
                        vk::PipelineStageFlags(dst),
                        lists.memory.len() as u32,
                        Ptr::to_slice(&lists.memory),
                        lists.buffers.len() as u32,
                        Ptr::to_slice(&lists.buffers),
                        lists.images.len() as u32,
                        Ptr::to_slice(&lists.images),
                    )
                );
            }
            WaitEvents::Sync2 { events: all } => {
                let lists: Vec<_> = all.iter().map(|it| self.barriers_2(&it.1)).collect();
                let infos: Vec<vk::DependencyInfo> = lists.iter().map(|it| it.info()).collect();
                let events: Vec<vk::Event> = all.iter().map(|it| self.events[it.0.0 as usize]).collect();
                let count = events.len() as u32;
                call!(self.vk, cmd_wait_events2(buffer, count, Ptr::to_slice(&events), Ptr::to_slice(&infos)));
            }
        }
    }
}
