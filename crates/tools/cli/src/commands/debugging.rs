//! The options of `run` about call stacks and stops in a debugger, as variables for the layer.

use std::ffi::OsString;

use lavascope_diag::FirstAccessKey;

/// How much of call stacks is kept if no option and no variable says so. A program pays less than a tenth of its time for
/// it; `docs/performance.md` has the figures.
const DEFAULT_BACKTRACE: &str = "full";
const BACKTRACE: &str = "LAVASCOPE_BACKTRACE";

#[derive(clap::Args)]
pub(crate) struct DebuggingOptions {
    /// How much of the call stacks of commands to keep for the report; `full` is the default
    #[arg(long, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "full")]
    backtrace: Option<BacktraceDetail>,
    /// Stop in a debugger at the call that completes a hazard; implies --inline
    #[arg(long = "break", conflicts_with_all = ["off_thread", "no_sync"])]
    break_on_hazard: bool,
    /// Stop in a debugger at the earlier access of this finding of another run; implies --inline
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint, conflicts_with_all = ["off_thread", "no_sync"])]
    break_first: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum BacktraceDetail {
    /// Whole call stacks
    Full,
    /// The innermost function outside the Vulkan loader
    Caller,
    /// No call stacks
    Off,
}

fn fingerprint(text: &str) -> Result<String, String> {
    let has_key = FirstAccessKey::of_fingerprint(text).is_some();
    has_key.then(|| text.trim().to_owned()).ok_or_else(|| {
        "a whole fingerprint has 16 digits, a dash and 12 digits; the text of --verbose shows it with each hazard, and \
         the JSON has it as `fingerprint` and `first_access`"
            .to_owned()
    })
}

impl DebuggingOptions {
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables: Vec<(&str, OsString)> = Vec::new();
        let is_set = std::env::var_os(BACKTRACE).is_some_and(|it| !it.is_empty());
        let backtrace = match self.backtrace {
            Some(BacktraceDetail::Full) => Some("full"),
            Some(BacktraceDetail::Caller) => Some("caller"),
            Some(BacktraceDetail::Off) => Some("off"),
            None => (!is_set).then_some(DEFAULT_BACKTRACE),
        };
        variables.extend(backtrace.map(|it| (BACKTRACE, it.into())));
        if self.break_on_hazard || !self.break_first.is_empty() {
            variables.push(("LAVASCOPE_SYNC", "1".into()));
            variables.push(("LAVASCOPE_SYNC_MODE", "inline".into()));
        }
        if self.break_on_hazard {
            variables.push(("LAVASCOPE_BREAK_ON_HAZARD", "1".into()));
        }
        if !self.break_first.is_empty() {
            variables.push(("LAVASCOPE_BREAK_FIRST", self.break_first.join(",").into()));
        }
        variables
    }
}
