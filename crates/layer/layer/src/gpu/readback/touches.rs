//! What shaders touched, for synchronization validation: recorded by each draw, read when it has completed, sent to the
//! validator.
//!
//! Only with both settings. The validator hears of every command buffer that is done, also of those whose shaders
//! record nothing: it waits for that. A command buffer that was executed several times before it was read has touched
//! everything together. So a hazard may turn out to be none, but none becomes certain.
//!
//! A stage of a whole pipeline knows where its words begin. Libraries and shader objects use slots
//! (`lavascope-instrument`, `touch_area`): one for each stage, and 56 that the shaders of ray tracing libraries take in
//! turn. If two shaders that are linked have the same slot, or a draw would need more than 128 KiB, nothing is
//! recorded.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

use lavascope_abi::*;
use lavascope_instrument::{InstrumentedModule, TOUCH_HEAD, TOUCH_SLOT, TouchKind, TouchSite};
use lavascope_validate::{
    AddressTouched, BindingTouched, CommandBufferFeedback, ShaderLaunch, StageTouches, TouchedBytes,
};

use crate::gpu::draw::command_buffer::CommandBufferState;
use crate::gpu::draw::recorded_draws::RecordedDraw;
use crate::gpu::hook::RAY_TRACING_STAGES;
use crate::gpu::pipeline::variants::{InstrumentedStage, PipelineVariant};
use crate::gpu::resource::arena::ArenaRegion;
use crate::gpu::{ChecksState, DeviceChecks};
use crate::loader::device::DeviceData;
use crate::loader::dispatch::dispatch_key;
use crate::loader::proc_addr::WATCHED_DEVICES;
use crate::process::process_state::PROCESS_STATE;

/// A draw that needs more words records no touches.
const WORDS_MAX: u32 = 1 << 15;

/// Kinds of shaders of which a draw has at most one, with the stages of their memory accesses.
const STAGES: [(ShaderStageFlags, PipelineStageFlags2); 8] = [
    (ShaderStageFlags::VERTEX, PipelineStageFlags2::VERTEX_SHADER),
    (ShaderStageFlags::TESSELLATION_CONTROL, PipelineStageFlags2::TESSELLATION_CONTROL_SHADER),
    (ShaderStageFlags::TESSELLATION_EVALUATION, PipelineStageFlags2::TESSELLATION_EVALUATION_SHADER),
    (ShaderStageFlags::GEOMETRY, PipelineStageFlags2::GEOMETRY_SHADER),
    (ShaderStageFlags::FRAGMENT, PipelineStageFlags2::FRAGMENT_SHADER),
    (ShaderStageFlags::COMPUTE, PipelineStageFlags2::COMPUTE_SHADER),
    (ShaderStageFlags::TASK_EXT, PipelineStageFlags2::TASK_SHADER_EXT),
    (ShaderStageFlags::MESH_EXT, PipelineStageFlags2::MESH_SHADER_EXT),
];

/// The pipeline stage in which shaders of a kind access memory; none for kinds that record no touches.
fn pipeline_stage_of(kind: ShaderStageFlags) -> Option<u64> {
    let is_ray = kind.0 & RAY_TRACING_STAGES != 0;
    let own = STAGES.iter().find(|it| it.0 == kind).map(|it| it.1.0);
    own.or(is_ray.then_some(PipelineStageFlags2::RAY_TRACING_SHADER_KHR.0))
}

/// Whether a draw has at most one shader of a kind.
fn has_fixed_slot(kind: ShaderStageFlags) -> bool {
    slot_of(kind).is_some()
}

/// The slots of ray tracing shaders from libraries. They are assigned in turn, so two linked shaders may have the same.
const RAY_SLOTS: Range<u32> = STAGES.len() as u32..TOUCH_HEAD;

fn next_ray_slot() -> u32 {
    /// Relaxed: numbers should differ, but need not.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    RAY_SLOTS.start + NEXT.fetch_add(1, Ordering::Relaxed) % RAY_SLOTS.len() as u32
}

/// The fixed slot of a kind of shaders.
fn slot_of(kind: ShaderStageFlags) -> Option<u32> {
    STAGES.iter().position(|it| it.0 == kind).map(|it| it as u32)
}

/// The specialization constant by which a shader finds its words: by slot, if it has one.
pub(crate) fn touch_constant(made: &InstrumentedModule, slot: Option<u32>, base: u32) -> Option<(u32, u32)> {
    let value = slot.map_or(base, |it| TOUCH_SLOT | it);
    (made.touches.words > 0).then_some((made.touch_spec_id, value))
}

/// Whether no two stages have the same slot.
fn are_slots_distinct(stages: &[InstrumentedStage]) -> bool {
    let slots: Vec<u32> = stages.iter().filter_map(|it| it.touch_slot).collect();
    (1..slots.len()).all(|at| !slots[..at].contains(&slots[at]))
}

/// Number of words for the touches of a draw; zero if they would be too many.
pub(crate) fn touch_words(variant: &PipelineVariant) -> u32 {
    let words: u32 = variant.stages.iter().map(|it| it.instrumented.touches.words).sum();
    let is_kept = (1..=WORDS_MAX).contains(&words) && are_slots_distinct(&variant.stages);
    if is_kept { words + TOUCH_HEAD } else { 0 }
}

/// Where the words of the next stage begin.
pub(crate) fn touch_base(stages: &[InstrumentedStage]) -> u32 {
    TOUCH_HEAD + stages.iter().map(|it| it.instrumented.touches.words).sum::<u32>()
}

/// Writes the offsets of the stages' words into the slots.
pub(crate) fn fill_slots(area: ArenaRegion, variant: &PipelineVariant) {
    for stage in &variant.stages {
        if let Some(slot) = stage.touch_slot {
            area.write_word(slot, stage.touch_base);
        }
    }
}

impl DeviceChecks {
    /// Whether the validator waits for touches.
    pub(crate) fn gives_feedback(&self) -> bool {
        self.config.feedback
    }

    /// Whether a shader records its touches.
    pub(crate) fn records_touches(&self, kind: ShaderStageFlags) -> bool {
        self.gives_feedback() && pipeline_stage_of(kind).is_some()
    }

    /// The slot of a shader that is created before its combination with others is known.
    pub(crate) fn touch_slot(kind: ShaderStageFlags) -> Option<u32> {
        slot_of(kind).or_else(|| (kind.0 & RAY_TRACING_STAGES != 0).then(next_ray_slot))
    }

    /// From now on, it is unknown whether all submitted work was executed.
    pub(crate) fn stop_feedback(&self) {
        self.is_feedback_broken.store(true, Ordering::Relaxed);
    }

    pub(crate) fn device_data(&self) -> Option<&DeviceData> {
        // SAFETY: the caller is inside of a call for this device, which is externally synchronized with
        // `vkDestroyDevice`; or in that call itself, which takes the device out of the index after `DeviceChecks::end`;
        // or is the exit handler, which blocks the destruction of the device (`DeviceChecks::finish_at_exit`).
        unsafe { WATCHED_DEVICES.get(dispatch_key(self.device.0)) }
    }

    /// Counts the execution of command buffers in a frame. Returns them and those that they execute.
    pub(crate) fn count_executions(&self, commands: &[u64], frame: u64) -> Vec<u64> {
        let names = self.device_data().map(|it| it.handles());
        let object = |handle: u64| {
            let slot = names?.table_for(HandleType::CommandBuffer).slot(HandleType::CommandBuffer, handle)?;
            PROCESS_STATE.objects.id(slot)
        };
        let (mut all, mut open) = (Vec::new(), commands.to_vec());
        while let Some(handle) = open.pop() {
            let Some(slot) = self.slot(handle) else { continue };
            let secondaries = slot.with(|buffer_state| {
                buffer_state.executions += 1;
                if !buffer_state.draws.is_empty() {
                    buffer_state.submitted_frames.push(frame);
                }
                buffer_state.object_id = object(handle);
                buffer_state.secondaries.iter().map(|it| it.0).collect::<Vec<u64>>()
            });
            open.extend(secondaries.unwrap_or_default());
            all.push(handle);
        }
        all
    }

    /// The touches of a command buffer since the last readback.
    pub(crate) fn read_touches(
        &self,
        state: &ChecksState,
        commands: &mut CommandBufferState,
    ) -> Option<CommandBufferFeedback> {
        let executions = std::mem::take(&mut commands.executions);
        let object = commands.object_id.filter(|_| executions > 0)?;
        let ranges = || state.addresses.ranges();
        let launch = |it: &RecordedDraw| launch_touches(it, commands.variant_of(it), &ranges);
        let launches = commands.draws.iter().filter_map(launch).collect();
        let is_whole = !self.is_feedback_broken.load(Ordering::Relaxed) && !self.has_failed();
        Some(CommandBufferFeedback { command_buffer: object, executions, is_complete: is_whole, launches })
    }

    /// Sends touches to the validator. No lock of ours is held.
    pub(crate) fn send_feedback(&self, all: Vec<CommandBufferFeedback>) {
        if let Some(data) = self.device_data().filter(|_| !all.is_empty()) {
            data.feedback(all);
        }
    }
}

/// The ranges of all addresses that shaders may access; none if they are unknown.
type AddressRanges<'a> = &'a dyn Fn() -> Option<Vec<Range<u64>>>;

/// The touches of a draw; none if it recorded none.
fn launch_touches(draw: &RecordedDraw, variant: &PipelineVariant, ranges: AddressRanges<'_>) -> Option<ShaderLaunch> {
    let (area, number) = (draw.touches()?, draw.launch?);
    let mut stages: Vec<StageTouches> = Vec::new();
    for (at, instrumented_stage) in variant.stages.iter().enumerate() {
        let Some(stage) = pipeline_stage_of(instrumented_stage.kind) else { continue };
        // All ray tracing shaders share one pipeline stage.
        let is_first = !variant.stages[..at].iter().any(|it| pipeline_stage_of(it.kind) == Some(stage));
        if is_first {
            let all: Vec<&InstrumentedStage> =
                variant.stages.iter().filter(|it| pipeline_stage_of(it.kind) == Some(stage)).collect();
            let is_all = has_fixed_slot(instrumented_stage.kind) || variant.records_all_touches;
            stages.push(stage_touches(stage, &all, is_all, area, ranges));
        }
    }
    Some(ShaderLaunch { number, function: draw.function, stages })
}

/// The touches of the shaders of a stage. If other shaders without our code may be there, nothing is certain.
fn stage_touches(
    stage: u64,
    all: &[&InstrumentedStage],
    is_all: bool,
    area: ArenaRegion,
    ranges: AddressRanges<'_>,
) -> StageTouches {
    let mut made = StageTouches { stage, ..StageTouches::default() };
    let mut addresses = Vec::new();
    for instrumented_stage in all {
        let own = area.skip_words(instrumented_stage.touch_base);
        let sites = &instrumented_stage.instrumented.touches.sites;
        let (at_addresses, described): (Vec<_>, Vec<_>) = sites.iter().partition(|it| it.set == TouchSite::ADDRESSES);
        let mut touched: Vec<BindingTouched> = described.iter().map(|it| binding_touches(it, own)).collect();
        // If one invocation ran, every unconditional access has happened.
        if touched.iter().any(|it| !it.is_assumed) {
            touched.iter_mut().for_each(|it| it.is_assumed = false);
        }
        made.touched.extend(touched);
        addresses.extend(at_addresses.iter().map(|it| address_touches(it, own, ranges)));
    }
    if is_all {
        let covers = |set, binding| !all.iter().any(|it| it.instrumented.touches.is_untracked(set, binding));
        made.covered = made.touched.iter().map(|it| (it.set, it.binding)).filter(|it| covers(it.0, it.1)).collect();
        let keeps_addresses = all.iter().all(|it| it.instrumented.touches.tracks_addresses());
        made.addresses = addresses.into_iter().collect::<Option<Vec<_>>>().filter(|_| keeps_addresses);
    }
    made
}

/// The words of a site, if it was touched. Clears them.
fn take_words(touch_site: &TouchSite, area: ArenaRegion) -> Vec<u32> {
    let mut words = Vec::new();
    if let Some(place) = touch_site.word_offset.filter(|place| area.read_word(*place + TouchSite::END_WORD) != 0) {
        let own = area.skip_words(place).first_words(touch_site.words());
        words = vec![0; place as usize];
        words.extend(own.read());
        // The device does not use this memory now, and writes only new touches later.
        own.write(&vec![0; touch_site.words() as usize]);
    }
    words
}

fn binding_touches(touch_site: &TouchSite, area: ArenaRegion) -> BindingTouched {
    let touched = touch_site.read(&take_words(touch_site, area));
    let is_buffer = touch_site.kind != TouchKind::Descriptor;
    BindingTouched {
        set: touch_site.set,
        binding: touch_site.binding,
        reads: touch_site.reads,
        writes: touch_site.writes,
        is_atomic: touch_site.is_atomic,
        elements: touched.elements,
        is_incomplete: touched.is_incomplete,
        is_assumed: !touched.is_recorded,
        bytes: is_buffer.then_some(TouchedBytes { may: touched.may, must: touched.must }),
        are_texels: touch_site.kind == TouchKind::Texels,
    }
}

/// None if the touched addresses are unknown.
fn address_touches(touch_site: &TouchSite, area: ArenaRegion, ranges: AddressRanges<'_>) -> Option<AddressTouched> {
    let touched = touch_site.read_addresses(&take_words(touch_site, area), ranges);
    let bytes = TouchedBytes { may: touched.may, must: touched.must };
    let (reads, writes, is_atomic) = (touch_site.reads, touch_site.writes, touch_site.is_atomic);
    (!touched.is_incomplete).then_some(AddressTouched { reads, writes, is_atomic, bytes })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lavascope_instrument::{InstrumentOptions, ModuleTouches, RootLocation, instrument};
    use lavascope_spirv::Module;

    use super::*;
    use crate::gpu::report::debug_names::SharedName;

    /// Writes to binding 0, at the position that binding 1 has.
    const PLACE: &[u8] = include_bytes!("../../../../../dev/samples/shaders/place.rgen.spv");

    fn stage(kind: ShaderStageFlags, touch_base: u32, change: impl Fn(&mut ModuleTouches)) -> InstrumentedStage {
        let words: Vec<u32> = PLACE.as_chunks().0.iter().map(|it| u32::from_le_bytes(*it)).collect();
        let module = Module::parse(&words).expect("a module");
        let options =
            InstrumentOptions { touches: true, ..InstrumentOptions::new(RootLocation::PushConstant { offset: 120 }) };
        let mut made = instrument(&module, &options).expect("checks");
        change(&mut made.touches);
        let (shader, record_number, index, cell_base) = (0, 0, 0, 0);
        let (module, original) = (ShaderModule::default(), Arc::new(words));
        InstrumentedStage {
            shader,
            record_number,
            kind,
            index,
            module,
            name: SharedName::default(),
            object: None,
            instrumented: Arc::new(made),
            original,
            cell_base,
            touch_base,
            touch_slot: None,
            _cells_lease: None,
        }
    }

    fn covered(all: &[&InstrumentedStage], is_all: bool) -> Vec<(u32, u32)> {
        let mut words = vec![0; 4096];
        let stage = PipelineStageFlags2::RAY_TRACING_SHADER_KHR.0;
        let mut made = stage_touches(stage, all, is_all, ArenaRegion::of_words(&mut words), &|| None);
        assert_eq!(made.addresses.is_some(), is_all && all.iter().all(|it| it.instrumented.touches.tracks_addresses()));
        made.covered.sort_unstable();
        made.covered.dedup();
        made.covered
    }

    #[test]
    fn of_shaders_of_one_stage_all_must_be_known() {
        let rays = ShaderStageFlags::RAYGEN_KHR;
        let known = stage(rays, TOUCH_HEAD, |_| ());
        assert_eq!(covered(&[&known], true), [(0, 0), (0, 1)]);
        assert_eq!(covered(&[&known], false), [], "there are shaders without code of ours");
        let other = stage(ShaderStageFlags::MISS_KHR, TOUCH_HEAD, |module_touches| {
            module_touches.sites.clear();
            module_touches.untracked_bindings = vec![(0, 0)];
        });
        assert_eq!(covered(&[&known, &other], true), [(0, 1)]);
        let blind = stage(ShaderStageFlags::MISS_KHR, TOUCH_HEAD, |it| it.has_untracked_access = true);
        assert_eq!(covered(&[&known, &blind], true), []);
    }

    #[test]
    fn what_each_shader_of_a_stage_touched_is_reported() {
        let first = stage(ShaderStageFlags::RAYGEN_KHR, TOUCH_HEAD, |_| ());
        let size = first.instrumented.touches.words;
        let second = stage(ShaderStageFlags::MISS_KHR, TOUCH_HEAD + size, |_| ());
        let site = |instrumented_stage: &InstrumentedStage| {
            let written =
                instrumented_stage.instrumented.touches.sites.iter().find(|it| it.writes).and_then(|it| it.word_offset);
            (instrumented_stage.touch_base + written.expect("a site")) as usize
        };
        let mut words = vec![0; (TOUCH_HEAD + 2 * size) as usize];
        for (stage, word) in [(&first, 3_u32), (&second, 7)] {
            let at = site(stage);
            (words[at + 1], words[at + 2]) = (!(word * 4), word * 4 + 4);
            words[at + 8] = 1 << word;
        }
        let area = ArenaRegion::of_words(&mut words);
        let made = stage_touches(0, &[&first, &second], true, area, &|| None);
        let written: Vec<_> = made.touched.iter().filter(|it| it.writes).filter_map(|it| it.bytes.clone()).collect();
        assert_eq!(written.iter().flat_map(|it| it.must.clone()).collect::<Vec<_>>(), [12..16, 28..32]);
        // The memory is clear after a read.
        let made = stage_touches(0, &[&first, &second], true, area, &|| None);
        assert!(made.touched.iter().filter(|it| it.writes).all(|it| it.elements.is_empty()));
    }

    #[test]
    fn what_is_made_before_it_is_known_beside_what_finds_its_words_by_a_slot() {
        let made = stage(ShaderStageFlags::FRAGMENT, 0, |_| ()).instrumented;
        let constant = |slot, base| touch_constant(&made, slot, base).map(|it| it.1);
        assert_eq!(constant(None, 77), Some(77));
        assert_eq!(constant(slot_of(ShaderStageFlags::FRAGMENT), 77), Some(TOUCH_SLOT | 4));
        assert_eq!(constant(slot_of(ShaderStageFlags::VERTEX), 0), Some(TOUCH_SLOT));
        for (at, (kind, _)) in STAGES.iter().enumerate() {
            assert_eq!(slot_of(*kind), Some(at as u32));
            assert!(!RAY_SLOTS.contains(&(at as u32)));
        }
    }

    #[test]
    fn shaders_that_were_given_the_same_slot_keep_nothing_together() {
        let with_slot = |touch_slot| InstrumentedStage { touch_slot, ..stage(ShaderStageFlags::MISS_KHR, 0, |_| ()) };
        let slots = |all: &[Option<u32>]| all.iter().map(|it| with_slot(*it)).collect::<Vec<_>>();
        assert!(are_slots_distinct(&slots(&[])));
        assert!(are_slots_distinct(&slots(&[None, None])), "they have their places as constants");
        assert!(are_slots_distinct(&slots(&[Some(8), Some(9), None])));
        assert!(!are_slots_distinct(&slots(&[Some(8), Some(9), Some(8)])));
    }
}
