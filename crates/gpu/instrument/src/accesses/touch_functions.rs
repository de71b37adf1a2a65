//! The functions that record touches: the code that shaders call, and how accesses of a block share a call.
//!
//! Drivers inline every function. A call for each access would make a shader with many accesses grow by a hundred
//! instructions and ten branches for each of them. So the touches of a block wait in a private array until its end, and
//! one call records them in a loop. A touch that is alone in its block is a call with parameters.

use lavascope_spirv::{Section, instruction};
use spirv::{LoopControl, Op, StorageClass};

use crate::checks::report_functions::{begin_helper, emit_if, end_function};
use crate::interface::touch_area::{BITS, BITS_WORDS, BLOCK_SHIFT, BLOCK_WORDS, PROBE_FACTOR, SITE_HEAD};
use crate::rewrite::context::{Context, emit};
use crate::rewrite::function::FunctionRewriter;
use crate::{TOUCH_HEAD, TOUCH_SLOT};

/// A function that records touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TouchFunction {
    /// The first byte, and how many.
    Span,
    /// The same, with a bit for each word: the first byte, and how many words.
    Words,
    /// The number of a descriptor, and where its bits begin in the site.
    Element,
    /// The halves of an address, and how many words.
    Address,
}

impl TouchFunction {
    const ALL: [TouchFunction; 4] =
        [TouchFunction::Span, TouchFunction::Words, TouchFunction::Element, TouchFunction::Address];

    /// The place of the site, and what is touched.
    fn parameters(self) -> usize {
        if self == TouchFunction::Address { 4 } else { 3 }
    }
}

/// A touch of the current block that is not yet recorded.
#[derive(Clone, Copy)]
pub(crate) struct PendingTouch {
    function: TouchFunction,
    /// The place of the site plus one or zero, and the other parameters; zero where there is none.
    operands: [u32; 4],
}

/// A function for one touch, or for those that wait in the array.
#[derive(Clone, Copy)]
struct FunctionId {
    id: u32,
    is_used: bool,
}

/// The functions of a module.
#[derive(Clone)]
pub(crate) struct TouchFunctions {
    /// The specialization constant for the place of the stage's words.
    base: u32,
    one: [FunctionId; 4],
    several: [FunctionId; 4],
    /// The private array of touches, four words each.
    waiting: u32,
    /// The most that wait in it.
    waiting_max: u32,
}

/// So many touches wait at most: 16 bytes each, of each invocation.
const WAITING_MAX: usize = 64;

impl TouchFunctions {
    pub(crate) fn new(cx: &mut Context<'_>, base: u32) -> TouchFunctions {
        let mut functions = || [0; 4].map(|_| FunctionId { id: cx.fresh(), is_used: false });
        let (one, several) = (functions(), functions());
        TouchFunctions { base, one, several, waiting: cx.fresh(), waiting_max: 0 }
    }
}

impl FunctionRewriter<'_, '_> {
    /// Records a touch, where `ok` holds, at the end of the block at the latest. No site is at the place zero.
    pub(crate) fn add_touch(&mut self, function: TouchFunction, ok: Option<u32>, place: u32, what: &[u32]) {
        let place = self.cx.uint_constant(place + 1);
        let zero = self.cx.uint_constant(0);
        let place = match ok {
            Some(ok) => self.emit_result(Op::Select, self.cx.ids.uint, &[ok, place, zero]),
            None => place,
        };
        let mut operands = [place, zero, zero, zero];
        operands[1..=what.len()].copy_from_slice(what);
        self.pending_touches.push(PendingTouch { function, operands });
    }

    /// Writes the code that records the touches of the block so far.
    pub(crate) fn record_touches(&mut self) {
        let pending = std::mem::take(&mut self.pending_touches);
        if pending.is_empty() {
            return;
        }
        for function in TouchFunction::ALL {
            let touches: Vec<PendingTouch> = pending.iter().filter(|it| it.function == function).copied().collect();
            for part in touches.chunks(WAITING_MAX) {
                match part {
                    [touch] => self.record_touch(*touch),
                    _ => self.record_waiting(function, part),
                }
            }
        }
    }

    fn record_touch(&mut self, PendingTouch { function, operands }: PendingTouch) {
        let Some(touching) = &mut self.cx.touch_builder else { return };
        let called = &mut touching.functions.one[function as usize];
        called.is_used = true;
        let (id, void) = (called.id, self.cx.ids.void);
        self.cx.call(&mut self.out, void, id, &operands[..function.parameters()]);
    }

    fn record_waiting(&mut self, function: TouchFunction, touches: &[PendingTouch]) {
        let Some(touching) = &mut self.cx.touch_builder else { return };
        let functions = &mut touching.functions;
        functions.waiting_max = functions.waiting_max.max(touches.len() as u32);
        let (waiting, called) = (functions.waiting, &mut functions.several[function as usize]);
        called.is_used = true;
        let called = called.id;
        let (four, pointer) = self.cx.waiting_types();
        for (number, touch) in (0..).zip(touches) {
            let number = self.cx.uint_constant(number);
            let words = self.emit_result(Op::CompositeConstruct, four, &touch.operands);
            let pointer = self.emit_result(Op::AccessChain, pointer, &[waiting, number]);
            emit(&mut self.out, Op::Store, &[pointer, words]);
        }
        let (void, count) = (self.cx.ids.void, self.cx.uint_constant(touches.len() as u32));
        self.cx.call(&mut self.out, void, called, &[count]);
    }
}

impl Context<'_> {
    /// Four words, and a private pointer to them.
    fn waiting_types(&mut self) -> (u32, u32) {
        let four = self.editor.find_or_add_type(Op::TypeVector, &[self.ids.uint, 4]).0;
        (four, self.editor.find_or_add_type(Op::TypePointer, &[StorageClass::Private as u32, four]).0)
    }

    /// The array in which touches wait. Its length is known only now.
    fn add_waiting_array(&mut self, id: u32, length: u32) {
        let (four, _) = self.waiting_types();
        let length = self.uint_constant(length);
        let array = self.editor.find_or_add_type(Op::TypeArray, &[four, length]).0;
        let class = StorageClass::Private as u32;
        let pointer = self.editor.find_or_add_type(Op::TypePointer, &[class, array]).0;
        self.editor.add(Section::Globals, instruction(Op::Variable, &[pointer, id, class]));
        self.ids.variables.push(id);
    }
}

/// Adds the functions that are called. All sites are known by now.
pub(crate) fn add_touch_functions(cx: &mut Context<'_>) {
    let Some(functions) = cx.touch_builder.as_ref().map(|it| it.functions.clone()) else { return };
    for function in TouchFunction::ALL {
        let FunctionId { id, is_used } = functions.one[function as usize];
        if is_used {
            let mut code = Vec::new();
            let parameters = begin_helper(cx, &mut code, id, cx.ids.void, function.parameters());
            with_area(cx, &mut code, functions.base, |cx, code, area| {
                record(cx, code, function, (area, parameters[0]), &parameters[1..]);
            });
            let code = end_function(cx, &mut code, None);
            cx.editor.add(Section::Functions, code);
        }
        let FunctionId { id, is_used } = functions.several[function as usize];
        if is_used {
            let code = waiting_function(cx, function, id, &functions);
            cx.editor.add(Section::Functions, code);
        }
    }
    if functions.waiting_max > 0 {
        cx.add_waiting_array(functions.waiting, functions.waiting_max);
    }
}

/// A function that records the first touches of the array.
fn waiting_function(cx: &mut Context<'_>, function: TouchFunction, id: u32, functions: &TouchFunctions) -> Vec<u32> {
    let mut code = Vec::new();
    let count = begin_helper(cx, &mut code, id, cx.ids.void, 1)[0];
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one] = [0, 1].map(|it| cx.uint_constant(it));
    with_area(cx, &mut code, functions.base, |cx, code, area| {
        let condition = |cx: &mut Context<'_>, code: &mut Vec<u32>, number: u32| {
            cx.emit_result(code, Op::ULessThan, boolean, &[number, count])
        };
        emit_loop(cx, code, zero, condition, |cx, code, number| {
            let (four, pointer) = cx.waiting_types();
            let pointer = cx.emit_result(code, Op::AccessChain, pointer, &[functions.waiting, number]);
            let words = cx.emit_result(code, Op::Load, four, &[pointer]);
            let words = [0, 1, 2, 3].map(|it| cx.emit_result(code, Op::CompositeExtract, uint, &[words, it]));
            record(cx, code, function, (area, words[0]), &words[1..]);
            cx.emit_result(code, Op::IAdd, uint, &[number, one])
        });
    });
    end_function(cx, &mut code, None)
}

/// Writes a loop: `inside` runs while the condition holds, and gives the next value of what it gets.
fn emit_loop(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    first: u32,
    condition: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, u32) -> u32,
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, u32) -> u32,
) {
    let [before, head, body, next, merge] = [0; 5].map(|_| cx.fresh());
    let value = cx.fresh();
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[head]);
    let phi = code.len();
    emit(code, Op::Phi, &[cx.ids.uint, value, first, before, 0, next]);
    let is_more = condition(cx, code, value);
    // An unrolled loop would be what it is here to avoid.
    emit(code, Op::LoopMerge, &[merge, next, LoopControl::DONT_UNROLL.bits()]);
    emit(code, Op::BranchConditional, &[is_more, body, merge]);
    emit(code, Op::Label, &[body]);
    code[phi + 5] = inside(cx, code, value);
    emit(code, Op::Branch, &[next]);
    emit(code, Op::Label, &[next]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[merge]);
}

/// The area of a draw, and where the words of the stage begin in it.
#[derive(Clone, Copy)]
struct StageArea {
    area: u32,
    base: u32,
}

/// Where something is kept: the area, and the first word of a site.
type AreaPosition = (u32, u32);

/// Runs `inside` where the draw has an area.
fn with_area(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    base: u32,
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, StageArea),
) {
    let halves = cx.touch_area(code);
    let both = cx.emit_result(code, Op::BitwiseOr, cx.ids.uint, &halves);
    let zero = cx.uint_constant(0);
    let has_area = cx.emit_result(code, Op::INotEqual, cx.ids.boolean, &[both, zero]);
    emit_if(cx, code, has_area, |cx, code| {
        let pair = cx.emit_result(code, Op::CompositeConstruct, cx.ids.uint_pair, &halves);
        let area = cx.emit_result(code, Op::Bitcast, cx.ids.pointer_types.words, &[pair]);
        let base = stage_offset(cx, code, area, base);
        inside(cx, code, StageArea { area, base });
    });
}

/// Records a touch where there is one: the place is that of the site, plus one.
fn record(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    function: TouchFunction,
    (StageArea { area, base }, place): (StageArea, u32),
    what: &[u32],
) {
    let (uint, [zero, one]) = (cx.ids.uint, [0, 1].map(|it| cx.uint_constant(it)));
    let is_place = cx.emit_result(code, Op::INotEqual, cx.ids.boolean, &[place, zero]);
    emit_if(cx, code, is_place, |cx, code| {
        let place = cx.emit_result(code, Op::ISub, uint, &[place, one]);
        let place = cx.emit_result(code, Op::IAdd, uint, &[place, base]);
        match function {
            TouchFunction::Span => {
                let end = cx.emit_result(code, Op::IAdd, uint, &[what[0], what[1]]);
                record_span(cx, code, (area, place), what[0], end);
            }
            TouchFunction::Words => record_words(cx, code, (area, place), what[0], what[1]),
            TouchFunction::Element => record_element(cx, code, (area, place), what[0], what[1]),
            TouchFunction::Address => record_address(cx, code, (area, place), [what[0], what[1], what[2]]),
        }
    });
}

/// Where the words of the stage begin: the value of the constant, or the contents of its slot. One of the two is left
/// when the constant is known.
fn stage_offset(cx: &mut Context<'_>, code: &mut Vec<u32>, area: u32, base: u32) -> u32 {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [slots, first] = [TOUCH_HEAD - 1, TOUCH_SLOT].map(|it| cx.uint_constant(it));
    let slot = cx.emit_result(code, Op::BitwiseAnd, uint, &[base, slots]);
    let word = cx.load_word(code, area, slot);
    let is_slot = cx.emit_result(code, Op::UGreaterThanEqual, boolean, &[base, first]);
    cx.emit_result(code, Op::Select, uint, &[is_slot, word, base])
}

/// A word of the site becomes at least so large. Most invocations find it so, and have no need for an atomic operation.
fn emit_atomic_max(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): AreaPosition, word: u32, value: u32) {
    let (uint, boolean, scope, zero) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope, cx.uint_constant(0));
    let word = cx.uint_constant(word);
    let at = cx.emit_result(code, Op::IAdd, uint, &[place, word]);
    let old = cx.load_word(code, area, at);
    let is_less = cx.emit_result(code, Op::ULessThan, boolean, &[old, value]);
    emit_if(cx, code, is_less, |cx, code| {
        let pointer = cx.word_pointer(code, area, at);
        cx.emit_result(code, Op::AtomicUMax, uint, &[pointer, scope, zero, value]);
    });
}

fn record_span(cx: &mut Context<'_>, code: &mut Vec<u32>, at: AreaPosition, first: u32, end: u32) {
    let complement = cx.emit_result(code, Op::Not, cx.ids.uint, &[first]);
    emit_atomic_max(cx, code, at, 1, complement);
    emit_atomic_max(cx, code, at, 2, end);
}

fn record_element(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): AreaPosition, element: u32, bits: u32) {
    let uint = cx.ids.uint;
    let one = cx.uint_constant(1);
    let complement = cx.emit_result(code, Op::Not, uint, &[element]);
    emit_atomic_max(cx, code, (area, place), 3, complement);
    let behind = cx.emit_result(code, Op::IAdd, uint, &[element, one]);
    emit_atomic_max(cx, code, (area, place), 4, behind);
    let bits = cx.emit_result(code, Op::IAdd, uint, &[place, bits]);
    set_bit(cx, code, (area, bits), element);
}

/// Keeps a number of words from a byte on.
fn record_words(cx: &mut Context<'_>, code: &mut Vec<u32>, at: AreaPosition, first: u32, count: u32) {
    let (uint, two) = (cx.ids.uint, cx.uint_constant(2));
    let bytes = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[count, two]);
    let end = cx.emit_result(code, Op::IAdd, uint, &[first, bytes]);
    record_span(cx, code, at, first, end);
    let start = cx.emit_result(code, Op::ShiftRightLogical, uint, &[first, two]);
    record_each_word(cx, code, at, start, count);
}

/// Keeps a number of words from an address on. Its span is in words: the end of one of bytes might be zero.
fn record_address(cx: &mut Context<'_>, code: &mut Vec<u32>, at: AreaPosition, [low, high, count]: [u32; 3]) {
    let uint = cx.ids.uint;
    let [one, two, thirty] = [1, 2, 30].map(|it| cx.uint_constant(it));
    let first = cx.emit_result(code, Op::ShiftRightLogical, uint, &[low, two]);
    let end = cx.emit_result(code, Op::IAdd, uint, &[first, count]);
    record_span(cx, code, at, first, end);
    let complement = cx.emit_result(code, Op::Not, uint, &[high]);
    emit_atomic_max(cx, code, at, 3, complement);
    let behind = cx.emit_result(code, Op::IAdd, uint, &[high, one]);
    emit_atomic_max(cx, code, at, 4, behind);
    let above = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[high, thirty]);
    let start = cx.emit_result(code, Op::BitwiseOr, uint, &[first, above]);
    record_each_word(cx, code, at, start, count);
}

/// Keeps words: those that share a word of bits at once.
fn record_each_word(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): AreaPosition, start: u32, count: u32) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let kinds = [0, 1, 2].map(|kind| {
        let bits = cx.uint_constant(SITE_HEAD + kind * BITS_WORDS);
        cx.emit_result(code, Op::IAdd, uint, &[place, bits])
    });
    let end = cx.emit_result(code, Op::IAdd, uint, &[start, count]);
    let condition = |cx: &mut Context<'_>, code: &mut Vec<u32>, word: u32| {
        cx.emit_result(code, Op::INotEqual, boolean, &[word, end])
    };
    emit_loop(cx, code, start, condition, |cx, code, word| {
        let [low, all] = [31, 32].map(|it| cx.uint_constant(it));
        let left = cx.emit_result(code, Op::ISub, uint, &[end, word]);
        let bit = cx.emit_result(code, Op::BitwiseAnd, uint, &[word, low]);
        let room = cx.emit_result(code, Op::ISub, uint, &[all, bit]);
        let is_last = cx.emit_result(code, Op::ULessThan, boolean, &[left, room]);
        let count = cx.emit_result(code, Op::Select, uint, &[is_last, left, room]);
        record_group(cx, code, area, kinds, word, count);
        cx.emit_result(code, Op::IAdd, uint, &[word, count])
    });
}

/// Keeps 1 to 32 words that share a word of bits, and so a block.
fn record_group(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    area: u32,
    [words, blocks, chosen]: [u32; 3],
    word: u32,
    count: u32,
) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [low, all, ones] = [31, 32, u32::MAX].map(|it| cx.uint_constant(it));
    let absent = cx.emit_result(code, Op::ISub, uint, &[all, count]);
    let mask = cx.emit_result(code, Op::ShiftRightLogical, uint, &[ones, absent]);
    let bit = cx.emit_result(code, Op::BitwiseAnd, uint, &[word, low]);
    let mask = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[mask, bit]);
    set_bits(cx, code, (area, words), word, mask);
    let shift = cx.uint_constant(BLOCK_SHIFT);
    let block = cx.emit_result(code, Op::ShiftRightLogical, uint, &[word, shift]);
    set_bit(cx, code, (area, blocks), block);
    let inside = cx.uint_constant(BLOCK_WORDS as u32 - 1);
    let inside = cx.emit_result(code, Op::BitwiseAnd, uint, &[word, inside]);
    let (spread, rest) = (cx.uint_constant(PROBE_FACTOR), cx.uint_constant(32 - BLOCK_SHIFT));
    let product = cx.emit_result(code, Op::IMul, uint, &[block, spread]);
    let wanted = cx.emit_result(code, Op::ShiftRightLogical, uint, &[product, rest]);
    let distance = cx.emit_result(code, Op::ISub, uint, &[wanted, inside]);
    let decides = cx.emit_result(code, Op::ULessThan, boolean, &[distance, count]);
    emit_if(cx, code, decides, |cx, code| set_bit(cx, code, (area, chosen), block));
}

/// Sets a bit, by its number modulo all of them.
fn set_bit(cx: &mut Context<'_>, code: &mut Vec<u32>, at: AreaPosition, number: u32) {
    let [one, low] = [1, 31].map(|it| cx.uint_constant(it));
    let place = cx.emit_result(code, Op::BitwiseAnd, cx.ids.uint, &[number, low]);
    let bit = cx.emit_result(code, Op::ShiftLeftLogical, cx.ids.uint, &[one, place]);
    set_bits(cx, code, at, number, bit);
}

/// Sets bits of the word that has the bit of a number, modulo all bits.
fn set_bits(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, bits): AreaPosition, number: u32, mask: u32) {
    let (uint, boolean, scope) = (cx.ids.uint, cx.ids.boolean, cx.ids.scope);
    let [zero, five, all] = [0, 5, BITS as u32 - 1].map(|it| cx.uint_constant(it));
    let number = cx.emit_result(code, Op::BitwiseAnd, uint, &[number, all]);
    let word = cx.emit_result(code, Op::ShiftRightLogical, uint, &[number, five]);
    let word = cx.emit_result(code, Op::IAdd, uint, &[bits, word]);
    let old = cx.load_word(code, area, word);
    let own = cx.emit_result(code, Op::BitwiseAnd, uint, &[old, mask]);
    let is_new = cx.emit_result(code, Op::INotEqual, boolean, &[own, mask]);
    emit_if(cx, code, is_new, |cx, code| {
        let pointer = cx.word_pointer(code, area, word);
        cx.emit_result(code, Op::AtomicOr, uint, &[pointer, scope, zero, mask]);
    });
}
