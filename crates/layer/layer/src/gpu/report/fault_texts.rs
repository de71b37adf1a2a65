//! The title of a shader fault, and the fix that it suggests, in the names of the shader's source.

use lavascope_abi::ShaderStageFlags;
use lavascope_diag::{AccessText, Fix, TITLE_MAX, ordinal_word, shortened};
use lavascope_instrument::{Check, CheckSite, IndexUnit, RecordedFault};
use lavascope_spirv::AccessDescription;

use super::codes::BoundResourceKind;
use crate::gpu::resource::buffer_addresses::BufferAddressLookup;

/// Characters of a name in a title.
const NAME_MAX: usize = 32;

/// What a fault is about.
pub(crate) struct FaultNames {
    pub(crate) stage: ShaderStageFlags,
    pub(crate) kind: BoundResourceKind,
    pub(crate) binding: Option<(u32, u32)>,
    /// None if the module does not say what is accessed.
    pub(crate) access: Option<AccessDescription>,
    /// The debug name of the buffer that is bound.
    pub(crate) buffer: Option<String>,
}

/// A fault at a device address.
pub(crate) struct AddressFault {
    pub(crate) is_null: bool,
    pub(crate) found: BufferAddressLookup,
    /// The debug name of the buffer.
    pub(crate) buffer: Option<String>,
    /// Bytes that the shader accesses.
    pub(crate) bytes: u64,
    /// The smallest and the largest index so far; none if there is no index.
    pub(crate) indices: Option<(u32, u32)>,
}

impl FaultNames {
    fn variable(&self) -> Option<String> {
        let name = self.access.as_ref().and_then(|it| it.variable.as_deref()).filter(|it| !it.is_empty())?;
        Some(shortened(name, NAME_MAX))
    }

    /// `"emitters"`, or `the storage buffer of set 0, binding 1`.
    fn resource(&self) -> String {
        let word = self.kind.word().to_lowercase();
        match (self.variable(), self.binding) {
            (Some(name), _) => format!("{name:?}"),
            (None, Some((set, binding))) => format!("the {word} of set {set}, binding {binding}"),
            (None, None) => format!("a {word}"),
        }
    }

    /// What the access is past the end of: `buffer "particles"`.
    fn bound(&self) -> String {
        self.buffer.as_ref().map_or_else(|| self.resource(), |it| format!("buffer {:?}", shortened(it, NAME_MAX)))
    }

    /// The descriptor, as an element of its variable: `textures[6]`.
    fn descriptor(&self, index: u32) -> String {
        match self.variable() {
            Some(name) => format!("{name}[{index}]"),
            None => format!("descriptor {index} of {}", self.resource()),
        }
    }

    fn verb(&self) -> &'static str {
        if self.access.as_ref().is_some_and(|it| it.is_write) { "writes" } else { "reads" }
    }

    /// What is accessed: `e[16]`.
    fn element(&self, descriptor: Option<u32>, index: Option<u32>, word: &str) -> String {
        let text = self.access.as_ref().map(|it| it.text(descriptor, index)).filter(|it| !it.is_empty());
        let text = text.map(|it| shortened(&it, NAME_MAX));
        match (text, index) {
            (Some(text), Some(index)) if !text.contains(&format!("[{index}]")) => format!("{text}, {word} {index},"),
            (Some(text), _) => text,
            (None, Some(index)) => format!("{word} {index}"),
            (None, None) => "an access".to_owned(),
        }
    }

    /// The title of a fault. `index` is the smallest one that is out of bounds.
    pub(crate) fn title(&self, fault: &RecordedFault, site: &CheckSite, index: u32) -> String {
        let (resource, past) = (self.resource(), "is past the end of");
        let title = match *fault {
            RecordedFault::IndexOutOfBounds { length, .. } => {
                format!("{} {past} {resource} ({})", self.descriptor(index), counted(length.into(), "descriptor"))
            }
            RecordedFault::Uninitialized { index } => {
                let place = self.binding.map_or_else(String::new, |it| format!(" (set {}, binding {})", it.0, it.1));
                format!("{}{place} was never written", self.descriptor(index))
            }
            RecordedFault::TexelOutOfBounds { length, .. } => {
                format!("texel {index} {past} {} ({})", self.bound(), counted(length.into(), "texel"))
            }
            RecordedFault::BufferOutOfBounds { descriptor, range, .. } => match site.index_unit {
                IndexUnit::Elements { offset, stride, .. } => {
                    let count = u64::from(range).saturating_sub(offset) / stride.max(1);
                    let element = self.element(Some(descriptor), Some(index), "element");
                    format!("{element} {past} {} ({})", self.bound(), counted(count, "element"))
                }
                unit => {
                    let first = unit.first_byte(index);
                    let last = first.saturating_add(site.bytes.saturating_sub(1));
                    let bytes = counted(range.into(), "byte");
                    format!(
                        "{} (bytes {first} to {last}) {past} {} ({bytes})",
                        self.element(Some(descriptor), None, ""),
                        self.bound()
                    )
                }
            },
            RecordedFault::AddressOutOfBounds { .. } => self.unknown_title(Check::Address),
        };
        shortened(&title, TITLE_MAX)
    }

    /// The title of a fault without a record.
    pub(crate) fn unknown_title(&self, check: Check) -> String {
        let title = match check {
            Check::Descriptor => format!("a descriptor of {} is invalid", self.resource()),
            Check::Buffer | Check::Texel => {
                format!("{} is past the end of {}", self.element(None, None, ""), self.resource())
            }
            Check::Address => format!("{} {} an invalid device address", stage_word(self.stage), self.verb()),
        };
        shortened(&title, TITLE_MAX)
    }

    /// The title of a fault at a device address. The address itself differs from run to run.
    pub(crate) fn address_title(&self, fault: &AddressFault) -> String {
        let element = self.element(None, fault.indices.map(|it| it.0), "element");
        let done = if self.access.as_ref().is_some_and(|it| it.is_write) { "written" } else { "read" };
        let buffer = fault.buffer.as_ref();
        let buffer = buffer.map_or_else(|| "a buffer".to_owned(), |it| format!("buffer {:?}", shortened(it, NAME_MAX)));
        let title = match &fault.found {
            BufferAddressLookup::Nowhere if fault.is_null => {
                format!("{element} is {done} through a null device address")
            }
            BufferAddressLookup::Nowhere => {
                format!("{element} is {done} at a device address that belongs to no buffer")
            }
            BufferAddressLookup::InBuffer { bytes, .. } => {
                let size = counted(*bytes, "byte");
                format!("{element} crosses the end of {buffer} ({size}), {done} by its device address")
            }
            BufferAddressLookup::PastEnd { bytes, .. } => {
                let size = counted(*bytes, "byte");
                format!("{element} is past the end of {buffer} ({size}), {done} by its device address")
            }
            BufferAddressLookup::Destroyed { .. } => {
                format!("{element} is {done} by its device address after {buffer} was destroyed")
            }
        };
        shortened(&title, TITLE_MAX)
    }

    /// What to do about a fault at a device address.
    pub(crate) fn address_fix(&self, fault: &AddressFault) -> Fix {
        let larger = |end: u64| {
            let is_only = fault.indices.is_some_and(|it| it.0 == it.1);
            let size = if is_only { format!("a buffer of at least {end} bytes") } else { "a larger buffer".to_owned() };
            format!("test the index before the access, or create {size}")
        };
        let text = match &fault.found {
            BufferAddressLookup::Nowhere if fault.is_null => {
                "give the shader the address of a buffer (vkGetBufferDeviceAddress)".to_owned()
            }
            BufferAddressLookup::Nowhere => {
                "give the shader an address of vkGetBufferDeviceAddress, of a buffer that still exists".to_owned()
            }
            BufferAddressLookup::InBuffer { offset, .. } => larger(offset.saturating_add(fault.bytes)),
            BufferAddressLookup::PastEnd { distance, bytes, .. } => {
                larger(bytes.saturating_add(*distance).saturating_add(fault.bytes))
            }
            BufferAddressLookup::Destroyed { .. } => {
                "destroy the buffer after the command has completed, or give the shader another address".to_owned()
            }
        };
        Fix::advice(text)
    }

    /// What the fault is known by from run to run: function, order in it, variable and binding; no line.
    pub(crate) fn cause(&self) -> String {
        let binding = self.binding.map_or_else(String::new, |it| format!(" (set {}, binding {})", it.0, it.1));
        match &self.access {
            Some(access) => {
                let name = access.variable.as_deref().unwrap_or_default();
                format!("{}(), {} access of {name:?}{binding}", access.function, ordinal_word(access.ordinal.into()))
            }
            None => format!("{}{binding}", stage_word(self.stage)),
        }
    }

    /// What the shader does: `writes e[16]`.
    pub(crate) fn access_text(&self, index: Option<u32>) -> AccessText {
        let text = self.access.as_ref().map(|it| it.text(None, index)).filter(|it| !it.is_empty());
        let is_write = self.access.as_ref().is_some_and(|it| it.is_write);
        let access = match (self.kind, is_write) {
            (BoundResourceKind::Uniform | BoundResourceKind::Inline, _) => "VK_ACCESS_2_UNIFORM_READ_BIT",
            (BoundResourceKind::Storage, true) => "VK_ACCESS_2_SHADER_STORAGE_WRITE_BIT",
            (BoundResourceKind::Storage, false) => "VK_ACCESS_2_SHADER_STORAGE_READ_BIT",
            _ => "",
        };
        AccessText {
            function: String::new(),
            action: format!("{} {}", self.verb(), text.unwrap_or_else(|| self.resource())),
            stage: stage_name(self.stage).to_owned(),
            access: access.to_owned(),
            is_write,
        }
    }

    /// A fix, where one is plain. `most` is the largest index that was out of bounds.
    pub(crate) fn fix(&self, fault: &RecordedFault, site: &CheckSite, most: u32) -> Option<Fix> {
        let text = match *fault {
            RecordedFault::IndexOutOfBounds { length, .. } => {
                format!("test the index before the access (`if (index < {length})`), or make the array larger")
            }
            RecordedFault::Uninitialized { index } => {
                let place = self.binding.map_or_else(String::new, |(set, binding)| {
                    format!(" (set {set}, dstBinding {binding}, dstArrayElement {index})")
                });
                format!("write the descriptor{place} before the command is recorded or submitted")
            }
            RecordedFault::TexelOutOfBounds { length, .. } => {
                format!("test the index before the access (`if (index < {length})`), or make the buffer view larger")
            }
            RecordedFault::BufferOutOfBounds { range, .. } => {
                let bytes = site.index_unit.first_byte(most).saturating_add(site.bytes);
                let bind = format!("bind at least {bytes} bytes");
                match site.index_unit {
                    IndexUnit::Elements { offset, stride, .. } => {
                        let count = u64::from(range).saturating_sub(offset) / stride.max(1);
                        format!("test the index before the access (`if (index < {count})`), or {bind}")
                    }
                    IndexUnit::Constant { .. } | IndexUnit::Bytes => bind,
                }
            }
            // The buffer says what to do (`address_fix`).
            RecordedFault::AddressOutOfBounds { .. } => return None,
        };
        Some(Fix::advice(text))
    }
}

/// The pipeline stage that runs a shader.
fn stage_name(stage: ShaderStageFlags) -> &'static str {
    const NAMES: [(ShaderStageFlags, &str); 8] = [
        (ShaderStageFlags::VERTEX, "VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT"),
        (ShaderStageFlags::TESSELLATION_CONTROL, "VK_PIPELINE_STAGE_2_TESSELLATION_CONTROL_SHADER_BIT"),
        (ShaderStageFlags::TESSELLATION_EVALUATION, "VK_PIPELINE_STAGE_2_TESSELLATION_EVALUATION_SHADER_BIT"),
        (ShaderStageFlags::GEOMETRY, "VK_PIPELINE_STAGE_2_GEOMETRY_SHADER_BIT"),
        (ShaderStageFlags::FRAGMENT, "VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT"),
        (ShaderStageFlags::COMPUTE, "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT"),
        (ShaderStageFlags::TASK_EXT, "VK_PIPELINE_STAGE_2_TASK_SHADER_BIT_EXT"),
        (ShaderStageFlags::MESH_EXT, "VK_PIPELINE_STAGE_2_MESH_SHADER_BIT_EXT"),
    ];
    let own = NAMES.iter().find(|it| stage.0 & it.0.0 != 0);
    own.map_or("VK_PIPELINE_STAGE_2_RAY_TRACING_SHADER_BIT_KHR", |it| it.1)
}

fn counted(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

/// `compute shader`.
pub(crate) fn stage_word(stage: ShaderStageFlags) -> &'static str {
    const WORDS: [(ShaderStageFlags, &str); 14] = [
        (ShaderStageFlags::VERTEX, "vertex shader"),
        (ShaderStageFlags::TESSELLATION_CONTROL, "tessellation control shader"),
        (ShaderStageFlags::TESSELLATION_EVALUATION, "tessellation evaluation shader"),
        (ShaderStageFlags::GEOMETRY, "geometry shader"),
        (ShaderStageFlags::FRAGMENT, "fragment shader"),
        (ShaderStageFlags::COMPUTE, "compute shader"),
        (ShaderStageFlags::TASK_EXT, "task shader"),
        (ShaderStageFlags::MESH_EXT, "mesh shader"),
        (ShaderStageFlags::RAYGEN_KHR, "ray generation shader"),
        (ShaderStageFlags::ANY_HIT_KHR, "any-hit shader"),
        (ShaderStageFlags::CLOSEST_HIT_KHR, "closest-hit shader"),
        (ShaderStageFlags::MISS_KHR, "miss shader"),
        (ShaderStageFlags::INTERSECTION_KHR, "intersection shader"),
        (ShaderStageFlags::CALLABLE_KHR, "callable shader"),
    ];
    WORDS.iter().find(|it| stage.0 & it.0.0 != 0).map_or("shader", |it| it.1)
}

#[cfg(test)]
mod tests {
    use lavascope_instrument::CheckDecision;
    use lavascope_spirv::{AccessStep, InstructionIndex};

    use super::*;

    fn names() -> FaultNames {
        let access = AccessDescription {
            function: "main".to_owned(),
            ordinal: 1,
            variable: Some("emitters".to_owned()),
            is_block: true,
            path: vec![AccessStep::Member("e".to_owned()), AccessStep::Index(None)],
            is_write: true,
        };
        let (stage, kind) = (ShaderStageFlags::COMPUTE, BoundResourceKind::Storage);
        FaultNames { stage, kind, binding: Some((0, 1)), access: Some(access), buffer: None }
    }

    fn site(index_unit: IndexUnit) -> CheckSite {
        CheckSite {
            at: InstructionIndex(7),
            check: Check::Buffer,
            decision: CheckDecision::Checked { number: 0 },
            binding: Some((0, 1)),
            element: None,
            bytes: 4,
            index_unit,
        }
    }

    #[test]
    fn titles_have_the_names_of_the_source() {
        let fault = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 17, range: 64 };
        let elements = site(IndexUnit::Elements { offset: 0, stride: 4, is_signed: false });
        let own = names();
        assert_eq!(own.title(&fault, &elements, 16), "e[16] is past the end of \"emitters\" (16 elements)");
        let constant = site(IndexUnit::Constant { offset: 64 });
        let text = "e[…] (bytes 64 to 67) is past the end of \"emitters\" (64 bytes)";
        assert_eq!(own.title(&fault, &constant, 0), text);
        let index = RecordedFault::IndexOutOfBounds { index: 6, length: 6 };
        assert_eq!(own.title(&index, &elements, 6), "emitters[6] is past the end of \"emitters\" (6 descriptors)");
        let never = RecordedFault::Uninitialized { index: 3 };
        assert_eq!(own.title(&never, &elements, 3), "emitters[3] (set 0, binding 1) was never written");
        let unnamed = FaultNames { access: None, ..names() };
        let text = "element 16 is past the end of the storage buffer of set 0, binding 1 (16 elements)";
        assert_eq!(unnamed.title(&fault, &elements, 16), text);
        let bound = FaultNames { buffer: Some("particles".to_owned()), ..names() };
        let text = "e[16] is past the end of buffer \"particles\" (16 elements)";
        assert_eq!(bound.title(&fault, &elements, 16), text);
    }

    #[test]
    fn faults_at_addresses_have_element_size_and_fix() {
        let fault =
            |is_null, found, indices| AddressFault { is_null, found, buffer: Some("b".to_owned()), bytes: 4, indices };
        let own = names();
        let null = fault(true, BufferAddressLookup::Nowhere, None);
        assert_eq!(own.address_title(&null), "e[…] is written through a null device address");
        assert!(own.address_fix(&null).text.contains("vkGetBufferDeviceAddress"));
        let past = |indices| fault(false, BufferAddressLookup::PastEnd { buffer: 1, distance: 4, bytes: 8 }, indices);
        let text = "e[3] is past the end of buffer \"b\" (8 bytes), written by its device address";
        assert_eq!(own.address_title(&past(Some((3, 9)))), text);
        let text = "test the index before the access, or create a buffer of at least 16 bytes";
        assert_eq!(own.address_fix(&past(Some((3, 3)))).text, text);
        let text = "test the index before the access, or create a larger buffer";
        assert_eq!(own.address_fix(&past(Some((3, 9)))).text, text);
        let gone = fault(false, BufferAddressLookup::Destroyed { buffer: 1, name: None }, Some((0, 0)));
        assert_eq!(own.address_title(&gone), "e[0] is written by its device address after buffer \"b\" was destroyed");
    }

    #[test]
    fn fixes_are_plain() {
        let fault = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 16, range: 64 };
        let fix = names()
            .fix(&fault, &site(IndexUnit::Elements { offset: 0, stride: 4, is_signed: false }), 31)
            .expect("a fix");
        let text = "test the index before the access (`if (index < 16)`), or bind at least 128 bytes";
        assert_eq!((fix.text.as_str(), fix.is_verified), (text, false));
        let never = RecordedFault::Uninitialized { index: 3 };
        let fix = names().fix(&never, &site(IndexUnit::Bytes), 3).expect("a fix");
        let place = "(set 0, dstBinding 1, dstArrayElement 3)";
        assert_eq!(fix.text, format!("write the descriptor {place} before the command is recorded or submitted"));
    }

    /// Neither a line nor the number of an instruction.
    #[test]
    fn a_fault_is_known_by_its_function_and_its_order_there() {
        assert_eq!(names().cause(), "main(), 2nd access of \"emitters\" (set 0, binding 1)");
        assert_eq!(FaultNames { access: None, ..names() }.cause(), "compute shader (set 0, binding 1)");
    }

    #[test]
    fn long_names_are_cut() {
        let mut own = names();
        let access = own.access.as_mut().expect("there is one");
        (access.variable, access.path[0]) = (Some("v".repeat(90)), AccessStep::Member("m".repeat(90)));
        let fault = RecordedFault::BufferOutOfBounds { descriptor: 0, index: 17, range: 64 };
        let title = own.title(&fault, &site(IndexUnit::Elements { offset: 0, stride: 4, is_signed: false }), 16);
        assert!(title.chars().count() <= TITLE_MAX && title.contains("past the end of"), "{title}");
    }
}
