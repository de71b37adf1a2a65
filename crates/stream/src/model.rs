//! All interleavings of threads that complete calls and ask each other for barriers, also such as only weakly ordered
//! processors show. The code is that of [`crate::post`], compiled with the atomics of `loom`.

use loom::sync::Arc;
use loom::thread;

#[path = "post.rs"]
#[allow(clippy::duplicate_mod, reason = "compiled with other atomics")]
mod post;

use post::Post;

/// What the code under test is made of here.
mod atomics {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[test]
fn whoever_is_asked_for_a_barrier_sees_the_call_that_asked() {
    loom::model(|| {
        let posts = Arc::new([Post::new(), Post::new()]);
        let other_posts = posts.clone();
        // One waits for the device, and tells the other.
        let other = thread::spawn(move || {
            other_posts[0].complete(1);
            other_posts[0].complete(2);
            other_posts[1].want_barrier();
        });
        let seen = posts[0].position();
        if posts[1].take_wish() {
            assert_eq!(posts[0].position(), 2, "the barrier comes after the wait");
            assert!(!posts[1].take_wish());
        }
        assert!(posts[0].position() >= seen, "positions only grow");
        other.join().expect("it ends");
        assert_eq!(posts[0].position(), 2);
    });
}

#[test]
fn two_wishes_are_never_both_lost() {
    loom::model(|| {
        let posts = Arc::new([Post::new(), Post::new(), Post::new()]);
        let ask = |by: usize| {
            let posts = posts.clone();
            thread::spawn(move || {
                posts[by].complete(1);
                posts[2].want_barrier();
            })
        };
        let others = [ask(0), ask(1)];
        let mut known = [0; 2];
        let barrier = |known: &mut [u64; 2]| {
            if posts[2].take_wish() {
                known.iter_mut().zip(posts.iter()).for_each(|it| *it.0 = it.1.position());
            }
        };
        // One record while they ask, and one behind it.
        barrier(&mut known);
        for it in others {
            it.join().expect("it ends");
        }
        barrier(&mut known);
        assert_eq!(known, [1, 1], "the next record comes after both");
    });
}
