//! The words of messages about faults, in the form that readers of the Khronos layer know.

use lavascope_instrument::{CheckSite, RecordedFault, ShaderInvocation};

use super::codes::BoundResourceKind;

/// Describes the fault.
pub(super) fn error_text(
    kind: BoundResourceKind,
    binding: Option<(u32, u32)>,
    site: &CheckSite,
    (error, is_write): (&RecordedFault, Option<bool>),
    address_text: impl FnOnce(u64) -> String,
) -> String {
    let word = kind.word();
    let access = match is_write {
        Some(true) => "write",
        Some(false) => "read",
        None => "access",
    };
    let place = binding.map_or_else(String::new, |it| format!(" (set = {}, binding = {})", it.0, it.1));
    match *error {
        RecordedFault::IndexOutOfBounds { index, length } => {
            format!("Index of {index} used to index descriptor array of length {length}{place}.")
        }
        RecordedFault::Uninitialized { index } => format!("{word} descriptor index {index} was never written{place}."),
        RecordedFault::AddressOutOfBounds { address } => address_text(address),
        RecordedFault::BufferOutOfBounds { descriptor, index, range } => {
            let first = site.index_unit.first_byte(index);
            let last = first.saturating_add(site.bytes.saturating_sub(1));
            format!(
                "{word} {access} out of bounds: index {index}, bytes {first} to {last}, where {range} bytes are bound \
                 to descriptor {descriptor}{place}."
            )
        }
        RecordedFault::TexelOutOfBounds { texel, length } => {
            format!("{word} {access} out of bounds: texel {texel} of {length}{place}.")
        }
    }
}

/// Describes the shader invocation.
pub(crate) fn stage_text(stage: &ShaderInvocation) -> String {
    let three = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    match *stage {
        ShaderInvocation::Vertex { vertex, instance } => {
            format!("Stage = Vertex. Vertex index = {vertex}, instance index = {instance}.")
        }
        ShaderInvocation::TessellationControl { invocation, primitive } => {
            format!("Stage = Tessellation Control. Invocation ID = {invocation}, primitive ID = {primitive}.")
        }
        ShaderInvocation::TessellationEvaluation { primitive, coordinates: [u, v] } => {
            format!("Stage = Tessellation Evaluation. Primitive ID = {primitive}, TessCoord (u, v) = ({u}, {v}).")
        }
        ShaderInvocation::Geometry { primitive, invocation } => {
            format!("Stage = Geometry. Primitive ID = {primitive}, invocation ID = {invocation}.")
        }
        ShaderInvocation::Fragment { coordinates: [x, y] } => {
            format!("Stage = Fragment. Fragment coord (x,y) = ({x}, {y}).")
        }
        ShaderInvocation::Compute { invocation } => {
            format!("Stage = Compute. Global invocation ID (x, y, z) = {}.", three(invocation))
        }
        ShaderInvocation::Task { invocation } => {
            format!("Stage = Task. Global invocation ID (x, y, z) = {}.", three(invocation))
        }
        ShaderInvocation::Mesh { invocation } => {
            format!("Stage = Mesh. Global invocation ID (x, y, z) = {}.", three(invocation))
        }
        ShaderInvocation::Ray { model, launch } => {
            format!("Stage = {}. Launch ID (x, y, z) = {}.", ray_stage(model), three(launch))
        }
    }
}

/// The ray tracing stage of an execution model.
fn ray_stage(model: u32) -> &'static str {
    match model {
        5313 => "Ray Generation",
        5314 => "Intersection",
        5315 => "Any Hit",
        5316 => "Closest Hit",
        5317 => "Miss",
        _ => "Callable",
    }
}
