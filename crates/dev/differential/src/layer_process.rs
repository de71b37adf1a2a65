//! A process of this program under one layer, and its restarts: after a crash, and before it has reported too much.

use std::ffi::CStr;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result};
use lavascope_scenario_live::{LayerLibrary, LiveEnvironment};
use lavascope_test_support::{KHRONOS_LAYER_MISSING, find_newer_khronos_layer};

use crate::worker::{ANSWER_PREFIX, WorkerAnswer};

/// What programs are performed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ComparedLayer {
    Ours,
    Peer,
    /// The peer with its core validation instead.
    PeerCore,
}

impl ComparedLayer {
    /// The word of the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            ComparedLayer::Ours => "lavascope",
            ComparedLayer::Peer => "khronos",
            ComparedLayer::PeerCore => "khronos-core",
        }
    }

    pub(crate) fn layer_name(self) -> &'static CStr {
        match self {
            ComparedLayer::Ours => c"VK_LAYER_LAVASCOPE_inspect",
            ComparedLayer::Peer | ComparedLayer::PeerCore => c"VK_LAYER_KHRONOS_validation",
        }
    }

    fn settings(self) -> &'static str {
        match self {
            ComparedLayer::Ours => OUR_SETTINGS,
            ComparedLayer::Peer => include_str!("../khronos_settings.txt"),
            ComparedLayer::PeerCore => include_str!("../khronos_core_settings.txt"),
        }
    }

    fn library(self) -> Result<PathBuf> {
        match self {
            ComparedLayer::Ours => built_library("libVkLayer_lavascope.so"),
            ComparedLayer::Peer | ComparedLayer::PeerCore => find_newer_khronos_layer().context(KHRONOS_LAYER_MISSING),
        }
    }
}

/// So many messages are taken from one process of ours: a validator explains only its first two hundred causes.
const MESSAGES_MAX: usize = 150;
const OUR_SETTINGS: &str = "\
lavascope_inspect.sync = on
lavascope_inspect.sync_mode = inline
lavascope_inspect.message_extra_properties = on
lavascope_inspect.enable_message_limit = off
lavascope_inspect.possible = on
lavascope_inspect.sync_shader_heuristic = on
lavascope_inspect.summary = off
";

/// A library of this workspace, built beside this program.
fn built_library(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe().context("the place of this program is not known")?;
    let folder = program.parent().context("this program is in no folder")?;
    let library = [folder.join("deps").join(name), folder.join(name)].into_iter().find(|it| it.is_file());
    library.with_context(|| {
        format!("{name} is missing: `cargo build -p lavascope-layer -p lavascope-null-driver` makes it")
    })
}

/// A layer with the process that has it.
pub(crate) struct LayerProcess {
    layer: ComparedLayer,
    environment: LiveEnvironment,
    running: Option<RunningWorker>,
}

struct RunningWorker {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    messages: usize,
}

impl LayerProcess {
    /// Everything that a process needs, in a folder; no process yet.
    pub(crate) fn new(layer: ComparedLayer, folder: &Path, queue_flags: &[u32]) -> Result<LayerProcess> {
        let folder = folder.join(layer.word());
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let (library, driver) = (layer.library()?, built_library("liblavascope_null_driver.so")?);
        let named = LayerLibrary { name: layer.layer_name(), library: &library };
        let environment = LiveEnvironment::write(&folder, named, &driver, queue_flags)?;
        std::fs::write(folder.join("vk_layer_settings.txt"), layer.settings())?;
        Ok(LayerProcess { layer, environment, running: None })
    }

    /// Performs a program, given as text.
    pub(crate) fn perform(&mut self, text: &str) -> Result<WorkerAnswer> {
        let mut worker = match self.running.take() {
            Some(worker) => worker,
            None => self.start()?,
        };
        let answer = worker.ask(text)?;
        match &answer {
            WorkerAnswer::Crashed(_) => {}
            WorkerAnswer::Performed(messages) => {
                worker.messages += messages.len();
                if self.layer == ComparedLayer::Ours && worker.messages > MESSAGES_MAX {
                    worker.stop()?;
                } else {
                    self.running = Some(worker);
                }
            }
            WorkerAnswer::Unsupported(_) | WorkerAnswer::Failed(_) => self.running = Some(worker),
        }
        Ok(answer)
    }

    fn start(&self) -> Result<RunningWorker> {
        let mut command = Command::new(std::env::current_exe().context("the place of this program is not known")?);
        command.args(["worker", self.layer.word()]);
        self.environment.apply(&mut command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().context("this program cannot be started again")?;
        let input = child.stdin.take().context("a worker has an input")?;
        let output = BufReader::new(child.stdout.take().context("a worker has an output")?);
        Ok(RunningWorker { child, input, output, messages: 0 })
    }
}

impl Drop for LayerProcess {
    fn drop(&mut self) {
        if let Some(worker) = self.running.take() {
            // It ends when its input does; how it ends then is of no interest.
            let _ = worker.stop();
        }
    }
}

impl RunningWorker {
    fn ask(&mut self, text: &str) -> Result<WorkerAnswer> {
        // An error here is the end of the process, which its output shows as well.
        let _ = writeln!(self.input, "{}", serde_json::to_string(text)?).and_then(|()| self.input.flush());
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            if let Some(answer) = line.strip_prefix(ANSWER_PREFIX) {
                return Ok(serde_json::from_str(answer)?);
            }
            line.clear();
        }
        Ok(WorkerAnswer::Crashed(self.child.wait()?.to_string()))
    }

    fn stop(self) -> Result<()> {
        let RunningWorker { mut child, input, output, .. } = self;
        drop((input, output));
        child.wait()?;
        Ok(())
    }
}
