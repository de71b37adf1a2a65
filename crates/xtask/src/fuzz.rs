//! Long runs of mutated records and traces, in release mode.

use std::path::Path;

use anyhow::Result;

use crate::process::{self, cargo};
use crate::proofs;

pub(crate) fn run(root: &Path, records: u64, seed: u64, traces: u64) -> Result<()> {
    let (records, seed) = (records.to_string(), seed.to_string());
    let arguments =
        ["run", "--release", "--package", "lavascope-marshal", "--example", "mutate", "--", &records, &seed];
    process::run(root, &cargo(), &arguments)?;
    proofs::damage(root, &traces.to_string(), &seed)
}
