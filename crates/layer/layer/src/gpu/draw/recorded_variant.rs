//! The pipeline variants of a command buffer, with what their draws have in common.

use std::sync::Arc;

use lavascope_abi::{PipelineLayout, ShaderStageFlags};

use super::command_buffer::CommandBufferState;
use crate::gpu::DeviceChecks;
use crate::gpu::pipeline::layouts::ROOT_PUSH_BYTES;
use crate::gpu::pipeline::variants::{PipelineVariant, ROOT_SPACE, root_words};
use crate::gpu::readback::touches;
use crate::gpu::resource::arena::ArenaRegion;

/// A variant, prepared for the draws of a command buffer.
#[derive(Clone)]
pub(crate) struct RecordedVariant {
    pub(crate) variant: Arc<PipelineVariant>,
    /// Its index in [`CommandBufferState::variants`], which recorded draws store.
    pub(crate) number: u32,
    pub(crate) record_words: u32,
    pub(crate) touch_words: u32,
    /// The root table, without the addresses that differ between draws.
    pub(crate) root: [u32; ROOT_SPACE as usize],
    /// The layout and the stages for the push of the root table's address.
    pub(crate) push: Option<(PipelineLayout, ShaderStageFlags)>,
}

impl DeviceChecks {
    /// The index of a variant in `CommandBufferState::recorded_variants`.
    pub(crate) fn recorded_variant_index(
        &self,
        commands: &mut CommandBufferState,
        variant: &Arc<PipelineVariant>,
    ) -> u32 {
        let known = commands.recorded_variants.iter().position(|it| Arc::ptr_eq(&it.variant, variant));
        let index = known.unwrap_or_else(|| {
            let recorded = self.record_variant(commands, variant);
            commands.recorded_variants.push(recorded);
            commands.recorded_variants.len() - 1
        });
        index as u32
    }

    pub(crate) fn record_variant(
        &self,
        commands: &mut CommandBufferState,
        variant: &Arc<PipelineVariant>,
    ) -> RecordedVariant {
        let stages =
            self.root_push_offset.map(|tail| ShaderStageFlags(variant.layout.stages_of_push(tail, ROOT_PUSH_BYTES)));
        let record_words = self.record_words(variant);
        // SAFETY: nobody reads or writes it: its size goes into the root table, and each draw has records elsewhere.
        let records = unsafe { ArenaRegion::mapped(0, record_words) };
        RecordedVariant {
            number: commands.variant_number(variant),
            record_words,
            touch_words: touches::touch_words(variant),
            root: root_words([records, ArenaRegion::default(), self.permissive_addresses, variant.cells]),
            push: variant.layout.own_handle.zip(stages),
            variant: Arc::clone(variant),
        }
    }
}
