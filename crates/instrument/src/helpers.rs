//! The functions that are added to a module: writing a record, flushing what was remembered, finding an address.
//!
//! A record is written once per site; whoever comes later only counts. Records are complete or not there at all.

use lavascope_spirv::{Id, Section};
use spirv::{Op, StorageClass};

use crate::{
    CELL_WORDS, Table,
    context::{Context, Place, emit},
    entry::Stages,
    options::ROOT_OUTPUT_WORDS,
    record::HEAD_WORDS,
    tables::{ADDRESS_HEAD, ADDRESS_WORDS},
};

/// Adds the functions. All sites are known by now.
pub(crate) fn add(cx: &mut Context<'_>, stages: &Stages) {
    let report = report(cx, stages);
    cx.editor.add(Section::Functions, report);
    let flush = flush(cx);
    cx.editor.add(Section::Functions, flush);
    if cx.tables_used[Table::Addresses as usize] {
        let find = find(cx);
        cx.editor.add(Section::Functions, find);
    }
}

/// Begins a function of unsigned parameters and gives their ids.
fn begin(cx: &mut Context<'_>, code: &mut Vec<u32>, function: u32, result: u32, parameters: usize) -> Vec<u32> {
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
fn when(
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
/// Parameters: the site's word of instruction and kind, its number, and the details.
fn report(cx: &mut Context<'_>, stages: &Stages) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (void, uint, boolean, function) = (cx.ids.void, cx.ids.uint, cx.ids.boolean, cx.ids.report);
    let parameters = begin(cx, code, function, void, 5);
    let [info, site, a, b, c] = parameters[..] else { unreachable!("five parameters were asked for") };
    let shift = cx.number(28);
    let kind = cx.value(code, Op::ShiftRightLogical, uint, &[info, shift]);
    let three = cx.number(3);
    let is_buffer = cx.value(code, Op::IEqual, boolean, &[kind, three]);
    let index = cx.value(code, Op::Select, uint, &[is_buffer, b, a]);
    let old = count(cx, code, site, index);
    let zero = cx.number(0);
    let is_first = cx.value(code, Op::IEqual, boolean, &[old, zero]);
    when(cx, code, is_first, |cx, code| write_record(cx, code, stages, (info, kind, is_buffer), [a, b, c]));
    emit(code, Op::Return, &[]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
}

/// Counts in the cell of a site, and gives the count before.
fn count(cx: &mut Context<'_>, code: &mut Vec<u32>, site: u32, index: u32) -> u32 {
    let (uint, base, scope) = (cx.ids.uint, cx.ids.cell_base, cx.ids.scope);
    let cells = cx.table(code, Table::Cells);
    let (size, zero, one, two) = (cx.number(CELL_WORDS), cx.number(0), cx.number(1), cx.number(2));
    let place = cx.value(code, Op::IMul, uint, &[site, size]);
    let place = cx.value(code, Op::IAdd, uint, &[base, place]);
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
    (info, kind, is_buffer): (u32, u32, u32),
    [a, b, c]: [u32; 3],
) {
    let (uint, boolean, scope) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope);
    let [zero, one, two, three] = [0, 1, 2, 3].map(|it| cx.number(it));
    // An index below the length, or nothing bound at all: the descriptor was never written.
    let is_below = cx.value(code, Op::ULessThan, boolean, &[a, b]);
    let descriptor = cx.value(code, Op::Select, uint, &[is_below, one, zero]);
    let is_empty = cx.value(code, Op::IEqual, boolean, &[c, zero]);
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
    let output = cx.table(code, Table::Output);
    let written = cx.word_at(code, output, zero);
    let at = cx.value(code, Op::AtomicIAdd, uint, &[written, scope, zero, size]);
    let length = output_words(cx, code, output);
    // Neither sum nor difference may wrap around: shaders go on counting when the buffer is full.
    let is_large = cx.value(code, Op::UGreaterThanEqual, boolean, &[length, size]);
    let last = cx.value(code, Op::ISub, uint, &[length, size]);
    let is_low = cx.value(code, Op::ULessThanEqual, boolean, &[at, last]);
    let fits = cx.value(code, Op::LogicalAnd, boolean, &[is_large, is_low]);
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
    let infos = info_table(cx);
    begin(cx, code, function, void, 0);
    // A table of constants is a variable that has them from the beginning.
    let infos = infos.map(|(pointer, element, constant)| {
        let class = StorageClass::Function as u32;
        (cx.value(code, Op::Variable, pointer, &[class, constant]), element)
    });
    let is_fine = cx.value(code, Op::Load, boolean, &[fine]);
    let is_bad = cx.value(code, Op::LogicalNot, boolean, &[is_fine]);
    when(cx, code, is_bad, |cx, code| {
        let zero = cx.number(0);
        see(cx, code);
        let first = cx.value(code, Op::Load, uint, &[cx.ids.first]);
        let one = cx.number(1);
        let site = cx.value(code, Op::ISub, uint, &[first, one]);
        let info = match infos {
            Some((variable, element)) => {
                let pointer = cx.value(code, Op::AccessChain, element, &[variable, site]);
                cx.value(code, Op::Load, uint, &[pointer])
            }
            None => cx.number(cx.infos.first().copied().unwrap_or(0)),
        };
        let details = cx.ids.details;
        let [a, b, c] = details.map(|it| cx.value(code, Op::Load, uint, &[it]));
        let report = cx.ids.report;
        cx.value(code, Op::FunctionCall, void, &[report, info, site, a, b, c]);
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

/// What sites are, by number: pointer to the table, pointer to an element, and the constant.
fn info_table(cx: &mut Context<'_>) -> Option<(u32, u32, u32)> {
    if cx.infos.len() < 2 {
        return None;
    }
    let uint = cx.ids.uint;
    let infos: Vec<u32> = cx.infos.clone().into_iter().map(|it| cx.number(it)).collect();
    let length = cx.number(infos.len() as u32);
    let array = cx.editor.ty(Op::TypeArray, &[uint, length]);
    let constant = cx.editor.new_global(Op::ConstantComposite, array, &infos).0;
    let class = StorageClass::Function as u32;
    let pointer = cx.editor.ty(Op::TypePointer, &[class, array.0]).0;
    let element = cx.editor.ty(Op::TypePointer, &[class, uint]).0;
    Some((pointer, element, constant))
}

/// The range that an address is in, or else the next one: address and length, two words each.
fn find(cx: &mut Context<'_>) -> Vec<u32> {
    let mut code = Vec::new();
    let code = &mut code;
    let (uint, boolean, four, function) = (cx.ids.uint, cx.ids.boolean, cx.ids.uint_four, cx.ids.find);
    let parameters = begin(cx, code, function, four, 2);
    let [low, high] = parameters[..] else { unreachable!("two parameters were asked for") };
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let table = cx.table(code, Table::Addresses);
    let count = cx.word(code, table, zero);
    let above = search(cx, code, table, count, low, high);
    // The last range that begins at or before the address, if the address is in it, else the one behind it.
    let has_before = cx.value(code, Op::INotEqual, boolean, &[above, zero]);
    let before = cx.value(code, Op::ISub, uint, &[above, one]);
    let before = cx.value(code, Op::Select, uint, &[has_before, before, zero]);
    let is_in = is_in_range(cx, code, table, before, low, high);
    let has_next = cx.value(code, Op::ULessThan, boolean, &[above, count]);
    let moves = cx.value(code, Op::LogicalNot, boolean, &[is_in]);
    let moves = cx.value(code, Op::LogicalAnd, boolean, &[moves, has_next]);
    let chosen = cx.value(code, Op::Select, uint, &[moves, above, before]);
    let parts = [0, 1, 2, 3].map(|word| range_word(cx, code, table, chosen, word));
    let is_any = cx.value(code, Op::INotEqual, boolean, &[count, zero]);
    let parts = parts.map(|it| cx.value(code, Op::Select, uint, &[is_any, it, zero]));
    let range = cx.value(code, Op::CompositeConstruct, four, &parts);
    emit(code, Op::ReturnValue, &[range]);
    emit(code, Op::FunctionEnd, &[]);
    std::mem::take(code)
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

/// Whether an address is less than a range's length behind its start.
fn is_in_range(cx: &mut Context<'_>, code: &mut Vec<u32>, table: u32, range: u32, low: u32, high: u32) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.number(it));
    let [start_low, start_high, length_low, length_high] =
        [0, 1, 2, 3].map(|word| range_word(cx, code, table, range, word));
    let offset_low = cx.value(code, Op::ISub, uint, &[low, start_low]);
    let borrows = cx.value(code, Op::ULessThan, boolean, &[low, start_low]);
    let borrow = cx.value(code, Op::Select, uint, &[borrows, one, zero]);
    let offset_high = cx.value(code, Op::ISub, uint, &[high, start_high]);
    let offset_high = cx.value(code, Op::ISub, uint, &[offset_high, borrow]);
    let is_below = cx.value(code, Op::ULessThan, boolean, &[offset_high, length_high]);
    let is_equal = cx.value(code, Op::IEqual, boolean, &[offset_high, length_high]);
    let is_low = cx.value(code, Op::ULessThan, boolean, &[offset_low, length_low]);
    let is_at = cx.value(code, Op::LogicalAnd, boolean, &[is_equal, is_low]);
    cx.value(code, Op::LogicalOr, boolean, &[is_below, is_at])
}
