//! Prints programs as short text, one command or step per line.
//!
//! The text is only for people who read a disagreement. Scenarios have a file format of their own.

use std::fmt::Write;

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_sync_ir::{
    Access, AttachmentView, Barrier, Certainty, Command, Dependency, DependencyTarget, HostStep, Program,
    ProgramLocation, RasterOrder, Region, RenderPass, Resource, ResourceId, ResourceKind, SemaphorePoint, SetEvent,
    SubmitBatch, SyncScope, WaitEvents,
};

/// Short names of single stages and of groups of stages.
pub(crate) const STAGES: &[(&str, u64)] = &[
    ("DI", S::DRAW_INDIRECT.0),
    ("IX", S::INDEX_INPUT.0),
    ("VA", S::VERTEX_ATTRIBUTE_INPUT.0),
    ("VS", S::VERTEX_SHADER.0),
    ("EF", S::EARLY_FRAGMENT_TESTS.0),
    ("FS", S::FRAGMENT_SHADER.0),
    ("LF", S::LATE_FRAGMENT_TESTS.0),
    ("CO", S::COLOR_ATTACHMENT_OUTPUT.0),
    ("CS", S::COMPUTE_SHADER.0),
    ("TR", S::COPY.0),
    ("CL", S::CLEAR.0),
    ("HO", S::HOST.0),
    ("TRANSFER", S::ALL_TRANSFER.0),
    ("GRAPHICS", S::ALL_GRAPHICS.0),
    ("ALL", S::ALL_COMMANDS.0),
    ("TOP", S::TOP_OF_PIPE.0),
    ("BOTTOM", S::BOTTOM_OF_PIPE.0),
];

/// Short names of access flags. Names of writes are in capitals.
pub(crate) const ACCESSES: &[(&str, u64)] = &[
    ("ir", A::INDIRECT_COMMAND_READ.0),
    ("ix", A::INDEX_READ.0),
    ("va", A::VERTEX_ATTRIBUTE_READ.0),
    ("uni", A::UNIFORM_READ.0),
    ("smp", A::SHADER_SAMPLED_READ.0),
    ("sr", A::SHADER_STORAGE_READ.0),
    ("SW", A::SHADER_STORAGE_WRITE.0),
    ("shr", A::SHADER_READ.0),
    ("SHW", A::SHADER_WRITE.0),
    ("in", A::INPUT_ATTACHMENT_READ.0),
    ("cr", A::COLOR_ATTACHMENT_READ.0),
    ("CW", A::COLOR_ATTACHMENT_WRITE.0),
    ("dr", A::DEPTH_STENCIL_ATTACHMENT_READ.0),
    ("DW", A::DEPTH_STENCIL_ATTACHMENT_WRITE.0),
    ("r", A::TRANSFER_READ.0),
    ("W", A::TRANSFER_WRITE.0),
    ("hr", A::HOST_READ.0),
    ("HW", A::HOST_WRITE.0),
    ("mr", A::MEMORY_READ.0),
    ("MW", A::MEMORY_WRITE.0),
];

/// A program as text.
pub fn print(program: &Program) -> String {
    let mut text = String::new();
    for (number, queue) in program.queues.iter().enumerate() {
        push_line(&mut text, format_args!("q{number} family {} flags {:#x}", queue.family, queue.flags));
    }
    for (number, resource) in program.resources.iter().enumerate() {
        push_line(&mut text, format_args!("r{number} {}", resource_text(resource)));
    }
    for (number, pass) in program.render_passes.iter().enumerate() {
        push_line(&mut text, format_args!("pass{number}:"));
        pass_lines(&mut text, pass);
    }
    for (number, buffer) in program.command_buffers.iter().enumerate() {
        let kind = if buffer.is_secondary { " secondary" } else { "" };
        push_line(&mut text, format_args!("cb{number}{kind}:"));
        for command in &buffer.commands {
            push_line(&mut text, format_args!("  {}", command_text(command)));
        }
    }
    for (number, step) in program.steps.iter().enumerate() {
        push_line(&mut text, format_args!("{number}: {}", step_text(step)));
    }
    text
}

/// The location as `step.batch.command_buffer:path of commands`, or the step alone.
pub fn print_place(place: &ProgramLocation) -> String {
    match place {
        ProgramLocation::Step(step) => format!("{step}"),
        ProgramLocation::Command(at) => {
            let path: Vec<_> = at.path.iter().map(u32::to_string).collect();
            format!("{}.{}.{}:{}", at.step, at.batch, at.primary, path.join("."))
        }
    }
}

fn push_line(text: &mut String, what: std::fmt::Arguments<'_>) {
    writeln!(text, "{what}").expect("a string takes everything");
}

fn resource_text(resource: &Resource) -> String {
    let kind = match &resource.kind {
        ResourceKind::Buffer { size } => format!("buffer {size}"),
        ResourceKind::Image(image) => format!(
            "image {:?} {:?} mips {} layers {} {:?}{}",
            image.format,
            image.extent,
            image.mips,
            image.layers,
            image.tiling,
            if image.alias { " alias" } else { "" }
        ),
    };
    match resource.binding {
        Some(memory_binding) => {
            format!("{kind} at m{} {}+{}", memory_binding.memory.0, memory_binding.offset, memory_binding.size)
        }
        None => kind,
    }
}

fn pass_lines(text: &mut String, pass: &RenderPass) {
    for attachment in &pass.attachments {
        push_line(text, format_args!("  {attachment:?}"));
    }
    for subpass in &pass.subpasses {
        push_line(text, format_args!("  {subpass:?}"));
    }
    for dependency in &pass.dependencies {
        push_line(
            text,
            format_args!("  {:?} -> {:?} {}", dependency.src, dependency.dst, scope_text(&dependency.scope)),
        );
    }
}

fn command_text(command: &Command) -> String {
    match command {
        Command::Action(accesses) => join(accesses, " + ", access_text),
        Command::Barrier(Barrier::Sync1 { src_stages, dst_stages, dependencies }) => format!(
            "barrier1 {} -> {} : {}",
            stages_text(*src_stages),
            stages_text(*dst_stages),
            join(dependencies, " + ", dependency_text)
        ),
        Command::Barrier(Barrier::Sync2 { dependencies }) => {
            format!("barrier {}", join(dependencies, " + ", dependency_text))
        }
        Command::SetEvent(SetEvent::Sync1 { event, stages }) => format!("set1 e{} {}", event.0, stages_text(*stages)),
        Command::SetEvent(SetEvent::Sync2 { event, dependencies }) => {
            format!("set e{} {}", event.0, join(dependencies, " + ", dependency_text))
        }
        Command::ResetEvent { event, .. } => format!("reset e{}", event.0),
        Command::WaitEvents(wait) => wait_text(wait),
        Command::BeginRenderPass { pass, views, area } => {
            format!("begin pass{} {} {area:?}", pass.0, join(views, ", ", view_text))
        }
        Command::NextSubpass => "next".into(),
        Command::EndRenderPass => "end".into(),
        Command::BeginRendering(rendering) => format!("rendering {rendering:?}"),
        Command::EndRendering => "end rendering".into(),
        Command::Execute(buffers) => format!("exec {}", join(buffers, ", ", |it| format!("cb{}", it.0))),
    }
}

fn wait_text(wait: &WaitEvents) -> String {
    match wait {
        WaitEvents::Sync1 { events, src_stages, dst_stages, dependencies } => format!(
            "wait1 {} {} -> {} : {}",
            join(events, ",", |it| format!("e{}", it.0)),
            stages_text(*src_stages),
            stages_text(*dst_stages),
            join(dependencies, " + ", dependency_text)
        ),
        WaitEvents::Sync2 { events } => {
            let event = |(event, dependencies): &(lavascope_sync_ir::EventId, Vec<Dependency>)| {
                format!("e{} {}", event.0, join(dependencies, " + ", dependency_text))
            };
            format!("wait {}", join(events, " ; ", event))
        }
    }
}

fn access_text(access: &Access) -> String {
    let order = match access.order {
        RasterOrder::None => String::new(),
        RasterOrder::Color => " color order".to_owned(),
        RasterOrder::DepthStencil => " depth order".to_owned(),
        RasterOrder::Atomic => " atomic".to_owned(),
        marker => marker.marker_stage().map_or_else(String::new, |it| format!(" marker {}", stages_text(it.stages()))),
    };
    let what = target_text(access.resource, &access.region);
    let possible = if access.certainty == Certainty::Unreported { " possible" } else { "" };
    format!("{}.{} {what}{order}{possible}", stages_text(access.stage), accesses_text(access.access))
}

fn dependency_text(dependency: &Dependency) -> String {
    let what = match &dependency.target {
        DependencyTarget::Global => "Global".into(),
        DependencyTarget::Resource { resource, region } => format!("Res({})", target_text(*resource, region)),
        DependencyTarget::Transition { resource, region } => format!("Trans({})", target_text(*resource, region)),
        DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership } => format!(
            "Own({} {}->{}{})",
            target_text(*resource, region),
            ownership.src_family,
            ownership.dst_family,
            if ownership.is_transition { " with layout" } else { "" }
        ),
    };
    format!("{what}{}", scope_text(&dependency.scope))
}

fn scope_text(scope: &SyncScope) -> String {
    format!(
        "[S={} SA={} -> D={} DA={}]",
        stages_text(scope.src_stages),
        accesses_text(scope.src_access),
        stages_text(scope.dst_stages),
        accesses_text(scope.dst_access)
    )
}

fn view_text(view: &AttachmentView) -> String {
    target_text(view.resource, &Region::Image(view.region.clone()))
}

fn target_text(resource: ResourceId, region: &Region) -> String {
    let part = match region {
        Region::Buffer(bytes) => format!("[{},{})", bytes.start, bytes.end),
        Region::Image(image) => {
            let mut part = match image.area {
                Some(area) => {
                    let [x, y, _] = area.offset;
                    let [width, height, _] = area.extent;
                    format!("[{x},{})x[{y},{})", x + width, y + height)
                }
                None => "[all)".into(),
            };
            let all = [("aspects", image.aspects, 1), ("components", u32::from(image.components.0), 15)];
            for (name, value, usual) in all {
                if value != usual {
                    write!(part, " {name} {value:#x}").expect("a string takes everything");
                }
            }
            if image.mips != (0..1) || image.layers != (0..1) {
                write!(part, " mips {:?} layers {:?}", image.mips, image.layers).expect("a string takes everything");
            }
            part
        }
    };
    format!("r{} {part}", resource.0)
}

fn step_text(step: &HostStep) -> String {
    match step {
        HostStep::Submit { queue, batches, fence } => {
            let fence = fence.map_or(String::new(), |it| format!(" fence f{}", it.0));
            format!("submit q{} {}{fence}", queue.0, join(batches, " ; ", batch_text))
        }
        HostStep::WaitFences(fences) => format!("wait fences {}", join(fences, ", ", |it| format!("f{}", it.0))),
        HostStep::ResetFences(fences) => format!("reset fences {}", join(fences, ", ", |it| format!("f{}", it.0))),
        HostStep::QueueIdle(queue) => format!("idle q{}", queue.0),
        HostStep::DeviceIdle => "device idle".into(),
        HostStep::WaitSemaphores(points) => format!("host waits {}", join(points, ", ", point_text)),
        HostStep::SignalSemaphore(point) => format!("host signals {}", point_text(point)),
        HostStep::SetEvent(event) => format!("host sets e{}", event.0),
        HostStep::ResetEvent(event) => format!("host resets e{}", event.0),
        HostStep::HostAccess { resource, region, is_write, .. } => {
            format!("host {} {}", if *is_write { "writes" } else { "reads" }, target_text(*resource, region))
        }
        HostStep::Acquire { image, semaphore, fence } => format!("acquire r{} {semaphore:?} {fence:?}", image.0),
        HostStep::Present { queue, waits, images } => format!("present q{} {waits:?} {images:?}", queue.0),
        HostStep::BindSparse { queue, waits, binds, signals, fence } => {
            format!("bind q{} wait {waits:?} {binds:?} signal {signals:?} {fence:?}", queue.0)
        }
        HostStep::Destroy(resource) => format!("destroy r{}", resource.0),
    }
}

fn batch_text(batch: &SubmitBatch) -> String {
    let waits = join(&batch.waits, ", ", |it| format!("{} {}", point_text(&it.point), stages_text(it.stages)));
    let signals = join(&batch.signals, ", ", |it| format!("{} {}", point_text(&it.point), stages_text(it.stages)));
    let buffers = join(&batch.command_buffers, ", ", |it| it.0.to_string());
    format!("wait[{waits}] cbs[{buffers}] sig[{signals}]")
}

fn point_text(point: &SemaphorePoint) -> String {
    point.value.map_or(format!("s{}", point.semaphore.0), |it| format!("s{}={it}", point.semaphore.0))
}

fn stages_text(mask: u64) -> String {
    mask_text(mask, STAGES)
}

fn accesses_text(mask: u64) -> String {
    mask_text(mask, ACCESSES)
}

fn mask_text(mask: u64, names: &[(&str, u64)]) -> String {
    let known = names.iter().fold(0, |all, it| all | it.1);
    let mut parts: Vec<_> = names.iter().filter(|it| mask & it.1 != 0).map(|it| it.0.to_owned()).collect();
    if mask & !known != 0 {
        parts.push(format!("{:#x}", mask & !known));
    }
    parts.join("|")
}

fn join<T>(all: &[T], between: &str, text: impl Fn(&T) -> String) -> String {
    all.iter().map(text).collect::<Vec<_>>().join(between)
}
