//! What of this process is checked, for the report: a check that is silently off looks like a program without faults.
//!
//! Everything here is counted anyway, or once for each pipeline. A crash loses at most what was counted since the last
//! line: lines are written with the other counts of the validation, and whenever the number of submissions or shaders
//! reaches the next power of two.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lavascope_findings::{CheckState, CheckedCount, Coverage, UncheckedCount};
use lavascope_settings::{OutputTarget, SETTINGS, Settings, SyncMode};
use lavascope_validate::CheckedWork;

use crate::report::messages::Messages;
use crate::report::report_file;

/// The settings that are checks, each with the one that it refines.
const CHECKS: [(&str, Option<&str>); 17] = [
    ("sync", None),
    ("sync_submit_time", Some("sync")),
    ("sync_host_writes", Some("sync")),
    ("sync_shader_heuristic", Some("sync")),
    ("possible", Some("sync")),
    ("gpu", None),
    ("gpu_shader_checks", Some("gpu")),
    ("gpu_descriptors", Some("gpu_shader_checks")),
    ("gpu_buffer_bounds", Some("gpu_shader_checks")),
    ("gpu_warn_robust", Some("gpu_buffer_bounds")),
    ("gpu_device_address", Some("gpu_shader_checks")),
    ("gpu_acceleration_structures", Some("gpu")),
    ("gpu_vertex_fetch", Some("gpu")),
    ("gpu_index_buffers", Some("gpu")),
    ("gpu_indirect_draws", Some("gpu")),
    ("gpu_indirect_dispatches", Some("gpu")),
    ("gpu_indirect_trace_rays", Some("gpu")),
];

/// Those of the accesses of shaders.
const ACCESS_CHECKS: [&str; 3] = ["gpu_descriptors", "gpu_buffer_bounds", "gpu_device_address"];

const NO_SHADER_CHECKS: &str = "every check of their accesses is off";
/// The option of `lavascope run` that switches the checks of shaders on.
const GPU_OPTION: &str = "--gpu";
const FORKED_PROCESS: &str = "forked process";
const NOT_READ: &str = "its calls are neither captured nor validated; call exec after fork";
const CORE_CHECKS: &str = "core checks";
const SUBMIT_TIME_OFF: &str = "sync_submit_time is off";
const BLOCKED: &str = "they wait for a semaphore that nothing signals";

static COVERAGE: Mutex<ProcessCoverage> = Mutex::new(ProcessCoverage {
    process: 0,
    checks: Vec::new(),
    shaders: CheckedCount { seen: 0, checked: 0, unchecked: Vec::new() },
    commands: CheckedCount { seen: 0, checked: 0, unchecked: Vec::new() },
    has_checked_device: false,
    armed_before: None,
    mapped: CheckedCount { seen: 0, checked: 0, unchecked: Vec::new() },
    inline: None,
    off_thread: None,
    written: None,
    has_findings: false,
    log: None,
});

struct ProcessCoverage {
    /// The process that is counted. A fork begins anew.
    process: u32,
    /// Those of all instances.
    checks: Vec<CheckState>,
    shaders: CheckedCount,
    /// Draws and dispatches.
    commands: CheckedCount,
    /// Whether the checks of shaders work on any device.
    has_checked_device: bool,
    /// The checks as they were before a device could not make them: another device may.
    armed_before: Option<Vec<CheckState>>,
    mapped: CheckedCount,
    /// By the mode of the validation.
    inline: Option<ValidatedWork>,
    off_thread: Option<ValidatedWork>,
    /// What the report has already.
    written: Option<Coverage>,
    has_findings: bool,
    /// Where the summary goes, if there is no report that has it.
    log: Option<Arc<Messages>>,
}

/// What a validation did so far.
#[derive(Clone)]
pub(crate) struct ValidatedWork {
    pub(crate) calls: u64,
    pub(crate) work: CheckedWork,
    /// What it could not follow.
    pub(crate) unsupported: Vec<UncheckedCount>,
}

impl ProcessCoverage {
    fn coverage(&self) -> Coverage {
        let (shaders, mapped, commands) = (self.shaders.clone(), self.mapped.clone(), self.commands.clone());
        let mut all = Coverage { checks: self.checks.clone(), shaders, commands, mapped, ..Coverage::default() };
        for validated in self.inline.iter().chain(&self.off_thread) {
            let ValidatedWork { calls, work, unsupported } = validated.clone();
            let late = UncheckedCount { reason: SUBMIT_TIME_OFF.to_owned(), count: work.skipped_submits };
            let blocked = UncheckedCount { reason: BLOCKED.to_owned(), count: work.blocked_submits };
            all.add(&Coverage {
                calls,
                accesses: CheckedCount::new(work.accesses, unsupported),
                submits: CheckedCount::new(work.submits, [late, blocked]),
                ..Coverage::default()
            });
        }
        all
    }

    /// Counts from zero in another process than before.
    fn begin(&mut self, process: u32) {
        (self.process, self.checks, self.has_findings) = (process, Vec::new(), false);
        (self.shaders, self.inline, self.off_thread, self.written) = (CheckedCount::default(), None, None, None);
        (self.mapped, self.commands) = (CheckedCount::default(), CheckedCount::default());
        (self.has_checked_device, self.armed_before) = (false, None);
    }

    /// Writes what is new.
    fn write(&mut self) {
        let coverage = self.coverage();
        if self.written.as_ref() != Some(&coverage) {
            report_file::coverage(&coverage);
            self.written = Some(coverage);
        }
    }

    /// Shaders that only print are not counted.
    fn is_gpu_wanted(&self) -> bool {
        self.checks.iter().any(|it| it.name == "gpu" && it.is_wanted)
    }

    /// Whether any check of the accesses of shaders is on.
    fn checks_shaders(&self) -> bool {
        ACCESS_CHECKS.iter().any(|name| self.checks.iter().any(|it| it.name == *name && it.is_armed))
    }

    fn write_at_powers_of_two(&mut self, before: u64) {
        if report_file::is_open() && before.checked_ilog2() != self.shaders.seen.checked_ilog2() {
            self.write();
        }
    }
}

/// An instance is created with these settings.
pub(crate) fn add_instance(settings: &Settings, messages: &Arc<Messages>) {
    let is_logged = settings.summary && settings.log_filename == OutputTarget::Stderr;
    if !report_file::is_open() && !is_logged {
        return;
    }
    let mut all = lock();
    let process = std::process::id();
    if all.process != process {
        all.begin(process);
    }
    all.log = (!report_file::is_open()).then(|| messages.clone());
    let mut checks = Coverage { checks: std::mem::take(&mut all.checks), ..Coverage::default() };
    checks.add_checks(&checks_of(settings));
    all.checks = checks.checks;
    all.write();
}

/// This process was forked from one whose calls are read, and uses its Vulkan objects.
pub(crate) fn add_fork() {
    // A thread that does not exist here may have had the lock.
    let Ok(mut all) = COVERAGE.try_lock() else { return };
    let (name, why) = (FORKED_PROCESS.to_owned(), NOT_READ.to_owned());
    all.begin(std::process::id());
    all.checks.push(CheckState { name, is_wanted: true, is_armed: false, why });
    let log = all.log.take();
    if report_file::open_in_fork() {
        all.write();
    } else if let Some(log) = log {
        // Nothing is logged under the lock.
        drop(all);
        log.log_plain(&format!("not checked: {FORKED_PROCESS} ({NOT_READ})"));
    }
}

/// The layer is a second time in one chain, under the name of the Khronos layer.
pub(crate) fn add_khronos_name() {
    let mut all = lock();
    if all.checks.is_empty() || all.checks.iter().any(|it| it.name == CORE_CHECKS) {
        return;
    }
    let why = "the program enables VK_LAYER_KHRONOS_validation, and Lavascope answers to that name".to_owned();
    all.checks.push(CheckState { name: CORE_CHECKS.to_owned(), is_wanted: false, is_armed: false, why });
    all.write();
}

/// The checks of shaders work on a new device.
pub(crate) fn add_checked_device() {
    let mut all = lock();
    all.has_checked_device = true;
    if let Some(checks) = all.armed_before.take() {
        all.checks = checks;
    }
}

/// The checks of shaders do not work on a new device. They count as not made unless another device can make them.
pub(crate) fn add_unchecked_device(name: &str, why: &str) {
    let mut all = lock();
    if all.has_checked_device {
        return;
    }
    if all.armed_before.is_none() {
        all.armed_before = Some(all.checks.clone());
    }
    if !all.checks.iter().any(|it| it.name == name) {
        // Prints are no check, but somebody asked for them.
        all.checks.push(CheckState { name: name.to_owned(), is_wanted: true, is_armed: true, why: String::new() });
    }
    drop(all);
    disarm(name, why);
}

/// A check that the settings switch on cannot be made.
pub(crate) fn disarm(name: &str, why: &str) {
    let mut all = lock();
    let refines = |it: &CheckState| it.name.strip_prefix(name).is_some_and(|it| it.starts_with('_'));
    for check in all.checks.iter_mut().filter(|it| it.is_armed) {
        if check.name == name {
            (check.is_armed, check.why) = (false, why.to_owned());
        } else if refines(check) {
            (check.is_wanted, check.is_armed) = (false, false);
        }
    }
    if report_file::is_open() {
        all.write();
    }
}

/// A shader got its checks, or has nothing to check.
pub(crate) fn count_checked_shader() {
    let mut all = lock();
    if !all.is_gpu_wanted() {
        return;
    }
    let before = all.shaders.seen;
    if all.checks_shaders() {
        all.shaders.seen += 1;
        all.shaders.checked += 1;
    } else {
        all.shaders.add_unchecked(&UncheckedCount { reason: NO_SHADER_CHECKS.to_owned(), count: 1 });
    }
    all.write_at_powers_of_two(before);
}

/// Some shaders are not checked.
pub(crate) fn count_unchecked_shaders(count: usize, why: &str) {
    let mut all = lock();
    if !all.is_gpu_wanted() {
        return;
    }
    let before = all.shaders.seen;
    all.shaders.add_unchecked(&UncheckedCount { reason: why.to_owned(), count: count as u64 });
    all.write_at_powers_of_two(before);
}

/// Shaders that were left out are checked from now on, because their pipeline has got a name that is selected.
pub(crate) fn select_shaders_later(count: u64, why: &str) {
    let mut all = lock();
    let shaders = &mut all.shaders;
    let Some(left) = shaders.unchecked.iter_mut().find(|it| it.reason == why) else { return };
    let count = left.count.min(count);
    left.count -= count;
    shaders.checked += count;
    shaders.unchecked.retain(|it| it.count > 0);
}

/// A command buffer with draws and dispatches was recorded: how many, and how many of them are not checked.
pub(crate) fn count_launches(seen: u64, unchecked: &[(Arc<str>, u64)]) {
    let mut all = lock();
    if !all.is_gpu_wanted() {
        return;
    }
    let others = seen.saturating_sub(unchecked.iter().map(|it| it.1).sum());
    if all.checks_shaders() {
        all.commands.seen += others;
        all.commands.checked += others;
    } else if others > 0 {
        all.commands.add_unchecked(&UncheckedCount { reason: NO_SHADER_CHECKS.to_owned(), count: others });
    }
    for (reason, count) in unchecked {
        all.commands.add_unchecked(&UncheckedCount { reason: reason.as_ref().to_owned(), count: *count });
    }
}

/// A memory stays mapped while the device works. `unchecked` is why host writes to it are not checked.
pub(crate) fn count_mapped_memory(unchecked: Option<&str>) {
    let mut all = lock();
    match unchecked {
        Some(why) => all.mapped.add_unchecked(&UncheckedCount { reason: why.to_owned(), count: 1 }),
        None => {
            all.mapped.seen += 1;
            all.mapped.checked += 1;
        }
    }
}

/// A memory that was counted as checked is not checked as a whole.
pub(crate) fn retract_mapped_memory(why: &str) {
    let mut all = lock();
    if all.mapped.checked > 0 {
        (all.mapped.seen, all.mapped.checked) = (all.mapped.seen - 1, all.mapped.checked - 1);
    }
    all.mapped.add_unchecked(&UncheckedCount { reason: why.to_owned(), count: 1 });
}

/// Shaders that were counted as checked are not created with their checks.
pub(crate) fn retract_shaders(count: usize) {
    let mut all = lock();
    // If every check is off, they were not counted as checked.
    let count = all.shaders.checked.min(count as u64);
    all.shaders.seen = all.shaders.seen.saturating_sub(count);
    all.shaders.checked -= count;
}

/// Whether anybody wants to know what is checked.
pub(crate) fn is_wanted() -> bool {
    report_file::is_open() || lock().log.is_some()
}

/// A finding is reported that no setting filters.
pub(crate) fn note_finding() {
    lock().has_findings = true;
}

/// Logs what was checked, in the words of `lavascope run`. A program that submitted nothing and has no shaders did nothing
/// that can be checked.
pub(crate) fn log_summary() {
    let mut all = lock();
    let Some(log) = all.log.take().filter(|_| all.process == std::process::id()) else { return };
    let (mut coverage, has_findings) = (all.coverage(), all.has_findings);
    // Nothing is logged under the lock.
    drop(all);
    if !coverage.has_checks() || coverage.submits.seen + coverage.shaders.seen == 0 {
        return;
    }
    if let Some(check) = coverage.checks.iter_mut().find(|it| it.why == GPU_OPTION) {
        "the setting gpu is off".clone_into(&mut check.why);
    }
    let result = if has_findings { "" } else { ": no problems found" };
    let unchecked = Some(coverage.unchecked_text()).filter(|it| !it.is_empty());
    let unchecked = unchecked.map_or_else(String::new, |it| format!(". Not checked: {it}"));
    log.log_plain(&format!("{}{result}{unchecked}", coverage.counts_text()));
}

/// What a validation did so far.
pub(crate) fn set_validated(mode: SyncMode, validated: ValidatedWork) {
    if !is_wanted() {
        return;
    }
    let mut all = lock();
    match mode {
        SyncMode::Inline => all.inline = Some(validated),
        SyncMode::Async => all.off_thread = Some(validated),
    }
    all.write();
}

/// Writes what was counted since the last line.
pub(crate) fn write() {
    if report_file::is_open() {
        lock().write();
    }
}

fn checks_of(settings: &Settings) -> Vec<CheckState> {
    let explained = settings.explain();
    let mut checks: Vec<CheckState> = Vec::new();
    for (name, refined) in CHECKS {
        let Some(setting) = explained.iter().find(|it| it.name == name) else { continue };
        let is_on = setting.value == "on";
        let exists = SETTINGS.iter().any(|it| it.name == name && it.exists);
        let is_refined_armed = refined.is_none_or(|it| checks.iter().any(|own| own.name == it && own.is_armed));
        let why = match (is_on, setting.source.as_str()) {
            (true, _) if !exists => "not in this version".to_owned(),
            (false, "default") if name == "gpu" => GPU_OPTION.to_owned(),
            (true, _) | (false, "default") => String::new(),
            (false, "default with capture") => "off beside a capture".to_owned(),
            (false, source) => format!("off by {source}"),
        };
        let is_armed = is_on && exists && is_refined_armed;
        checks.push(CheckState { name: name.to_owned(), is_wanted: is_armed, is_armed, why });
    }
    checks
}

fn lock() -> MutexGuard<'static, ProcessCoverage> {
    COVERAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lavascope_settings::{Sources, resolve};

    fn checks(variables: &[(&str, &str)]) -> Vec<CheckState> {
        let environment = variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        checks_of(&resolve(&Sources { environment, ..Sources::default() }).0)
    }

    fn state<'a>(checks: &'a [CheckState], name: &str) -> (bool, &'a str) {
        let check = checks.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("no check {name}"));
        (check.is_armed, &check.why)
    }

    #[test]
    fn every_check_is_a_flag_among_the_settings() {
        for (name, refined) in CHECKS {
            let is_flag = |name: &str| {
                SETTINGS.iter().any(|it| it.name == name && it.kind == lavascope_settings::SettingKind::Flag)
            };
            assert!(is_flag(name) && refined.is_none_or(is_flag), "{name}");
        }
    }

    #[test]
    fn by_default_synchronization_is_checked() {
        let all = checks(&[]);
        assert_eq!(state(&all, "sync"), (true, ""));
        assert_eq!(state(&all, "sync_submit_time"), (true, ""));
        assert_eq!(state(&all, "possible"), (false, ""));
        assert_eq!(state(&all, "gpu"), (false, "--gpu"));
        assert_eq!(state(&all, "gpu_descriptors"), (false, ""));
    }

    /// Each setting that is on by default, or that is switched on here, is seen when it is off.
    #[test]
    fn a_check_that_is_off_says_by_what() {
        let on = |it: &(&str, Option<&str>)| (format!("LAVASCOPE_{}", it.0.to_uppercase()), "on");
        let all_on: Vec<(String, &str)> = CHECKS.iter().map(on).collect();
        let all_on: Vec<(&str, &str)> = all_on.iter().map(|it| (it.0.as_str(), it.1)).collect();
        for (at, (name, _)) in CHECKS.into_iter().enumerate() {
            let exists = SETTINGS.iter().any(|it| it.name == name && it.exists);
            assert_eq!(state(&checks(&all_on), name).0, exists, "{name}");
            let mut variables = all_on.clone();
            variables[at].1 = "off";
            let why = format!("off by {}", variables[at].0);
            assert_eq!(state(&checks(&variables), name), (false, why.as_str()), "{name}");
        }
        assert_eq!(state(&checks(&all_on), "gpu_vertex_fetch").1, "not in this version");
        assert_eq!(state(&checks(&[("LAVASCOPE_CAPTURE", "a")]), "sync"), (false, "off beside a capture"));
    }
}
