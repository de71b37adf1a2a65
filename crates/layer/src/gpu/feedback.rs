//! What shaders touched, for whoever looks for hazards: kept by each draw, read when it is done, told to the validator.
//!
//! Only where both are on. The validator is told of every command buffer that is done, also of those whose shaders keep
//! nothing: it waits for that.

use std::sync::atomic::Ordering;

use lavascope_abi::*;
use lavascope_instrument::{TOUCH_HEAD, TouchKind, TouchSite};
use lavascope_validate::{BindingTouched, Bytes, Feedback, Launch, StageTouches};

use super::Gpu;
use super::arena::Region;
use super::commands::Commands;
use super::drawn::Drawn;
use super::variants::{CheckedStage, Variant};
use crate::device::DeviceData;
use crate::dispatch::dispatch_key;
use crate::entry::WATCHED_DEVICES;
use crate::hub::HUB;

/// A draw that would need more words keeps nothing.
const WORDS_MAX: u32 = 1 << 15;

/// The stage in which the shaders of a kind access memory; none for those that keep nothing.
pub(super) fn stage_of(kind: ShaderStageFlags) -> Option<u64> {
    let stages = [
        (ShaderStageFlags::VERTEX, PipelineStageFlags2::VERTEX_SHADER),
        (ShaderStageFlags::TESSELLATION_CONTROL, PipelineStageFlags2::TESSELLATION_CONTROL_SHADER),
        (ShaderStageFlags::TESSELLATION_EVALUATION, PipelineStageFlags2::TESSELLATION_EVALUATION_SHADER),
        (ShaderStageFlags::GEOMETRY, PipelineStageFlags2::GEOMETRY_SHADER),
        (ShaderStageFlags::FRAGMENT, PipelineStageFlags2::FRAGMENT_SHADER),
        (ShaderStageFlags::COMPUTE, PipelineStageFlags2::COMPUTE_SHADER),
        (ShaderStageFlags::TASK_EXT, PipelineStageFlags2::TASK_SHADER_EXT),
        (ShaderStageFlags::MESH_EXT, PipelineStageFlags2::MESH_SHADER_EXT),
    ];
    stages.iter().find(|it| it.0 == kind).map(|it| it.1.0)
}

/// The words that a draw keeps what it touches in; none where that would be too many, or nothing.
pub(super) fn touch_words(variant: &Variant) -> u32 {
    let words: u32 = variant.stages.iter().map(|it| it.made.touches.words).sum();
    if (1..=WORDS_MAX).contains(&words) { words + TOUCH_HEAD } else { 0 }
}

/// Where the words of the next stage begin.
pub(super) fn touch_base(stages: &[CheckedStage]) -> u32 {
    TOUCH_HEAD + stages.iter().map(|it| it.made.touches.words).sum::<u32>()
}

impl Gpu {
    /// Whether the validator waits for what shaders touched.
    pub(crate) fn gives_feedback(&self) -> bool {
        self.config.feedback
    }

    /// From now on it is not known whether all was executed.
    pub(super) fn stop_feedback(&self) {
        self.is_feedback_broken.store(true, Ordering::Relaxed);
    }

    fn data(&self) -> Option<&'static DeviceData> {
        // SAFETY: the device is alive as long as this is.
        WATCHED_DEVICES.get(unsafe { dispatch_key(self.device.0) })
    }

    /// Command buffers are about to be executed. Gives them, and those that they execute.
    pub(super) fn note_executions(&self, commands: &[u64]) -> Vec<u64> {
        let names = self.data().map(|it| it.names());
        let object = |handle: u64| {
            let slot = names?.of(HandleType::CommandBuffer).slot(HandleType::CommandBuffer, handle)?;
            HUB.objects.id(slot)
        };
        let (mut all, mut open) = (Vec::new(), commands.to_vec());
        while let Some(handle) = open.pop() {
            let Some(slot) = self.slot(handle) else { continue };
            let secondaries = slot.with(|it| {
                it.executions += 1;
                it.object = object(handle);
                it.secondaries.iter().map(|it| it.0).collect::<Vec<u64>>()
            });
            open.extend(secondaries.unwrap_or_default());
            all.push(handle);
        }
        all
    }

    /// What a command buffer touched since the last time.
    pub(super) fn read_touches(&self, commands: &mut Commands) -> Option<Feedback> {
        let executions = std::mem::take(&mut commands.executions);
        let object = commands.object.filter(|_| executions > 0)?;
        let launches = commands.draws.iter().filter_map(|it| launch(it, commands.variant_of(it))).collect();
        let is_whole = !self.is_feedback_broken.load(Ordering::Relaxed) && !self.has_failed();
        Some(Feedback { commands: object, executions, is_whole, launches })
    }

    /// Tells the validator. No lock of ours is held.
    pub(super) fn give_feedback(&self, all: Vec<Feedback>) {
        if let Some(data) = self.data().filter(|_| !all.is_empty()) {
            data.feedback(all);
        }
    }
}

/// What a draw touched; none where it kept nothing.
fn launch(draw: &Drawn, variant: &Variant) -> Option<Launch> {
    let area = draw.touches()?;
    let stages = variant.stages.iter().filter_map(|it| stage(it, area)).collect();
    Some(Launch { number: draw.number, function: draw.function, stages })
}

fn stage(it: &CheckedStage, area: Region) -> Option<StageTouches> {
    let touches = &it.made.touches;
    let stage = stage_of(it.kind)?;
    let area = area.from(it.touch_base);
    let mut touched: Vec<BindingTouched> = touches.sites.iter().map(|it| binding(it, area)).collect();
    // Whatever one invocation kept, all of them do what is done always.
    if touched.iter().any(|it| !it.is_assumed) {
        touched.iter_mut().for_each(|it| it.is_assumed = false);
    }
    let covered = touches.sites.iter().map(|it| (it.set, it.binding));
    let covered = covered.filter(|it| touches.covers(it.0, it.1)).collect();
    Some(StageTouches { stage, covered, touched })
}

fn binding(it: &TouchSite, area: Region) -> BindingTouched {
    let mut words = Vec::new();
    if let Some(place) = it.place.filter(|place| area.word(*place + TouchSite::END_WORD) != 0) {
        let own = area.from(place).first(it.words());
        words = vec![0; place as usize];
        words.extend(own.read());
        // The device does not use it now, and what it writes from here on is new.
        own.write(&vec![0; it.words() as usize]);
    }
    let touched = it.read(&words);
    let is_buffer = it.kind != TouchKind::Descriptor;
    BindingTouched {
        set: it.set,
        binding: it.binding,
        reads: it.reads,
        writes: it.writes,
        is_atomic: it.is_atomic,
        elements: touched.elements,
        is_lost: touched.is_lost,
        is_assumed: !touched.is_seen,
        bytes: is_buffer.then_some(Bytes { may: touched.may, must: touched.must }),
    }
}
