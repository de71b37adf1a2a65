//! Stages, accesses, the two sides of a dependency, and what it is about.

use lavascope_sync_ir::{Dependency, DependencyTarget, QueueFamilyTransfer, SyncScope};

use crate::error::Result;
use crate::parse::builder::{Operand, OperandUsage, ScenarioBuilder};
use crate::parse::region;
use crate::parse::tokens::{Token, TokenCursor, TokenKind, parse_number};
use crate::parse::words::{access_of, accesses, all_words, implied_access, stage_of, stages};

/// Queue families that are no numbers.
pub(crate) const FAMILIES: [(&str, u32); 3] = [("ignored", !0), ("external", !1), ("foreign", !2)];

/// One side: `stage|stage:access|access`, or `none`.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScopeSide {
    pub(crate) stages: u64,
    pub(crate) access: u64,
}

/// Stages without accesses.
pub(crate) fn parse_stages(cursor: &mut TokenCursor) -> Result<u64> {
    let mut all = 0;
    loop {
        all |= stage(cursor)?;
        if !cursor.take("|") {
            return Ok(all);
        }
    }
}

/// Accesses without stages; `at` is where `read` and `write` are looked up.
pub(crate) fn parse_accesses(cursor: &mut TokenCursor, at: u64) -> Result<u64> {
    let mut all = 0;
    loop {
        all |= access(cursor, at)?;
        if !cursor.take("|") {
            return Ok(all);
        }
    }
}

pub(crate) fn parse_side(cursor: &mut TokenCursor) -> Result<ScopeSide> {
    let mut side = ScopeSide::default();
    let mut has_colon = false;
    loop {
        let is_access = has_colon && cursor.peek().is_some_and(|it| !is_stage(it) || it.kind == TokenKind::Number);
        if is_access {
            side.access |= access(cursor, side.stages)?;
        } else {
            let one = stage(cursor)?;
            side.stages |= one;
            if cursor.take(":") {
                has_colon = true;
                // In `copy|blit:write` both stages are meant, in `copy:write|host:read` the one before the colon.
                let at = if side.access == 0 { side.stages } else { one };
                side.access |= access(cursor, at)?;
            }
        }
        if !cursor.take("|") {
            return Ok(side);
        }
    }
}

pub(crate) fn parse_scope(cursor: &mut TokenCursor) -> Result<SyncScope> {
    let src = parse_side(cursor)?;
    cursor.expect("=>")?;
    let dst = parse_side(cursor)?;
    Ok(SyncScope { src_stages: src.stages, src_access: src.access, dst_stages: dst.stages, dst_access: dst.access })
}

/// Dependencies of version 2, with commas between them; none if the line ends or `and` follows.
pub(crate) fn parse_dependencies(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    operands: &mut Vec<Operand>,
) -> Result<Vec<Dependency>> {
    let mut all = Vec::new();
    if cursor.is_end() || cursor.is("and") {
        return Ok(all);
    }
    loop {
        let scope = parse_scope(cursor)?;
        let what = parse_target(builder, cursor, operands)?;
        all.push(Dependency { scope, target: what });
        if !cursor.take(",") {
            return Ok(all);
        }
    }
}

/// The stages that all dependencies of a version 1 barrier share, and the dependencies.
pub(crate) struct Version1Dependencies {
    pub(crate) src_stages: u64,
    pub(crate) dst_stages: u64,
    pub(crate) dependencies: Vec<Dependency>,
}

/// Version 1: `stages => stages`, then `: access => access what, …`.
pub(crate) fn parse_version_1_dependencies(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    operands: &mut Vec<Operand>,
) -> Result<Version1Dependencies> {
    let src_stages = parse_stages(cursor)?;
    cursor.expect("=>")?;
    let dst_stages = parse_stages(cursor)?;
    let mut all = Vec::new();
    if !cursor.take(":") {
        return Ok(Version1Dependencies { src_stages, dst_stages, dependencies: all });
    }
    loop {
        let src_access = parse_accesses(cursor, src_stages)?;
        cursor.expect("=>")?;
        let dst_access = parse_accesses(cursor, dst_stages)?;
        let what = parse_target(builder, cursor, operands)?;
        all.push(Dependency { scope: SyncScope { src_stages, src_access, dst_stages, dst_access }, target: what });
        if !cursor.take(",") {
            return Ok(Version1Dependencies { src_stages, dst_stages, dependencies: all });
        }
    }
}

fn parse_target(
    builder: &ScenarioBuilder,
    cursor: &mut TokenCursor,
    operands: &mut Vec<Operand>,
) -> Result<DependencyTarget> {
    let mut operand = |cursor: &mut TokenCursor| {
        let column = cursor.column();
        let (resource, region) = region::parse_region(builder, cursor)?;
        operands.push(Operand { resource, region: region.clone(), column, usage: OperandUsage::Any });
        Ok((resource, region))
    };
    if cursor.take("layout") {
        let (resource, region) = operand(cursor)?;
        return Ok(DependencyTarget::Transition { resource, region });
    }
    if cursor.take("owner") {
        let (resource, region) = operand(cursor)?;
        let src_family = family(cursor)?;
        cursor.expect("->")?;
        let dst_family = family(cursor)?;
        let is_transition = cursor.take("layout");
        let ownership = QueueFamilyTransfer { src_family, dst_family, is_transition };
        return Ok(DependencyTarget::QueueFamilyTransfer { resource, region, transfer: ownership });
    }
    if cursor.next_is_word() && !cursor.is("and") {
        let (resource, region) = operand(cursor)?;
        return Ok(DependencyTarget::Resource { resource, region });
    }
    Ok(DependencyTarget::Global)
}

fn family(cursor: &mut TokenCursor) -> Result<u32> {
    if !cursor.next_is_word() {
        return cursor.number32("a queue family");
    }
    let token = cursor.word("a queue family")?;
    let found = FAMILIES.iter().find(|it| it.0 == token.text);
    found.map(|it| it.1).ok_or_else(|| cursor.unknown(token, "queue family", FAMILIES.iter().map(|it| it.0)))
}

fn is_stage(token: Token) -> bool {
    token.text == "none" || stage_of(token.text).is_some()
}

/// One stage word; `none` is no stage.
pub(crate) fn stage(cursor: &mut TokenCursor) -> Result<u64> {
    if let Some(bits) = take_bits(cursor)? {
        return Ok(bits);
    }
    let token = cursor.word("a stage")?;
    if token.text == "none" {
        return Ok(0);
    }
    stage_of(token.text).ok_or_else(|| cursor.unknown(token, "stage", all_words(stages())))
}

pub(crate) fn access(cursor: &mut TokenCursor, at: u64) -> Result<u64> {
    if let Some(bits) = take_bits(cursor)? {
        return Ok(bits);
    }
    let token = cursor.word("an access")?;
    if token.text == "none" {
        return Ok(0);
    }
    if token.text == "read" || token.text == "write" {
        let message = || format!("`{}` can mean several accesses at these stages: name one", token.text);
        return implied_access(at, token.text == "write").ok_or_else(|| cursor.error_at(token.column, message()));
    }
    access_of(token.text).ok_or_else(|| cursor.unknown(token, "access", all_words(accesses())))
}

/// Bits that have no word are hexadecimal.
fn take_bits(cursor: &mut TokenCursor) -> Result<Option<u64>> {
    match cursor.peek() {
        Some(token) if token.kind == TokenKind::Number => {
            cursor.raw_number("bits")?;
            match parse_number(token.text) {
                Some(bits) if token.text.starts_with("0x") => Ok(Some(bits)),
                _ => Err(cursor.error_at(token.column, format!("`{}` is neither a word nor hexadecimal", token.text))),
            }
        }
        _ => Ok(None),
    }
}
