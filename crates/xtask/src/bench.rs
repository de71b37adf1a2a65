//! Placeholder.
use std::path::Path;

use anyhow::Result;

pub(crate) fn run(_root: &Path, _json: Option<&Path>, _instructions: bool, _filter: Option<&str>) -> Result<()> {
    Ok(())
}
