//! Folds known integers and booleans. Floating point is not folded.

use spirv::Op;

use crate::reflect::value::{Loaded, Sum, Value, one_of};

use std::rc::Rc;

/// The widths of an operation's result and of its first operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Widths {
    pub(super) result: u32,
    pub(super) operand: u32,
}

/// The result of an operation on numbers, or on vectors of them.
pub(super) fn compute(op: Op, widths: Widths, values: &[Value]) -> Value {
    if values.iter().all(|it| matches!(it, Value::Const(_))) {
        let numbers: Vec<u64> = values.iter().filter_map(Value::number).collect();
        return fold(op, widths, &numbers).map_or(Value::Unknown, Value::Const);
    }
    let special = absorb(op, values).or_else(|| shift_address(op, widths, values));
    if let Some(value) = special.or_else(|| sum(op, widths, values)) {
        return value;
    }
    if let Some(count) = values.iter().find_map(|it| it.parts().map(<[Value]>::len)) {
        return by_part(op, widths, values, count);
    }
    by_alternative(op, widths, values)
}

/// Results that follow from one operand alone.
fn absorb(op: Op, values: &[Value]) -> Option<Value> {
    let has = |wanted: u64| values.iter().any(|it| it.number() == Some(wanted));
    match op {
        Op::LogicalAnd | Op::IMul | Op::BitwiseAnd if has(0) => Some(Value::Const(0)),
        Op::LogicalOr if has(1) => Some(Value::Const(1)),
        _ => None,
    }
}

/// An address with something added to it.
fn shift_address(op: Op, widths: Widths, values: &[Value]) -> Option<Value> {
    let [left, right] = values else { return None };
    let (base, other) = match (op, left, right) {
        (Op::IAdd | Op::ISub, Value::Loaded(base), other) => (base, other),
        (Op::IAdd, other, Value::Loaded(base)) => (base, other),
        _ => return None,
    };
    if widths.result != 64 {
        return None;
    }
    let by = match (op, other.number()) {
        (Op::ISub, Some(by)) => by.wrapping_neg(),
        (_, by) => by.unwrap_or(0),
    };
    let is_shifted = base.has_unknown_addend || other.number().is_none();
    Some(Value::Loaded(Rc::new(Loaded {
        from: base.from.clone(),
        plus: base.plus.wrapping_add(by),
        has_unknown_addend: is_shifted,
    })))
}

/// More terms than these are not worth keeping.
const TERMS_MAX: usize = 4;

/// Sums, and their multiples.
fn sum(op: Op, widths: Widths, values: &[Value]) -> Option<Value> {
    let width = widths.operand.clamp(1, 64);
    let operand = |value: &Value| match value {
        Value::Sum(item) => Some(Sum::clone(item)),
        Value::Const(constant) => Some(Sum { terms: Vec::new(), plus: sign_extend(*constant, width) }),
        _ => None,
    };
    let sum = match values {
        [one] if matches!(op, Op::UConvert | Op::SConvert | Op::CopyObject) => operand(one)?,
        [left, right] => {
            let (left, right) = (operand(left)?, operand(right)?);
            match op {
                Op::IAdd => add(left, right),
                Op::ISub => add(left, times(right, -1)),
                Op::IMul if left.terms.is_empty() => times(right, left.plus),
                Op::IMul if right.terms.is_empty() => times(left, right.plus),
                Op::ShiftLeftLogical if right.terms.is_empty() && (0..32).contains(&right.plus) => {
                    times(left, 1 << right.plus)
                }
                _ => return None,
            }
        }
        _ => return None,
    };
    (sum.terms.len() <= TERMS_MAX).then(|| Value::Sum(Rc::new(sum)))
}

fn times(mut sum: Sum, factor: i64) -> Sum {
    sum.plus = sum.plus.wrapping_mul(factor);
    sum.terms.iter_mut().for_each(|it| it.factor = it.factor.wrapping_mul(factor));
    sum
}

fn add(mut left: Sum, right: Sum) -> Sum {
    left.plus = left.plus.wrapping_add(right.plus);
    for term in right.terms {
        match left.terms.iter_mut().find(|it| it.quantity == term.quantity) {
            Some(same) => same.factor = same.factor.wrapping_add(term.factor),
            None => left.terms.push(term),
        }
    }
    left
}

fn by_part(op: Op, widths: Widths, values: &[Value], count: usize) -> Value {
    let part = |at: usize| {
        let operands: Option<Vec<Value>> = values.iter().map(|it| Some(it.parts()?.get(at)?.clone())).collect();
        operands.map_or(Value::Unknown, |it| compute(op, widths, &it))
    };
    Value::composite((0..count).map(part).collect())
}

/// Where one operand is one of several numbers.
fn by_alternative(op: Op, widths: Widths, values: &[Value]) -> Value {
    let is_open = |it: &&Value| !matches!(it, Value::Const(_));
    let Some(place) = values.iter().position(|it| matches!(it, Value::OneOf(_))) else { return Value::Unknown };
    if values.iter().filter(is_open).count() > 1 || !values[place].alternatives().iter().all(|it| it.number().is_some())
    {
        return Value::Unknown;
    }
    let alternatives = values[place].alternatives().iter().map(|alternative| {
        let mut all = values.to_vec();
        all[place] = alternative.clone();
        compute(op, widths, &all)
    });
    one_of(alternatives.collect())
}

fn fold(op: Op, widths: Widths, values: &[u64]) -> Option<u64> {
    let width = widths.operand.clamp(1, 64);
    let signed = |it: u64| sign_extend(it, width);
    let bool = |it: bool| Some(u64::from(it));
    let all = match values {
        [one] => match op {
            Op::SNegate => one.wrapping_neg(),
            Op::Not => !one,
            Op::LogicalNot => return bool(*one == 0),
            Op::UConvert | Op::Bitcast | Op::CopyObject => *one,
            Op::SConvert => signed(*one) as u64,
            _ => return None,
        },
        [left, right] => match op {
            Op::IEqual | Op::LogicalEqual => return bool(left == right),
            Op::INotEqual | Op::LogicalNotEqual => return bool(left != right),
            Op::ULessThan => return bool(left < right),
            Op::ULessThanEqual => return bool(left <= right),
            Op::UGreaterThan => return bool(left > right),
            Op::UGreaterThanEqual => return bool(left >= right),
            Op::SLessThan => return bool(signed(*left) < signed(*right)),
            Op::SLessThanEqual => return bool(signed(*left) <= signed(*right)),
            Op::SGreaterThan => return bool(signed(*left) > signed(*right)),
            Op::SGreaterThanEqual => return bool(signed(*left) >= signed(*right)),
            Op::LogicalAnd | Op::BitwiseAnd => left & right,
            Op::LogicalOr | Op::BitwiseOr => left | right,
            Op::BitwiseXor => left ^ right,
            _ => arithmetic(op, width, *left, *right)?,
        },
        _ => return None,
    };
    Some(truncate(all, widths.result.clamp(1, 64)))
}

fn arithmetic(op: Op, width: u32, left: u64, right: u64) -> Option<u64> {
    let (signed_left, signed_right) = (sign_extend(left, width), sign_extend(right, width));
    let shift = u32::try_from(right).ok().filter(|it| *it < width);
    Some(match op {
        Op::IAdd => left.wrapping_add(right),
        Op::ISub => left.wrapping_sub(right),
        Op::IMul => left.wrapping_mul(right),
        Op::UDiv => left.checked_div(right)?,
        Op::UMod => left.checked_rem(right)?,
        Op::SDiv => signed_left.checked_div(signed_right)? as u64,
        Op::SRem => signed_left.checked_rem(signed_right)? as u64,
        // Its result has the sign of the second operand.
        Op::SMod => {
            let rest = signed_left.checked_rem(signed_right)?;
            let differs = rest != 0 && (rest < 0) != (signed_right < 0);
            (if differs { rest.wrapping_add(signed_right) } else { rest }) as u64
        }
        Op::ShiftLeftLogical => left << shift?,
        Op::ShiftRightLogical => left >> shift?,
        Op::ShiftRightArithmetic => (signed_left >> shift?) as u64,
        _ => return None,
    })
}

fn sign_extend(value: u64, width: u32) -> i64 {
    let unused = 64 - width;
    ((value << unused) as i64) >> unused
}

fn truncate(value: u64, width: u32) -> u64 {
    value << (64 - width) >> (64 - width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: Op, left: u64, right: u64) -> Value {
        compute(op, Widths { result: 32, operand: 32 }, &[Value::Const(left), Value::Const(right)])
    }

    #[test]
    fn integers_wrap_at_their_width_and_keep_their_sign() {
        assert_eq!(of(Op::ISub, 0, 1), Value::Const(0xffff_ffff));
        assert_eq!(of(Op::IMul, 0x8000_0001, 2), Value::Const(2));
        assert_eq!(of(Op::SDiv, 0xffff_fffa, 3), Value::Const(0xffff_fffe));
        assert_eq!(of(Op::SMod, 0xffff_ffff, 4), Value::Const(3));
        assert_eq!(of(Op::SRem, 0xffff_ffff, 4), Value::Const(0xffff_ffff));
        assert_eq!(of(Op::UDiv, 1, 0), Value::Unknown);
        assert_eq!(of(Op::ShiftLeftLogical, 1, 32), Value::Unknown);
    }

    #[test]
    fn alternatives_are_computed_one_by_one() {
        let either = one_of(vec![Value::Const(1), Value::Const(2)]);
        let widths = Widths { result: 32, operand: 32 };
        let sum = compute(Op::IAdd, widths, &[either.clone(), Value::Const(10)]);
        assert_eq!(sum, one_of(vec![Value::Const(11), Value::Const(12)]));
        assert_eq!(compute(Op::IAdd, widths, &[either.clone(), either]), Value::Unknown);
        assert_eq!(compute(Op::IMul, widths, &[Value::Unknown, Value::Const(0)]), Value::Const(0));
    }
}
