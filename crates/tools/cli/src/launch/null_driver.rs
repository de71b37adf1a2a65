//! The manifest of the null driver, and the variables that make it the only driver.

use anyhow::Result;
use lavascope_loader::manifests::driver_manifest;

use crate::launch::libraries::{NULL_DRIVER, private_folder, utf8};

/// The environment variables that make the null driver the only driver for the loader.
pub(crate) fn variables() -> Result<Vec<(&'static str, String)>> {
    let manifest = driver_manifest(&NULL_DRIVER.find()?);
    let folder = private_folder("driver")?;
    let path = NULL_DRIVER.write_manifest(&folder, "lavascope_null_driver.json", &manifest)?;
    // Older loaders support only the second name.
    ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().map(|it| Ok((it, utf8(&path)?.to_owned()))).collect()
}
