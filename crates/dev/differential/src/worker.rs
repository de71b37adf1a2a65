//! The process under one layer: performs the programs that it reads, and answers with what the layer reported.

use std::ffi::CStr;
use std::io::{BufRead, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use lavascope_scenario::ScenarioSource;
use lavascope_scenario_live::{
    DeviceReuse, DrawsOutsidePass, LiveError, LiveGpu, LiveOptions, LiveScenario, RecordingMode, SubmitApi,
    with_version_1_masks,
};
use serde::{Deserialize, Serialize};

/// Stands before each answer: a library may print to the same stream.
pub(crate) const ANSWER_PREFIX: &str = "answer ";

/// What became of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WorkerAnswer {
    Performed(Vec<LayerMessage>),
    /// No Vulkan command does what the program says.
    Unsupported(String),
    /// A call failed, or the text makes no sense.
    Failed(String),
    /// The process died.
    Crashed(String),
}

/// A message that the application received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerMessage {
    /// Such as `SYNC-HAZARD-READ-AFTER-WRITE`.
    pub(crate) name: String,
    pub(crate) text: String,
    /// The label of the command that was being recorded; empty where none was.
    pub(crate) label: String,
}

/// Performs one program for each line of the input.
pub(crate) fn run(layer: &CStr) -> Result<()> {
    let gpu = LiveGpu::open(&[layer])?;
    let mut output = std::io::stdout();
    let watchdog = Watchdog::start();
    for (at, line) in std::io::stdin().lock().lines().enumerate() {
        let text: String = serde_json::from_str(&line?)?;
        watchdog.begin();
        let answer = perform(&gpu, &text, at);
        watchdog.end();
        writeln!(output, "{ANSWER_PREFIX}{}", serde_json::to_string(&answer)?)?;
        output.flush()?;
    }
    Ok(())
}

fn perform(gpu: &LiveGpu, text: &str, at: usize) -> WorkerAnswer {
    let source = match ScenarioSource::new(text) {
        Ok(source) => source,
        Err(error) => return WorkerAnswer::Failed(error.to_string()),
    };
    let program = with_version_1_masks(&source.scenario.program);
    // Our layer takes resources of one name for the same one.
    let prefix = format!("{at}{NAME_SEPARATOR}");
    let script = LiveScenario { program: &program, names: &source.scenario.names, name_prefix: &prefix };
    let options = LiveOptions {
        submit: SubmitApi::Two,
        recording: RecordingMode::CallingThread,
        draws_outside_pass: DrawsOutsidePass::WrapInRendering,
        reuse: DeviceReuse::WhileIdle,
    };
    match gpu.run(script, options) {
        Ok(run) => {
            let received = |message: lavascope_scenario_live::ReceivedMessage| LayerMessage {
                name: message.name,
                text: message.text,
                label: message.label,
            };
            WorkerAnswer::Performed(run.messages.into_iter().map(received).collect())
        }
        Err(LiveError::Unsupported(why)) => WorkerAnswer::Unsupported(why.0),
        Err(error) => WorkerAnswer::Failed(error.to_string()),
    }
}

/// Between the number of a performance and the name of a resource.
pub(crate) const NAME_SEPARATOR: char = ':';

/// Ends the process if a program takes too long.
struct Watchdog {
    /// Since when a program is performed; none while none is.
    busy_since: Arc<Mutex<Option<Instant>>>,
}

impl Watchdog {
    const PROGRAM_MAX: Duration = Duration::from_secs(10);

    fn start() -> Watchdog {
        let busy_since: Arc<Mutex<Option<Instant>>> = Arc::default();
        let watched = Arc::clone(&busy_since);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(Duration::from_secs(1));
                let since = *watched.lock().unwrap_or_else(PoisonError::into_inner);
                if since.is_some_and(|it| it.elapsed() > Watchdog::PROGRAM_MAX) {
                    std::process::abort();
                }
            }
        });
        Watchdog { busy_since }
    }

    fn begin(&self) {
        *self.busy_since.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn end(&self) {
        *self.busy_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
