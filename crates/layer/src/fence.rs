//! Our bugs stay ours: a panic never crosses into the application.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use lavascope_abi::Command;

use crate::hub::HUB;
use crate::report;

/// Runs `work`; after a panic says so once, switches everything off and gives `instead`.
#[inline(always)]
pub(crate) fn fence<T>(name: impl Name, work: impl FnOnce() -> T, instead: impl FnOnce() -> T) -> T {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(value) => value,
        Err(payload) => {
            report(name.name(), &*payload);
            instead()
        }
    }
}

/// What is being done, for the report.
pub(crate) trait Name {
    fn name(&self) -> &str;
}

impl Name for &str {
    fn name(&self) -> &str {
        self
    }
}

impl Name for Command {
    fn name(&self) -> &str {
        self.desc().name
    }
}

#[cold]
fn report(name: &str, payload: &(dyn Any + Send)) {
    /// Relaxed: it orders nothing, and two reports at worst would do no harm.
    static IS_REPORTED: AtomicBool = AtomicBool::new(false);
    if !IS_REPORTED.swap(true, Ordering::Relaxed) {
        // Not `eprintln`: it panics when nobody reads, and there is no fence around this one.
        let _ = writeln!(
            std::io::stderr(),
            "lavascope: a bug of ours in {name}; the program goes on without us. Please report it"
        );
        report::bug(name, &text_of(payload));
        HUB.give_up();
    }
}

/// What a panic said.
fn text_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::fence;

    #[test]
    fn a_panic_ends_here() {
        assert_eq!(fence("vkTest", || panic!("on purpose"), || 7), 7);
        assert_eq!(fence("vkTest", || 3, || 7), 3);
    }
}
