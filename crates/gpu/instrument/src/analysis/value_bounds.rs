//! Upper bounds of numbers, read as unsigned.

use lavascope_spirv::{Id, Module};
use spirv::{BuiltIn, Decoration, ExecutionMode, GlslStd450Op, Op};

use crate::analysis::types::Types;

const DEPTH_MAX: u32 = 12;

pub(crate) struct ValueBounds<'a> {
    module: &'a Module,
    /// The largest workgroup of all entry points, if their sizes are constant.
    group: Option<[u64; 3]>,
}

impl<'a> ValueBounds<'a> {
    pub(crate) fn new(module: &'a Module, types: &Types<'_>) -> ValueBounds<'a> {
        ValueBounds { module, group: group_size(module, types) }
    }

    /// The number is at most this.
    pub(crate) fn upper_bound(&self, types: &Types<'_>, id: Id) -> Option<u64> {
        self.upper_bound_within(types, id, 0)
    }

    fn upper_bound_within(&self, types: &Types<'_>, id: Id, depth: u32) -> Option<u64> {
        if let Some(known) = types.literal(id) {
            return Some(known);
        }
        let instruction = self.module.definition(id).filter(|_| depth < DEPTH_MAX)?;
        let of = |place: usize| self.upper_bound_within(types, instruction.id(place), depth + 1);
        let width = || instruction.result_type().and_then(|value| types.integer(value)).map(|pair| pair.0);
        let all_ones = |bits: u32| u64::MAX >> (64 - bits.clamp(1, 64));
        match instruction.op()? {
            Op::BitwiseAnd => match (of(3), of(4)) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            },
            Op::UMod => of(4).filter(|it| *it > 0).map(|it| it - 1),
            Op::UDiv => of(3).zip(types.literal(instruction.id(4))).and_then(|(left, right)| left.checked_div(right)),
            Op::ShiftRightLogical => {
                let shift = types.literal(instruction.id(4)).filter(|it| *it < 64)?;
                Some(of(3).unwrap_or(all_ones(width()?)) >> shift)
            }
            Op::BitFieldUExtract => {
                types.literal(instruction.id(5)).filter(|it| (1..64).contains(it)).map(|it| all_ones(it as u32))
            }
            Op::Select => of(4).zip(of(5)).map(|(left, right)| left.max(right)),
            Op::IAdd => fitting(of(3)?.checked_add(of(4)?)?, all_ones(width()?)),
            Op::IMul => fitting(of(3)?.checked_mul(of(4)?)?, all_ones(width()?)),
            Op::UConvert => {
                let (bits, _) = types.integer(types.of_value(instruction.id(3))?)?;
                Some(of(3).unwrap_or(all_ones(bits)).min(all_ones(width()?)))
            }
            Op::CopyObject => of(3),
            // The same bits; another sign makes no difference here.
            Op::Bitcast => {
                let (bits, _) = types.integer(types.of_value(instruction.id(3))?)?;
                (Some(bits) == width()).then(|| of(3)).flatten()
            }
            Op::ExtInst if self.is_glsl(instruction.id(3)) => match GlslStd450Op::from_u32(instruction.word(4))? {
                GlslStd450Op::UMin => match (of(5), of(6)) {
                    (Some(left), Some(right)) => Some(left.min(right)),
                    (left, right) => left.or(right),
                },
                GlslStd450Op::UMax => of(5).zip(of(6)).map(|(left, right)| left.max(right)),
                GlslStd450Op::UClamp => of(7),
                _ => None,
            },
            Op::CompositeExtract if instruction.words().len() == 5 => {
                let vector = self.module.definition(instruction.id(3)).filter(|it| it.is(Op::Load))?;
                self.built_in(vector.id(3), Some(instruction.word(4)))
            }
            Op::Load => {
                let chain = self.module.definition(instruction.id(3))?;
                match chain.op()? {
                    Op::AccessChain | Op::InBoundsAccessChain if chain.words().len() == 5 => {
                        self.built_in(chain.id(3), Some(types.literal(chain.id(4))? as u32))
                    }
                    _ => self.built_in(instruction.id(3), None),
                }
            }
            _ => None,
        }
    }

    /// The numbers of an invocation in its group are below the group's size.
    fn built_in(&self, variable: Id, component: Option<u32>) -> Option<u64> {
        let group = self.group?;
        let what = self.module.decoration_operand(variable, None, Decoration::BuiltIn)?;
        let size = match (BuiltIn::from_u32(what)?, component) {
            (BuiltIn::LocalInvocationId, Some(component)) => *group.get(component as usize)?,
            (BuiltIn::LocalInvocationIndex, None) => group.iter().try_fold(1u64, |all, it| all.checked_mul(*it))?,
            _ => return None,
        };
        size.checked_sub(1)
    }

    fn is_glsl(&self, set: Id) -> bool {
        self.module.definition(set).is_some_and(|it| it.is(Op::ExtInstImport) && it.text(2) == "GLSL.std.450")
    }
}

fn fitting(number: u64, most: u64) -> Option<u64> {
    Some(number).filter(|it| *it <= most)
}

/// The largest size of all entry points in each direction. None if it may be specialized.
fn group_size(module: &Module, types: &Types<'_>) -> Option<[u64; 3]> {
    let mut found: Option<[u64; 3]> = None;
    let mut take = |size: [u64; 3]| {
        let before = found.unwrap_or([0; 3]);
        found = Some([0, 1, 2].map(|at| size[at].max(before[at])));
    };
    let constants = |ids: &[u32]| {
        let ids: [u32; 3] = ids.try_into().ok()?;
        let [x, y, z] = ids.map(|it| types.literal(Id(it)));
        Some([x?, y?, z?])
    };
    for instruction in module.instructions(module.globals()) {
        match instruction.op() {
            Some(Op::ExecutionMode) if instruction.word(2) == ExecutionMode::LocalSize as u32 => {
                take([instruction.word(3), instruction.word(4), instruction.word(5)].map(u64::from));
            }
            Some(Op::ExecutionModeId) if instruction.word(2) == ExecutionMode::LocalSizeId as u32 => {
                take(constants(instruction.words_from(3))?);
            }
            Some(Op::Decorate)
                if instruction.word(2) == Decoration::BuiltIn as u32
                    && instruction.word(3) == BuiltIn::WorkgroupSize as u32 =>
            {
                take(constants(
                    module.definition(instruction.id(1)).filter(|it| it.is(Op::ConstantComposite))?.words_from(3),
                )?);
            }
            _ => {}
        }
    }
    found
}
