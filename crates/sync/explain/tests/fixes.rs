//! What people type for a fix: flags and commands of the version that the program uses, ranges member by member, and
//! every call that has to change. And which operations a report lists.

use lavascope_diag::{Diagnostic, FixChange};
use lavascope_explain::{NumberedNames, report};

/// The only diagnostic of a scenario.
fn diagnostic(text: &str) -> Diagnostic {
    let header = if text.contains('^') { "" } else { "# expect: clean\n" };
    let text = format!("# A test.\n# spec: none\n{header}\n{text}");
    let program = lavascope_scenario::parse(&text).expect("a scenario that parses").program;
    let all = report(&program, &NumberedNames(&program));
    let titles: Vec<&str> = all.iter().map(|it| it.title.as_str()).collect();
    assert_eq!(all.len(), 1, "{text}\n{titles:#?}");
    all.into_iter().next().unwrap_or_else(|| panic!("no finding: {text}"))
}

/// The first fix: each change with its target and its lines.
fn first_fix(text: &str) -> Vec<(String, Vec<String>)> {
    let diagnostic = diagnostic(text);
    let fix = diagnostic.fixes.first().unwrap_or_else(|| panic!("no fix: {text}"));
    assert!(fix.is_verified, "{text}");
    fix.changes.iter().map(|it| (it.target.clone(), lines(it))).collect()
}

fn lines(change: &FixChange) -> Vec<String> {
    let line = |edit: &lavascope_diag::FixEdit| match &edit.before {
        Some(before) => format!("{}: {before} -> {}", edit.field, edit.after),
        None => format!("{}: {}", edit.field, edit.after),
    };
    change.edits.iter().map(line).collect()
}

fn expect(text: &str, expected: &[(&str, &[&str])]) {
    let expected: Vec<(String, Vec<String>)> =
        expected.iter().map(|it| (it.0.to_owned(), it.1.iter().map(|it| (*it).to_owned()).collect())).collect();
    assert_eq!(first_fix(text), expected, "{text}");
}

#[test]
fn a_command_of_version_1_gets_flags_of_version_1() {
    expect(
        "buffer a b 64

cmd main
  fill: clear b
        barrier1 all_transfer => vertex: transfer_write => none
        dispatch reads b
        #              ^ RAW b[0..64] after fill
",
        &[(
            "the barrier",
            &[
                "dstStageMask: VK_PIPELINE_STAGE_VERTEX_SHADER_BIT -> VK_PIPELINE_STAGE_VERTEX_SHADER_BIT | \
                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT",
                "dstAccessMask: VK_ACCESS_NONE -> VK_ACCESS_SHADER_READ_BIT",
            ],
        )],
    );
}

#[test]
fn a_program_with_version_1_alone_gets_barriers_of_version_1() {
    let program = |barrier: &str| {
        format!(
            "buffer a b c d 64

cmd main
        copy a -> b
        {barrier}
        dispatch reads b
  fill: copy d -> c
        copy c -> a
        #    ^ RAW c[0..64] after fill
"
        )
    };
    let text = program("barrier1 copy => compute: transfer_write => shader_read");
    let text = text.replace("        copy c -> a", "        dispatch reads c").replace("#    ^", "#              ^");
    expect(
        &text,
        &[(
            "before command 4 of command buffer 0",
            &[
                "vkCmdPipelineBarrier: VkMemoryBarrier",
                "srcStageMask: VK_PIPELINE_STAGE_TRANSFER_BIT",
                "srcAccessMask: VK_ACCESS_TRANSFER_WRITE_BIT",
                "dstStageMask: VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT",
                "dstAccessMask: VK_ACCESS_SHADER_READ_BIT",
            ],
        )],
    );
    let newer = text.replace(
        "barrier1 copy => compute: transfer_write => shader_read",
        "barrier copy:transfer_write => compute:shader_read",
    );
    let fix = first_fix(&newer);
    assert_eq!(fix[0].1[0], "vkCmdPipelineBarrier2: VkMemoryBarrier2", "{newer}");
    assert!(fix[0].1[4].ends_with("VK_ACCESS_2_SHADER_STORAGE_READ_BIT"), "{fix:?}");
}

#[test]
fn a_range_is_extended_member_by_member() {
    expect(
        "buffer a b c 64

cmd main
  fill: copy a -> b
        barrier1 copy => copy: transfer_write => transfer_read b[0..32]
        copy b -> c
        #    ^ RAW b[32..64] after fill
",
        &[("the barrier", &["size: 32 -> 64"])],
    );
    expect(
        "buffer a b c 64

cmd main
  fill: copy a -> b
        barrier copy:write => copy:read b[32..64]
        copy b -> c
        #    ^ RAW b[0..32] after fill
",
        &[("the barrier", &["offset: 32 -> 0", "size: 32 -> 64"])],
    );
}

/// A reader can tell the barriers of one call apart.
#[test]
fn a_fix_names_the_barrier_of_a_call_with_several() {
    let program = |barriers: &str| {
        format!(
            "buffer a b c 64

cmd main
        copy a -> c
  fill: copy a -> b
        {barriers}
        dispatch reads b
        #              ^ RAW b[0..64] after fill
"
        )
    };
    expect(
        &program("barrier copy:write => copy:read c, copy:write => compute b"),
        &[(
            "the barrier",
            &["pBufferMemoryBarriers[1].dstAccessMask: VK_ACCESS_2_NONE -> VK_ACCESS_2_SHADER_STORAGE_READ_BIT"],
        )],
    );
    // The stages of version 1 are those of the call.
    expect(
        &program("barrier1 copy => vertex: transfer_write => uniform_read c, transfer_write => none b"),
        &[(
            "the barrier",
            &[
                "dstStageMask: VK_PIPELINE_STAGE_VERTEX_SHADER_BIT -> VK_PIPELINE_STAGE_VERTEX_SHADER_BIT | \
                 VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT",
                "pBufferMemoryBarriers[1].dstAccessMask: VK_ACCESS_NONE -> VK_ACCESS_SHADER_READ_BIT",
            ],
        )],
    );
    expect(
        &program("barrier copy:write => copy:read c, copy:write => compute:shader_read b[0..32]"),
        &[("the barrier", &["pBufferMemoryBarriers[1].size: 32 -> 64"])],
    );
}

#[test]
fn a_command_without_memory_barriers_gets_one() {
    expect(
        "buffer a b c 64

cmd main
  fill: copy a -> b
        barrier1 copy => copy
        copy b -> c
        #    ^ RAW b[0..64] after fill
",
        &[(
            "the barrier",
            &[
                "pMemoryBarriers: VkMemoryBarrier",
                "srcAccessMask: VK_ACCESS_TRANSFER_WRITE_BIT",
                "dstAccessMask: VK_ACCESS_TRANSFER_READ_BIT",
            ],
        )],
    );
}

#[test]
fn an_event_is_changed_where_it_is_set_and_where_it_is_waited_for() {
    let fix = first_fix(
        "buffer a b 64
event e

cmd main
  fill: copy a -> b
        set e compute:storage_write => vertex:storage_read
        wait e compute:storage_write => vertex:storage_read
        draw reads b at vertex
        #          ^ RAW b[0..64] after fill
",
    );
    let targets: Vec<&str> = fix.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(targets, ["the event set", "the event wait"]);
    assert_eq!(fix[0].1, fix[1].1, "both have the same dependency");
}

#[test]
fn a_barrier_in_a_subpass_has_the_flags_of_its_dependency() {
    let program = |dependency: &str| {
        format!(
            "buffer b 64
image att 8x8

pass rp
  attachment color load=clear
  subpass color 0
{dependency}
cmd main
        begin rp with att
  mark: draw writes b at fragment
        draw reads b at fragment
        #          ^ RAW b[0..64] after mark
        end pass
"
        )
    };
    let by_region = "dependencyFlags: VK_DEPENDENCY_BY_REGION_BIT".to_owned();
    let with = first_fix(&program("  dependency 0 => 0: fragment:storage_write => fragment:storage_read\n"));
    assert_eq!((with.len(), with[0].1.last()), (1, Some(&by_region)), "{with:?}");
    let without = first_fix(&program(""));
    let targets: Vec<&str> = without.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(targets, ["the render pass", "before command 2 of command buffer 0"], "{without:?}");
    assert!(without.iter().all(|it| it.1.last() == Some(&by_region)), "{without:?}");
}

#[test]
fn no_barrier_in_a_subpass_makes_other_work_wait_for_the_framebuffer() {
    let diagnostic = diagnostic(
        "buffer b 64
image att 8x8

pass rp
  attachment color load=clear
  subpass color 0

cmd main
        begin rp with att
  mark: draw writes b at fragment
        draw reads b at vertex
        #          ^ RAW b[0..64] after mark
        end pass
",
    );
    assert_eq!((diagnostic.fixes.len(), diagnostic.no_fix.is_some()), (0, true), "{:?}", diagnostic.fixes);
}

/// One missing dependency is one finding, and its fix has the scopes of the attachment. The dependency with the outside
/// has nothing to do with it.
#[test]
fn a_missing_subpass_dependency_is_one_finding() {
    let text = "image first second 8x8

pass rp
  attachment color load=clear
  attachment color load=clear
  subpass color 0
  subpass input 0, color 1
  dependency external => 1: color:color_write => color:color_write

cmd main
  begin rp with first, second
  next subpass
  draw reads input first
  end pass
";
    expect(
        text,
        &[(
            "the render pass",
            &[
                "VkSubpassDependency: ",
                "srcSubpass: 0",
                "dstSubpass: 1",
                "srcStageMask: VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT",
                "srcAccessMask: VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT",
                "dstStageMask: VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT",
                "dstAccessMask: VK_ACCESS_INPUT_ATTACHMENT_READ_BIT",
            ],
        )],
    );
    assert_eq!(diagnostic(text).sites, 2);
}

#[test]
fn subpass_dependencies_have_names() {
    let diagnostic = diagnostic(
        "image att 8x8
buffer b 64

pass rp
  attachment color load=clear
  subpass color 0
  dependency 0 => external: color:color_write => vertex:shader_read

cmd main
  rp:   begin rp with att
        end pass
        copy att -> b
        #    ^ RAW att after rp
",
    );
    let operation = diagnostic.operations.first().expect("an operation");
    assert_eq!(operation.function, "subpass dependency 0: 0 -> EXTERNAL");
    assert_eq!((operation.place.as_str(), operation.stack), ("render pass 0", 0));
}

#[test]
fn a_barrier_for_everything_before_the_access_is_counted() {
    let program = |barrier: &str| {
        format!(
            "buffer a b c 64

cmd main
        {barrier}
  fill: copy a -> b
        copy b -> c
        #    ^ RAW b[0..64] after fill
"
        )
    };
    let specific = diagnostic(&program("barrier copy:write => copy:read"));
    let gaps: Vec<&str> = specific.operations.iter().map(|it| it.gap.as_str()).collect();
    assert_eq!(gaps, ["is recorded before the write, so it does not cover it"]);
    let everything = diagnostic(&program("barrier all:memory_write => all:memory_read|memory_write"));
    assert_eq!((everything.operations.len(), everything.unrelated_operations), (0, 1));
}

#[test]
fn a_barrier_for_a_read_before_the_access_does_not_fit_a_write() {
    let diagnostic = diagnostic(
        "buffer a b c 64

cmd main
        barrier all_transfer:transfer_write => all_transfer:transfer_read
  load: copy a -> b
        copy c -> a
        #         ^ WAR a[0..64] after load
",
    );
    assert_eq!((diagnostic.operations.len(), diagnostic.unrelated_operations), (0, 1), "{:?}", diagnostic.operations);
}

#[test]
fn a_barrier_that_a_fix_edits_or_that_covers_another_buffer_is_listed() {
    let program = |barrier: &str| {
        format!(
            "buffer a b c 64

cmd main
  fill: copy a -> b
        {barrier}
        copy b -> c
        #    ^ RAW b[0..64] after fill
"
        )
    };
    let empty = diagnostic(&program("barrier copy:none => copy:none"));
    assert_eq!((empty.operations.len(), empty.unrelated_operations), (1, 0), "{empty:#?}");
    assert!(empty.operations[0].is_near_miss);
    assert_eq!(
        empty.operations[0].gap,
        "lacks the source access TRANSFER_WRITE, lacks the destination access TRANSFER_READ"
    );
    let other = diagnostic(&program("barrier copy:write => copy:read a"));
    assert_eq!(other.operations.len(), 1, "{other:#?}");
    assert_eq!(other.operations[0].gap, "covers VkBuffer#0, not VkBuffer#1");
    let half = diagnostic(&program("barrier copy:write => copy:read b[0..32]"));
    assert_eq!(half.operations[0].gap, "covers [0..32], not [32..64]");
}
