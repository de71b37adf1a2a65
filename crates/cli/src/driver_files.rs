//! The null driver's manifest, and the variables that make it the only driver.

use anyhow::Result;
use serde_json::json;

use crate::catalog::registry_version;
use crate::libraries::{NULL_DRIVER, private_folder, utf8};

/// The variables that leave the loader no other driver.
pub(crate) fn variables() -> Result<Vec<(&'static str, String)>> {
    let manifest = json!({
        "file_format_version": "1.0.1",
        "ICD": { "library_path": NULL_DRIVER.find()?, "api_version": registry_version() }
    });
    let folder = private_folder("driver")?;
    let path = NULL_DRIVER.write_manifest(&folder, "lavascope_null_driver.json", &format!("{manifest:#}\n"))?;
    // Older loaders know the second name only.
    ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].into_iter().map(|it| Ok((it, utf8(&path)?.to_owned()))).collect()
}
