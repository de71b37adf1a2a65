//! How many draws and dispatches of a command buffer are checked, and why the others are not.
//!
//! They are counted when they are recorded, and added to the coverage of the process when the command buffer ends. A
//! draw counts as checked if all shaders of its pipeline are, or have nothing to check.

use std::sync::Arc;

use crate::gpu::pipeline::plan::CHECKS_ENDED;
use crate::gpu::pipeline::variants::PipelineVariant;
use crate::report::coverage;

/// Why a draw or dispatch is not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UncheckedLaunch {
    /// A shader of its pipeline is not: the variant has the reason.
    Shader,
    /// Less is bound than the pipeline expects, and it cannot be created again without expectations.
    NotRebuilt,
    Protected,
    Preprocessed,
    /// A command that names pipelines by handle needs the variant that the application has.
    Generated,
    /// A shader object has no SPIR-V.
    Object,
    /// There is no memory, or the layer was disabled.
    Ended,
}

/// Reported once, and counted, where a pipeline cannot be created again.
pub(crate) const NOT_REBUILT: &str = "less is bound than a pipeline uses, and the driver does not create it again with all checks: its draws or dispatches \
     are not checked";
pub(crate) const PROTECTED: &str =
    "shaders in protected command buffers are not checked: they may not write to the layer's unprotected memory";
pub(crate) const PREPROCESSED: &str = "preprocessed generated commands are not checked";
pub(crate) const GENERATED: &str =
    "less is bound than the pipeline of a generated command uses: the command is not checked";
pub(crate) const OBJECT: &str =
    "shader objects created from binaries, and shader objects drawn with them, are not checked";

impl UncheckedLaunch {
    fn text(self, variant: Option<&PipelineVariant>) -> &str {
        match self {
            UncheckedLaunch::Shader => variant.and_then(|it| it.unchecked.as_deref()).unwrap_or(CHECKS_ENDED),
            UncheckedLaunch::NotRebuilt => NOT_REBUILT,
            UncheckedLaunch::Protected => PROTECTED,
            UncheckedLaunch::Preprocessed => PREPROCESSED,
            UncheckedLaunch::Generated => GENERATED,
            UncheckedLaunch::Object => OBJECT,
            UncheckedLaunch::Ended => CHECKS_ENDED,
        }
    }
}

/// The counts of a command buffer.
#[derive(Default)]
pub(crate) struct LaunchCounts {
    seen: u64,
    /// Few reasons.
    unchecked: Vec<(Arc<str>, u64)>,
}

impl LaunchCounts {
    /// A draw or dispatch is recorded.
    #[inline(always)]
    pub(crate) fn add(&mut self) {
        self.seen += 1;
    }

    /// The last one is not checked.
    #[cold]
    #[inline(never)]
    pub(crate) fn leave_unchecked(&mut self, why: UncheckedLaunch, variant: Option<&PipelineVariant>) {
        let text = why.text(variant);
        match self.unchecked.iter_mut().find(|it| &*it.0 == text) {
            Some((_, count)) => *count += 1,
            None => self.unchecked.push((Arc::from(text), 1)),
        }
    }

    /// Adds the counts to the coverage, and begins anew.
    pub(crate) fn flush(&mut self) {
        if self.seen > 0 {
            let LaunchCounts { seen, unchecked } = std::mem::take(self);
            coverage::count_launches(seen, &unchecked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_count() {
        let mut counts = LaunchCounts::default();
        let variant = PipelineVariant { unchecked: Some(Arc::from("a reason")), ..PipelineVariant::empty() };
        for why in [None, Some(UncheckedLaunch::Shader), Some(UncheckedLaunch::Shader), Some(UncheckedLaunch::Ended)] {
            counts.add();
            why.into_iter().for_each(|it| counts.leave_unchecked(it, Some(&variant)));
        }
        assert_eq!(counts.seen, 4);
        assert_eq!(counts.unchecked, [(Arc::from("a reason"), 2), (Arc::from(CHECKS_ENDED), 1)]);
        counts.flush();
        assert_eq!((counts.seen, counts.unchecked.len()), (0, 0));
    }
}
