//! Adding instructions to a module and writing it again.
//!
//! An editor remembers what goes where, by the places of the module it began with, and writes everything in one go:
//! places and ids of the original stay what they were for as long as the editor lives. It does not check that the
//! result is valid; it only knows which orders SPIR-V wants.

use std::{collections::HashMap, ops::Range};

use spirv::{Capability, Decoration, Op, StorageClass};

use crate::{Id, InstructionIndex, Module, Section};

/// The words of an instruction.
///
/// # Panics
/// With more than 65534 operands, which no instruction can have.
pub fn instruction(op: Op, operands: &[u32]) -> Vec<u32> {
    let length = u16::try_from(operands.len() + 1).expect("an instruction has at most 65535 words");
    let mut words = vec![u32::from(length) << 16 | op as u32];
    words.extend_from_slice(operands);
    words
}

/// A literal string: its bytes, a zero, and zeros to the next word.
pub fn string_words(text: &str) -> Vec<u32> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(bytes.len() / 4 * 4 + 4, 0);
    bytes.chunks_exact(4).map(|it| u32::from_le_bytes([it[0], it[1], it[2], it[3]])).collect()
}

/// The changes to a module.
#[derive(Debug)]
pub struct Editor<'a> {
    module: &'a Module,
    next: u32,
    additions: Vec<Addition>,
    /// The instructions that replace an instruction; none if it is removed.
    replaced: HashMap<InstructionIndex, Vec<u32>>,
    /// Runs of instructions that something else stands for, in their order.
    runs: Vec<(Range<u32>, Vec<u32>)>,
    /// Types and constants by their words without the result.
    known: HashMap<Vec<u32>, Id>,
    /// Globals are added before this one: the line of the first function stays with it.
    globals_end: InstructionIndex,
}

/// A place for instructions that are not known yet.
#[derive(Debug)]
pub struct Reserved(usize);

#[derive(Debug)]
struct Addition {
    /// Before this instruction, or after it.
    at: InstructionIndex,
    side: InsertSide,
    /// Sections without instructions end at the same place, and are distinguished by this.
    section: Section,
    words: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InsertSide {
    Before,
    After,
}

impl<'a> Editor<'a> {
    pub fn new(module: &'a Module) -> Editor<'a> {
        let mut known = HashMap::new();
        for instruction in module.instructions(module.globals()).filter(|it| is_unique(it.op())) {
            let Some(id) = instruction.result().filter(|it| module.decorations(*it).next().is_none()) else { continue };
            let place = if instruction.result_type().is_some() { 2 } else { 1 };
            let mut key = instruction.words().to_vec();
            key.remove(place);
            known.entry(key).or_insert(id);
        }
        let (next, globals_end) = (module.bound(), globals_end(module));
        let (additions, replaced, runs) = (Vec::new(), HashMap::new(), Vec::new());
        Editor { module, next, additions, replaced, runs, known, globals_end }
    }

    pub fn module(&self) -> &'a Module {
        self.module
    }

    /// An id that nothing has.
    #[inline]
    pub fn fresh(&mut self) -> Id {
        self.next += 1;
        Id(self.next - 1)
    }

    /// Adds a capability, if the module has not got it.
    pub fn add_capability(&mut self, capability: Capability) {
        let words = instruction(Op::Capability, &[capability as u32]);
        self.add_once(Section::Capabilities, words);
    }

    /// Adds an extension, if the module has not got it.
    pub fn add_extension(&mut self, name: &str) {
        let words = instruction(Op::Extension, &string_words(name));
        self.add_once(Section::Extensions, words);
    }

    /// The id of a set of extended instructions, imported if need be.
    pub fn import(&mut self, set: &str) -> Id {
        let imports = self.module.instructions(self.module.globals()).filter(|it| it.is(Op::ExtInstImport));
        let there = imports.filter(|it| it.text(2) == set).find_map(|it| it.result());
        if let Some(id) = there {
            return id;
        }
        let mut key = instruction(Op::ExtInstImport, &string_words(set));
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.fresh();
        self.known.insert(key.clone(), id);
        key.insert(1, id.0);
        self.add(Section::Imports, with_length(key));
        id
    }

    /// Names an id, for people.
    pub fn name(&mut self, id: Id, name: &str) {
        self.add(Section::Names, instruction(Op::Name, &[&[id.0][..], &string_words(name)].concat()));
    }

    pub fn decorate(&mut self, id: Id, decoration: Decoration, operands: &[u32]) {
        let words = instruction(Op::Decorate, &[&[id.0, decoration as u32][..], operands].concat());
        self.add(Section::Annotations, words);
    }

    pub fn decorate_member(&mut self, id: Id, member: u32, decoration: Decoration, operands: &[u32]) {
        let words = instruction(Op::MemberDecorate, &[&[id.0, member, decoration as u32][..], operands].concat());
        self.add(Section::Annotations, words);
    }

    /// A type by its opcode and operands: the one that is there, if it bears no decorations, or a new one.
    pub fn find_or_add_type(&mut self, op: Op, operands: &[u32]) -> Id {
        self.unique(op, None, operands)
    }

    /// A constant by its type and its words.
    pub fn constant(&mut self, ty: Id, words: &[u32]) -> Id {
        self.unique(Op::Constant, Some(ty), words)
    }

    /// The null of a type.
    pub fn null(&mut self, ty: Id) -> Id {
        self.unique(Op::ConstantNull, Some(ty), &[])
    }

    /// The boolean constant, of the type of booleans.
    pub fn find_or_add_bool(&mut self, ty: Id, value: bool) -> Id {
        self.unique(if value { Op::ConstantTrue } else { Op::ConstantFalse }, Some(ty), &[])
    }

    /// An integer type that stands before an instruction of the globals; one that is there already moves up.
    pub fn integer_before(&mut self, at: InstructionIndex, width: u32, is_signed: bool) -> Id {
        let operands = [width, u32::from(is_signed)];
        let key = [&[4 << 16 | Op::TypeInt as u32][..], &operands].concat();
        let there = self.known.get(&key).copied();
        if let Some(id) = there.filter(|it| self.module.definition_index(*it).is_some_and(|it| it < at)) {
            return id;
        }
        let id = there.unwrap_or_else(|| self.fresh());
        if let Some(place) = self.module.definition_index(id) {
            self.remove(place);
        }
        self.known.insert(key, id);
        self.insert_before(at, instruction(Op::TypeInt, &[&[id.0][..], &operands].concat()));
        id
    }

    /// A new type that may be decorated without touching others.
    pub fn new_type(&mut self, op: Op, operands: &[u32]) -> Id {
        let id = self.fresh();
        self.add(Section::Globals, instruction(op, &[&[id.0][..], operands].concat()));
        id
    }

    /// A new global value: a constant, a variable, anything with a type.
    pub fn new_global(&mut self, op: Op, ty: Id, operands: &[u32]) -> Id {
        let id = self.fresh();
        self.add(Section::Globals, instruction(op, &[&[ty.0, id.0][..], operands].concat()));
        id
    }

    /// A new global variable. It belongs into the interface of entry points from version 1.4 on.
    pub fn new_variable(&mut self, pointer: Id, class: StorageClass) -> Id {
        self.new_global(Op::Variable, pointer, &[class as u32])
    }

    /// A new variable in the first block of a function, given by its place in [`Module::functions`].
    pub fn new_local(&mut self, function: usize, pointer: Id) -> Option<Id> {
        let blocks = &self.module.functions().get(function)?.blocks;
        let label = self.module.blocks().get(blocks.start as usize).filter(|_| !blocks.is_empty())?.instructions.start;
        let id = self.fresh();
        self.insert_after(
            InstructionIndex(label),
            instruction(Op::Variable, &[pointer.0, id.0, StorageClass::Function as u32]),
        );
        Some(id)
    }

    /// Adds an id to the interface of an entry point, given by its place in [`Module::entries`].
    pub fn extend_interface(&mut self, entry: usize, id: Id) {
        let Some(entry) = self.module.entries().get(entry) else { return };
        let module = self.module;
        let words = self.replaced.entry(entry.at).or_insert_with(|| module.instruction(entry.at).words().to_vec());
        words.push(id.0);
        *words = with_length(std::mem::take(words));
    }

    /// Adds an instruction at the end of a section. A whole function goes behind all others.
    pub fn add(&mut self, section: Section, words: Vec<u32>) {
        let at = if section == Section::Globals { self.globals_end } else { self.module.end_of(section) };
        self.additions.push(Addition { at, side: InsertSide::Before, section, words });
    }

    /// Keeps a place at the end of a section, behind all that was added so far, for [`Editor::fill`].
    pub fn reserve(&mut self, section: Section) -> Reserved {
        self.add(section, Vec::new());
        Reserved(self.additions.len() - 1)
    }

    /// Puts instructions into a place that was kept.
    pub fn fill(&mut self, reserved: Reserved, words: Vec<u32>) {
        self.additions[reserved.0].words = words;
    }

    /// Inserts before an instruction. What ends a block keeps its merge instruction directly before it.
    pub fn insert_before(&mut self, at: InstructionIndex, words: Vec<u32>) {
        let before = at.0.checked_sub(1).map(InstructionIndex).filter(|instruction_index| {
            let op = self.module.instruction(*instruction_index).op();
            matches!(op, Some(Op::SelectionMerge | Op::LoopMerge))
        });
        // Instructions before the first global come after everything that is added to the sections above.
        let is_global = at < self.module.end_of(Section::Globals);
        let section = if is_global { Section::Globals } else { Section::Functions };
        self.additions.push(Addition { at: before.unwrap_or(at), side: InsertSide::Before, section, words });
    }

    pub fn insert_after(&mut self, at: InstructionIndex, words: Vec<u32>) {
        self.additions.push(Addition { at, side: InsertSide::After, section: Section::Functions, words });
    }

    /// Replaces an instruction by words of any number of instructions.
    pub fn replace(&mut self, at: InstructionIndex, words: Vec<u32>) {
        self.replaced.insert(at, words);
    }

    /// Replaces a run of instructions by words. Runs come in their order, and must not be edited otherwise.
    pub fn replace_run(&mut self, run: Range<u32>, words: Vec<u32>) {
        debug_assert!(self.runs.last().is_none_or(|it| it.0.end <= run.start), "runs come in their order");
        self.runs.push((run, words));
    }

    pub fn remove(&mut self, at: InstructionIndex) {
        self.replace(at, Vec::new());
    }

    /// The words of the new module.
    pub fn finish(mut self) -> Vec<u32> {
        let mut words = self.module.words()[..5].to_vec();
        words[3] = self.next;
        self.additions.sort_by_key(|it| (it.at, it.side, it.section));
        let mut additions = self.additions.iter().peekable();
        let mut runs = self.runs.iter_mut().peekable();
        let mut at = 0;
        while at < self.module.len() {
            let item = self.module.instruction(InstructionIndex(at));
            while let Some(addition) = additions.next_if(|add| (add.at, add.side) <= (item.at, InsertSide::Before)) {
                words.extend_from_slice(&addition.words);
            }
            if let Some((run, new)) = runs.next_if(|run| run.0.start == at) {
                if new.len() > words.len() {
                    // A longer instruction stays where it is.
                    let before = std::mem::replace(&mut words, std::mem::take(new));
                    words.splice(0..0, before);
                } else {
                    words.extend_from_slice(new);
                }
                at = run.end.max(at + 1);
                continue;
            }
            words.extend_from_slice(self.replaced.get(&item.at).map_or(item.words(), Vec::as_slice));
            while let Some(addition) = additions.next_if(|add| add.at == item.at) {
                words.extend_from_slice(&addition.words);
            }
            at += 1;
        }
        additions.for_each(|it| words.extend_from_slice(&it.words));
        words
    }

    fn unique(&mut self, op: Op, ty: Option<Id>, operands: &[u32]) -> Id {
        // The length counts the result, as it does in the words of the module.
        let length = operands.len() + 2 + usize::from(ty.is_some());
        let mut key = vec![(length as u32) << 16 | op as u32];
        key.extend(ty.map(|it| it.0));
        key.extend_from_slice(operands);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = match ty {
            Some(ty) => self.new_global(op, ty, operands),
            None => self.new_type(op, operands),
        };
        self.known.insert(key, id);
        id
    }

    fn add_once(&mut self, section: Section, words: Vec<u32>) {
        let is_there = self.module.instructions(self.module.globals()).any(|it| it.words() == words);
        let end = self.module.end_of(section);
        if !is_there && !self.additions.iter().any(|it| it.at == end && it.words == words) {
            self.add(section, words);
        }
    }
}

/// The first of the lines that stand before the first function, or that function.
fn globals_end(module: &Module) -> InstructionIndex {
    let (mut end, least) = (module.end_of(Section::Globals), module.end_of(Section::Annotations));
    let is_line = |it: InstructionIndex| matches!(module.instruction(it).op(), Some(Op::Line | Op::NoLine));
    while end > least && is_line(InstructionIndex(end.0 - 1)) {
        end.0 -= 1;
    }
    end
}

/// The first word with the length that the words have.
fn with_length(mut words: Vec<u32>) -> Vec<u32> {
    words[0] = (words.len() as u32) << 16 | words[0] & 0xffff;
    words
}

/// Whether SPIR-V wants one of a kind, or gains nothing from a second.
fn is_unique(op: Option<Op>) -> bool {
    matches!(
        op,
        Some(
            Op::TypeVoid
                | Op::TypeBool
                | Op::TypeInt
                | Op::TypeFloat
                | Op::TypeVector
                | Op::TypeMatrix
                | Op::TypeImage
                | Op::TypeSampler
                | Op::TypeSampledImage
                | Op::TypeArray
                | Op::TypeRuntimeArray
                | Op::TypePointer
                | Op::TypeFunction
                | Op::Constant
                | Op::ConstantTrue
                | Op::ConstantFalse
                | Op::ConstantComposite
                | Op::ConstantNull
        )
    )
}
