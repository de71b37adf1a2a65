//! The canonical text of a scenario. What is printed reads back as the same scenario.
//!
//! In barriers of version 1 the stages of single dependencies mean nothing; those of the command are read back for them.

use lavascope_sync_ir::{
    Attachment, HostStep, Program, Queue, RenderPass, Resource, ResourceKind, Subpass, SubresourceLayout, Tiling,
};

use crate::parse::blocks::{IMPLIED_QUEUE, implied_steps, parse_statements};
use crate::parse::builder::Statement;
use crate::parse::declare::{
    COLOR_LAYOUT, DEPTH_STENCIL_LAYOUT, FORMAT, KINDS, LOADS, READ_LAYOUT, STORES, default_family, layout_of_kind,
};
use crate::parse::region;
use crate::parse::region::{ByteRangeText, image_size};
use crate::parse::words::{QUEUE_WORDS, format_word, layout_word};
use crate::print::print_command::{ProgramPrinter, word_of};
use crate::print::print_scope::scope_text;
use crate::{DeclaredMemory, DeclaredNames, DeclaredSemaphore, Expectation, Scenario, ScenarioHeader, StatementId};

/// The canonical text.
pub fn print(scenario: &Scenario) -> String {
    let body = body(scenario);
    let mut text = header(&scenario.header);
    text.push('\n');
    match parse_statements(&body) {
        Ok(places) => text.push_str(&with_annotations(scenario, &body, &places)),
        Err(error) => text.push_str(&format!("{body}# cannot be read back: {error}\n")),
    }
    text
}

fn header(header: &ScenarioHeader) -> String {
    let mut lines: Vec<String> = header.prose.clone();
    lines.push(format!("spec: {}", header.spec.join(", ")));
    if header.is_clean {
        lines.push("expect: clean".to_owned());
    }
    lines.extend(header.vary.iter().map(|it| format!("vary: {}", it.text())));
    lines.iter().map(|it| format!("{}\n", format!("# {it}").trim_end())).collect()
}

fn with_annotations(scenario: &Scenario, body: &str, places: &[Statement]) -> String {
    let mut text = String::new();
    for (at, line) in body.lines().enumerate() {
        text.push_str(line);
        text.push('\n');
        let mut here: Vec<(u32, &Statement, &Expectation)> = Vec::new();
        for place in places.iter().filter(|it| it.line == at as u32 + 1) {
            for expected in scenario.expectations.iter().filter(|it| it.statement == place.id) {
                let operand = expected.operand.and_then(|it| place.operands.get(it as usize));
                here.push((operand.map_or(place.column, |it| it.column), place, expected));
            }
        }
        here.sort_by_key(|it| (it.0, it.2.kind, it.2.after, region_key(&it.2.region)));
        for (column, place, expected) in here {
            text.push_str(&annotation(scenario, column, place.column, expected));
        }
    }
    text
}

fn region_key(region: &lavascope_sync_ir::Region) -> (u64, u64) {
    match region {
        lavascope_sync_ir::Region::Buffer(range) => (range.start, range.end),
        lavascope_sync_ir::Region::Image(image) => (u64::from(image.mips.start), u64::from(image.layers.start)),
    }
}

fn annotation(scenario: &Scenario, caret: u32, statement: u32, expected: &Expectation) -> String {
    let hash = if caret >= statement + 2 { statement } else { 1 };
    let sign = if expected.is_known_gap { "#?" } else { "#" };
    let start = format!("{}{sign}", " ".repeat(hash as usize - 1));
    let pad = " ".repeat((caret as usize - 1).saturating_sub(start.len()));
    let at = expected.resource.0 as usize;
    let resource = &scenario.program.resources[at];
    let object = region::region_text(&scenario.names.resources[at], resource, &expected.region, ByteRangeText::Always);
    let after =
        expected.after.map_or(String::new(), |it| format!(" after {}", label(scenario, expected.statement, it)));
    let mut text = format!("{start}{pad}^ {} {object}{after}\n", expected.kind.short());
    for extra in &expected.extra {
        text.push_str(&format!("{start}{pad}  {extra}\n"));
    }
    text
}

/// A label as seen from a place; with the command buffer if that is another one.
pub(crate) fn label(scenario: &Scenario, from: StatementId, to: StatementId) -> String {
    let Some(name) = scenario.labels.get(&to) else {
        return match to {
            StatementId::Command { command_buffer, index } => {
                format!("{} command {index}", scenario.names.command_buffers[command_buffer as usize])
            }
            StatementId::Step(step) => format!("step {step}"),
        };
    };
    match (from, to) {
        (StatementId::Command { command_buffer: a, .. }, StatementId::Command { command_buffer: b, .. }) if a == b => {
            name.clone()
        }
        (_, StatementId::Command { command_buffer, .. }) => {
            format!("{}.{name}", scenario.names.command_buffers[command_buffer as usize])
        }
        (_, StatementId::Step(_)) => name.clone(),
    }
}

/// Everything but the header and the annotations.
fn body(scenario: &Scenario) -> String {
    let mut sections = vec![declarations(scenario)];
    let program = &scenario.program;
    for (name, pass) in scenario.names.render_passes.iter().zip(&program.render_passes) {
        sections.push(pass_lines(name, pass));
    }
    for (at, buffer) in program.command_buffers.iter().enumerate() {
        let word = if buffer.is_secondary { "secondary" } else { "cmd" };
        let mut lines = vec![format!("{word} {}", scenario.names.command_buffers[at])];
        let named = ProgramPrinter { program, names: &scenario.names };
        let texts: Vec<String> = buffer.commands.iter().map(|it| named.command(it)).collect();
        let site = |index: usize| StatementId::Command { command_buffer: at as u32, index: index as u32 };
        lines.extend(labeled(scenario, "  ", texts, site));
        sections.push(lines);
    }
    sections.extend(steps(scenario));
    sections.retain(|it| !it.is_empty());
    sections.iter().map(|it| it.join("\n") + "\n").collect::<Vec<_>>().join("\n")
}

/// Statements in one column behind their labels.
fn labeled(scenario: &Scenario, indent: &str, texts: Vec<String>, site: impl Fn(usize) -> StatementId) -> Vec<String> {
    let labels: Vec<&str> =
        (0..texts.len()).map(|it| scenario.labels.get(&site(it)).map_or("", String::as_str)).collect();
    let width = labels.iter().map(|it| it.len()).max().unwrap_or(0);
    let line = |(text, label): (&String, &&str)| match (width, label.is_empty()) {
        (0, _) => format!("{indent}{text}"),
        (_, true) => format!("{indent}{}{text}", " ".repeat(width + 2)),
        (_, false) => format!("{indent}{label}:{}{text}", " ".repeat(width + 1 - label.len())),
    };
    texts.iter().zip(&labels).map(line).collect()
}

fn steps(scenario: &Scenario) -> Vec<Vec<String>> {
    let program = &scenario.program;
    let has_label = scenario.labels.keys().any(|it| matches!(it, StatementId::Step(_)));
    if scenario.threads.is_empty() && !has_label && program.steps == implied_steps(&program.command_buffers) {
        return Vec::new();
    }
    let named = ProgramPrinter { program, names: &scenario.names };
    let block = |indent: &str, from: u32, to: u32| {
        let texts = program.steps[from as usize..to as usize].iter().map(|it| named.step(it)).collect();
        // A line of its own that is labeled has nothing to line up with at the left edge.
        labeled_steps(scenario, indent, texts, from)
    };
    let mut sections = Vec::new();
    let mut now = 0;
    for thread in &scenario.threads {
        sections.push(block("", now, thread.steps.start));
        let mut lines = vec![format!("thread {}", thread.name)];
        lines.extend(block("  ", thread.steps.start, thread.steps.end));
        sections.push(lines);
        now = thread.steps.end;
    }
    sections.push(block("", now, program.steps.len() as u32));
    sections
}

fn labeled_steps(scenario: &Scenario, indent: &str, texts: Vec<String>, from: u32) -> Vec<String> {
    if indent.is_empty() {
        let line = |(at, text): (usize, &String)| match scenario.labels.get(&StatementId::Step(from + at as u32)) {
            Some(label) => format!("{label}: {text}"),
            None => text.clone(),
        };
        return texts.iter().enumerate().map(line).collect();
    }
    labeled(scenario, indent, texts, |at| StatementId::Step(from + at as u32))
}

fn declarations(scenario: &Scenario) -> Vec<String> {
    let Scenario { names, program, .. } = scenario;
    let mut lines: Vec<String> = names.memories.iter().map(|it| format!("memory {} {}", it.name, it.size)).collect();
    let kinds: Vec<String> = program.resources.iter().map(|it| resource_text(names, it)).collect();
    lines.extend(grouped(&names.resources, &kinds).map(|(group, kind)| {
        let (word, rest) = kind.split_once(' ').expect("a resource has a word and more");
        format!("{word} {group} {rest}")
    }));
    let is_implied = program.queues == [IMPLIED_QUEUE.1] && names.queues == [IMPLIED_QUEUE.0];
    if !program.queues.is_empty() && !is_implied {
        lines.push(queues(&names.queues, &program.queues));
    }
    if !names.events.is_empty() {
        lines.push(format!("event {}", names.events.join(" ")));
    }
    let words: Vec<String> =
        names.semaphores.iter().map(|it| if it.is_timeline { "timeline" } else { "semaphore" }.to_owned()).collect();
    let semaphores: Vec<String> = names.semaphores.iter().map(|it| it.name.clone()).collect();
    lines.extend(grouped(&semaphores, &words).map(|(group, word)| format!("{word} {group}")));
    if !names.fences.is_empty() {
        lines.push(format!("fence {}", names.fences.join(" ")));
    }
    lines
}

/// Neighbors with the same text share a line.
fn grouped<'a>(names: &'a [String], kinds: &'a [String]) -> impl Iterator<Item = (String, &'a str)> {
    let pairs: Vec<(&String, &String)> = names.iter().zip(kinds).collect();
    let groups: Vec<(String, &str)> = pairs
        .chunk_by(|a, b| a.1 == b.1)
        .map(|it| (it.iter().map(|it| it.0.as_str()).collect::<Vec<_>>().join(" "), it[0].1.as_str()))
        .collect();
    groups.into_iter()
}

fn resource_text(names: &DeclaredNames, resource: &Resource) -> String {
    let (mut text, own_size) = match &resource.kind {
        ResourceKind::Buffer { size } => (format!("buffer {size}"), *size),
        ResourceKind::Image(image) => {
            let [width, height, depth] = image.extent;
            let mut text = format!("image {width}x{height}");
            if depth != 1 {
                text = format!("{text}x{depth}");
            }
            if image.format != FORMAT {
                text = format!("{text} format={}", format_word(image.format));
            }
            for (word, count) in [("mips", image.mips), ("layers", image.layers)] {
                if count != 1 {
                    text = format!("{text} {word}={count}");
                }
            }
            text.push_str(&tiling(&image.tiling));
            if image.alias {
                text.push_str(" alias");
            }
            (text, image_size(image))
        }
    };
    if resource.is_exclusive {
        text.push_str(" exclusive");
    }
    if resource.is_sparse {
        text.push_str(" sparse");
    }
    if let Some(binding) = &resource.binding {
        text = format!("{text} at {}+{}", names.memories[binding.memory.0 as usize].name, binding.offset);
        if binding.size != own_size {
            text = format!("{text} size={}", binding.size);
        }
    }
    text
}

fn tiling(tiling: &Tiling) -> String {
    let layouts = match tiling {
        Tiling::Optimal => return String::new(),
        Tiling::Linear => return " linear".to_owned(),
        Tiling::Pitched(layouts) => layouts,
    };
    let layout = |subresource_layout: &SubresourceLayout| {
        let parts = [
            ("offset", subresource_layout.offset),
            ("row", subresource_layout.row_pitch),
            ("slice", subresource_layout.depth_pitch),
            ("layer", subresource_layout.array_pitch),
        ];
        let texts: Vec<String> =
            parts.iter().filter(|it| it.1 != 0 || it.0 == "row").map(|pair| format!("{}={}", pair.0, pair.1)).collect();
        format!(" ({})", texts.join(" "))
    };
    format!(" linear{}", layouts.iter().map(layout).collect::<String>())
}

fn queues(names: &[String], queues: &[Queue]) -> String {
    let mut text = "queue".to_owned();
    for (at, queue) in queues.iter().enumerate() {
        let mut words: Vec<String> =
            QUEUE_WORDS.iter().filter(|it| queue.flags & it.1 != 0).map(|it| it.0.to_owned()).collect();
        let rest = queue.flags & !QUEUE_WORDS.iter().fold(0, |all, it| all | it.1);
        if rest != 0 || words.is_empty() {
            words.push(format!("{rest:#x}"));
        }
        text = format!("{text} {}: {}", names[at], words.join("|"));
        if queue.family != default_family(&queues[..at], queue.flags) {
            text = format!("{text} family={}", queue.family);
        }
    }
    text
}

fn pass_lines(name: &str, pass: &RenderPass) -> Vec<String> {
    let mut lines = vec![format!("pass {name}")];
    lines.extend(pass.attachments.iter().map(|it| format!("  attachment {}", attachment(it))));
    lines.extend(pass.subpasses.iter().map(|it| format!("  subpass {}", subpass(it)).trim_end().to_owned()));
    for dependency in &pass.dependencies {
        let number = |it: Option<u32>| it.map_or("external".to_owned(), |it| it.to_string());
        let mut line = format!(
            "  dependency {} => {}: {}",
            number(dependency.src),
            number(dependency.dst),
            scope_text(&dependency.scope)
        );
        match dependency.view_offset {
            None => {}
            Some(0) => line.push_str(" view_local"),
            Some(offset) => line = format!("{line} view_local={offset}"),
        }
        lines.push(line);
    }
    lines
}

fn attachment(item: &Attachment) -> String {
    let mut text = word_of(&KINDS, item.kind).to_owned();
    let layout = layout_of_kind(item.kind);
    let loads = [("load", item.load), ("stencil_load", item.stencil_load)];
    let stores = [("store", item.store), ("stencil_store", item.stencil_store)];
    for ((load, load_op), (store, store_op)) in loads.into_iter().zip(stores) {
        if word_of(&LOADS, load_op) != "load" {
            text = format!("{text} {load}={}", word_of(&LOADS, load_op));
        }
        if word_of(&STORES, store_op) != "store" {
            text = format!("{text} {store}={}", word_of(&STORES, store_op));
        }
    }
    for (word, value) in [("initial", item.initial_layout), ("final", item.final_layout)] {
        if value != layout {
            text = format!("{text} {word}={}", layout_word(value));
        }
    }
    text
}

fn subpass(item: &Subpass) -> String {
    let reference = |word: &str, number: u32, layout: i32, default: i32| match layout == default {
        true => format!("{word} {number}"),
        false => format!("{word} {number} as {}", layout_word(layout)),
    };
    let mut uses: Vec<String> = Vec::new();
    uses.extend(item.inputs.iter().map(|it| reference("input", it.0, it.1, READ_LAYOUT)));
    uses.extend(item.colors.iter().map(|it| reference("color", it.0, it.1, COLOR_LAYOUT)));
    uses.extend(
        item.resolves
            .iter()
            .map(|it| reference(&format!("resolve {} to", it.source), it.target, it.layout, COLOR_LAYOUT)),
    );
    uses.extend(item.depth_stencil.iter().map(|it| reference("depth", it.0, it.1, DEPTH_STENCIL_LAYOUT)));
    let resolve = item.depth_stencil_resolve.iter();
    uses.extend(resolve.map(|it| reference("depth_resolve", it.0, it.1, DEPTH_STENCIL_LAYOUT)));
    uses.extend(item.preserves.iter().map(|it| format!("preserve {it}")));
    if item.view_mask != 0 {
        uses.push(format!("views={:#x}", item.view_mask));
    }
    uses.join(", ")
}

impl Scenario {
    /// A program that was not read from text, with generated names and without expectations.
    pub fn of(program: Program) -> Scenario {
        let header = ScenarioHeader {
            prose: vec!["A program that was not written by hand.".to_owned()],
            spec: vec!["synchronization".to_owned()],
            is_clean: true,
            vary: Vec::new(),
        };
        Scenario { header, names: DeclaredNames::of(&program), program, ..Scenario::default() }
    }
}

impl DeclaredNames {
    /// Names for a program that has none.
    pub fn of(program: &Program) -> DeclaredNames {
        let numbered = |letter: &str, count: usize| (0..count).map(|it| format!("{letter}{it}")).collect();
        let resource = |(at, item): (usize, &Resource)| match item.kind {
            ResourceKind::Buffer { .. } => format!("b{at}"),
            ResourceKind::Image(_) => format!("i{at}"),
        };
        let timelines = timelines(program);
        DeclaredNames {
            memories: memories(program),
            resources: program.resources.iter().enumerate().map(resource).collect(),
            queues: numbered("q", program.queues.len()),
            command_buffers: numbered("c", program.command_buffers.len()),
            events: numbered("e", program.event_count as usize),
            semaphores: (0..program.semaphore_count)
                .map(|it| DeclaredSemaphore { name: format!("s{it}"), is_timeline: timelines.contains(&it) })
                .collect(),
            fences: numbered("f", program.fence_count as usize),
            render_passes: numbered("p", program.render_passes.len()),
        }
    }
}

fn memories(program: &Program) -> Vec<DeclaredMemory> {
    let own = program.resources.iter().filter_map(|it| it.binding).map(|it| (it.memory.0, it.offset + it.size));
    let binds =
        program.steps.iter().flat_map(|it| if let HostStep::BindSparse { binds, .. } = it { &binds[..] } else { &[] });
    let sparse = binds.filter_map(|it| it.memory.map(|(memory, offset)| (memory.0, offset + it.size)));
    let ends: Vec<(u32, u64)> = own.chain(sparse).collect();
    let count = ends.iter().map(|it| it.0 + 1).max().unwrap_or(0);
    let end = |memory: u32| ends.iter().filter(|it| it.0 == memory).map(|it| it.1).max();
    (0..count).map(|it| DeclaredMemory { name: format!("m{it}"), size: end(it).unwrap_or(0) }).collect()
}

fn timelines(program: &Program) -> Vec<u32> {
    let mut found = Vec::new();
    for step in &program.steps {
        let points: Vec<lavascope_sync_ir::SemaphorePoint> = match step {
            HostStep::Submit { batches, .. } => batches
                .iter()
                .flat_map(|it| it.waits.iter().map(|it| it.point).chain(it.signals.iter().map(|it| it.point)))
                .collect(),
            HostStep::WaitSemaphores(points) => points.clone(),
            HostStep::SignalSemaphore(point) => vec![*point],
            HostStep::BindSparse { waits, signals, .. } => waits.iter().chain(signals).copied().collect(),
            _ => Vec::new(),
        };
        found.extend(points.iter().filter(|it| it.value.is_some()).map(|it| it.semaphore.0));
    }
    found
}
