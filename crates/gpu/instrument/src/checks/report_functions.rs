//! The functions that are added to a module: writing a record, flushing the faults of an invocation, finding an
//! address.
//!
//! A record is written once per site and draw; further invocations only count. A record is written completely or not
//! at all.

use lavascope_spirv::{Id, Section};
use spirv::{Decoration, GlslStd450Op, Op};

use crate::accesses::elsewhere::{emit_index_bytes, emit_sum};
use crate::checks::debug_printf::PRINTED;
use crate::interface::fault_records::HEAD_WORDS;
use crate::rewrite::context::{Context, FaultVariables, emit};
use crate::rewrite::entry_points::InvocationSource;
use crate::rewrite::table_access::RecordOutput;
use crate::{Check, ShaderTable};

/// Adds the functions. Called after all sites are known.
pub(crate) fn add_report_functions(cx: &mut Context<'_>, stages: &InvocationSource) {
    let report = report_function(cx, stages);
    cx.editor.add(Section::Functions, report);
    if cx.calls_flush {
        let flush = flush_function(cx);
        cx.editor.add(Section::Functions, flush);
    }
    if cx.has_prints {
        let print = print(cx, stages);
        cx.editor.add(Section::Functions, print);
    }
    cx.add_find_access();
    if cx.tables_used[ShaderTable::Addresses as usize] {
        let find = crate::interface::address_table::find_address_function(cx);
        cx.editor.add(Section::Functions, find);
    }
    cx.place_bits();
}

/// Begins a function that gets the root table and unsigned parameters. Returns the ids of the latter.
pub(crate) fn begin_helper(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    function: u32,
    result: u32,
    parameters: usize,
) -> Vec<u32> {
    let root = cx.root_parameter();
    let (root, parameters) = begin_helper_with(cx, code, (function, result), root, parameters);
    root.iter().for_each(|it| cx.editor.decorate(Id(*it), Decoration::Aliased, &[]));
    cx.local_root = root;
    parameters
}

/// Begins a function with a first parameter of this type, if there is one.
pub(crate) fn begin_helper_with(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    (function, result): (u32, u32),
    first: Option<u32>,
    parameters: usize,
) -> (Option<u32>, Vec<u32>) {
    let uint = cx.ids.uint;
    let types: Vec<u32> = [result].into_iter().chain(first).chain(std::iter::repeat_n(uint, parameters)).collect();
    let ty = cx.editor.find_or_add_type(Op::TypeFunction, &types).0;
    emit(code, Op::Function, &[result, function, 0, ty]);
    let first = first.map(|it| cx.emit_result(code, Op::FunctionParameter, it, &[]));
    let parameters = (0..parameters).map(|_| cx.emit_result(code, Op::FunctionParameter, uint, &[])).collect();
    label(cx, code);
    (first, parameters)
}

/// Ends a function.
pub(crate) fn end_function(cx: &mut Context<'_>, code: &mut Vec<u32>, result: Option<u32>) -> Vec<u32> {
    match result {
        Some(result) => emit(code, Op::ReturnValue, &[result]),
        None => emit(code, Op::Return, &[]),
    }
    emit(code, Op::FunctionEnd, &[]);
    cx.local_root = None;
    std::mem::take(code)
}

fn label(cx: &mut Context<'_>, code: &mut Vec<u32>) -> u32 {
    let label = cx.fresh();
    emit(code, Op::Label, &[label]);
    label
}

/// Writes a branch: the code of `inside` runs only if the condition holds.
pub(crate) fn emit_if(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    condition: u32,
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>),
) {
    let (then, merge) = (cx.fresh(), cx.fresh());
    emit(code, Op::SelectionMerge, &[merge, 0]);
    emit(code, Op::BranchConditional, &[condition, then, merge]);
    emit(code, Op::Label, &[then]);
    inside(cx, code);
    emit(code, Op::Branch, &[merge]);
    emit(code, Op::Label, &[merge]);
}

/// The kinds of checks that a module has. The report function has code for these only.
struct CheckKinds {
    descriptor: bool,
    address: bool,
    texel: bool,
    /// Checks of buffers whose descriptor is known.
    known_buffer: bool,
    /// Checks of buffers whose descriptor is chosen at run time.
    other_buffer: bool,
}

impl CheckKinds {
    fn new(cx: &Context<'_>) -> CheckKinds {
        let has = |check: Check| cx.site_infos.iter().any(|it| it[0] >> 28 == check as u32);
        let has_buffer = |is_known: bool| {
            let is_buffer = |it: &&[u32; 4]| it[0] >> 28 == Check::Buffer as u32;
            cx.site_infos.iter().filter(is_buffer).any(|it| (it[1] != 0) == is_known)
        };
        CheckKinds {
            descriptor: has(Check::Descriptor),
            address: has(Check::Address),
            texel: has(Check::Texel),
            known_buffer: has_buffer(true),
            other_buffer: has_buffer(false),
        }
    }
}

/// The words of a record about a fault.
struct FaultWords {
    error: u32,
    /// Number of words of the error.
    count: u32,
    words: [u32; 3],
}

/// Counts a fault and, if it is the first at its site or the first there of its draw, writes its record.
///
/// Parameters: the number of the site plus one, and the details.
fn report_function(cx: &mut Context<'_>, stages: &InvocationSource) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (void, uint, boolean, function) = (cx.ids.void, cx.ids.uint, cx.ids.boolean, cx.ids.report);
    let parameters = begin_helper(cx, code, function, void, 4);
    let [site, index, x, y] = parameters[..] else { unreachable!("four parameters were asked for") };
    let number = cx.emit_result(code, Op::IAdd, uint, &[site, cx.ids.cell_before]);
    let cell = cx.cell(code, number);
    let old = count(cx, code, cell, index);
    let old_bit = set_site_bit(cx, code, number);
    let zero = cx.uint_constant(0);
    let [is_first, is_new] = [old, old_bit].map(|it| cx.emit_result(code, Op::IEqual, boolean, &[it, zero]));
    let is_first = cx.emit_result(code, Op::LogicalOr, boolean, &[is_first, is_new]);
    emit_if(cx, code, is_first, |cx, code| {
        let cell = cx.cell_half(code, cell);
        let info = cell[0];
        let shift = cx.uint_constant(28);
        let kind = cx.emit_result(code, Op::ShiftRightLogical, uint, &[info, shift]);
        let fault = fault(cx, code, cell, kind, [index, x, y]);
        write_record(cx, code, stages, info, &fault);
    });
    end_function(cx, code, None)
}

/// Sets the bit of a site in the last word of the draw's records, and gives that bit as it was. Sites whose numbers
/// differ by 32 share a bit.
fn set_site_bit(cx: &mut Context<'_>, code: &mut Vec<u32>, number: u32) -> u32 {
    let (uint, scope) = (cx.ids.uint, cx.ids.scope);
    let [zero, one, last_bit] = [0, 1, 31].map(|it| cx.uint_constant(it));
    let shift = cx.emit_result(code, Op::BitwiseAnd, uint, &[number, last_bit]);
    let bit = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[one, shift]);
    let output = cx.output(code);
    let length = cx.output_words(code, output);
    let place = cx.emit_result(code, Op::IAdd, uint, &[length, one]);
    let word = cx.word_pointer(code, output.words, place);
    let before = cx.emit_result(code, Op::AtomicOr, uint, &[word, scope, zero, bit]);
    cx.emit_result(code, Op::BitwiseAnd, uint, &[before, bit])
}

/// The error code: a chain of selections over the kinds of checks.
fn fault(cx: &mut Context<'_>, code: &mut Vec<u32>, cell: SiteInfo, kind: u32, details: [u32; 3]) -> FaultWords {
    let kinds = CheckKinds::new(cx);
    let [index, x, _] = details;
    let (two, texel) = (cx.uint_constant(2), cx.uint_constant(Check::Texel as u32));
    let mut fault: Option<FaultWords> =
        kinds.texel.then_some(FaultWords { error: texel, count: two, words: [index, x, x] });
    if kinds.descriptor {
        let is_it = emit_is_kind(cx, code, kind, Check::Descriptor, &fault);
        let own = descriptor_fault(cx, code, index, x);
        fault = Some(select_fault(cx, code, is_it, own, fault));
    }
    if kinds.address {
        let is_it = emit_is_kind(cx, code, kind, Check::Address, &fault);
        let own = address_fault(cx, code, cell, details);
        fault = Some(select_fault(cx, code, is_it, own, fault));
    }
    if kinds.known_buffer || kinds.other_buffer {
        let is_it = emit_is_kind(cx, code, kind, Check::Buffer, &fault);
        let own = buffer_fault(cx, code, cell, is_it, &kinds, details);
        fault = Some(select_fault(cx, code, is_it, own, fault));
    }
    fault.unwrap_or(FaultWords { error: texel, count: two, words: details })
}

/// Whether a fault is of a kind. None if there is no other kind.
fn emit_is_kind(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    kind: u32,
    check: Check,
    before: &Option<FaultWords>,
) -> Option<u32> {
    let (boolean, check) = (cx.ids.boolean, cx.uint_constant(check as u32));
    before.as_ref().map(|_| cx.emit_result(code, Op::IEqual, boolean, &[kind, check]))
}

fn select_fault(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    is_it: Option<u32>,
    own: FaultWords,
    before: Option<FaultWords>,
) -> FaultWords {
    let (Some(is_it), Some(before)) = (is_it, before) else { return own };
    let uint = cx.ids.uint;
    let mut made: Vec<(u32, u32, u32)> = Vec::new();
    let mut select = |own: u32, before: u32| {
        let known = made.iter().find(|it| (it.0, it.1) == (own, before)).map(|it| it.2);
        let id = known.or((own == before).then_some(own));
        let id = id.unwrap_or_else(|| cx.emit_result(code, Op::Select, uint, &[is_it, own, before]));
        made.push((own, before, id));
        id
    };
    FaultWords {
        error: select(own.error, before.error),
        count: select(own.count, before.count),
        words: [0, 1, 2].map(|at| select(own.words[at], before.words[at])),
    }
}

/// An index below the length: the descriptor was never written.
fn descriptor_fault(cx: &mut Context<'_>, code: &mut Vec<u32>, index: u32, length: u32) -> FaultWords {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one, two] = [0, 1, 2].map(|it| cx.uint_constant(it));
    let is_below = cx.emit_result(code, Op::ULessThan, boolean, &[index, length]);
    let error = cx.emit_result(code, Op::Select, uint, &[is_below, one, zero]);
    let count = cx.emit_result(code, Op::Select, uint, &[is_below, one, two]);
    FaultWords { error, count, words: [index, length, length] }
}

/// Where an access was: its base, the offset, and the index times the stride.
fn address_fault(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    cell: SiteInfo,
    [index, low, high]: [u32; 3],
) -> FaultWords {
    let zero = cx.uint_constant(0);
    let [_, offset, stride, _] = cell;
    let bytes = emit_index_bytes(cx, code, index, stride);
    let start = emit_sum(cx, code, [low, high], [offset, zero]);
    let sum = emit_sum(cx, code, start, bytes);
    let (error, count) = (cx.uint_constant(Check::Address as u32), cx.uint_constant(2));
    FaultWords { error, count, words: [sum[0], sum[1], sum[1]] }
}

/// Nothing is bound at all, or not enough. What is bound to a descriptor that is known was not remembered.
fn buffer_fault(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    cell: SiteInfo,
    is_buffer: Option<u32>,
    kinds: &CheckKinds,
    [index, descriptor, range]: [u32; 3],
) -> FaultWords {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one, three] = [0, 1, 3].map(|it| cx.uint_constant(it));
    if !kinds.known_buffer {
        return FaultWords { error: three, count: three, words: [descriptor, index, range] };
    }
    let [_, set, _, element] = cell;
    let has_set = kinds.other_buffer.then(|| cx.emit_result(code, Op::INotEqual, boolean, &[set, zero]));
    let is_known = match (is_buffer, has_set) {
        (Some(is_buffer), Some(has_set)) => Some(cx.emit_result(code, Op::LogicalAnd, boolean, &[is_buffer, has_set])),
        (is_buffer, has_set) => is_buffer.or(has_set),
    };
    let (range, descriptor) = match is_known {
        None => (reload_state(cx, code, cell), element),
        Some(is_known) => {
            let (before, then, merge) = (cx.fresh(), cx.fresh(), cx.fresh());
            emit(code, Op::Branch, &[before]);
            emit(code, Op::Label, &[before]);
            emit(code, Op::SelectionMerge, &[merge, 0]);
            emit(code, Op::BranchConditional, &[is_known, then, merge]);
            emit(code, Op::Label, &[then]);
            let state = reload_state(cx, code, cell);
            emit(code, Op::Branch, &[merge]);
            emit(code, Op::Label, &[merge]);
            let (range, descriptor) = if kinds.other_buffer { (range, descriptor) } else { (one, zero) };
            let range = cx.emit_result(code, Op::Phi, uint, &[state, then, range, before]);
            (range, cx.emit_result(code, Op::Phi, uint, &[element, then, descriptor, before]))
        }
    };
    let is_empty = cx.emit_result(code, Op::IEqual, boolean, &[range, zero]);
    let is_empty = match is_known.filter(|_| kinds.other_buffer) {
        Some(is_known) => cx.emit_result(code, Op::LogicalAnd, boolean, &[is_empty, is_known]),
        None => is_empty,
    };
    let error = cx.emit_result(code, Op::Select, uint, &[is_empty, one, three]);
    FaultWords { error, count: error, words: [descriptor, index, range] }
}

/// The size that is bound to a known descriptor, loaded once more.
fn reload_state(cx: &mut Context<'_>, code: &mut Vec<u32>, [_, set, place, element]: SiteInfo) -> u32 {
    let uint = cx.ids.uint;
    let table = cx.table(code, ShaderTable::Descriptors);
    let start = cx.load_word(code, table, set);
    let place = cx.emit_result(code, Op::IAdd, uint, &[start, place]);
    let first = cx.load_word(code, table, place);
    let place = cx.emit_result(code, Op::IAdd, uint, &[first, element]);
    cx.load_word(code, table, place)
}

/// The contents of the cell of a site, which the host sets.
type SiteInfo = [u32; 4];

/// Counts in the cell of a site, and gives the count before.
fn count(cx: &mut Context<'_>, code: &mut Vec<u32>, cell: u32, index: u32) -> u32 {
    let (uint, scope) = (cx.ids.uint, cx.ids.scope);
    let (zero, one) = (cx.uint_constant(0), cx.uint_constant(1));
    let counter = cx.cell_at(code, cell, 0);
    let old = cx.emit_result(code, Op::AtomicIAdd, uint, &[counter, scope, zero, one]);
    // The complement, so that zero is a beginning for the smallest, too.
    let complement = cx.emit_result(code, Op::Not, uint, &[index]);
    for (word, value) in [(1, complement), (2, index)] {
        let pointer = cx.cell_at(code, cell, word);
        cx.emit_result(code, Op::AtomicUMax, uint, &[pointer, scope, zero, value]);
    }
    old
}

fn write_record(cx: &mut Context<'_>, code: &mut Vec<u32>, stages: &InvocationSource, info: u32, fault: &FaultWords) {
    let uint = cx.ids.uint;
    let head = cx.uint_constant(HEAD_WORDS);
    let size = cx.emit_result(code, Op::IAdd, uint, &[fault.count, head]);
    let ReservedRecord { output, at, fits } = reserve_record(cx, code, size, true);
    emit_if(cx, code, fits, |cx, code| {
        let [stage, x, y, z] = stages.words(cx, code);
        let mask = cx.uint_constant(0x0fff_ffff);
        let instruction = cx.emit_result(code, Op::BitwiseAnd, uint, &[info, mask]);
        let [a, b, c] = fault.words;
        // Details from the last to the first: the record has no words for some of them, which are overwritten.
        for (place, word) in [(11, c), (10, b)] {
            let place = cx.uint_constant(place);
            let place = cx.glsl(code, GlslStd450Op::UMin, &[place, size]);
            let place = cx.emit_result(code, Op::IAdd, uint, &[at, place]);
            cx.store_word(code, output.words, place, word);
        }
        let shader = cx.ids.shader;
        cx.store_record(code, output, at, [size, shader, instruction, stage, x, y, z, fault.error, a]);
    });
}

/// Writes the head of a record that is something printed, and gives the place of its first argument: zero, where it
/// does not fit. Parameters: instruction, size and format.
fn print(cx: &mut Context<'_>, stages: &InvocationSource) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, function) = (cx.ids.uint, cx.ids.print);
    let parameters = begin_helper(cx, code, function, uint, 3);
    let [instruction, size, format] = parameters[..] else { unreachable!("three parameters were asked for") };
    let zero = cx.uint_constant(0);
    let ReservedRecord { output, at, fits } = reserve_record(cx, code, size, false);
    emit_if(cx, code, fits, |cx, code| {
        let [stage, x, y, z] = stages.words(cx, code);
        let (shader, printed) = (cx.ids.shader, cx.uint_constant(PRINTED));
        cx.store_record(code, output, at, [size, shader, instruction, stage, x, y, z, printed, format]);
    });
    let head = cx.uint_constant(HEAD_WORDS + 2);
    let start = cx.emit_result(code, Op::IAdd, uint, &[at, head]);
    let start = cx.emit_result(code, Op::Select, uint, &[fits, start, zero]);
    end_function(cx, code, Some(start))
}

/// A place among the records.
struct ReservedRecord {
    output: RecordOutput,
    at: u32,
    /// Whether there is as much room there as was asked for.
    fits: u32,
}

/// Reserves space for a record. Shaders continue to count when the buffer is full: prints may be so many that the sum
/// wraps around, but not `few` records, one for each site.
fn reserve_record(cx: &mut Context<'_>, code: &mut Vec<u32>, size: u32, few: bool) -> ReservedRecord {
    let (uint, boolean, scope) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope);
    let zero = cx.uint_constant(0);
    let output = cx.output(code);
    let written = cx.word_pointer(code, output.words, zero);
    let at = cx.emit_result(code, Op::AtomicIAdd, uint, &[written, scope, zero, size]);
    let length = cx.output_words(code, output);
    if few && !cx.has_prints {
        let end = cx.emit_result(code, Op::IAdd, uint, &[at, size]);
        return ReservedRecord { output, at, fits: cx.emit_result(code, Op::ULessThanEqual, boolean, &[end, length]) };
    }
    let is_large = cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[length, size]);
    let last = cx.emit_result(code, Op::ISub, uint, &[length, size]);
    let is_low = cx.emit_result(code, Op::ULessThanEqual, boolean, &[at, last]);
    ReservedRecord { output, at, fits: cx.emit_result(code, Op::LogicalAnd, boolean, &[is_large, is_low]) }
}

/// Reports the faults of an invocation, and clears them if it continues.
fn flush_function(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (void, uint, boolean, function) = (cx.ids.void, cx.ids.uint, cx.ids.boolean, cx.ids.flush);
    let FaultVariables { first, details } = cx.fault_variables();
    begin_helper(cx, code, function, void, 0);
    let zero = cx.uint_constant(0);
    let number = cx.emit_result(code, Op::Load, uint, &[first]);
    let is_bad = cx.emit_result(code, Op::INotEqual, boolean, &[number, zero]);
    emit_if(cx, code, is_bad, |cx, code| {
        let bits: Vec<(u32, u32)> = (0..)
            .zip(cx.ids.masks.clone())
            .map(|(word, mask)| (word, cx.emit_result(code, Op::Load, uint, &[mask])))
            .collect();
        set_bits(cx, code, &bits);
        let [a, b, c] = details.map(|it| cx.emit_result(code, Op::Load, uint, &[it]));
        let report = cx.ids.report;
        cx.call(code, void, report, &[number, a, b, c]);
        if cx.continues_after_flush {
            std::iter::once(&first).chain(&cx.ids.masks).for_each(|it| emit(code, Op::Store, &[*it, zero]));
        }
    });
    end_function(cx, code, None)
}

/// Sets bits of sites that were seen: words by their number, and the bits.
pub(crate) fn set_bits(cx: &mut Context<'_>, code: &mut Vec<u32>, all: &[(u32, u32)]) {
    let (uint, scope, zero) = (cx.ids.uint, cx.ids.scope, cx.uint_constant(0));
    let words: Vec<u32> = all.iter().map(|it| it.0).collect();
    let pointers = cx.bits_at(code, &words);
    for (pointer, (_, bits)) in pointers.into_iter().zip(all) {
        cx.emit_result(code, Op::AtomicOr, uint, &[pointer, scope, zero, *bits]);
    }
}
