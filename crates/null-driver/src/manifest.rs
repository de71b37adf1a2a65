//! The file through which a loader finds the driver.

use lavascope_abi::HEADER_VERSION;

/// The text of the driver's manifest, with the path of `liblavascope_null_driver.so` as the loader shall open it.
pub fn manifest(library_path: &str) -> String {
    let value = serde_json::json!({
        "file_format_version": "1.0.1",
        "ICD": {
            "library_path": library_path,
            "api_version": format!("1.4.{HEADER_VERSION}"),
            "is_portability_driver": false,
        },
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::manifest;

    #[test]
    fn any_path_is_legal() {
        let text = manifest("folder \"with\" quotes/liblavascope_null_driver.so");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        assert_eq!(value["ICD"]["library_path"], "folder \"with\" quotes/liblavascope_null_driver.so");
        assert!(value["ICD"]["api_version"].as_str().is_some_and(|it| it.starts_with("1.4.")));
    }
}
