//! Compares the hazards that an engine found with those of the oracle.

use std::{collections::BTreeMap, fmt};

use lavascope_sync_ir::{Access, Hazard, OriginKind, Program, Region, may_share_bytes};

use super::hazards::CellHazard;
use crate::execute::cells::{CellTable, MemoryCell, cells_of};
use crate::execute::executor::execute;
use crate::execute::log::ExecutionLog;
use crate::notation::print_place;

/// An engine under test: returns hazards in the order in which it finds them.
pub type EngineUnderTest<'e> = &'e dyn Fn(&Program) -> Vec<Hazard>;

/// A cell on which engine and oracle disagree. Only the first hazard of a cell is compared, because they may diverge
/// after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Disagreement {
    pub cell: MemoryCell,
    pub oracle: Option<CellHazard>,
    pub engine: Option<Hazard>,
}

/// The first cell on which the engine differs from the oracle: in the access, the kind, or the conflicting access.
pub fn compare(program: &Program, verdicts: &[CellHazard], engine: EngineUnderTest<'_>) -> Option<Disagreement> {
    let mut found = first_hazards(program, &engine(program));
    for verdict in verdicts {
        let engine = found.remove(&verdict.cell);
        if !engine.as_ref().is_some_and(|it| agrees(verdict, it)) {
            return Some(Disagreement { cell: verdict.cell, oracle: Some(verdict.clone()), engine });
        }
    }
    found.into_iter().next().map(|(cell, it)| Disagreement { cell, oracle: None, engine: Some(it) })
}

/// The first hazard of each cell among those that an engine found.
pub fn first_hazards(program: &Program, hazards: &[Hazard]) -> BTreeMap<MemoryCell, Hazard> {
    let mut found: BTreeMap<MemoryCell, Hazard> = BTreeMap::new();
    let sparse = has_sparse_resources(program).then(|| execute(program).0);
    for hazard in hazards {
        let cells = match &sparse {
            None => accessed_cells(program, hazard),
            Some(trace) => cells_when_found(program, trace, hazard),
        };
        for cell in cells {
            found.entry(cell).or_insert_with(|| hazard.clone());
        }
    }
    found
}

/// The cells of a hazard. Bytes between the attributes of vertices are in its region and are not accessed.
fn accessed_cells(program: &Program, hazard: &Hazard) -> Vec<MemoryCell> {
    let (later, earlier) = (program.accesses_at(&hazard.at), program.accesses_at(&hazard.prior));
    let has_gaps = |it: &Access| matches!(it.origin.kind(), OriginKind::Attributes(_));
    match &hazard.region {
        Region::Buffer(bytes) if later.iter().chain(earlier).any(has_gaps) => {
            let at = |byte: u64| Hazard { region: Region::Buffer(byte..byte + 1), ..hazard.clone() };
            let shared = bytes.clone().map(at).filter(|it| may_share_bytes(it, later, earlier));
            shared.flat_map(|it| cells_of(program, it.resource, &it.region)).collect()
        }
        region => cells_of(program, hazard.resource, region),
    }
}

fn has_sparse_resources(program: &Program) -> bool {
    program.resources.iter().any(|it| it.is_sparse)
}

/// The cells of a hazard, with the sparse binds at the time of the access.
fn cells_when_found(program: &Program, trace: &ExecutionLog, found: &Hazard) -> Vec<MemoryCell> {
    let at = trace.accesses.iter().find(|it| it.place == found.at).map_or(0, |it| it.time);
    let mut cells = CellTable::new(program);
    trace.binds.iter().filter(|it| it.0 < at).for_each(|it| cells.bind(&it.1));
    cells.current_cells(found.resource, &found.region)
}

fn agrees(verdict: &CellHazard, found: &Hazard) -> bool {
    let mut partners = verdict.conflicts.iter();
    verdict.at == found.at && partners.any(|it| it.at == found.prior && it.kind == found.kind)
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: oracle ", self.cell)?;
        match &self.oracle {
            Some(cell_hazard) => {
                let partner = |it: &super::ConflictingAccess| format!("{} {}", it.kind.short(), print_place(&it.at));
                let partners: Vec<_> = cell_hazard.conflicts.iter().map(partner).collect();
                write!(f, "{} [{}]", print_place(&cell_hazard.at), partners.join(", "))?;
            }
            None => write!(f, "none")?,
        }
        match &self.engine {
            Some(hazard) => write!(
                f,
                ", engine {} [{} {}]",
                print_place(&hazard.at),
                hazard.kind.short(),
                print_place(&hazard.prior)
            ),
            None => write!(f, ", engine none"),
        }
    }
}
