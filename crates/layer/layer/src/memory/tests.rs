//! Which memories are checked because of indices.

use super::index_memory::INDEX_MEMORY_MAX;
use super::*;

const INDICES: Buffer = Buffer(7);

fn memories() -> HostVisibleMemories {
    let inner = WatchedMemories { index_buffers: HashSet::from([INDICES.0]), ..WatchedMemories::default() };
    HostVisibleMemories {
        visible: 1,
        coherent: 1,
        import: None,
        copies: None,
        arena: None,
        tracked: Mutex::default(),
        noticed: Mutex::default(),
        interest: MemoryInterest::Indices,
        unchecked_reason: "a test",
        wants_results: false,
        images: HostCopyImages::default(),
        inner: Mutex::new(inner),
    }
}

fn add(memories: &HostVisibleMemories, number: u64, size: u64) -> DeviceMemory {
    let id = ObjectId::new(HandleType::DeviceMemory, number).expect("a small number");
    let (interest, state) = (MemoryInterest::Indices, Mutex::default());
    let memory = Arc::new(WatchedMemory { id, size, ty: 0, is_coherent: true, interest, state });
    lock(&memories.inner).all.insert(number, memory);
    DeviceMemory(number)
}

fn index_state_of(memories: &HostVisibleMemories, memory: DeviceMemory) -> IndexState {
    lock(&memories.get(memory).expect("a memory").state).index_state
}

/// The number of memories that are checked before a submission.
fn tracked_count(memories: &HostVisibleMemories) -> usize {
    lock(&memories.inner).mapped.len()
}

#[test]
fn memories_with_indices_are_checked_while_they_are_mapped() {
    let all = memories();
    let [first, second, third] = [1, 2, 3].map(|it| add(&all, it, 4096));
    all.bind_index_buffer(INDICES, first);
    assert_eq!((index_state_of(&all, first), tracked_count(&all)), (IndexState::Tracked, 0));
    all.map(first, 0x1000, 0, WHOLE_SIZE);
    all.map(second, 0x8000, 0, 64);
    assert_eq!(tracked_count(&all), 1);
    all.bind_index_buffer(Buffer(8), second);
    assert_eq!(
        (index_state_of(&all, second), tracked_count(&all)),
        (IndexState::None, 1),
        "of other buffers nobody wants to know"
    );
    all.bind_index_buffer(INDICES, second);
    assert_eq!((index_state_of(&all, second), tracked_count(&all)), (IndexState::Tracked, 2));
    all.bind_index_buffer(INDICES, second);
    assert_eq!(tracked_count(&all), 2);
    // Written before anybody looked.
    all.map(third, 0x10000, 0, 64);
    lock(&all.get(third).expect("a memory").state).index_state.on_unmap();
    all.bind_index_buffer(INDICES, third);
    all.map(third, 0x10000, 0, 64);
    assert_eq!((index_state_of(&all, third), tracked_count(&all)), (IndexState::Untracked, 2));
    // Memory with indices stays known.
    let mut indices = IndexState::Tracked;
    indices.on_unmap();
    assert_eq!(indices, IndexState::Tracked);
}

#[test]
fn no_more_is_checked_than_there_is_time_for() {
    let all = memories();
    let large = add(&all, 1, INDEX_MEMORY_MAX + 1);
    let some: Vec<DeviceMemory> = (2..6).map(|it| add(&all, it, INDEX_MEMORY_MAX)).collect();
    all.bind_index_buffer(INDICES, large);
    some[..3].iter().for_each(|it| all.bind_index_buffer(INDICES, *it));
    let [one, two, three, four] = some[..] else { panic!("four memories") };
    assert_eq!(
        [large, one, two, three].map(|it| index_state_of(&all, it)),
        [IndexState::Untracked, IndexState::Tracked, IndexState::Tracked, IndexState::Untracked]
    );
    all.remove(two);
    all.bind_index_buffer(INDICES, four);
    all.bind_index_buffer(INDICES, three);
    assert_eq!(
        [three, four].map(|it| index_state_of(&all, it)),
        [IndexState::Untracked, IndexState::Tracked],
        "once untold, always so"
    );
}
