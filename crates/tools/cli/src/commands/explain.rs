//! `lavascope explain`: what a code of a diagnostic means, with an example and the usual fixes.

use anyhow::bail;
use serde::Serialize;

use super::CommandOutcome;
use crate::text::code_pages;
use crate::text::code_pages::CodePage;
use crate::text::{self, columns};

const NEAREST_MAX: usize = 3;

/// Explain the code of a finding, with an example and the usual fixes
#[derive(clap::Args)]
pub(crate) struct ExplainArguments {
    /// The code, its short form (RAW), or the number of the message; without it, all codes are listed
    #[arg(allow_negative_numbers = true)]
    code: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &ExplainArguments) -> anyhow::Result<CommandOutcome> {
    match (&arguments.code, arguments.json) {
        (None, false) => text::emit(&list())?,
        (None, true) => text::emit_json(&code_pages::pages().map(|it| CodeInfo::new(&it, None)).collect::<Vec<_>>())?,
        (Some(code), is_json) => {
            let Some(page) = code_pages::find(code) else { bail!(unknown(code)) };
            if is_json {
                text::emit_json(&CodeInfo::new(&page, Some(page.text)))?;
            } else {
                text::emit(&text_about(&page, code))?;
            }
        }
    }
    Ok(CommandOutcome::Success)
}

/// The page, with the code that was asked for: several commands may have one page.
fn text_about(page: &CodePage, asked: &str) -> String {
    let names_command = ["VUID-vk", "SYNC-vk"].iter().any(|it| asked.starts_with(it));
    let text = if names_command { page.text.replace(&*page.code.0, asked) } else { page.text.to_owned() };
    with_paths(&text)
}

/// A terminal has no links: pages of this repository are shown by their path, `docs/settings.md`.
fn with_paths(page: &str) -> String {
    const TO_DOCS: &str = "](../";
    let mut text = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(at) = rest.find(TO_DOCS) {
        let (before, target) = (&rest[..at], &rest[at + TO_DOCS.len()..]);
        let (Some(begin), Some(end)) = (before.rfind('['), target.find(')')) else { break };
        text += &format!("{}docs/{}", &before[..begin], &target[..end]);
        rest = &target[end + 1..];
    }
    text + rest
}

fn unknown(code: &str) -> String {
    let near = code_pages::similar_codes(code, NEAREST_MAX);
    let hint = if near.is_empty() {
        "`lavascope explain` lists all codes".to_owned()
    } else {
        format!("near it are {}", near.join(", "))
    };
    format!("no diagnostic has the code `{code}`; {hint}")
}

fn list() -> String {
    let row = |it: CodePage| vec![it.code.to_string(), it.short.to_owned(), it.summary().to_owned()];
    columns(&code_pages::pages().map(row).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct CodeInfo {
    code: String,
    short: &'static str,
    message_id: u32,
    summary: &'static str,
    /// In Markdown.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<&'static str>,
}

impl CodeInfo {
    fn new(code_page: &CodePage, page: Option<&'static str>) -> CodeInfo {
        let message_id = code_page.code.message_id();
        CodeInfo {
            code: code_page.code.to_string(),
            short: code_page.short,
            message_id,
            summary: code_page.summary(),
            page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_the_repository_are_shown_by_their_path() {
        let text = with_paths("a [settings.md](../settings.md) b [x](https://e.org), [c](../ci.md#d).");
        assert_eq!(text, "a docs/settings.md b [x](https://e.org), docs/ci.md#d.");
        for page in code_pages::pages() {
            assert!(!text_about(&page, "RAW").contains("](../"), "{}", page.code);
        }
    }
}
