//! The tables against the C compiler: sizes, alignments, offsets, bits and enum values of the installed headers.
//!
//! A generator tested by its own output proves nothing, so the other side here is `cc` and the headers of the
//! distribution. Those are older than our registry: what they know must be the same in our tables, under the same
//! name or under the name without its vendor's suffix where it was promoted since.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command as Process;

use lavascope_abi::desc::{EnumDesc, Field, Layout, Pointee, Ty};
use lavascope_abi::{COMMANDS, HandleType, STRUCTURES, command_by_name, structure_by_name};

const INSTALL: &str = "install the C headers and a compiler: apt-get install libvulkan-dev gcc";

const BETA_ENCODE: &str =
    "video encoding was a beta extension in headers before 1.3.274 and changed when it became final";
const GREW: &str = "later versions of the extension appended fields";
const RENAMED: &str = "now VkRenderPassFragmentDensityMapOffsetEndInfoEXT, which is not the old name less its suffix";

/// Structures and fields that are not the same in the installed headers, and why.
const CHANGED: &[(&str, &str)] = &[
    ("StdVideoEncodeH264PictureInfo", BETA_ENCODE),
    ("StdVideoEncodeH264PictureInfoFlags", BETA_ENCODE),
    ("StdVideoEncodeH264RefMemMgmtCtrlOperations", BETA_ENCODE),
    ("StdVideoEncodeH264RefMgmtFlags", BETA_ENCODE),
    ("StdVideoEncodeH264RefPicMarkingEntry", BETA_ENCODE),
    ("StdVideoEncodeH264ReferenceInfo", BETA_ENCODE),
    ("StdVideoEncodeH264ReferenceInfoFlags", BETA_ENCODE),
    ("StdVideoEncodeH264SliceHeader", BETA_ENCODE),
    ("StdVideoEncodeH264SliceHeaderFlags", BETA_ENCODE),
    ("StdVideoEncodeH265PictureInfo", BETA_ENCODE),
    ("StdVideoEncodeH265PictureInfoFlags", BETA_ENCODE),
    ("StdVideoEncodeH265ReferenceInfo", BETA_ENCODE),
    ("StdVideoEncodeH265ReferenceInfoFlags", BETA_ENCODE),
    ("StdVideoEncodeH265ReferenceModificationFlags", BETA_ENCODE),
    ("StdVideoEncodeH265ReferenceModifications", BETA_ENCODE),
    ("StdVideoEncodeH265SliceSegmentHeader", BETA_ENCODE),
    ("StdVideoEncodeH265SliceSegmentHeaderFlags", BETA_ENCODE),
    ("StdVideoEncodeH265SliceSegmentLongTermRefPics", BETA_ENCODE),
    ("VkDeviceFaultVendorBinaryHeaderVersionOneEXT", GREW),
    ("VkPhysicalDeviceClusterCullingShaderPropertiesHUAWEI", GREW),
    ("VkSubpassFragmentDensityMapOffsetEndInfoQCOM", RENAMED),
    ("VkVideoEncodeCapabilitiesKHR", BETA_ENCODE),
    ("VkVideoEncodeH264CapabilitiesEXT", BETA_ENCODE),
    ("VkVideoEncodeH264DpbSlotInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264EmitPictureParametersInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264NaluSliceInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264RateControlInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264RateControlLayerInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264ReferenceListsInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH264VclFrameInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265CapabilitiesEXT", BETA_ENCODE),
    ("VkVideoEncodeH265DpbSlotInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265EmitPictureParametersInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265NaluSliceSegmentInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265RateControlInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265RateControlLayerInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265ReferenceListsInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeH265VclFrameInfoEXT", BETA_ENCODE),
    ("VkVideoEncodeInfoKHR", BETA_ENCODE),
    ("VkVideoEncodeRateControlInfoKHR", BETA_ENCODE),
    ("VkVideoEncodeRateControlLayerInfoKHR", BETA_ENCODE),
];

/// Constants whose value or existence changed, and why.
const CHANGED_CONSTANTS: &[(&str, &str)] = &[
    ("VK_STRUCTURE_TYPE_VIDEO_ENCODE_H265_REFERENCE_LISTS_INFO_EXT", BETA_ENCODE),
    ("VK_VIDEO_ENCODE_RATE_CONTROL_MODE_CBR_BIT_KHR", BETA_ENCODE),
    ("VK_VIDEO_ENCODE_RATE_CONTROL_MODE_VBR_BIT_KHR", BETA_ENCODE),
];

/// Everything that the headers declare, with stand-ins of the right size for the types of other platforms.
const PREAMBLE: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef struct Display Display;
typedef unsigned long Window, VisualID, RROutput;
typedef struct xcb_connection_t xcb_connection_t;
typedef uint32_t xcb_window_t, xcb_visualid_t;
typedef void *HANDLE, *HINSTANCE, *HWND, *HMONITOR;
typedef const uint16_t *LPCWSTR;
typedef uint32_t DWORD;
typedef struct SECURITY_ATTRIBUTES SECURITY_ATTRIBUTES;
typedef struct IDirectFB IDirectFB;
typedef struct IDirectFBSurface IDirectFBSurface;
typedef uint32_t zx_handle_t, GgpStreamDescriptor;
typedef uint64_t GgpFrameToken;
struct wl_display; struct wl_surface; struct _screen_context; struct _screen_window;
#define VK_ENABLE_BETA_EXTENSIONS
#define VK_NO_PROTOTYPES
#define VK_DEFINE_NON_DISPATCHABLE_HANDLE(object) typedef struct object##_NonDispatchable* object;
#include <vulkan/vulkan_core.h>
#include <vulkan/vulkan_beta.h>
#include <vulkan/vulkan_android.h>
#include <vulkan/vulkan_directfb.h>
#include <vulkan/vulkan_fuchsia.h>
#include <vulkan/vulkan_ggp.h>
#include <vulkan/vulkan_ios.h>
#include <vulkan/vulkan_macos.h>
#include <vulkan/vulkan_metal.h>
#include <vulkan/vulkan_screen.h>
#include <vulkan/vulkan_vi.h>
#include <vulkan/vulkan_wayland.h>
#include <vulkan/vulkan_win32.h>
#include <vulkan/vulkan_xcb.h>
#include <vulkan/vulkan_xlib.h>
#include <vulkan/vulkan_xlib_xrandr.h>
#include <vk_video/vulkan_video_codec_h264std.h>
#include <vk_video/vulkan_video_codec_h264std_decode.h>
#include <vk_video/vulkan_video_codec_h264std_encode.h>
#include <vk_video/vulkan_video_codec_h265std.h>
#include <vk_video/vulkan_video_codec_h265std_decode.h>
#include <vk_video/vulkan_video_codec_h265std_encode.h>
"#;

#[test]
fn structures_are_laid_out_as_in_c() {
    let headers = Headers::read();
    let measured = measure_structures(&headers);
    let mut findings = Findings::new(CHANGED);
    let mut compared = Compared::default();
    for (name, fields) in &headers.structures {
        let Some(ours) = find_structure(&headers, name) else {
            findings.add(name, "our tables do not have it".to_owned());
            continue;
        };
        compared.structures += 1;
        let shape = &measured[name];
        if (shape.size, shape.align) != (ours.size, ours.align) {
            let text = format!("size {} align {}, ours {} and {}", shape.size, shape.align, ours.size, ours.align);
            findings.add(name, text);
        }
        compare_fields(&headers, name, fields, &shape.fields, ours, &mut findings, &mut compared);
    }
    findings.finish();
    println!("{compared:?}");
    assert!(compared.structures > 900, "the scanner found too few structures: {compared:?}");
    assert!(compared.offsets > 4800, "the scanner found too few fields: {compared:?}");
    assert!(compared.bits > 150, "the scanner found too few bit-fields: {compared:?}");
    assert!(compared.types > 3000, "the scanner found too few types: {compared:?}");
    assert!(compared.structure_types > 600, "the scanner found too few structure types: {compared:?}");
}

#[test]
fn parameters_are_those_of_c() {
    let headers = Headers::read();
    let measured = measure_commands(&headers);
    let mut findings = Findings::new(&[]);
    let mut compared = Compared::default();
    for (name, parameters) in &headers.commands {
        let Some(command) = command_by_name(name) else {
            findings.add(name, "our tables do not have it".to_owned());
            continue;
        };
        compared.structures += 1;
        let layout = command.desc().parameters;
        let shape = &measured[name];
        if shape.size != layout.size {
            findings.add(name, format!("parameters of {} bytes, ours {}", shape.size, layout.size));
        }
        compare_fields(&headers, name, parameters, &shape.fields, layout, &mut findings, &mut compared);
    }
    findings.finish();
    println!("{compared:?}");
    assert!(compared.structures > 500, "the scanner found too few commands: {compared:?}");
    assert!(compared.offsets > 2000, "the scanner found too few parameters: {compared:?}");
}

#[test]
fn constants_have_the_values_of_c() {
    let headers = Headers::read();
    let values = measure_constants(&headers);
    let ours = our_enums();
    let by_name: BTreeMap<&str, (i64, &str)> =
        ours.values().flat_map(|it| it.values.iter().map(|value| (value.1, (value.0, it.name)))).collect();
    let mut findings = Findings::new(CHANGED_CONSTANTS);
    let (mut by_names, mut by_values) = (0, 0);
    for ((owner, name), value) in headers.constants.iter().zip(values) {
        if name.contains("_MAX_ENUM") {
            continue;
        }
        if let Some((own, _)) = by_name.get(name.as_str()) {
            by_names += 1;
            if *own != value {
                findings.add(name, format!("{value}, ours {own}"));
            }
        } else if let Some(own) = find_enum(&ours, owner) {
            // Another name of the same value, from before a promotion.
            by_values += 1;
            if !own.values.iter().any(|it| it.0 == value) {
                findings.add(name, format!("{value} is no value of our {}", own.name));
            }
        }
    }
    findings.finish();
    println!("{by_names} constants by name, {by_values} by value");
    assert!(by_names > 2000, "the scanner found too few constants: {by_names}");
    assert!(by_values > 200, "the scanner found too few aliases: {by_values}");
}

#[test]
fn handles_are_those_of_c() {
    let headers = Headers::read();
    let ours: BTreeMap<&str, HandleType> = HandleType::ALL.iter().map(|it| (it.name(), *it)).collect();
    let mut count = 0;
    for (name, is_dispatchable) in &headers.handles {
        let handle = ours.get(name.as_str());
        assert_eq!(handle.map(|it| it.is_dispatchable()), Some(*is_dispatchable), "{name}");
        count += 1;
    }
    assert!(count > 40, "the scanner found too few handles: {count}");
}

#[derive(Debug, Default)]
struct Compared {
    structures: usize,
    offsets: usize,
    bits: usize,
    /// Fields whose type is a handle, a structure, an enum or a pointer to one.
    types: usize,
    structure_types: usize,
}

/// The differences, without known changes.
struct Findings {
    known: BTreeMap<&'static str, &'static str>,
    used: BTreeSet<&'static str>,
    lines: Vec<String>,
}

impl Findings {
    fn new(known: &[(&'static str, &'static str)]) -> Findings {
        Findings { known: known.iter().copied().collect(), used: BTreeSet::new(), lines: Vec::new() }
    }

    fn add(&mut self, item: &str, text: String) {
        let owner = item.split('.').next().unwrap_or(item);
        match self.known.get_key_value(item).or_else(|| self.known.get_key_value(owner)) {
            Some((known, _)) => drop(self.used.insert(known)),
            None => self.lines.push(format!("{item}: {text}")),
        }
    }

    fn finish(self) {
        assert!(self.lines.is_empty(), "C says otherwise:\n{}", self.lines.join("\n"));
        // Newer headers need fewer exceptions.
        if header_version() != EXCEPTIONS_ARE_FOR {
            return;
        }
        let unused: Vec<_> = self.known.keys().filter(|it| !self.used.contains(*it)).collect();
        assert!(unused.is_empty(), "exceptions that are no longer needed: {unused:?}");
    }
}

/// The header version that the exceptions were written for.
const EXCEPTIONS_ARE_FOR: u32 = 239;

/// `VK_HEADER_VERSION` of the installed headers.
fn header_version() -> u32 {
    let text = std::fs::read_to_string("/usr/include/vulkan/vulkan_core.h").unwrap_or_default();
    let line = text.lines().find_map(|it| it.strip_prefix("#define VK_HEADER_VERSION "));
    line.and_then(|it| it.trim().parse().ok()).unwrap_or(0)
}

fn compare_fields(
    headers: &Headers,
    owner: &str,
    fields: &[Member],
    measured: &[(u32, u32)],
    ours: &Layout,
    findings: &mut Findings,
    compared: &mut Compared,
) {
    let names: Vec<&str> = fields.iter().map(|it| it.name.as_str()).collect();
    let our_names: Vec<&str> = ours.fields.iter().map(|it| it.name).collect();
    if names != our_names {
        return findings.add(owner, format!("fields {names:?}, ours {our_names:?}"));
    }
    for ((field, (at, size)), own) in fields.iter().zip(measured).zip(ours.fields) {
        let item = format!("{owner}.{}", field.name);
        let (own_at, own_size) = match own.ty {
            Ty::Bits { shift, width } => (own.at * 8 + u32::from(shift), u32::from(width)),
            _ => (own.at, field_size(own)),
        };
        if field.is_bits != matches!(own.ty, Ty::Bits { .. }) {
            findings.add(&item, "one side has bits".to_owned());
        }
        if (own_at, own_size) != (*at, *size) {
            findings.add(&item, format!("at {at} with {size}, ours at {own_at} with {own_size}"));
        }
        *(if field.is_bits { &mut compared.bits } else { &mut compared.offsets }) += 1;
        if let Some(text) = compare_type(headers, field, own) {
            compared.types += 1;
            if let Err(text) = text {
                findings.add(&item, text);
            }
        }
    }
    if names.first() == Some(&"sType") {
        match headers.structure_type(owner) {
            s_type if ours.s_type() == s_type => compared.structure_types += 1,
            s_type => findings.add(owner, format!("structure type {s_type:?}, ours {:?}", ours.s_type())),
        }
    }
}

/// Whether the kind of a field is the same; none for plain numbers and the like, which only have a size.
fn compare_type(headers: &Headers, field: &Member, own: &Field) -> Option<Result<(), String>> {
    let base = field.base_type();
    let depth = field.ty.matches('*').count();
    let same = |is_same: bool| Some(if is_same { Ok(()) } else { Err(format!("of type {}", field.ty)) });
    let is_struct = |layout: &Layout| find_structure(headers, base).is_some_and(|it| std::ptr::eq(it, layout));
    match (depth, own.ty) {
        (0, Ty::Handle(handle)) => same(handle.name() == base),
        (0, _) if headers.handles.contains_key(base) => same(false),
        (0, Ty::Struct(layout)) => same(is_struct(layout)),
        (0, _) if headers.structures.contains_key(base) => same(false),
        (0, Ty::Enum(desc) | Ty::Flags(desc)) => same(is_enum_name(desc, base)),
        (0, _) if headers.enums.contains(base) => same(false),
        (0, Ty::Bool32) => same(base == "VkBool32"),
        (0, Ty::DeviceAddress) => same(base == "VkDeviceAddress"),
        (0, Ty::F32) => same(base == "float"),
        (0, Ty::Char) => same(base == "char"),
        (0, Ty::Pointer(_) | Ty::Chain) => same(false),
        (1, Ty::Pointer(pointer)) => match &pointer.to {
            Pointee::Handle(handle) => same(handle.name() == base),
            Pointee::Struct(layout) => same(is_struct(layout)),
            Pointee::Text => same(base == "char"),
            Pointee::Values(_) => {
                same(!headers.structures.contains_key(base) && !headers.handles.contains_key(base) && base != "char")
            }
            Pointee::AnyStruct => same(base == "VkBaseOutStructure"),
            _ => same(base == "void" || !headers.structures.contains_key(base)),
        },
        // The two generic structures of the headers point to themselves.
        (1, Ty::Chain) => same(base == "void" || base.starts_with("VkBase")),
        (2.., Ty::Pointer(pointer)) => same(matches!(pointer.to, Pointee::Pointer(_) | Pointee::Opaque)),
        (1.., Ty::Opaque) => None,
        (1.., _) => same(false),
        _ => None,
    }
}

/// `VkFooFlagBits` also describes `VkFooFlags`, and a suffix may have gone since.
fn is_enum_name(desc: &EnumDesc, c_name: &str) -> bool {
    let plain = |name: &str| without_suffix(name).replace("FlagBits", "Flags");
    desc.name == c_name || plain(desc.name) == plain(c_name)
}

fn field_size(field: &Field) -> u32 {
    let one = match field.ty {
        Ty::U8 | Ty::I8 | Ty::Char => 1,
        Ty::U16 | Ty::I16 => 2,
        Ty::U32 | Ty::I32 | Ty::F32 | Ty::Bool32 | Ty::Enum(_) | Ty::Bits { .. } => 4,
        Ty::Flags(desc) => desc.width,
        Ty::Struct(layout) => layout.size,
        Ty::U64 | Ty::I64 | Ty::F64 | Ty::Size | Ty::DeviceAddress => 8,
        Ty::Handle(_) | Ty::TypedHandle | Ty::Chain | Ty::Pointer(_) | Ty::Opaque => 8,
    };
    one * field.count
}

const SUFFIXES: &[&str] = &["KHR", "EXT", "NV", "AMD", "VALVE", "ARM", "QCOM", "GOOGLE", "INTEL", "IMG", "LUNARG"];

fn without_suffix(name: &str) -> &str {
    SUFFIXES.iter().find_map(|it| name.strip_suffix(it)).unwrap_or(name)
}

/// Our layout of a structure, under its name or the one it was promoted to.
fn find_structure(headers: &Headers, name: &str) -> Option<&'static Layout> {
    let name = headers.aliases.get(name).map_or(name, String::as_str);
    let promoted = without_suffix(name);
    let candidates = [name.to_owned(), format!("{promoted}KHR"), format!("{promoted}EXT"), promoted.to_owned()];
    candidates.iter().find_map(|it| structure_by_name(it))
}

fn find_enum<'a>(ours: &BTreeMap<&str, &'a EnumDesc>, name: &str) -> Option<&'a EnumDesc> {
    ours.get(name).or_else(|| ours.get(without_suffix(name))).copied()
}

/// Every enum that a field or parameter has.
fn our_enums() -> BTreeMap<&'static str, &'static EnumDesc> {
    let layouts = STRUCTURES.iter().copied().chain(COMMANDS.iter().map(|it| it.parameters));
    let outputs = COMMANDS.iter().filter_map(|it| it.outputs.map(|it| it.layout));
    let fields = layouts.chain(outputs).flat_map(|it| it.fields);
    let enums = fields.filter_map(|field| match field.ty {
        Ty::Enum(desc) | Ty::Flags(desc) => Some((desc.name, desc)),
        _ => None,
    });
    enums.collect()
}

/// The declarations of the headers, as far as a simple scanner finds them.
struct Headers {
    structures: BTreeMap<String, Vec<Member>>,
    commands: BTreeMap<String, Vec<Member>>,
    /// Enum and constant.
    constants: Vec<(String, String)>,
    enums: BTreeSet<String>,
    /// Whether each handle is dispatchable.
    handles: BTreeMap<String, bool>,
    aliases: BTreeMap<String, String>,
    /// `VkStructureType` by its name without underscores.
    structure_types: BTreeMap<String, i32>,
}

/// A member or parameter.
#[derive(Clone)]
struct Member {
    name: String,
    ty: String,
    is_bits: bool,
}

impl Member {
    /// From a declaration like `const char* const* ppNames` or `uint32_t mask : 8`.
    fn parse(text: &str) -> Member {
        let (text, is_bits) = text.split_once(':').map_or((text, false), |it| (it.0, true));
        let text = text.split('[').next().unwrap_or(text).trim();
        let at = text.rfind(|it: char| !it.is_alphanumeric() && it != '_').map_or(0, |it| it + 1);
        let ty = text[..at].trim().to_owned();
        Member { name: text[at..].to_owned(), ty, is_bits }
    }

    /// The type without pointers and qualifiers.
    fn base_type(&self) -> &str {
        let mut words = self.ty.split(|it: char| !it.is_alphanumeric() && it != '_');
        words.find(|it| !it.is_empty() && *it != "const" && *it != "struct").unwrap_or("")
    }
}

impl Headers {
    fn read() -> Headers {
        let text = preprocess();
        let mut headers = Headers {
            structures: BTreeMap::new(),
            commands: BTreeMap::new(),
            constants: Vec::new(),
            enums: BTreeSet::new(),
            handles: BTreeMap::new(),
            aliases: BTreeMap::new(),
            structure_types: BTreeMap::new(),
        };
        declarations(&text).iter().for_each(|it| headers.declaration(it));
        assert!(!headers.structures.is_empty(), "the headers declare no structures; {INSTALL}");
        let names: Vec<String> = headers.constants.iter().map(|it| it.1.clone()).collect();
        let values = measure_constants(&headers);
        for (name, value) in names.iter().zip(values) {
            if let Some(name) = name.strip_prefix("VK_STRUCTURE_TYPE_") {
                headers.structure_types.insert(name.replace('_', ""), value as i32);
            }
        }
        headers
    }

    /// The type of a structure by the naming rule of the specification.
    fn structure_type(&self, name: &str) -> Option<i32> {
        self.structure_types.get(&name.strip_prefix("Vk")?.to_uppercase()).copied()
    }

    /// One declaration without its semicolon.
    fn declaration(&mut self, text: &str) {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("static const ") {
            let mut words = rest.split_whitespace();
            if let (Some(owner), Some(name)) = (words.next(), words.next()) {
                self.constants.push((owner.to_owned(), name.to_owned()));
            }
        }
        let Some(rest) = text.strip_prefix("typedef ") else { return };
        if let (Some((head, rest)), Some((body, name))) = (rest.split_once('{'), rest.rsplit_once('}')) {
            let body = &rest[..body.len().saturating_sub(head.len() + 1)];
            self.block(head.split_whitespace().next().unwrap_or(""), name.trim(), body);
        } else if let Some((_, rest)) = rest.split_once("*PFN_vk") {
            self.command(rest);
        } else {
            self.alias(rest);
        }
    }

    fn block(&mut self, kind: &str, name: &str, body: &str) {
        let is_ours = name.starts_with("Vk") || name.starts_with("StdVideo");
        match kind {
            "struct" | "union" if is_ours => {
                let members = body.split(';').map(str::trim).filter(|it| !it.is_empty()).map(Member::parse);
                self.structures.insert(name.to_owned(), members.collect());
            }
            "enum" if is_ours => {
                self.enums.insert(name.to_owned());
                let constants = body.split(',').filter_map(|it| it.split('=').next()).map(str::trim);
                let constants = constants.filter(|it| !it.is_empty());
                self.constants.extend(constants.map(|it| (name.to_owned(), it.to_owned())));
            }
            _ => {}
        }
    }

    /// The rest of `PFN_vkName)(parameters)`.
    fn command(&mut self, text: &str) {
        let Some((name, rest)) = text.split_once(')') else { return };
        let list = rest.trim().trim_start_matches('(').trim_end_matches(')');
        // The others are functions of the application, or of the loader.
        let is_command = !["Function", "CallbackEXT", "Notification", "LUNARG"].iter().any(|it| name.ends_with(it));
        if is_command {
            let parameters = list.split(',').map(str::trim).filter(|it| !it.is_empty() && *it != "void");
            self.commands.insert(format!("vk{name}"), parameters.map(parameter).collect());
        }
    }

    /// A handle, or another name of a structure.
    fn alias(&mut self, text: &str) {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [.., target, name] = words[..] else { return };
        let is_handle = |suffix: &str| target.strip_suffix(suffix) == Some(name);
        if is_handle("_T*") || is_handle("_NonDispatchable*") {
            self.handles.insert(name.to_owned(), is_handle("_T*"));
        } else if self.structures.contains_key(target) {
            self.aliases.insert(name.to_owned(), target.to_owned());
        }
    }
}

/// An array parameter is a pointer.
fn parameter(text: &str) -> Member {
    let mut member = Member::parse(text);
    if text.contains('[') {
        member.ty.push('*');
    }
    member
}

/// The text cut at semicolons that are not within braces.
fn declarations(text: &str) -> Vec<String> {
    let (mut found, mut current, mut depth) = (Vec::new(), String::new(), 0);
    for character in text.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if character == ';' && depth == 0 {
            found.push(std::mem::take(&mut current));
        } else {
            current.push(character);
        }
    }
    found
}

/// A file of our own among the build outputs. The tests of this file run at once, so each names its own.
fn scratch(name: &str) -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("c_layout_{}_{thread}_{name}", std::process::id()))
}

fn output_of(process: &mut Process) -> String {
    let output = process.output().unwrap_or_else(|error| panic!("{process:?}: {error}; {INSTALL}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{process:?} failed; {INSTALL}\n{}",
        errors.chars().take(4000).collect::<String>()
    );
    String::from_utf8(output.stdout).expect("C text is ASCII")
}

/// The headers with their macros expanded and comments gone.
fn preprocess() -> String {
    let source = scratch("headers.c");
    std::fs::write(&source, PREAMBLE).expect("the build folder is writable");
    let text = output_of(Process::new("cc").args(["-E", "-P"]).arg(&source));
    std::fs::remove_file(&source).expect("it was just written");
    text
}

/// Compiles and runs a C program, and gives the numbers it prints.
fn run(name: &str, body: &str) -> Vec<i64> {
    let (source, program) = (scratch(&format!("{name}.c")), scratch(name));
    std::fs::write(&source, format!("{PREAMBLE}{body}")).expect("the build folder is writable");
    output_of(Process::new("cc").args(["-std=c11", "-O0", "-w", "-o"]).arg(&program).arg(&source));
    let text = output_of(&mut Process::new(&program));
    for file in [&source, &program] {
        std::fs::remove_file(file).expect("it was just written");
    }
    text.split_whitespace().map(|it| it.parse().expect("the program prints numbers")).collect()
}

/// The compiler's layout of a structure.
struct Shape {
    size: u32,
    align: u32,
    /// Offset and size in bytes; for bit-fields the first bit and the number of bits.
    fields: Vec<(u32, u32)>,
}

/// Prints the table of numbers of a C program.
const MAIN: &str = r#"
static void bits(const void *object, size_t size) {
    const unsigned char *bytes = object;
    long first = -1, count = 0;
    for (size_t at = 0; at < size * 8; at++)
        if (bytes[at / 8] >> at % 8 & 1) { first = first < 0 ? (long)at : first; count++; }
    printf("%ld %ld\n", first, count);
}
int main(void) {
    for (size_t at = 0; at < sizeof(numbers) / sizeof(numbers[0]); at++) printf("%ld\n", (long)numbers[at]);
    bit_fields();
    return 0;
}
"#;

/// Sizes of structures that C declares under `c_name`, by the name they have here.
fn measure(label: &str, declarations: &str, items: &[(String, String, &[Member])]) -> BTreeMap<String, Shape> {
    let mut numbers = String::new();
    let mut bits = String::new();
    for (_, ty, members) in items {
        numbers.push_str(&format!("sizeof({ty}), _Alignof({ty}),\n"));
        for Member { name, is_bits, .. } in *members {
            match is_bits {
                true => bits.push_str(&format!(
                    "{{ {ty} it; memset(&it, 0, sizeof it); it.{name} = ~0; bits(&it, sizeof it); }}\n"
                )),
                false => numbers.push_str(&format!("offsetof({ty}, {name}), sizeof((({ty}*)0)->{name}),\n")),
            }
        }
    }
    let body = format!(
        "{declarations}\nstatic const uint32_t numbers[] = {{\n{numbers}}};\n\
         static void bits(const void *object, size_t size);\nstatic void bit_fields(void) {{\n{bits}}}\n{MAIN}"
    );
    let mut printed = run(label, &body).into_iter().map(|it| u32::try_from(it).unwrap_or(u32::MAX));
    let mut next = || (printed.next().expect("a number"), printed.next().expect("a number"));
    let mut shapes = BTreeMap::new();
    for (name, _, members) in items {
        let (size, align) = next();
        let fields = members.iter().map(|it| if it.is_bits { (0, 0) } else { next() }).collect();
        shapes.insert(name.clone(), Shape { size, align, fields });
    }
    for (name, _, members) in items {
        let shape = shapes.get_mut(name).expect("it was just measured");
        for (member, field) in members.iter().zip(&mut shape.fields).filter(|it| it.0.is_bits) {
            *field = next();
            assert!(field.1 > 0, "{name}.{} has bits", member.name);
        }
    }
    shapes
}

fn measure_structures(headers: &Headers) -> BTreeMap<String, Shape> {
    let items: Vec<_> =
        headers.structures.iter().map(|(name, members)| (name.clone(), name.clone(), &members[..])).collect();
    measure("structures", "", &items)
}

/// The parameters of each command as a structure.
fn measure_commands(headers: &Headers) -> BTreeMap<String, Shape> {
    let mut text = String::new();
    for (name, members) in &headers.commands {
        let members: String = members.iter().map(|it| format!("{} {}; ", it.ty, it.name)).collect();
        text.push_str(&format!("typedef struct {{ {members} }} {name}_parameters;\n"));
    }
    let items: Vec<_> = headers
        .commands
        .iter()
        .map(|(name, members)| (name.clone(), format!("{name}_parameters"), &members[..]))
        .collect();
    measure("commands", &text, &items)
}

fn measure_constants(headers: &Headers) -> Vec<i64> {
    let names: String = headers.constants.iter().map(|it| format!("{},\n", it.1)).collect();
    let body = format!(
        "int main(void) {{ const int64_t numbers[] = {{\n{names}}};\n\
         for (size_t at = 0; at < sizeof(numbers) / sizeof(numbers[0]); at++) printf(\"%lld\\n\", (long long)numbers[at]);\n\
         return 0; }}"
    );
    let values = run("constants", &body);
    assert_eq!(values.len(), headers.constants.len(), "one value for each constant");
    values
}
