//! `docs/settings.md` is what the table says; `LAVASCOPE_BLESS=1` writes it.

use std::path::Path;

#[test]
fn the_page_of_settings_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/settings.md");
    let page = lavascope_settings::document();
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        std::fs::write(&path, &page).expect("a writable page");
    }
    let found = std::fs::read_to_string(&path).expect("docs/settings.md");
    assert!(found == page, "docs/settings.md is stale: LAVASCOPE_BLESS=1 cargo test -p lavascope-settings writes it");
}

#[test]
fn the_page_names_every_setting() {
    let page = lavascope_settings::document();
    for lavascope_setting in lavascope_settings::SETTINGS {
        assert!(page.contains(&format!("| `{}`", lavascope_setting.name)), "{}", lavascope_setting.name);
    }
}
