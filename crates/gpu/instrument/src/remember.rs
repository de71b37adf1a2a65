//! What an invocation remembers of its faults: the first one with its details, and a bit for each site.
//!
//! Checks of a block are gathered, and what they found is put together where the block ends: the first of them that
//! failed is found by going backward. A function of one block keeps all of it in values; else it is in private
//! variables from block to block. While all is well the details may be anything, so they are never asked for.

use lavascope_spirv::Id;
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op, StorageClass};

use crate::{
    Site, Verdict,
    body::{Body, Hoisted},
    context::{Context, State, emit},
    helpers::set_bits,
};

/// Up to so many sites of a block are named one by one.
const FEW: usize = 3;
/// From so many checks on a zero is loaded.
const MANY: usize = 16;

/// What is told of a fault: the index, and two words that depend on the kind of check. What a record does not need may
/// be left out.
pub(crate) type Details = [Option<u32>; 3];

/// A check of this block.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    number: u32,
    ok: u32,
    details: Details,
}

/// What the checks of a block found, as values.
struct Found {
    /// The number of the first site plus one, or zero.
    first: u32,
    details: Details,
    /// Words of bits, by their number.
    bits: SmallVec<[(u32, u32); 4]>,
}

impl Body<'_, '_> {
    /// Checks a site: numbers it, and remembers or records the fault where `ok` does not hold.
    pub(crate) fn check(&mut self, site: Site, ok: u32, details: Details, is_hoisted: bool) {
        match self.remembered.insert((ok, site.check), (self.block, site.at)) {
            Some((block, at)) if block == self.block => {
                self.remembered.insert((ok, site.check), (block, at));
                if at != site.at {
                    self.cx.note(Site { verdict: Verdict::Repeated, ..site });
                }
                return;
            }
            _ => {}
        }
        self.check_numbered(site, ok, details, is_hoisted);
    }

    /// Checks a site whose truth value was made for it alone.
    pub(crate) fn check_new(&mut self, site: Site, ok: u32, details: Details) {
        self.check_numbered(site, ok, details, false);
    }

    fn check_numbered(&mut self, site: Site, ok: u32, details: Details, is_hoisted: bool) {
        let number = self.cx.count(site, is_hoisted);
        if self.cx.options.immediate.contains(&number) && self.can_split {
            self.report(number, ok, details);
        } else {
            self.remember(number, ok, details);
        }
    }

    fn report(&mut self, number: u32, ok: u32, details: Details) {
        let bad = self.test(Op::LogicalNot, &[ok]);
        let (number, zero) = (self.cx.number(number + 1), self.cx.number(0));
        let [a, b, c] = details.map(|it| it.unwrap_or(zero));
        let (void, report) = (self.cx.ids.void, self.cx.ids.report);
        self.guarded(bad, None, |body, _| {
            body.cx.call(&mut body.out, void, report, &[number, a, b, c]);
        });
    }

    pub(crate) fn remember(&mut self, number: u32, ok: u32, details: Details) {
        self.pending.push(Pending { number, ok, details });
    }

    /// Makes code that goes somewhere else, where nothing is remembered in values.
    pub(crate) fn elsewhere(&mut self, code: &mut Vec<u32>, make: impl FnOnce(&mut Self)) {
        let pending = std::mem::take(&mut self.pending);
        let is_fresh = std::mem::replace(&mut self.is_fresh, false);
        std::mem::swap(&mut self.out, code);
        make(self);
        self.spill();
        std::mem::swap(&mut self.out, code);
        self.pending = pending;
        self.is_fresh = is_fresh;
    }

    /// Puts what was found so far into the variables.
    pub(crate) fn spill(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let found = self.put_together();
        let State { first, details } = self.cx.state();
        let is_fresh = std::mem::replace(&mut self.is_fresh, false);
        let uint = self.cx.ids.uint;
        for (word, bits) in found.bits {
            let mask = self.cx.mask(word);
            let mut bits = bits;
            if !is_fresh {
                let before = self.value(Op::Load, uint, &[mask]);
                bits = self.value(Op::BitwiseOr, uint, &[before, bits]);
            }
            emit(&mut self.out, Op::Store, &[mask, bits]);
        }
        let before = (!is_fresh).then(|| {
            let before = self.value(Op::Load, uint, &[first]);
            let zero = self.cx.number(0);
            (before, self.test(Op::IEqual, &[before, zero]))
        });
        let pairs = details.into_iter().zip(found.details).filter_map(|(variable, it)| Some((variable, it?)));
        for (variable, value) in pairs {
            let value = match before {
                Some((_, is_fine)) => {
                    let before = self.value(Op::Load, uint, &[variable]);
                    self.value(Op::Select, uint, &[is_fine, value, before])
                }
                None => value,
            };
            emit(&mut self.out, Op::Store, &[variable, value]);
        }
        let number = match before {
            Some((before, is_fine)) => self.value(Op::Select, uint, &[is_fine, found.first, before]),
            None => found.first,
        };
        emit(&mut self.out, Op::Store, &[first, number]);
    }

    /// Says what the invocation remembers. Where it goes on, it forgets it.
    pub(crate) fn flush(&mut self, goes_on: bool) {
        let void = self.cx.ids.void;
        if !self.is_fresh || !self.can_split {
            self.spill();
            self.cx.flushes = true;
            self.cx.goes_on |= goes_on;
            let flush = self.cx.ids.flush;
            self.cx.call(&mut self.out, void, flush, &[]);
            return;
        }
        if self.pending.is_empty() {
            return;
        }
        let Found { first, details, bits } = self.put_together();
        let zero = self.cx.number(0);
        let is_bad = self.test(Op::INotEqual, &[first, zero]);
        self.guarded(is_bad, None, |body, _| {
            set_bits(body.cx, &mut body.out, &bits);
            let [a, b, c] = details.map(|it| it.unwrap_or(zero));
            let report = body.cx.ids.report;
            body.cx.call(&mut body.out, void, report, &[first, a, b, c]);
        });
    }

    /// The first fault of the checks that are pending, and the bits of all.
    fn put_together(&mut self) -> Found {
        let pending = std::mem::take(&mut self.pending);
        let (uint, zero) = (self.cx.ids.uint, self.cx.number(0));
        let mut found = Found { first: zero, details: [None; 3], bits: SmallVec::new() };
        let hidden = if pending.len() > MANY { self.hidden_zero() } else { None };
        // By check: its bit and those of the checks behind it in the same word.
        let mut sums: Vec<u32> = vec![zero; pending.len() + 1];
        let mut at = 0;
        for of_word in pending.chunk_by(|left, right| left.number / 32 == right.number / 32) {
            let mut bits = zero;
            for (at, it) in (at..at + of_word.len()).zip(of_word).rev() {
                let bit = self.cx.number(1 << (it.number % 32));
                bits = match hidden {
                    Some(none) => {
                        let own = self.value(Op::Select, uint, &[it.ok, none, bit]);
                        if bits == zero { own } else { self.value(Op::IAdd, uint, &[bits, own]) }
                    }
                    None => {
                        let with = if bits == zero { bit } else { self.value(Op::IAdd, uint, &[bits, bit]) };
                        self.value(Op::Select, uint, &[it.ok, bits, with])
                    }
                };
                sums[at] = bits;
            }
            at += of_word.len();
            found.bits.push((of_word[0].number / 32, bits));
        }
        found.first = self.first_of(&pending, &found.bits);
        found.details = [0, 1, 2].map(|slot| self.detail_of(&pending, &sums, slot));
        found
    }

    /// Zero, where it is worth a load that drivers do not try what else a choice between zero and a bit could be.
    fn hidden_zero(&mut self) -> Option<u32> {
        if let Some(id) = self.hoisted.get(&Hoisted::Zero) {
            return Some(*id);
        }
        let id = self.cx.hidden_zero(&mut self.head)?;
        self.hoisted.insert(Hoisted::Zero, id);
        Some(id)
    }

    /// A detail of the first check that failed.
    fn detail_of(&mut self, pending: &[Pending], sums: &[u32], slot: usize) -> Option<u32> {
        if pending.iter().all(|it| it.details[slot].is_none()) {
            return None;
        }
        let (uint, zero) = (self.cx.ids.uint, self.cx.number(0));
        let is_same = |left: &Pending, right: &Pending| {
            left.number / 32 == right.number / 32 && left.details[slot] == right.details[slot]
        };
        // The value, and whether it was chosen among several.
        let mut value: Option<(u32, bool)> = None;
        let mut end = pending.len();
        for run in pending.chunk_by(is_same).rev() {
            let start = end - run.len();
            let word = run[0].number / 32;
            let next = std::mem::replace(&mut end, start);
            let Some(own) = run[0].details[slot] else { continue };
            value = Some(match value {
                Some((later, false)) if later == own => (own, false),
                Some((later, _)) => {
                    // Several that tell the same: all of them are fine where no bit came.
                    let is_fine = if run.len() == 1 {
                        run[0].ok
                    } else {
                        let behind = pending.get(next).filter(|it| it.number / 32 == word).map_or(zero, |_| sums[next]);
                        self.test(Op::IEqual, &[sums[start], behind])
                    };
                    (self.value(Op::Select, uint, &[is_fine, later, own]), true)
                }
                None => (own, false),
            });
        }
        value.map(|it| it.0)
    }

    /// The number plus one of the first check that failed, or zero.
    fn first_of(&mut self, pending: &[Pending], bits: &[(u32, u32)]) -> u32 {
        let (uint, zero) = (self.cx.ids.uint, self.cx.number(0));
        let mut first = zero;
        if pending.len() <= FEW {
            for it in pending.iter().rev() {
                let own = self.cx.number(it.number + 1);
                first = self.value(Op::Select, uint, &[it.ok, first, own]);
            }
            return first;
        }
        for (word, bits) in bits.iter().rev() {
            // None gives all ones, which is one before the first.
            let lowest = self.cx.glsl(&mut self.out, GlslStd450Op::FindILsb, &[*bits]);
            let start = self.cx.number(word * 32 + 1);
            let own = self.value(Op::IAdd, uint, &[lowest, start]);
            first = if *word == 0 && first == zero {
                own
            } else {
                let is_any = self.test(Op::INotEqual, &[*bits, zero]);
                self.value(Op::Select, uint, &[is_any, own, first])
            };
        }
        first
    }
}

impl Context<'_> {
    /// The private variables of the first fault.
    pub(crate) fn state(&mut self) -> State {
        if let Some(state) = self.state_variables {
            return state;
        }
        let state = State { first: self.private_word(), details: [0; 3].map(|_| self.private_word()) };
        self.state_variables = Some(state);
        state
    }

    /// The private variable for a word of bits.
    pub(crate) fn mask(&mut self, word: u32) -> u32 {
        while self.ids.masks.len() <= word as usize {
            let mask = self.private_word();
            self.ids.masks.push(mask);
        }
        self.ids.masks[word as usize]
    }

    /// A private variable that begins with zero.
    pub(crate) fn private_word(&mut self) -> u32 {
        let null = self.null(Id(self.ids.uint));
        let pointer = Id(self.ids.private_uint);
        let variable = self.editor.new_global(Op::Variable, pointer, &[StorageClass::Private as u32, null]).0;
        self.ids.variables.push(variable);
        variable
    }

    /// A function of GLSL on unsigned numbers.
    pub(crate) fn glsl(&mut self, code: &mut Vec<u32>, function: GlslStd450Op, operands: &[u32]) -> u32 {
        let set = match self.glsl_set {
            Some(set) => set,
            None => {
                let set = self.editor.import("GLSL.std.450").0;
                self.glsl_set = Some(set);
                set
            }
        };
        let uint = self.ids.uint;
        let all: SmallVec<[u32; 4]> = [set, function as u32].iter().chain(operands).copied().collect();
        self.value(code, Op::ExtInst, uint, &all)
    }
}
