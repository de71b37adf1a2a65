//! Both layers side by side: performs programs under each, and says where their reports differ.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::disagreement::{LayerDisagreement, disagreements};
use crate::layer_process::{ComparedLayer, LayerProcess};
use crate::reported_hazard::ReportedHazard;
use crate::worker::WorkerAnswer;

/// What came of one program.
#[derive(Clone, Debug)]
pub(crate) enum JudgedProgram {
    Compared {
        disagreements: Vec<LayerDisagreement>,
        hazards: usize,
    },
    Unsupported(String),
    /// A worker died, or a call failed.
    Broken {
        layer: ComparedLayer,
        why: String,
    },
}

pub(crate) struct Judge {
    folder: PathBuf,
    ours: LayerProcess,
    peer: LayerProcess,
}

impl Judge {
    /// Writes what both need into a folder that goes with the judge.
    pub(crate) fn new(queue_flags: &[u32]) -> Result<Judge> {
        let folder = std::env::temp_dir().join(format!("lavascope-differential-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        let layer = |layer, folder: &Path| LayerProcess::new(layer, folder, queue_flags);
        let (ours, peer) = (layer(ComparedLayer::Ours, &folder)?, layer(ComparedLayer::Peer, &folder)?);
        Ok(Judge { folder, ours, peer })
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

impl Drop for Judge {
    fn drop(&mut self) {
        // Left behind, it does no harm.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn judged(ours: WorkerAnswer, peer: WorkerAnswer) -> JudgedProgram {
    let mut read = Vec::new();
    for (layer, answer) in [(ComparedLayer::Ours, ours), (ComparedLayer::Peer, peer)] {
        match answer {
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
