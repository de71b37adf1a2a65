//! Formats of depth that a device need not have: another one takes their place.
//!
//! No device must support a certain combined depth and stencil format, and each vendor has chosen its own. A draw with
//! another format looks the same; copies between the image and buffers have other bytes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use lavascope_abi as vk;
use lavascope_abi::Structure;
use lavascope_abi::desc::Ty;

use crate::call::chain;
use crate::call::functions::{Functions, driver};
use crate::call::perform::{Performer, RecordedCall};
use crate::error::ReplayError;
use crate::port::instance::out;

/// Formats, and which may take their place, the best first.
const ALTERNATIVES: [(vk::Format, &[vk::Format]); 6] = [
    (vk::Format::D16_UNORM, &[vk::Format::X8_D24_UNORM_PACK32, vk::Format::D32_SFLOAT]),
    (vk::Format::X8_D24_UNORM_PACK32, &[vk::Format::D32_SFLOAT]),
    (vk::Format::D32_SFLOAT, &[vk::Format::X8_D24_UNORM_PACK32]),
    (vk::Format::D16_UNORM_S8_UINT, &[vk::Format::D24_UNORM_S8_UINT, vk::Format::D32_SFLOAT_S8_UINT]),
    (vk::Format::D24_UNORM_S8_UINT, &[vk::Format::D32_SFLOAT_S8_UINT]),
    (vk::Format::D32_SFLOAT_S8_UINT, &[vk::Format::D24_UNORM_S8_UINT]),
];

/// Formats of the trace that are others here.
#[derive(Default)]
pub(crate) struct FormatMap {
    needs_remap: AtomicBool,
    map: RwLock<Vec<(vk::Format, vk::Format)>>,
}

impl FormatMap {
    pub(crate) fn needs_remap(&self) -> bool {
        self.needs_remap.load(Ordering::Relaxed)
    }

    /// The format here.
    pub(crate) fn remap(&self, recorded: vk::Format) -> vk::Format {
        if !self.needs_remap() {
            return recorded;
        }
        let map = self.map.read().unwrap_or_else(PoisonError::into_inner);
        map.iter().find(|it| it.0 == recorded).map_or(recorded, |it| it.1)
    }

    /// Asks a device what it has.
    pub(crate) fn query_device(&self, functions: &Functions, physical: vk::PhysicalDevice) {
        self.choose_substitutes(|format| {
            let mut can = vk::FormatProperties::zeroed();
            driver!(
                functions,
                GetPhysicalDeviceFormatProperties,
                FnGetPhysicalDeviceFormatProperties(physical, format, out(&mut can))
            );
            can.optimal_tiling_features.0 & vk::FormatFeatureFlags::DEPTH_STENCIL_ATTACHMENT.0 != 0
        });
    }

    fn choose_substitutes(&self, has: impl Fn(vk::Format) -> bool) {
        let missing = ALTERNATIVES.iter().filter(|it| !has(it.0));
        let instead = |it: &(vk::Format, &[vk::Format])| Some((it.0, it.1.iter().copied().find(|it| has(*it))?));
        let chosen: Vec<_> = missing.filter_map(instead).collect();
        self.needs_remap.store(!chosen.is_empty(), Ordering::Relaxed);
        *self.map.write().unwrap_or_else(PoisonError::into_inner) = chosen;
    }
}

/// A format as the specification calls it.
pub(crate) fn name(format: vk::Format) -> String {
    let field = vk::ImageCreateInfo::layout().fields.iter().find(|it| it.name == "format");
    let known = match field.map(|it| it.ty) {
        Some(Ty::Enum(desc)) => desc.values.iter().find(|it| it.0 == i64::from(format.0)),
        _ => None,
    };
    known.map_or_else(|| format!("format {}", format.0), |it| it.1.to_owned())
}

/// Objects that are created with a format: views, render passes, pipelines for dynamic rendering.
pub(crate) fn create(performer: &mut Performer<'_>, recorded_call: &RecordedCall<'_>) -> Result<(), ReplayError> {
    let formats = &performer.replay.formats;
    if recorded_call.has_failed() || !formats.needs_remap() {
        return performer.perform_unchanged(recorded_call);
    }
    let unpacked = performer.unpack(recorded_call)?;
    let image = unpacked.image;
    // SAFETY: `UnpackedCall::image` holds the parameters of this command. `required` and `elements` give structures in the
    // arena with valid chains, which nobody else refers to.
    unsafe {
        match recorded_call.command() {
            vk::Command::CreateImageView => {
                let info =
                    performer.required(recorded_call, (*image.cast::<vk::CreateImageViewParams>()).p_create_info)?;
                (*info).format = formats.remap((*info).format);
            }
            vk::Command::CreateRenderPass => {
                let info =
                    performer.required(recorded_call, (*image.cast::<vk::CreateRenderPassParams>()).p_create_info)?;
                for attachment_description in
                    performer.elements(recorded_call, ((*info).p_attachments, (*info).attachment_count))?
                {
                    (*attachment_description).format = formats.remap((*attachment_description).format);
                }
            }
            vk::Command::CreateRenderPass2 => {
                let info =
                    performer.required(recorded_call, (*image.cast::<vk::CreateRenderPass2Params>()).p_create_info)?;
                for attachment_description in
                    performer.elements(recorded_call, ((*info).p_attachments, (*info).attachment_count))?
                {
                    (*attachment_description).format = formats.remap((*attachment_description).format);
                }
            }
            vk::Command::CreateGraphicsPipelines => {
                let pipelines_params = image.cast::<vk::CreateGraphicsPipelinesParams>();
                for info in performer.elements(
                    recorded_call,
                    ((*pipelines_params).p_create_infos, (*pipelines_params).create_info_count),
                )? {
                    if let Some(create_info) = chain::find::<_, vk::PipelineRenderingCreateInfo>(info) {
                        (*create_info).depth_attachment_format = formats.remap((*create_info).depth_attachment_format);
                        (*create_info).stencil_attachment_format =
                            formats.remap((*create_info).stencil_attachment_format);
                    }
                }
            }
            _ => {}
        }
    }
    let result = performer.call(recorded_call, unpacked)?;
    performer.finish_call(recorded_call, unpacked, result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_has_not_is_the_best_that_it_has() {
        let formats = FormatMap::default();
        formats.choose_substitutes(|it| it != vk::Format::D24_UNORM_S8_UINT && it != vk::Format::D16_UNORM_S8_UINT);
        assert_eq!(formats.remap(vk::Format::D24_UNORM_S8_UINT), vk::Format::D32_SFLOAT_S8_UINT);
        assert_eq!(formats.remap(vk::Format::D16_UNORM_S8_UINT), vk::Format::D32_SFLOAT_S8_UINT);
        assert_eq!(formats.remap(vk::Format::D16_UNORM), vk::Format::D16_UNORM);
        assert_eq!(formats.remap(vk::Format::R8G8B8A8_UNORM), vk::Format::R8G8B8A8_UNORM);
        formats.choose_substitutes(|_| true);
        assert!(!formats.needs_remap());
        // Where there is nothing at all, it stays what it is and is refused.
        formats.choose_substitutes(|_| false);
        assert_eq!(formats.remap(vk::Format::D24_UNORM_S8_UINT), vk::Format::D24_UNORM_S8_UINT);
        assert_eq!(name(vk::Format::D24_UNORM_S8_UINT), "VK_FORMAT_D24_UNORM_S8_UINT");
    }
}
