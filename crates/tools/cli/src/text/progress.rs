//! How far something is that takes long: a bar on the terminal, from its second second on.

use std::io::{IsTerminal, stderr};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// What is over sooner needs no bar.
const QUIET: Duration = Duration::from_secs(1);

/// Counted by any thread. The bar goes when this does.
pub(crate) struct TerminalProgress {
    began: Instant,
    is_shown: bool,
    total: u64,
    /// Relaxed: a number to look at.
    done: AtomicU64,
    bar: OnceLock<ProgressBar>,
}

impl TerminalProgress {
    /// Of so many steps, whatever they are.
    pub(crate) fn new(total: u64) -> TerminalProgress {
        let is_shown = stderr().is_terminal();
        TerminalProgress { began: Instant::now(), is_shown, total, done: AtomicU64::new(0), bar: OnceLock::new() }
    }

    pub(crate) fn advance(&self, steps: u64) {
        self.show(self.done.fetch_add(steps, Ordering::Relaxed) + steps);
    }

    /// So many steps are done in all.
    pub(crate) fn reach(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.show(done);
    }

    fn show(&self, done: u64) {
        if self.is_shown && self.began.elapsed() >= QUIET {
            let bar = self.bar.get_or_init(|| bar(self.total).with_elapsed(self.began.elapsed()));
            bar.set_position(done.min(self.total));
        }
    }

    /// As [`TerminalProgress::reach`], with what else is to be seen.
    pub(crate) fn set_done_with_message(&self, done: u64, message: String) {
        self.reach(done);
        if let Some(bar) = self.bar.get() {
            bar.set_message(message);
        }
    }
}

impl Drop for TerminalProgress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

fn bar(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:40} {percent:>3} %, {eta} left{msg}");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(began: Instant, is_shown: bool) -> TerminalProgress {
        TerminalProgress { began, is_shown, total: 100, done: AtomicU64::new(0), bar: OnceLock::new() }
    }

    #[test]
    fn there_is_no_bar_in_the_first_second_nor_without_a_terminal() {
        let long_ago = Instant::now().checked_sub(QUIET).expect("the clock is older than a second");
        let early = of(Instant::now(), true);
        early.advance(1);
        assert!(early.bar.get().is_none());
        let progress = of(long_ago, true);
        progress.advance(50);
        assert_eq!(progress.bar.get().map(ProgressBar::position), Some(50));
        progress.reach(70);
        assert_eq!(progress.bar.get().map(ProgressBar::position), Some(70));
        progress.set_done_with_message(70, ", 4 frames".to_owned());
        let shown = progress.bar.get().map(|it| (it.position(), it.message()));
        assert_eq!(shown, Some((70, ", 4 frames".to_owned())));
        let unseen = of(long_ago, false);
        unseen.advance(1);
        assert!(unseen.bar.get().is_none());
    }
}
