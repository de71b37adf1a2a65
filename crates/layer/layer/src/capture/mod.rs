//! Captures every call in a trace file. Threads of the layer collect the records of the streams, compress them and write
//! them.
//!
//! While capturing, each record in a stream has one word more, its time. The reader thread passes each record to
//! [`Capture::add_record`]. Blocks go through a bounded queue to the writer thread, which compresses and writes them
//! (`file_writer`). If the disk is full, the capture ends with a valid file, and the application continues.
//!
//! The memory of the streams is a mapped file beside the trace (`tail_storage`). A chunk of it is reused only after its
//! words are in the trace. After `kill -9`, the trace and the tail together therefore have every complete record.

pub(crate) mod device_metadata;
mod file_writer;
mod range;
mod tail_storage;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lavascope_platform::files::{self, FileLock};
use lavascope_settings::{Compression, Settings};
use lavascope_stream::{Merger, OrderedRecord, TIME_MASK, ticks, ticks_per_second};
use lavascope_trace::{BlockWriter, Codec, RawBlock, StreamRecord, TraceHeader, TraceRecorder};
use serde_json::json;

use crate::process::process_state::PROCESS_STATE;
use crate::report::report_file;
use file_writer::FileWriter;
use range::CaptureRange;
use tail_storage::TailStorage;

/// Words that are collected before they become blocks: one megabyte.
const WORDS_MAX: usize = 1 << 17;
/// How long the rate of the clock is measured at first. The value at the end of the capture is more exact.
const CLOCK_MEASURE_TIME: Duration = Duration::from_millis(2);

/// A running capture.
pub(crate) struct Capture {
    path: PathBuf,
    recorder: TraceRecorder,
    writer: FileWriter,
    tail: Arc<TailStorage>,
    began: (Instant, u64),
    /// The time of the last record, for records without a time of their own.
    last_time: u64,
    last_flush: Instant,
    flush_interval: Duration,
    range: CaptureRange,
    is_broken: bool,
}

impl Capture {
    /// Begins a capture as the settings demand.
    pub(crate) fn begin(path: &Path, settings: &Settings) -> Result<Capture, String> {
        let failed = |it: io::Error| format!("{} cannot be written: {it}", path.display());
        let (path, file) = create(path).map_err(failed)?;
        let speed = ticks_per_second(CLOCK_MEASURE_TIME);
        let began = (Instant::now(), ticks());
        let id = random_id();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let header = TraceHeader {
            version: lavascope_trace::VERSION,
            id,
            began: now.as_nanos() as u64,
            ticks_per_second: speed,
        };
        let mut writer = BlockWriter::new(file, header).map_err(failed)?;
        writer.write(RawBlock::metadata(&trace_metadata(settings)).compress(Codec::Zstd)).map_err(failed)?;
        let range = CaptureRange::new(settings);
        if let Some(metadata) = range.metadata() {
            writer.write(RawBlock::metadata(&metadata).compress(Codec::Zstd)).map_err(failed)?;
        }
        let tail = Arc::new(TailStorage::create(&tail_path(&path), id, began.1).map_err(failed)?);
        let every = Duration::from_millis(settings.capture_flush_ms);
        let codec = match settings.capture_compression {
            Compression::Zstd => Codec::Zstd,
            Compression::Lz4 => Codec::Lz4,
            Compression::None => Codec::None,
        };
        let writer = FileWriter::start(writer, codec, every).map_err(failed)?;
        PROCESS_STATE.stream_control.set_storage(Some(tail.clone()));
        let (recorder, flushed) = (TraceRecorder::with_rounded_times(speed), Instant::now());
        Ok(Capture {
            path,
            recorder,
            writer,
            tail,
            began,
            last_time: 0,
            last_flush: flushed,
            flush_interval: every,
            range,
            is_broken: false,
        })
    }

    /// Adds the next record of a thread.
    pub(crate) fn add_record(&mut self, ordered: &OrderedRecord<'_>) {
        if self.is_broken || self.range.is_over() {
            return;
        }
        self.range.count_record(ordered.record);
        self.last_time = ordered.time.map_or(self.last_time, |it| it.wrapping_sub(self.began.1) & TIME_MASK);
        let OrderedRecord { thread: stream, first, end, record, .. } = *ordered;
        let Capture { recorder, writer, is_broken, .. } = self;
        let mut queue = |it| *is_broken |= !writer.queue_block(it);
        recorder.add_record(StreamRecord { stream, span: first..end, time: self.last_time, record }, &mut queue);
    }

    /// Called when there are no more records for now. Writes the collected records if there are many or they are old, and
    /// releases the stream memory of all written records.
    pub(crate) fn flush(&mut self, merger: &mut Merger) {
        if self.is_broken {
            return self.abort(merger);
        }
        self.write_metadata();
        if self.range.take_trigger()
            && let Some(metadata) = self.range.metadata()
        {
            self.is_broken |= !self.writer.queue_block(RawBlock::metadata(&metadata));
        }
        if self.recorder.buffered_words() > WORDS_MAX || self.last_flush.elapsed() >= self.flush_interval {
            self.flush_all();
            self.last_flush = Instant::now();
        }
        for written_block in self.writer.written() {
            merger.release(written_block.stream, written_block.word_offset);
        }
    }

    /// Writes metadata of other modules, which are not calls.
    fn write_metadata(&mut self) {
        for trace_metadata_item in PROCESS_STATE.take_trace_metadata() {
            self.is_broken |= !self.writer.queue_block(RawBlock::metadata(&trace_metadata_item));
        }
    }

    /// Whether everything that was requested is recorded.
    pub(crate) fn is_over(&self) -> bool {
        self.range.is_over()
    }

    fn flush_all(&mut self) {
        let Capture { recorder, writer, is_broken, .. } = self;
        recorder.flush(&mut |raw_block| *is_broken |= !writer.queue_block(raw_block));
        *is_broken |= !writer.sync();
    }

    /// Ends a capture whose file cannot be written any more. The application continues without it.
    fn abort(&mut self, merger: &mut Merger) {
        PROCESS_STATE.set_capturing(false);
        PROCESS_STATE.stream_control.set_storage(None);
        merger.release_all();
        if let Err(error) = self.writer.end(&[]) {
            self.report_error(&format!("the capture ends early, and is whole up to there: {error}"));
            self.tail.remove();
        }
    }

    fn report_error(&self, text: &str) {
        let place = self.path.display().to_string();
        if !report_file::problem("error", &place, text) {
            eprintln!("lavascope: {place}: {text}");
        }
    }

    /// Ends the capture: writes everything and removes the tail.
    pub(crate) fn end(mut self, merger: &mut Merger) {
        if self.is_broken {
            return self.abort(merger);
        }
        PROCESS_STATE.set_capturing(false);
        PROCESS_STATE.stream_control.set_storage(None);
        self.write_metadata();
        self.flush_all();
        let elapsed = self.began.0.elapsed();
        let speed = u128::from(ticks().wrapping_sub(self.began.1)) * 1_000_000_000 / elapsed.as_nanos().max(1);
        self.writer.queue_block(RawBlock::metadata(&json!({ "ticks_per_second": speed as u64, "ended": true })));
        let seek_points = self.recorder.seek_points().to_vec();
        match self.writer.end(&seek_points) {
            Ok(size) => {
                report_file::captured(&self.path, size);
                self.tail.remove();
            }
            Err(error) => {
                self.report_error(&format!("the capture cannot be ended: {error}"));
            }
        }
        merger.release_all();
    }
}

/// Creates the file of a capture. Each process of a program gets its own.
fn create(path: &Path) -> io::Result<(PathBuf, File)> {
    let own = path.with_extension(format!("{}.lava", std::process::id()));
    for path in [path.to_owned(), own] {
        let file = File::options().create(true).truncate(false).read(true).write(true).open(&path)?;
        // Another capturing process uses the file.
        if files::try_lock(&file) == FileLock::Ours {
            file.set_len(0)?;
            return Ok((path, file));
        }
    }
    Err(io::Error::other("other processes write to it"))
}

/// The path of the tail.
fn tail_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tail");
    name.into()
}

fn trace_metadata(settings: &Settings) -> serde_json::Value {
    let program = std::env::current_exe().ok().and_then(|it| Some(it.file_name()?.to_string_lossy().into_owned()));
    json!({
        "program": program,
        "process": std::process::id(),
        "lavascope": env!("CARGO_PKG_VERSION"),
        "system": std::env::consts::OS,
        "architecture": std::env::consts::ARCH,
        "results": settings.capture_results,
    })
}

/// An id that distinguishes captures. It need not be unpredictable.
fn random_id() -> u128 {
    use std::hash::{BuildHasher, Hasher};
    let half = || u128::from(std::hash::RandomState::new().build_hasher().finish());
    half() << 64 | half()
}
