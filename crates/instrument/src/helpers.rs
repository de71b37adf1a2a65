//! The functions that are added to a module: writing a record, flushing what was remembered, finding an address.
//!
//! A record is written once per site; whoever comes later only counts. Records are complete or not there at all.

use lavascope_spirv::{Id, Section};
use spirv::Op;

use crate::{
    CELL_WORDS, Table,
    context::{Context, Place, emit},
    entry::Stages,
    options::ROOT_OUTPUT_WORDS,
    print::PRINTED,
    record::HEAD_WORDS,
    tables::{ADDRESS_HEAD, ADDRESS_WORDS, BINDING_WORDS},
};

/// Adds the functions. All sites are known by now.
pub(crate) fn add(cx: &mut Context<'_>, stages: &Stages) {
    let report = report(cx, stages);
    cx.editor.add(Section::Functions, report);
    let flush = flush(cx);
    cx.editor.add(Section::Functions, flush);
    if cx.is_printing {
        let print = print(cx, stages);
        cx.editor.add(Section::Functions, print);
    }
    if cx.tables_used[Table::Addresses as usize] {
        let find = find(cx);
        cx.editor.add(Section::Functions, find);
    }
}

/// Begins a function of unsigned parameters and gives their ids.
pub(crate) fn begin(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    function: u32,
    result: u32,
    parameters: usize,
) -> Vec<u32> {
    let types = [&[result][..], &vec![cx.ids.uint; parameters]].concat();
    let ty = cx.editor.ty(Op::TypeFunction, &types).0;
    emit(code, Op::Function, &[result, function, 0, ty]);
    let uint = cx.ids.uint;
    let parameters = (0..parameters).map(|_| cx.value(code, Op::FunctionParameter, uint, &[])).collect();
    label(cx, code);
    parameters
}

fn label(cx: &mut Context<'_>, code: &mut Vec<u32>) -> u32 {
    let label = cx.fresh();
    emit(code, Op::Label, &[label]);
    label
}

/// Runs `inside` where a condition holds.
pub(crate) fn when(
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

/// Counts a fault and, if it is the first at its site, writes its record.
///
/// Parameters: the number of the site, and the details.
fn report(cx: &mut Context<'_>, stages: &Stages) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (void, uint, boolean, function) = (cx.ids.void, cx.ids.uint, cx.ids.boolean, cx.ids.report);
    let parameters = begin(cx, code, function, void, 4);
    let [site, a, b, c] = parameters[..] else { unreachable!("four parameters were asked for") };
    let cell = cell_of(cx, code, site);
    let info = cell_word(cx, code, cell, 3);
    let shift = cx.number(28);
    let kind = cx.value(code, Op::ShiftRightLogical, uint, &[info, shift]);
    let three = cx.number(3);
    let is_buffer = cx.value(code, Op::IEqual, boolean, &[kind, three]);
    let two = cx.number(2);
    let is_address = cx.value(code, Op::IEqual, boolean, &[kind, two]);
    let index = cx.value(code, Op::Select, uint, &[is_buffer, b, a]);
    let index = cx.value(code, Op::Select, uint, &[is_address, c, index]);
    let old = count(cx, code, cell, index);
    let zero = cx.number(0);
    let is_first = cx.value(code, Op::IEqual, boolean, &[old, zero]);
    when(cx, code, is_first, |cx, code| {
        let (c, is_known) = bound_bytes(cx, code, cell, is_buffer, c);
        let (a, b) = address(cx, code, cell, is_address, [a, b, c]);
        write_record(cx, code, stages, (info, kind, is_buffer, is_known), [a, b, c]);
    });
    emit(code, Op::Return, &[]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// A cell: the base of the table, and the place of its first word.
type Cell = (u32, u32);

fn cell_of(cx: &mut Context<'_>, code: &mut Vec<u32>, site: u32) -> Cell {
    let (uint, base) = (cx.ids.uint, cx.ids.cell_base);
    let cells = cx.table(code, Table::Cells);
    let size = cx.number(CELL_WORDS);
    let place = cx.value(code, Op::IMul, uint, &[site, size]);
    (cells, cx.value(code, Op::IAdd, uint, &[base, place]))
}

fn cell_word(cx: &mut Context<'_>, code: &mut Vec<u32>, (cells, place): Cell, word: u32) -> u32 {
    let word = cx.number(word);
    let place = cx.value(code, Op::IAdd, cx.ids.uint, &[place, word]);
    cx.word(code, cells, place)
}

/// What is bound to a buffer that is known, which was not remembered; else what was. And which of both it is.
fn bound_bytes(cx: &mut Context<'_>, code: &mut Vec<u32>, cell: Cell, is_buffer: u32, remembered: u32) -> (u32, u32) {
    if !cx.tables_used[Table::Descriptors as usize] {
        return (remembered, is_buffer);
    }
    let (uint, boolean, zero) = (cx.ids.uint, cx.ids.boolean, cx.number(0));
    let set = cell_word(cx, code, cell, 4);
    let has_set = cx.value(code, Op::INotEqual, boolean, &[set, zero]);
    let is_known = cx.value(code, Op::LogicalAnd, boolean, &[is_buffer, has_set]);
    let (before, then, merge) = (cx.fresh(), cx.fresh(), cx.fresh());
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::SelectionMerge, &[merge, 0]);
    emit(code, Op::BranchConditional, &[is_known, then, merge]);
    emit(code, Op::Label, &[then]);
    let table = cx.table(code, Table::Descriptors);
    let start = cx.word(code, table, set);
    let binding = cell_word(cx, code, cell, 5);
    let size = cx.number(BINDING_WORDS);
    let entry = cx.value(code, Op::IMul, uint, &[binding, size]);
    let one = cx.number(1);
    let entry = cx.value(code, Op::IAdd, uint, &[entry, one]);
    let entry = cx.value(code, Op::IAdd, uint, &[entry, start]);
    let first = cx.word(code, table, entry);
    let element = cell_word(cx, code, cell, 6);
    let place = cx.value(code, Op::IAdd, uint, &[first, element]);
    let state = cx.word(code, table, place);
    emit(code, Op::Branch, &[merge]);
    emit(code, Op::Label, &[merge]);
    (cx.value(code, Op::Phi, uint, &[state, then, remembered, before]), is_known)
}

/// Where an access was: its base, the offset, and the index times the stride; else what was remembered.
fn address(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    cell: Cell,
    is_address: u32,
    [low, high, index]: [u32; 3],
) -> (u32, u32) {
    if !cx.tables_used[Table::Addresses as usize] {
        return (low, high);
    }
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let pair = cx.editor.new_type(Op::TypeStruct, &[uint, uint]).0;
    let offset = cell_word(cx, code, cell, 4);
    let stride = cell_word(cx, code, cell, 5);
    let product = cx.value(code, Op::UMulExtended, pair, &[index, stride]);
    let bytes = [0, 1].map(|half| cx.value(code, Op::CompositeExtract, uint, &[product, half]));
    let mut sum = [low, high];
    for [add_low, add_high] in [[offset, zero], bytes] {
        let lower = cx.value(code, Op::IAdd, uint, &[sum[0], add_low]);
        let carries = cx.value(code, Op::ULessThan, boolean, &[lower, add_low]);
        let carry = cx.value(code, Op::Select, uint, &[carries, one, zero]);
        let upper = cx.value(code, Op::IAdd, uint, &[sum[1], add_high]);
        sum = [lower, cx.value(code, Op::IAdd, uint, &[upper, carry])];
    }
    let low = cx.value(code, Op::Select, uint, &[is_address, sum[0], low]);
    let high = cx.value(code, Op::Select, uint, &[is_address, sum[1], high]);
    (low, high)
}

/// Counts in the cell of a site, and gives the count before.
fn count(cx: &mut Context<'_>, code: &mut Vec<u32>, (cells, place): Cell, index: u32) -> u32 {
    let (uint, scope) = (cx.ids.uint, cx.ids.scope);
    let (zero, one, two) = (cx.number(0), cx.number(1), cx.number(2));
    let counter = cx.word_at(code, cells, place);
    let old = cx.value(code, Op::AtomicIAdd, uint, &[counter, scope, zero, one]);
    // The complement, so that zero is a beginning for the smallest, too.
    let complement = cx.value(code, Op::Not, uint, &[index]);
    for (word, value) in [(one, complement), (two, index)] {
        let place = cx.value(code, Op::IAdd, uint, &[place, word]);
        let pointer = cx.word_at(code, cells, place);
        cx.value(code, Op::AtomicUMax, uint, &[pointer, scope, zero, value]);
    }
    old
}

fn write_record(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    stages: &Stages,
    (info, kind, is_buffer, is_known): (u32, u32, u32, u32),
    [a, b, c]: [u32; 3],
) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one, two, three] = [0, 1, 2, 3].map(|it| cx.number(it));
    // An index below the length, or nothing bound at all: the descriptor was never written.
    let is_below = cx.value(code, Op::ULessThan, boolean, &[a, b]);
    let descriptor = cx.value(code, Op::Select, uint, &[is_below, one, zero]);
    let is_empty = cx.value(code, Op::IEqual, boolean, &[c, zero]);
    let is_empty = cx.value(code, Op::LogicalAnd, boolean, &[is_empty, is_known]);
    let buffer = cx.value(code, Op::Select, uint, &[is_empty, one, three]);
    let is_descriptor = cx.value(code, Op::IEqual, boolean, &[kind, zero]);
    let error = cx.value(code, Op::Select, uint, &[is_descriptor, descriptor, kind]);
    let error = cx.value(code, Op::Select, uint, &[is_buffer, buffer, error]);
    let is_one = cx.value(code, Op::IEqual, boolean, &[error, one]);
    let is_three = cx.value(code, Op::IEqual, boolean, &[error, three]);
    let words = cx.value(code, Op::Select, uint, &[is_three, three, two]);
    let words = cx.value(code, Op::Select, uint, &[is_one, one, words]);
    let head = cx.number(HEAD_WORDS);
    let size = cx.value(code, Op::IAdd, uint, &[words, head]);
    let Room { output, at, fits } = take_room(cx, code, size);
    when(cx, code, fits, |cx, code| {
        let [stage, x, y, z] = stages.words(cx, code);
        let mask = cx.number(0x0fff_ffff);
        let instruction = cx.value(code, Op::BitwiseAnd, uint, &[info, mask]);
        let start = cx.value(code, Op::IAdd, uint, &[at, one]);
        // Details from the last to the first: those that the record has no words for are written over.
        let end = cx.value(code, Op::ISub, uint, &[size, one]);
        for (place, word) in [(10, c), (9, b)] {
            let place = cx.number(place);
            let is_inside = cx.value(code, Op::ULessThan, boolean, &[place, end]);
            let place = cx.value(code, Op::Select, uint, &[is_inside, place, end]);
            let place = cx.value(code, Op::IAdd, uint, &[start, place]);
            cx.store_word(code, output, place, word);
        }
        let shader = cx.ids.shader;
        for (place, word) in (0..).zip([size, shader, instruction, stage, x, y, z, error, a]) {
            let place = cx.number(place);
            let place = cx.value(code, Op::IAdd, uint, &[start, place]);
            cx.store_word(code, output, place, word);
        }
    });
}

/// Writes the head of a record that is something printed, and gives the place of its first argument: zero, where it
/// does not fit. Parameters: instruction, size and format.
fn print(cx: &mut Context<'_>, stages: &Stages) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, function) = (cx.ids.uint, cx.ids.print);
    let parameters = begin(cx, code, function, uint, 3);
    let [instruction, size, format] = parameters[..] else { unreachable!("three parameters were asked for") };
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let Room { output, at, fits } = take_room(cx, code, size);
    when(cx, code, fits, |cx, code| {
        let [stage, x, y, z] = stages.words(cx, code);
        let (shader, printed) = (cx.ids.shader, cx.number(PRINTED));
        for (place, word) in (1..).zip([size, shader, instruction, stage, x, y, z, printed, format]) {
            let place = cx.number(place);
            let place = cx.value(code, Op::IAdd, uint, &[at, place]);
            cx.store_word(code, output, place, word);
        }
    });
    let head = cx.number(HEAD_WORDS + 1);
    let start = cx.value(code, Op::IAdd, uint, &[at, head]);
    let start = cx.value(code, Op::IAdd, uint, &[start, one]);
    let start = cx.value(code, Op::Select, uint, &[fits, start, zero]);
    emit(code, Op::ReturnValue, &[start]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// A place among the records.
struct Room {
    output: u32,
    at: u32,
    /// Whether there is as much room there as was asked for.
    fits: u32,
}

/// Asks for room of a record's size. Neither sum nor difference may wrap around: shaders go on counting when the buffer
/// is full.
fn take_room(cx: &mut Context<'_>, code: &mut Vec<u32>, size: u32) -> Room {
    let (uint, boolean, scope) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope);
    let zero = cx.number(0);
    let output = cx.table(code, Table::Output);
    let written = cx.word_at(code, output, zero);
    let at = cx.value(code, Op::AtomicIAdd, uint, &[written, scope, zero, size]);
    let length = output_words(cx, code, output);
    let is_large = cx.value(code, Op::UGreaterThanEqual, boolean, &[length, size]);
    let last = cx.value(code, Op::ISub, uint, &[length, size]);
    let is_low = cx.value(code, Op::ULessThanEqual, boolean, &[at, last]);
    Room { output, at, fits: cx.value(code, Op::LogicalAnd, boolean, &[is_large, is_low]) }
}

/// How many words of records fit.
fn output_words(cx: &mut Context<'_>, code: &mut Vec<u32>, output: u32) -> u32 {
    let uint = cx.ids.uint;
    match cx.ids.place {
        Place::Buffers(_) => {
            let all = cx.value(code, Op::ArrayLength, uint, &[output, 0]);
            let one = cx.number(1);
            cx.value(code, Op::ISub, uint, &[all, one])
        }
        Place::Private(_) | Place::Constant(_) => {
            let root = cx.root(code);
            let place = cx.number(ROOT_OUTPUT_WORDS);
            cx.word(code, root, place)
        }
    }
}

/// Says what an invocation remembered, and forgets it.
fn flush(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (void, uint, boolean, function, fine) = (cx.ids.void, cx.ids.uint, cx.ids.boolean, cx.ids.flush, cx.ids.fine);
    begin(cx, code, function, void, 0);
    let is_fine = cx.value(code, Op::Load, boolean, &[fine]);
    let is_bad = cx.value(code, Op::LogicalNot, boolean, &[is_fine]);
    when(cx, code, is_bad, |cx, code| {
        let zero = cx.number(0);
        see(cx, code);
        let first = cx.value(code, Op::Load, uint, &[cx.ids.first]);
        let one = cx.number(1);
        let site = cx.value(code, Op::ISub, uint, &[first, one]);
        let details = cx.ids.details;
        let [a, b, c] = details.map(|it| cx.value(code, Op::Load, uint, &[it]));
        let report = cx.ids.report;
        cx.value(code, Op::FunctionCall, void, &[report, site, a, b, c]);
        let yes = cx.editor.truth(Id(boolean), true).0;
        emit(code, Op::Store, &[fine, yes]);
        emit(code, Op::Store, &[cx.ids.first, zero]);
        details.iter().chain(&cx.ids.masks).for_each(|it| emit(code, Op::Store, &[*it, zero]));
    });
    emit(code, Op::Return, &[]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// Sets the bits of the sites that were seen, behind the cells.
fn see(cx: &mut Context<'_>, code: &mut Vec<u32>) {
    let (uint, base, scope) = (cx.ids.uint, cx.ids.cell_base, cx.ids.scope);
    let cells = cx.table(code, Table::Cells);
    let zero = cx.number(0);
    for (word, mask) in (0..).zip(cx.ids.masks.clone()) {
        let bits = cx.value(code, Op::Load, uint, &[mask]);
        let place = cx.number(cx.infos.len() as u32 * CELL_WORDS + word);
        let place = cx.value(code, Op::IAdd, uint, &[base, place]);
        let pointer = cx.word_at(code, cells, place);
        cx.value(code, Op::AtomicOr, uint, &[pointer, scope, zero, bits]);
    }
}

/// The bytes from an address to the end of its buffer, and those before it: none of either, where there is no buffer.
fn find(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, boolean, pair, function) = (cx.ids.uint, cx.ids.boolean, cx.ids.uint_pair, cx.ids.find);
    let parameters = begin(cx, code, function, pair, 2);
    let [low, high] = parameters[..] else { unreachable!("two parameters were asked for") };
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let table = cx.table(code, Table::Addresses);
    let count = cx.word(code, table, zero);
    let above = search(cx, code, table, count, low, high);
    let has_range = cx.value(code, Op::INotEqual, boolean, &[above, zero]);
    let range = cx.value(code, Op::ISub, uint, &[above, one]);
    // Without any range this reads the first one, which the table has room for.
    let range = cx.value(code, Op::Select, uint, &[has_range, range, zero]);
    let [start_low, start_high, length_low, length_high] =
        [0, 1, 2, 3].map(|word| range_word(cx, code, table, range, word));
    let offset = less(cx, code, [low, high], [start_low, start_high]);
    let is_below = cx.value(code, Op::ULessThan, boolean, &[offset[1], length_high]);
    let is_equal = cx.value(code, Op::IEqual, boolean, &[offset[1], length_high]);
    let is_low = cx.value(code, Op::ULessThan, boolean, &[offset[0], length_low]);
    let is_at = cx.value(code, Op::LogicalAnd, boolean, &[is_equal, is_low]);
    let is_in = cx.value(code, Op::LogicalOr, boolean, &[is_below, is_at]);
    let is_in = cx.value(code, Op::LogicalAnd, boolean, &[is_in, has_range]);
    let left = less(cx, code, [length_low, length_high], offset);
    // What does not fit into a word is as large as can be; what is before is cut further, since it is added to others.
    let both = [(left, u32::MAX), (offset, 0x3fff_ffff)].map(|([low, high], most)| {
        let most = cx.number(most);
        let is_small = cx.value(code, Op::IEqual, boolean, &[high, zero]);
        let is_low = cx.value(code, Op::ULessThan, boolean, &[low, most]);
        let fits = cx.value(code, Op::LogicalAnd, boolean, &[is_small, is_low]);
        let cut = cx.value(code, Op::Select, uint, &[fits, low, most]);
        cx.value(code, Op::Select, uint, &[is_in, cut, zero])
    });
    let found = cx.value(code, Op::CompositeConstruct, pair, &both);
    emit(code, Op::ReturnValue, &[found]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// The difference of two numbers of two words.
fn less(cx: &mut Context<'_>, code: &mut Vec<u32>, left: [u32; 2], right: [u32; 2]) -> [u32; 2] {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let low = cx.value(code, Op::ISub, uint, &[left[0], right[0]]);
    let borrows = cx.value(code, Op::ULessThan, boolean, &[left[0], right[0]]);
    let borrow = cx.value(code, Op::Select, uint, &[borrows, one, zero]);
    let high = cx.value(code, Op::ISub, uint, &[left[1], right[1]]);
    [low, cx.value(code, Op::ISub, uint, &[high, borrow])]
}

/// How many ranges begin at or before an address: a binary search.
fn search(cx: &mut Context<'_>, code: &mut Vec<u32>, table: u32, count: u32, low: u32, high: u32) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let [before, head, body, next, merge] = [0; 5].map(|_| cx.fresh());
    let [from, to, new_from, new_to] = [0; 4].map(|_| cx.fresh());
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[head]);
    emit(code, Op::Phi, &[uint, from, zero, before, new_from, next]);
    emit(code, Op::Phi, &[uint, to, count, before, new_to, next]);
    let is_open = cx.value(code, Op::ULessThan, boolean, &[from, to]);
    emit(code, Op::LoopMerge, &[merge, next, 0]);
    emit(code, Op::BranchConditional, &[is_open, body, merge]);
    emit(code, Op::Label, &[body]);
    let sum = cx.value(code, Op::IAdd, uint, &[from, to]);
    let middle = cx.value(code, Op::ShiftRightLogical, uint, &[sum, one]);
    let start_low = range_word(cx, code, table, middle, 0);
    let start_high = range_word(cx, code, table, middle, 1);
    let is_above = cx.value(code, Op::ULessThan, boolean, &[start_high, high]);
    let is_equal = cx.value(code, Op::IEqual, boolean, &[start_high, high]);
    let is_low = cx.value(code, Op::ULessThanEqual, boolean, &[start_low, low]);
    let is_at = cx.value(code, Op::LogicalAnd, boolean, &[is_equal, is_low]);
    let begins_before = cx.value(code, Op::LogicalOr, boolean, &[is_above, is_at]);
    let behind = cx.value(code, Op::IAdd, uint, &[middle, one]);
    emit(code, Op::Select, &[uint, new_from, begins_before, behind, from]);
    emit(code, Op::Select, &[uint, new_to, begins_before, to, middle]);
    emit(code, Op::Branch, &[next]);
    emit(code, Op::Label, &[next]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[merge]);
    from
}

fn range_word(cx: &mut Context<'_>, code: &mut Vec<u32>, table: u32, range: u32, word: u32) -> u32 {
    let uint = cx.ids.uint;
    let (size, first) = (cx.number(ADDRESS_WORDS), cx.number(ADDRESS_HEAD + word));
    let place = cx.value(code, Op::IMul, uint, &[range, size]);
    let place = cx.value(code, Op::IAdd, uint, &[place, first]);
    cx.word(code, table, place)
}
