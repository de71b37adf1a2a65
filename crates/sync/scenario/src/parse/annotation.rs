//! Annotations: `# ^ KIND OBJECT after LABEL` under the operand they are about.

use lavascope_sync_ir::{Area, ImageDesc, ImageRegion, Region, Resource, ResourceKind, UndefinedContentsKind};

use crate::error::{Result, ScenarioError};
use crate::parse::builder::{Operand, ScenarioBuilder, Statement};
use crate::parse::region;
use crate::parse::tokens::{Token, TokenCursor, tokens};
use crate::parse::words::format_desc;
use crate::{Expectation, ExpectedKind, StatementId};

/// A line that begins with `#` behind the header.
pub(crate) struct Comment<'a> {
    pub(crate) line: u32,
    pub(crate) text: &'a str,
    /// The line of the statement above it.
    pub(crate) statement_line: Option<u32>,
}

/// All annotations, with their labels looked up: a label may stand below its annotation.
pub(crate) fn resolve(builder: &ScenarioBuilder, comments: &[Comment]) -> Result<Vec<Expectation>> {
    let mut found: Vec<Expectation> = Vec::new();
    // The line of the statement that the last annotation belongs to.
    let mut open = None;
    for comment in comments {
        let hash = comment.text.find('#').expect("a comment has its sign");
        let rest = &comment.text[hash + 1..];
        let is_known_gap = rest.starts_with('?');
        let rest = rest.strip_prefix('?').unwrap_or(rest);
        if rest.trim_start().starts_with('^') {
            let caret = comment.text.find('^').expect("looked at above");
            found.push(annotation(builder, comment, caret, is_known_gap)?);
            open = comment.statement_line;
        } else {
            let error = |message: &str| error(comment.line, hash as u32 + 1, message);
            let content = rest.trim();
            if !content.starts_with("have: ") && !content.starts_with("need: ") {
                return Err(error(
                    "a comment here is an annotation: put `^` under an operand, or write `have:` or `need:`",
                ));
            }
            match found.last_mut() {
                Some(last) if open == comment.statement_line && open.is_some() => last.extra.push(content.to_owned()),
                _ => return Err(error("`have:` and `need:` stand under an annotation")),
            }
        }
    }
    check_twice(&found)?;
    Ok(found)
}

fn error(line: u32, column: u32, message: &str) -> ScenarioError {
    ScenarioError { line, column, message: message.to_owned() }
}

fn check_twice(found: &[Expectation]) -> Result<()> {
    for (at, one) in found.iter().enumerate() {
        let same = |expectation: &&Expectation| {
            expectation.statement == one.statement
                && expectation.column == one.column
                && expectation.kind == one.kind
                && expectation.after == one.after
                && expectation.region == one.region
        };
        if found[..at].iter().any(|it| same(&it)) {
            return Err(error(one.line, one.column, "the same is expected twice"));
        }
    }
    Ok(())
}

fn annotation(builder: &ScenarioBuilder, comment: &Comment, caret: usize, is_known_gap: bool) -> Result<Expectation> {
    let line = comment.line;
    // Only spaces and signs stand before the caret, so bytes are characters.
    let column = caret as u32 + 1;
    let last = comment.statement_line.ok_or_else(|| error(line, column, "an annotation stands under a statement"))?;
    let blanked = format!("{}{}", " ".repeat(caret + 1), &comment.text[caret + 1..]);
    let tokens = tokens(line, &blanked)?;
    let mut cursor = TokenCursor::new(line, &tokens);
    let kind = kind(&mut cursor)?;
    let object_column = cursor.column();
    let (resource, region) = region::parse_region(builder, &mut cursor)?;
    let (statement, operand) = annotated_operand(builder, &cursor, last, column)?;
    let after = match kind {
        // Nothing came before: that is the error.
        ExpectedKind::Fault(UndefinedContentsKind::AcquireWithoutRelease) => None,
        ExpectedKind::Hazard(_) | ExpectedKind::Fault(_) => {
            cursor.expect("after")?;
            Some(parse_prior_label(builder, &mut cursor, statement.id)?)
        }
    };
    cursor.end()?;
    if let Some((_, operand)) = operand {
        let whole = &builder.program.resources[resource.0 as usize];
        let is_same = operand.resource == resource && contains(whole, &operand.region, &region);
        if !is_same {
            let message = "this is no part of the operand that the `^` points at".to_owned();
            return Err(cursor.error_at(object_column, message));
        }
    }
    let operand = operand.map(|it| it.0);
    let site = statement.id;
    Ok(Expectation {
        line,
        column,
        kind,
        resource,
        region,
        statement: site,
        after,
        operand,
        extra: Vec::new(),
        is_known_gap,
    })
}

fn kind(cursor: &mut TokenCursor) -> Result<ExpectedKind> {
    let token = cursor.word("a kind of hazard")?;
    let found = ExpectedKind::all().find(|it| it.short() == token.text);
    found.ok_or_else(|| cursor.unknown(token, "kind of hazard", ExpectedKind::all().map(ExpectedKind::short)))
}

type AnnotatedOperand<'a> = (&'a Statement, Option<(u32, &'a Operand)>);

/// The statement and operand that begin in a column of a line.
fn annotated_operand<'a>(
    builder: &'a ScenarioBuilder,
    cursor: &TokenCursor,
    line: u32,
    column: u32,
) -> Result<AnnotatedOperand<'a>> {
    let on_line = || builder.statements.iter().filter(|it| it.line == line);
    for statement in on_line() {
        let mut operands = statement.operands.iter().enumerate();
        if let Some((at, operand)) = operands.find(|it| it.1.column == column) {
            return Ok((statement, Some((at as u32, operand))));
        }
        if statement.column == column {
            return Ok((statement, None));
        }
    }
    let columns: Vec<String> = on_line().flat_map(|it| &it.operands).map(|it| it.column.to_string()).collect();
    let message = format!("no operand begins in this column; those of line {line}: {}", columns.join(", "));
    Err(cursor.error_at(column, message))
}

/// `label`, or `cmd.label` for one of another command buffer.
fn parse_prior_label(builder: &ScenarioBuilder, cursor: &mut TokenCursor, here: StatementId) -> Result<StatementId> {
    let first = cursor.word("the label of what comes first")?;
    if cursor.take(".") {
        let label = cursor.word("the label of a command")?;
        let id = builder.names.command_buffers.iter().position(|it| it == first.text);
        let names = builder.names.command_buffers.iter().map(String::as_str);
        let id = id.ok_or_else(|| cursor.unknown(first, "command buffer", names))? as u32;
        let of_buffer =
            |site: &StatementId| matches!(site, StatementId::Command { command_buffer, .. } if *command_buffer == id);
        return find_label(builder, cursor, label, of_buffer);
    }
    let own = match here {
        StatementId::Command { command_buffer, .. } => Some(command_buffer),
        StatementId::Step(_) => None,
    };
    let is_near = |site: &StatementId| match site {
        StatementId::Command { command_buffer, .. } => Some(*command_buffer) == own,
        StatementId::Step(_) => true,
    };
    find_label(builder, cursor, first, is_near)
}

fn find_label(
    builder: &ScenarioBuilder,
    cursor: &TokenCursor,
    token: Token,
    fits: impl Fn(&StatementId) -> bool,
) -> Result<StatementId> {
    let fitting: Vec<(&StatementId, &String)> = builder.labels.iter().filter(|it| fits(it.0)).collect();
    let found = fitting.iter().find(|it| it.1 == token.text);
    let names = fitting.iter().map(|it| it.1.as_str());
    found.map(|it| *it.0).ok_or_else(|| cursor.unknown(token, "label here", names))
}

pub(crate) fn contains(resource: &Resource, outer: &Region, inner: &Region) -> bool {
    match (outer, inner, &resource.kind) {
        (Region::Buffer(outer), Region::Buffer(inner), _) => outer.start <= inner.start && inner.end <= outer.end,
        (Region::Image(outer), Region::Image(inner), ResourceKind::Image(image)) => image_contains(image, outer, inner),
        _ => false,
    }
}

fn image_contains(image: &ImageDesc, outer: &ImageRegion, inner: &ImageRegion) -> bool {
    const COLOR: u32 = 0x1;
    const PLANES: u32 = 0x70;
    let within = |a: &std::ops::Range<u32>, b: &std::ops::Range<u32>| a.start <= b.start && b.end <= a.end;
    // Color is all planes, whose texels are others.
    let has_planes = outer.aspects & COLOR != 0 && inner.aspects & PLANES != 0;
    let aspects = if has_planes { outer.aspects | PLANES } else { outer.aspects };
    let area = match (&outer.area, &inner.area) {
        (None, _) => true,
        // The area may be the whole level; the judge compares exactly.
        (Some(_), None) => true,
        (Some(_), Some(_)) if has_planes => true,
        (Some(outer), Some(inner)) => (0..3).all(|axis| {
            // Blocks are touched as a whole.
            let block = u64::from(format_desc(image.format).map_or(1, |it| it.block_extent[axis]).max(1));
            let end = |it: &Area| u64::from(it.offset[axis]) + u64::from(it.extent[axis]);
            let start = u64::from(outer.offset[axis]) / block * block;
            start <= u64::from(inner.offset[axis]) && end(inner) <= end(outer).next_multiple_of(block)
        }),
    };
    inner.aspects & !aspects == 0 && within(&outer.mips, &inner.mips) && within(&outer.layers, &inner.layers) && area
}
