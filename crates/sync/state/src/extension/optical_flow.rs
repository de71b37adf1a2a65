//! Optical flow: the input and output images of sessions.

use std::collections::BTreeMap;

use lavascope_abi as vk;
use lavascope_abi::OpticalFlowSessionBindingPointNV as Place;
use lavascope_record::{Call, Outcome};
use lavascope_sync_ir::{Access, Region};

use crate::command::stage_access::{FLOW_READ, FLOW_WRITE};
use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::TrackerOutput;
use crate::resource::memory::is_success;

/// The view at each binding point of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrackedOpticalFlowSession {
    views: BTreeMap<i32, vk::ImageView>,
}

impl TrackedDevice {
    pub(crate) fn track_optical_flow(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateOpticalFlowSessionNV(_), Some(Outcome::CreateOpticalFlowSessionNV(made))) => {
                if let Some(handle) = made.p_session() {
                    self.sessions.insert(handle.0, TrackedOpticalFlowSession::default());
                }
            }
            (Call::DestroyOpticalFlowSessionNV(params), None) => drop(self.sessions.remove(params.session.0)),
            (Call::BindOpticalFlowSessionImageNV(params), Some(Outcome::BindOpticalFlowSessionImageNV(done))) => {
                let own = self.sessions.get_mut(params.session.0).filter(|_| is_success(done.result));
                if let Some(own) = own {
                    own.views.insert(params.binding_point.0, params.view);
                }
            }
            (Call::CmdOpticalFlowExecuteNV(params), None) => {
                let accesses = self.session_accesses(params.session, out);
                self.record_action(params.command_buffer, accesses, out);
            }
            _ => return false,
        }
        true
    }

    fn session_accesses(&self, session: vk::OpticalFlowSessionNV, out: &mut TrackerOutput<'_>) -> Vec<Access> {
        let Some(own) = self.sessions.get(session.0) else {
            out.report_untracked("a session that nobody created");
            return Vec::new();
        };
        let mut found = Vec::new();
        for (place, view) in own.views.iter().filter(|it| it.1.0 != 0) {
            let is_read = [Place::INPUT_NV.0, Place::REFERENCE_NV.0, Place::HINT_NV.0].contains(place);
            match self.image_views.get(view.0) {
                Some(view) => {
                    let usage = if is_read { FLOW_READ } else { FLOW_WRITE };
                    found.push(usage.access_to(view.resource, Region::Image(view.region.clone())));
                }
                None => out.report_untracked("a view that nobody created"),
            }
        }
        found
    }
}
