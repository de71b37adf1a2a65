//! The records that instrumented shaders write when checks fail, and how they are read.
//!
//! Word 0 of the output table counts the words that shaders wanted to write. Records follow, one behind the other. A
//! record that did not fit was not written at all. The last word of the table has a bit for each site with a record, by
//! the number of its cell modulo 32; [`decode`] does not get this word. The table is zero at the beginning.
//!
//! | word of a record | |
//! | --- | --- |
//! | 0 | the size of the record in words |
//! | 1 | the shader's id, from a specialization constant |
//! | 2 | the number of the site; for prints, the index of the instruction in the original module |
//! | 3 | the stage: the number of its execution model |
//! | 4 to 6 | the invocation ([`ShaderInvocation`]); always three words |
//! | 7 | the error |
//! | 8 and on | the words of the error |
//! | last | optional: how often it happened; without it, once |
//!
//! | error | words |
//! | --- | --- |
//! | 0, index out of bounds | index, length of the array |
//! | 1, never written | index |
//! | 2, address out of bounds | the address, lower half first |
//! | 3, buffer out of bounds | element, index, bytes that are bound; [`crate::IndexUnit`] says what the index counts |
//! | 4, texel out of bounds | texel, number of texels |
//! | 5, printed | the id of the format, then the arguments: vectors by component, 64-bit numbers as two words |
//!
//! Our shaders write one record for each site and draw, and count the rest in the cell of the site, so our records have
//! no count.
//! [`decode`] reads errors 0 to 4, [`decode_prints`] reads error 5.

use spirv::ExecutionModel;

use crate::checks::debug_printf::{PRINTED, PrintfRecord};

/// The words before those of the error.
pub const HEAD_WORDS: u32 = 8;

/// A record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultRecord {
    /// The id of the shader, from a specialization constant.
    pub shader: u32,
    /// The number of the site in its module: an instruction may have several.
    pub site: u32,
    pub invocation: ShaderInvocation,
    pub fault: RecordedFault,
    /// The number of faults: one if the record has none.
    pub count: u32,
}

/// The stage of an invocation, and which invocation it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShaderInvocation {
    Vertex {
        vertex: u32,
        instance: u32,
    },
    TessellationControl {
        invocation: u32,
        primitive: u32,
    },
    TessellationEvaluation {
        primitive: u32,
        coordinates: [f32; 2],
    },
    Geometry {
        primitive: u32,
        invocation: u32,
    },
    Fragment {
        coordinates: [f32; 2],
    },
    Compute {
        invocation: [u32; 3],
    },
    Task {
        invocation: [u32; 3],
    },
    Mesh {
        invocation: [u32; 3],
    },
    /// The stages of ray tracing, by their execution model.
    Ray {
        model: u32,
        launch: [u32; 3],
    },
}

/// The error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedFault {
    /// An index past the end of an array of descriptors.
    IndexOutOfBounds { index: u32, length: u32 },
    /// A descriptor that was never written.
    Uninitialized { index: u32 },
    /// Memory at an address that belongs to no buffer.
    AddressOutOfBounds { address: u64 },
    /// Bytes outside of the bound range of a descriptor. The instruction defines the unit of `index`.
    BufferOutOfBounds { descriptor: u32, index: u32, range: u32 },
    /// A texel past the end of a texel buffer.
    TexelOutOfBounds { texel: u32, length: u32 },
}

/// An error in the words of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    #[error("word {word}: a record of {size} words, where {left} are left")]
    PastEnd { word: usize, size: u32, left: usize },
    #[error("word {word}: a record of {size} words cannot hold error {error}")]
    Size { word: usize, size: u32, error: u32 },
    #[error("word {word}: no error has the code {error}")]
    Code { word: usize, error: u32 },
    #[error("word {word}: no stage has the number {stage}")]
    Stage { word: usize, stage: u32 },
}

impl FaultRecord {
    /// The record as a shader writes it. The count stands behind it unless it is one.
    pub fn encode(&self) -> Vec<u32> {
        let (code, own) = self.fault.words();
        let mut words = vec![0, self.shader, self.site, self.invocation.model()];
        words.extend(self.invocation.words());
        words.push(code);
        words.extend(own);
        if self.count != 1 {
            words.push(self.count);
        }
        words[0] = words.len() as u32;
        words
    }
}

/// The records of a buffer that begins with the number of words that shaders wanted to write.
///
/// Reading ends at a record of no size or at the end, so a buffer that was too small gives all that fit.
pub fn decode(buffer: &[u32]) -> Result<Vec<FaultRecord>, DecodeError> {
    let mut records = Vec::new();
    for_each(buffer, |words, at| {
        if words.get(7) != Some(&PRINTED) {
            records.push(decode_one(words, at)?);
        }
        Ok(())
    })?;
    Ok(records)
}

/// The prints of shaders, in the same buffer.
pub fn decode_prints(buffer: &[u32]) -> Result<Vec<PrintfRecord>, DecodeError> {
    let mut prints = Vec::new();
    for_each(buffer, |words, word| {
        if let &[_, shader, instruction, stage, a, b, c, PRINTED, format, ref arguments @ ..] = words {
            let stage = ShaderInvocation::read(stage, [a, b, c]).ok_or(DecodeError::Stage { word, stage })?;
            prints.push(PrintfRecord { shader, instruction, invocation: stage, format, arguments: arguments.to_vec() });
        }
        Ok(())
    })?;
    Ok(prints)
}

/// Goes through the words of each record, and where it begins.
fn for_each(buffer: &[u32], mut take: impl FnMut(&[u32], usize) -> Result<(), DecodeError>) -> Result<(), DecodeError> {
    let mut at = 1;
    while let Some(&size) = buffer.get(at).filter(|it| **it != 0) {
        let left = buffer.len() - at;
        let words = buffer.get(at..at + size as usize).ok_or(DecodeError::PastEnd { word: at, size, left })?;
        take(words, at)?;
        at += size as usize;
    }
    Ok(())
}

fn decode_one(words: &[u32], word: usize) -> Result<FaultRecord, DecodeError> {
    let size = words.len() as u32;
    let &[_, shader, site, stage, a, b, c, error, ref own @ ..] = words else {
        return Err(DecodeError::Size { word, size, error: 0 });
    };
    let least = own_words(error).ok_or(DecodeError::Code { word, error })?;
    let (own, rest) = own.split_at_checked(least).ok_or(DecodeError::Size { word, size, error })?;
    let count = match rest {
        [] => 1,
        [count] => *count,
        _ => return Err(DecodeError::Size { word, size, error }),
    };
    let stage = ShaderInvocation::read(stage, [a, b, c]).ok_or(DecodeError::Stage { word, stage })?;
    Ok(FaultRecord { shader, site, invocation: stage, fault: RecordedFault::read(error, own), count })
}

/// How many words an error has of its own.
fn own_words(error: u32) -> Option<usize> {
    match error {
        0 | 2 | 4 => Some(2),
        1 => Some(1),
        3 => Some(3),
        _ => None,
    }
}

impl RecordedFault {
    /// The number that stands in the record.
    pub fn code(&self) -> u32 {
        self.words().0
    }

    fn words(&self) -> (u32, Vec<u32>) {
        match *self {
            RecordedFault::IndexOutOfBounds { index, length } => (0, vec![index, length]),
            RecordedFault::Uninitialized { index } => (1, vec![index]),
            RecordedFault::AddressOutOfBounds { address } => (2, vec![address as u32, (address >> 32) as u32]),
            RecordedFault::BufferOutOfBounds { descriptor, index, range } => (3, vec![descriptor, index, range]),
            RecordedFault::TexelOutOfBounds { texel, length } => (4, vec![texel, length]),
        }
    }

    /// `own` has as many words as [`own_words`] says.
    fn read(error: u32, own: &[u32]) -> RecordedFault {
        let word = |at: usize| own.get(at).copied().unwrap_or(0);
        match error {
            0 => RecordedFault::IndexOutOfBounds { index: word(0), length: word(1) },
            1 => RecordedFault::Uninitialized { index: word(0) },
            2 => RecordedFault::AddressOutOfBounds { address: u64::from(word(0)) | u64::from(word(1)) << 32 },
            3 => RecordedFault::BufferOutOfBounds { descriptor: word(0), index: word(1), range: word(2) },
            _ => RecordedFault::TexelOutOfBounds { texel: word(0), length: word(1) },
        }
    }
}

impl ShaderInvocation {
    /// The number that SPIR-V gives to its execution model.
    pub fn model(&self) -> u32 {
        match *self {
            ShaderInvocation::Vertex { .. } => ExecutionModel::Vertex as u32,
            ShaderInvocation::TessellationControl { .. } => ExecutionModel::TessellationControl as u32,
            ShaderInvocation::TessellationEvaluation { .. } => ExecutionModel::TessellationEvaluation as u32,
            ShaderInvocation::Geometry { .. } => ExecutionModel::Geometry as u32,
            ShaderInvocation::Fragment { .. } => ExecutionModel::Fragment as u32,
            ShaderInvocation::Compute { .. } => ExecutionModel::GLCompute as u32,
            ShaderInvocation::Task { .. } => ExecutionModel::TaskEXT as u32,
            ShaderInvocation::Mesh { .. } => ExecutionModel::MeshEXT as u32,
            ShaderInvocation::Ray { model, .. } => model,
        }
    }

    fn words(&self) -> [u32; 3] {
        match *self {
            ShaderInvocation::Vertex { vertex, instance } => [vertex, instance, 0],
            ShaderInvocation::TessellationControl { invocation, primitive } => [invocation, primitive, 0],
            ShaderInvocation::TessellationEvaluation { primitive, coordinates: [u, v] } => {
                [primitive, u.to_bits(), v.to_bits()]
            }
            ShaderInvocation::Geometry { primitive, invocation } => [primitive, invocation, 0],
            ShaderInvocation::Fragment { coordinates: [x, y] } => [x.to_bits(), y.to_bits(), 0],
            ShaderInvocation::Compute { invocation }
            | ShaderInvocation::Task { invocation }
            | ShaderInvocation::Mesh { invocation } => invocation,
            ShaderInvocation::Ray { launch, .. } => launch,
        }
    }

    fn read(model: u32, [a, b, c]: [u32; 3]) -> Option<ShaderInvocation> {
        let invocation = [a, b, c];
        Some(match ExecutionModel::from_u32(model)? {
            ExecutionModel::Vertex => ShaderInvocation::Vertex { vertex: a, instance: b },
            ExecutionModel::TessellationControl => {
                ShaderInvocation::TessellationControl { invocation: a, primitive: b }
            }
            ExecutionModel::TessellationEvaluation => {
                let coordinates = [f32::from_bits(b), f32::from_bits(c)];
                ShaderInvocation::TessellationEvaluation { primitive: a, coordinates }
            }
            ExecutionModel::Geometry => ShaderInvocation::Geometry { primitive: a, invocation: b },
            ExecutionModel::Fragment => {
                ShaderInvocation::Fragment { coordinates: [f32::from_bits(a), f32::from_bits(b)] }
            }
            ExecutionModel::GLCompute => ShaderInvocation::Compute { invocation },
            ExecutionModel::TaskNV | ExecutionModel::TaskEXT => ShaderInvocation::Task { invocation },
            ExecutionModel::MeshNV | ExecutionModel::MeshEXT => ShaderInvocation::Mesh { invocation },
            ExecutionModel::RayGenerationKHR
            | ExecutionModel::IntersectionKHR
            | ExecutionModel::AnyHitKHR
            | ExecutionModel::ClosestHitKHR
            | ExecutionModel::MissKHR
            | ExecutionModel::CallableKHR => ShaderInvocation::Ray { model, launch: invocation },
            ExecutionModel::Kernel => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(error: RecordedFault, count: u32) -> FaultRecord {
        let stage = ShaderInvocation::Fragment { coordinates: [419.5, 254.5] };
        FaultRecord { shader: 7, site: 108, invocation: stage, fault: error, count }
    }

    #[test]
    fn the_record_of_an_image_index_in_a_fragment_shader_has_ten_words() {
        let record = fragment(RecordedFault::IndexOutOfBounds { index: 6, length: 6 }, 1);
        let expected = vec![10, 7, 108, 4, 419.5f32.to_bits(), 254.5f32.to_bits(), 0, 0, 6, 6];
        assert_eq!(record.encode(), expected);
    }

    #[test]
    fn records_come_back_as_they_were_written() {
        let errors = [
            RecordedFault::IndexOutOfBounds { index: 6, length: 6 },
            RecordedFault::Uninitialized { index: 3 },
            RecordedFault::AddressOutOfBounds { address: 0x1234_5678_9abc_def0 },
            RecordedFault::BufferOutOfBounds { descriptor: 1, index: 400, range: 64 },
            RecordedFault::TexelOutOfBounds { texel: 9, length: 4 },
        ];
        let launch = [1, 2, 3];
        let stages = [
            ShaderInvocation::Vertex { vertex: 1, instance: 2 },
            ShaderInvocation::TessellationControl { invocation: 1, primitive: 2 },
            ShaderInvocation::TessellationEvaluation { primitive: 1, coordinates: [0.25, 0.5] },
            ShaderInvocation::Geometry { primitive: 1, invocation: 2 },
            ShaderInvocation::Fragment { coordinates: [0.5, 1.5] },
            ShaderInvocation::Compute { invocation: launch },
            ShaderInvocation::Task { invocation: launch },
            ShaderInvocation::Mesh { invocation: launch },
            ShaderInvocation::Ray { model: 5313, launch },
            ShaderInvocation::Ray { model: 5318, launch },
        ];
        let all: Vec<FaultRecord> = stages
            .iter()
            .flat_map(|stage| errors.iter().map(|error| FaultRecord { invocation: *stage, ..fragment(*error, 1) }))
            .chain(errors.iter().map(|error| fragment(*error, 1_000_000)))
            .collect();
        let mut buffer = vec![0];
        all.iter().for_each(|it| buffer.extend(it.encode()));
        buffer[0] = buffer.len() as u32 - 1;
        assert_eq!(decode(&buffer).as_deref(), Ok(&all[..]));
        // A shader wanted to write more than fits, and the rest is zeros.
        buffer[0] += 1000;
        buffer.extend([0; 8]);
        assert_eq!(decode(&buffer).as_deref(), Ok(&all[..]));
    }

    #[test]
    fn stages_have_the_numbers_of_their_execution_models() {
        for number in (0..=5).chain(5313..=5318) {
            let stage = ShaderInvocation::read(number, [1, 2, 3]).expect("a stage");
            assert_eq!(stage.model(), number);
        }
        assert!(matches!(
            ShaderInvocation::read(0, [1, 2, 0]),
            Some(ShaderInvocation::Vertex { vertex: 1, instance: 2 })
        ));
        assert!(matches!(
            ShaderInvocation::read(3, [1, 2, 0]),
            Some(ShaderInvocation::Geometry { primitive: 1, invocation: 2 })
        ));
        assert!(matches!(
            ShaderInvocation::read(5, [1, 2, 3]),
            Some(ShaderInvocation::Compute { invocation: [1, 2, 3] })
        ));
        assert!(matches!(
            ShaderInvocation::read(5313, [1, 2, 3]),
            Some(ShaderInvocation::Ray { model: 5313, launch: [1, 2, 3] })
        ));
    }

    #[test]
    fn what_is_no_record_is_an_error() {
        let good = fragment(RecordedFault::Uninitialized { index: 3 }, 1).encode();
        let decode_with = |at: usize, word: u32| {
            let mut buffer = vec![0];
            buffer.extend(&good);
            buffer[1 + at] = word;
            decode(&buffer)
        };
        assert_eq!(decode_with(0, 90), Err(DecodeError::PastEnd { word: 1, size: 90, left: 9 }));
        assert_eq!(decode_with(0, 5), Err(DecodeError::Size { word: 1, size: 5, error: 0 }));
        assert_eq!(decode_with(3, 6), Err(DecodeError::Stage { word: 1, stage: 6 }));
        assert_eq!(decode_with(7, 99), Err(DecodeError::Code { word: 1, error: 99 }));
        assert_eq!(decode_with(7, 3), Err(DecodeError::Size { word: 1, size: 9, error: 3 }));
        assert_eq!(decode(&[]), Ok(vec![]));
    }
}
