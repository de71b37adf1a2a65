//! The process that performs a trace for `lavascope replay`.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use lavascope_replay::{Options, Picture, Summary, replay};
use serde::Serialize;

use super::Outcome;
use super::replay::Arguments;
use crate::text;
use crate::trace_file::TraceFile;

/// A picture of a frame, and how it compares.
#[derive(Clone, Serialize)]
struct Shot {
    frame: u64,
    file: String,
    width: u32,
    height: u32,
    /// How far the worst pixel is from what it is compared with; none where there is nothing to compare.
    difference: Option<u8>,
    /// What went wrong with it.
    problem: Option<String>,
}

/// The document of `--json`.
#[derive(Serialize)]
struct Document {
    file: String,
    threads: usize,
    calls: u64,
    frames: u64,
    /// Bytes that the device wrote and the trace has too; none where nobody asked.
    equal_bytes: Option<u64>,
    different_bytes: Option<u64>,
    first_difference: Option<String>,
    seconds: Vec<f64>,
    remarks: Vec<String>,
    pictures: Vec<Shot>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let file = TraceFile::read_lazily(&arguments.file)?;
    let trace = file.open()?;
    let shots: Arc<Mutex<Vec<Shot>>> = Arc::default();
    let mut seconds = Vec::new();
    let mut last = Summary::default();
    for _ in 0..arguments.repeat.max(1) {
        shots.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let began = Instant::now();
        last = replay(&trace, file.tail(), options(arguments, &shots))
            .map_err(|it| anyhow!("{}: {it}", file.path.display()))?;
        seconds.push(began.elapsed().as_secs_f64());
    }
    let mut pictures = shots.lock().unwrap_or_else(PoisonError::into_inner).clone();
    pictures.sort_by_key(|it| it.frame);
    let Summary { threads, calls, frames, results, remarks } = last;
    let file = file.path.display().to_string();
    let document = Document {
        file,
        threads,
        calls,
        frames,
        equal_bytes: arguments.verify.then_some(results.equal),
        different_bytes: arguments.verify.then_some(results.different),
        first_difference: results.first.map(|it| format!("byte {} of {}", it.1, it.0)),
        seconds,
        remarks,
        pictures,
    };
    tell(arguments, &document)?;
    let is_wrong = |it: &Shot| it.problem.is_some() || it.difference.is_some_and(|it| it > arguments.tolerance);
    let is_different = results.different > 0 || document.pictures.iter().any(is_wrong);
    Ok(if is_different { Outcome::Found } else { Outcome::Fine })
}

fn options(arguments: &Arguments, shots: &Arc<Mutex<Vec<Shot>>>) -> Options {
    let (folder, other, shots) = (arguments.screenshots.clone(), arguments.compare.clone(), shots.clone());
    let frames = move |frame: u64, picture: Picture| {
        let shot = keep(frame, &picture, &folder, other.as_deref());
        shots.lock().unwrap_or_else(PoisonError::into_inner).push(shot);
    };
    Options {
        gpu: arguments.gpu,
        one_thread: arguments.threads.is_some(),
        chaos: arguments.chaos,
        patience: Duration::from_secs(arguments.patience),
        verify: arguments.verify,
        pictures: arguments.screenshot.clone(),
        frames: Some(Arc::new(frames)),
    }
}

/// Writes a picture, and compares it.
fn keep(frame: u64, picture: &Picture, folder: &Path, other: Option<&Path>) -> Shot {
    let name = format!("frame-{frame:06}.png");
    let path = folder.join(&name);
    let mut shot = Shot {
        frame,
        file: path.display().to_string(),
        width: picture.width,
        height: picture.height,
        difference: None,
        problem: write(&path, picture).err().map(|it| format!("{it:#}")),
    };
    if let Some(other) = other {
        match read(&other.join(&name)).and_then(|it| difference(picture, &it)) {
            Ok(it) => shot.difference = Some(it),
            Err(it) => shot.problem = Some(format!("{it:#}")),
        }
    }
    shot
}

fn write(path: &Path, picture: &Picture) -> anyhow::Result<()> {
    let failed = || format!("{} cannot be written", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(failed)?;
    }
    let file = File::create(path).with_context(failed)?;
    let mut encoder = png::Encoder::new(BufWriter::new(file), picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().with_context(failed)?;
    writer.write_image_data(&picture.rgba).with_context(failed)
}

fn read(path: &Path) -> anyhow::Result<Picture> {
    let failed = || format!("{} cannot be read", path.display());
    let file = File::open(path).with_context(failed)?;
    let mut reader = png::Decoder::new(std::io::BufReader::new(file)).read_info().with_context(failed)?;
    let size = reader.output_buffer_size().ok_or_else(|| anyhow!("{} is too large", path.display()))?;
    let mut rgba = vec![0; size];
    let info = reader.next_frame(&mut rgba).with_context(failed)?;
    if (info.color_type, info.bit_depth) != (png::ColorType::Rgba, png::BitDepth::Eight) {
        anyhow::bail!("{} is not of the kind that lavascope writes: RGBA of 8 bits", path.display());
    }
    Ok(Picture { width: info.width, height: info.height, rgba })
}

/// How far the worst channel of the worst pixel is off.
fn difference(one: &Picture, other: &Picture) -> anyhow::Result<u8> {
    if (one.width, one.height) != (other.width, other.height) {
        anyhow::bail!(
            "it has {} x {} pixels, and what it is compared with {} x {}",
            one.width,
            one.height,
            other.width,
            other.height
        );
    }
    Ok(one.rgba.iter().zip(&other.rgba).map(|it| it.0.abs_diff(*it.1)).max().unwrap_or(0))
}

fn tell(arguments: &Arguments, document: &Document) -> anyhow::Result<()> {
    if arguments.json {
        return text::emit_json(document);
    }
    for it in &document.remarks {
        text::tell(&format!("lavascope: {it}\n"));
    }
    for it in &document.pictures {
        let said = match (&it.problem, it.difference) {
            (Some(problem), _) => problem.clone(),
            (None, Some(0)) => "equal".to_owned(),
            (None, Some(worst)) => format!("differs by up to {worst} of 255"),
            (None, None) => format!("{} x {}", it.width, it.height),
        };
        text::tell(&format!("lavascope: {}: {said}\n", it.file));
    }
    if let (Some(equal), Some(different)) = (document.equal_bytes, document.different_bytes) {
        let first = document.first_difference.as_ref().map(|it| format!(", the first at {it}")).unwrap_or_default();
        let file = &document.file;
        text::emit(&format!("{file}: the device wrote {equal} bytes as in the trace; {different} differ{first}\n"))?;
    }
    for seconds in &document.seconds {
        let (calls, threads, frames) = (document.calls, document.threads, document.frames);
        let speed = calls as f64 / seconds.max(1e-9);
        text::emit(&format!(
            "{}: {calls} calls of {threads} threads, {frames} frames, {seconds:.3} s, {speed:.0} calls/s\n",
            document.file
        ))?;
    }
    Ok(())
}
