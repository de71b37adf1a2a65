//! Pipelines that are destroyed: what nobody told of them yet is told, and what is known of their shaders is forgotten.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use lavascope_instrument::decode;

use super::commands::Commands;
use super::tell::{Finding, Told, counts_of};
use super::variants::{Checked, Variant};
use super::{Gpu, State};

impl State {
    /// Takes out the forms of a pipeline, with their shaders.
    fn take_forms(&mut self, number: u32) -> Vec<Arc<Variant>> {
        let all = std::mem::take(&mut self.variants);
        let (ended, rest) = all.into_iter().partition(|it| it.application.1 == number);
        self.variants = rest;
        ended
    }

    /// Takes out the forms of shader objects of which none is there any more.
    fn take_object_forms(&mut self) -> Vec<Arc<Variant>> {
        let live: HashSet<u32> = self.objects.live.values().map(|it| it.number).collect();
        let is_there = |it: &Arc<Variant>| {
            it.objects.is_none() || it.stages.iter().filter_map(|it| it.object).any(|it| live.contains(&it.1))
        };
        let (rest, ended) = std::mem::take(&mut self.variants).into_iter().partition(is_there);
        self.variants = rest;
        ended
    }

    /// The shader objects of forms that were taken out, as far as nothing else is left of them.
    fn objects_gone(&self, ended: &[Arc<Variant>]) -> HashSet<u32> {
        let numbers = |all: &[Arc<Variant>]| -> HashSet<u32> {
            all.iter().flat_map(|it| &it.stages).filter_map(|it| Some(it.object?.1)).collect()
        };
        let mut gone = numbers(ended);
        let left = numbers(&self.variants);
        gone.retain(|it| !left.contains(it) && !self.objects.live.values().any(|live| live.number == *it));
        gone
    }

    /// Takes out what was told of pipelines or shader objects.
    fn take_told(&mut self, is_it: impl Fn(u32) -> bool) -> Vec<Told> {
        self.told.extract_if(.., |it| is_it(it.pipeline())).collect()
    }

    /// Records of draws with a pipeline that no work uses any more.
    fn read_of(&mut self, handle: u64, commands: &Commands, number: u32) -> Vec<Finding> {
        let mut found = Vec::new();
        for drawn in commands.draws.iter().filter(|it| commands.variant_of(it).application.1 == number) {
            let records = drawn.records();
            if records.word(0) == 0 {
                continue;
            }
            let (draw, words) = (&commands.draw(drawn), records.read());
            for record in decode(&words).unwrap_or_default() {
                found.extend(self.find(draw, (handle, commands.number), &commands.queue_labels, &record));
            }
            found.extend(self.find_prints(draw, (handle, commands.number), &words));
            records.zero();
        }
        found
    }
}

impl Gpu {
    /// A pipeline is about to be destroyed, and no work uses it.
    pub(super) fn pipeline_ends(&self, checked: &Checked) {
        let (mut state, number) = (self.state(), checked.number);
        let ended = state.take_forms(number);
        let has_news = ended.iter().any(|it| state.has_untold(it));
        drop(state);
        if has_news {
            let found = self.read_draws_of(number);
            self.tell_all(found);
        }
        let mut state = self.state();
        let found = state.find_unrecorded(&ended);
        state.forget_found(&ended, |it| it == number);
        drop(state);
        self.tell_all(found);
        let (told, counts) = (self.state().take_told(|it| it == number), counts_of(&ended));
        told.into_iter().for_each(|mut it| it.tell_more(&counts));
        self.destroy_forms(checked);
        // One that nobody drew with may have been made meanwhile.
        drop(self.state().take_forms(number));
    }

    /// Shader objects are about to be destroyed, and no work uses them.
    pub(super) fn objects_end(&self) {
        let mut state = self.state();
        let ended = state.take_object_forms();
        let has_news = ended.iter().any(|it| state.has_untold(it));
        drop(state);
        if ended.is_empty() {
            return;
        }
        let numbers: BTreeSet<u32> = ended.iter().filter(|_| has_news).map(|it| it.application.1).collect();
        for number in numbers {
            let found = self.read_draws_of(number);
            self.tell_all(found);
        }
        let mut state = self.state();
        let found = state.find_unrecorded(&ended);
        if !state.told.is_empty() {
            let all: Vec<Arc<Variant>> = ended.iter().chain(&state.variants).cloned().collect();
            // An object is in many forms; from here on what it does in the others counts.
            let (now, rest) = (counts_of(&all), counts_of(&state.variants));
            state.told.iter_mut().for_each(|it| it.tell_and_forget(&now, &rest));
        }
        let gone = state.objects_gone(&ended);
        state.forget_found(&ended, |it| gone.contains(&it));
        drop(state);
        self.tell_all(found);
        drop(self.state().take_told(|it| gone.contains(&it)));
    }

    /// What command buffers have of a pipeline, where the application found out about its end in a way of its own.
    fn read_draws_of(&self, number: u32) -> Vec<Finding> {
        let mut found = Vec::new();
        for handle in self.slots.handles_unsorted() {
            let Some(slot) = self.slot(handle) else { continue };
            let Some(commands) = slot.hold() else { continue };
            found.extend(self.state().read_of(handle, &commands, number));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use lavascope_abi::Pipeline;

    use super::*;

    fn form(handle: u64, number: u32) -> Arc<Variant> {
        Arc::new(Variant {
            handle: Pipeline(handle),
            application: (Pipeline(number.into()), number),
            ..Variant::empty()
        })
    }

    #[test]
    fn the_forms_of_a_destroyed_pipeline_are_forgotten() {
        let mut state = State { variants: vec![form(1, 0), form(2, 1), form(3, 0)], ..State::default() };
        let weak: Vec<_> = state.variants.iter().map(Arc::downgrade).collect();
        assert_eq!(state.take_forms(0).iter().map(|it| it.handle.0).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(weak.iter().map(|it| it.upgrade().is_some()).collect::<Vec<_>>(), [false, true, false]);
        assert!(state.take_forms(0).is_empty());
    }
}
