//! Pipelines: what a driver cannot compile is refused before it tries.

use lavascope_abi as vk;
use lavascope_record::Call;

use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::device::ReplayDevice;
use crate::port::formats;

pub(crate) fn graphics(performer: &mut Performer<'_>, done: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let device = performer.device(done)?;
    match unsupported_pipeline(&device, done) {
        Some(what) => Err(performer.error(done, what)),
        None => formats::create(performer, done),
    }
}

/// Why pipelines cannot be made here, if so.
pub(crate) fn unsupported_pipeline(device: &ReplayDevice, done: &RecordedCall<'_>) -> Option<&'static str> {
    let is_refused = !device.has_mesh_shaders && has_mesh_stage(done) && !done.has_failed();
    is_refused.then_some("it has mesh shaders, which this device does not have")
}

fn has_mesh_stage(done: &RecordedCall<'_>) -> bool {
    let Some(Call::CreateGraphicsPipelines(call)) = Call::of(done.enter) else { return false };
    let mesh = vk::ShaderStageFlagBits::MESH_EXT.0 | vk::ShaderStageFlagBits::TASK_EXT.0;
    call.p_create_infos().iter().any(|it| it.p_stages().iter().any(|it| it.stage.0 & mesh != 0))
}
