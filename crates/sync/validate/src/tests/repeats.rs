//! Command buffers that are recorded again and again, mostly in the same way: what is found must be what is found when
//! every one of them is recorded anew.

use lavascope_abi::{Format, QueueFlags};
use lavascope_sync_ir::{Barrier, Dependency, DependencyTarget, ImageDesc, SyncScope, Tiling};
use lavascope_test_support::TestRng;

use super::*;

const COMMAND_BUFFERS: u64 = 4;
/// It is executed by the others.
const SECONDARY: u32 = 3;
const SLOTS: u64 = 6;

/// A command with slots in place of resources: what is in a slot is another one from time to time.
#[derive(Clone, Copy)]
enum SlotCommand {
    Copy { from: u64, to: u64, at: u64 },
    Barrier { is_wide: bool },
    Own { slot: u64 },
    Execute,
}

impl SlotCommand {
    fn any(dice: &mut TestRng) -> SlotCommand {
        match dice.below(10) {
            0..6 => SlotCommand::Copy { from: dice.below(SLOTS), to: dice.below(SLOTS), at: dice.below(3) * 16 },
            6 | 7 => SlotCommand::Barrier { is_wide: dice.one_in(2) },
            8 => SlotCommand::Own { slot: dice.below(SLOTS) },
            _ => SlotCommand::Execute,
        }
    }

    fn command(self, slots: &[u32]) -> Command {
        let id = |slot: u64| ResourceId(slots[slot as usize]);
        match self {
            SlotCommand::Copy { from, to, at } => {
                let part = |slot, access: A| Access::new(id(slot), Region::Buffer(at..at + 16), S::COPY.0, access.0);
                Command::Action(vec![part(from, A::TRANSFER_READ), part(to, A::TRANSFER_WRITE)])
            }
            SlotCommand::Barrier { is_wide } => {
                let dst_access = if is_wide { A::MEMORY_READ.0 | A::MEMORY_WRITE.0 } else { A::TRANSFER_READ.0 };
                barrier(DependencyTarget::Global, dst_access)
            }
            SlotCommand::Own { slot } => {
                let what = DependencyTarget::Resource { resource: id(slot), region: Region::Buffer(0..64) };
                barrier(what, A::TRANSFER_READ.0 | A::TRANSFER_WRITE.0)
            }
            SlotCommand::Execute => Command::Execute(vec![CommandBufferId(SECONDARY)]),
        }
    }
}

fn barrier(what: DependencyTarget, dst_access: u64) -> Command {
    let scope = SyncScope { src_stages: ALL, src_access: A::MEMORY_WRITE.0, dst_stages: ALL, dst_access };
    Command::Barrier(Barrier::Sync2 { dependencies: vec![Dependency { scope, target: what }] })
}

/// One program, with the choices that it makes.
struct RepeatingApp {
    app: App,
    dice: TestRng,
    slots: Vec<u32>,
    next: u32,
    words: Vec<Vec<SlotCommand>>,
    /// Whether the driver does not see some of the commands.
    undoes_commands: bool,
}

impl RepeatingApp {
    fn new(seed: u64, is_anew: bool) -> RepeatingApp {
        let mut app = App::new();
        app.devices.set_never_repeats(is_anew);
        let mut repeating_app = RepeatingApp {
            app,
            dice: TestRng::new(seed),
            slots: Vec::new(),
            next: 0,
            words: Vec::new(),
            undoes_commands: true,
        };
        for slot in 0..SLOTS {
            let id = repeating_app.make(slot);
            repeating_app.slots.push(id);
        }
        repeating_app.words = (0..COMMAND_BUFFERS).map(|_| repeating_app.any_words()).collect();
        repeating_app
    }

    /// Two slots share a memory: buffers that lie there are at the same addresses.
    fn make(&mut self, slot: u64) -> u32 {
        let binding = (slot < 2).then_some(MemoryBinding { memory: MemoryId(0), offset: slot * 32, size: 64 });
        self.add(&Resource::new(ResourceKind::Buffer { size: 64 }, binding))
    }

    fn add(&mut self, resource: &Resource) -> u32 {
        let (at, id) = (self.app.at(Api::BindBufferMemory), self.next);
        self.next += 1;
        self.app.devices.resource(at, ResourceId(id), object(HandleType::Buffer, id), resource);
        id
    }

    fn any_words(&mut self) -> Vec<SlotCommand> {
        (0..self.dice.below(12)).map(|_| SlotCommand::any(&mut self.dice)).collect()
    }

    /// Mostly the same words as the last time.
    fn change(&mut self, own: usize) {
        let len = self.words[own].len() as u64;
        match self.dice.below(8) {
            0 if len > 0 => {
                let at = self.dice.below(len) as usize;
                self.words[own][at] = SlotCommand::any(&mut self.dice);
            }
            1 => self.words[own].truncate(self.dice.below(len + 1) as usize),
            2 => {
                let more = SlotCommand::any(&mut self.dice);
                self.words[own].push(more);
            }
            3 if self.dice.one_in(4) => self.words[own] = self.any_words(),
            _ => {}
        }
    }

    fn frame(&mut self) {
        let own = self.dice.below(COMMAND_BUFFERS) as u32;
        self.change(own as usize);
        if self.dice.one_in(12) {
            let slot = self.dice.below(SLOTS);
            self.app.step(Api::DestroyBuffer, HostStep::Destroy(ResourceId(self.slots[slot as usize])));
            self.slots[slot as usize] = self.make(slot);
        }
        self.record(own);
        if own != SECONDARY && !self.dice.one_in(6) {
            self.app.submit_one(own);
        }
        if self.dice.one_in(3) {
            self.app.step(Api::DeviceWaitIdle, HostStep::DeviceIdle);
        }
    }

    fn record(&mut self, own: u32) {
        let (at, id) = (self.app.at(Api::BeginCommandBuffer), CommandBufferId(own));
        let (object, is_secondary) = (object(HandleType::CommandBuffer, own), own == SECONDARY);
        self.app.devices.command_buffer(at, id, object, GRAPHICS);
        if self.dice.one_in(4) {
            self.app.devices.reset(at, id);
        }
        self.app.devices.begin(at, id, object, is_secondary);
        for word in self.words[own as usize].clone() {
            if is_secondary && matches!(word, SlotCommand::Execute) {
                continue;
            }
            // What comes in the middle may share memory with what is used, in a way that cannot be compared.
            if self.dice.one_in(150) {
                let (format, tiling) = (Format::R8G8B8A8_UNORM, Tiling::Optimal);
                let image = ImageDesc { format, extent: [4, 4, 1], mips: 1, layers: 1, tiling, alias: false };
                let binding = Some(MemoryBinding { memory: MemoryId(0), offset: 0, size: 64 });
                self.add(&Resource::new(ResourceKind::Image(image), binding));
            }
            let command = word.command(&self.slots);
            let at = self.app.at(Api::CmdCopyBuffer);
            match &command {
                Command::Action(accesses) => self.app.devices.action_recorded(&at, id, accesses),
                _ => self.app.devices.command_recorded(at, id, command),
            }
            if self.undoes_commands && self.dice.one_in(60) {
                let at = self.app.at(Api::CmdCopyBuffer);
                self.app.devices.cancel_command(at, id);
            }
        }
        let at = self.app.at(Api::EndCommandBuffer);
        self.app.devices.end(at, id);
    }
}

#[test]
fn what_is_repeated_is_found_as_if_it_were_new() {
    let (mut findings, mut repeated) = (0, 0);
    for seed in 0..300 {
        let [mut own, mut anew] = [false, true].map(|is_anew| RepeatingApp::new(seed, is_anew));
        for frame in 0..40 {
            own.frame();
            anew.frame();
            assert_eq!(own.app.devices.causes.new, anew.app.devices.causes.new, "seed {seed}, frame {frame}");
        }
        let text = |it: &RepeatingApp| format!("{:#?}", it.app.diagnostics());
        assert_eq!(text(&own), text(&anew), "seed {seed}");
        findings += own.app.devices.causes.new.len();
        repeated += own.app.devices.repeated();
        assert_eq!(anew.app.devices.repeated(), 0);
    }
    assert!(findings > 1000 && repeated > 1000, "{findings} findings, {repeated} repeated commands");
}

/// Whoever looks into command buffers when they are executed is in doubt just where the other finds something, also
/// about what is never executed.
#[test]
fn who_checks_late_is_in_doubt_where_something_is_found() {
    let (mut clean, mut late_only) = (0, 0);
    for seed in 0..2000 {
        let [mut own, mut late] = [false, false].map(|is_anew| RepeatingApp::new(seed, is_anew));
        late.app.devices.check_when_executed();
        // What was told of a command that was not recorded after all is not known any more later.
        (own.undoes_commands, late.undoes_commands) = (false, false);
        for _ in 0..1 + seed % 5 {
            own.frame();
            late.frame();
        }
        let is_found = !own.app.diagnostics().is_empty();
        let is_early = late.app.devices.needs_recheck;
        assert_eq!(late.app.devices.finish_quick_check(), is_found, "seed {seed}");
        clean += usize::from(!is_found);
        late_only += usize::from(is_found && !is_early);
    }
    assert!(clean > 200 && late_only > 20, "{clean} clean, {late_only} found in what was not executed only");
}

/// A command buffer that is recorded in the same way has the same commands, and counts how often it was recorded.
#[test]
fn what_is_repeated_counts_on() {
    let mut app = App::new();
    app.buffer(3);
    for _ in 0..3 {
        app.record(5, [write(3)]);
        app.step(Api::DeviceWaitIdle, HostStep::DeviceIdle);
    }
    assert_eq!(app.devices.repeated(), 2);
    app.submit_one(5);
    app.record(5, [write(3)]);
    app.submit_one(5);
    let [diagnostic] = app.diagnostics() else { panic!("{:#?}", app.diagnostics()) };
    assert_eq!(diagnostic.property("reset_no"), Some("2"), "of the earlier access: {diagnostic:#?}");
}

/// For a queue of another kind, or by another device, nothing is repeated.
#[test]
fn only_the_same_is_repeated() {
    let mut app = App::new();
    app.buffer(3);
    app.record(5, [write(3), read(3)]);
    assert_eq!(app.diagnostics().len(), 1);
    // What has hazards tells them each time.
    app.record(5, [write(3), read(3)]);
    assert_eq!((app.diagnostics()[0].count, app.devices.repeated()), (2, 0));
    app.record(6, [write(3)]);
    let at = app.at(Api::AllocateCommandBuffers);
    let other = Queue { family: 1, flags: QueueFlags::COMPUTE.0 };
    let object = object(HandleType::CommandBuffer, 6);
    app.devices.command_buffer(at, CommandBufferId(6), object, other);
    app.devices.begin(at, CommandBufferId(6), object, false);
    app.devices.command_recorded(at, CommandBufferId(6), write(3));
    assert_eq!(app.devices.repeated(), 0);
}
