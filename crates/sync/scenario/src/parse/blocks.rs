//! From text to a scenario: the header, the blocks, and the rules that keep files honest.

use lavascope_abi::QueueFlags;
use lavascope_sync_ir::{Command, CommandBuffer, CommandBufferId, HostStep, Queue, QueueId, SubmitBatch};

use crate::check::variation;
use crate::error::{Result, ScenarioError};
use crate::parse::annotation;
use crate::parse::annotation::Comment;
use crate::parse::builder::{NamedObject, ScenarioBuilder, Statement};
use crate::parse::tokens::{Token, TokenCursor, TokenKind, tokens};
use crate::parse::words::nearest_word;
use crate::parse::{command, declare, step};
use crate::{Scenario, ScenarioHeader, ScenarioThread, StatementId, VariationKind};

/// The queue that there is when none is declared.
pub(crate) const IMPLIED_QUEUE: (&str, Queue) =
    ("q", Queue { family: 0, flags: QueueFlags::GRAPHICS.0 | QueueFlags::COMPUTE.0 | QueueFlags::TRANSFER.0 });

/// Reads a scenario; the result obeys all rules.
pub fn parse(text: &str) -> std::result::Result<Scenario, ScenarioError> {
    let lines: Vec<&str> = text.lines().collect();
    let (header, body) = header(&lines)?;
    let (mut builder, comments) = read_body(&lines, body)?;
    let expectations = annotation::resolve(&builder, &comments)?;
    let claims_line = header_line(&lines, "expect:").unwrap_or(1);
    let error = |line, message: &str| Err(ScenarioError { line, column: 1, message: message.to_owned() });
    if header.is_clean && !expectations.is_empty() {
        return error(claims_line, "`expect: clean` and annotations contradict each other: keep one of the two");
    }
    if !header.is_clean && expectations.is_empty() {
        return error(claims_line, "nothing is expected: annotate what must be found, or write `# expect: clean`");
    }
    imply_submission(&mut builder);
    let ScenarioBuilder { program, names, labels, threads, statements, .. } = builder;
    let scenario = Scenario { header, program, names, labels, threads, expectations };
    variation::check(&scenario, &statements, header_line(&lines, "vary:").unwrap_or(1))?;
    Ok(scenario)
}

/// A program without expectations, with the position of each statement; text after `#` does not count.
pub(crate) fn parse_program(text: &str) -> Result<(Scenario, Vec<Statement>)> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut builder, _) = read_body(&lines, 0)?;
    imply_submission(&mut builder);
    let ScenarioBuilder { program, names, labels, threads, statements, .. } = builder;
    Ok((Scenario { program, names, labels, threads, ..Scenario::default() }, statements))
}

/// Where each statement of a text stands; for text of our own, without header and annotations.
pub(crate) fn parse_statements(text: &str) -> Result<Vec<Statement>> {
    let lines: Vec<&str> = text.lines().collect();
    Ok(read_body(&lines, 0)?.0.statements)
}

fn header_line(lines: &[&str], key: &str) -> Option<u32> {
    let at = lines.iter().position(|it| it.strip_prefix('#').is_some_and(|rest| rest.trim_start().starts_with(key)))?;
    Some(at as u32 + 1)
}

/// The header, and the index of the first line behind it.
fn header(lines: &[&str]) -> Result<(ScenarioHeader, usize)> {
    let mut made = ScenarioHeader::default();
    let mut has_expect = false;
    let end = lines.iter().position(|it| !it.starts_with('#')).unwrap_or(lines.len());
    for (at, line) in lines[..end].iter().enumerate() {
        let error = |message: String| ScenarioError { line: at as u32 + 1, column: 3, message };
        let content = line[1..].trim();
        match key_of(content) {
            Some(("spec", value)) => spec(&mut made, value).map_err(error)?,
            Some(("expect", "clean")) if !has_expect => {
                has_expect = true;
                made.is_clean = true;
            }
            Some(("expect", _)) => return Err(error("only `expect: clean` is allowed, and once".to_owned())),
            Some(("vary", value)) => made.vary.push(vary_of(value).map_err(error)?),
            Some((key, _)) => {
                let hint = nearest_word(key, ["spec", "expect", "vary"].into_iter());
                let hint = hint.map_or("allowed: spec, expect, vary".to_owned(), |it| format!("do you mean `{it}`?"));
                return Err(error(format!("`{key}:` is no key of the header; {hint}")));
            }
            None if !made.spec.is_empty() || has_expect || !made.vary.is_empty() => {
                return Err(error("prose stands before the keys".to_owned()));
            }
            None => made.prose.push(content.to_owned()),
        }
    }
    let missing = |message: &str| ScenarioError { line: 1, column: 1, message: message.to_owned() };
    if made.prose.iter().all(|it| it.is_empty()) {
        return Err(missing("a scenario begins with a paragraph of prose behind `#` that says which rule it is about"));
    }
    if made.spec.is_empty() {
        return Err(missing("`# spec: anchor` is missing: name the section of the specification"));
    }
    made.vary.sort();
    made.vary.dedup();
    Ok((made, end))
}

/// A lower-case word with a colon behind it.
fn key_of(content: &str) -> Option<(&str, &str)> {
    let (key, value) = content.split_once(':')?;
    let is_key = !key.is_empty() && key.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
    (is_key && (value.is_empty() || value.starts_with(' '))).then(|| (key, value.trim()))
}

fn spec(header: &mut ScenarioHeader, value: &str) -> std::result::Result<(), String> {
    for anchor in value.split(',').map(str::trim) {
        let is_anchor = anchor.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_');
        if anchor.is_empty() || !is_anchor {
            return Err(format!("`{anchor}` is no anchor: letters, digits, `-` and `_` with commas between"));
        }
        header.spec.push(anchor.to_owned());
    }
    Ok(())
}

fn vary_of(value: &str) -> std::result::Result<VariationKind, String> {
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let found = VariationKind::ALL.into_iter().find(|it| squeezed(it.text()) == squeezed(value));
    let allowed = || VariationKind::ALL.map(|it| format!("`{}`", it.text())).join(", ");
    found.ok_or_else(|| format!("`{value}` is no variation; allowed: {}", allowed()))
}

/// Which block a line that is indented belongs to.
#[derive(Clone, Copy)]
enum OpenBlock {
    None,
    Pass(usize),
    Commands(u32),
    Thread(usize),
}

fn read_body<'a>(lines: &[&'a str], from: usize) -> Result<(ScenarioBuilder, Vec<Comment<'a>>)> {
    let mut builder = ScenarioBuilder::default();
    name_command_buffers(&mut builder, lines, from)?;
    let mut comments = Vec::new();
    let mut block = OpenBlock::None;
    let mut next_buffer = 0;
    for (at, text) in lines.iter().enumerate().skip(from) {
        let line = at as u32 + 1;
        if text.trim().is_empty() {
            continue;
        }
        if text.trim_start().starts_with('#') {
            comments.push(Comment { line, text, statement_line: builder.statements.last().map(|it| it.line) });
            continue;
        }
        let tokens = tokens(line, text)?;
        if text.starts_with(' ') {
            indented(&mut builder, block, line, &tokens)?;
        } else {
            block = read_top_level(&mut builder, line, &tokens, &mut next_buffer)?;
        }
    }
    Ok((builder, comments))
}

/// Command buffers may be named before they are written: a primary may stand above what it executes.
fn name_command_buffers(builder: &mut ScenarioBuilder, lines: &[&str], from: usize) -> Result<()> {
    for (at, text) in lines.iter().enumerate().skip(from) {
        let length = text.bytes().take_while(|it| it.is_ascii_alphanumeric() || *it == b'_').count();
        let first = &text[..length];
        if first != "cmd" && first != "secondary" {
            continue;
        }
        let line = at as u32 + 1;
        let tokens = tokens(line, text)?;
        let mut cursor = TokenCursor::new(line, &tokens);
        cursor.word("cmd")?;
        let name = cursor.word("the name of the command buffer")?;
        let id = CommandBufferId(builder.program.command_buffers.len() as u32);
        let name = builder.define(&cursor, name, NamedObject::CommandBuffer(id))?;
        builder.names.command_buffers.push(name);
        let buffer = CommandBuffer { is_secondary: first == "secondary", commands: Vec::new() };
        builder.program.command_buffers.push(buffer);
    }
    Ok(())
}

fn read_top_level(
    builder: &mut ScenarioBuilder,
    line: u32,
    tokens: &[Token],
    next_buffer: &mut u32,
) -> Result<OpenBlock> {
    let mut cursor = TokenCursor::new(line, tokens);
    let first = tokens[0];
    match first.text {
        "cmd" | "secondary" => {
            let id = *next_buffer;
            *next_buffer += 1;
            in_braces(builder, id, line, &tokens[2..])?;
            Ok(OpenBlock::Commands(id))
        }
        "thread" => {
            cursor.word("thread")?;
            let name = cursor.word("the name of the thread")?.text.to_owned();
            cursor.end()?;
            let now = builder.program.steps.len() as u32;
            builder.threads.push(ScenarioThread { name, steps: now..now });
            Ok(OpenBlock::Thread(builder.threads.len() - 1))
        }
        _ => {
            let is_label = tokens.get(1).is_some_and(|it| it.text == ":");
            if first.kind == TokenKind::Word && !is_label {
                cursor.word("a word")?;
                if declare::parse_declaration(builder, first.text, &mut cursor)? {
                    let is_pass = first.text == "pass";
                    return Ok(if is_pass {
                        OpenBlock::Pass(builder.program.render_passes.len() - 1)
                    } else {
                        OpenBlock::None
                    });
                }
            }
            read_step(builder, line, tokens)?;
            Ok(OpenBlock::None)
        }
    }
}

/// `{ statement; statement }` on the line of the name.
fn in_braces(builder: &mut ScenarioBuilder, id: u32, line: u32, tokens: &[Token]) -> Result<()> {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return Ok(()) };
    let cursor = TokenCursor::new(line, tokens);
    if first.text != "{" {
        return Err(cursor.unexpected("`{` or the end of the line"));
    }
    if last.text != "}" || tokens.len() < 2 {
        return Err(cursor.error_at(last.column, "`}` is missing at the end of the line".to_owned()));
    }
    for statement in tokens[1..tokens.len() - 1].split(|it| it.text == ";") {
        if !statement.is_empty() {
            read_command(builder, id, line, statement)?;
        }
    }
    Ok(())
}

fn indented(builder: &mut ScenarioBuilder, block: OpenBlock, line: u32, tokens: &[Token]) -> Result<()> {
    let mut cursor = TokenCursor::new(line, tokens);
    match block {
        OpenBlock::Pass(at) => declare::parse_pass_line(&mut builder.program.render_passes[at], &mut cursor),
        OpenBlock::Commands(id) => read_command(builder, id, line, tokens),
        OpenBlock::Thread(at) => {
            read_step(builder, line, tokens)?;
            builder.threads[at].steps.end = builder.program.steps.len() as u32;
            Ok(())
        }
        OpenBlock::None => {
            Err(cursor.error_at(cursor.column(), "this line is indented but belongs to no block".to_owned()))
        }
    }
}

fn read_command(builder: &mut ScenarioBuilder, id: u32, line: u32, tokens: &[Token]) -> Result<()> {
    let commands = &builder.program.command_buffers[id as usize].commands;
    let site = StatementId::Command { command_buffer: id, index: commands.len() as u32 };
    let tokens = label(builder, site, line, tokens)?;
    let mut cursor = TokenCursor::new(line, tokens);
    let column = cursor.column();
    let (command, operands) = command::parse_command(builder, &mut cursor)?;
    check_execute(builder, id, &command, &cursor, column)?;
    builder.program.command_buffers[id as usize].commands.push(command);
    builder.statements.push(Statement { id: site, line, column, operands });
    Ok(())
}

/// Only secondary command buffers are executed, and none executes itself: they are written before their users.
fn check_execute(
    builder: &ScenarioBuilder,
    id: u32,
    command: &Command,
    cursor: &TokenCursor,
    column: u32,
) -> Result<()> {
    let Command::Execute(all) = command else { return Ok(()) };
    let own = &builder.program.command_buffers[id as usize];
    for buffer_id in all {
        let is_secondary = builder.program.command_buffers[buffer_id.0 as usize].is_secondary;
        if !is_secondary || (own.is_secondary && buffer_id.0 >= id) {
            let name = &builder.names.command_buffers[buffer_id.0 as usize];
            let why = if is_secondary { "is not written above this one" } else { "is not `secondary`" };
            return Err(cursor.error_at(column, format!("`{name}` cannot be executed: it {why}")));
        }
    }
    Ok(())
}

fn read_step(builder: &mut ScenarioBuilder, line: u32, tokens: &[Token]) -> Result<()> {
    imply_queue(builder);
    let site = StatementId::Step(builder.program.steps.len() as u32);
    let tokens = label(builder, site, line, tokens)?;
    let mut cursor = TokenCursor::new(line, tokens);
    let column = cursor.column();
    let (step, operands) = step::parse_step(builder, &mut cursor)?;
    builder.program.steps.push(step);
    builder.statements.push(Statement { id: site, line, column, operands });
    Ok(())
}

/// Takes `label:` off a statement.
fn label<'a>(
    builder: &mut ScenarioBuilder,
    site: StatementId,
    line: u32,
    tokens: &'a [Token<'a>],
) -> Result<&'a [Token<'a>]> {
    let (Some(name), Some(colon)) = (tokens.first(), tokens.get(1)) else { return Ok(tokens) };
    if name.kind != TokenKind::Word || colon.text != ":" {
        return Ok(tokens);
    }
    let clashes = |pair: (&StatementId, &String)| {
        let is_near = match (pair.0, &site) {
            (StatementId::Command { command_buffer: a, .. }, StatementId::Command { command_buffer: b, .. }) => a == b,
            (StatementId::Step(_), _) | (_, StatementId::Step(_)) => true,
        };
        is_near && pair.1 == name.text
    };
    let cursor = TokenCursor::new(line, tokens);
    if builder.labels.iter().any(clashes) {
        return Err(cursor.error_at(name.column, format!("the label `{}` is used twice", name.text)));
    }
    if tokens.len() == 2 {
        return Err(cursor.error_at(colon.column, "a label needs a statement behind it".to_owned()));
    }
    builder.labels.insert(site, name.text.to_owned());
    Ok(&tokens[2..])
}

fn imply_queue(builder: &mut ScenarioBuilder) {
    if builder.program.queues.is_empty() && builder.define_implied(IMPLIED_QUEUE.0, NamedObject::Queue(QueueId(0))) {
        builder.names.queues.push(IMPLIED_QUEUE.0.to_owned());
        builder.program.queues.push(IMPLIED_QUEUE.1);
    }
}

/// Without steps, everything is submitted to the first queue in one batch.
fn imply_submission(builder: &mut ScenarioBuilder) {
    if !builder.program.steps.is_empty() || !builder.threads.is_empty() {
        return;
    }
    if builder.program.queues.is_empty() {
        builder.names.queues.push(IMPLIED_QUEUE.0.to_owned());
        builder.program.queues.push(IMPLIED_QUEUE.1);
    }
    builder.program.steps = implied_steps(&builder.program.command_buffers);
}

/// The steps of a program without steps.
pub(crate) fn implied_steps(buffers: &[CommandBuffer]) -> Vec<HostStep> {
    let primaries = buffers.iter().enumerate().filter(|it| !it.1.is_secondary);
    let command_buffers: Vec<_> = primaries.map(|it| CommandBufferId(it.0 as u32)).collect();
    if command_buffers.is_empty() {
        return Vec::new();
    }
    let batches = vec![SubmitBatch { command_buffers, ..SubmitBatch::default() }];
    vec![HostStep::Submit { queue: QueueId(0), batches, fence: None }]
}
