//! Planted faults by which `cargo xtask sanitize` proves that its sanitizers are on: `out-of-bounds`, `race`, and
//! `clean` for what they must not report.
//!
//! It has no fault in any other build, where nothing would find it.

#[cfg(not(lavascope_sanitize))]
fn main() {
    eprintln!("`cargo xtask sanitize` builds and runs this");
    std::process::exit(2);
}

#[cfg(lavascope_sanitize)]
fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    match wanted.as_str() {
        "out-of-bounds" => faults::out_of_bounds(),
        "race" => faults::race(),
        "clean" => faults::clean(),
        other => panic!("there is no fault `{other}`"),
    }
    println!("`{wanted}` came to its end");
}

#[cfg(lavascope_sanitize)]
mod faults {
    use std::hint::black_box;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Condvar, Mutex, mpsc};

    /// Reads the byte behind a piece of memory.
    pub(super) fn out_of_bounds() {
        let bytes = vec![7_u8; black_box(24)];
        // SAFETY: unsound on purpose: the byte lies behind the piece, and AddressSanitizer has to end the process here.
        let byte = unsafe { *black_box(bytes.as_ptr()).add(black_box(24)) };
        black_box(byte);
    }

    struct Shared(std::cell::UnsafeCell<u64>);

    // SAFETY: unsound on purpose: nothing orders its users, which ThreadSanitizer has to report.
    unsafe impl Sync for Shared {}

    static SHARED: Shared = Shared(std::cell::UnsafeCell::new(0));

    /// Two threads write to one place, and nothing orders them.
    pub(super) fn race() {
        let write = || {
            for number_sent in 0..1000 {
                // SAFETY: unsound on purpose: the other thread writes, too.
                unsafe { SHARED.0.get().write(black_box(number_sent)) };
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(write);
            scope.spawn(write);
        });
    }

    /// What the standard library offers for threads, used as number_sent should be: its own code is not instrumented.
    pub(super) fn clean() {
        let total = Arc::new((Mutex::new(0_u64), Condvar::new()));
        let flag = Arc::new(AtomicU64::new(0));
        let (send, receive) = mpsc::channel::<Vec<u64>>();
        let threads: Vec<_> = (0..4_u64)
            .map(|number| {
                let (total, flag, send) = (Arc::clone(&total), Arc::clone(&flag), send.clone());
                std::thread::spawn(move || {
                    for number_sent in 0..200 {
                        *total.0.lock().expect("nobody panics") += 1;
                        total.1.notify_all();
                        send.send(vec![number, number_sent]).expect("somebody listens");
                        flag.fetch_add(1, Ordering::Release);
                    }
                })
            })
            .collect();
        drop(send);
        assert_eq!(receive.iter().map(|it| it.len()).sum::<usize>(), 1600);
        let (all, changed) = &*total;
        let guard = changed.wait_while(all.lock().expect("nobody panics"), |it| *it < 800).expect("nobody panics");
        assert_eq!((*guard, flag.load(Ordering::Acquire)), (800, 800));
        drop(guard);
        threads.into_iter().for_each(|it| it.join().expect("nobody panics"));
    }
}
