//! Gathers the result and the outputs of a call into an image, from its parameters after it returned.
//!
//! Before the call, only the inputs of an output structure are packed: its type, its chain, the capacities of its
//! arrays. The overrides of `codegen` list the return codes that leave outputs unwritten.

use lavascope_abi::desc::{CommandDesc, Field, IntegerLocation, OutputSource, ResultKind, Written};
use lavascope_record::memory::ReadableMemory;

use crate::c_memory::CMemory;

/// Fills `image` with the input of `Packer::pack_outputs`. Returns whether the command has outputs at all.
///
/// `result` is the return value, widened. Outputs that the call did not write are null, so they are not read.
///
/// # Safety
///
/// `parameters` must be the parameter image of a call of this command that returned `result`, and its pointers valid as
/// the specification demands.
pub unsafe fn outputs_image(desc: &CommandDesc, parameters: *const u8, result: u64, image: &mut Vec<u64>) -> bool {
    let Some(outputs) = desc.outputs else { return false };
    // SAFETY: it stays in this function. The function reads parameters and their targets at offsets from the tables of
    // this command. By the contract `parameters` belong to such a call, with valid pointers.
    let memory = unsafe { CMemory::of_this_process() };
    let base = parameters.expose_provenance() as u64;
    let is_written = is_written(outputs.result, result);
    image.clear();
    image.resize(outputs.layout.size as usize / 8, 0);
    for (field, source) in outputs.layout.fields.iter().zip(outputs.sources) {
        let value = match *source {
            OutputSource::Result => result,
            OutputSource::Parameter { is_output: true, .. } if !is_written => 0,
            OutputSource::Parameter { at, .. } => memory.read(base + u64::from(at), width(field) as u8).unwrap_or(0),
            OutputSource::Through(IntegerLocation { through, at, width }) => {
                let owner = memory.follow(base + u64::from(through));
                owner.and_then(|it| memory.read(it + u64::from(at), width)).unwrap_or(0)
            }
        };
        write(image, field.at as usize, value, width(field));
    }
    true
}

fn is_written(kind: ResultKind, result: u64) -> bool {
    match kind {
        ResultKind::Void | ResultKind::Value => true,
        ResultKind::Codes { unwritten, written } => {
            let code = result as u32 as i32;
            !unwritten.contains(&code) && (written == Written::Always || code >= 0)
        }
    }
}

/// Size in bytes of a parameter, a result or a count; at most a word.
fn width(field: &Field) -> usize {
    use lavascope_abi::desc::Ty;
    match field.ty {
        Ty::U8 | Ty::I8 | Ty::Char => 1,
        Ty::U16 | Ty::I16 => 2,
        Ty::U32 | Ty::I32 | Ty::F32 | Ty::Bool32 | Ty::Enum(_) => 4,
        Ty::Flags(desc) => desc.width as usize,
        _ => 8,
    }
}

fn write(image: &mut [u64], at: usize, value: u64, width: usize) {
    let shift = at % 8 * 8;
    let mask = if width == 8 { u64::MAX } else { (1 << (width * 8)) - 1 };
    image[at / 8] |= (value & mask) << shift;
}
