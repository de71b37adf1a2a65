//! Both layers side by side: performs programs under each, and says where their reports differ.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::disagreement::{LayerDisagreement, disagreements};
use crate::layer_process::{ComparedLayer, LayerProcess};
use crate::reported_hazard::{ReportedHazard, is_event_race};
use crate::worker::WorkerAnswer;

/// What came of one program.
#[derive(Clone, Debug)]
pub(crate) enum JudgedProgram {
    Compared {
        disagreements: Vec<LayerDisagreement>,
        hazards: usize,
    },
    /// Commands race for an event: by rules of its own each layer decides what the event orders then.
    EventRace,
    Unsupported(String),
    /// A worker died, or a call failed.
    Broken {
        layer: ComparedLayer,
        why: String,
    },
}

pub(crate) struct Judge {
    // Before the folder, so that they end before it goes.
    ours: LayerProcess,
    peer: LayerProcess,
    _folder: JudgeFolder,
}

/// The folder of what processes need; it goes with this.
pub(crate) struct JudgeFolder(PathBuf);

impl JudgeFolder {
    pub(crate) fn new() -> Result<JudgeFolder> {
        let folder = std::env::temp_dir().join(format!("lavascope-differential-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(JudgeFolder(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for JudgeFolder {
    fn drop(&mut self) {
        // Left behind, it does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Judge {
    /// Writes what both need into a folder that goes with the judge.
    pub(crate) fn new(queue_flags: &[u32]) -> Result<Judge> {
        let folder = JudgeFolder::new()?;
        let layer = |layer| LayerProcess::new(layer, folder.path(), queue_flags);
        let (ours, peer) = (layer(ComparedLayer::Ours)?, layer(ComparedLayer::Peer)?);
        Ok(Judge { ours, peer, _folder: folder })
    }

    /// Performs one program under both.
    pub(crate) fn judge(&mut self, text: &str) -> Result<JudgedProgram> {
        Ok(self.judge_all(&[text.to_owned()])?.remove(0))
    }

    /// Performs programs under both at the same time.
    pub(crate) fn judge_all(&mut self, texts: &[String]) -> Result<Vec<JudgedProgram>> {
        let (ours, peer) = self.answers(texts)?;
        Ok(ours.into_iter().zip(peer).map(|(ours, peer)| judged(ours, peer)).collect())
    }

    /// What each of the two answers.
    pub(crate) fn answers(&mut self, texts: &[String]) -> Result<(Vec<WorkerAnswer>, Vec<WorkerAnswer>)> {
        let Judge { ours, peer, .. } = self;
        let all = |layer: &mut LayerProcess| -> Result<Vec<WorkerAnswer>> {
            texts.iter().map(|it| layer.perform(it)).collect()
        };
        std::thread::scope(|scope| {
            let ours = scope.spawn(move || all(ours));
            let peer = all(peer)?;
            let ours = ours.join().unwrap_or_else(|it| std::panic::resume_unwind(it))?;
            Ok((ours, peer))
        })
    }
}

fn judged(ours: WorkerAnswer, peer: WorkerAnswer) -> JudgedProgram {
    let mut read = Vec::new();
    for (layer, answer) in [(ComparedLayer::Ours, ours), (ComparedLayer::Peer, peer)] {
        match answer {
            WorkerAnswer::Performed(messages) if messages.iter().any(is_event_race) => return JudgedProgram::EventRace,
            WorkerAnswer::Performed(messages) => {
                read.push(messages.iter().filter_map(ReportedHazard::read).collect::<Vec<_>>())
            }
            WorkerAnswer::Unsupported(why) => return JudgedProgram::Unsupported(why),
            WorkerAnswer::Failed(why) => return JudgedProgram::Broken { layer, why },
            WorkerAnswer::Crashed(why) => return JudgedProgram::Broken { layer, why: format!("crashed, {why}") },
        }
    }
    let disagreements = disagreements(&read[0], &read[1]);
    JudgedProgram::Compared { disagreements, hazards: read[0].len() }
}
