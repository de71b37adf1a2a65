//! Findings and messages on their way to people.

pub(crate) mod call_log;
pub(crate) mod call_stats;
pub(crate) mod compile_marks;
pub(crate) mod coverage;
pub(crate) mod debugger;
pub(crate) mod device_lost;
pub(crate) mod inline_validation;
pub(crate) mod message_json;
pub(crate) mod messages;
pub(crate) mod rendered_finding;
pub(crate) mod report_file;
pub(crate) mod validation;
