//! The pages of `docs/hazards`, as part of the program, and the names they are found by.

use std::borrow::Cow;

use lavascope_base::nearest;
use lavascope_diag::Code;
use lavascope_program::HazardKind;

const PREFIX: &str = "SYNC-HAZARD-";

/// What there is to say about a code.
#[derive(Clone, Copy)]
pub(crate) struct Page {
    kind: HazardKind,
    pub(crate) text: &'static str,
}

/// All pages, in the order of the kinds.
pub(crate) fn pages() -> impl Iterator<Item = Page> {
    HazardKind::ALL.into_iter().map(|kind| Page { kind, text: text_of(kind) })
}

fn text_of(kind: HazardKind) -> &'static str {
    macro_rules! page {
        ($name:literal) => {
            include_str!(concat!("../../../docs/hazards/SYNC-HAZARD-", $name, ".md"))
        };
    }
    match kind {
        HazardKind::ReadAfterWrite => page!("READ-AFTER-WRITE"),
        HazardKind::WriteAfterRead => page!("WRITE-AFTER-READ"),
        HazardKind::WriteAfterWrite => page!("WRITE-AFTER-WRITE"),
        HazardKind::ReadRacingWrite => page!("READ-RACING-WRITE"),
        HazardKind::WriteRacingWrite => page!("WRITE-RACING-WRITE"),
        HazardKind::WriteRacingRead => page!("WRITE-RACING-READ"),
        HazardKind::ReadAfterPresent => page!("READ-AFTER-PRESENT"),
        HazardKind::WriteAfterPresent => page!("WRITE-AFTER-PRESENT"),
        HazardKind::PresentAfterRead => page!("PRESENT-AFTER-READ"),
        HazardKind::PresentAfterWrite => page!("PRESENT-AFTER-WRITE"),
    }
}

impl Page {
    pub(crate) fn code(&self) -> Code {
        Code(Cow::Owned(format!("{PREFIX}{}", self.kind)))
    }

    /// As scenarios call it.
    pub(crate) fn short(&self) -> &'static str {
        self.kind.short()
    }

    /// The sentence below the title.
    pub(crate) fn summary(&self) -> &'static str {
        self.text.lines().nth(2).unwrap_or_default()
    }

    fn is(&self, wanted: &Wanted) -> bool {
        match wanted {
            Wanted::Number(id) => self.code().message_id() == *id,
            Wanted::Name(name) => name == self.kind.name() || name == self.kind.short(),
        }
    }
}

enum Wanted {
    Number(u32),
    /// In capitals, with `-` between the words, without the prefix.
    Name(String),
}

/// By its code, with or without prefix, the short form, or the number of its messages; in any case.
pub(crate) fn find(text: &str) -> Option<Page> {
    let wanted = wanted(text);
    pages().find(|it| it.is(&wanted))
}

fn wanted(text: &str) -> Wanted {
    if let Some(id) = number(text) {
        return Wanted::Number(id);
    }
    let name = text.to_ascii_uppercase().replace('_', "-");
    Wanted::Name(name.strip_prefix(PREFIX).unwrap_or(&name).to_owned())
}

/// Decimal or hexadecimal; messages carry the number as a signed one, so it may be negative.
fn number(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

/// Codes that may have been meant.
pub(crate) fn near(text: &str, count: usize) -> Vec<String> {
    let Wanted::Name(name) = wanted(text) else { return Vec::new() };
    let names = HazardKind::ALL.iter().flat_map(|it| [it.name(), it.short()]);
    let mut found: Vec<String> = Vec::new();
    for it in nearest(&name, names, count).into_iter().filter_map(find) {
        let code = it.code().to_string();
        if !found.contains(&code) {
            found.push(code);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_by_all_their_names() {
        for page in pages() {
            let (code, id) = (page.code().to_string(), page.code().message_id());
            assert!(page.text.starts_with(&format!("# {code}\n")));
            let names = [
                code.clone(),
                code.to_lowercase(),
                code.replace('-', "_"),
                page.kind.name().to_owned(),
                page.kind.name().to_lowercase(),
                page.short().to_owned(),
                page.short().to_lowercase(),
                id.to_string(),
                id.cast_signed().to_string(),
                format!("{id:#x}"),
                format!("0X{id:08X}"),
            ];
            for name in names {
                assert_eq!(find(&name).map(|it| it.kind), Some(page.kind), "{name}");
            }
        }
        for name in ["", "SYNC-HAZARD-", "RAWR", "0", "0xe4d96473", "99999999999", "-"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
