//! The title of a hazard: one short line, such as `compute shader reads "emitters" before the copy
//! is visible`.

use lavascope_abi::{AccessFlags2 as A, PipelineStageFlags2 as S};
use lavascope_diag::{AccessText, DiagnosticObject, TITLE_MAX, shortened};
use lavascope_sync_ir::{HazardKind, LoadOp, OriginKind, Region, ResourceId, ResourceKind};

use super::api_names::{access_names, region_text, stage_names};
use super::message::{ExplainedHazard, is_ray_traced, is_shader_access};
use super::names::HOST;
use super::properties::is_image;
use crate::{AccessDetail, AccessRole, Agent, CoverageGap, ExplainedAccess, ProgramNames, SyncOperation};

/// If a title is too long, a name is cut to this many characters.
const NAME_MIN: usize = 16;

/// The name of a resource: `"emitters"`, or `VkBuffer#3` if it has no debug name.
pub(crate) fn resource_name(object: &DiagnosticObject) -> String {
    match &object.name {
        Some(name) => format!("{name:?}"),
        None => format!("{}#{}", object.kind, object.id),
    }
}

/// A title with the name of a resource. If the title is too long, the name is cut.
pub(crate) fn fitting_title(resource: &str, title: impl Fn(&str) -> String) -> String {
    let whole = title(resource);
    let surplus = whole.chars().count().saturating_sub(TITLE_MAX);
    if surplus == 0 {
        return whole;
    }
    let name = resource.trim_matches('"');
    let length = name.chars().count().saturating_sub(surplus).max(NAME_MIN);
    let cut = shortened(name, length);
    shortened(&title(&if resource.starts_with('"') { format!("\"{cut}\"") } else { cut }), TITLE_MAX)
}

impl ExplainedHazard<'_> {
    pub(crate) fn title(&self) -> String {
        let resource = resource_name(&self.names.object(self.hazard.resource));
        fitting_title(&resource, |resource| self.title_about(resource))
    }

    fn title_about(&self, resource: &str) -> String {
        let (later, prior) = (&self.explanation.later, &self.explanation.prior);
        let (subject, prior_subject) = (subject(later, &self.command()), subject(prior, &self.prior_command()));
        let is_own = self.hazard.at == self.hazard.prior;
        let actor = if is_own && prior.role != AccessRole::Transition {
            "the same command".to_owned()
        } else if subject == prior_subject {
            format!("an earlier {prior_subject}")
        } else if prior.role == AccessRole::Forgotten {
            "earlier work".to_owned()
        } else {
            format!("the {prior_subject}")
        };
        let write =
            if is_operation(prior, &self.prior_command()) { actor.clone() } else { format!("the write of {actor}") };
        let verb = if matches!(later.role, AccessRole::Command | AccessRole::Host) && later.is_write {
            "overwrites"
        } else {
            verb(later)
        };
        let begin = match later.role {
            AccessRole::Transition => format!("{subject} of {resource} begins"),
            _ => format!("{subject} {verb} {resource}"),
        };
        match self.hazard.kind {
            HazardKind::ReadAfterWrite => format!("{begin} before {write} is visible"),
            HazardKind::WriteAfterRead => format!("{begin} while {actor} may still read it"),
            HazardKind::WriteAfterWrite => format!("{begin} before {write} is {}", self.missing_word()),
            HazardKind::PresentAfterWrite => format!("presentation shows {resource} before {write} is visible"),
            HazardKind::PresentAfterRead => format!("presentation takes {resource} while {actor} may still read it"),
            HazardKind::ReadAfterPresent | HazardKind::WriteAfterPresent => {
                format!("{begin} before the presentation engine has released it")
            }
            HazardKind::ReadRacingWrite | HazardKind::WriteRacingWrite => {
                format!("{begin} while {}", self.racing(&actor, "write it"))
            }
            HazardKind::WriteRacingRead => format!("{begin} while {}", self.racing(&actor, "read it")),
        }
    }

    /// The adjective for a write after a write. If an operation orders the two and only its access
    /// masks are incomplete, the earlier write is not available. Otherwise it is not finished.
    fn missing_word(&self) -> &'static str {
        let is_memory = |gap: &CoverageGap| matches!(gap, CoverageGap::SourceAccess | CoverageGap::DestinationAccess);
        let orders = |it: &SyncOperation| !it.gaps.is_empty() && it.gaps.iter().all(is_memory);
        if self.explanation.operations.iter().any(orders) { "available" } else { "finished" }
    }

    /// The second half of a title about a race: `the copy on another queue may write it`.
    fn racing(&self, actor: &str, does: &str) -> String {
        let actor = if actor.starts_with("an earlier") { "an earlier one" } else { actor };
        match (self.explanation.prior.agent, self.explanation.later.agent) {
            (Agent::Queue(from), Agent::Queue(to)) if from != to => format!("{actor} on another queue may {does}"),
            (Agent::Queue(_), Agent::Queue(_)) => format!("{actor} of another subpass may {does}"),
            _ => format!("{actor} may still {does}"),
        }
    }

    pub(crate) fn later_text(&self) -> AccessText {
        access_text(self, &self.explanation.later, self.command())
    }

    pub(crate) fn prior_text(&self) -> AccessText {
        if self.explanation.prior.role == AccessRole::Forgotten {
            return AccessText { is_write: self.explanation.prior.is_write, ..AccessText::default() };
        }
        access_text(self, &self.explanation.prior, self.prior_command())
    }
}

/// The function, the action on the resource, and the names of the stage and the access.
fn access_text(explained: &ExplainedHazard<'_>, access: &ExplainedAccess, function: String) -> AccessText {
    let own = std::slice::from_ref(&access.region);
    let regions = if access.resource == explained.hazard.resource { explained.regions } else { own };
    let part = parts_text(explained, access.resource, regions);
    let resource = resource_name(&explained.names.object(access.resource));
    let verb = match access.role {
        AccessRole::Transition if is_image(access) => "changes the layout of",
        AccessRole::Transition => "transfers the ownership of",
        _ => verb(access),
    };
    let name = |mask: u64, names: fn(u64) -> String| if mask == 0 { String::new() } else { names(mask) };
    AccessText {
        function: if function == HOST { String::new() } else { function },
        action: format!("{verb} {resource}{part}{}", usage_words(access)),
        stage: name(access.stage, stage_names),
        access: name(access.access, access_names),
        is_write: access.is_write,
    }
}

/// The regions of a resource in words. Empty if one of them is the whole resource.
fn parts_text(explained: &ExplainedHazard<'_>, resource: ResourceId, regions: &[Region]) -> String {
    let kind = explained.program.resources.get(resource.0 as usize).map(|it| &it.kind);
    let is_whole = |region: &Region| match (region, kind) {
        (Region::Buffer(bytes), Some(ResourceKind::Buffer { size })) => bytes.start == 0 && bytes.end >= *size,
        (Region::Image(part), Some(ResourceKind::Image(image))) => {
            part.area.is_none() && part.mips.len() as u32 >= image.mips && part.layers.len() as u32 >= image.layers
        }
        _ => false,
    };
    match regions {
        all if all.iter().any(is_whole) => String::new(),
        [region] => region_text(region),
        [region, _] => format!("{} and 1 more part", region_text(region)),
        [region, others @ ..] => format!("{} and {} more parts", region_text(region), others.len()),
        [] => String::new(),
    }
}

/// How the access uses the resource, if that says more than "reads" or "writes".
fn usage_words(access: &ExplainedAccess) -> String {
    if let AccessDetail::Command(origin) = access.detail
        && let OriginKind::Descriptor(descriptor) = origin.kind()
    {
        let element = if descriptor.element > 0 { format!("[{}]", descriptor.element) } else { String::new() };
        return format!(" (set {}, binding {}{element})", descriptor.set, descriptor.binding);
    }
    let words = [
        (A::INDIRECT_COMMAND_READ, " as indirect parameters"),
        (A::INDEX_READ, " as indices"),
        (A::VERTEX_ATTRIBUTE_READ, " as vertices"),
        (A::COLOR_ATTACHMENT_READ, " as color attachment"),
        (A::COLOR_ATTACHMENT_WRITE, " as color attachment"),
        (A::DEPTH_STENCIL_ATTACHMENT_READ, " as depth attachment"),
        (A::DEPTH_STENCIL_ATTACHMENT_WRITE, " as depth attachment"),
        (A::INPUT_ATTACHMENT_READ, " as input attachment"),
    ];
    words.iter().find(|it| access.access == it.0.0).map_or("", |it| it.1).to_owned()
}

/// The noun for the actor of an access, without an article.
fn subject(access: &ExplainedAccess, function: &str) -> String {
    let word = match access.role {
        AccessRole::Command => return command_subject(access, function),
        AccessRole::Transition if is_image(access) => "layout transition",
        AccessRole::Transition => "ownership transfer",
        AccessRole::Load | AccessRole::Store | AccessRole::Resolve => "render pass",
        AccessRole::Host => "host",
        AccessRole::Acquire | AccessRole::Present => "presentation engine",
        AccessRole::Forgotten => "earlier work",
    };
    word.to_owned()
}

fn command_subject(access: &ExplainedAccess, function: &str) -> String {
    let shader = SHADER_WORDS.iter().find(|it| it.0.0 == access.stage && is_shader_access(access));
    if is_ray_traced(access) && access.stage != S::RAY_TRACING_SHADER_KHR.0 {
        return shader.map_or("ray query", |it| it.1).to_owned();
    }
    shader.map_or_else(|| command_word(function).to_owned(), |it| it.1.to_owned())
}

const SHADER_WORDS: [(S, &str); 9] = [
    (S::VERTEX_SHADER, "vertex shader"),
    (S::TESSELLATION_CONTROL_SHADER, "tessellation shader"),
    (S::TESSELLATION_EVALUATION_SHADER, "tessellation shader"),
    (S::GEOMETRY_SHADER, "geometry shader"),
    (S::FRAGMENT_SHADER, "fragment shader"),
    (S::COMPUTE_SHADER, "compute shader"),
    (S::TASK_SHADER_EXT, "task shader"),
    (S::MESH_SHADER_EXT, "mesh shader"),
    (S::RAY_TRACING_SHADER_KHR, "ray tracing shader"),
];

/// The noun for a command, such as "copy". Commands without a noun keep the name of the function.
pub(crate) fn command_word(function: &str) -> &str {
    const WORDS: [(&str, &str); 23] = [
        ("vkCmdCopyQueryPoolResults", "query copy"),
        ("vkCmdCopyAccelerationStructure", "acceleration structure copy"),
        ("vkCmdCopyMicromap", "micromap copy"),
        ("vkCmdCopy", "copy"),
        ("vkCmdFillBuffer", "fill"),
        ("vkCmdUpdateBuffer", "update"),
        ("vkCmdClear", "clear"),
        ("vkCmdBlit", "blit"),
        ("vkCmdResolve", "resolve"),
        ("vkCmdDraw", "draw"),
        ("vkCmdDispatch", "dispatch"),
        ("vkCmdTraceRays", "ray tracing"),
        ("vkCmdBuildAccelerationStructure", "acceleration structure build"),
        ("vkCmdDecodeVideo", "video decode"),
        ("vkCmdEncodeVideo", "video encode"),
        ("vkCmdPipelineBarrier", "barrier"),
        ("vkCmdWaitEvents", "event wait"),
        ("vkCmdBeginConditionalRendering", "conditional rendering"),
        ("vkCmdBeginTransformFeedback", "transform feedback"),
        ("vkCmdEndTransformFeedback", "transform feedback"),
        ("vkCmdBegin", "render pass"),
        ("vkCmdEnd", "render pass"),
        ("vkCmdNextSubpass", "render pass"),
    ];
    match function {
        HOST => "host",
        "vkQueuePresentKHR" => "presentation",
        _ => WORDS.iter().find(|it| function.starts_with(it.0)).map_or(function, |it| it.1),
    }
}

/// Whether the noun of the actor already means a write. "The copy is visible" needs no addition,
/// but a shader needs "the write of the shader is visible".
fn is_operation(access: &ExplainedAccess, function: &str) -> bool {
    match access.role {
        AccessRole::Transition => true,
        AccessRole::Command => {
            let words = ["copy", "fill", "update", "clear", "blit", "resolve", "build", "encode", "decode"];
            !is_shader_access(access) && words.iter().any(|it| command_word(function).ends_with(it))
        }
        _ => false,
    }
}

/// The verb for an access.
fn verb(access: &ExplainedAccess) -> &'static str {
    match (access.role, access.detail) {
        (AccessRole::Present, _) => "shows",
        (AccessRole::Acquire, _) => "acquires",
        (_, AccessDetail::Load(LoadOp::Clear)) => "clears",
        (_, AccessDetail::Load(LoadOp::DontCare)) => "discards",
        (AccessRole::Load, _) => "loads",
        (AccessRole::Store, _) => "stores",
        (AccessRole::Resolve, _) if access.is_write => "resolves into",
        (AccessRole::Resolve, _) => "resolves",
        _ if access.is_write => "writes",
        _ => "reads",
    }
}

/// The name of a resource for the title of a fault: `"emitters"`.
pub(crate) fn name_of(resource: ResourceId, names: &dyn ProgramNames) -> String {
    resource_name(&names.object(resource))
}
