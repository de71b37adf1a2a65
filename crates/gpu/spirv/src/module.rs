//! The words of a module with an index.
//!
//! Checked here, once: lengths, ids against the bound, ids made twice, how functions and blocks nest. Not checked:
//! whether the module is valid SPIR-V. A reader of operands must accept an id that no instruction makes.

use std::ops::Range;

use spirv::Op;

use crate::{
    Id, Instruction, InstructionIndex, ParseError, ParseErrorKind, decode_string,
    grammar::{InstructionForm, instruction_form},
};

const HEADER: usize = 5;
const NONE: u32 = u32::MAX;
/// The limit that SPIR-V sets for the bound.
const BOUND_MAX: u32 = 0x3f_ffff;
const GROUPED_MAX: usize = 1 << 20;

/// A parsed module.
#[derive(Clone, Debug)]
pub struct Module {
    words: Vec<u32>,
    /// Where each instruction begins, and the end.
    offsets: Vec<u32>,
    /// By id: the instruction that makes it.
    definitions: Vec<u32>,
    /// Sorted by id, then in the order of the module.
    decorations: Vec<(Id, Annotation)>,
    names: Vec<(Id, Annotation)>,
    functions: Vec<Function>,
    blocks: Vec<BasicBlock>,
    entries: Vec<EntryPoint>,
    /// By section: the first instruction of a later one.
    ends: [u32; Section::ALL.len()],
}

/// A decoration or a name of an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Annotation {
    /// The member of the structure; none for the whole id.
    pub member: Option<u32>,
    /// The decoration or name instruction.
    pub at: InstructionIndex,
    /// Where in that instruction the decoration, or the name, stands.
    pub operand: usize,
}

/// A function, from `OpFunction` to `OpFunctionEnd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub id: Id,
    /// Its instructions.
    pub instructions: Range<u32>,
    pub parameters: Vec<InstructionIndex>,
    /// Its blocks, as places in [`Module::blocks`].
    pub blocks: Range<u32>,
}

/// A block, from `OpLabel` to the instruction that ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BasicBlock {
    pub label: Id,
    pub instructions: Range<u32>,
}

impl BasicBlock {
    pub fn terminator(&self) -> InstructionIndex {
        InstructionIndex(self.instructions.end - 1)
    }
}

/// An entry point of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPoint {
    pub at: InstructionIndex,
    /// An `ExecutionModel`, known or not.
    pub model: u32,
    pub function: Id,
    pub name: String,
    pub interface: Vec<Id>,
}

/// The sections of a module, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    Capabilities,
    Extensions,
    Imports,
    MemoryModel,
    EntryPoints,
    ExecutionModes,
    Sources,
    Names,
    Processed,
    Annotations,
    Globals,
    Functions,
}

impl Section {
    const ALL: [Section; 12] = [
        Section::Capabilities,
        Section::Extensions,
        Section::Imports,
        Section::MemoryModel,
        Section::EntryPoints,
        Section::ExecutionModes,
        Section::Sources,
        Section::Names,
        Section::Processed,
        Section::Annotations,
        Section::Globals,
        Section::Functions,
    ];

    /// The section that an instruction is in, given that of the one before, which is not the last one.
    fn of(opcode: Option<Op>, before: Section) -> Section {
        match opcode {
            Some(Op::Capability) => Section::Capabilities,
            Some(Op::Extension) => Section::Extensions,
            Some(Op::ExtInstImport) => Section::Imports,
            Some(Op::MemoryModel | Op::SamplerImageAddressingModeNV) => Section::MemoryModel,
            Some(Op::EntryPoint) => Section::EntryPoints,
            Some(Op::ExecutionMode | Op::ExecutionModeId) => Section::ExecutionModes,
            Some(Op::String | Op::Source | Op::SourceContinued | Op::SourceExtension) => Section::Sources,
            Some(Op::Name | Op::MemberName) => Section::Names,
            Some(Op::ModuleProcessed) => Section::Processed,
            Some(
                Op::Decorate
                | Op::MemberDecorate
                | Op::DecorationGroup
                | Op::GroupDecorate
                | Op::GroupMemberDecorate
                | Op::DecorateId
                | Op::DecorateString
                | Op::MemberDecorateString,
            ) => Section::Annotations,
            Some(Op::Function) => Section::Functions,
            Some(Op::Line | Op::NoLine) | None => before,
            Some(_) => Section::Globals,
        }
    }
}

impl Module {
    /// Reads the words as `vkCreateShaderModule` gets them.
    pub fn parse(words: &[u32]) -> Result<Module, ParseError> {
        let bound = check_header(words)?;
        let mut module = Module {
            words: words.to_vec(),
            offsets: Vec::with_capacity(words.len() / 3),
            // A bound far above what the words can make is a mistake that is not paid for.
            definitions: vec![NONE; (bound as usize).min(words.len())],
            decorations: Vec::new(),
            names: Vec::new(),
            functions: Vec::new(),
            blocks: Vec::new(),
            entries: Vec::new(),
            ends: [NONE; Section::ALL.len()],
        };
        Parser { module: &mut module, bound, section: Section::Capabilities, function: None }.run()?;
        module.expand_groups()?;
        module.decorations.sort_by_key(|it| it.0);
        module.names.sort_by_key(|it| it.0);
        Ok(module)
    }

    /// The words that were parsed.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Major and minor.
    pub fn version(&self) -> (u8, u8) {
        let bytes = self.words[1].to_le_bytes();
        (bytes[2], bytes[1])
    }

    /// Every id is below it.
    #[inline]
    pub fn bound(&self) -> u32 {
        self.words[3]
    }

    pub fn len(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// Whether there is nothing but the header.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An instruction of this module: `at` is below [`Module::len`].
    #[inline]
    pub fn instruction(&self, at: InstructionIndex) -> Instruction<'_> {
        let (from, to) = (self.offsets[at.0 as usize], self.offsets[at.0 as usize + 1]);
        Instruction::new(at, &self.words[from as usize..to as usize])
    }

    #[inline]
    pub fn instructions(&self, range: Range<u32>) -> impl DoubleEndedIterator<Item = Instruction<'_>> {
        range.map(|it| self.instruction(InstructionIndex(it)))
    }

    /// How many words a range of instructions has, which ends at most at [`Module::len`].
    pub fn words_of(&self, range: Range<u32>) -> usize {
        (self.offsets[range.end as usize] - self.offsets[range.start as usize]) as usize
    }

    /// All of them.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Instruction<'_>> {
        self.instructions(0..self.len())
    }

    /// The instructions before the first function.
    pub fn globals(&self) -> Range<u32> {
        0..self.end_of(Section::Globals).0
    }

    /// Where an instruction may be added to a section: before this one.
    pub fn end_of(&self, section: Section) -> InstructionIndex {
        InstructionIndex(self.ends[section as usize].min(self.len()))
    }

    /// Which instruction makes an id.
    #[inline]
    pub fn definition_index(&self, id: Id) -> Option<InstructionIndex> {
        self.definitions.get(id.0 as usize).copied().filter(|it| *it != NONE).map(InstructionIndex)
    }

    /// The instruction that makes an id.
    #[inline]
    pub fn definition(&self, id: Id) -> Option<Instruction<'_>> {
        self.definition_index(id).map(|it| self.instruction(it))
    }

    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The blocks of all functions.
    pub fn blocks(&self) -> &[BasicBlock] {
        &self.blocks
    }

    pub fn entries(&self) -> &[EntryPoint] {
        &self.entries
    }

    /// Which function has this id, as a place in [`Module::functions`].
    pub fn function_of(&self, id: Id) -> Option<usize> {
        let at = self.definition_index(id)?;
        self.functions.binary_search_by_key(&at.0, |it| it.instructions.start).ok()
    }

    /// Which block has this label, as a place in [`Module::blocks`].
    pub fn block_of(&self, label: Id) -> Option<usize> {
        let at = self.definition_index(label)?;
        self.blocks.binary_search_by_key(&at.0, |it| it.instructions.start).ok()
    }

    /// Which block an instruction is in.
    pub fn block_containing(&self, at: InstructionIndex) -> Option<usize> {
        let next = self.blocks.partition_point(|it| it.instructions.start <= at.0);
        next.checked_sub(1).filter(|it| self.blocks[*it].instructions.contains(&at.0))
    }

    /// The decorations of an id and of its members, those of groups included.
    pub fn decorations(&self, id: Id) -> impl Iterator<Item = Annotation> {
        annotations_of(&self.decorations, id)
    }

    /// The words of a decoration: itself, then its operands.
    pub fn decoration_words(&self, note: Annotation) -> &[u32] {
        self.instruction(note.at).words_from(note.operand)
    }

    /// The first operand of a decoration of an id.
    #[inline]
    pub fn decoration_operand(&self, id: Id, member: Option<u32>, decoration: spirv::Decoration) -> Option<u32> {
        let found = self.decorations(id).filter(|it| it.member == member);
        let mut found = found.map(|it| self.decoration_words(it)).filter(|it| it.first() == Some(&(decoration as u32)));
        found.next().map(|it| it.get(1).copied().unwrap_or(0))
    }

    /// The name of an id or a member, where the module has one that is not empty.
    pub fn name(&self, id: Id, member: Option<u32>) -> Option<String> {
        let note = annotations_of(&self.names, id).find(|it| it.member == member)?;
        Some(self.instruction(note.at).text(note.operand).into_owned()).filter(|it| !it.is_empty())
    }

    /// Decorations of groups become decorations of what the groups are applied to.
    fn expand_groups(&mut self) -> Result<(), ParseError> {
        let uses: Vec<(Id, Option<u32>, Id)> = self.instructions(self.globals()).flat_map(group_uses).collect();
        if uses.is_empty() {
            return Ok(());
        }
        let mut own = self.decorations.clone();
        own.sort_by_key(|it| it.0);
        let mut left = GROUPED_MAX;
        for (group, member, target) in uses {
            for note in annotations_of(&own, group) {
                left =
                    left.checked_sub(1).ok_or(ParseError { word: 0, instruction: 0, kind: ParseErrorKind::Groups })?;
                self.decorations.push((target, Annotation { member, ..note }));
            }
        }
        Ok(())
    }
}

fn annotations_of(all: &[(Id, Annotation)], id: Id) -> impl Iterator<Item = Annotation> {
    let from = all.partition_point(|it| it.0 < id);
    all[from..].iter().take_while(move |it| it.0 == id).map(|it| it.1)
}

/// Group, member and target.
fn group_uses(instruction: Instruction<'_>) -> Vec<(Id, Option<u32>, Id)> {
    let group = instruction.id(1);
    match instruction.op() {
        Some(Op::GroupDecorate) => instruction.words_from(2).iter().map(|it| (group, None, Id(*it))).collect(),
        Some(Op::GroupMemberDecorate) => {
            instruction.words_from(2).chunks_exact(2).map(|it| (group, Some(it[1]), Id(it[0]))).collect()
        }
        _ => Vec::new(),
    }
}

/// The bound that the header names.
fn check_header(words: &[u32]) -> Result<u32, ParseError> {
    let fault = |word, fault| Err(ParseError { word, instruction: 0, kind: fault });
    match words.first() {
        Some(&first) if first == spirv::MAGIC_NUMBER.swap_bytes() => fault(0, ParseErrorKind::ByteOrder),
        Some(&first) if first != spirv::MAGIC_NUMBER => fault(0, ParseErrorKind::Magic(first)),
        _ if words.len() < HEADER => fault(words.len(), ParseErrorKind::Header),
        _ if words[3] > BOUND_MAX => fault(3, ParseErrorKind::BoundLimit(words[3])),
        _ => Ok(words[3]),
    }
}

/// Goes through the words once.
struct Parser<'a> {
    module: &'a mut Module,
    bound: u32,
    section: Section,
    /// Where the open function began, and its blocks.
    function: Option<(u32, u32)>,
}

impl Parser<'_> {
    fn run(mut self) -> Result<(), ParseError> {
        let mut word = HEADER;
        while word < self.module.words.len() {
            let index = self.module.offsets.len();
            let at = |fault| ParseError { word, instruction: index, kind: fault };
            let words = check_length(&self.module.words[word..]).map_err(at)?;
            self.module.offsets.push(word as u32);
            self.parse_instruction(index as u32, word..word + words).map_err(at)?;
            word += words;
        }
        let instruction = self.module.offsets.len();
        self.module.offsets.push(word as u32);
        match self.function {
            Some(_) => Err(ParseError { word, instruction, kind: ParseErrorKind::Unfinished }),
            None => Ok(()),
        }
    }

    fn parse_instruction(&mut self, index: u32, range: Range<usize>) -> Result<(), ParseErrorKind> {
        let opcode = (self.module.words[range.start] & 0xffff) as u16;
        match instruction_form(opcode).map(|it| it.0) {
            Some(InstructionForm::Result) => self.define_id(self.module.words[range.start + 1], index)?,
            Some(InstructionForm::Typed) => self.define_id(self.module.words[range.start + 2], index)?,
            Some(InstructionForm::Plain) | None => {}
        }
        if self.section == Section::Functions {
            return self.index_function_instruction(opcode, index, range.start);
        }
        let op = Op::from_u32(u32::from(opcode));
        let section = Section::of(op, self.section);
        if section > self.section {
            for end in &mut self.module.ends[self.section as usize..section as usize] {
                *end = (*end).min(index);
            }
            self.section = section;
        }
        if self.section == Section::Functions {
            self.index_function_instruction(opcode, index, range.start)
        } else {
            self.annotate(op, index, range)
        }
    }

    fn define_id(&mut self, id: u32, index: u32) -> Result<(), ParseErrorKind> {
        if id == 0 || id >= self.bound {
            return Err(ParseErrorKind::Bound { id, bound: self.bound });
        }
        let made = &mut self.module.definitions;
        if made.len() <= id as usize {
            made.resize(id as usize + 1, NONE);
        }
        if made[id as usize] != NONE {
            return Err(ParseErrorKind::DefinedTwice(id));
        }
        made[id as usize] = index;
        Ok(())
    }

    fn annotate(&mut self, op: Option<Op>, index: u32, range: Range<usize>) -> Result<(), ParseErrorKind> {
        let words = &self.module.words[range];
        let note = |member, place| (Id(words[1]), Annotation { member, at: InstructionIndex(index), operand: place });
        match op {
            Some(Op::Decorate | Op::DecorateId | Op::DecorateString) => {
                self.module.decorations.push(note(None, 2));
            }
            Some(Op::MemberDecorate | Op::MemberDecorateString) => {
                self.module.decorations.push(note(Some(words[2]), 3));
            }
            Some(Op::Name) => self.module.names.push(note(None, 2)),
            Some(Op::MemberName) => self.module.names.push(note(Some(words[2]), 3)),
            Some(Op::EntryPoint) => {
                let (name, taken) = decode_string(&words[3..]);
                let interface = words[3 + taken..].iter().map(|it| Id(*it)).collect();
                let (model, function) = (words[1], Id(words[2]));
                self.module.entries.push(EntryPoint {
                    at: InstructionIndex(index),
                    model,
                    function,
                    name: name.into_owned(),
                    interface,
                });
            }
            Some(Op::Label | Op::FunctionParameter | Op::FunctionEnd) => return Err(ParseErrorKind::OutsideFunction),
            _ => {}
        }
        Ok(())
    }

    fn index_function_instruction(&mut self, opcode: u16, index: u32, word: usize) -> Result<(), ParseErrorKind> {
        const FUNCTION: u16 = Op::Function as u16;
        const PARAMETER: u16 = Op::FunctionParameter as u16;
        const END: u16 = Op::FunctionEnd as u16;
        const LABEL: u16 = Op::Label as u16;
        const LINE: u16 = Op::Line as u16;
        const NO_LINE: u16 = Op::NoLine as u16;
        let first_block = self.module.blocks.len() as u32;
        match opcode {
            FUNCTION => {
                if self.function.is_some() {
                    return Err(ParseErrorKind::Nested);
                }
                self.function = Some((index, first_block));
                let id = Id(self.module.words[word + 2]);
                let function = Function { id, instructions: index..index, parameters: Vec::new(), blocks: 0..0 };
                self.module.functions.push(function);
            }
            PARAMETER => {
                if self.function.is_none_or(|it| it.1 != first_block) {
                    return Err(ParseErrorKind::OutsideFunction);
                }
                self.open()?.parameters.push(InstructionIndex(index));
            }
            END => {
                let (from, blocks) = self.function.take().ok_or(ParseErrorKind::OutsideFunction)?;
                let open = self.open()?;
                open.instructions = from..index + 1;
                open.blocks = blocks..first_block;
            }
            LABEL => {
                self.function.ok_or(ParseErrorKind::OutsideFunction)?;
                let label = Id(self.module.words[word + 1]);
                self.module.blocks.push(BasicBlock { label, instructions: index..index + 1 });
            }
            LINE | NO_LINE => {}
            _ => match self.function {
                // Non-semantic instructions may stand between and behind functions.
                None => {}
                Some((_, blocks)) if blocks == first_block => return Err(ParseErrorKind::NoBlock),
                Some(_) => {
                    if let Some(block) = self.module.blocks.last_mut() {
                        block.instructions.end = index + 1;
                    }
                }
            },
        }
        Ok(())
    }

    fn open(&mut self) -> Result<&mut Function, ParseErrorKind> {
        self.module.functions.last_mut().ok_or(ParseErrorKind::OutsideFunction)
    }
}

/// The number of words of the first instruction.
fn check_length(words: &[u32]) -> Result<usize, ParseErrorKind> {
    let (length, opcode) = ((words[0] >> 16) as usize, (words[0] & 0xffff) as u16);
    if length == 0 {
        return Err(ParseErrorKind::Empty);
    }
    if length > words.len() {
        return Err(ParseErrorKind::PastEnd { words: length, left: words.len() });
    }
    let least = instruction_form(opcode).map_or(1, |it| it.1);
    if length < least {
        return Err(ParseErrorKind::Short { opcode, words: length, least });
    }
    Ok(length)
}
