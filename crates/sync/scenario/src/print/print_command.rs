//! Commands and steps as text.

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_sync_ir::{
    Access, AttachmentKind, AttachmentView, Barrier, Certainty, Command, LoadOp, Program, SemaphorePoint, SubmitBatch,
};
use lavascope_sync_ir::{HostStep, SparsePart, StoreOp};
use lavascope_sync_ir::{OriginKind, WaitEvents};
use lavascope_sync_ir::{RasterOrder, Region, Rendering, RenderingAttachment, ResourceKind, SetEvent, SparseBind};

use crate::DeclaredNames;
use crate::parse::command::{CLAUSES, RENDERING_KINDS, whole_area};
use crate::parse::declare::{LOADS, STORES};
use crate::parse::region::{ByteRangeText, area_text, region_text};
use crate::parse::words::graphics_stages;
use crate::print::print_scope::{accesses_text, stages_text, version_1_text, version_2_text};

/// A program with its names.
#[derive(Clone, Copy)]
pub(crate) struct ProgramPrinter<'a> {
    pub(crate) program: &'a Program,
    pub(crate) names: &'a DeclaredNames,
}

impl ProgramPrinter<'_> {
    pub(crate) fn command(self, command: &Command) -> String {
        let ProgramPrinter { program, names } = self;
        match command {
            Command::Action(accesses) => self.action(accesses),
            Command::Barrier(Barrier::Sync2 { dependencies: all }) => {
                spaced("barrier", &version_2_text(program, names, all))
            }
            Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies: all }) => {
                spaced("barrier1", &version_1_text(program, names, *src_stages, *dst_stages, all))
            }
            Command::SetEvent(SetEvent::Sync1 { event, stages }) => {
                format!("set1 {} {}", names.events[event.0 as usize], stages_text(*stages))
            }
            Command::SetEvent(SetEvent::Sync2 { event, dependencies: all }) => {
                spaced(&format!("set {}", names.events[event.0 as usize]), &version_2_text(program, names, all))
            }
            Command::ResetEvent { event, stages } => {
                format!("reset {} {}", names.events[event.0 as usize], stages_text(*stages))
            }
            Command::WaitEvents(wait) => self.wait(wait),
            Command::BeginRenderPass { pass, views, area } => {
                let mut text = format!("begin {}", names.render_passes[pass.0 as usize]);
                if !views.is_empty() {
                    let views: Vec<String> = views.iter().map(|it| self.view(it)).collect();
                    text = format!("{text} with {}", views.join(", "));
                }
                if *area != whole_area(program, views.first()) {
                    text = format!("{text} area {}", area_text(area));
                }
                text
            }
            Command::NextSubpass => "next subpass".to_owned(),
            Command::EndRenderPass => "end pass".to_owned(),
            Command::BeginRendering(rendering) => self.rendering(rendering),
            Command::EndRendering => "end rendering".to_owned(),
            Command::Execute(all) => {
                let all = all.iter().map(|it| names.command_buffers[it.0 as usize].as_str());
                format!("execute {}", all.collect::<Vec<_>>().join(" "))
            }
        }
    }

    fn wait(self, wait: &WaitEvents) -> String {
        let name = |it: &lavascope_sync_ir::EventId| self.names.events[it.0 as usize].as_str();
        match wait {
            WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies: all } => {
                let events = events.iter().map(name).collect::<Vec<_>>().join(" and ");
                let scopes = version_1_text(self.program, self.names, *src_stages, *dst_stages, all);
                format!("wait1 {events} {scopes}")
            }
            WaitEvents::Sync2 { events } => {
                let one = |pair: &(lavascope_sync_ir::EventId, Vec<lavascope_sync_ir::Dependency>)| {
                    spaced(name(&pair.0), &version_2_text(self.program, self.names, &pair.1))
                };
                format!("wait {}", events.iter().map(one).collect::<Vec<_>>().join(" and "))
            }
        }
    }

    fn part(self, id: lavascope_sync_ir::ResourceId, region: &Region) -> String {
        let at = id.0 as usize;
        region_text(&self.names.resources[at], &self.program.resources[at], region, ByteRangeText::OnlyIfPartial)
    }

    fn view(self, view: &AttachmentView) -> String {
        self.part(view.resource, &Region::Image(view.region.clone()))
    }

    fn action(self, accesses: &[Access]) -> String {
        if let Some(verb) = transfer_verb(accesses) {
            let pair = |access: &[Access]| {
                format!(
                    "{} -> {}",
                    self.part(access[0].resource, &access[0].region),
                    self.part(access[1].resource, &access[1].region)
                )
            };
            return format!("{verb} {}", accesses.chunks(2).map(pair).collect::<Vec<_>>().join(", "));
        }
        if is_clear(accesses) {
            let is_buffer = |access: &Access| {
                matches!(self.program.resources[access.resource.0 as usize].kind, ResourceKind::Buffer { .. })
            };
            let verb = if accesses.iter().all(is_buffer) { "fill" } else { "clear" };
            let all = accesses.iter().map(|it| self.part(it.resource, &it.region));
            return format!("{verb} {}", all.collect::<Vec<_>>().join(", "));
        }
        let verb = shader_verb(accesses);
        let possibly = |it: &Access| if it.certainty == Certainty::Unreported { "possibly " } else { "" };
        let all: Vec<String> = accesses.iter().map(|it| format!("{}{}", possibly(it), self.clause(verb, it))).collect();
        spaced(verb, &all.join(", "))
    }

    fn clause(self, verb: &str, access: &Access) -> String {
        let part = self.part(access.resource, &access.region);
        let fits = |access_clause: &&crate::parse::command::AccessClause| {
            let stage = access_clause.stage == 0 || access_clause.stage == access.stage;
            access_clause.access == access.access && access_clause.order == access.order && stage
        };
        let found = CLAUSES.iter().find(fits).filter(|_| verb != "access" && access.stage.count_ones() == 1);
        let Some(found) = found else {
            let order = match access.order {
                RasterOrder::None => String::new(),
                RasterOrder::Color => " ordered color".to_owned(),
                RasterOrder::DepthStencil => " ordered depth".to_owned(),
                RasterOrder::Atomic => " atomic".to_owned(),
                marker => {
                    marker.marker_stage().map_or_else(String::new, |it| format!(" marker {}", stages_text(it.stages())))
                }
            };
            let access_word = accesses_text(access.stage, access.access);
            return format!("{}:{access_word} {part}{order}", stages_text(access.stage));
        };
        let mut text = found.verb.to_owned();
        if !found.kind.is_empty() {
            text = format!("{text} {}", found.kind);
        }
        text = format!("{text} {part}");
        if let OriginKind::Attributes(attributes) = access.origin.kind() {
            let all = attributes.attributes().into_iter().map(|it| format!(" [{}..{}]", it.start, it.end));
            text = format!("{text} stride {}{}", attributes.stride(), all.collect::<String>());
        }
        let is_default = verb == "dispatch" && access.stage == PipelineStageFlags2::COMPUTE_SHADER.0;
        if found.stage == 0 && !is_default {
            text = format!("{text} at {}", stages_text(access.stage));
        }
        text
    }

    fn rendering(self, rendering: &Rendering) -> String {
        let all: Vec<String> = rendering.attachments.iter().map(|it| self.attachment(it)).collect();
        let mut text = spaced("begin rendering", &all.join(", "));
        if rendering.area != whole_area(self.program, rendering.attachments.first().map(|it| &it.view)) {
            text = format!("{text} area {}", area_text(&rendering.area));
        }
        if rendering.view_mask != 0 {
            text = format!("{text} views={:#x}", rendering.view_mask);
        }
        for (is_set, word) in [(rendering.is_suspending, " suspend"), (rendering.is_resuming, " resume")] {
            text.push_str(if is_set { word } else { "" });
        }
        text
    }

    fn attachment(self, attachment: &RenderingAttachment) -> String {
        // An image with both aspects is two attachments, so the fourth kind is not one of rendering.
        let kind = match attachment.kind {
            AttachmentKind::DepthStencil => AttachmentKind::Depth,
            other => other,
        };
        let mut text = format!("{} {}", word_of(&RENDERING_KINDS, kind), self.view(&attachment.view));
        if attachment.load != LoadOp::Load {
            text = format!("{text} load={}", word_of(&LOADS, attachment.load));
        }
        if attachment.store != StoreOp::Store {
            text = format!("{text} store={}", word_of(&STORES, attachment.store));
        }
        if let Some(resolve) = &attachment.resolve {
            text = format!("{text} resolve {}", self.view(&resolve.view));
        }
        text
    }

    pub(crate) fn step(self, step: &HostStep) -> String {
        let names = self.names;
        let queue = |it: &lavascope_sync_ir::QueueId| names.queues[it.0 as usize].as_str();
        let resource = |it: &lavascope_sync_ir::ResourceId| names.resources[it.0 as usize].as_str();
        let semaphore = |it: &lavascope_sync_ir::SemaphoreId| names.semaphores[it.0 as usize].name.as_str();
        let fence = |it: &lavascope_sync_ir::FenceId| names.fences[it.0 as usize].as_str();
        let event = |it: &lavascope_sync_ir::EventId| names.events[it.0 as usize].as_str();
        match step {
            HostStep::Submit { queue: on, batches, fence: with } => {
                let all: Vec<String> = batches.iter().map(|it| self.batch(it)).collect();
                let all = if all.is_empty() { " nothing".to_owned() } else { all.join(" then") };
                let with = with.map_or(String::new(), |it| format!(" fence {}", fence(&it)));
                format!("{} submit{all}{with}", queue(on))
            }
            HostStep::WaitFences(all) => spaced("wait fence", &list(all, fence)),
            HostStep::ResetFences(all) => spaced("reset fence", &list(all, fence)),
            HostStep::QueueIdle(on) => format!("{} idle", queue(on)),
            HostStep::DeviceIdle => "device idle".to_owned(),
            HostStep::WaitSemaphores(all) => {
                let all = all.iter().map(|it| self.point(it, ">=")).collect::<Vec<_>>();
                format!("host wait {}", all.join(", "))
            }
            HostStep::SignalSemaphore(point) => format!("host signal {}", self.point(point, "=")),
            HostStep::SetEvent(set_event) => format!("host set {}", event(set_event)),
            HostStep::ResetEvent(reset_event) => format!("host reset {}", event(reset_event)),
            HostStep::HostAccess { resource, region, is_write, .. } => {
                format!("host {} {}", if *is_write { "writes" } else { "reads" }, self.part(*resource, region))
            }
            HostStep::Acquire { image, semaphore: signal, fence: with } => {
                let signal = signal.map_or(String::new(), |it| format!(" signal {}", semaphore(&it)));
                let with = with.map_or(String::new(), |it| format!(" fence {}", fence(&it)));
                format!("acquire {}{signal}{with}", resource(image))
            }
            HostStep::Present { queue: on, waits, images } => {
                let text = spaced(&format!("{} present", queue(on)), &list(images, resource));
                if waits.is_empty() { text } else { format!("{text} wait {}", list(waits, semaphore)) }
            }
            HostStep::BindSparse { queue: on, waits, binds, signals, fence: with } => {
                let binds = binds.iter().map(|it| self.sparse_bind(it)).collect::<Vec<_>>().join(", ");
                let points = |word: &str, all: &[SemaphorePoint], sign: &str| match all {
                    [] => String::new(),
                    all => {
                        let all: Vec<String> = all.iter().map(|it| self.point(it, sign)).collect();
                        format!(" {word} {}", all.join(", "))
                    }
                };
                let with = with.map_or(String::new(), |it| format!(" fence {}", fence(&it)));
                let (waits, signals) = (points("wait", waits, ">="), points("signal", signals, "="));
                format!("{} bind {binds}{waits}{signals}{with}", queue(on))
            }
            HostStep::Destroy(destroy) => format!("destroy {}", resource(destroy)),
        }
    }

    fn sparse_bind(self, bind: &SparseBind) -> String {
        let is_buffer = matches!(self.program.resources[bind.resource.0 as usize].kind, ResourceKind::Buffer { .. });
        let (part, size) = match &bind.part {
            SparsePart::Bytes(start) if is_buffer => {
                (self.part(bind.resource, &Region::Buffer(*start..start + bind.size)), String::new())
            }
            SparsePart::Bytes(start) => {
                let name = &self.names.resources[bind.resource.0 as usize];
                (format!("opaque {name}[{start}..{}]", start + bind.size), String::new())
            }
            SparsePart::Texels(part) => {
                (self.part(bind.resource, &Region::Image(part.clone())), format!(" size={}", bind.size))
            }
        };
        match bind.memory {
            None => format!("{part} to nothing"),
            Some((memory, offset)) => {
                format!("{part} to {}+{offset}{size}", self.names.memories[memory.0 as usize].name)
            }
        }
    }

    /// With a space before each part.
    fn batch(self, batch: &SubmitBatch) -> String {
        let mut text = String::new();
        for command_buffer in &batch.command_buffers {
            text = format!("{text} {}", self.names.command_buffers[command_buffer.0 as usize]);
        }
        let at = |stages: u64| match stages == PipelineStageFlags2::ALL_COMMANDS.0 {
            true => String::new(),
            false => format!(" at {}", stages_text(stages)),
        };
        if !batch.waits.is_empty() {
            let all = batch.waits.iter().map(|it| format!("{}{}", self.point(&it.point, ">="), at(it.stages)));
            text = format!("{text} wait {}", all.collect::<Vec<_>>().join(", "));
        }
        if !batch.signals.is_empty() {
            let all = batch.signals.iter().map(|it| format!("{}{}", self.point(&it.point, "="), at(it.stages)));
            text = format!("{text} signal {}", all.collect::<Vec<_>>().join(", "));
        }
        text
    }

    fn point(self, point: &SemaphorePoint, sign: &str) -> String {
        let name = &self.names.semaphores[point.semaphore.0 as usize].name;
        point.value.map_or_else(|| name.clone(), |value| format!("{name}{sign}{value}"))
    }
}

fn list<'n, T>(all: &[T], name: impl Fn(&T) -> &'n str) -> String {
    all.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn spaced(first: &str, rest: &str) -> String {
    if rest.is_empty() { first.to_owned() } else { format!("{first} {rest}") }
}

pub(crate) fn word_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|it| it.1 == value).map_or("none", |it| it.0)
}

fn transfer_verb(accesses: &[Access]) -> Option<&'static str> {
    let first = accesses.first()?;
    let verb = match PipelineStageFlags2(first.stage) {
        PipelineStageFlags2::COPY => "copy",
        PipelineStageFlags2::BLIT => "blit",
        PipelineStageFlags2::RESOLVE => "resolve",
        _ => return None,
    };
    let is = |item: &Access, access: AccessFlags2| {
        item.stage == first.stage && item.access == access.0 && item.order == RasterOrder::None
    };
    let is_pair = |items: &[Access]| {
        items.len() == 2 && is(&items[0], AccessFlags2::TRANSFER_READ) && is(&items[1], AccessFlags2::TRANSFER_WRITE)
    };
    accesses.chunks(2).all(is_pair).then_some(verb)
}

fn is_clear(accesses: &[Access]) -> bool {
    let is = |item: &Access| {
        let is_write = item.access == AccessFlags2::TRANSFER_WRITE.0 && item.order == RasterOrder::None;
        item.stage == PipelineStageFlags2::CLEAR.0 && is_write
    };
    !accesses.is_empty() && accesses.iter().all(is)
}

fn shader_verb(accesses: &[Access]) -> &'static str {
    let compute = PipelineStageFlags2::COMPUTE_SHADER.0;
    let beside = PipelineStageFlags2::DRAW_INDIRECT.0 | PipelineStageFlags2::CONDITIONAL_RENDERING_EXT.0;
    let all = accesses.iter().fold(0, |all, it| all | it.stage);
    if all & compute != 0 && all & !(compute | beside) == 0 {
        "dispatch"
    } else if all & !graphics_stages() == 0 && (all != 0 || accesses.is_empty()) {
        // A draw that touches nothing stands for all commands that do not.
        "draw"
    } else {
        "access"
    }
}
