//! Which memories are looked at for the sake of indices.

use super::*;

const INDICES: Buffer = Buffer(7);

fn memories() -> Memories {
    let inner = Inner { index_buffers: HashSet::from([INDICES.0]), ..Inner::default() };
    Memories {
        visible: 1,
        coherent: 1,
        import: None,
        interest: Interest::Indices,
        wants_results: false,
        images: Images::default(),
        inner: Mutex::new(inner),
    }
}

fn add(memories: &Memories, number: u64, size: u64) -> DeviceMemory {
    let id = ObjectId::new(HandleType::DeviceMemory, number).expect("a small number");
    let (interest, state) = (Interest::Indices, Mutex::default());
    let memory = Arc::new(Memory { id, size, is_coherent: true, interest, state });
    lock(&memories.inner).all.insert(number, memory);
    DeviceMemory(number)
}

fn of(memories: &Memories, memory: DeviceMemory) -> Indices {
    lock(&memories.get(memory).expect("a memory").state).indices
}

/// How many are looked at before a submission.
fn looked_at(memories: &Memories) -> usize {
    lock(&memories.inner).mapped.len()
}

#[test]
fn memories_with_indices_are_looked_at_while_they_are_mapped() {
    let all = memories();
    let [first, second, third] = [1, 2, 3].map(|it| add(&all, it, 4096));
    all.bound(INDICES, first);
    assert_eq!((of(&all, first), looked_at(&all)), (Indices::Some, 0));
    all.map(first, 0x1000, 0, WHOLE_SIZE);
    all.map(second, 0x8000, 0, 64);
    assert_eq!(looked_at(&all), 1);
    all.bound(Buffer(8), second);
    assert_eq!((of(&all, second), looked_at(&all)), (Indices::None, 1), "of other buffers nobody wants to know");
    all.bound(INDICES, second);
    assert_eq!((of(&all, second), looked_at(&all)), (Indices::Some, 2));
    all.bound(INDICES, second);
    assert_eq!(looked_at(&all), 2);
    // Written before anybody looked.
    all.map(third, 0x10000, 0, 64);
    lock(&all.get(third).expect("a memory").state).indices.unmap();
    all.bound(INDICES, third);
    all.map(third, 0x10000, 0, 64);
    assert_eq!((of(&all, third), looked_at(&all)), (Indices::Untold, 2));
    // What has indices stays known.
    let mut indices = Indices::Some;
    indices.unmap();
    assert_eq!(indices, Indices::Some);
}

#[test]
fn no_more_is_looked_at_than_there_is_time_for() {
    let all = memories();
    let large = add(&all, 1, INDEX_MEMORY_MAX + 1);
    let some: Vec<DeviceMemory> = (2..6).map(|it| add(&all, it, INDEX_MEMORY_MAX)).collect();
    all.bound(INDICES, large);
    some[..3].iter().for_each(|it| all.bound(INDICES, *it));
    let [one, two, three, four] = some[..] else { panic!("four memories") };
    assert_eq!(
        [large, one, two, three].map(|it| of(&all, it)),
        [Indices::Untold, Indices::Some, Indices::Some, Indices::Untold]
    );
    all.forget(two);
    all.bound(INDICES, four);
    all.bound(INDICES, three);
    assert_eq!([three, four].map(|it| of(&all, it)), [Indices::Untold, Indices::Some], "once untold, always so");
}
