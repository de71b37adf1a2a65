//! The null driver's manifest, and the variables that make it the only driver.

use anyhow::Result;
use lavascope_loader::manifests::driver_manifest;

use crate::launch::libraries::{NULL_DRIVER, private_folder, utf8};

/// The variables that leave the loader no other driver.
pub(crate) fn variables() -> Result<Vec<(&'static str, String)>> {
    let manifest = driver_manifest(&NULL_DRIVER.find()?);
    let folder = private_folder("driver")?;
    let path = NULL_DRIVER.write_manifest(&folder, "lavascope_null_driver.json", &manifest)?;
    // Older loaders know the second name only.
    ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().map(|it| Ok((it, utf8(&path)?.to_owned()))).collect()
}
