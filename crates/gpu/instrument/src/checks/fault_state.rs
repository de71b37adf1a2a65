//! The faults of an invocation: the first one with its details, and one bit for each site.
//!
//! The checks of a block are pending until its end. Then their results are merged, from the last check to the first. A
//! function with one block keeps all results in SSA values. In other functions, private variables carry the state from
//! block to block. If no check has failed, the details may have any value, and nobody reads them.
//!
//! Every exit of the entry point flushes the state: return, kill, terminate, demote, emit of mesh tasks, and the ends of
//! ray tracing stages. A flush reports the details of the first fault only. The details of further faults need
//! [`crate::InstrumentOptions::immediate`]; site numbers do not depend on it.
//!
//! The bits of sites are added, not combined with `or`, because lavapipe compiles that faster. Its optimizer tries many
//! algebraic rules for `or`, `and`, `xor` and for selections between constants, and few for sums. For the same reason,
//! there is no chain of selections for the first fault through all checks: it takes twice as many optimizer rounds.

use lavascope_spirv::Id;
use smallvec::SmallVec;
use spirv::{GlslStd450Op, Op, StorageClass};

use crate::checks::report_functions::set_bits;
use crate::rewrite::context::{Context, FaultVariables, emit};
use crate::rewrite::function::{FunctionRewriter, Hoisted};
use crate::{CheckDecision, CheckSite};

/// Up to this many checks of a block, one selection for each finds the first one that failed.
const SELECTED_CHECKS_MAX: usize = 3;
/// From this many checks of a block on, the bits are selected against a zero from memory (`opaque_zero`).
const OPAQUE_ZERO_MIN: usize = 17;

/// The details of a fault: the index, and two words that depend on the kind of check. Details that a record does not
/// need may be absent.
pub(crate) type Details = [Option<u32>; 3];

/// A check of the current block.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    number: u32,
    ok: u32,
    details: Details,
}

/// The merged results of the checks of a block, as values.
struct BlockFaults {
    /// The number of the first site plus one, or zero.
    first: u32,
    details: Details,
    /// The words of site bits, by number.
    bits: SmallVec<[(u32, u32); 4]>,
}

impl FunctionRewriter<'_, '_> {
    /// Checks a site: numbers it, and writes the code that remembers or records a fault if `ok` does not hold.
    pub(crate) fn check(&mut self, site: CheckSite, ok: u32, details: Details, is_hoisted: bool) {
        match self.recorded_checks.insert((ok, site.check), (self.block, site.at)) {
            Some((block, at)) if block == self.block => {
                self.recorded_checks.insert((ok, site.check), (block, at));
                if at != site.at {
                    self.cx.add_site(CheckSite { decision: CheckDecision::Repeated, ..site });
                }
                return;
            }
            _ => {}
        }
        self.check_numbered(site, ok, details, is_hoisted);
    }

    /// Checks a site whose condition `ok` no other check has.
    pub(crate) fn check_new(&mut self, site: CheckSite, ok: u32, details: Details) {
        self.check_numbered(site, ok, details, false);
    }

    fn check_numbered(&mut self, site: CheckSite, ok: u32, details: Details, is_hoisted: bool) {
        // The next number, in the order of checks: the host finds the site by it, and shaders its cell.
        let number = self.cx.add_numbered_site(site, is_hoisted);
        if self.cx.options.immediate.contains(&number) && self.can_split {
            self.report(number, ok, details);
        } else {
            self.add_pending_check(number, ok, details);
        }
    }

    fn report(&mut self, number: u32, ok: u32, details: Details) {
        let bad = self.emit_bool(Op::LogicalNot, &[ok]);
        let (number, zero) = (self.cx.uint_constant(number + 1), self.cx.uint_constant(0));
        let [a, b, c] = details.map(|it| it.unwrap_or(zero));
        let (void, report) = (self.cx.ids.void, self.cx.ids.report);
        self.emit_guarded(bad, None, |body, _| {
            body.cx.call(&mut body.out, void, report, &[number, a, b, c]);
        });
    }

    pub(crate) fn add_pending_check(&mut self, number: u32, ok: u32, details: Details) {
        self.pending.push(Pending { number, ok, details });
    }

    /// Writes code that is inserted at another place of the function. Its checks are stored in variables at once.
    pub(crate) fn emit_elsewhere(&mut self, code: &mut Vec<u32>, make: impl FnOnce(&mut Self)) {
        let pending = std::mem::take(&mut self.pending);
        let is_fresh = std::mem::replace(&mut self.is_fault_state_clear, false);
        std::mem::swap(&mut self.out, code);
        make(self);
        self.spill();
        std::mem::swap(&mut self.out, code);
        self.pending = pending;
        self.is_fault_state_clear = is_fresh;
    }

    /// Stores the results of the pending checks in the variables.
    pub(crate) fn spill(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let found = self.merge_pending();
        let FaultVariables { first, details } = self.cx.fault_variables();
        let is_fresh = std::mem::replace(&mut self.is_fault_state_clear, false);
        let uint = self.cx.ids.uint;
        for (word, bits) in found.bits {
            let mask = self.cx.mask(word);
            let mut bits = bits;
            if !is_fresh {
                let before = self.emit_result(Op::Load, uint, &[mask]);
                bits = self.emit_result(Op::BitwiseOr, uint, &[before, bits]);
            }
            emit(&mut self.out, Op::Store, &[mask, bits]);
        }
        let before = (!is_fresh).then(|| {
            let before = self.emit_result(Op::Load, uint, &[first]);
            let zero = self.cx.uint_constant(0);
            (before, self.emit_bool(Op::IEqual, &[before, zero]))
        });
        let pairs = details.into_iter().zip(found.details).filter_map(|(variable, it)| Some((variable, it?)));
        for (variable, value) in pairs {
            let value = match before {
                Some((_, is_fine)) => {
                    let before = self.emit_result(Op::Load, uint, &[variable]);
                    self.emit_result(Op::Select, uint, &[is_fine, value, before])
                }
                None => value,
            };
            emit(&mut self.out, Op::Store, &[variable, value]);
        }
        let number = match before {
            Some((before, is_fine)) => self.emit_result(Op::Select, uint, &[is_fine, found.first, before]),
            None => found.first,
        };
        emit(&mut self.out, Op::Store, &[first, number]);
    }

    /// Writes code that reports the faults of the invocation. If the invocation continues, it also clears them.
    pub(crate) fn flush(&mut self, continues: bool) {
        let void = self.cx.ids.void;
        if !self.is_fault_state_clear || !self.can_split {
            self.spill();
            self.cx.calls_flush = true;
            self.cx.continues_after_flush |= continues;
            let flush = self.cx.ids.flush;
            self.cx.call(&mut self.out, void, flush, &[]);
            return;
        }
        if self.pending.is_empty() {
            return;
        }
        let BlockFaults { first, details, bits } = self.merge_pending();
        let zero = self.cx.uint_constant(0);
        let is_bad = self.emit_bool(Op::INotEqual, &[first, zero]);
        self.emit_guarded(is_bad, None, |body, _| {
            set_bits(body.cx, &mut body.out, &bits);
            let [a, b, c] = details.map(|it| it.unwrap_or(zero));
            let report = body.cx.ids.report;
            body.cx.call(&mut body.out, void, report, &[first, a, b, c]);
        });
    }

    /// The first fault of the pending checks, and the bits of all faults.
    fn merge_pending(&mut self) -> BlockFaults {
        let pending = std::mem::take(&mut self.pending);
        let (uint, zero) = (self.cx.ids.uint, self.cx.uint_constant(0));
        let mut found = BlockFaults { first: zero, details: [None; 3], bits: SmallVec::new() };
        let hidden_zero = if pending.len() >= OPAQUE_ZERO_MIN { self.hoisted_zero() } else { None };
        // For each check: its bit plus those of the later checks in the same word.
        let mut sums: Vec<u32> = vec![zero; pending.len() + 1];
        let mut at = 0;
        for checks_of_word in pending.chunk_by(|left, right| left.number / 32 == right.number / 32) {
            let mut bits = zero;
            for (at, item) in (at..at + checks_of_word.len()).zip(checks_of_word).rev() {
                let bit = self.cx.uint_constant(1 << (item.number % 32));
                bits = match hidden_zero {
                    Some(hidden_zero) => {
                        let own = self.emit_result(Op::Select, uint, &[item.ok, hidden_zero, bit]);
                        if bits == zero { own } else { self.emit_result(Op::IAdd, uint, &[bits, own]) }
                    }
                    None => {
                        let with = if bits == zero { bit } else { self.emit_result(Op::IAdd, uint, &[bits, bit]) };
                        self.emit_result(Op::Select, uint, &[item.ok, bits, with])
                    }
                };
                sums[at] = bits;
            }
            at += checks_of_word.len();
            found.bits.push((checks_of_word[0].number / 32, bits));
        }
        found.first = self.first_of(&pending, &found.bits);
        found.details = [0, 1, 2].map(|slot| self.detail_of(&pending, &sums, slot));
        found
    }

    /// A zero that is loaded from memory, so that the driver's compiler cannot fold the selects.
    fn hoisted_zero(&mut self) -> Option<u32> {
        if let Some(id) = self.hoisted.get(&Hoisted::Zero) {
            return Some(*id);
        }
        let id = self.cx.opaque_zero(&mut self.entry_code)?;
        self.hoisted.insert(Hoisted::Zero, id);
        Some(id)
    }

    /// A detail of the first check that failed.
    fn detail_of(&mut self, pending: &[Pending], sums: &[u32], slot: usize) -> Option<u32> {
        if pending.iter().all(|it| it.details[slot].is_none()) {
            return None;
        }
        let (uint, zero) = (self.cx.ids.uint, self.cx.uint_constant(0));
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
                    // Several checks with the same details: all of them passed if no bit is set.
                    let is_fine = if run.len() == 1 {
                        run[0].ok
                    } else {
                        let behind = pending.get(next).filter(|it| it.number / 32 == word).map_or(zero, |_| sums[next]);
                        self.emit_bool(Op::IEqual, &[sums[start], behind])
                    };
                    (self.emit_result(Op::Select, uint, &[is_fine, later, own]), true)
                }
                None => (own, false),
            });
        }
        value.map(|it| it.0)
    }

    /// The number plus one of the first check that failed, or zero.
    fn first_of(&mut self, pending: &[Pending], bits: &[(u32, u32)]) -> u32 {
        let (uint, zero) = (self.cx.ids.uint, self.cx.uint_constant(0));
        let mut first = zero;
        if pending.len() <= SELECTED_CHECKS_MAX {
            for pending_item in pending.iter().rev() {
                let own = self.cx.uint_constant(pending_item.number + 1);
                first = self.emit_result(Op::Select, uint, &[pending_item.ok, first, own]);
            }
            return first;
        }
        for (word, bits) in bits.iter().rev() {
            // Without a bit, `FindILsb` returns -1, so that the sum is one less than the first number of the word.
            let lowest = self.cx.glsl(&mut self.out, GlslStd450Op::FindILsb, &[*bits]);
            let start = self.cx.uint_constant(word * 32 + 1);
            let own = self.emit_result(Op::IAdd, uint, &[lowest, start]);
            first = if *word == 0 && first == zero {
                own
            } else {
                let is_any = self.emit_bool(Op::INotEqual, &[*bits, zero]);
                self.emit_result(Op::Select, uint, &[is_any, own, first])
            };
        }
        first
    }
}

impl Context<'_> {
    /// The private variables of the first fault.
    pub(crate) fn fault_variables(&mut self) -> FaultVariables {
        if let Some(variables) = self.fault_variables {
            return variables;
        }
        let variables = FaultVariables { first: self.private_word(), details: [0; 3].map(|_| self.private_word()) };
        self.fault_variables = Some(variables);
        variables
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
        self.emit_result(code, Op::ExtInst, uint, &all)
    }
}
