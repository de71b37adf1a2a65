//! Calls built by a C compiler with the real headers: packed, checked, printed, unpacked and packed again.
//!
//! The other tests build calls from our tables, so they cannot detect a wrong table. Here C code provides the memory,
//! including invalid pointers, and the expected lines of each printed record.

use std::ffi::{CStr, c_char, c_void};
use std::path::PathBuf;
use std::process::Command as Process;

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::desc::{Blob, Layout, Ty};
use lavascope_abi::{
    Command, DescriptorUpdateTemplateEntry, HandleType, ObjectId, STRUCTURES, bytes_of_slice, command_by_name,
};
use lavascope_marshal::{
    Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker, outputs_image,
};
use lavascope_record::check::{check, check_image};
use lavascope_record::pack_context::{PackContext, SubpassUse};
use lavascope_record::print::print;
use lavascope_record::walk::{StructFrame, WalkPass};
use lavascope_record::{Omissions, Record, RecordPhase};

const INSTALL: &str = "install the C headers and a compiler: apt-get install libvulkan-dev gcc";

#[test]
fn calls_of_c_are_packed_as_c_means_them() {
    let fixtures = Fixtures::load();
    let mut failures = Vec::new();
    for fixture in &fixtures.enters {
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&FixtureHandles, &fixtures.facts);
        // SAFETY: `c_calls.c` makes a valid call for each fixture, in static memory of the library, which `fixtures`
        // keeps loaded.
        let words = unsafe { packer.pack_parameters(&mut stream, fixture.command, fixture.image, 17) }.to_vec();
        failures.extend(examine(&fixtures.facts, fixture, &words));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(fixtures.enters.len() >= 90, "only {} calls", fixtures.enters.len());
    println!("{} calls, {} lines", fixtures.enters.len(), line_count(&fixtures.enters));
}

#[test]
fn outputs_of_c_are_packed_as_c_means_them() {
    let fixtures = Fixtures::load();
    let mut failures = Vec::new();
    for fixture in &fixtures.leaves {
        let mut outputs = Vec::new();
        // SAFETY: `c_calls.c` has the parameters of a call that returned this result, in static memory of the library.
        let has_outputs = unsafe { outputs_image(fixture.command.desc(), fixture.image, fixture.result, &mut outputs) };
        assert!(has_outputs, "{} has outputs", fixture.command.desc().name);
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&FixtureHandles, &fixtures.facts);
        // SAFETY: `outputs_image` just gathered the outputs, whose pointers point to static memory of the library.
        let words = unsafe { packer.pack_outputs(&mut stream, fixture.command, outputs.as_ptr().cast(), 17) }
            .map(<[u64]>::to_vec);
        failures.extend(examine(&fixtures.facts, fixture, &words.unwrap_or_default()));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(fixtures.leaves.len() >= 30, "only {} calls", fixtures.leaves.len());
    println!("{} outcomes, {} lines", fixtures.leaves.len(), line_count(&fixtures.leaves));
}

/// A null pointer that the specification forbids is an error of the application, but it must not crash us.
#[test]
fn null_pointers_are_taken_as_null() {
    let commands = Command::ALL.iter().map(|it| it.desc());
    let parameters = commands.clone().map(|it| (it.parameters, WalkPass::Enter));
    let outputs = commands.filter_map(|it| it.outputs.map(|it| (it.layout, WalkPass::Leave)));
    let structures = STRUCTURES.iter().filter(|it| !it.is_union).map(|it| (*it, WalkPass::Enter));
    for (layout, pass) in parameters.chain(outputs).chain(structures) {
        for number in [0, 3] {
            let image = image_of_numbers(layout, number);
            let mut stream = RecordBuffer::default();
            let mut packer = Packer::new(&FixtureHandles, &NullContext);
            // SAFETY: every pointer of the image is null.
            let (words, remarks) = unsafe { packer.pack_structure(&mut stream, layout, pass, image.as_ptr().cast()) };
            if let Err(error) = check_image(bytes_of_slice(words), layout, pass, remarks) {
                panic!("{} with {number} in every number: {error}", layout.name);
            }
        }
    }
}

/// As above for structures: the parameters point to structures whose own pointers are null.
#[test]
fn null_pointers_inside_parameters_are_taken_as_null() {
    let mut count = 0;
    for command in Command::ALL {
        let layout = command.desc().parameters;
        let mut image = image_of_numbers(layout, 3);
        let mut targets = Vec::new();
        for field in layout.fields {
            let Ty::Pointer(pointer) = field.ty else { continue };
            let lavascope_abi::desc::Pointee::Struct(target) = pointer.to else { continue };
            // The length is a parameter and therefore three, or read through a pointer and therefore at most three.
            let one = image_of_numbers(target, 3);
            let bytes = bytes_of_slice(&one)[..target.size as usize].repeat(3);
            let block: Vec<u64> = bytes.chunks(8).map(word).collect();
            image[field.at as usize / 8] = block.as_ptr().expose_provenance() as u64;
            targets.push(block);
            count += 1;
        }
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&FixtureHandles, &NullContext);
        // SAFETY: the image points to blocks of three elements, which `targets` keeps and which contain no pointers.
        if let Err(error) = check(unsafe { packer.pack_parameters(&mut stream, *command, image.as_ptr().cast(), 0) }) {
            panic!("{}: {error}", layout.name);
        }
    }
    assert!(count > 500, "only {count} pointers to structures");
}

fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// An image with this number in every integer and zero in everything else, except the structure type.
fn image_of_numbers(layout: &Layout, number: u8) -> Vec<u64> {
    let mut bytes = vec![0; (layout.size as usize).next_multiple_of(8)];
    write_numbers(&mut bytes, layout, number);
    bytes.chunks(8).map(word).collect()
}

fn write_numbers(bytes: &mut [u8], layout: &Layout, number: u8) {
    for field in layout.fields {
        let at = field.at as usize;
        match field.ty {
            Ty::U8 | Ty::U16 | Ty::U32 | Ty::U64 | Ty::Size if field.count == 1 => bytes[at] = number,
            // A number in one member of a union may be half of a pointer in another.
            Ty::Struct(inner) if !inner.is_union => {
                for index in 0..field.count as usize {
                    write_numbers(&mut bytes[at + index * inner.size as usize..], inner, number);
                }
            }
            _ => {}
        }
    }
    if let Some(s_type) = layout.s_type() {
        bytes[..4].copy_from_slice(&s_type.to_le_bytes());
    }
}

/// Checks all properties of a record. Returns the violated ones.
fn examine(facts: &FixtureContext, fixture: &Fixture, words: &[u64]) -> Vec<String> {
    let name = format!("{} (fixture {})", fixture.command.desc().name, fixture.index);
    let record = match check(words) {
        Ok(record) => record,
        Err(error) => return vec![format!("{name}: {error}")],
    };
    let text = print(record);
    let paths = paths(&text);
    let missing = fixture.expected.lines().filter(|it| !paths.iter().any(|have| have == it));
    let mut failures: Vec<String> = missing.map(|it| format!("{name}: the print lacks `{it}`:\n{text}")).collect();
    if bytes_of_slice(words).windows(4).any(|it| it == [0xcc; 4]) {
        failures.push(format!("{name}: padding of the application is in the record"));
    }
    if bytes_of_slice(words).windows(8).any(|it| it == GARBAGE.to_le_bytes()) {
        failures.push(format!("{name}: an address of the application is in the record"));
    }
    if again(facts, record) != words {
        failures.push(format!("{name}: does not come back"));
    }
    failures
}

/// Unpacks a record and packs it again.
fn again(facts: &FixtureContext, record: Record<'_>) -> Vec<u64> {
    let mut arena = Arena::default();
    let unpacker = Unpacker { handles: &FixtureHandles, purpose: UnpackPurpose::RoundTrip };
    let image = unpacker.unpack(record, &mut arena).expect("the outputs of a fixture are small");
    let mut stream = RecordBuffer::default();
    let mut packer = Packer::new(&FixtureHandles, facts);
    match record.phase() {
        RecordPhase::Enter => {
            // SAFETY: the image was just unpacked from the record of a call of this command, and the arena keeps it.
            unsafe { packer.pack_parameters(&mut stream, record.command(), image, record.call_number()) }.to_vec()
        }
        RecordPhase::Leave => {
            // SAFETY: the image was just unpacked from the record of a call of this command, and the arena keeps it.
            let words = unsafe { packer.pack_outputs(&mut stream, record.command(), image, record.call_number()) };
            words.map(<[u64]>::to_vec).unwrap_or_default()
        }
    }
}

/// The printed lines as `path = value`. A structure of a chain is named after its type.
fn paths(text: &str) -> Vec<String> {
    let mut owners: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for line in text.lines().skip(1) {
        let depth = (line.len() - line.trim_start().len()) / 2;
        owners.truncate(depth - 1);
        let line = line.trim_start();
        match (line.split_once(" = "), line.split_once(": ")) {
            (Some((name, value)), _) => {
                let path: Vec<&str> = owners.iter().map(String::as_str).chain([name]).collect();
                found.push(format!("{} = {value}", path.join(".")));
            }
            (None, Some(("pNext", ty))) => owners.push(ty.to_owned()),
            (None, Some((name, _))) => owners.push(name.to_owned()),
            (None, None) => panic!("not a printed line: {line}"),
        }
    }
    found
}

fn line_count(fixtures: &[Fixture]) -> usize {
    fixtures.iter().map(|it| it.expected.lines().count()).sum()
}

const MARK: u64 = 0x5a << 56;
const GARBAGE: u64 = 0xdead_beef_dead_bee1;

fn serial(handle: u64) -> Option<u64> {
    (handle >> 16 == MARK >> 16).then_some(handle & 0xffff)
}

/// A handle consists of a marker and a serial number. Its type comes from our tables.
struct FixtureHandles;

impl IdResolver for FixtureHandles {
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        serial(handle).and_then(|it| ObjectId::new(ty, it)).unwrap_or(ObjectId::unknown(ty))
    }
}

impl HandleResolver for FixtureHandles {
    fn handle(&self, id: ObjectId) -> u64 {
        if id.is_unknown() { GARBAGE } else { MARK | id.serial() }
    }

    fn blob_size(&self, _blob: Blob, _owner: &StructFrame<'_>) -> Option<u32> {
        Some(64)
    }
}

struct NullContext;

impl PackContext for NullContext {
    fn is_secondary(&self, _command_buffer: u64) -> Option<bool> {
        Some(true)
    }
}

/// The object properties that the fixtures assume.
struct FixtureContext {
    entries: Vec<DescriptorUpdateTemplateEntry>,
}

impl PackContext for FixtureContext {
    fn is_secondary(&self, command_buffer: u64) -> Option<bool> {
        serial(command_buffer).map(|it| it >= 100)
    }

    fn subpass(&self, render_pass: u64, _subpass: u32) -> Option<SubpassUse> {
        serial(render_pass).map(|it| SubpassUse { color: true, depth_stencil: it < 50 })
    }

    fn template(&self, template: u64) -> Option<Vec<DescriptorUpdateTemplateEntry>> {
        (serial(template) == Some(3)).then(|| self.entries.clone())
    }
}

/// A call of the C library.
struct Fixture {
    index: usize,
    command: Command,
    image: *const u8,
    /// Its return value, for outputs.
    result: u64,
    expected: String,
}

/// The calls of the C library. The library stays loaded as long as they exist.
struct Fixtures {
    enters: Vec<Fixture>,
    leaves: Vec<Fixture>,
    facts: FixtureContext,
    _library: libloading::Library,
}

type Count = unsafe extern "C" fn() -> usize;
type Enter = unsafe extern "C" fn(usize, *mut *const c_char, *mut *const c_void, *mut *const c_char);
type Leave = unsafe extern "C" fn(usize, *mut *const c_char, *mut *const c_void, *mut i64, *mut *const c_char);
type Entries = unsafe extern "C" fn(*mut usize) -> *const DescriptorUpdateTemplateEntry;

impl Fixtures {
    fn load() -> Fixtures {
        let path = compile();
        // SAFETY: the library was just built from `c_calls.c`, whose constructor writes only its own memory.
        let library = unsafe { libloading::Library::new(&path) }.expect("what was just built can be loaded");
        std::fs::remove_file(&path).expect("it was just written");
        // SAFETY: the names and types are those of `c_calls.c`.
        unsafe {
            let enter_count = *library.get::<Count>(c"fixture_count").expect("exported");
            let enter = *library.get::<Enter>(c"fixture").expect("exported");
            let leave_count = *library.get::<Count>(c"outcome_count").expect("exported");
            let leave = *library.get::<Leave>(c"outcome").expect("exported");
            let entries = *library.get::<Entries>(c"template_list").expect("exported");
            let mut count = 0;
            let first = entries(&mut count);
            let entries = std::slice::from_raw_parts(first, count).to_vec();
            Fixtures {
                enters: (0..enter_count()).map(|it| read_enter(enter, it)).collect(),
                leaves: (0..leave_count()).map(|it| read_leave(leave, it)).collect(),
                facts: FixtureContext { entries },
                _library: library,
            }
        }
    }
}

/// # Safety
///
/// `enter` must be the library's `fixture` and `index` below its count.
unsafe fn read_enter(enter: Enter, index: usize) -> Fixture {
    let (mut name, mut image, mut expected) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
    // SAFETY: by the contract `enter` belongs to the library and has a fixture with this number. It writes three
    // variables, which are local. The name and the expected text are null-terminated strings of the library.
    unsafe {
        enter(index, &mut name, &mut image, &mut expected);
        Fixture { index, command: command(name), image: image.cast(), result: 0, expected: text(expected) }
    }
}

/// # Safety
///
/// `leave` must be the library's `outcome` and `index` below its count.
unsafe fn read_leave(leave: Leave, index: usize) -> Fixture {
    let (mut name, mut image, mut expected) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
    let mut result = 0;
    // SAFETY: by the contract `leave` belongs to the library and has a fixture with this number. It writes four
    // variables, which are local. The name and the expected text are null-terminated strings of the library.
    unsafe {
        leave(index, &mut name, &mut image, &mut result, &mut expected);
        Fixture { index, command: command(name), image: image.cast(), result: result as u64, expected: text(expected) }
    }
}

/// # Safety
///
/// `name` must be a null-terminated string.
unsafe fn command(name: *const c_char) -> Command {
    // SAFETY: by the contract `name` is null-terminated.
    let name = unsafe { text(name) };
    command_by_name(&name).unwrap_or_else(|| panic!("no command {name}"))
}

/// # Safety
///
/// `text` must be a null-terminated string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: by the contract `text` is null-terminated.
    unsafe { CStr::from_ptr(text) }.to_str().expect("the fixtures are UTF-8").to_owned()
}

/// Builds the C library, separately for each test of this file, because the tests run in parallel.
fn compile() -> PathBuf {
    let thread = format!("{:?}", std::thread::current().id());
    let thread: String = thread.chars().filter(char::is_ascii_digit).collect();
    let name = format!("c_calls_{}_{thread}.so", std::process::id());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/c_calls.c");
    let mut process = Process::new("cc");
    process.args(["-std=gnu11", "-w", "-shared", "-fPIC", "-o"]).arg(&path).arg(source);
    let output = process.output().unwrap_or_else(|error| panic!("{process:?}: {error}; {INSTALL}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{process:?} failed; {INSTALL}\n{}",
        errors.chars().take(4000).collect::<String>()
    );
    path
}

/// The record of a call with an unknown structure, or with data of unknown size, states that.
#[test]
fn what_is_not_in_the_record_is_remarked() {
    let fixtures = Fixtures::load();
    let mut found = [0; 2];
    for fixture in &fixtures.enters {
        let mut stream = RecordBuffer::default();
        let mut packer = Packer::new(&FixtureHandles, &fixtures.facts);
        // SAFETY: `c_calls.c` makes a valid call for each fixture, in static memory of the library, which `fixtures`
        // keeps loaded.
        let words = unsafe { packer.pack_parameters(&mut stream, fixture.command, fixture.image, 17) };
        let remarks = check(words).expect("another test says more").omissions();
        let has_unknown = fixture.expected.contains("unknown structure");
        let has_missing = fixture.expected.contains("pData = present");
        assert_eq!(remarks.has(Omissions::UNKNOWN_STRUCTURES), has_unknown, "{}", fixture.command.desc().name);
        assert_eq!(remarks.has(Omissions::CONTENTS_MISSING), has_missing, "{}", fixture.command.desc().name);
        found[0] += usize::from(has_unknown);
        found[1] += usize::from(has_missing);
    }
    assert_eq!(found, [1, 1], "each remark has its fixture");
}
