//! Makes one complete file out of an interrupted trace and its tail.

use std::io;

use crate::error::TraceError;
use crate::format::block::Codec;
use crate::read::tail::Tail;
use crate::read::trace::Trace;
use crate::write::block_writer::BlockWriter;
use crate::write::recorder::{StreamRecord, TraceRecorder};

/// How to complete a file.
pub struct Repair {
    /// Number of bytes that stay.
    pub keep: u64,
    /// The bytes to append.
    pub append: Vec<u8>,
    /// Number of records that came from the tail.
    pub records: u64,
}

/// Computes how to complete a file. Damaged parts inside it stay as they are.
pub fn repair(trace: &Trace<'_>, tail: Option<&Tail>) -> Result<Repair, TraceError> {
    let (keep, sequence) = trace.end();
    let mut writer =
        BlockWriter::resume(Vec::new(), trace.header().version, (keep, sequence), trace.entries().to_vec());
    let failed = |_: io::Error| TraceError::Block { at: keep, what: "there is no memory for the rest of it" };
    let mut recorder = TraceRecorder::default();
    let mut blocks = Vec::new();
    let mut records = 0;
    for stream in tail.iter().flat_map(|it| it.streams()) {
        let Some(tail) = tail.filter(|it| it.header().id == trace.header().id) else { continue };
        let first = trace.stored_words(stream);
        let found = tail.records(stream, first, &mut Vec::new());
        let mut word_offset = first;
        for place in &found.spans {
            let record = &found.words[place.first as usize..place.end as usize];
            let span = word_offset..word_offset + record.len() as u64 + 1;
            word_offset = span.end;
            records += 1;
            recorder.add_record(StreamRecord { stream, span, time: place.time, record }, &mut |raw_block| {
                blocks.push(raw_block)
            });
        }
    }
    recorder.flush(&mut |raw_block| blocks.push(raw_block));
    for block in blocks {
        writer.write_compressed(block, Codec::Zstd).map_err(failed)?;
    }
    let mut moments = trace.seek_points()?;
    moments.extend(recorder.seek_points());
    let append = writer.finish(&moments).map_err(failed)?;
    Ok(Repair { keep, append, records })
}
