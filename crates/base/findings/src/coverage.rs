//! How much of a program was checked, what was not, and why.
//!
//! A check that is silently off looks like a program without faults. So each process reports which checks were armed,
//! and how much of what it did they saw.

use serde::{Deserialize, Serialize};

use crate::words::count;

/// What the layer saw of one or more processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Coverage {
    /// Vulkan calls that were validated; none without `sync`.
    pub calls: u64,
    /// Every check, by the name of its setting.
    pub checks: Vec<CheckState>,
    /// Accesses to memory by commands. Without `sync`, none is seen.
    pub accesses: CheckedCount,
    /// Submissions to queues, each checked against those before it. Without `sync`, none is seen.
    pub submits: CheckedCount,
    /// Stages of pipelines, and shader objects. Without `gpu`, none is seen.
    pub shaders: CheckedCount,
    /// Draws, dispatches and the like that were recorded. Without `gpu`, none is seen.
    #[serde(skip_serializing_if = "CheckedCount::is_empty")]
    pub commands: CheckedCount,
    /// Memories that stay mapped while the device works: host writes to them are checked or not.
    pub mapped: CheckedCount,
}

/// Whether a check was on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckState {
    pub name: String,
    /// Whether the settings switch it on.
    pub is_wanted: bool,
    /// Whether it was made: false also if the device cannot do it.
    pub is_armed: bool,
    /// Where the setting comes from that switches the check off, or what limits the check.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

/// How many there were, and how many of them were checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckedCount {
    pub seen: u64,
    pub checked: u64,
    /// The others.
    pub unchecked: Vec<UncheckedCount>,
}

/// How many were not checked for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UncheckedCount {
    pub reason: String,
    pub count: u64,
}

/// The checks of shaders that are on unless a setting switches them off.
const SHADER_CHECKS: [&str; 6] = [
    "gpu_shader_checks",
    "gpu_descriptors",
    "gpu_buffer_bounds",
    "gpu_warn_robust",
    "gpu_device_address",
    "gpu_acceleration_structures",
];

/// What a command is that runs shaders.
const COMMAND: &str = "draw or dispatch";

impl CheckedCount {
    /// So many were checked, and the others were not.
    pub fn new(checked: u64, unchecked: impl IntoIterator<Item = UncheckedCount>) -> CheckedCount {
        let mut all = CheckedCount { seen: checked, checked, unchecked: Vec::new() };
        unchecked.into_iter().for_each(|it| all.add_unchecked(&it));
        all
    }

    /// Adds some that were not checked.
    pub fn add_unchecked(&mut self, more: &UncheckedCount) {
        if more.count == 0 {
            return;
        }
        self.seen += more.count;
        match self.unchecked.iter_mut().find(|it| it.reason == more.reason) {
            Some(own) => own.count += more.count,
            None => self.unchecked.push(more.clone()),
        }
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.seen == 0
    }

    fn add(&mut self, more: &CheckedCount) {
        self.seen += more.checked;
        self.checked += more.checked;
        more.unchecked.iter().for_each(|it| self.add_unchecked(it));
    }

    /// None if there were none.
    fn percent(&self) -> Option<f64> {
        (self.seen > 0).then(|| self.checked as f64 * 100.0 / self.seen as f64)
    }
}

/// What of a report is below a wanted coverage.
#[derive(Clone, Debug, PartialEq)]
pub struct CoverageShortfall {
    pub percent: f64,
    /// The part with the smallest coverage, and the reason.
    pub why: String,
}

impl Coverage {
    /// Adds what another process or instance did. A check counts as armed only if it was armed in all of them.
    pub fn add(&mut self, more: &Coverage) {
        self.calls += more.calls;
        self.add_checks(&more.checks);
        self.accesses.add(&more.accesses);
        self.submits.add(&more.submits);
        self.shaders.add(&more.shaders);
        self.commands.add(&more.commands);
        self.mapped.add(&more.mapped);
    }

    /// Adds the checks of another instance.
    pub fn add_checks(&mut self, checks: &[CheckState]) {
        for check in checks {
            match self.checks.iter_mut().find(|it| it.name == check.name) {
                Some(own) if own.is_armed && (!check.is_armed || own.why.is_empty()) => own.clone_from(check),
                Some(_) => {}
                None => self.checks.push(check.clone()),
            }
        }
    }

    /// Whether a check was armed.
    pub fn is_armed(&self, name: &str) -> bool {
        self.checks.iter().any(|it| it.name == name && it.is_armed)
    }

    /// Names the option of the command line that switches a check off.
    pub fn replace_reason(&mut self, name: &str, why: &str) {
        if let Some(check) = self.checks.iter_mut().find(|it| it.name == name && !it.is_armed) {
            why.clone_into(&mut check.why);
        }
    }

    /// Whether anything was checked at all.
    pub fn has_checks(&self) -> bool {
        self.is_armed("sync") || self.is_armed("gpu")
    }

    /// Whether the program did anything that a check could see: it submitted work or, where only shaders are checked, it
    /// created shaders.
    pub fn has_work(&self) -> bool {
        if self.is_armed("sync") { self.submits.seen > 0 } else { self.shaders.seen > 0 }
    }

    /// The checks of shaders that settings switch off, and those that are on. All of them are off with `gpu` itself.
    fn shader_checks(&self) -> CheckedCount {
        let mut all = CheckedCount::default();
        let is_one = |it: &&CheckState| SHADER_CHECKS.contains(&it.name.as_str());
        for check in self.checks.iter().filter(is_one).filter(|_| self.is_armed("gpu")) {
            if check.is_armed {
                (all.seen, all.checked) = (all.seen + 1, all.checked + 1);
            } else {
                let reason =
                    if check.why.is_empty() { String::new() } else { format!("{} ({})", check.name, check.why) };
                all.add_unchecked(&UncheckedCount { reason, count: 1 });
            }
        }
        all
    }

    fn parts(&self) -> [(&'static str, &CheckedCount); 4] {
        let commands = (COMMAND, &self.commands);
        [("submit", &self.submits), ("access", &self.accesses), ("shader", &self.shaders), commands]
    }

    /// A requested check that no device could make, and why.
    pub fn impossible_check(&self) -> Option<(&str, &str)> {
        let is_impossible = |check: &&CheckState| {
            let is_of_shaders = ["gpu", "printf"].contains(&check.name.as_str());
            is_of_shaders && check.is_wanted && !check.is_armed && !check.why.is_empty()
        };
        let check = self.checks.iter().find(is_impossible).filter(|_| self.shaders.checked == 0)?;
        Some((&check.name, &check.why))
    }

    /// The share that was checked of whatever was checked least. Zero if nothing was seen.
    pub fn percent(&self) -> f64 {
        if !self.has_work() {
            return 0.0;
        }
        let checks = self.shader_checks();
        let all = self.parts().into_iter().filter_map(|it| it.1.percent());
        all.chain(checks.percent()).min_by(f64::total_cmp).unwrap_or(0.0)
    }

    /// None if so many percent were checked, and nothing is known to be limited.
    pub fn shortfall(&self, wanted: f64) -> Option<CoverageShortfall> {
        if let Some(check) = self.checks.iter().find(|it| it.is_wanted && !it.is_armed && wanted > 0.0) {
            return Some(CoverageShortfall { percent: 0.0, why: format!("{}: {}", check.name, check.why) });
        }
        let percent = self.percent();
        if percent >= wanted {
            return None;
        }
        Some(CoverageShortfall { percent, why: self.shortfall_reason(percent) })
    }

    /// What of it has so small a share, and why.
    fn shortfall_reason(&self, percent: f64) -> String {
        if !self.has_checks() {
            let unchecked = self.unchecked_text();
            return match unchecked.is_empty() {
                true => "no check is on".to_owned(),
                false => format!("no check is on. Not checked: {unchecked}"),
            };
        }
        if !self.has_work() {
            return self.no_work_text().to_owned();
        }
        let checks = self.shader_checks();
        let parts = self.parts().into_iter().map(|it| (it.0, it.1, "checked"));
        let mut least = parts.chain([("check of shaders", &checks, "on")]).filter(|it| it.1.percent() == Some(percent));
        least.next().map_or_else(String::new, |(word, part, done)| {
            let reasons: Vec<&str> = part.unchecked.iter().map(|it| it.reason.as_str()).collect();
            let reasons: Vec<&str> = reasons.into_iter().filter(|it| !it.is_empty()).collect();
            format!("{} of {} {done}: {}", part.checked, count_text(part.seen, word), reasons.join("; "))
        })
    }

    fn no_work_text(&self) -> &'static str {
        if self.is_armed("sync") {
            "the program submitted nothing to a queue"
        } else {
            "the program created no shaders"
        }
    }

    /// All of it in a sentence or two. `has_problems`: findings are reported beside it; `has_suppressed`: some are known
    /// or ignored.
    pub(crate) fn summary(&self, has_problems: bool, has_suppressed: bool) -> String {
        let unchecked = Some(self.unchecked_text()).filter(|it| !it.is_empty());
        let unchecked = unchecked.map_or_else(String::new, |it| format!(". Not checked: {it}"));
        let has_nothing = !self.has_work() && self.accesses.seen == 0;
        if self.has_checks() && has_nothing && !has_problems {
            return format!("nothing was checked: {}{unchecked}", self.no_work_text());
        }
        let verdict = match has_problems || !self.has_checks() {
            true => "",
            false if !self.has_work() => ": no problems found, but nothing was submitted",
            false if has_suppressed => ": no other problems found",
            false => ": no problems found",
        };
        format!("{}{verdict}{unchecked}", self.counts_text())
    }

    /// `20 submits, 546 calls, 3 of 3 shaders checked`; what no check looks at is left out.
    pub fn counts_text(&self) -> String {
        let mut parts = Vec::new();
        if self.is_armed("sync") {
            parts.push(part_text("submit", &self.submits));
            parts.push(count_text(self.calls, "call"));
            parts.push(part_text("access", &self.accesses));
        }
        if self.is_armed("gpu") {
            parts.push(format!("{} of {}", self.shaders.checked, count_text(self.shaders.seen, "shader")));
            if self.commands.checked < self.commands.seen {
                parts.push(part_text(COMMAND, &self.commands));
            }
        }
        if parts.is_empty() { "nothing checked".to_owned() } else { parts.join(", ") + " checked" }
    }

    /// What was not checked, and why; empty if there is nothing to say.
    pub fn unchecked_text(&self) -> String {
        let mut checks: Vec<(&str, Vec<&str>)> = Vec::new();
        for (name, why) in self.checks.iter().filter_map(|it| self.limited_check(it)) {
            match checks.iter_mut().find(|it| it.0 == why) {
                Some((_, names)) if names.contains(&name) => {}
                Some((_, names)) => names.push(name),
                None => checks.push((why, vec![name])),
            }
        }
        let checks = checks.into_iter().map(|(why, names)| format!("{} ({why})", names.join(", ")));
        let counts = self.parts().into_iter().flat_map(|(word, part)| {
            part.unchecked.iter().map(move |it| format!("{} ({})", count_text(it.count, word), it.reason))
        });
        let mapped = self.mapped.unchecked.iter().map(|part| {
            let memories = if part.count == 1 { "memory" } else { "memories" };
            format!("writes to {} persistently mapped {memories} ({})", part.count, part.reason)
        });
        checks.chain(counts).chain(mapped).collect::<Vec<_>>().join("; ")
    }

    /// The name and the limit of a check, if it has one. Checks that refine another one are left out if that one is off.
    fn limited_check<'a>(&self, check: &'a CheckState) -> Option<(&'a str, &'a str)> {
        let refined =
            ["sync", "gpu"].into_iter().find(|it| check.name.strip_prefix(it).is_some_and(|it| it.starts_with('_')));
        let is_said = !check.why.is_empty() && refined.is_none_or(|it| self.is_armed(it));
        let name = match check.name.as_str() {
            "sync" => "synchronization",
            "gpu" => "shaders",
            "sync_host_writes" => "host writes",
            "gpu_vertex_fetch" => "vertex fetch",
            "gpu_index_buffers" => "index buffers",
            name if name.starts_with("gpu_indirect_") => "indirect commands",
            name => name,
        };
        is_said.then_some((name, &check.why))
    }
}

/// `2 submits`, or `1 of 2 submits` if not all of them were checked.
fn part_text(word: &str, part: &CheckedCount) -> String {
    match part.checked == part.seen {
        true => count_text(part.seen, word),
        false => format!("{} of {}", part.checked, count_text(part.seen, word)),
    }
}

fn count_text(number: u64, word: &str) -> String {
    match (number, word) {
        (2.. | 0, "access") => format!("{number} accesses"),
        (2.. | 0, "check of shaders") => format!("{number} checks of shaders"),
        (2.. | 0, COMMAND) => format!("{number} draws and dispatches"),
        _ => count(number, word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unchecked(reason: &str, count: u64) -> UncheckedCount {
        UncheckedCount { reason: reason.to_owned(), count }
    }

    fn check(name: &str, is_armed: bool, why: &str) -> CheckState {
        CheckState { name: name.to_owned(), is_wanted: is_armed, is_armed, why: why.to_owned() }
    }

    fn clean() -> Coverage {
        Coverage {
            calls: 546,
            checks: vec![check("sync", true, ""), check("possible", false, ""), check("gpu", false, "--gpu")],
            accesses: CheckedCount::new(1204, []),
            submits: CheckedCount::new(20, []),
            shaders: CheckedCount::default(),
            commands: CheckedCount::default(),
            mapped: CheckedCount::default(),
        }
    }

    #[test]
    fn it_says_what_was_checked_and_what_was_not() {
        assert_eq!(clean().counts_text(), "20 submits, 546 calls, 1204 accesses checked");
        assert_eq!(clean().unchecked_text(), "shaders (--gpu)");
        let mut coverage = clean();
        coverage.checks = vec![
            check("sync", true, ""),
            check("sync_submit_time", false, "off by a"),
            check("gpu", true, ""),
            check("gpu_descriptors", false, "off by b"),
            check("gpu_buffer_bounds", false, "off by b"),
            check("gpu_indirect_draws", false, "not in this version"),
            check("gpu_indirect_dispatches", false, "not in this version"),
        ];
        coverage.accesses.add_unchecked(&unchecked("an address that nobody asked for", 1));
        coverage.shaders = CheckedCount::new(2, [unchecked("not selected", 1), unchecked("not selected", 0)]);
        let counts = "20 submits, 546 calls, 1204 of 1205 accesses, 2 of 3 shaders checked";
        assert_eq!(coverage.counts_text(), counts);
        let unchecked = "sync_submit_time (off by a); gpu_descriptors, gpu_buffer_bounds (off by b); \
                         indirect commands (not in this version); \
                         1 access (an address that nobody asked for); 1 shader (not selected)";
        assert_eq!(coverage.unchecked_text(), unchecked);
        let nothing = Coverage { checks: vec![check("sync", false, "--no-sync")], ..Coverage::default() };
        assert_eq!(nothing.counts_text(), "nothing checked");
        assert_eq!(nothing.unchecked_text(), "synchronization (--no-sync)");
    }

    #[test]
    fn the_part_that_was_checked_least_decides() {
        assert_eq!(clean().shortfall(100.0), None);
        let mut coverage = clean();
        coverage.shaders = CheckedCount::new(99, [unchecked("not selected", 1)]);
        assert_eq!(coverage.shortfall(99.0), None);
        let why = "99 of 100 shaders checked: not selected".to_owned();
        assert_eq!(coverage.shortfall(99.5), Some(CoverageShortfall { percent: 99.0, why }));
        let why = "no check is on".to_owned();
        assert_eq!(Coverage::default().shortfall(1.0), Some(CoverageShortfall { percent: 0.0, why }));
        let bare = Coverage { checks: vec![check("sync", false, "--no-sync")], ..clean() };
        let why = bare.shortfall(1.0).map(|it| it.why);
        assert_eq!(why.as_deref(), Some("no check is on. Not checked: synchronization (--no-sync)"));
        let idle = Coverage { submits: CheckedCount::default(), ..clean() };
        let why = idle.shortfall(1.0).map(|it| it.why);
        assert_eq!(why.as_deref(), Some("the program submitted nothing to a queue"));
        assert_eq!(Coverage::default().shortfall(0.0), None);
        let mut coverage = clean();
        coverage.checks[2] = CheckState { is_wanted: true, ..check("gpu", false, "the device cannot") };
        assert_eq!(coverage.shortfall(1.0).map(|it| it.why), Some("gpu: the device cannot".to_owned()));
    }

    /// A check of shaders that a setting switches off is a part that was not checked.
    #[test]
    fn checks_of_shaders_that_are_off_count() {
        for name in SHADER_CHECKS {
            let mut coverage = clean();
            coverage.shaders = CheckedCount::new(2, []);
            coverage.checks = vec![check("sync", true, ""), check("gpu", true, "")];
            coverage.checks.extend(SHADER_CHECKS.map(|it| check(it, true, "")));
            assert_eq!(coverage.shortfall(100.0), None);
            let own = coverage.checks.iter_mut().find(|it| it.name == name).expect("one of them");
            *own = check(name, false, "off by a");
            let shortfall = coverage.shortfall(99.0).expect("too little");
            let why = format!("5 of 6 checks of shaders on: {name} (off by a)");
            assert_eq!((shortfall.percent.floor(), shortfall.why), (83.0, why));
            assert_eq!(coverage.unchecked_text(), format!("{name} (off by a)"));
            coverage.checks[1] = check("gpu", false, "off by b");
            assert_eq!(coverage.shader_checks(), CheckedCount::default());
        }
    }

    #[test]
    fn a_summary_of_nothing_says_so() {
        let text = "20 submits, 546 calls, 1204 accesses checked: no problems found. Not checked: shaders (--gpu)";
        assert_eq!(clean().summary(false, false), text);
        let mut idle = Coverage { submits: CheckedCount::default(), ..clean() };
        let text = "0 submits, 546 calls, 1204 accesses checked: no problems found, but nothing was submitted";
        assert!(idle.summary(false, false).starts_with(text), "{}", idle.summary(false, false));
        idle.accesses = CheckedCount::default();
        let text = "nothing was checked: the program submitted nothing to a queue. Not checked: shaders (--gpu)";
        assert_eq!(idle.summary(false, false), text);
        assert!(idle.summary(true, false).starts_with("0 submits, 546 calls, 0 accesses checked. Not"));
    }

    #[test]
    fn processes_add_up_and_a_check_is_armed_in_all_of_them_or_not() {
        let mut both = clean();
        let mut other = clean();
        other.checks[0] = check("sync", false, "off by c");
        other.submits.add_unchecked(&unchecked("late", 2));
        both.add(&other);
        both.add(&clean());
        assert_eq!((both.calls, both.submits.checked, both.submits.seen), (3 * 546, 60, 62));
        assert_eq!(both.checks[0], check("sync", false, "off by c"));
        assert!(!both.is_armed("sync"));
    }

    #[test]
    fn it_is_read_back() {
        let mut coverage = clean();
        coverage.accesses.add_unchecked(&unchecked("why", 3));
        let text = serde_json::to_string(&coverage).expect("JSON");
        assert_eq!(serde_json::from_str::<Coverage>(&text).expect("the same"), coverage);
    }
}
