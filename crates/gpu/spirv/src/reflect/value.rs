//! The value of an id: a constant, a pointer, a sum of invocation numbers and of values in memory, one of a few, or
//! unknown.
//!
//! Variables of functions hold values too, since compilers pass everything through variables.

use std::rc::Rc;

use crate::reflect::{OffsetTerm, pointer::Pointer};

/// Larger composites are not kept: tables of numbers are rarely indices of anything.
const PARTS_MAX: u32 = 256;
const DEPTH_MAX: u8 = 24;
/// More alternatives than these are as good as not knowing.
const ALTERNATIVES_MAX: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Unknown,
    /// A number or a boolean, with zeros above its width.
    Const(u64),
    Composite(Rc<Composite>),
    Pointer(Rc<Pointer>),
    /// An image, a sampler, an acceleration structure or a tensor, by the descriptor it was loaded from.
    Handle(Rc<Pointer>),
    /// An image and a sampler.
    Sampled(Rc<(Value, Value)>),
    /// A value in memory that the host may know.
    Loaded(Rc<Loaded>),
    /// A number that differs between invocations or runs in a known way.
    Sum(Rc<Sum>),
    /// One of several, none of them of this kind.
    OneOf(Rc<[Value]>),
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Composite {
    parts: Box<[Value]>,
    all: u32,
    depth: u8,
}

/// Terms and a constant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    pub(super) terms: Vec<OffsetTerm>,
    pub(super) plus: i64,
}

/// A value in memory, and a constant that is added to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Loaded {
    pub(super) from: Rc<Pointer>,
    pub(super) plus: u64,
    /// Something unknown was added, too.
    pub(super) has_unknown_addend: bool,
}

impl Value {
    pub(super) fn composite(parts: Vec<Value>) -> Value {
        let weight = |value: &Value| match value {
            Value::Composite(item) => item.all,
            _ => 1,
        };
        let depth = |value: &Value| match value {
            Value::Composite(item) => item.depth,
            _ => 0,
        };
        let all = parts.iter().map(weight).fold(1, u32::saturating_add);
        let depth = parts.iter().map(depth).max().unwrap_or(0) + 1;
        if all > PARTS_MAX || depth > DEPTH_MAX {
            return Value::Unknown;
        }
        Value::Composite(Rc::new(Composite { parts: parts.into(), all, depth }))
    }

    pub(super) fn loaded(from: Rc<Pointer>) -> Value {
        Value::Loaded(Rc::new(Loaded { from, plus: 0, has_unknown_addend: false }))
    }

    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Value::Const(constant) => Some(*constant),
            _ => None,
        }
    }

    /// The alternatives, or the one value.
    pub(super) fn alternatives(&self) -> &[Value] {
        match self {
            Value::OneOf(all) => all,
            one => std::slice::from_ref(one),
        }
    }

    pub(super) fn parts(&self) -> Option<&[Value]> {
        match self {
            Value::Composite(composite) => Some(&composite.parts),
            _ => None,
        }
    }

    /// A copy with another value at a path. `width` returns the number of parts into which an unknown value is split.
    pub(super) fn with_part(&self, path: &[Option<u32>], widths: &[Option<usize>], value: Value) -> Value {
        let Some((first, rest)) = path.split_first() else { return value };
        let width = widths.first().copied().flatten();
        let mut parts = match (self.parts(), width) {
            (Some(parts), _) => parts.to_vec(),
            (None, Some(width)) if width <= PARTS_MAX as usize => vec![Value::Unknown; width],
            (None, _) => return Value::Unknown,
        };
        let deeper = widths.get(1..).unwrap_or(&[]);
        match first {
            Some(first) => match parts.get_mut(*first as usize) {
                Some(part) => *part = part.with_part(rest, deeper, value),
                None => return Value::Unknown,
            },
            None => {
                for part in &mut parts {
                    *part = join(part, &part.with_part(rest, deeper, value.clone()));
                }
            }
        }
        Value::composite(parts)
    }
}

/// A value that may be either.
pub(super) fn join(left: &Value, right: &Value) -> Value {
    if left == right {
        return left.clone();
    }
    if let (Some(left), Some(right)) = (left.parts(), right.parts())
        && left.len() == right.len()
    {
        return Value::composite(left.iter().zip(right).map(|(left, right)| join(left, right)).collect());
    }
    one_of(left.alternatives().iter().chain(right.alternatives()).cloned().collect())
}

/// One of some values, which may repeat.
pub(super) fn one_of(values: Vec<Value>) -> Value {
    if values.len() == 1 {
        return values.into_iter().next().unwrap_or(Value::Unknown);
    }
    let mut all: Vec<Value> = Vec::new();
    for value in values.iter().flat_map(|it| it.alternatives()) {
        if !all.contains(value) {
            all.push(value.clone());
        }
        if all.len() > ALTERNATIVES_MAX {
            return Value::Unknown;
        }
    }
    // Beside something unknown it is worth knowing a pointer, but not a number.
    let is_lost = all.contains(&Value::Unknown) && !all.iter().any(|it| it.is_reference());
    match all.len() {
        _ if is_lost => Value::Unknown,
        0 => Value::Unknown,
        1 => all.swap_remove(0),
        _ => Value::OneOf(all.into()),
    }
}

impl Value {
    /// Whether it leads to a resource.
    fn is_reference(&self) -> bool {
        matches!(self, Value::Pointer(_) | Value::Handle(_) | Value::Sampled(_) | Value::Loaded(_))
    }
}
