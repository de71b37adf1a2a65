//! Pipelines: what a driver cannot compile is refused before it tries.

use lavascope_abi as vk;
use lavascope_record::Call;

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::device::ReplayDevice;
use crate::port::formats;

pub(crate) fn graphics(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(recorded_call)?;
    match unsupported_pipeline(&device, recorded_call) {
        Some(what) => Err(performer.error(recorded_call, what)),
        None => formats::create(performer, recorded_call),
    }
}

/// Why pipelines cannot be made here, if so.
pub(crate) fn unsupported_pipeline(device: &ReplayDevice, recorded_call: &RecordedCall<'_>) -> Option<&'static str> {
    let is_refused = !device.has_mesh_shaders && has_mesh_stage(recorded_call) && !recorded_call.has_failed();
    is_refused.then_some("it has mesh shaders, which this device does not have")
}

fn has_mesh_stage(recorded_call: &RecordedCall<'_>) -> bool {
    let Some(Call::CreateGraphicsPipelines(call)) = Call::of(recorded_call.enter) else { return false };
    let mesh = vk::ShaderStageFlagBits::MESH_EXT.0 | vk::ShaderStageFlagBits::TASK_EXT.0;
    call.p_create_infos().iter().any(|it| it.p_stages().iter().any(|it| it.stage.0 & mesh != 0))
}
