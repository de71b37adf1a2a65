//! What the threads of a program do, and which objects that needs.

/// An object of a program, by a number that no other object of the program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Object {
    Queue(usize),
    Pool(usize),
    CommandBuffer(usize),
    Fence(usize),
    DescriptorPool(usize),
    DescriptorSet(usize),
    Event(usize),
    Buffer(usize),
    /// Not an object: a device address, which an application passes on as a number.
    Address(usize),
    Timeline(usize),
    /// The value of a timeline, which must grow.
    TimelineValue(usize),
    /// Eight bytes of mapped memory, which are written once.
    HostBytes(usize),
}

/// How an operation uses an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// Several threads may do so at once.
    Read,
    /// Host access must be externally synchronized, or the state of the object changes.
    Write,
}

/// A call, or several of the same kind until one succeeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Makes a buffer whose size tells the thread: see `program_trace`.
    Mark(usize),
    CreatePool(usize),
    Allocate {
        pool: usize,
        command_buffer: usize,
        is_secondary: bool,
    },
    Begin {
        pool: usize,
        command_buffer: usize,
        is_secondary: bool,
    },
    Record {
        pool: usize,
        command_buffer: usize,
    },
    BindSet {
        pool: usize,
        command_buffer: usize,
        set: usize,
    },
    PushAddress {
        pool: usize,
        command_buffer: usize,
        buffer: usize,
    },
    Execute {
        pool: usize,
        command_buffer: usize,
        secondary: usize,
    },
    End {
        pool: usize,
        command_buffer: usize,
    },
    Reset {
        pool: usize,
        command_buffer: usize,
    },
    ResetPool {
        pool: usize,
        members: Vec<usize>,
    },
    Free {
        pool: usize,
        command_buffer: usize,
    },
    DestroyPool {
        pool: usize,
        members: Vec<usize>,
    },
    CreateFence(usize),
    /// `uses` are the command buffers, and all that these refer to.
    Submit {
        queue: usize,
        command_buffers: Vec<usize>,
        fence: Option<usize>,
        uses: Vec<Object>,
    },
    /// `uses` are no longer pending.
    WaitFence {
        fence: usize,
        uses: Vec<Object>,
    },
    PollFence {
        fence: usize,
        uses: Vec<Object>,
    },
    /// It may be signaled or not.
    LookAtFence(usize),
    ResetFence(usize),
    DestroyFence(usize),
    WaitQueue {
        queue: usize,
        uses: Vec<Object>,
    },
    WaitDevice {
        queues: usize,
        uses: Vec<Object>,
    },
    CreateDescriptorPool(usize),
    AllocateSet {
        pool: usize,
        set: usize,
    },
    UpdateSet(usize),
    CopySet {
        from: usize,
        to: usize,
    },
    ResetDescriptorPool {
        pool: usize,
        members: Vec<usize>,
    },
    DestroyDescriptorPool {
        pool: usize,
        members: Vec<usize>,
    },
    CreateEvent(usize),
    SetEvent(usize),
    ResetEvent(usize),
    LookAtEvent(usize),
    DestroyEvent(usize),
    CreateBuffer(usize),
    GetAddress(usize),
    DestroyBuffer(usize),
    CreateTimeline(usize),
    Signal {
        timeline: usize,
        value: u64,
    },
    WaitTimeline {
        timeline: usize,
        value: u64,
    },
    PollTimeline {
        timeline: usize,
        value: u64,
    },
    DestroyTimeline(usize),
    /// No call: the host writes to mapped memory.
    WriteMemory(usize),
}

impl Operation {
    /// The objects that it uses. Two uses of an object, one of which is a write, must never be exchanged.
    pub fn accesses(&self) -> Vec<(Object, AccessKind)> {
        use Operation as O;
        let write = |it: Object| (it, AccessKind::Write);
        let read = |it: Object| (it, AccessKind::Read);
        let recording = |pool: usize, command_buffer: usize| {
            vec![write(Object::Pool(pool)), write(Object::CommandBuffer(command_buffer))]
        };
        let with = |mut all: Vec<(Object, AccessKind)>, more: Object| {
            all.push(read(more));
            all
        };
        let reads = |all: &[Object]| all.iter().copied().map(read).collect::<Vec<_>>();
        match self {
            O::Mark(buffer) | O::CreateBuffer(buffer) => vec![write(Object::Buffer(*buffer))],
            O::DestroyBuffer(buffer) => vec![write(Object::Buffer(*buffer)), write(Object::Address(*buffer))],
            O::GetAddress(buffer) => vec![read(Object::Buffer(*buffer)), write(Object::Address(*buffer))],
            O::CreatePool(pool) => vec![write(Object::Pool(*pool))],
            O::Allocate { pool, command_buffer, .. }
            | O::Begin { pool, command_buffer, .. }
            | O::Record { pool, command_buffer }
            | O::End { pool, command_buffer }
            | O::Reset { pool, command_buffer }
            | O::Free { pool, command_buffer } => recording(*pool, *command_buffer),
            O::BindSet { pool, command_buffer, set } => {
                with(recording(*pool, *command_buffer), Object::DescriptorSet(*set))
            }
            O::PushAddress { pool, command_buffer, buffer } => {
                with(recording(*pool, *command_buffer), Object::Address(*buffer))
            }
            O::Execute { pool, command_buffer, secondary } => {
                with(recording(*pool, *command_buffer), Object::CommandBuffer(*secondary))
            }
            O::ResetPool { pool, members } | O::DestroyPool { pool, members } => {
                let members = members.iter().map(|it| write(Object::CommandBuffer(*it)));
                std::iter::once(write(Object::Pool(*pool))).chain(members).collect()
            }
            O::CreateFence(fence) | O::ResetFence(fence) | O::DestroyFence(fence) => vec![write(Object::Fence(*fence))],
            O::LookAtFence(fence) => vec![read(Object::Fence(*fence))],
            O::Submit { queue, fence, uses, .. } => {
                let fence = fence.map(|it| write(Object::Fence(it)));
                std::iter::once(write(Object::Queue(*queue))).chain(fence).chain(reads(uses)).collect()
            }
            O::WaitFence { fence, uses } | O::PollFence { fence, uses } => with(reads(uses), Object::Fence(*fence)),
            O::WaitQueue { queue, uses } => std::iter::once(write(Object::Queue(*queue))).chain(reads(uses)).collect(),
            O::WaitDevice { queues, uses } => {
                (0..*queues).map(|it| write(Object::Queue(it))).chain(reads(uses)).collect()
            }
            O::CreateDescriptorPool(pool) => vec![write(Object::DescriptorPool(*pool))],
            O::AllocateSet { pool, set } => {
                vec![write(Object::DescriptorPool(*pool)), write(Object::DescriptorSet(*set))]
            }
            O::UpdateSet(set) => vec![write(Object::DescriptorSet(*set))],
            O::CopySet { from, to } => vec![read(Object::DescriptorSet(*from)), write(Object::DescriptorSet(*to))],
            O::ResetDescriptorPool { pool, members } | O::DestroyDescriptorPool { pool, members } => {
                let members = members.iter().map(|it| write(Object::DescriptorSet(*it)));
                std::iter::once(write(Object::DescriptorPool(*pool))).chain(members).collect()
            }
            other => other.synchronization_accesses(),
        }
    }

    /// Of events, timelines and mapped memory.
    fn synchronization_accesses(&self) -> Vec<(Object, AccessKind)> {
        use Operation as O;
        let write = |it: Object| (it, AccessKind::Write);
        let read = |it: Object| (it, AccessKind::Read);
        match self {
            O::CreateEvent(event) | O::SetEvent(event) | O::ResetEvent(event) | O::DestroyEvent(event) => {
                vec![write(Object::Event(*event))]
            }
            O::LookAtEvent(event) => vec![read(Object::Event(*event))],
            O::CreateTimeline(timeline) | O::DestroyTimeline(timeline) => {
                vec![write(Object::Timeline(*timeline)), write(Object::TimelineValue(*timeline))]
            }
            O::Signal { timeline, .. } => {
                vec![read(Object::Timeline(*timeline)), write(Object::TimelineValue(*timeline))]
            }
            // While another thread signals it.
            O::WaitTimeline { timeline, .. } | O::PollTimeline { timeline, .. } => {
                vec![read(Object::Timeline(*timeline))]
            }
            O::WriteMemory(bytes) => vec![write(Object::HostBytes(*bytes))],
            _ => Vec::new(),
        }
    }
}
