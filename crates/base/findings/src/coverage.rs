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

    fn parts(&self) -> [(&'static str, &CheckedCount); 3] {
        [("submit", &self.submits), ("access", &self.accesses), ("shader", &self.shaders)]
    }

    /// The share that was checked of whatever was checked least. Zero if nothing was seen at all.
    pub fn percent(&self) -> f64 {
        let all = self.parts().into_iter().filter_map(|it| it.1.percent());
        all.min_by(f64::total_cmp).unwrap_or(0.0)
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
        let least = self.parts().into_iter().filter(|it| it.1.percent() == Some(percent)).map(|(word, part)| {
            let reasons: Vec<&str> = part.unchecked.iter().map(|it| it.reason.as_str()).collect();
            format!("{} of {} checked: {}", part.checked, count_text(part.seen, word), reasons.join("; "))
        });
        let why = least.into_iter().next().unwrap_or_else(|| "no work of a device was seen".to_owned());
        Some(CoverageShortfall { percent, why })
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
        checks.chain(counts).collect::<Vec<_>>().join("; ")
    }

    /// The name and the limit of a check, if it has one. Checks that refine another one are left out if that one is off.
    fn limited_check<'a>(&self, check: &'a CheckState) -> Option<(&'a str, &'a str)> {
        let refined =
            ["sync", "gpu"].into_iter().find(|it| check.name.strip_prefix(it).is_some_and(|it| it.starts_with('_')));
        let is_said = !check.why.is_empty() && refined.is_none_or(|it| self.is_armed(it));
        let name = match check.name.as_str() {
            "sync" => "synchronization",
            "gpu" => "shaders",
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
        let why = "no work of a device was seen".to_owned();
        assert_eq!(Coverage::default().shortfall(1.0), Some(CoverageShortfall { percent: 0.0, why }));
        assert_eq!(Coverage::default().shortfall(0.0), None);
        let mut coverage = clean();
        coverage.checks[2] = CheckState { is_wanted: true, ..check("gpu", false, "the device cannot") };
        assert_eq!(coverage.shortfall(1.0).map(|it| it.why), Some("gpu: the device cannot".to_owned()));
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
