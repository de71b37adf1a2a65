//! The pages of `docs/hazards` and `docs/shaders`, as part of the program, and the names they are found by.

use std::borrow::Cow;

use lavascope_abi::COMMANDS;
use lavascope_collections::nearest;
use lavascope_diag::Code;
use lavascope_engine::EventRaceKind;
use lavascope_explain::{NEVER_EXECUTED, OVER_SYNCHRONIZATION, fault_code, race_code};
use lavascope_findings::CodeDescription;
use lavascope_sync_ir::{HazardKind, UndefinedContentsKind};

/// What stands in front of the names of hazards, and may be left out.
const PREFIXES: [&str; 3] = ["SYNC-HAZARD-", "SYNC-CONTENTS-", "SYNC-"];

/// A function of which a code speaks, and its later versions.
const SET: &str = "vkCmdSetEvent";
const VERSIONS: [&str; 2] = ["vkCmdSetEvent2", "vkCmdSetEvent2KHR"];

/// A command that runs shaders, of which a code speaks. Others have the same page.
const RUN: &str = "VUID-vkCmdDraw-";

/// What there is to say about a code.
#[derive(Clone)]
pub(crate) struct CodePage {
    pub(crate) code: Code,
    /// As reports and scenarios call it.
    pub(crate) short: &'static str,
    pub(crate) text: &'static str,
}

macro_rules! shader_text {
    ($file:literal) => {
        include_str!(concat!("../../../../../docs/shaders/", $file, ".md"))
    };
}

macro_rules! text {
    ($code:literal) => {
        include_str!(concat!("../../../../../docs/hazards/", $code, ".md"))
    };
}

/// What shaders do wrong: code, short form, page.
const SHADERS: [(&str, &str, &str); 12] = [
    ("VUID-vkCmdDraw-None-10068", "DESCRIPTOR-INDEX", shader_text!("VUID-vkCmdDraw-None-10068")),
    ("VUID-vkCmdDraw-None-08114", "DESCRIPTOR-UNWRITTEN", shader_text!("VUID-vkCmdDraw-None-08114")),
    ("VUID-vkCmdDraw-storageBuffers-06936", "STORAGE-BOUNDS", shader_text!("VUID-vkCmdDraw-storageBuffers-06936")),
    ("VUID-vkCmdDraw-uniformBuffers-06935", "UNIFORM-BOUNDS", shader_text!("VUID-vkCmdDraw-uniformBuffers-06935")),
    ("VUID-vkCmdDraw-None-08613", "STORAGE-BOUNDS", shader_text!("VUID-vkCmdDraw-None-08613")),
    ("VUID-vkCmdDraw-None-08612", "UNIFORM-BOUNDS", shader_text!("VUID-vkCmdDraw-None-08612")),
    (
        "UNASSIGNED-Inline uniform block access out of bounds",
        "INLINE-BOUNDS",
        shader_text!("UNASSIGNED-Inline-uniform-block-access-out-of-bounds"),
    ),
    (
        "UNASSIGNED-Descriptor Texel Buffer texel out of bounds",
        "TEXEL-BOUNDS",
        shader_text!("UNASSIGNED-Descriptor-Texel-Buffer-texel-out-of-bounds"),
    ),
    (
        "VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819",
        "ADDRESS-BOUNDS",
        shader_text!("VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819"),
    ),
    (
        "VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-12281",
        "INSTANCE-REFERENCE",
        shader_text!("VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-12281"),
    ),
    (
        "UNASSIGNED-Acceleration structure reference unknown",
        "INSTANCE-REFERENCE-NV",
        shader_text!("UNASSIGNED-Acceleration-structure-reference-unknown"),
    ),
    ("VVL-DEBUG-PRINTF", "PRINTF", shader_text!("VVL-DEBUG-PRINTF")),
];

/// All pages: hazards in the order of their kinds, then faults of contents, then the others, then those of shaders.
pub(crate) fn pages() -> impl Iterator<Item = CodePage> {
    let hazard = |kind: HazardKind| CodePage {
        code: Code(Cow::Owned(format!("SYNC-HAZARD-{kind}"))),
        short: kind.short(),
        text: hazard_text(kind),
    };
    let never =
        CodePage { code: Code(Cow::Borrowed(NEVER_EXECUTED)), short: "NEVER", text: text!("SYNC-NEVER-EXECUTED") };
    let advice = CodePage {
        code: Code(Cow::Borrowed(OVER_SYNCHRONIZATION)),
        short: "OVER",
        text: text!("SYNC-OVER-SYNCHRONIZATION"),
    };
    let fault = |kind: UndefinedContentsKind, is_image| CodePage {
        code: Code(Cow::Borrowed(fault_code(kind, is_image))),
        short: kind.short(),
        text: fault_text(kind, is_image),
    };
    let faults = UndefinedContentsKind::ALL.into_iter().flat_map(move |kind| {
        // Only a missing release has a code for buffers and another for images.
        let images =
            [false, true].into_iter().take(if kind == UndefinedContentsKind::AcquireWithoutRelease { 2 } else { 1 });
        images.map(move |is_image| fault(kind, is_image))
    });
    let races = EventRaceKind::ALL.into_iter().map(race);
    let shaders = SHADERS.iter().map(|(code, short, text)| CodePage { code: Code(Cow::Borrowed(code)), short, text });
    HazardKind::ALL.into_iter().map(hazard).chain(faults).chain(races).chain([never, advice]).chain(shaders)
}

/// The code of the first version of its function; others have the same page.
fn race(kind: EventRaceKind) -> CodePage {
    let (short, text) = match kind {
        EventRaceKind::SetAfterReset => ("SET-RESET", text!("SYNC-vkCmdSetEvent-reset-race")),
        EventRaceKind::SetAfterSet => ("SET-SET", text!("SYNC-vkCmdSetEvent-set-race")),
        EventRaceKind::SetAfterWait => ("SET-WAIT", text!("SYNC-vkCmdSetEvent-wait")),
        EventRaceKind::ResetAfterSet => ("RESET-SET", text!("SYNC-vkCmdResetEvent-set-race")),
        EventRaceKind::WaitAfterRace => ("WAIT-RACE", text!("SYNC-vkCmdWaitEvents-unsynchronized-setops")),
    };
    CodePage { code: Code(Cow::Owned(race_code(kind, "vkCmdSetEvent"))), short, text }
}

fn fault_text(kind: UndefinedContentsKind, is_image: bool) -> &'static str {
    match kind {
        UndefinedContentsKind::AcquireWithoutRelease if is_image => {
            text!("UNASSIGNED-VkImageMemoryBarrier-image-00004")
        }
        UndefinedContentsKind::AcquireWithoutRelease => text!("UNASSIGNED-VkBufferMemoryBarrier-buffer-00004"),
        UndefinedContentsKind::ReadWithoutAcquire => text!("SYNC-CONTENTS-READ-WITHOUT-ACQUIRE"),
        UndefinedContentsKind::ReadWithoutTransfer => text!("SYNC-CONTENTS-READ-WITHOUT-TRANSFER"),
        UndefinedContentsKind::WriteToPreserved => text!("SYNC-CONTENTS-WRITE-TO-PRESERVED"),
        UndefinedContentsKind::ReadNotPreserved => text!("SYNC-CONTENTS-READ-NOT-PRESERVED"),
    }
}

fn hazard_text(kind: HazardKind) -> &'static str {
    match kind {
        HazardKind::ReadAfterWrite => text!("SYNC-HAZARD-READ-AFTER-WRITE"),
        HazardKind::WriteAfterRead => text!("SYNC-HAZARD-WRITE-AFTER-READ"),
        HazardKind::WriteAfterWrite => text!("SYNC-HAZARD-WRITE-AFTER-WRITE"),
        HazardKind::ReadRacingWrite => text!("SYNC-HAZARD-READ-RACING-WRITE"),
        HazardKind::WriteRacingWrite => text!("SYNC-HAZARD-WRITE-RACING-WRITE"),
        HazardKind::WriteRacingRead => text!("SYNC-HAZARD-WRITE-RACING-READ"),
        HazardKind::ReadAfterPresent => text!("SYNC-HAZARD-READ-AFTER-PRESENT"),
        HazardKind::WriteAfterPresent => text!("SYNC-HAZARD-WRITE-AFTER-PRESENT"),
        HazardKind::PresentAfterRead => text!("SYNC-HAZARD-PRESENT-AFTER-READ"),
        HazardKind::PresentAfterWrite => text!("SYNC-HAZARD-PRESENT-AFTER-WRITE"),
    }
}

impl CodePage {
    /// The sentence below the title.
    pub(crate) fn summary(&self) -> &'static str {
        self.text.lines().nth(2).unwrap_or_default()
    }

    fn matches(&self, wanted: &PageQuery) -> bool {
        match wanted {
            PageQuery::Number(id) => {
                let versions = VERSIONS.map(|it| Code(Cow::Owned(self.code.0.replace(SET, it))));
                let commands = COMMANDS.iter().filter(|_| self.code.0.starts_with(RUN)).map(|it| it.name);
                let rest = self.code.0.strip_prefix(RUN).unwrap_or_default();
                let of_command = |it: &str| Code(Cow::Owned(format!("VUID-{it}-{rest}"))).message_id();
                self.code.message_id() == *id
                    || versions.iter().any(|it| it.message_id() == *id)
                    || commands.filter(|it| it.starts_with("vkCmd")).any(|it| of_command(it) == *id)
            }
            PageQuery::Name(name) => name.eq_ignore_ascii_case(without_prefix(&self.code.0)) || name == self.short,
        }
    }
}

/// A code without what may be left out.
fn without_prefix(code: &str) -> &str {
    PREFIXES.iter().find_map(|it| code.strip_prefix(it)).unwrap_or(code)
}

enum PageQuery {
    Number(u32),
    /// In capitals, with `-` between the words, without the prefix.
    Name(String),
}

/// By its code, with or without prefix, the short form, or the number of its messages; in any case.
pub(crate) fn find(text: &str) -> Option<CodePage> {
    let wanted = parse_query(text);
    pages().find(|it| it.matches(&wanted))
}

/// What the codes of findings mean, each once, for reports. Codes of a newer layer have none.
pub(crate) fn descriptions<'a>(codes: impl Iterator<Item = &'a str>) -> Vec<CodeDescription> {
    let mut found: Vec<CodeDescription> = Vec::new();
    for code in codes {
        if found.iter().any(|it| it.code == code) {
            continue;
        }
        found.extend(find(code).map(|page| CodeDescription {
            code: code.to_owned(),
            short: page.short.to_owned(),
            summary: page.summary().to_owned(),
            page: page.text.to_owned(),
        }));
    }
    found
}

fn parse_query(text: &str) -> PageQuery {
    if let Some(id) = number(text) {
        return PageQuery::Number(id);
    }
    let text = VERSIONS.iter().rev().fold(as_draw_code(text), |text, it| text.replace(it, SET));
    PageQuery::Name(without_prefix(&text.to_ascii_uppercase().replace('_', "-")).to_owned())
}

/// The code of a fault in a shader, as if a draw had run it.
fn as_draw_code(text: &str) -> String {
    let mut parts = text.splitn(3, ['-', '_']);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(vuid), Some(command), Some(rest))
            if vuid.eq_ignore_ascii_case("VUID")
                && !command.to_ascii_lowercase().starts_with("vkcmdbuild")
                && COMMANDS.iter().any(|it| it.name.eq_ignore_ascii_case(command)) =>
        {
            format!("{RUN}{rest}")
        }
        _ => text.to_owned(),
    }
}

/// Decimal or hexadecimal; messages carry the number as a signed one, so it may be negative.
fn number(text: &str) -> Option<u32> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u32::from_str_radix(digits, 16).ok();
    }
    text.parse::<u32>().ok().or_else(|| text.parse::<i32>().ok().map(i32::cast_unsigned))
}

/// Codes that may have been meant.
pub(crate) fn similar_codes(text: &str, count: usize) -> Vec<String> {
    let PageQuery::Name(name) = parse_query(text) else { return Vec::new() };
    let pages: Vec<CodePage> = pages().collect();
    let names = pages.iter().flat_map(|it| [without_prefix(&it.code.0), it.short]);
    let mut found: Vec<String> = Vec::new();
    for code_page in nearest(&name, names, count).into_iter().filter_map(find) {
        let code = code_page.code.to_string();
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
            let (code, id) = (page.code.to_string(), page.code.message_id());
            assert!(page.text.starts_with(&format!("# {code}\n")));
            let names = [
                code.clone(),
                code.to_lowercase(),
                code.replace('-', "_"),
                without_prefix(&code).to_owned(),
                without_prefix(&code).to_lowercase(),
                id.to_string(),
                id.cast_signed().to_string(),
                format!("{id:#x}"),
                format!("0X{id:08X}"),
            ];
            for name in names {
                assert_eq!(find(&name).map(|it| it.code), Some(page.code.clone()), "{name}");
            }
            assert_eq!(lavascope_diag::short_code(&code), Some(page.short), "{code}: as `--ignore code=` takes it");
            for short in [page.short.to_owned(), page.short.to_lowercase()] {
                assert_eq!(find(&short).map(|it| it.short), Some(page.short), "{short}");
            }
        }
        let page = find("SYNC-vkCmdSetEvent2KHR-set-race").map(|it| it.code.to_string());
        assert_eq!(page.as_deref(), Some("SYNC-vkCmdSetEvent-set-race"));
        let number = Code(Cow::Borrowed("SYNC-vkCmdSetEvent2-set-race")).message_id().to_string();
        assert_eq!(find(&number).map(|it| it.code.to_string()), page);
        let page = find("VUID-vkCmdDispatchIndirect-storageBuffers-06936").map(|it| it.code.to_string());
        assert_eq!(page.as_deref(), Some("VUID-vkCmdDraw-storageBuffers-06936"));
        let number = Code(Cow::Borrowed("VUID-vkCmdDispatch-storageBuffers-06936")).message_id().to_string();
        assert_eq!(find(&number).map(|it| it.code.to_string()), page);
        for name in ["", "SYNC-HAZARD-", "RAWR", "0", "0xe4d96473", "99999999999", "-"] {
            assert!(find(name).is_none(), "{name}");
        }
    }
}
