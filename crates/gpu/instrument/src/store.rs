//! A module with checks as plain words, and back: for whoever keeps it.
//!
//! What comes back may be anything: words that mean nothing give none, and nothing is believed that could not have
//! been written here. Whether the module itself is the one that was kept is for the keeper to make sure of.

use lavascope_spirv::{At, Module};

use crate::{
    CELL_WORDS, Check, Counted, Instrumented, Reason, Requirement, Site, TouchKind, TouchSite, Touches, Verdict,
};

/// Changes with every change of the form, and of what the words of a module with checks mean.
pub const STORE_VERSION: u32 = 5;
/// No number of sites or requirements is larger.
const COUNT_MAX: u32 = 1 << 24;

impl Instrumented {
    /// All of it, in words.
    pub fn to_words(&self) -> Vec<u32> {
        let mut to = vec![STORE_VERSION];
        let flags = [self.reads_descriptors, self.reads_addresses, self.prints];
        to.extend([self.numbers, flags.iter().rev().fold(0, |all, it| all << 1 | u32::from(*it))]);
        to.extend(self.constants);
        to.extend(self.root_constants);
        put_wide(&mut to, self.scratch_bytes);
        to.push(self.sites.len() as u32);
        self.sites.iter().for_each(|it| put_site(&mut to, it));
        to.push(self.requirements.len() as u32);
        for it in &self.requirements {
            to.extend([it.set, it.binding]);
            put_option(&mut to, it.element);
            to.push(it.least);
        }
        to.push(self.infos.len() as u32);
        to.extend(self.infos.iter().flatten());
        put_touches(&mut to, &self.touches);
        to.push(self.touch_constant);
        to.push(self.words.len() as u32);
        to.extend(&self.words);
        to
    }

    /// What [`Instrumented::to_words`] gave; none for anything else.
    pub fn from_words(words: &[u32]) -> Option<Instrumented> {
        let mut from = Reader { words };
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
        let words = from.list(Reader::word)?;
        let made = Instrumented {
            words,
            sites,
            numbers,
            requirements,
            constants,
            root_constants,
            scratch_bytes,
            reads_descriptors: flags & 1 != 0,
            reads_addresses: flags & 2 != 0,
            prints: flags & 4 != 0,
            touches,
            touch_constant,
            infos,
        };
        (from.words.is_empty() && made.is_sound()).then_some(made)
    }

    /// Whether the parts fit together.
    fn is_sound(&self) -> bool {
        let has_number = |it: &Site| it.verdict.number().is_none_or(|it| it < self.numbers);
        self.infos.len() == self.numbers as usize
            && self.numbers.checked_mul(CELL_WORDS).is_some()
            && self.sites.iter().all(has_number)
            && self.touches.is_sound()
            && Module::parse(&self.words).is_ok()
    }
}

fn put_wide(to: &mut Vec<u32>, it: u64) {
    to.extend([it as u32, (it >> 32) as u32]);
}

fn put_option(to: &mut Vec<u32>, it: Option<u32>) {
    to.extend([u32::from(it.is_some()), it.unwrap_or(0)]);
}

fn put_site(to: &mut Vec<u32>, it: &Site) {
    let (verdict, number) = match it.verdict {
        Verdict::Proven => (0, 0),
        Verdict::Repeated => (1, 0),
        Verdict::Hoisted { number } => (2, number),
        Verdict::Checked { number } => (3, number),
        Verdict::Unchecked(Reason::Pointer) => (4, 0),
        Verdict::Unchecked(Reason::Size) => (4, 1),
        Verdict::Unchecked(Reason::Loop) => (4, 2),
        Verdict::Unchecked(Reason::Instruction) => (4, 3),
    };
    to.extend([it.at.0, it.check as u32, verdict, number]);
    put_option(to, it.binding.map(|it| it.0));
    put_option(to, it.binding.map(|it| it.1));
    put_option(to, it.element);
    put_wide(to, it.bytes);
    let (kind, offset, stride) = match it.counted {
        Counted::Constant { offset } => (0, offset, 0),
        Counted::Elements { offset, stride } => (1, offset, stride),
        Counted::Bytes => (2, 0, 0),
    };
    to.push(kind);
    put_wide(to, offset);
    put_wide(to, stride);
}

fn put_touches(to: &mut Vec<u32>, it: &Touches) {
    to.extend([it.words, u32::from(it.is_blind) | u32::from(it.is_blind_to_addresses) << 1, it.blind.len() as u32]);
    to.extend(it.blind.iter().flat_map(|it| [it.0, it.1]));
    to.push(it.sites.len() as u32);
    for it in &it.sites {
        let (kind, is_exact) = match it.kind {
            TouchKind::Descriptor => (0, false),
            TouchKind::Span { is_exact } => (1, is_exact),
            TouchKind::Bits { is_exact } => (2, is_exact),
            TouchKind::Texels => (3, false),
            TouchKind::Addresses { is_exact } => (4, is_exact),
        };
        let flags = [it.reads, it.writes, it.is_atomic, it.is_always, is_exact];
        let flags = flags.iter().rev().fold(0, |all, it| all << 1 | u32::from(*it));
        to.extend([it.set, it.binding, kind, flags]);
        put_option(to, it.element);
        put_option(to, it.place);
        to.push(it.fixed.len() as u32);
        to.extend(it.fixed.iter().flat_map(|it| [it.0, it.1]));
    }
}

struct Reader<'a> {
    words: &'a [u32],
}

impl Reader<'_> {
    fn word(&mut self) -> Option<u32> {
        self.words.split_off_first().copied()
    }

    fn wide(&mut self) -> Option<u64> {
        Some(u64::from(self.word()?) | u64::from(self.word()?) << 32)
    }

    fn option(&mut self) -> Option<Option<u32>> {
        match (self.word()?, self.word()?) {
            (0, 0) => Some(None),
            (1, it) => Some(Some(it)),
            _ => None,
        }
    }

    /// Not more than there are words for.
    fn list<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.word().filter(|it| *it <= COUNT_MAX && *it as usize <= self.words.len())?;
        (0..count).map(|_| one(self)).collect()
    }

    fn requirement(&mut self) -> Option<Requirement> {
        let (set, binding) = (self.word()?, self.word()?);
        Some(Requirement { set, binding, element: self.option()?, least: self.word()? })
    }

    fn pair(&mut self) -> Option<(u32, u32)> {
        Some((self.word()?, self.word()?))
    }

    fn touches(&mut self) -> Option<Touches> {
        let (words, flags) = (self.word()?, self.word().filter(|it| *it < 4)?);
        let (is_blind, is_blind_to_addresses) = (flags & 1 != 0, flags & 2 != 0);
        let (blind, sites) = (self.list(Reader::pair)?, self.list(Reader::touch_site)?);
        Some(Touches { words, is_blind, is_blind_to_addresses, blind, sites })
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
        let fixed = self.list(Reader::pair)?;
        Some(TouchSite { set, binding, element, reads, writes, is_atomic, place, kind, fixed, is_always })
    }

    fn site(&mut self) -> Option<Site> {
        let at = At(self.word()?);
        let check = match self.word()? {
            0 => Check::Descriptor,
            2 => Check::Address,
            3 => Check::Buffer,
            4 => Check::Texel,
            _ => return None,
        };
        let verdict = match (self.word()?, self.word()?) {
            (0, 0) => Verdict::Proven,
            (1, 0) => Verdict::Repeated,
            (2, number) => Verdict::Hoisted { number },
            (3, number) => Verdict::Checked { number },
            (4, 0) => Verdict::Unchecked(Reason::Pointer),
            (4, 1) => Verdict::Unchecked(Reason::Size),
            (4, 2) => Verdict::Unchecked(Reason::Loop),
            (4, 3) => Verdict::Unchecked(Reason::Instruction),
            _ => return None,
        };
        let binding = self.option()?.zip(self.option()?);
        let (element, bytes, kind) = (self.option()?, self.wide()?, self.word()?);
        let (offset, stride) = (self.wide()?, self.wide()?);
        let counted = match (kind, offset, stride) {
            (0, offset, 0) => Counted::Constant { offset },
            (1, offset, stride) => Counted::Elements { offset, stride },
            (2, 0, 0) => Counted::Bytes,
            _ => return None,
        };
        Some(Site { at, check, verdict, binding, element, bytes, counted })
    }
}
