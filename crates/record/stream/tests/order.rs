//! Real threads hand objects to each other, and the merged streams must give every hand-over in its true order.

use lavascope_test_support::TestRng;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lavascope_abi::{Command, HandleType, ObjectId};
use lavascope_record::encoding::{OrderEdge, RecordHeader, RecordPhase};
use lavascope_stream::{
    Merger, ObjectParent, ObjectSlot, ObjectTable, OrderedRecord, StreamControl, StreamThread, StreamThreads,
};

/// A record whose image is two words of our own: which object, and how often it was used before.
fn record(command: Command, call: u64, words: [u64; 2], order_edges: &[u64]) -> Vec<u64> {
    let head = RecordHeader {
        body_words: 4,
        command: command as u16,
        kind: RecordPhase::Enter as u8,
        omissions: 0,
        call,
        order_edge_count: order_edges.len() as u32,
    };
    let mut record = head.to_words().to_vec();
    record.extend(words);
    record.extend(order_edges);
    record
}

struct Shared {
    objects: ObjectTable,
    threads: StreamThreads,
    /// The application's own locks, and how often each object was used.
    uses: Vec<(ObjectSlot, Mutex<u64>)>,
}

impl Shared {
    fn new(objects: usize) -> Shared {
        let all = ObjectTable::new();
        let slot = |it| all.add(ObjectId::new(HandleType::Buffer, it).unwrap_or_default(), ObjectParent::None, 0);
        let uses = (0..objects as u64).filter_map(slot).map(|it| (it, Mutex::new(0))).collect();
        Shared { objects: all, threads: StreamThreads::new(), uses }
    }

    /// One call with an externally synchronized object, as the layer makes it.
    fn call(&self, thread: &mut StreamThread, object: usize) {
        let (slot, uses) = &self.uses[object];
        let mut uses = uses.lock().expect("nobody panics");
        let call = thread.begin();
        thread.order_after(self.objects.last_edge(*slot));
        thread.append(&record(Command::CmdDraw, call, [object as u64, *uses], thread.order_edges()));
        thread.end_record();
        self.objects.set_last_edge(*slot, thread.edge_to(call));
        thread.complete(call);
        *uses += 1;
    }
}

#[test]
fn hand_overs_are_reported_in_their_true_order() {
    for (seed, threads, objects) in [(1, 2, 1), (2, 4, 3), (3, 8, 5), (4, 16, 40)] {
        let shared = Shared::new(objects);
        let wake = StreamControl::new(usize::MAX);
        let running = AtomicU64::new(threads);
        let mut merger = Merger::default();
        let mut expected = vec![0; objects];
        let mut check = |ordered_record: OrderedRecord<'_>| {
            let words = ordered_record.record;
            let object = words[2] as usize;
            assert_eq!(words[3], expected[object], "seed {seed}: object {object} in the order of its uses");
            expected[object] += 1;
        };
        std::thread::scope(|scope| {
            let start = |value| {
                let (shared, wake, running) = (&shared, &wake, &running);
                scope.spawn(move || {
                    let mut thread = shared.threads.register(wake);
                    let mut random = TestRng::new(seed * 1000 + value);
                    for _ in 0..3000 {
                        shared.call(&mut thread, random.below(objects));
                    }
                    shared.threads.retire(thread);
                    running.fetch_sub(1, Ordering::Release);
                })
            };
            let started: Vec<_> = (0..threads).map(start).collect();
            // Read while they write.
            while running.load(Ordering::Acquire) > 0 {
                merger.drain(&shared.threads, &mut check);
            }
            // Joined by hand: ThreadSanitizer does not see what the end of a scope waits for.
            started.into_iter().for_each(|it| it.join().expect("nobody panics"));
        });
        merger.drain(&shared.threads, &mut check);
        assert_eq!(expected.iter().sum::<u64>(), threads * 3000, "every record comes out");
    }
}

#[test]
fn few_touches_are_enough() {
    let shared = Shared::new(1);
    let wake = StreamControl::new(usize::MAX);
    let (mut a, mut b) = (shared.threads.register(&wake), shared.threads.register(&wake));
    for _ in 0..100 {
        shared.call(&mut a, 0);
    }
    for _ in 0..100 {
        shared.call(&mut b, 0);
    }
    let mut order_edges = Vec::new();
    Merger::default().drain(&shared.threads, |ordered| {
        order_edges.extend(ordered.record[4..].iter().map(|it| (ordered.thread, OrderEdge::from_word(*it))));
    });
    assert_eq!(order_edges, [(b.number(), OrderEdge { thread: a.number(), call: 100 })]);
}

/// One thread submits, one waits for the fence, and a third continues because the second signaled it by means that the
/// layer cannot see: only the push barrier orders it.
#[test]
fn barriers_order_what_no_object_does() {
    for round in 0..200 {
        let shared = Shared::new(1);
        let wake = StreamControl::new(usize::MAX);
        let (is_signaled, is_notified) = (AtomicBool::new(false), AtomicBool::new(false));
        let until = |flag: &AtomicBool| {
            while !flag.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        };
        let mut others =
            [shared.threads.register(&wake), shared.threads.register(&wake), shared.threads.register(&wake)];
        let [submitter, waiter, third] = &mut others;
        let fence = shared.uses[0].0;
        let write_call = |thread: &mut StreamThread, what: u64| {
            let call = thread.begin();
            if thread.take_barrier_request() {
                thread.order_after_pushes(&shared.threads);
            }
            thread.order_after(shared.objects.last_edge(fence));
            thread.append(&record(Command::CmdDraw, call, [what, round], thread.order_edges()));
            thread.end_record();
            call
        };
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let call = write_call(submitter, 100);
                shared.objects.set_last_edge(fence, submitter.edge_to(call));
                submitter.complete(call);
                is_signaled.store(true, Ordering::Release);
            });
            let second = scope.spawn(|| {
                until(&is_signaled);
                let call = write_call(waiter, 200);
                waiter.complete(call);
                shared.threads.push_barrier(waiter);
                is_notified.store(true, Ordering::Release);
            });
            let third = scope.spawn(|| {
                until(&is_notified);
                let call = third.begin();
                assert!(third.take_barrier_request(), "the wait asked for it");
                third.order_after_pushes(&shared.threads);
                third.append(&record(Command::CmdDraw, call, [300, round], third.order_edges()));
            });
            [first, second, third].into_iter().for_each(|it| it.join().expect("nobody panics"));
        });
        let mut seen = Vec::new();
        Merger::default().drain(&shared.threads, |it| seen.push(it.record[2]));
        assert_eq!(seen, [100, 200, 300], "round {round}");
    }
}
