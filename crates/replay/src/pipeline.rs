//! Pipelines: what a driver cannot compile is refused before it tries.

use lavascope_abi as vk;
use lavascope_event::Call;

use crate::error::ReplayError;
use crate::perform::{Done, Performer};

pub(crate) fn graphics(performer: &mut Performer<'_>, done: &Done<'_>) -> Result<(), ReplayError> {
    let device = performer.device(done)?;
    if !device.has_mesh_shaders && has_mesh_stage(done) && !done.has_failed() {
        return Err(performer.error(done, "it has mesh shaders, which this device does not have"));
    }
    performer.plain(done)
}

fn has_mesh_stage(done: &Done<'_>) -> bool {
    let Some(Call::CreateGraphicsPipelines(call)) = Call::of(done.enter) else { return false };
    let mesh = vk::ShaderStageFlagBits::MESH_EXT.0 | vk::ShaderStageFlagBits::TASK_EXT.0;
    call.p_create_infos().iter().any(|it| it.p_stages().iter().any(|it| it.stage.0 & mesh != 0))
}
