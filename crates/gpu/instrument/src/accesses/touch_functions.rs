//! The functions that record touches: the code that shaders call, and how accesses of a block share a call.
//!
//! Drivers inline every function. A call for each access would make a shader with many accesses grow by a hundred
//! instructions and ten branches for each of them. So the touches of a block wait in a private array until its end, and
//! those of one site are recorded by one call, in a loop. A touch that is alone has a function without the loop.

use lavascope_spirv::{Section, instruction};
use smallvec::{SmallVec, smallvec};
use spirv::{LoopControl, Op, StorageClass};

use crate::checks::report_functions::{begin_helper, emit_if, end_function};
use crate::interface::touch_area::{BITS, BITS_WORDS, BLOCK_SHIFT, BLOCK_WORDS, PROBE_FACTOR, SITE_HEAD};
use crate::rewrite::context::{Context, emit};
use crate::rewrite::function::FunctionRewriter;
use crate::{TOUCH_HEAD, TOUCH_SLOT};

/// What a function records.
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

/// A touch of the current block that is not yet recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingTouch {
    function: TouchFunction,
    /// The place of the site plus one, a constant.
    place: u32,
    /// How much is touched, or where bits begin: a constant.
    size: u32,
    /// The condition under which it happens.
    ok: Option<u32>,
    /// The first byte, the descriptor, or the halves of the address.
    value: [Option<u32>; 2],
}

/// So many touches of a site share a call at most.
const SHARED_MAX: usize = 64;

/// A function that is called.
#[derive(Clone, Copy)]
struct CalledFunction {
    function: TouchFunction,
    /// Whether it takes touches out of the array, and not one as parameters.
    is_shared: bool,
    id: u32,
}

/// The functions of a module.
#[derive(Clone)]
pub(crate) struct TouchFunctions {
    /// The specialization constant for the place of the stage's words.
    base: u32,
    called: Vec<CalledFunction>,
    /// The private array of values that wait. The second values of touches follow the first ones of all.
    waiting: u32,
    /// Its length.
    length: usize,
}

impl TouchFunctions {
    pub(crate) fn new(base: u32, waiting: u32) -> TouchFunctions {
        TouchFunctions { base, called: Vec::new(), waiting, length: 0 }
    }
}

impl TouchFunction {
    /// How many values a touch has.
    fn values(self) -> usize {
        if self == TouchFunction::Address { 2 } else { 1 }
    }
}

/// In the place of a value: no touch. No access has an offset, a descriptor or an address like that.
const NO_TOUCH: u32 = u32::MAX;

impl FunctionRewriter<'_, '_> {
    /// Records a touch, where `ok` holds, at the end of the block at the latest. The values come first, then the size.
    pub(crate) fn add_touch(&mut self, function: TouchFunction, ok: Option<u32>, place: u32, what: &[u32]) {
        let place = self.cx.uint_constant(place + 1);
        let (value, size) = match *what {
            [low, high, size] => ([Some(low), Some(high)], size),
            [value, size] => ([Some(value), None], size),
            _ => return,
        };
        let touch = PendingTouch { function, place, size, ok, value };
        if !self.pending_touches.contains(&touch) {
            self.pending_touches.push(touch);
        }
    }

    /// Writes the code that records the touches of the block so far.
    pub(crate) fn record_touches(&mut self) {
        let mut pending = std::mem::take(&mut self.pending_touches);
        while let Some(first) = pending.first().copied() {
            let is_same =
                |it: &PendingTouch| (it.function, it.place, it.size) == (first.function, first.place, first.size);
            let (group, rest): (Vec<PendingTouch>, Vec<PendingTouch>) = pending.into_iter().partition(is_same);
            group.chunks(SHARED_MAX).for_each(|it| self.record_group(first.function, it));
            pending = rest;
        }
    }

    /// Calls the function for touches of one site.
    fn record_group(&mut self, function: TouchFunction, touches: &[PendingTouch]) {
        let is_shared = touches.len() > 1;
        let id = self.cx.touch_function(function, is_shared);
        let PendingTouch { place, size, .. } = touches[0];
        let (void, none) = (self.cx.ids.void, self.cx.uint_constant(NO_TOUCH));
        let mut operands: SmallVec<[u32; 4]> = smallvec![place, size];
        if is_shared {
            operands.push(self.cx.uint_constant(touches.len() as u32));
        }
        for half in 0..function.values() {
            for (number, touch) in touches.iter().enumerate() {
                let value = touch.value[half].unwrap_or(none);
                let value = match touch.ok {
                    Some(ok) => self.emit_result(Op::Select, self.cx.ids.uint, &[ok, value, none]),
                    None => value,
                };
                if is_shared {
                    self.store_waiting(half * SHARED_MAX + number, value);
                } else {
                    operands.push(value);
                }
            }
        }
        self.cx.call(&mut self.out, void, id, &operands);
    }

    fn store_waiting(&mut self, place: usize, value: u32) {
        let Some(touching) = &mut self.cx.touch_builder else { return };
        touching.functions.length = touching.functions.length.max(place + 1);
        let (waiting, pointer) = (touching.functions.waiting, self.cx.ids.private_uint);
        let place = self.cx.uint_constant(place as u32);
        let pointer = self.emit_result(Op::AccessChain, pointer, &[waiting, place]);
        emit(&mut self.out, Op::Store, &[pointer, value]);
    }
}

impl Context<'_> {
    /// The function that records one touch, or those that wait.
    fn touch_function(&mut self, function: TouchFunction, is_shared: bool) -> u32 {
        let id = self.fresh();
        let Some(touching) = &mut self.touch_builder else { return id };
        let called = &mut touching.functions.called;
        match called.iter().find(|it| (it.function, it.is_shared) == (function, is_shared)) {
            Some(known) => known.id,
            None => {
                called.push(CalledFunction { function, is_shared, id });
                id
            }
        }
    }

    /// The array of values that wait. Its length is known only now.
    fn add_waiting_array(&mut self, id: u32, length: usize) {
        let length = self.uint_constant(length as u32);
        let array = self.editor.find_or_add_type(Op::TypeArray, &[self.ids.uint, length]).0;
        let class = StorageClass::Private as u32;
        let pointer = self.editor.find_or_add_type(Op::TypePointer, &[class, array]).0;
        self.editor.add(Section::Globals, instruction(Op::Variable, &[pointer, id, class]));
        self.ids.variables.push(id);
    }
}

/// Adds the functions that are called. All sites are known by now.
pub(crate) fn add_touch_functions(cx: &mut Context<'_>) {
    let functions = cx.touch_builder.as_ref().map(|it| it.functions.clone());
    let Some(TouchFunctions { base, called, waiting, length }) = functions else { return };
    for CalledFunction { function, is_shared, id } in called {
        let mut code = Vec::new();
        let last = if is_shared { 1 } else { function.values() };
        let parameters = begin_helper(cx, &mut code, id, cx.ids.void, 2 + last);
        let site = RecordedSite { function, place: parameters[0], size: parameters[1] };
        with_area(cx, &mut code, (site.place, base), |cx, code, at| match is_shared {
            false => record_one(cx, code, (site, at), &parameters[2..]),
            true => record_waiting(cx, code, (site, at), parameters[2], waiting),
        });
        let code = end_function(cx, &mut code, None);
        cx.editor.add(Section::Functions, code);
    }
    if length > 0 {
        cx.add_waiting_array(waiting, length);
    }
}

/// The site of the touches of a function.
#[derive(Clone, Copy)]
struct RecordedSite {
    function: TouchFunction,
    /// Its place plus one.
    place: u32,
    size: u32,
}

/// Where something is kept: the area, and the first word of a site.
type AreaPosition = (u32, u32);

/// Runs `inside` where the draw has an area.
fn with_area(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    (place, base): (u32, u32),
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, AreaPosition),
) {
    let uint = cx.ids.uint;
    let [zero, one] = [0, 1].map(|it| cx.uint_constant(it));
    let halves = cx.touch_area(code);
    let both = cx.emit_result(code, Op::BitwiseOr, uint, &halves);
    let has_area = cx.emit_result(code, Op::INotEqual, cx.ids.boolean, &[both, zero]);
    emit_if(cx, code, has_area, |cx, code| {
        let pair = cx.emit_result(code, Op::CompositeConstruct, cx.ids.uint_pair, &halves);
        let area = cx.emit_result(code, Op::Bitcast, cx.ids.pointer_types.words, &[pair]);
        let place = cx.emit_result(code, Op::ISub, uint, &[place, one]);
        let base = stage_offset(cx, code, area, base);
        let place = cx.emit_result(code, Op::IAdd, uint, &[place, base]);
        inside(cx, code, (area, place));
    });
}

/// Whether the values are those of a touch.
fn is_touch(cx: &mut Context<'_>, code: &mut Vec<u32>, values: &[u32]) -> u32 {
    let none = cx.uint_constant(NO_TOUCH);
    // The upper half of an address is last: no address begins like that.
    let last = values.last().copied().unwrap_or(none);
    cx.emit_result(code, Op::INotEqual, cx.ids.boolean, &[last, none])
}

fn record_one(cx: &mut Context<'_>, code: &mut Vec<u32>, (site, at): (RecordedSite, AreaPosition), values: &[u32]) {
    let is_touch = is_touch(cx, code, values);
    emit_if(cx, code, is_touch, |cx, code| {
        for (word, value) in ends(cx, code, site, values) {
            emit_atomic_max(cx, code, at, word, value);
        }
        record_bits(cx, code, (site, at), values);
    });
}

/// Records the first touches of the array: the bits of each, and the ends of all of them together.
fn record_waiting(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    (site, at): (RecordedSite, AreaPosition),
    count: u32,
    waiting: u32,
) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let [zero, one, behind] = [0, 1, SHARED_MAX as u32].map(|it| cx.uint_constant(it));
    let words = site.function.end_words();
    // The number of the touch, and the ends so far.
    let first = vec![zero; words.len() + 1];
    let is_more = |cx: &mut Context<'_>, code: &mut Vec<u32>, now: &[u32]| {
        cx.emit_result(code, Op::ULessThan, boolean, &[now[0], count])
    };
    let last = emit_loop(cx, code, &first, is_more, |cx, code, now| {
        let mut values: SmallVec<[u32; 2]> = SmallVec::new();
        for half in 0..site.function.values() {
            let place = if half == 0 { now[0] } else { cx.emit_result(code, Op::IAdd, uint, &[now[0], behind]) };
            let pointer = cx.emit_result(code, Op::AccessChain, cx.ids.private_uint, &[waiting, place]);
            values.push(cx.emit_result(code, Op::Load, uint, &[pointer]));
        }
        let is_touch = is_touch(cx, code, &values);
        let mut next = vec![cx.emit_result(code, Op::IAdd, uint, &[now[0], one])];
        for ((_, value), before) in ends(cx, code, site, &values).into_iter().zip(&now[1..]) {
            let is_larger = cx.emit_result(code, Op::ULessThan, boolean, &[*before, value]);
            let is_larger = cx.emit_result(code, Op::LogicalAnd, boolean, &[is_touch, is_larger]);
            next.push(cx.emit_result(code, Op::Select, uint, &[is_larger, value, *before]));
        }
        emit_if(cx, code, is_touch, |cx, code| record_bits(cx, code, (site, at), &values));
        next
    });
    for (word, value) in words.iter().zip(&last[1..]) {
        emit_atomic_max(cx, code, at, *word, *value);
    }
}

/// Writes a loop: `inside` runs while the condition holds, and gives the next values. Returns the last ones.
fn emit_loop(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    first: &[u32],
    condition: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, &[u32]) -> u32,
    inside: impl FnOnce(&mut Context<'_>, &mut Vec<u32>, &[u32]) -> Vec<u32>,
) -> Vec<u32> {
    let [before, head, body, next, merge] = [0; 5].map(|_| cx.fresh());
    emit(code, Op::Branch, &[before]);
    emit(code, Op::Label, &[before]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[head]);
    let phis = code.len();
    let values: Vec<u32> = first.iter().map(|_| cx.fresh()).collect();
    for (value, first) in values.iter().zip(first) {
        emit(code, Op::Phi, &[cx.ids.uint, *value, *first, before, 0, next]);
    }
    let is_more = condition(cx, code, &values);
    // An unrolled loop would be what it is here to avoid.
    emit(code, Op::LoopMerge, &[merge, next, LoopControl::DONT_UNROLL.bits()]);
    emit(code, Op::BranchConditional, &[is_more, body, merge]);
    emit(code, Op::Label, &[body]);
    let following = inside(cx, code, &values);
    for (phi, value) in code[phis..].chunks_mut(PHI_WORDS).zip(following) {
        phi[PHI_WORDS - 2] = value;
    }
    emit(code, Op::Branch, &[next]);
    emit(code, Op::Label, &[next]);
    emit(code, Op::Branch, &[head]);
    emit(code, Op::Label, &[merge]);
    values
}

/// Words of a phi with two parents.
const PHI_WORDS: usize = 7;

impl TouchFunction {
    /// The words of a site that become at least as large as something.
    fn end_words(self) -> SmallVec<[u32; 4]> {
        match self {
            TouchFunction::Span | TouchFunction::Words => smallvec![1, 2],
            TouchFunction::Element => smallvec![3, 4],
            TouchFunction::Address => smallvec![1, 2, 3, 4],
        }
    }
}

/// For each of these words: the value that it becomes at least.
fn ends(
    cx: &mut Context<'_>,
    code: &mut Vec<u32>,
    RecordedSite { function, size, .. }: RecordedSite,
    values: &[u32],
) -> SmallVec<[(u32, u32); 4]> {
    let (uint, [one, two]) = (cx.ids.uint, [1, 2].map(|it| cx.uint_constant(it)));
    let mut span = |first: u32, size: u32| {
        let complement = cx.emit_result(code, Op::Not, uint, &[first]);
        [complement, cx.emit_result(code, Op::IAdd, uint, &[first, size])]
    };
    let found: SmallVec<[u32; 4]> = match (function, values) {
        (TouchFunction::Span, &[first]) => SmallVec::from_slice(&span(first, size)),
        (TouchFunction::Element, &[element]) => SmallVec::from_slice(&span(element, one)),
        (TouchFunction::Words, &[first]) => {
            let bytes = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[size, two]);
            let complement = cx.emit_result(code, Op::Not, uint, &[first]);
            smallvec![complement, cx.emit_result(code, Op::IAdd, uint, &[first, bytes])]
        }
        // The span is in words: the end of one of bytes might be zero.
        (TouchFunction::Address, &[low, high]) => {
            let upper = span(high, one);
            let first = cx.emit_result(code, Op::ShiftRightLogical, uint, &[low, two]);
            let complement = cx.emit_result(code, Op::Not, uint, &[first]);
            let end = cx.emit_result(code, Op::IAdd, uint, &[first, size]);
            smallvec![complement, end, upper[0], upper[1]]
        }
        _ => SmallVec::new(),
    };
    function.end_words().into_iter().zip(found).collect()
}

/// Sets the bits of a touch.
fn record_bits(cx: &mut Context<'_>, code: &mut Vec<u32>, (site, at): (RecordedSite, AreaPosition), values: &[u32]) {
    let (uint, [two, thirty]) = (cx.ids.uint, [2, 30].map(|it| cx.uint_constant(it)));
    match (site.function, values) {
        (TouchFunction::Words, &[first]) => {
            let start = cx.emit_result(code, Op::ShiftRightLogical, uint, &[first, two]);
            record_each_word(cx, code, at, start, site.size);
        }
        (TouchFunction::Address, &[low, high]) => {
            let first = cx.emit_result(code, Op::ShiftRightLogical, uint, &[low, two]);
            let above = cx.emit_result(code, Op::ShiftLeftLogical, uint, &[high, thirty]);
            let start = cx.emit_result(code, Op::BitwiseOr, uint, &[first, above]);
            record_each_word(cx, code, at, start, site.size);
        }
        (TouchFunction::Element, &[element]) => {
            let bits = cx.emit_result(code, Op::IAdd, uint, &[at.1, site.size]);
            set_bit(cx, code, (at.0, bits), element);
        }
        _ => {}
    }
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

/// Keeps words: those that share a word of bits at once.
fn record_each_word(cx: &mut Context<'_>, code: &mut Vec<u32>, (area, place): AreaPosition, start: u32, count: u32) {
    let (uint, boolean) = (cx.ids.uint, cx.ids.boolean);
    let kinds = [0, 1, 2].map(|kind| {
        let bits = cx.uint_constant(SITE_HEAD + kind * BITS_WORDS);
        cx.emit_result(code, Op::IAdd, uint, &[place, bits])
    });
    let end = cx.emit_result(code, Op::IAdd, uint, &[start, count]);
    let is_more = |cx: &mut Context<'_>, code: &mut Vec<u32>, word: &[u32]| {
        cx.emit_result(code, Op::INotEqual, boolean, &[word[0], end])
    };
    emit_loop(cx, code, &[start], is_more, |cx, code, word| {
        let [low, all] = [31, 32].map(|it| cx.uint_constant(it));
        let left = cx.emit_result(code, Op::ISub, uint, &[end, word[0]]);
        let bit = cx.emit_result(code, Op::BitwiseAnd, uint, &[word[0], low]);
        let room = cx.emit_result(code, Op::ISub, uint, &[all, bit]);
        let is_last = cx.emit_result(code, Op::ULessThan, boolean, &[left, room]);
        let count = cx.emit_result(code, Op::Select, uint, &[is_last, left, room]);
        record_group(cx, code, area, kinds, word[0], count);
        vec![cx.emit_result(code, Op::IAdd, uint, &[word[0], count])]
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
