//! The order of threads after some calls of the trace are skipped.
//!
//! A skipped call may have order edges, and later calls may have edges to it. The next kept call of its thread inherits
//! the edges of the skipped call. An edge to a skipped call becomes an edge to the last kept call before it, together
//! with the edges of the calls in between. The result may order more than the original edges, but nothing that the
//! merged order contradicts, so there is never a cycle.

use std::collections::BTreeMap;

use lavascope_record::OrderEdge;
use rustc_hash::FxHashMap;

#[derive(Default)]
pub(crate) struct OrderEdges {
    streams: FxHashMap<u32, StreamEdges>,
}

#[derive(Default)]
struct StreamEdges {
    /// Complete calls that are kept, in the order in which they completed.
    kept: Vec<u64>,
    /// The edges of the next record, by stream.
    pending: BTreeMap<u32, u64>,
    /// The calls that earlier records already have edges to, by stream.
    named: FxHashMap<u32, u64>,
}

impl OrderEdges {
    /// A record with these edges is skipped.
    pub(crate) fn skip_record(&mut self, stream: u32, order_edges: impl Iterator<Item = OrderEdge>) {
        let all = self.resolve(order_edges);
        let own = self.streams.entry(stream).or_default();
        all.into_iter().filter(|it| it.0 != stream).for_each(|it| ask(&mut own.pending, it));
    }

    /// A record with these edges is kept. Returns the edges that it gets.
    pub(crate) fn keep_record(&mut self, stream: u32, order_edges: impl Iterator<Item = OrderEdge>) -> Vec<u64> {
        let mut all = self.resolve(order_edges);
        let own = self.streams.entry(stream).or_default();
        std::mem::take(&mut own.pending).into_iter().for_each(|it| ask(&mut all, it));
        all.retain(|thread, call| {
            let named = own.named.entry(*thread).or_default();
            let is_new = *thread != stream && *call > *named;
            *named = (*named).max(*call);
            is_new
        });
        all.into_iter().map(|(thread, call)| OrderEdge { thread, call }.to_word()).collect()
    }

    /// A call that is kept is complete.
    pub(crate) fn complete(&mut self, stream: u32, call: u64) {
        self.streams.entry(stream).or_default().kept.push(call);
    }

    /// Edges to the last kept calls of all other threads.
    pub(crate) fn edges_to_all(&self, stream: u32) -> Vec<OrderEdge> {
        let last = |(thread, own): (&u32, &StreamEdges)| {
            Some(OrderEdge { thread: *thread, call: own.kept.iter().max().copied()? })
        };
        self.streams.iter().filter(|it| *it.0 != stream).filter_map(last).collect()
    }

    /// All others come after a call.
    pub(crate) fn order_all_after(&mut self, stream: u32, call: u64) {
        for (_, own) in self.streams.iter_mut().filter(|it| *it.0 != stream) {
            ask(&mut own.pending, (stream, call));
        }
    }

    fn resolve(&self, order_edges: impl Iterator<Item = OrderEdge>) -> BTreeMap<u32, u64> {
        let mut all = BTreeMap::new();
        for edge in order_edges {
            let Some(other) = self.streams.get(&edge.thread) else { continue };
            let kept = other.kept.iter().rev().find(|kept| **kept <= edge.call).copied();
            if let Some(call) = kept {
                ask(&mut all, (edge.thread, call));
            }
            if kept != Some(edge.call) {
                other.pending.iter().for_each(|it| ask(&mut all, (*it.0, *it.1)));
            }
        }
        all
    }
}

fn ask(all: &mut BTreeMap<u32, u64>, (thread, call): (u32, u64)) {
    let own = all.entry(thread).or_default();
    *own = (*own).max(call);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(thread: u32, call: u64) -> OrderEdge {
        OrderEdge { thread, call }
    }

    #[test]
    fn the_order_goes_on_over_what_is_left_out() {
        let mut order_edges = OrderEdges::default();
        order_edges.complete(1, 5);
        // Thread 2 has the edge in a call that is skipped, and thread 3 has an edge to thread 2.
        order_edges.skip_record(2, [edge(1, 5)].into_iter());
        assert_eq!(order_edges.keep_record(3, [edge(2, 9)].into_iter()), [edge(1, 5).to_word()]);
        // The edge is not repeated; thread 2 itself does not have it yet.
        assert!(order_edges.keep_record(3, [edge(1, 5)].into_iter()).is_empty());
        assert_eq!(order_edges.keep_record(2, std::iter::empty()), [edge(1, 5).to_word()]);
        // An edge to a skipped call becomes one to the last kept call before it.
        order_edges.complete(1, 8);
        assert!(order_edges.keep_record(2, [edge(1, 7)].into_iter()).is_empty());
        assert_eq!(order_edges.keep_record(2, [edge(1, 12)].into_iter()), [edge(1, 8).to_word()]);
        order_edges.order_all_after(1, 20);
        assert_eq!(order_edges.keep_record(2, std::iter::empty()), [edge(1, 20).to_word()]);
        assert_eq!(order_edges.edges_to_all(2), [edge(1, 8)]);
    }
}
