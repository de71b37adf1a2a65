//! Explanations, fixes and surplus, on random programs and on a few written by hand.
//!
//! `LAVASCOPE_SAMPLE_PROGRAMS` and `LAVASCOPE_SAMPLE_SEED` make it more, and others.

use std::collections::BTreeMap;

use lavascope_abi::{AccessFlags2, PipelineStageFlags2};
use lavascope_diag::render_text;
use lavascope_engine::check;
use lavascope_explain::{
    CheckBudget, CoverageGap, Explainer, NumberedNames, ProgramChange, Removal, ScopeCoverage, explain,
    find_over_synchronization, propose, report,
};
use lavascope_sim::programs::{ProgramFeatures, make_sparse, random_program};
use lavascope_sim::programs::{print, share_memory, shrink};
use lavascope_sync_ir::{Hazard, HazardKind, Program, ProgramLocation, Region, ResourceId, SyncScope};

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
}

fn programs(kinds: ProgramFeatures, count: u64) -> impl Iterator<Item = (u64, Program)> {
    let first = number("LAVASCOPE_SAMPLE_SEED", 1);
    let count = number("LAVASCOPE_SAMPLE_PROGRAMS", count);
    (first..first + count).map(move |seed| (seed, random_program(seed, &kinds)))
}

#[derive(Default)]
struct Agreement {
    hazards: usize,
    neighbors: usize,
    wrong: Vec<String>,
}

/// Every hazard is explained by a pair of accesses that nothing covers, and two accesses that follow each other are
/// covered exactly if there is no hazard between them.
fn agreement(program: &Program) -> Agreement {
    let mut all = Agreement::default();
    let found = check(program);
    let explainer = Explainer::new(program);
    for item in &found {
        all.hazards += 1;
        if explainer.explain(item).is_none_or(|it| it.is_covered) {
            all.wrong.push(format!("{item:?} is a hazard, but covered"));
        }
    }
    // A command may access the same memory in several ways: it is covered if all are.
    let mut pairs: BTreeMap<(ProgramLocation, ProgramLocation, ResourceId), bool> = BTreeMap::new();
    for adjacent_access in explainer.adjacent_accesses() {
        *pairs.entry((adjacent_access.later, adjacent_access.prior, adjacent_access.resource)).or_insert(true) &=
            adjacent_access.is_covered;
    }
    for (pair, is_covered) in pairs {
        all.neighbors += 1;
        let same = |it: &&Hazard| (&it.at, &it.prior, &it.resource) == (&pair.0, &pair.1, &pair.2);
        let hazard = found.iter().find(same);
        if hazard.is_some() == is_covered {
            all.wrong.push(format!("{pair:?} is covered: {is_covered}; {found:#?}"));
        }
    }
    all
}

fn assert_agreement(kinds: ProgramFeatures, count: u64) {
    assert_agreement_on(programs(kinds, count), count);
}

fn assert_agreement_on(programs: impl Iterator<Item = (u64, Program)>, count: u64) {
    let (mut hazards, mut neighbors) = (0, 0);
    let mut wrong: Vec<u64> = Vec::new();
    let mut shown = String::new();
    for (seed, program) in programs {
        let item = agreement(&program);
        hazards += item.hazards;
        neighbors += item.neighbors;
        if !item.wrong.is_empty() {
            wrong.push(seed);
            if wrong.len() <= 3 {
                let small = shrink(&program, &|it| !agreement(it).wrong.is_empty());
                shown += &format!("seed {seed}: {}\n{}", agreement(&small).wrong[0], print(&small));
            }
        }
    }
    println!("{hazards} hazards, {neighbors} neighbors, wrong in {wrong:?}");
    assert!(wrong.is_empty(), "{} programs of {count}\n{shown}", wrong.len());
    assert!(hazards > count as usize / 10 && neighbors > count as usize);
}

#[test]
fn the_follower_agrees_on_barriers() {
    assert_agreement(ProgramFeatures::BARRIERS, 500);
}

#[test]
fn the_follower_agrees_on_queues_events_and_secondaries() {
    assert_agreement(ProgramFeatures::WITHOUT_RENDERING, 500);
}

#[test]
fn the_follower_agrees_on_everything() {
    assert_agreement(ProgramFeatures::ALL, 500);
}

#[test]
fn the_follower_agrees_on_aliases() {
    assert_agreement(ProgramFeatures::ALIASES, 500);
}

#[test]
fn the_follower_agrees_on_sparse_buffers() {
    let sparse = programs(ProgramFeatures::ALL, 300).map(|(seed, mut program)| {
        make_sparse(&mut program, seed);
        (seed, program)
    });
    assert_agreement_on(sparse, 300);
}

#[test]
fn the_follower_agrees_on_attachments_in_shared_memory() {
    let shared = programs(ProgramFeatures::ALL, 300).map(|(seed, mut program)| {
        share_memory(&mut program);
        (seed, program)
    });
    assert_agreement_on(shared, 300);
}

/// What can be done about the hazards of random programs.
fn fixes(kinds: ProgramFeatures, count: u64) -> (usize, usize, BTreeMap<String, usize>) {
    let (mut hazards, mut fixed) = (0, 0);
    let mut without: BTreeMap<String, usize> = BTreeMap::new();
    for (_, program) in programs(kinds, count) {
        let found = check(&program);
        let explainer = Explainer::new(&program);
        for hazard in &found {
            let proposal = explainer.propose(hazard, &found);
            hazards += 1;
            match proposal.fixes.first() {
                Some(_) => fixed += 1,
                None => {
                    let why = proposal.no_fix_reason.expect("a reason stands where no fix does");
                    *without.entry(format!("{:?}: {why}", hazard.kind)).or_default() += 1;
                }
            }
        }
    }
    println!("{fixed} of {hazards} hazards have a verified fix; others: {without:#?}");
    (hazards, fixed, without)
}

#[test]
fn most_hazards_have_a_verified_fix() {
    for kinds in [ProgramFeatures::BARRIERS, ProgramFeatures::WITHOUT_RENDERING, ProgramFeatures::ALL] {
        let (hazards, fixed, without) = fixes(kinds, 150);
        // Inside of an instance without dependencies of its own nothing can be put.
        let inside =
            without.iter().filter(|it| it.0.contains("where no barrier may stand")).map(|it| it.1).sum::<usize>();
        assert!(inside * 10 < hazards, "{inside} of {hazards}");
        assert!(fixed * 100 >= (hazards - inside) * 98, "{fixed} of {hazards}");
    }
}

/// All programs of the scenarios.
fn scenarios() -> Vec<(String, Program)> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios");
    let mut folders = vec![root];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of scenarios") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|it| it == "vks") {
                let text = std::fs::read_to_string(&path).expect("a scenario");
                let scenario = lavascope_scenario::parse(&text).expect("a scenario that parses");
                found.push((path.display().to_string(), scenario.program));
            }
        }
    }
    found.sort_by(|left, right| left.0.cmp(&right.0));
    found
}

#[test]
fn hazards_of_scenarios_are_explained_and_fixed() {
    let (mut hazards, mut fixed) = (0, 0);
    let mut without = Vec::new();
    for (path, program) in scenarios() {
        let found = check(&program);
        let explainer = Explainer::new(&program);
        let agreement = agreement(&program);
        assert!(agreement.wrong.is_empty(), "{path}: {:?}", agreement.wrong);
        for hazard in &found {
            hazards += 1;
            let explanation =
                explainer.explain(hazard).unwrap_or_else(|| panic!("{path}: {hazard:?} has no explanation"));
            assert!(!explanation.is_covered, "{path}: {hazard:?} is a hazard, but covered");
            let proposal = explainer.propose(hazard, &found);
            match proposal.no_fix_reason {
                None => fixed += 1,
                Some(why) => without.push(format!("{path}: {:?}: {why}", hazard.kind)),
            }
        }
    }
    println!("{fixed} of {hazards} hazards of scenarios have a verified fix\n{}", without.join("\n"));
    assert!(hazards > 100 && fixed * 100 >= hazards * 98, "{fixed} of {hazards}");
}

fn program(text: &str) -> Program {
    let header = if text.contains('^') { "" } else { "# expect: clean\n" };
    let scenario = lavascope_scenario::parse(&format!("# A test.\n# spec: none\n{header}\n{text}"));
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}")).program
}

fn report_of(text: &str) -> String {
    let program = program(text);
    report(&program, &NumberedNames(&program)).iter().map(render_text).collect::<Vec<_>>().join("\n")
}

/// A part of a program between a copy to `b` and a use of it, and why it does not cover.
const GAPS: &[(&str, &str, CoverageGap)] = &[
    ("barrier compute:storage_write => copy:read", "copy b -> c", CoverageGap::SourceStage),
    ("barrier copy:read => copy:read", "copy b -> c", CoverageGap::SourceAccess),
    ("barrier copy:write => vertex:storage_read", "dispatch reads b", CoverageGap::DestinationStage),
    ("barrier copy:write => compute:uniform_read", "dispatch reads b", CoverageGap::DestinationAccess),
    ("barrier copy:write => copy:read b[0..32]", "copy b[32..64] -> c", CoverageGap::OtherRange),
    ("barrier copy:write => copy:read a", "copy b -> c", CoverageGap::OtherResource),
];

#[test]
fn operations_tell_why_they_do_not_cover() {
    for (between, then, gap) in GAPS {
        let (begin, _) = then.split_at(then.find('b').unwrap_or(0));
        let column = 9 + begin.len();
        let range = if then.contains("32") { "[32..64]" } else { "[0..64]" };
        let mark = format!("#{}^ RAW b{range} after fill", " ".repeat(column.saturating_sub(10)));
        let text = format!(
            "buffer a b c 64\n\ncmd main\n  fill: copy a -> b\n        {between}\n        {then}\n        {mark}\n"
        );
        let program = program(&text);
        let found = check(&program);
        let explanation = explain(&program, &found[0]).expect("an explanation");
        assert_eq!(explanation.operations.len(), 1, "{text}");
        assert!(explanation.operations[0].gaps.contains(gap), "{text}: {:?}", explanation.operations[0].gaps);
        // The smallest fix is to this very operation, unless that is about something else altogether.
        let fixes = propose(&program, &found[0]).fixes;
        let is_edit = matches!(fixes[0].changes[0], ProgramChange::AddBits { .. } | ProgramChange::ExtendRange { .. });
        assert_eq!(is_edit, *gap != CoverageGap::OtherResource, "{text}: {:?}", fixes[0]);
    }
}

/// Whole programs with one hazard, and what the explanation says of one of the operations in it.
const MORE_GAPS: &[(CoverageGap, &str)] = &[
    (
        CoverageGap::LaterThroughAlias(ResourceId(1)),
        "memory m 64
buffer a b 64 at m+0
buffer c d 64

cmd main
  fill: copy c -> a
        barrier copy:write => copy:read a
        copy b -> d
        #    ^ RAW b[0..64] after fill
",
    ),
    (
        CoverageGap::PriorThroughAlias(ResourceId(0)),
        "memory m 256
buffer a 256 at m+0
image tex 8x8 format=r32_uint at m+0
buffer c 256

cmd main
  fill: copy c -> a
        barrier copy:write => fragment:sampled_read tex
        draw samples tex at fragment
        #            ^ RAW tex after fill
",
    ),
    (
        CoverageGap::BeforeAccess,
        "buffer a b c 64

cmd main
        barrier copy:write => copy:read
  fill: copy a -> b
        copy b -> c
        #    ^ RAW b[0..64] after fill
",
    ),
    (
        CoverageGap::AfterAccess,
        "buffer a b c 64

cmd main
  fill: copy a -> b
        copy b -> c
        #    ^ RAW b[0..64] after fill
        barrier copy:write => copy:read
",
    ),
    (
        CoverageGap::SetBeforeAccess,
        "buffer a b 64
event e

cmd main
        set e copy:write => compute:storage_read
  fill: copy a -> b
        wait e copy:write => compute:storage_read
        dispatch reads b
        #              ^ RAW b[0..64] after fill
",
    ),
    (
        CoverageGap::NeverWaited,
        "buffer a b 64
event e

cmd main
  fill: copy a -> b
        set e copy:write => compute:storage_read
        dispatch reads b
        #              ^ RAW b[0..64] after fill
",
    ),
    (
        CoverageGap::NeverWaited,
        "buffer a b 64
queue gfx: graphics xfer: transfer
semaphore s

cmd up
  fill: copy a -> b

cmd use
  draw reads b at vertex
  #          ^ RRW b[0..64] after up.fill

xfer submit up signal s
gfx submit use
",
    ),
    (
        CoverageGap::OtherQueue,
        "buffer a b 64
queue gfx: graphics xfer: transfer

cmd up
  fill: copy a -> b

cmd use
  barrier all:memory_write => all:memory_read
  draw reads b at fragment
  #          ^ RRW b[0..64] after up.fill

xfer submit up
gfx submit use
",
    ),
    (
        CoverageGap::SourceStage,
        "buffer a b 64
queue gfx: graphics xfer: transfer
semaphore s

cmd up
  fill: copy a -> b

cmd use
  draw reads b at vertex
  #          ^ RAW b[0..64] after up.fill

xfer submit up signal s at clear
gfx submit use wait s at vertex
",
    ),
    (
        CoverageGap::OtherSubpass,
        "buffer b 64
image att 8x8

pass rp
  attachment color load=clear
  subpass color 0
  subpass color 0
  dependency 0 => 1: color:color_write => color:color_read|color_write

cmd main
  mark: draw writes b at fragment
        begin rp with att
        barrier fragment:storage_write => fragment:storage_read
        draw reads b at fragment
        #          ^ RAW b[0..64] after mark
        next subpass
        end pass
",
    ),
];

#[test]
fn operations_elsewhere_tell_so() {
    for (gap, text) in MORE_GAPS {
        let program = program(text);
        let found = check(&program);
        let explanation = explain(&program, &found[0]).expect("an explanation");
        let gaps: Vec<&CoverageGap> = explanation.operations.iter().flat_map(|it| &it.gaps).collect();
        assert!(gaps.contains(&gap), "{text}: {gap:?} is not in {gaps:?}");
        assert!(!explanation.is_covered, "{text}");
        assert!(!propose(&program, &found[0]).fixes.is_empty(), "{text}");
    }
}

#[test]
fn fixes_are_of_the_kind_that_the_place_allows() {
    let first_change = |text: &str| {
        let program = program(text);
        let found = check(&program);
        propose(&program, &found[0]).fixes.into_iter().next().expect("a fix").changes
    };
    let race = MORE_GAPS.iter().find(|it| it.0 == CoverageGap::OtherQueue).expect("a race");
    assert!(matches!(first_change(race.1)[..], [ProgramChange::AddSemaphore { .. }]));
    let subpasses = "buffer b 64
image one two 8x8

pass rp
  attachment color load=clear store=none
  attachment color load=clear store=none
  subpass color 0, preserve 1
  subpass color 1, preserve 0

cmd main
        begin rp with one, two
  mark: draw writes b at fragment
        next subpass
        draw writes b at fragment
        #           ^ WRW b[0..64] after mark
        end pass
";
    assert!(matches!(first_change(subpasses)[..], [ProgramChange::AddSubpassDependency { .. }]));
    let inside = "buffer b 64
image att 8x8

pass rp
  attachment color load=clear
  subpass color 0

cmd main
        begin rp with att
  mark: draw writes b at fragment
        draw reads b at fragment
        #          ^ RAW b[0..64] after mark
        end pass
";
    assert!(matches!(
        first_change(inside)[..],
        [ProgramChange::AddSubpassDependency { .. }, ProgramChange::InsertBarrier { .. }]
    ));
    let host = "buffer a b 64

cmd main
  fill: copy a -> b

q submit main
host reads b
#          ^ RRW b[0..64] after main.fill
";
    assert!(matches!(
        first_change(host)[..],
        [ProgramChange::InsertBarrier { .. }, ProgramChange::InsertHostWait { .. }]
    ));
}

#[test]
fn what_covers_is_said_to_cover() {
    let text = "buffer a b c 64\n\ncmd main\n  copy a -> b\n  barrier copy:write => compute\n  barrier compute => copy:read\n  copy b -> c\n";
    let program = program(text);
    assert_eq!(check(&program), []);
    let neighbors = Explainer::new(&program).adjacent_accesses();
    assert!(neighbors.len() == 1 && neighbors[0].is_covered, "{neighbors:?}");
    // Asked about all the same, the explanation says how the two barriers carry the write to the read.
    let (at, prior) = (neighbors[0].later.clone(), neighbors[0].prior.clone());
    let (kind, resource, region) = (HazardKind::ReadAfterWrite, ResourceId(1), Region::Buffer(0..64));
    let explanation = explain(&program, &Hazard { kind, at, prior, resource, region }).expect("an explanation");
    assert!(explanation.is_covered);
    let verdicts: Vec<ScopeCoverage> = explanation.operations.iter().map(|it| it.coverage).collect();
    assert_eq!(verdicts, [ScopeCoverage::FirstOnly, ScopeCoverage::Both]);
}

#[test]
fn the_text_of_a_lacking_stage() {
    let text = report_of(
        "buffer a b 64\n\ncmd main\n  fill: copy a -> b\n        barrier copy:write => vertex:storage_read\n        draw reads b at fragment\n        #          ^ RAW b[0..64] after fill\n",
    );
    let expected = "\
Error: [ SYNC-HAZARD-READ-AFTER-WRITE | MessageID = 0xe4d96472 ]
draw(): READ_AFTER_WRITE hazard detected. Shader stage VK_SHADER_STAGE_FRAGMENT_BIT reads buffer 1[0..64], \
which was previously written by copy.
The synchronization between them allows VK_ACCESS_2_SHADER_STORAGE_READ_BIT accesses at VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT, \
but it must allow VK_ACCESS_2_SHADER_STORAGE_READ_BIT accesses at VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT.
  access: command 2 of command buffer 0 (step 0, batch 0)
  prior access: command 0 of command buffer 0 (step 0, batch 0)
  barrier at command 1 of command buffer 0 (step 0, batch 0) \
[VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT) => \
VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)]: has the earlier access and orders it \
before VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT, but its destination stages lack VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT
Fix (verified): add VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT to dstStageMask of dependency 0 of the barrier at command 1 \
of command buffer 0
2 other fixes are known, larger than this one.
[Extra properties]
message_type = BufferDescriptorError
hazard_type = READ_AFTER_WRITE
access = VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)
prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)
write_barriers = VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)
command = draw
prior_command = copy
";
    assert_eq!(text, expected);
}

#[test]
fn the_text_of_a_missing_barrier() {
    let text = report_of(
        "buffer a b c 64\n\ncmd main\n  load: copy a -> b\n        copy c -> a\n        #         ^ WAR a[0..64] after load\n",
    );
    let expected = "\
Error: [ SYNC-HAZARD-WRITE-AFTER-READ | MessageID = 0x376bc9df ]
copy(): WRITE_AFTER_READ hazard detected. copy writes to buffer 0[0..64], which was previously read by another copy command.
Nothing between them orders VK_ACCESS_2_TRANSFER_READ_BIT accesses at VK_PIPELINE_STAGE_2_COPY_BIT before \
VK_ACCESS_2_TRANSFER_WRITE_BIT accesses at VK_PIPELINE_STAGE_2_COPY_BIT.
Hint: an execution dependency is sufficient to prevent this hazard.
  access: command 1 of command buffer 0 (step 0, batch 0)
  prior access: command 0 of command buffer 0 (step 0, batch 0)
  no synchronization operation lies between the two accesses
Fix (verified): insert vkCmdPipelineBarrier2 with a VkMemoryBarrier2 (srcStageMask VK_PIPELINE_STAGE_2_COPY_BIT, \
dstStageMask VK_PIPELINE_STAGE_2_COPY_BIT) before command 1 of command buffer 0
[Extra properties]
message_type = BufferCopyError
hazard_type = WRITE_AFTER_READ
access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)
prior_access = VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)
read_barriers = 0
command = copy
prior_command = copy
";
    assert_eq!(text, expected);
}

#[test]
fn the_text_of_a_semaphore_waited_for_too_late() {
    let text = report_of(
        "buffer a b 64\nqueue gfx: graphics xfer: transfer\nsemaphore s\n\ncmd up\n  fill: copy a -> b\n\ncmd use\n  draw reads b at vertex\n  #          ^ RAW b[0..64] after up.fill\n\nxfer submit up signal s\ngfx submit use wait s at fragment\n",
    );
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[5],
        "  semaphore wait of batch 0 of step 1 [VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT => \
         VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT]: has the earlier access and orders it before \
         VK_PIPELINE_STAGE_2_FRAGMENT_SHADER_BIT, but VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT does not wait for it"
    );
    assert_eq!(
        lines[6],
        "Fix (verified): add VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT to the stageMask of wait 0 of batch 0 of step 1"
    );
}

#[test]
fn equal_causes_are_counted() {
    let program = program(
        "buffer a b c 64\n\ncmd main\n  fill: copy a -> b\n        copy b -> c\n        #    ^ RAW b[0..64] after fill\n\nq submit main\nq idle\nq submit main\n",
    );
    let found = check(&program);
    assert_eq!(found.len(), 2);
    let report = report(&program, &NumberedNames(&program));
    assert_eq!(report.iter().map(|it| it.count).collect::<Vec<_>>(), [2]);
    assert!(render_text(&report[0]).contains("\nFound 2 times; this is the first.\n"));
}

#[test]
fn needless_synchronization_is_found_and_needed_is_not() {
    let text = |barriers: &str| {
        program(&format!("buffer a b c d 64\n\ncmd main\n  copy a -> b\n{barriers}  copy b -> c\n  dispatch reads d\n"))
    };
    let budget = CheckBudget { checks_max: 100 };
    let needed = text("  barrier copy:write => copy:read\n");
    assert_eq!(find_over_synchronization(&needed, budget).redundant, []);
    let twice = find_over_synchronization(&text("  barrier copy:write => copy:read\n  barrier copy => copy\n"), budget);
    assert_eq!(twice.redundant.iter().map(|it| it.removal).collect::<Vec<_>>(), [Removal::Whole]);
    // Two accesses before, three behind; without the bit one of those that wait is left out.
    let wide =
        find_over_synchronization(&text("  barrier copy:write => copy|compute:transfer_read|storage_read\n"), budget);
    let bits: Vec<(Removal, usize)> = wide.redundant.iter().map(|it| (it.removal, it.accesses)).collect();
    let stage = SyncScope { dst_stages: PipelineStageFlags2::COMPUTE_SHADER.0, ..SyncScope::default() };
    let access = SyncScope { dst_access: AccessFlags2::SHADER_STORAGE_READ.0, ..SyncScope::default() };
    assert_eq!(bits, [(Removal::Bits(stage), 1), (Removal::Bits(access), 0)]);
}

#[test]
fn what_the_budget_leaves_out_is_reported() {
    let program =
        program("buffer a b c 64\n\ncmd main\n  copy a -> b\n  barrier copy:write => copy:read\n  copy b -> c\n");
    let all = find_over_synchronization(&program, CheckBudget { checks_max: 100 });
    assert_eq!((all.checks, all.untried), (5, 0));
    let some = find_over_synchronization(&program, CheckBudget { checks_max: 2 });
    assert_eq!((some.checks, some.untried), (2, 3));
}

/// What is called needless is: the program is judged the same without it.
#[test]
fn needless_synchronization_of_random_programs() {
    let (mut programs_with, mut found) = (0, 0);
    for (_, program) in programs(ProgramFeatures::ALL, 20) {
        let report = find_over_synchronization(&program, CheckBudget { checks_max: 60 });
        assert!(report.checks <= 60 && report.redundant.len() <= report.checks);
        assert!(report.redundant.is_sorted_by(|left, right| left.accesses >= right.accesses));
        programs_with += usize::from(!report.redundant.is_empty());
        found += report.redundant.len();
    }
    println!("{found} needless operations and bits in {programs_with} of 20 programs");
    assert!(programs_with > 0);
}

#[test]
fn faults_have_names_and_say_what_to_do() {
    let codes = |file: &str| {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios").join(file);
        let text = std::fs::read_to_string(path).expect("a text");
        let program = lavascope_scenario::parse(&text).expect("a scenario").program;
        let all = report(&program, &NumberedNames(&program));
        all.iter().for_each(|it| assert!(!it.fixes.is_empty() && !it.explanation.is_empty(), "{it:?}"));
        all.iter().map(|it| it.code.0.clone().into_owned()).collect::<Vec<_>>()
    };
    let of_buffer = "UNASSIGNED-VkBufferMemoryBarrier-buffer-00004";
    assert_eq!(codes("queue_family/acquire_without_release.vks"), [of_buffer]);
    assert_eq!(codes("queue_family/read_before_acquire.vks"), ["SYNC-CONTENTS-READ-WITHOUT-ACQUIRE"]);
    assert_eq!(codes("queue_family/read_without_transfer.vks"), ["SYNC-CONTENTS-READ-WITHOUT-TRANSFER"]);
    assert_eq!(codes("render_pass/write_to_preserved.vks"), ["SYNC-CONTENTS-WRITE-TO-PRESERVED"]);
    assert_eq!(codes("render_pass/not_preserved.vks"), ["SYNC-CONTENTS-READ-NOT-PRESERVED"]);
    assert_eq!(codes("queue_family/read_after_transfer.vks"), [""; 0]);
}
