//! Places of a finding as a person sees them: the source line, or the command, with a mark and what happens there.
//!
//! `annotate-snippets`, `ariadne` and the renderer of miette were considered. All of them need the source text of each
//! place, which a program without debug information does not have, and none breaks a label at words where it does not
//! fit the width. An empty line around each snippet alone would take a third of the lines that a finding may have.

use std::ops::Range;

use crate::shader_fault::caller_label;
use crate::words::{cut, cut_path, cut_words, simple_function_name, width, wrap};
use crate::{FindingAccess, FindingOperation, NeighborCommands, SourceLocation, Stack};

use super::Detail;
use super::text::{StyledLine, TextNames, TextRole};

/// Where something is, in words.
struct PlaceText<'a> {
    /// Of Vulkan.
    function: &'a str,
    /// Those that a barrier leads to.
    stages: &'a [String],
    neighbors: Option<&'a NeighborCommands>,
    place: &'a str,
}

/// One place.
pub(super) struct PlaceBlock {
    /// Where it is written, if that is known.
    source: Option<SourceLocation>,
    /// The number of its line, or of the command in its command buffer.
    gutter: String,
    code: String,
    /// The command buffer of a place without source.
    container: String,
    /// The bytes of `code` that are marked.
    mark: Range<usize>,
    is_primary: bool,
    label: String,
    /// Stage and access.
    aside: String,
}

impl PlaceBlock {
    pub(super) fn of_access(access: &FindingAccess, is_primary: bool, names: TextNames) -> PlaceBlock {
        let parts = [names.show_stage(&access.stage), names.show_access(&access.access)];
        let aside: Vec<&str> = parts.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        let label = if access.action.is_empty() { &access.role } else { &access.action };
        let block = PlaceBlock {
            source: access.stack.source().cloned(),
            gutter: String::new(),
            code: String::new(),
            container: String::new(),
            mark: 0..0,
            is_primary,
            label: names.show(label),
            aside: aside.join(" / "),
        };
        let neighbors = access.neighbors.as_ref();
        let text = PlaceText { function: &access.function, stages: &[], neighbors, place: &access.place };
        block.with_code(&text, &access.stack, names)
    }

    /// The access in the shader, and the command that called it.
    pub(super) fn of_shader(accesses: &[FindingAccess], names: TextNames) -> Vec<PlaceBlock> {
        let block = |access: &FindingAccess| {
            let mut shown = access.clone();
            let is_in_shader = access.role == "shader";
            if !is_in_shader {
                shown.action = caller_label(access);
            }
            if access.stack.source().is_none() && !is_in_shader {
                // A label is broken at words, and a place is not.
                shown.action += &format!(": {}", access.place);
                (shown.place, shown.neighbors) = (String::new(), None);
            }
            if let Some(name) = accessed_name(&access.action).filter(|_| is_in_shader) {
                shown.function = if has_text(&access.stack) { name.to_owned() } else { access.function.clone() };
            }
            PlaceBlock::of_access(&shown, is_in_shader, names)
        };
        accesses.iter().map(block).collect()
    }

    pub(super) fn of_operation(operation: &FindingOperation, names: TextNames) -> PlaceBlock {
        let source = operation.stack.source().cloned();
        let gap = names.show(&operation.gap);
        let scope = names.show(&operation.scope);
        let label = match (source.is_some(), gap.as_str(), scope.as_str()) {
            (true, gap, _) if !gap.is_empty() => gap.to_owned(),
            (_, "", scope) => format!("orders {scope}"),
            (_, gap, "") => gap.to_owned(),
            (_, gap, scope) => format!("{scope}: {gap}"),
        };
        let block = PlaceBlock {
            source,
            gutter: String::new(),
            code: String::new(),
            container: String::new(),
            mark: 0..0,
            is_primary: true,
            label,
            aside: String::new(),
        };
        let function = if operation.function.is_empty() { &operation.kind } else { &operation.function };
        let (stages, place) = (&operation.dst_stages, &operation.place);
        block.with_code(&PlaceText { function, stages, neighbors: None, place }, &operation.stack, names)
    }

    /// The source line; without one, the function and where it is.
    fn with_code(mut self, text: &PlaceText<'_>, stack: &Stack, names: TextNames) -> PlaceBlock {
        let PlaceText { function, stages, neighbors, place } = *text;
        let calls = calls(function, stack);
        if let Some(source) = &self.source {
            self.gutter = source.line.to_string();
            if let Some(text) = source.text.as_ref().filter(|it| !it.trim().is_empty()) {
                self.code = names.show_source(text);
                self.mark = marked(&self.code, &calls, stages, names);
                return self;
            }
        }
        let inside = library_function(stack).map(|(it, _)| format!(" in {}()", names.show(&it)));
        let (function, place) = (names.show(calls.first().map_or("", String::as_str)), names.show(place));
        let function = if function.is_empty() { "the program".to_owned() } else { function };
        let place = place.strip_prefix(&function).map_or(place.as_str(), |it| it.trim_start_matches([',', ' ']));
        // The number of a command stands where that of a line would.
        let numbered = place.strip_prefix("command ").and_then(|it| it.split_once(" of "));
        let numbered = numbered.filter(|it| it.0.bytes().all(|it| it.is_ascii_digit()));
        if self.source.is_none() {
            if let Some((index, _)) = numbered {
                self.gutter = format!("#{index}");
            } else if let Some(neighbors) = neighbors {
                self.gutter = format!("#{}", neighbors.index);
            }
        }
        let function = function + &inside.unwrap_or_default();
        self.mark = 0..function.len();
        self.code = match numbered.filter(|_| self.source.is_none()) {
            _ if place.is_empty() => function,
            Some((_, container)) => format!("{function}, {container}"),
            None => format!("{function}, {place}"),
        };
        self.container = numbered.map_or_else(|| place.to_owned(), |it| it.1.to_owned());
        self
    }

    /// The function alone, where everybody knows by now in which command buffer it is.
    fn shorten(&mut self) {
        if self.gutter.starts_with('#') {
            self.code.truncate(self.mark.end);
        }
    }

    /// The label with stage and access.
    fn whole_label(&self) -> String {
        match (self.label.as_str(), self.aside.as_str()) {
            (label, "") => label.to_owned(),
            ("", aside) => aside.to_owned(),
            (label, aside) => format!("{label}, {aside}"),
        }
    }

    /// Shortens the label to what fits into one or two lines.
    pub(super) fn cut_label(&mut self, columns: usize) {
        self.label = cut_words(&self.label, columns);
    }

    pub(super) fn gutter_width(&self) -> usize {
        width(&self.gutter)
    }

    /// Whether all of the code is marked. If it is a source line, a mark with a label behind it takes no more lines.
    fn needs_no_mark(&self, columns: usize) -> bool {
        let is_whole = self.mark.start == 0 && self.code[self.mark.end..].trim_matches([';', '{', ' ']).is_empty();
        let has_room = width(&self.code[..self.mark.end]) + 1 + width(&self.whole_label()) <= columns;
        self.source.is_none() || is_whole && !has_room
    }

    fn is_on_same_line(&self, other: &PlaceBlock) -> bool {
        match (&self.source, &other.source) {
            (Some(own), Some(other)) => (&own.file, own.line) == (&other.file, other.line),
            _ => false,
        }
    }
}

/// The variable in `reads source.words[3]`.
fn accessed_name(action: &str) -> Option<&str> {
    let (_, what) = action.split_once(' ')?;
    what.split(|it: char| !it.is_alphanumeric() && it != '_').next().filter(|it| !it.is_empty())
}

fn has_text(stack: &Stack) -> bool {
    stack.source().is_some_and(|it| it.text.as_ref().is_some_and(|it| !it.trim().is_empty()))
}

/// The innermost function of a library that makes a call, and the library.
pub(super) fn library_function(stack: &Stack) -> Option<(String, &str)> {
    let frame = stack.frames.first()?;
    let name = frame.source.as_ref().and_then(|it| it.function.as_deref()).or(frame.symbol.as_deref())?;
    Some((simple_function_name(name), frame.library.as_deref()?))
}

/// What a line of a place may call: the function of Vulkan, or the wrapper around it.
fn calls(function: &str, stack: &Stack) -> Vec<String> {
    let wrapper = stack.frames.iter().rev().find(|it| it.is_wrapper);
    let name = wrapper.and_then(|it| it.source.as_ref()?.function.as_deref().or(it.symbol.as_deref()));
    [function.to_owned()].into_iter().chain(name.map(simple_function_name)).collect()
}

/// What of a line is marked: the stages that a barrier names, the function that is called, or all of it.
fn marked(code: &str, calls: &[String], stages: &[String], names: TextNames) -> Range<usize> {
    let calls = calls.iter().flat_map(|it| function_spellings(it));
    let spellings = stages.iter().flat_map(|it| [it.clone(), names.show(it)]).chain(calls);
    for spelling in spellings {
        if let Some(at) = find_word(code, &spelling) {
            return at..at + spelling.len();
        }
    }
    0..code.trim_end_matches([';', '{', ' ']).len()
}

/// A function of Vulkan as languages spell it.
fn function_spellings(function: &str) -> Vec<String> {
    let Some(name) = function.strip_prefix("vk") else { return vec![function.to_owned()] };
    let lower =
        |text: &str| text.chars().take(1).map(|it| it.to_ascii_lowercase()).chain(text.chars().skip(1)).collect();
    let snake = |text: &str| {
        let mut out = String::new();
        for letter in text.chars() {
            if letter.is_ascii_uppercase() && !out.is_empty() {
                out.push('_');
            }
            out.push(letter.to_ascii_lowercase());
        }
        out
    };
    let bare = name.strip_prefix("Cmd").or_else(|| name.strip_prefix("Queue")).unwrap_or(name);
    vec![function.to_owned(), name.to_owned(), lower(name), snake(name), lower(bare), snake(bare)]
}

fn find_word(text: &str, word: &str) -> Option<usize> {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    let found =
        |(at, _): &(usize, &str)| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part);
    text.match_indices(word).find(found).map(|it| it.0).filter(|_| !word.is_empty())
}

/// How a place is marked whose whole code is marked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkLayout {
    OwnLine,
    /// One sign before the label: a line with the mark has nothing to add.
    BeforeLabel,
    /// Likewise, and the label is one line, because the fix has what a barrier lacks.
    BeforeCutLabel,
}

/// How places are laid out.
#[derive(Clone, Copy)]
pub(super) struct PlacesLayout {
    pub(super) columns: usize,
    pub(super) names: TextNames,
    pub(super) marks: MarkLayout,
    /// Whether a path and a label take one line each, whatever is missing then.
    pub(super) is_cut: bool,
}

/// All places, in the order of time, with the name of the file where it changes.
pub(super) fn render_places(
    mut blocks: Vec<PlaceBlock>,
    first_file: Option<&str>,
    layout: PlacesLayout,
) -> Vec<StyledLine> {
    let PlacesLayout { columns, names, is_cut, .. } = layout;
    // The last one is the place that the line above names.
    let container = blocks.last().map_or(String::new(), |it| it.container.clone());
    blocks.iter_mut().filter(|it| it.container == container).for_each(PlaceBlock::shorten);
    let gutter = blocks.iter().map(PlaceBlock::gutter_width).max().unwrap_or(0).max(3);
    let code_columns = columns.saturating_sub(gutter + 5).max(8);
    let aside_column = aside_column(&blocks, code_columns);
    let mut file = first_file;
    let mut lines = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        if let Some(source) = &block.source {
            if file != Some(source.file.as_str()) {
                let function = source
                    .function
                    .as_ref()
                    .map_or(String::new(), |it| format!("  {}()", names.show(&simple_function_name(it))));
                let space = columns.saturating_sub(6);
                let place = format!("{}:{}", names.show(&source.file), source.line);
                // A name that needs a line of its own is too much for a brief report.
                let has_room = names.detail == Detail::Verbose || width(&place) + width(&function) <= space;
                let shown = if has_room { place + &function } else { place };
                let shown = if is_cut { cut_path(&shown, space) } else { shown };
                for (at, row) in wrap(&shown, space, space).iter().enumerate() {
                    let sign = if at == 0 { "  ::: " } else { "      " };
                    lines.push(StyledLine::new().with(TextRole::Gutter, sign).with(TextRole::Plain, row));
                }
            }
            file = Some(&source.file);
        }
        let is_repeated = at > 0 && blocks[at - 1].is_on_same_line(block);
        lines.extend(render_block(
            block,
            is_repeated,
            layout,
            BlockColumns { gutter, code: code_columns, aside_column },
        ));
    }
    lines
}

/// The column at which stages and accesses begin, if all of them fit behind their labels.
fn aside_column(blocks: &[PlaceBlock], columns: usize) -> Option<usize> {
    let with_aside = || blocks.iter().filter(|it| !it.aside.is_empty());
    let end_of_label = |it: &PlaceBlock| width(&it.code[..it.mark.end]) + 1 + width(&it.label) + 2;
    let begin = with_aside().map(end_of_label).max()?;
    with_aside().all(|it| begin + width(&it.aside) <= columns).then_some(begin)
}

/// The columns of all blocks of a finding.
#[derive(Clone, Copy)]
struct BlockColumns {
    gutter: usize,
    code: usize,
    aside_column: Option<usize>,
}

fn render_block(block: &PlaceBlock, is_repeated: bool, layout: PlacesLayout, all: BlockColumns) -> Vec<StyledLine> {
    let PlacesLayout { marks: mark_layout, is_cut, .. } = layout;
    let BlockColumns { gutter, code: columns, aside_column } = all;
    let (code, mark) = window(block, columns);
    let role = if block.is_primary { TextRole::Primary } else { TextRole::Secondary };
    let number = format!(" {:>gutter$} |  ", block.gutter);
    let empty = format!(" {:gutter$} |  ", "");
    let sign = if block.is_primary { "^" } else { "-" };
    if mark_layout != MarkLayout::OwnLine && !is_repeated && block.needs_no_mark(columns) {
        let line = StyledLine::new().with(TextRole::Gutter, &number).with(TextRole::Plain, &code);
        let label = block.whole_label();
        if block.source.is_none() && width(&code) + 2 + width(&label) <= columns {
            return vec![line.with(role, &format!("  {label}"))];
        }
        let label = format!("{sign} {label}");
        let is_label_cut = is_cut && (!block.aside.is_empty() || mark_layout == MarkLayout::BeforeCutLabel);
        let rows = if is_label_cut { vec![cut_words(&label, columns)] } else { wrap(&label, columns, columns) };
        let label = rows.iter().map(|it| StyledLine::new().with(TextRole::Gutter, &empty).with(role, it));
        return [line].into_iter().chain(label).collect();
    }
    let mut lines = Vec::new();
    if !is_repeated {
        lines.push(StyledLine::new().with(TextRole::Gutter, &number).with(TextRole::Plain, &code));
    }
    let marks = format!("{}{}", " ".repeat(mark.start), sign.repeat(mark.len()));
    let begin = |marks: &str| StyledLine::new().with(TextRole::Gutter, &empty).with(role, marks);
    let space = columns.saturating_sub(mark.end + 1);
    let is_aligned = |column: &usize| block.aside.is_empty() || mark.end + 1 + width(&block.label) + 2 <= *column;
    if let Some(column) = aside_column.filter(is_aligned).filter(|_| width(&block.label) <= space) {
        let pad = column.saturating_sub(mark.end + 1 + width(&block.label));
        let aside = if block.aside.is_empty() { String::new() } else { " ".repeat(pad) + &block.aside };
        return [lines, vec![begin(&marks).with(role, &format!(" {}", block.label)).with(TextRole::Plain, &aside)]]
            .concat();
    }
    let label = block.whole_label();
    // The end of an access is its stage and access; that of an operation is what it lacks.
    let is_label_cut = is_cut && !block.aside.is_empty() && width(&label) > space;
    let label = if is_label_cut { cut_words(&label, columns) } else { label };
    let wide = width(&label);
    let (first, hang) = match () {
        () if wide <= space => (space, 2),
        // All of it below the mark, or what fits behind the mark and the rest below.
        () if wide <= columns => (0, mark.start.min(columns - wide)),
        () if space * 3 >= columns && mark.end * 2 < columns => (space, mark.end + 1),
        () => (0, 2),
    };
    let mut wrapped = wrap(&label, first, columns.saturating_sub(hang)).into_iter();
    let head = wrapped.next().unwrap_or_default();
    lines.push(begin(&marks).with(role, &if head.is_empty() { head } else { format!(" {head}") }));
    lines.extend(wrapped.map(|it| begin(&" ".repeat(hang)).with(role, &it)));
    lines
}

/// As much of the code as fits, around the mark, and the columns of the mark in it.
fn window(block: &PlaceBlock, columns: usize) -> (String, Range<usize>) {
    let start = width(&block.code[..block.mark.start]);
    let end = width(&block.code[..block.mark.end]);
    if width(&block.code) <= columns {
        return (block.code.clone(), start..end);
    }
    if end < columns {
        let shown = cut_words(&block.code, columns);
        // A mark at the last word that fits stays whole.
        return (if width(&shown) > end { shown } else { cut(&block.code, columns) }, start..end);
    }
    // The mark is far to the right: what is called, then what is marked.
    let call = block.code.find('(').map_or("", |at| &block.code[..=at]);
    let has_room = width(call) + 2 + end - start <= columns && call.len() <= block.mark.start;
    let call = if has_room && !call.contains(' ') { call } else { "" };
    let shown = cut(&format!("{call}…{}", &block.code[block.mark.start..]), columns);
    let begin = width(call) + 1;
    let marks = (begin + end - start).min(width(&shown));
    (shown, begin..marks.max(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Detail;

    #[test]
    fn calls_are_found_in_other_languages() {
        let names = TextNames::new(Detail::Brief);
        let mark = |code: &str, function: &str| code[marked(code, &[function.to_owned()], &[], names)].to_owned();
        assert_eq!(mark("vkCmdCopyBuffer(cmd, a, b, 1, &region);", "vkCmdCopyBuffer"), "vkCmdCopyBuffer");
        assert_eq!(mark("device.cmd_copy_buffer(cmd, a);", "vkCmdCopyBuffer"), "cmd_copy_buffer");
        assert_eq!(mark("commands.copyBuffer(a, b);", "vkCmdCopyBuffer"), "copyBuffer");
        assert_eq!(mark("upload(a, b);", "vkCmdCopyBuffer"), "upload(a, b)");
        assert_eq!(mark("my_vkCmdDraw(vkCmdDraws);", "vkCmdDraw"), "my_vkCmdDraw(vkCmdDraws)");
        let stages = ["VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT".to_owned()];
        let code = "barrier(emitters, COPY, VERTEX_SHADER);";
        assert_eq!(&code[marked(code, &["vkCmdPipelineBarrier2".to_owned()], &stages, names)], "VERTEX_SHADER");
    }

    #[test]
    fn a_long_line_is_shown_around_its_mark() {
        let block = |code: &str, mark: Range<usize>| PlaceBlock {
            source: None,
            gutter: String::new(),
            code: code.to_owned(),
            container: String::new(),
            mark,
            is_primary: true,
            label: String::new(),
            aside: String::new(),
        };
        assert_eq!(window(&block("vkCmdDraw(a, b, c)", 0..9), 12), ("vkCmdDraw(a…".to_owned(), 0..9));
        assert_eq!(window(&block("if (something) vkCmdDraw(a)", 15..24), 12), ("…vkCmdDraw(…".to_owned(), 1..10));
        assert_eq!(window(&block("incomprehensibilities", 0..21), 8), ("…incomp…".to_owned(), 1..8));
    }
}
