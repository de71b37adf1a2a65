//! An instrumented module as plain words, and back, for a cache.
//!
//! Stored words may be damaged: words without a meaning give none, and values that this code cannot have written are
//! rejected. The cache makes sure that the module itself is the one that was stored.

use lavascope_spirv::{InstructionIndex, Module};

use crate::{
    BindingRequirement, CELL_WORDS, Check, CheckDecision, CheckSite, IndexUnit, InstrumentedModule, ModuleTouches,
    TouchKind, TouchSite, UncheckedReason,
};

/// Changes with every change of the form, and of what the words of a module with checks mean.
pub const STORE_VERSION: u32 = 7;
/// No number of sites or requirements is larger.
const COUNT_MAX: u32 = 1 << 24;

impl InstrumentedModule {
    /// All of it, in words.
    pub fn to_words(&self) -> Vec<u32> {
        let mut to = vec![STORE_VERSION];
        let flags = [self.reads_descriptors, self.reads_addresses, self.prints];
        to.extend([self.numbered_sites, flags.iter().rev().fold(0, |all, it| all << 1 | u32::from(*it))]);
        to.extend(self.spec_ids);
        to.extend(self.root_spec_ids);
        put_wide(&mut to, self.scratch_bytes);
        to.push(self.sites.len() as u32);
        self.sites.iter().for_each(|it| put_site(&mut to, it));
        to.push(self.requirements.len() as u32);
        for requirement in &self.requirements {
            to.extend([requirement.set, requirement.binding]);
            put_option(&mut to, requirement.element);
            to.push(requirement.min_size);
        }
        to.push(self.site_infos.len() as u32);
        to.extend(self.site_infos.iter().flatten());
        put_touches(&mut to, &self.touches);
        to.push(self.touch_spec_id);
        to.push(self.words.len() as u32);
        to.extend(&self.words);
        to
    }

    /// Reads the result of [`InstrumentedModule::to_words`]; none for anything else.
    pub fn from_words(words: &[u32]) -> Option<InstrumentedModule> {
        let mut from = WordReader { words };
        if from.word()? != STORE_VERSION {
            return None;
        }
        let numbers = from.word()?;
        let flags = from.word().filter(|it| *it < 8)?;
        let [constants, root_constants] = [[from.word()?, from.word()?], [from.word()?, from.word()?]];
        let scratch_bytes = from.wide()?;
        let sites = from.list(|it| it.site())?;
        let requirements = from.list(|it| it.requirement())?;
        let infos = from.list(|it| Some([it.word()?, it.word()?, it.word()?, it.word()?]))?;
        let (touches, touch_constant) = (from.touches()?, from.word()?);
        let words = from.list(WordReader::word)?;
        let made = InstrumentedModule {
            words,
            sites,
            numbered_sites: numbers,
            requirements,
            spec_ids: constants,
            root_spec_ids: root_constants,
            scratch_bytes,
            reads_descriptors: flags & 1 != 0,
            reads_addresses: flags & 2 != 0,
            prints: flags & 4 != 0,
            touches,
            touch_spec_id: touch_constant,
            site_infos: infos,
        };
        (from.words.is_empty() && made.is_sound()).then_some(made)
    }

    /// Whether the parts fit together.
    fn is_sound(&self) -> bool {
        let has_number = |it: &CheckSite| it.decision.number().is_none_or(|it| it < self.numbered_sites);
        self.site_infos.len() == self.numbered_sites as usize
            && self.numbered_sites.checked_mul(CELL_WORDS).is_some()
            && self.sites.iter().all(has_number)
            && self.touches.is_sound()
            && Module::parse(&self.words).is_ok()
    }
}

fn put_wide(to: &mut Vec<u32>, value: u64) {
    to.extend([value as u32, (value >> 32) as u32]);
}

fn put_option(to: &mut Vec<u32>, value: Option<u32>) {
    to.extend([u32::from(value.is_some()), value.unwrap_or(0)]);
}

fn put_site(to: &mut Vec<u32>, check_site: &CheckSite) {
    let (verdict, number) = match check_site.decision {
        CheckDecision::Proven => (0, 0),
        CheckDecision::Repeated => (1, 0),
        CheckDecision::Hoisted { number } => (2, number),
        CheckDecision::Checked { number } => (3, number),
        CheckDecision::Unchecked(UncheckedReason::Pointer) => (4, 0),
        CheckDecision::Unchecked(UncheckedReason::Size) => (4, 1),
        CheckDecision::Unchecked(UncheckedReason::Loop) => (4, 2),
        CheckDecision::Unchecked(UncheckedReason::Instruction) => (4, 3),
    };
    to.extend([check_site.at.0, check_site.check as u32, verdict, number]);
    put_option(to, check_site.binding.map(|it| it.0));
    put_option(to, check_site.binding.map(|it| it.1));
    put_option(to, check_site.element);
    put_wide(to, check_site.bytes);
    let (kind, offset, stride) = match check_site.index_unit {
        IndexUnit::Constant { offset } => (0, offset, 0),
        IndexUnit::Elements { offset, stride, is_signed: false } => (1, offset, stride),
        IndexUnit::Elements { offset, stride, is_signed: true } => (3, offset, stride),
        IndexUnit::Bytes => (2, 0, 0),
    };
    to.push(kind);
    put_wide(to, offset);
    put_wide(to, stride);
}

fn put_touches(to: &mut Vec<u32>, module_touches: &ModuleTouches) {
    to.extend([
        module_touches.words,
        u32::from(module_touches.has_untracked_access) | u32::from(module_touches.has_untracked_addresses) << 1,
        module_touches.untracked_bindings.len() as u32,
    ]);
    to.extend(module_touches.untracked_bindings.iter().flat_map(|it| [it.0, it.1]));
    to.push(module_touches.sites.len() as u32);
    for site in &module_touches.sites {
        let (kind, is_exact) = match site.kind {
            TouchKind::Descriptor => (0, false),
            TouchKind::Span { is_exact } => (1, is_exact),
            TouchKind::Bits { is_exact } => (2, is_exact),
            TouchKind::Texels => (3, false),
            TouchKind::Addresses { is_exact } => (4, is_exact),
        };
        let flags = [site.reads, site.writes, site.is_atomic, site.is_unconditional, is_exact];
        let flags = flags.iter().rev().fold(0, |all, it| all << 1 | u32::from(*it));
        to.extend([site.set, site.binding, kind, flags]);
        put_option(to, site.element);
        put_option(to, site.word_offset);
        to.push(site.fixed_ranges.len() as u32);
        to.extend(site.fixed_ranges.iter().flat_map(|it| [it.0, it.1]));
    }
}

struct WordReader<'a> {
    words: &'a [u32],
}

impl WordReader<'_> {
    fn word(&mut self) -> Option<u32> {
        self.words.split_off_first().copied()
    }

    fn wide(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    fn option(&mut self) -> Option<Option<u32>> {
        match (self.word()?, self.word()?) {
            (0, 0) => Some(None),
            (1, value) => Some(Some(value)),
            _ => None,
        }
    }

    /// Not more than there are words for.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.word().filter(|it| *it <= COUNT_MAX && *it as usize <= self.words.len())?;
        (0..count).map(|_| one(self)).collect()
    }

    fn requirement(&mut self) -> Option<BindingRequirement> {
        let (set, binding) = (self.word()?, self.word()?);
        Some(BindingRequirement { set, binding, element: self.option()?, min_size: self.word()? })
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.word()?, self.word()?))
    }

    fn touches(&mut self) -> Option<ModuleTouches> {
        let (words, flags) = (self.word()?, self.word().filter(|it| *it < 4)?);
        let (is_blind, is_blind_to_addresses) = (flags & 1 != 0, flags & 2 != 0);
        let (blind, sites) = (self.list(WordReader::pair)?, self.list(WordReader::touch_site)?);
        Some(ModuleTouches {
            words,
            has_untracked_access: is_blind,
            has_untracked_addresses: is_blind_to_addresses,
            untracked_bindings: blind,
            sites,
        })
    }

    fn touch_site(&mut self) -> Option<TouchSite> {
        let (set, binding) = self.pair()?;
        let (kind, flags) = self.pair().filter(|it| it.1 < 32)?;
        let [reads, writes, is_atomic, is_always, is_exact] = [0, 1, 2, 3, 4].map(|it| flags & 1 << it != 0);
        let kind = match kind {
            0 => TouchKind::Descriptor,
            1 => TouchKind::Span { is_exact },
            2 => TouchKind::Bits { is_exact },
            3 => TouchKind::Texels,
            4 => TouchKind::Addresses { is_exact },
            _ => return None,
        };
        let (element, place) = (self.option()?, self.option()?);
        let fixed = self.list(WordReader::pair)?;
        Some(TouchSite {
            set,
            binding,
            element,
            reads,
            writes,
            is_atomic,
            word_offset: place,
            kind,
            fixed_ranges: fixed,
            is_unconditional: is_always,
        })
    }

    fn site(&mut self) -> Option<CheckSite> {
        let at = InstructionIndex(self.word()?);
        let check = match self.word()? {
            0 => Check::Descriptor,
            2 => Check::Address,
            3 => Check::Buffer,
            4 => Check::Texel,
            _ => return None,
        };
        let verdict = match (self.word()?, self.word()?) {
            (0, 0) => CheckDecision::Proven,
            (1, 0) => CheckDecision::Repeated,
            (2, number) => CheckDecision::Hoisted { number },
            (3, number) => CheckDecision::Checked { number },
            (4, 0) => CheckDecision::Unchecked(UncheckedReason::Pointer),
            (4, 1) => CheckDecision::Unchecked(UncheckedReason::Size),
            (4, 2) => CheckDecision::Unchecked(UncheckedReason::Loop),
            (4, 3) => CheckDecision::Unchecked(UncheckedReason::Instruction),
            _ => return None,
        };
        let binding = self.option()?.zip(self.option()?);
        let (element, bytes, kind) = (self.option()?, self.wide()?, self.word()?);
        let (offset, stride) = (self.wide()?, self.wide()?);
        let counted = match (kind, offset, stride) {
            (0, offset, 0) => IndexUnit::Constant { offset },
            (1, offset, stride) => IndexUnit::Elements { offset, stride, is_signed: false },
            (3, offset, stride) => IndexUnit::Elements { offset, stride, is_signed: true },
            (2, 0, 0) => IndexUnit::Bytes,
            _ => return None,
        };
        Some(CheckSite { at, check, decision: verdict, binding, element, bytes, index_unit: counted })
    }
}
