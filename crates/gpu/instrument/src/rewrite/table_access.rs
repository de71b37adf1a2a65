//! How code reads and writes the tables: they are bound, or the root table has their addresses.
//!
//! Drivers process each instruction many times while they optimize, so there are few: a table is one load of a pointer,
//! a cell is a structure, and related words are loaded and stored as vectors.
//!
//! No pointer is made of another pointer: SwiftShader crashes on that. A table that is read in two ways has its address
//! as two words in the root table, and a record is stored at an address that is computed as a number.
//!
//! With [`RootLocation::PushConstant`], an entry point hands a pointer to the root table to the functions that we add.
//! Functions of the module load it from a private variable; a module with one function does not have that variable.
//!
//! lavapipe repeats all its passes until none of them changes anything, so one instruction that needs another round makes
//! the whole pipeline slower. These need one: a root pointer in a private variable, a pointer that becomes two words and a
//! pointer again, a constant added to a constant, and a loop.

use lavascope_spirv::{Editor, Id, Section, instruction};
use spirv::{Decoration, Op, StorageClass};

use crate::rewrite::context::{ALIGNED, AddedIds, Context, emit, spec_constant};
use crate::{CELL_WORDS, ROOT_OUTPUT_WORDS, ROOT_TOUCHES, RootLocation, ShaderTable};

/// Members of the root table behind the four tables.
const OUTPUT_WORDS: u32 = 4;
const ZERO: u32 = 5;
const TOUCHES: u32 = 6;
/// Words of a cell that are members of their own; the others are one.
const CELL_HALF: u32 = CELL_WORDS / 2;

/// Where code finds the tables.
#[derive(Clone, Copy)]
pub(crate) enum TableAccess {
    /// Storage buffers, by table.
    Buffers([u32; 4]),
    /// The address of the root table is pushed. Functions that are no entry points find it in this private variable.
    Pushed(Option<u32>),
    /// The address of the root table is this constant.
    Constant(u32),
}

/// Pointers to what tables are made of.
#[derive(Clone, Copy, Default)]
pub(crate) struct TablePointerTypes {
    pub(crate) root: u32,
    /// To a table of words, to one of cells, to a cell, to four words, and to a word.
    pub(crate) words: u32,
    cells: u32,
    cell: u32,
    four: u32,
    word: u32,
    /// To the table of addresses, and where tables have addresses to the same as runs of four words, to a record, and to
    /// two words.
    addresses: u32,
    ranges: u32,
    record: u32,
    pair: u32,
}

/// Where records are written: a pointer to the words, and where tables have addresses the two words of theirs.
#[derive(Clone, Copy)]
pub(crate) struct RecordOutput {
    pub(crate) words: u32,
    address: Option<u32>,
}

impl AddedIds {
    pub(crate) fn add_tables(&mut self, editor: &mut Editor<'_>, root: RootLocation) {
        let class = match root {
            RootLocation::Descriptor { .. } => StorageClass::StorageBuffer,
            RootLocation::PushConstant { .. } | RootLocation::Specialization => StorageClass::PhysicalStorageBuffer,
        };
        let pointer =
            |editor: &mut Editor<'_>, ty: u32| editor.find_or_add_type(Op::TypePointer, &[class as u32, ty]).0;
        let words = array(editor, self.uint, 4);
        let words = block(editor, &[(words, 0)]);
        // Words that the host fills in are one load. Their pointer is not derived from another pointer: SwiftShader
        // crashes on those.
        let four = editor.find_or_add_type(Op::TypeVector, &[self.uint, 4]).0;
        self.uint_four = four;
        let mut members: Vec<(u32, u32)> = (0..CELL_HALF).map(|it| (self.uint, it * 4)).collect();
        members.push((four, CELL_HALF * 4));
        let cell = structure(editor, &members);
        let cells = array(editor, cell.0, CELL_WORDS * 4);
        let cells = block(editor, &[(cells, 0)]);
        self.pointer_types.words = pointer(editor, words);
        self.pointer_types.cells = pointer(editor, cells);
        self.pointer_types.cell = pointer(editor, cell.0);
        self.pointer_types.four = pointer(editor, four);
        self.pointer_types.word = pointer(editor, self.uint);
        let behind = array(editor, self.uint, 4);
        let addresses = block(editor, &[(four, 0), (four, 16), (behind, 32)]);
        self.pointer_types.addresses = pointer(editor, addresses);
        if let RootLocation::Descriptor { set } = root {
            if editor.module().version() < (1, 3) {
                editor.add_extension("SPV_KHR_storage_buffer_storage_class");
            }
            self.table_access = TableAccess::Buffers([0, 1, 2, 3].map(|binding| self.add_buffer(editor, set, binding)));
            return;
        }
        crate::rewrite::context::enable_addresses(editor);
        let ranges = array(editor, four, 16);
        let ranges = block(editor, &[(ranges, 32)]);
        self.pointer_types.ranges = pointer(editor, ranges);
        // A word, and behind it the beginning of a record: by the places that vectors may have in a structure.
        let record = block(editor, &[(self.uint, 4), (self.uint_pair, 8), (four, 16), (self.uint_pair, 32)]);
        self.pointer_types.pair = pointer(editor, self.uint_pair);
        self.pointer_types.record = pointer(editor, record);
        let tables = [self.uint_pair, self.pointer_types.words, self.uint_pair, self.uint_pair];
        let mut members: Vec<(u32, u32)> = tables.into_iter().zip([0, 8, 16, 24]).collect();
        members.extend([(self.uint, ROOT_OUTPUT_WORDS * 4), (self.uint, ROOT_OUTPUT_WORDS * 4 + 4)]);
        members.push((self.uint_pair, ROOT_TOUCHES * 4));
        let root_block = block(editor, &members);
        self.pointer_types.root = pointer(editor, root_block);
        self.table_access = match root {
            RootLocation::Specialization => {
                let halves = [2, 3].map(|at| spec_constant(editor, Id(self.uint), self.first_spec_id.wrapping_add(at)));
                TableAccess::Constant(editor.new_global(Op::SpecConstantComposite, Id(self.uint_pair), &halves).0)
            }
            // A module with one function needs no variable for the root table.
            _ if editor.module().functions().iter().filter(|it| !it.blocks.is_empty()).count() == 1 => {
                TableAccess::Pushed(None)
            }
            _ => {
                let pointer =
                    editor.find_or_add_type(Op::TypePointer, &[StorageClass::Private as u32, self.pointer_types.root]);
                let variable = editor.new_variable(pointer, StorageClass::Private);
                editor.decorate(variable, Decoration::AliasedPointer, &[]);
                self.variables.push(variable.0);
                TableAccess::Pushed(Some(variable.0))
            }
        };
    }

    fn add_buffer(&mut self, editor: &mut Editor<'_>, set: u32, binding: u32) -> u32 {
        let pointers = &self.pointer_types;
        let pointer = [pointers.words, pointers.words, pointers.addresses, pointers.cells][binding as usize];
        let variable = editor.new_variable(Id(pointer), StorageClass::StorageBuffer);
        editor.decorate(variable, Decoration::DescriptorSet, &[set]);
        editor.decorate(variable, Decoration::Binding, &[binding]);
        if binding == ShaderTable::Descriptors as u32 || binding == ShaderTable::Addresses as u32 {
            editor.decorate(variable, Decoration::NonWritable, &[]);
        }
        self.variables.push(variable.0);
        variable.0
    }
}

/// An array of unknown length.
fn array(editor: &mut Editor<'_>, of: u32, stride: u32) -> u32 {
    let array = editor.new_type(Op::TypeRuntimeArray, &[of]);
    editor.decorate(array, Decoration::ArrayStride, &[stride]);
    array.0
}

/// A structure in memory that a pointer leads to: members and where they are.
fn block(editor: &mut Editor<'_>, members: &[(u32, u32)]) -> u32 {
    let block = structure(editor, members);
    editor.decorate(block, Decoration::Block, &[]);
    block.0
}

fn structure(editor: &mut Editor<'_>, members: &[(u32, u32)]) -> Id {
    let types: Vec<u32> = members.iter().map(|it| it.0).collect();
    let structure = editor.new_type(Op::TypeStruct, &types);
    for (number, (_, offset)) in (0..).zip(members) {
        editor.decorate_member(structure, number, Decoration::Offset, &[*offset]);
    }
    structure
}

impl Context<'_> {
    /// Loads a word of a table, given what [`Context::table`] gave.
    pub(crate) fn load_word(&mut self, code: &mut Vec<u32>, table: u32, index: u32) -> u32 {
        let pointer = self.word_pointer(code, table, index);
        self.load(code, self.ids.uint, pointer, 4)
    }

    /// A pointer to a word of a table.
    pub(crate) fn word_pointer(&mut self, code: &mut Vec<u32>, table: u32, index: u32) -> u32 {
        let zero = self.uint_constant(0);
        let pointer = self.ids.pointer_types.word;
        self.emit_result(code, Op::AccessChain, pointer, &[table, zero, index])
    }

    pub(crate) fn store_word(&mut self, code: &mut Vec<u32>, table: u32, index: u32, word: u32) {
        let pointer = self.word_pointer(code, table, index);
        self.store(code, pointer, word);
    }

    /// Four words at the beginning of the table of addresses, given what [`Context::table`] gave.
    pub(crate) fn address_head(&mut self, code: &mut Vec<u32>, table: u32, number: u32) -> [u32; 4] {
        let table = self.address_table(code, table);
        let number = self.uint_constant(number);
        let pointer = self.emit_result(code, Op::AccessChain, self.ids.pointer_types.four, &[table, number]);
        self.load_four(code, pointer)
    }

    /// The offset of the table of addresses, as a base for [`Context::address_word`].
    pub(crate) fn address_table(&mut self, code: &mut Vec<u32>, table: u32) -> u32 {
        match self.ids.table_access {
            TableAccess::Buffers(_) => table,
            TableAccess::Pushed(_) | TableAccess::Constant(_) => {
                self.emit_result(code, Op::Bitcast, self.ids.pointer_types.addresses, &[table])
            }
        }
    }

    /// A word behind the beginning of the table of addresses.
    pub(crate) fn address_word(&mut self, code: &mut Vec<u32>, base: u32, index: u32) -> u32 {
        let two = self.uint_constant(2);
        let pointer = self.emit_result(code, Op::AccessChain, self.ids.pointer_types.word, &[base, two, index]);
        self.load(code, self.ids.uint, pointer, 4)
    }

    /// Four words there, from a multiple of four on.
    pub(crate) fn address_four(&mut self, code: &mut Vec<u32>, table: u32, base: u32, index: u32) -> [u32; 4] {
        let uint = self.ids.uint;
        if let TableAccess::Buffers(_) = self.ids.table_access {
            return [0, 1, 2, 3].map(|value| {
                let item = self.uint_constant(value);
                let place = self.emit_result(code, Op::IAdd, uint, &[index, item]);
                self.address_word(code, base, place)
            });
        }
        let [zero, by] = [0, 2].map(|it| self.uint_constant(it));
        let ranges = self.emit_result(code, Op::Bitcast, self.ids.pointer_types.ranges, &[table]);
        let index = self.emit_result(code, Op::ShiftRightLogical, uint, &[index, by]);
        let pointer = self.emit_result(code, Op::AccessChain, self.ids.pointer_types.four, &[ranges, zero, index]);
        self.load_four(code, pointer)
    }

    fn load_four(&mut self, code: &mut Vec<u32>, pointer: u32) -> [u32; 4] {
        let four = self.load(code, self.ids.uint_four, pointer, 16);
        [0, 1, 2, 3].map(|at| self.emit_result(code, Op::CompositeExtract, self.ids.uint, &[four, at]))
    }

    /// A pointer to a cell, by its number.
    pub(crate) fn cell(&mut self, code: &mut Vec<u32>, number: u32) -> u32 {
        let mut cells = self.table(code, ShaderTable::Cells);
        if !self.is_bound() {
            cells = self.emit_result(code, Op::Bitcast, self.ids.pointer_types.cells, &[cells]);
        }
        let zero = self.uint_constant(0);
        let pointer = self.ids.pointer_types.cell;
        self.emit_result(code, Op::AccessChain, pointer, &[cells, zero, number])
    }

    /// A pointer to a word of a cell.
    pub(crate) fn cell_at(&mut self, code: &mut Vec<u32>, cell: u32, word: u32) -> u32 {
        let word = self.uint_constant(word);
        let pointer = self.ids.pointer_types.word;
        self.emit_result(code, Op::AccessChain, pointer, &[cell, word])
    }

    /// The second half of a cell.
    pub(crate) fn cell_half(&mut self, code: &mut Vec<u32>, cell: u32) -> [u32; 4] {
        let half = self.uint_constant(CELL_HALF);
        let pointer = self.emit_result(code, Op::AccessChain, self.ids.pointer_types.four, &[cell, half]);
        self.load_four(code, pointer)
    }

    /// Pointers to words of bits of sites that were seen. How many cells are before them is not known yet.
    pub(crate) fn bits_at(&mut self, code: &mut Vec<u32>, numbers: &[u32]) -> Vec<u32> {
        let most = numbers.iter().max().map_or(0, |it| *it as usize + 1);
        while self.ids.bits.len() < most {
            let place = self.fresh();
            self.ids.bits.push(place);
        }
        let (word, zero) = (self.ids.pointer_types.word, self.uint_constant(0));
        let is_bound = self.is_bound();
        let mut cells = self.table(code, ShaderTable::Cells);
        if !is_bound {
            cells = self.emit_result(code, Op::Bitcast, self.ids.pointer_types.words, &[cells]);
        }
        let at = |number: &u32| {
            let place = self.ids.bits[*number as usize];
            if !is_bound {
                return self.emit_result(code, Op::AccessChain, word, &[cells, zero, place]);
            }
            let member = number % CELL_WORDS;
            let [own, half] = [member, CELL_HALF].map(|it| self.uint_constant(it));
            if member < CELL_HALF {
                return self.emit_result(code, Op::AccessChain, word, &[cells, zero, place, own]);
            }
            let component = self.uint_constant(member - CELL_HALF);
            self.emit_result(code, Op::AccessChain, word, &[cells, zero, place, half, component])
        };
        numbers.iter().map(at).collect()
    }

    /// Creates the constants for the places of words of bits. All sites are known by now.
    pub(crate) fn place_bits(&mut self) {
        let (uint, cells) = (self.ids.uint, self.site_infos.len() as u32);
        for (number, place) in (0..).zip(self.ids.bits.clone()) {
            // A cell, or the word itself: a place that is a sum takes drivers longer.
            let (base, more) = match self.is_bound() {
                true => (self.ids.cell_before, 1 + cells + number / CELL_WORDS),
                false => (self.ids.cell_base, cells * CELL_WORDS + number),
            };
            let more = self.editor.constant(Id(uint), &[more]).0;
            let operands = [uint, place, Op::IAdd as u32, base, more];
            self.editor.add(Section::Globals, instruction(Op::SpecConstantOp, &operands));
        }
    }

    /// Stores the first nine words of a record, behind the words of other records. No sum is a sum of another sum,
    /// which drivers would split.
    pub(crate) fn store_record(&mut self, code: &mut Vec<u32>, output: RecordOutput, at: u32, words: [u32; 9]) {
        let uint = self.ids.uint;
        let Some(address) = output.address else {
            for (place, word) in (1..).zip(words) {
                let place = self.uint_constant(place);
                let place = self.emit_result(code, Op::IAdd, uint, &[at, place]);
                self.store_word(code, output.words, place, word);
            }
            return;
        };
        // The address of the word before it as a number: a pointer that is made of another one ends SwiftShader.
        let both = self.editor.find_or_add_type(Op::TypeStruct, &[uint, uint]).0;
        let by = self.uint_constant(2);
        let bytes = self.emit_result(code, Op::ShiftLeftLogical, uint, &[at, by]);
        let [low, high] = [0, 1].map(|half| self.emit_result(code, Op::CompositeExtract, uint, &[address, half]));
        let sum = self.emit_result(code, Op::IAddCarry, both, &[low, bytes]);
        let [low, carry] = [0, 1].map(|half| self.emit_result(code, Op::CompositeExtract, uint, &[sum, half]));
        let high = self.emit_result(code, Op::IAdd, uint, &[high, carry]);
        let address = self.emit_result(code, Op::CompositeConstruct, self.ids.uint_pair, &[low, high]);
        let record = self.emit_result(code, Op::Bitcast, self.ids.pointer_types.record, &[address]);
        let [size, shader, instruction, stage, x, y, z, error, first] = words;
        let parts: [&[u32]; 4] = [&[size], &[shader, instruction], &[stage, x, y, z], &[error, first]];
        for (part, words) in (0..).zip(parts) {
            let part = self.uint_constant(part);
            let (pointer, ty) = match words.len() {
                1 => (self.ids.pointer_types.word, None),
                2 => (self.ids.pointer_types.pair, Some(self.ids.uint_pair)),
                _ => (self.ids.pointer_types.four, Some(self.ids.uint_four)),
            };
            let value = ty.map_or(words[0], |it| self.emit_result(code, Op::CompositeConstruct, it, words));
            let pointer = self.emit_result(code, Op::AccessChain, pointer, &[record, part]);
            self.store(code, pointer, value);
        }
    }

    /// Whether tables are bound, and have no addresses.
    fn is_bound(&self) -> bool {
        matches!(self.ids.table_access, TableAccess::Buffers(_))
    }

    fn load(&mut self, code: &mut Vec<u32>, ty: u32, pointer: u32, alignment: u32) -> u32 {
        match self.ids.table_access {
            TableAccess::Buffers(_) => self.emit_result(code, Op::Load, ty, &[pointer]),
            TableAccess::Pushed(_) | TableAccess::Constant(_) => {
                self.emit_result(code, Op::Load, ty, &[pointer, ALIGNED, alignment])
            }
        }
    }

    fn store(&mut self, code: &mut Vec<u32>, pointer: u32, value: u32) {
        match self.ids.table_access {
            TableAccess::Buffers(_) => emit(code, Op::Store, &[pointer, value]),
            TableAccess::Pushed(_) | TableAccess::Constant(_) => emit(code, Op::Store, &[pointer, value, ALIGNED, 4]),
        }
    }

    /// Where records are written.
    pub(crate) fn output(&mut self, code: &mut Vec<u32>) -> RecordOutput {
        let table = self.table(code, ShaderTable::Output);
        let address = (!self.is_bound()).then_some(table);
        let words = match address {
            Some(item) => self.emit_result(code, Op::Bitcast, self.ids.pointer_types.words, &[item]),
            None => table,
        };
        RecordOutput { words, address }
    }

    /// The base of a pointer to a table. If tables have addresses, code gets it from the root table: the words of its
    /// address for all but the table of descriptors.
    pub(crate) fn table(&mut self, code: &mut Vec<u32>, table: ShaderTable) -> u32 {
        self.tables_used[table as usize] = true;
        if let TableAccess::Buffers(variables) = self.ids.table_access {
            return variables[table as usize];
        }
        let ty = match table {
            ShaderTable::Descriptors => self.ids.pointer_types.words,
            ShaderTable::Output | ShaderTable::Addresses | ShaderTable::Cells => self.ids.uint_pair,
        };
        self.load_root_member(code, table as u32, ty, 8)
    }

    /// How many words of records fit, between the word that counts them and the one that marks the sites.
    pub(crate) fn output_words(&mut self, code: &mut Vec<u32>, output: RecordOutput) -> u32 {
        let uint = self.ids.uint;
        match self.ids.table_access {
            TableAccess::Buffers(_) => {
                let all = self.emit_result(code, Op::ArrayLength, uint, &[output.words, 0]);
                let others = self.uint_constant(2);
                self.emit_result(code, Op::ISub, uint, &[all, others])
            }
            TableAccess::Pushed(_) | TableAccess::Constant(_) => self.load_root_member(code, OUTPUT_WORDS, uint, 4),
        }
    }

    /// A zero that drivers do not know to be one, where tables have addresses.
    pub(crate) fn opaque_zero(&mut self, code: &mut Vec<u32>) -> Option<u32> {
        let is_bound = matches!(self.ids.table_access, TableAccess::Buffers(_));
        (!is_bound).then(|| self.load_root_member(code, ZERO, self.ids.uint, 4))
    }

    /// The halves of the address where it is kept what a draw touches.
    pub(crate) fn touch_area(&mut self, code: &mut Vec<u32>) -> [u32; 2] {
        let (uint, pair) = (self.ids.uint, self.ids.uint_pair);
        let both = self.load_root_member(code, TOUCHES, pair, 8);
        [0, 1].map(|half| self.emit_result(code, Op::CompositeExtract, uint, &[both, half]))
    }

    fn load_root_member(&mut self, code: &mut Vec<u32>, member: u32, ty: u32, alignment: u32) -> u32 {
        let root = self.root(code);
        let class = StorageClass::PhysicalStorageBuffer as u32;
        let (pointer, member) =
            (self.editor.find_or_add_type(Op::TypePointer, &[class, ty]).0, self.uint_constant(member));
        let pointer = self.emit_result(code, Op::AccessChain, pointer, &[root, member]);
        self.load(code, ty, pointer, alignment)
    }

    /// A pointer to the root table, where it has an address.
    fn root(&mut self, code: &mut Vec<u32>) -> u32 {
        let pointer = self.ids.pointer_types.root;
        match (self.local_root, self.ids.table_access) {
            (Some(root), _) => root,
            (None, TableAccess::Pushed(Some(variable))) => self.emit_result(code, Op::Load, pointer, &[variable]),
            (None, TableAccess::Constant(constant)) => self.emit_result(code, Op::Bitcast, pointer, &[constant]),
            (None, TableAccess::Pushed(None) | TableAccess::Buffers(_)) => 0,
        }
    }

    /// Calls a function of ours, with the root table as a further argument.
    pub(crate) fn call(&mut self, code: &mut Vec<u32>, ty: u32, function: u32, operands: &[u32]) -> u32 {
        let mut all = vec![function];
        if let TableAccess::Pushed(_) = self.ids.table_access {
            all.push(self.root(code));
        }
        all.extend(operands);
        self.emit_result(code, Op::FunctionCall, ty, &all)
    }

    /// The parameter that [`Context::call`] adds, of a function that begins here.
    pub(crate) fn root_parameter(&mut self) -> Option<u32> {
        matches!(self.ids.table_access, TableAccess::Pushed(_)).then_some(self.ids.pointer_types.root)
    }

    /// The type of the part of the table of addresses that is passed on, if tables have addresses.
    pub(crate) fn table_parameter(&self) -> Option<u32> {
        match self.ids.table_access {
            TableAccess::Buffers(_) => None,
            TableAccess::Pushed(_) | TableAccess::Constant(_) => Some(self.ids.uint_pair),
        }
    }
}
