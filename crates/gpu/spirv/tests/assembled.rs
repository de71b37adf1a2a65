//! Reflection on what compilers of GLSL do not write: pointers that are chosen, several entry points, odd nesting.

mod common;

use common::{assemble::assemble, lines};
use lavascope_spirv::{Module, ReflectError, Reflection, Specialization, reflect};

/// Two storage buffers `%a` (0.0) and `%b` (0.1) of words, with their types.
const HEAD: &str = "
    Capability Shader
    Capability VariablePointers
    MemoryModel Logical GLSL450
    ENTRIES
    Decorate %words ArrayStride 4
    Decorate %block Block
    MemberDecorate %block 0 Offset 16
    Decorate %a DescriptorSet 0
    Decorate %a Binding 0
    Decorate %b DescriptorSet 0
    Decorate %b Binding 1
    ANNOTATIONS
    %void = TypeVoid
    %uint = TypeInt 32 0
    %bool = TypeBool
    %true = ConstantTrue %bool
    %0 = Constant %uint 0
    %1 = Constant %uint 1
    %2 = Constant %uint 2
    %3 = Constant %uint 3
    %words = TypeRuntimeArray %uint
    %block = TypeStruct %words
    %to_block = TypePointer StorageBuffer %block
    %to_uint = TypePointer StorageBuffer %uint
    %to_local = TypePointer Function %to_uint
    %a = Variable %to_block StorageBuffer
    %b = Variable %to_block StorageBuffer
    %run = TypeFunction %void
    %take = TypeFunction %void %to_uint
    ";

const ENTRY: &str = "EntryPoint GLCompute %main \"main\" %a %b\n ExecutionMode %main LocalSize 4 2 1";

fn module(entries: &str, annotations: &str, rest: &str) -> Module {
    let text = HEAD.replace("ENTRIES", entries).replace("ANNOTATIONS", annotations) + rest;
    Module::parse(&assemble(&text)).expect("a module")
}

fn reflect_entry(module: &Module, entry: usize) -> Reflection {
    reflect(module, entry, &Specialization::default()).expect("an entry point")
}

/// The accesses of a main function with these instructions in its only block.
fn of_block(body: &str) -> Vec<String> {
    of_function(&format!("%start = Label\n {body}\n Return"))
}

fn of_function(body: &str) -> Vec<String> {
    let rest = format!("%main = Function %void None %run\n {body}\n FunctionEnd");
    lines(&reflect_entry(&module(ENTRY, "", &rest), 0))
}

#[test]
fn a_selected_pointer_is_either() {
    let body = "
        %from = AccessChain %to_uint %a %0 %1
        %value = Load %uint %from
        %test = IEqual %bool %value %0
        %other = AccessChain %to_uint %b %0 %2
        %either = Select %to_uint %test %from %other
        Store %either %1";
    assert_eq!(of_block(body), ["0.0 20..24 reads", "0.0 20..24 writes?", "0.1 24..28 writes?"]);
    assert_eq!(of_block(&body.replace("%test %from", "%true %from")), ["0.0 20..24 reads", "0.0 20..24 writes"]);
}

#[test]
fn a_pointer_is_followed_through_phi_and_variables() {
    let phi = "
        %start = Label
        %from = AccessChain %to_uint %a %0 %0
        %value = Load %uint %from
        %test = IEqual %bool %value %0
        SelectionMerge %merge None
        BranchConditional %test %inside %merge
        %inside = Label
        %other = AccessChain %to_uint %b %0 %3
        Branch %merge
        %merge = Label
        %either = Phi %to_uint %from %start %other %inside
        AtomicStore %either %1 %0 %1
        Return";
    assert_eq!(of_function(phi), ["0.0 16..20 reads", "0.0 16..20 writes Atomic?", "0.1 28..32 writes Atomic?"]);
    let variable = "
        %held = Variable %to_local Function
        %from = AccessChain %to_uint %b %0 %2
        Store %held %from
        %again = Load %to_uint %held
        Store %again %1";
    assert_eq!(of_block(variable), ["0.1 24..28 writes"]);
}

#[test]
fn elements_beside_a_pointer_are_counted_by_its_stride() {
    let body = "
        %from = AccessChain %to_uint %a %0 %1
        %next = PtrAccessChain %strided %from %3
        Store %next %1
        %any = Load %uint %next
        %far = PtrAccessChain %strided %next %any
        Store %far %1";
    let types = "%strided = TypePointer StorageBuffer %uint";
    let rest = format!("{types}\n %main = Function %void None %run\n %start = Label\n {body}\n Return\n FunctionEnd");
    let found = reflect_entry(&module(ENTRY, "Decorate %strided ArrayStride 4", &rest), 0);
    assert_eq!(lines(&found), ["0.0 32..36 writes", "0.0 32..36 reads", "0.0 ~32.. writes"]);
}

#[test]
fn a_copy_reads_and_writes() {
    let body = "
        %to = AccessChain %to_uint %a %0 %1
        %from = AccessChain %to_uint %b %0 %2
        CopyMemory %to %from";
    assert_eq!(of_block(body), ["0.1 24..28 reads", "0.0 20..24 writes"]);
}

#[test]
fn entry_points_have_accesses_of_their_own() {
    let entries = "
        EntryPoint GLCompute %main \"main\" %a %b
        EntryPoint GLCompute %second \"second\" %a %b
        ExecutionMode %main LocalSize 4 2 1
        ExecutionModeId %second LocalSizeId %3 %2 %1";
    let rest = "
        %put = Function %void None %take
        %where = FunctionParameter %to_uint
        %in_put = Label
        Store %where %1
        Return
        FunctionEnd
        %main = Function %void None %run
        %in_main = Label
        %first = AccessChain %to_uint %a %0 %0
        %r1 = FunctionCall %void %put %first
        Return
        FunctionEnd
        %second = Function %void None %run
        %in_second = Label
        %last = AccessChain %to_uint %b %0 %3
        %r2 = FunctionCall %void %put %last
        Return
        FunctionEnd";
    let module = module(entries, "", rest);
    let names: Vec<&str> = module.entries().iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["main", "second"]);
    assert_eq!(lines(&reflect_entry(&module, 0)), ["0.0 16..20 writes"]);
    assert_eq!(lines(&reflect_entry(&module, 1)), ["0.1 28..32 writes"]);
    assert_eq!(reflect_entry(&module, 0).workgroup_size, Some([4, 2, 1]));
    assert_eq!(reflect_entry(&module, 1).workgroup_size, Some([3, 2, 1]));
    let none = reflect(&module, 2, &Specialization::default());
    assert_eq!(none, Err(ReflectError::NoEntry { entry: 2, entries: 2 }));
}

#[test]
fn a_constant_that_is_the_workgroup_size_outweighs_the_mode() {
    let rest = "
        %vector = TypeVector %uint 3
        %s = SpecConstant %uint 8
        %size = SpecConstantComposite %vector %s %2 %1
        %main = Function %void None %run
        %start = Label
        Return
        FunctionEnd";
    let module = module(ENTRY, "Decorate %size BuiltIn WorkgroupSize\n Decorate %s SpecId 5", rest);
    assert_eq!(reflect_entry(&module, 0).workgroup_size, Some([8, 2, 1]));
    let special = Specialization::new([(5, 16u32.to_le_bytes().to_vec())]);
    let found = reflect(&module, 0, &special).expect("an entry point");
    assert_eq!(found.workgroup_size, Some([16, 2, 1]));
}

#[test]
fn decorations_of_groups_count() {
    let rest = "
        %c = Variable %to_block StorageBuffer
        %main = Function %void None %run
        %start = Label
        %to = AccessChain %to_uint %c %0 %1
        Store %to %1
        Return
        FunctionEnd";
    let annotations = "
        Decorate %group DescriptorSet 3
        %group = DecorationGroup
        GroupDecorate %group %c
        Decorate %c Binding 9";
    let module = module(ENTRY, annotations, rest);
    assert_eq!(lines(&reflect_entry(&module, 0)), ["3.9 20..24 writes"]);
}

#[test]
fn pointers_without_a_type_are_followed() {
    let rest = "
        %raw = TypeUntypedPointerKHR StorageBuffer
        %u = UntypedVariableKHR %raw StorageBuffer %block
        %main = Function %void None %run
        %start = Label
        %to = UntypedAccessChainKHR %raw %block %u %0 %3
        Store %to %1
        %value = Load %uint %to
        %far = UntypedPtrAccessChainKHR %raw %uint %to %2
        Store %far %value
        Return
        FunctionEnd";
    let module = module(ENTRY, "Decorate %u DescriptorSet 1\n Decorate %u Binding 2", rest);
    assert_eq!(lines(&reflect_entry(&module, 0)), ["1.2 28..32 writes", "1.2 28..32 reads", "1.2 36..40 writes"]);
}

#[test]
fn arrays_of_arrays_of_descriptors_are_counted_through() {
    let rest = "
        %three = TypeArray %block %3
        %two = TypeArray %three %2
        %to_two = TypePointer StorageBuffer %two
        %n = Variable %to_two StorageBuffer
        %main = Function %void None %run
        %start = Label
        %to = AccessChain %to_uint %n %1 %2 %0 %0
        Store %to %1
        Return
        FunctionEnd";
    let module = module(ENTRY, "Decorate %n DescriptorSet 0\n Decorate %n Binding 4", rest);
    let found = reflect_entry(&module, 0);
    assert_eq!(lines(&found), ["0.4[5] 16..20 writes"]);
    assert_eq!(found.descriptors[0].count, Some(6));
}

#[test]
fn tile_images_and_helper_invocations_are_seen() {
    let rest = "
        %float = TypeFloat 32
        %color = TypeVector %float 4
        %image = TypeImage %float DimTileImageDataEXT 0 0 0 2 Unknown
        %to_image = TypePointer TileImageEXT %image
        %tile = Variable %to_image TileImageEXT
        %main = Function %void None %run
        %start = Label
        %loaded = Load %image %tile
        %read = ColorAttachmentReadEXT %color %loaded
        %depth = DepthAttachmentReadEXT %float
        DemoteToHelperInvocation
        %to = AccessChain %to_uint %a %0 %0
        Store %to %1
        Return
        FunctionEnd";
    let entry = "EntryPoint Fragment %main \"main\" %a\n ExecutionMode %main DepthReplacing";
    let found = reflect_entry(&module(entry, "Decorate %tile Location 2", rest), 0);
    assert_eq!(found.color_reads, [2]);
    assert!(found.reads_depth && !found.reads_stencil && found.may_demote && found.tests.replaces_depth);
    assert_eq!(lines(&found), ["0.0 16..20 writes?"]);
}

#[test]
fn the_last_line_before_an_instruction_counts_until_there_is_none() {
    let rest = "
        %main = Function %void None %run
        %start = Label
        %to = AccessChain %to_uint %a %0 %0
        Store %to %1
        Line %file 12 3
        Store %to %2
        Line %file 12 30
        Store %to %3
        NoLine
        Store %to %0
        Line %nameless 7 0
        Store %to %1
        Return
        FunctionEnd";
    let strings = "%file = String \"here.comp\"\n %nameless = String \"\"";
    let module = module(&format!("{ENTRY}\n {strings}"), "", rest);
    let lines: Vec<_> = reflect_entry(&module, 0).accesses.iter().map(|it| module.source(it.at)).collect();
    let places = lines.iter().map(|it| it.as_ref().map(|it| (it.file.as_str(), it.line, it.column)));
    let wanted = [None, Some(("here.comp", 12, 3)), Some(("here.comp", 12, 30)), None, Some(("", 7, 0))];
    assert_eq!(places.collect::<Vec<_>>(), wanted);
    assert!(lines.iter().flatten().all(|it| it.text.is_none()), "there is no source in the module");
}

#[test]
fn private_variables_that_nobody_stores_to_are_constants() {
    let rest = "
        %three = TypeArray %uint %3
        %table = ConstantComposite %three %3 %0 %2
        %to_table = TypePointer Private %three
        %to_private = TypePointer Private %uint
        %fixed = Variable %to_table Private %table
        %changed = Variable %to_table Private %table
        %main = Function %void None %run
        %start = Label
        %p0 = AccessChain %to_private %changed %0
        %p1 = AccessChain %to_private %fixed %2
        %i0 = Load %uint %p0
        %i1 = Load %uint %p1
        Store %p0 %1
        %to0 = AccessChain %to_uint %a %0 %i0
        %to1 = AccessChain %to_uint %a %0 %i1
        Store %to0 %1
        Store %to1 %1
        Return
        FunctionEnd";
    let found = reflect_entry(&module(ENTRY, "", rest), 0);
    assert_eq!(lines(&found), ["0.0 ~16.. writes", "0.0 24..28 writes"]);
}

#[test]
fn a_variable_that_a_function_stores_to_on_one_path_may_hold_either() {
    let rest = "
        %to_slot = TypePointer Function %to_uint
        %change = TypeFunction %void %to_slot
        %maybe = Function %void None %change
        %slot = FunctionParameter %to_slot
        %in_maybe = Label
        %from = AccessChain %to_uint %a %0 %0
        %value = Load %uint %from
        %test = IEqual %bool %value %0
        SelectionMerge %merge None
        BranchConditional %test %inside %merge
        %inside = Label
        Return
        %merge = Label
        %other = AccessChain %to_uint %b %0 %1
        Store %slot %other
        Return
        FunctionEnd
        %main = Function %void None %run
        %start = Label
        %held = Variable %to_slot Function
        %first = AccessChain %to_uint %a %0 %3
        Store %held %first
        %called = FunctionCall %void %maybe %held
        %either = Load %to_uint %held
        Store %either %1
        Return
        FunctionEnd";
    let found = reflect_entry(&module(ENTRY, "", rest), 0);
    assert_eq!(lines(&found), ["0.0 16..20 reads", "0.0 28..32 writes?", "0.1 20..24 writes?"]);
    assert!(found.is_complete);
}

#[test]
fn recursion_and_cycles_end() {
    let rest = "
        %main = Function %void None %run
        %start = Label
        %again = FunctionCall %void %main
        %to = AccessChain %to_uint %a %0 %0
        Store %to %1
        Branch %start
        FunctionEnd";
    let found = reflect_entry(&module(ENTRY, "", rest), 0);
    assert!(!found.is_complete);
    assert_eq!(lines(&found), ["0.0 16..20 writes"]);
}

#[test]
fn functions_that_call_each_other_twice_take_no_exponential_time() {
    let mut rest = String::from("%take_two = TypeFunction %void %uint\n");
    for level in 0..40 {
        rest += &format!("%f{level} = Function %void None %take_two\n %p{level} = FunctionParameter %uint\n");
        rest += &format!("%l{level} = Label\n %s{level} = IAdd %uint %p{level} %1\n");
        rest += &format!("%d{level} = IMul %uint %p{level} %3\n %w{level} = AccessChain %to_uint %a %0 %p{level}\n");
        rest += &format!("Store %w{level} %1\n");
        if level < 39 {
            let next = level + 1;
            rest += &format!("%x{level} = FunctionCall %void %f{next} %s{level}\n");
            rest += &format!("%y{level} = FunctionCall %void %f{next} %d{level}\n");
        }
        rest += "Return\n FunctionEnd\n";
    }
    rest += "%main = Function %void None %run\n %start = Label\n %c = FunctionCall %void %f0 %0\n Return\n FunctionEnd";
    let found = reflect_entry(&module(ENTRY, "", &rest), 0);
    assert!(found.is_complete);
    assert!(lines(&found).contains(&"0.0 16..20 writes".to_owned()));
    assert!(lines(&found).iter().any(|it| it.starts_with("0.0 ~16.. writes")));
}

#[test]
fn deep_calls_are_followed_as_far_as_the_stack_allows() {
    for (levels, is_complete) in [(60, true), (5_000, false)] {
        let mut rest = String::new();
        for level in 0..levels {
            rest += &format!("%f{level} = Function %void None %run\n %l{level} = Label\n");
            rest += &match level {
                0 => "%to = AccessChain %to_uint %a %0 %2\n Store %to %1\n".to_owned(),
                _ => format!("%c{level} = FunctionCall %void %f{}\n", level - 1),
            };
            rest += "Return\n FunctionEnd\n";
        }
        let last = levels - 1;
        rest += &format!("%main = Function %void None %run\n %start = Label\n %c = FunctionCall %void %f{last}\n");
        rest += "Return\n FunctionEnd";
        let found = reflect_entry(&module(ENTRY, "", &rest), 0);
        assert_eq!(found.is_complete, is_complete);
        assert_eq!(lines(&found) == ["0.0 24..28 writes"], is_complete);
    }
}

#[test]
fn deep_nesting_does_not_exhaust_the_stack() {
    let mut rest = String::from("%n0 = TypeStruct %uint\n %k0 = ConstantComposite %n0 %1\n");
    for level in 1..20_000 {
        let before = level - 1;
        rest += &format!("%n{level} = TypeStruct %n{before} %n{before}\n");
        rest += &format!("%k{level} = ConstantComposite %n{level} %k{before} %k{before}\n");
    }
    rest += "%to_out = TypePointer Output %n40\n %out = Variable %to_out Output\n";
    rest += "%main = Function %void None %run\n %start = Label\n Store %out %k40\n";
    let mut last = "%0".to_owned();
    for level in 0..20_000 {
        rest += &format!("%w{level} = AccessChain %to_uint %a %0 {last}\n %v{level} = Load %uint %w{level}\n");
        last = format!("%v{level}");
    }
    rest += "Return\n FunctionEnd";
    let found = reflect_entry(&module(ENTRY, "", &rest), 0);
    assert_eq!(found.accesses.len(), 20_000);
}
