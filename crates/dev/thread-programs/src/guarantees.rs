//! What a trace guarantees: which calls are over when another begins, whatever the threads of a replay do.
//!
//! A replay performs each stream in its order, begins a call when those are complete that its order edges name, and
//! a wait does not return before the call that ends it has begun. Nothing else is assumed.

use std::collections::HashMap;

use crate::program_trace::TracedStreams;

/// By stream: the number of the last call that is over.
type Clock = Vec<u64>;

/// A call: the index of the stream, and its index there.
pub(crate) type CallIndex = (usize, usize);

pub(crate) struct Guarantees {
    /// By call: what is over when it begins.
    begins: Vec<Vec<Clock>>,
    ends: Vec<Vec<Clock>>,
}

impl Guarantees {
    /// `wakes` has, for a call that waits, the call that ends the wait.
    pub(crate) fn new(streams: &TracedStreams, wakes: &HashMap<CallIndex, CallIndex>) -> Result<Guarantees, String> {
        let count = streams.calls.len();
        let empty: Vec<Vec<Clock>> = streams.calls.iter().map(|it| Vec::with_capacity(it.len())).collect();
        let mut all = Guarantees { begins: empty.clone(), ends: empty };
        loop {
            let mut is_stuck = true;
            for stream in 0..count {
                while all.advance(streams, wakes, stream)? {
                    is_stuck = false;
                }
            }
            if is_stuck {
                break;
            }
        }
        let stuck = (0..count).find(|it| all.ends[*it].len() < streams.calls[*it].len());
        match stuck {
            Some(stream) => {
                let call = &streams.calls[stream][all.ends[stream].len()];
                Err(format!("call {} of stream {} can never begin", call.number, streams.numbers[stream]))
            }
            None => Ok(all),
        }
    }

    /// Adds the next call of a stream, if all that it comes after was added.
    fn advance(
        &mut self,
        streams: &TracedStreams,
        wakes: &HashMap<CallIndex, CallIndex>,
        stream: usize,
    ) -> Result<bool, String> {
        let index = self.ends[stream].len();
        let Some(call) = streams.calls[stream].get(index) else { return Ok(false) };
        let mut clock = self.ends[stream].last().cloned().unwrap_or_else(|| vec![0; streams.calls.len()]);
        for edge in &call.edges {
            let other = streams.index_of(edge.thread).ok_or("an order edge names a stream that does not exist")?;
            // Host writes have numbers, too, and follow the call before them.
            let before = streams.calls[other].partition_point(|it| it.number <= edge.call);
            if self.ends[other].len() < before {
                return Ok(false);
            }
            if let Some(end) = before.checked_sub(1).map(|it| &self.ends[other][it]) {
                join(&mut clock, end);
            }
            clock[other] = clock[other].max(edge.call);
        }
        let waker = wakes.get(&(stream, index));
        let Some(woken) = waker.map_or(Some(None), |(other, call)| self.begins[*other].get(*call).map(Some)) else {
            return Ok(false);
        };
        let mut end = clock.clone();
        woken.into_iter().for_each(|it| join(&mut end, it));
        end[stream] = call.number;
        self.begins[stream].push(clock);
        self.ends[stream].push(end);
        Ok(true)
    }

    /// Whether a call is over when another begins.
    pub(crate) fn is_over(&self, streams: &TracedStreams, call: CallIndex, when: CallIndex) -> bool {
        self.begins[when.0][when.1][call.0] >= streams.calls[call.0][call.1].number
    }
}

fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

#[cfg(test)]
mod tests {
    use lavascope_record::OrderEdge;

    use super::*;
    use crate::program_trace::TracedCall;

    /// Streams with such order edges at their calls, which are numbered from one.
    fn streams(all: &[&[&[(u32, u64)]]]) -> TracedStreams {
        let call = |(number, edges): (u64, &&[(u32, u64)])| {
            TracedCall::new(number, edges.iter().map(|it| OrderEdge { thread: it.0, call: it.1 }).collect())
        };
        let calls = all.iter().map(|it| (1..).zip(it.iter()).map(call).collect()).collect();
        TracedStreams { numbers: (1..=all.len() as u32).collect(), calls }
    }

    #[test]
    fn only_order_edges_and_waits_order_streams() {
        let wakes = HashMap::new();
        let of = streams(&[&[&[], &[]], &[&[], &[(1, 1)], &[]]]);
        let guarantees = Guarantees::new(&of, &wakes).expect("no cycle");
        assert!(!guarantees.is_over(&of, (0, 0), (1, 0)) && guarantees.is_over(&of, (0, 0), (1, 1)));
        assert!(guarantees.is_over(&of, (0, 0), (1, 2)) && !guarantees.is_over(&of, (0, 1), (1, 2)));
        let woken = HashMap::from([((1, 0), (0, 1))]);
        let guarantees = Guarantees::new(&of, &woken).expect("no cycle");
        assert!(!guarantees.is_over(&of, (0, 0), (1, 0)), "it may begin to wait before");
        assert!(guarantees.is_over(&of, (0, 0), (1, 1)));
        assert!(!guarantees.is_over(&of, (0, 1), (1, 2)), "what ends a wait need not have returned");
    }

    #[test]
    fn a_cycle_is_found() {
        let of = streams(&[&[&[(2, 1)]], &[&[(1, 1)]]]);
        assert!(Guarantees::new(&of, &HashMap::new()).is_err_and(|it| it.contains("call 1 of stream 1")));
    }
}
