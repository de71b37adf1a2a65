//! Findings made by hand, with and without source lines.

use lavascope_findings::{
    CheckState, CheckedCount, CodeDescription, Coverage, Finding, FindingAccess, FindingFix, FindingObject,
    FindingOperation, FindingProperty, FindingSeverity, FindingSite, FindingsReport, FixChange, FixEdit, FrameSpan,
    NeighborCommands, ReportNotice, SourceLocation, Stack, StackFrame, UncheckedCount,
};

const COPY: &str = "VK_PIPELINE_STAGE_2_COPY_BIT";
const COMPUTE: &str = "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT";
const VERTEX: &str = "VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT";
const TRANSFER_WRITE: &str = "VK_ACCESS_2_TRANSFER_WRITE_BIT";
const STORAGE_READ: &str = "VK_ACCESS_2_SHADER_STORAGE_READ_BIT";

/// Five findings that are new and one that is known.
pub(crate) fn report() -> FindingsReport {
    let known = Finding { is_known: true, title: "an old one".to_owned(), ..without_source() };
    FindingsReport {
        lavascope: "0.1.0".to_owned(),
        command: ["lavascope", "run", "--", "./plasma"].map(str::to_owned).to_vec(),
        findings: vec![with_source(), without_source(), shader_fault(), insertion(), hostile_names(), known],
        ignored: 2,
        coverage: Some(coverage()),
        notices: vec![
            ReportNotice::new(
                FindingSeverity::Error,
                "vkQueueSubmit() returned VK_ERROR_DEVICE_LOST\nframe 7 was the last",
            ),
            ReportNotice::new(
                FindingSeverity::Warning,
                "not checked, so that hazards may be missed: sparse memory (3 times)",
            ),
            ReportNotice::new(FindingSeverity::Info, "threads of plasma waited 1 time for the validation, 5 ms in all"),
        ],
        codes: vec![code("SYNC-HAZARD-READ-AFTER-WRITE", "RAW"), code("SYNC-HAZARD-WRITE-AFTER-READ", "WAR")],
        ..FindingsReport::default()
    }
}

fn coverage() -> Coverage {
    let why = UncheckedCount { reason: "not selected".to_owned(), count: 1 };
    let check = CheckState { name: "sync".to_owned(), is_wanted: true, is_armed: true, why: String::new() };
    Coverage {
        calls: 546,
        checks: vec![check],
        shaders: CheckedCount::new(2, [why]),
        submits: CheckedCount::new(20, []),
        ..Coverage::default()
    }
}

fn code(code: &str, short: &str) -> CodeDescription {
    CodeDescription {
        code: code.to_owned(),
        short: short.to_owned(),
        summary: format!("What {short} means."),
        page: format!("# {code}\n\nWhat {short} means.\n"),
    }
}

fn source(file: &str, line: u32, function: &str, text: &str) -> SourceLocation {
    SourceLocation {
        file: file.to_owned(),
        line,
        column: None,
        function: Some(function.to_owned()),
        text: (!text.is_empty()).then(|| text.to_owned()),
    }
}

fn frame(source: SourceLocation) -> StackFrame {
    StackFrame {
        module: Some("/opt/plasma/plasma".to_owned()),
        offset: 0x1234,
        source: Some(source),
        ..StackFrame::default()
    }
}

/// A call in `record`, which `main` calls.
fn stack(line: u32, text: &str) -> Stack {
    let frames = [source("plasma.c", line, "record", text), source("plasma.c", 320, "draw_frame", "record(cmd);")];
    let main = source("plasma.c", 401, "main", "draw_frame();");
    Stack { frames: frames.into_iter().chain([main]).map(frame).collect() }
}

fn strings<const N: usize>(all: [&str; N]) -> Vec<String> {
    all.map(str::to_owned).to_vec()
}

/// The finding of the page of findings.
fn with_source() -> Finding {
    let access = FindingAccess {
        role: "access".to_owned(),
        function: "vkCmdDispatch".to_owned(),
        action: "reads \"emitters\"[0..512] (set 0, binding 0)".to_owned(),
        stage: COMPUTE.to_owned(),
        access: STORAGE_READ.to_owned(),
        place: "command 14 of VkCommandBuffer#0 \"frame\"".to_owned(),
        stack: stack(204, "    vkCmdDispatch(cmd, 32, 32, 1);"),
        ..FindingAccess::default()
    };
    let prior = FindingAccess {
        role: "prior access".to_owned(),
        function: "vkCmdCopyBuffer".to_owned(),
        action: "writes \"emitters\"[0..512]".to_owned(),
        stage: COPY.to_owned(),
        access: TRANSFER_WRITE.to_owned(),
        is_write: true,
        place: "command 9 of VkCommandBuffer#0 \"frame\"".to_owned(),
        stack: stack(197, "    vkCmdCopyBuffer(cmd, staging, emitters, 1, &whole);"),
        ..FindingAccess::default()
    };
    let (operation, change) = barrier_without_compute();
    Finding {
        code: "SYNC-HAZARD-READ-AFTER-WRITE".to_owned(),
        severity: FindingSeverity::Error,
        title: "compute shader reads \"emitters\" before the copy is visible".to_owned(),
        message: "vkCmdDispatch(): READ_AFTER_WRITE hazard detected.\nNothing makes it visible.".to_owned(),
        function: "vkCmdDispatch".to_owned(),
        accesses: vec![access, prior],
        operations: vec![operation],
        unrelated_operations: 1,
        fixes: vec![FindingFix {
            text: format!("add {COMPUTE} to dstStageMask of the barrier"),
            is_verified: true,
            changes: vec![change],
        }],
        objects: vec![FindingObject {
            kind: "VkBuffer".to_owned(),
            id: 3,
            name: Some("emitters".to_owned()),
            description: Some("512 bytes".to_owned()),
        }],
        explanation: strings(["the barrier makes the write available", "and visible to VERTEX_SHADER only"]),
        properties: vec![FindingProperty { key: "hazard_type".to_owned(), value: "READ_AFTER_WRITE".to_owned() }],
        identity: strings(["access: vkCmdDispatch", "prior access: vkCmdCopyBuffer", "object: VkBuffer \"emitters\""]),
        fingerprint: "ed1e6afc08207ce4".to_owned(),
        first_access: "0123456789ab".to_owned(),
        occurrences: 20,
        sites: 1,
        frames: Some(FrameSpan { first: 0, last: 19, count: 20 }),
        ..Finding::default()
    }
}

/// A barrier that leads to the wrong stage, and the change that makes it right.
fn barrier_without_compute() -> (FindingOperation, FixChange) {
    let line = "    barrier(cmd, emitters, VK_PIPELINE_STAGE_2_COPY_BIT, VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT);";
    let operation = FindingOperation {
        kind: "barrier".to_owned(),
        function: "vkCmdPipelineBarrier2".to_owned(),
        scope: "\"emitters\": COPY -> VERTEX_SHADER".to_owned(),
        gap: "does not reach COMPUTE_SHADER".to_owned(),
        is_near_miss: true,
        src_stages: strings([COPY]),
        src_access: strings([TRANSFER_WRITE]),
        dst_stages: strings([VERTEX]),
        dst_access: strings([STORAGE_READ]),
        place: "command 11 of VkCommandBuffer#0 \"frame\"".to_owned(),
        stack: stack(199, line),
        ..FindingOperation::default()
    };
    let change = FixChange {
        target: "the barrier".to_owned(),
        place: "command 11 of VkCommandBuffer#0 \"frame\"".to_owned(),
        stack: stack(199, line),
        edits: vec![FixEdit {
            field: "dstStageMask".to_owned(),
            before: Some(VERTEX.to_owned()),
            after: format!("{VERTEX} | {COMPUTE}"),
        }],
    };
    (operation, change)
}

/// The same of a program without debug information.
fn without_source() -> Finding {
    let base = with_source();
    let mut accesses = base.accesses.clone();
    for access in &mut accesses {
        access.stack = Stack::default();
        access.labels = Some("Frame::Simulation".to_owned());
    }
    accesses[0].neighbors = Some(NeighborCommands {
        index: 14,
        before: Some("vkCmdBindDescriptorSets".to_owned()),
        after: Some("vkEndCommandBuffer".to_owned()),
    });
    accesses[1].neighbors = Some(NeighborCommands { index: 9, before: None, after: None });
    let mut operations = base.operations.clone();
    operations[0].stack = Stack::default();
    let mut fixes = base.fixes.clone();
    fixes[0].changes[0].stack = Stack::default();
    let site = FindingSite {
        resource: "\"emitters\"[512..1024]".to_owned(),
        function: "vkCmdDispatch".to_owned(),
        place: "command 16 of VkCommandBuffer#0 \"frame\"".to_owned(),
        ..FindingSite::default()
    };
    Finding {
        accesses,
        operations,
        fixes,
        occurrences: 300,
        sites: 6,
        more_sites: vec![site],
        fingerprint: "0123456789abcdef".to_owned(),
        notes: strings(["the semaphore of the presentation does not order commands of one queue"]),
        ..base
    }
}

fn shader_fault() -> Finding {
    let access = FindingAccess {
        role: "access".to_owned(),
        function: "vkCmdDispatch".to_owned(),
        action: "reads e[16]".to_owned(),
        stage: COMPUTE.to_owned(),
        access: STORAGE_READ.to_owned(),
        place: "command 4 of VkCommandBuffer#0 \"frame\"".to_owned(),
        labels: Some("frame::particles".to_owned()),
        ..FindingAccess::default()
    };
    let line = source("shaders/emit.comp", 12, "main", "  float x = e[gl_GlobalInvocationID.x];");
    let shader = FindingAccess {
        role: "shader".to_owned(),
        function: "main".to_owned(),
        stack: Stack { frames: vec![frame(line.clone())] },
        ..FindingAccess::default()
    };
    Finding {
        code: "VUID-vkCmdDispatch-storageBuffers-06936".to_owned(),
        severity: FindingSeverity::Warning,
        title: "e[16] is past the end of buffer \"emitters\" (16 elements)".to_owned(),
        message: "vkCmdDispatch(): a shader loads 4 bytes at offset 64 of a buffer of 64 bytes.".to_owned(),
        function: "vkCmdDispatch".to_owned(),
        accesses: vec![access, shader],
        source: Some(line),
        notes: strings(["65,536 invocations in each of 20 dispatches"]),
        no_fix: Some("the shader has to test the index, or the buffer has to be larger".to_owned()),
        fingerprint: "1111222233334444".to_owned(),
        occurrences: 20,
        ..Finding::default()
    }
}

/// A barrier that is not there at all, in another file than the first access.
fn insertion() -> Finding {
    let base = with_source();
    let mut accesses = base.accesses.clone();
    accesses[1].stack = Stack { frames: vec![frame(source("upload.c", 88, "upload", ""))] };
    let edit = |field: &str, after: &str| FixEdit { field: field.to_owned(), before: None, after: after.to_owned() };
    let change = FixChange {
        target: "before vkCmdDispatch".to_owned(),
        place: "command 14 of VkCommandBuffer#0 \"frame\"".to_owned(),
        stack: accesses[0].stack.clone(),
        edits: vec![
            edit("vkCmdPipelineBarrier2", "VkMemoryBarrier2"),
            edit("srcStageMask", COPY),
            edit("srcAccessMask", TRANSFER_WRITE),
            edit("dstStageMask", COMPUTE),
            edit("dstAccessMask", STORAGE_READ),
        ],
    };
    let fix = FindingFix { text: "insert a barrier".to_owned(), is_verified: true, changes: vec![change] };
    Finding {
        title: "compute shader reads \"emitters\" without any barrier after the copy".to_owned(),
        accesses,
        operations: Vec::new(),
        unrelated_operations: 0,
        fixes: vec![fix],
        fingerprint: "5555666677778888".to_owned(),
        frames: None,
        occurrences: 1,
        ..base
    }
}

/// Names that would do harm where they are not escaped.
fn hostile_names() -> Finding {
    let name = "\"\u{1b}[31m<script>alert('x')</script>\r\n::error::%0A|`]]>\u{202e}\"";
    let access = FindingAccess {
        role: "access".to_owned(),
        function: "vkCmdFillBuffer".to_owned(),
        action: format!("writes {name}"),
        place: format!("command 1 of {name}"),
        ..FindingAccess::default()
    };
    Finding {
        code: "SYNC-HAZARD-WRITE-AFTER-READ".to_owned(),
        severity: FindingSeverity::Performance,
        title: format!("vkCmdFillBuffer writes {name}"),
        accesses: vec![access],
        fingerprint: "9999aaaabbbbcccc".to_owned(),
        library: Some("libfill".to_owned()),
        occurrences: 1,
        ..Finding::default()
    }
}
