//! Host writes through mappings, in the words of a finding. No call of Vulkan makes them: they are noticed before one.

use lavascope_diag::Diagnostic;
use lavascope_state::CallSource;

/// Says that the later access of a finding was made some time before a call.
pub(crate) fn mark_noticed(made: &mut Diagnostic, source: CallSource) {
    let function = source.command.desc().name;
    if let Some(location) = made.locations.first_mut() {
        location.access.action.push_str(" before this call");
    }
    made.explanation.push(format!(
        "the host writes through a mapping, after the submission of the earlier access and before {function}, call {} of \
         thread {}",
        source.call, source.thread
    ));
}
