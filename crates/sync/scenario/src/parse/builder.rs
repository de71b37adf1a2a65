//! The state of the parser: the program, and the object of each name.

use std::collections::BTreeMap;

use lavascope_sync_ir::{CommandBufferId, EventId, FenceId, MemoryId, Program, QueueId, Region};
use lavascope_sync_ir::{RenderPassId, ResourceId, SemaphoreId};

use crate::error::Result;
use crate::parse::tokens::{Token, TokenCursor};
use crate::{DeclaredNames, ScenarioThread, StatementId};

/// Words that the grammar uses where names may stand.
const RESERVED: [&str; 31] = [
    "color",
    "depth",
    "vertices",
    "indices",
    "indirect",
    "input",
    "uniform",
    "at",
    "wait",
    "signal",
    "fence",
    "then",
    "nothing",
    "and",
    "with",
    "area",
    "layout",
    "owner",
    "ordered",
    "reads",
    "writes",
    "samples",
    "host",
    "device",
    "line",
    "after",
    "subpass",
    "pass",
    "rendering",
    "stencil",
    "size",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedObject {
    Memory(MemoryId),
    Resource(ResourceId),
    Queue(QueueId),
    CommandBuffer(CommandBufferId),
    Event(EventId),
    Semaphore(SemaphoreId),
    Fence(FenceId),
    RenderPass(RenderPassId),
}

/// A statement that was read, with where its operands stand.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) id: StatementId,
    pub(crate) line: u32,
    /// Behind the label.
    pub(crate) column: u32,
    pub(crate) operands: Vec<Operand>,
}

#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub(crate) resource: ResourceId,
    pub(crate) region: Region,
    pub(crate) column: u32,
    pub(crate) usage: OperandUsage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperandUsage {
    Read,
    Write,
    Any,
}

#[derive(Default)]
pub(crate) struct ScenarioBuilder {
    pub(crate) program: Program,
    pub(crate) names: DeclaredNames,
    known: BTreeMap<String, NamedObject>,
    pub(crate) labels: BTreeMap<StatementId, String>,
    pub(crate) threads: Vec<ScenarioThread>,
    pub(crate) statements: Vec<Statement>,
}

macro_rules! look_ups {
    ($($function:ident, $variant:ident, $id:ident, $what:literal;)*) => {
        impl ScenarioBuilder {
            $(pub(crate) fn $function(&self, cursor: &mut TokenCursor) -> Result<$id> {
                let token = cursor.word(concat!("the name of a ", $what))?;
                match self.known.get(token.text) {
                    Some(NamedObject::$variant(id)) => Ok(*id),
                    _ => {
                        let of_kind = self.known.iter().filter(|it| matches!(it.1, NamedObject::$variant(_)));
                        Err(cursor.unknown(token, $what, of_kind.map(|it| it.0.as_str())))
                    }
                }
            })*
        }
    };
}

look_ups! {
    memory, Memory, MemoryId, "memory";
    resource, Resource, ResourceId, "buffer or image";
    queue, Queue, QueueId, "queue";
    command_buffer, CommandBuffer, CommandBufferId, "command buffer";
    event, Event, EventId, "event";
    semaphore, Semaphore, SemaphoreId, "semaphore";
    fence, Fence, FenceId, "fence";
    render_pass, RenderPass, RenderPassId, "pass";
}

impl ScenarioBuilder {
    pub(crate) fn named(&self, name: &str) -> Option<NamedObject> {
        self.known.get(name).copied()
    }

    /// Names of one kind, for errors.
    pub(crate) fn queue_names(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.queues.iter().map(String::as_str)
    }

    /// Gives a name a meaning; each has one.
    pub(crate) fn define(&mut self, cursor: &TokenCursor, token: Token, named: NamedObject) -> Result<String> {
        if RESERVED.contains(&token.text) {
            return Err(cursor.error_at(token.column, format!("`{}` is a word of the grammar, not a name", token.text)));
        }
        if self.known.insert(token.text.to_owned(), named).is_some() {
            return Err(cursor.error_at(token.column, format!("`{}` is declared twice", token.text)));
        }
        Ok(token.text.to_owned())
    }

    /// A name that the text did not declare; false if it is taken.
    pub(crate) fn define_implied(&mut self, name: &str, named: NamedObject) -> bool {
        if self.known.contains_key(name) {
            return false;
        }
        self.known.insert(name.to_owned(), named);
        true
    }

    pub(crate) fn is_timeline(&self, id: SemaphoreId) -> bool {
        self.names.semaphores[id.0 as usize].is_timeline
    }
}
