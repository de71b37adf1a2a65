//! Findings for people: a headline, where it is, the places in the order of time, the fix, and where to read on.

use anstyle::{AnsiColor, Style};

use crate::words::{count, cut_path, cut_words, short_names, simple_function_name, visible, width, wrap};
use crate::{Finding, FindingAccess, FindingFix, FindingSeverity, FindingsReport, FixChange, FixEdit, Stack};

use super::snippet::{MarkLayout, PlaceBlock, PlacesLayout, library_function, render_places};
use super::{Coloring, Detail, TextOptions};

/// What one finding may take, in a terminal of so many columns or more.
const LINES_MAX: usize = 15;
const COLUMNS_MIN: usize = 80;
/// Five findings and the lines below them fit on two screens of 40 lines.
const LINES_OF_MANY_MAX: usize = 14;
const MANY_FINDINGS: usize = 5;
/// More findings than these are for the other formats.
const FINDINGS_MAX: usize = 20;
/// What stands at the right end of a line goes no farther to the right than this.
const ALIGN_MAX: usize = 100;
/// Callers that are shown in one line.
const CALLERS_MAX: usize = 4;

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextRole {
    Plain,
    Bold,
    Error,
    Warning,
    Note,
    Help,
    Gutter,
    Primary,
    Secondary,
    Added,
    Removed,
}

impl TextRole {
    fn style(self) -> Style {
        let color = |it: AnsiColor| Style::new().fg_color(Some(it.into()));
        match self {
            TextRole::Plain => Style::new(),
            TextRole::Bold => Style::new().bold(),
            TextRole::Error => color(AnsiColor::BrightRed).bold(),
            TextRole::Warning => color(AnsiColor::Yellow).bold(),
            TextRole::Note => color(AnsiColor::BrightGreen).bold(),
            TextRole::Help => color(AnsiColor::BrightCyan).bold(),
            TextRole::Gutter => color(AnsiColor::BrightBlue).bold(),
            TextRole::Primary => color(AnsiColor::BrightRed).bold(),
            TextRole::Secondary => color(AnsiColor::BrightBlue).bold(),
            TextRole::Added => color(AnsiColor::Green),
            TextRole::Removed => color(AnsiColor::Red),
        }
    }

    fn of_severity(severity: FindingSeverity) -> TextRole {
        match severity {
            FindingSeverity::Error => TextRole::Error,
            FindingSeverity::Warning | FindingSeverity::Performance => TextRole::Warning,
            FindingSeverity::Info => TextRole::Note,
        }
    }
}

/// One line, in parts.
#[derive(Clone, Debug, Default)]
pub(super) struct StyledLine {
    parts: Vec<(TextRole, String)>,
}

impl StyledLine {
    pub(super) fn new() -> StyledLine {
        StyledLine::default()
    }

    pub(super) fn with(mut self, role: TextRole, text: &str) -> StyledLine {
        self.parts.push((role, text.to_owned()));
        self
    }

    fn width(&self) -> usize {
        self.parts.iter().map(|it| width(&it.1)).sum()
    }

    fn write(&self, out: &mut String, coloring: Coloring) {
        let whole: String = self.parts.iter().map(|it| it.1.as_str()).collect();
        // Nothing stands behind the last letter.
        let mut left = whole.trim_end().len();
        for (role, text) in &self.parts {
            let shown = &text[..text.len().min(left)];
            left -= shown.len();
            let style = role.style();
            if coloring == Coloring::Off || shown.is_empty() || style == Style::new() {
                out.push_str(shown);
            } else {
                out.push_str(&format!("{style}{shown}{style:#}"));
            }
        }
        out.push('\n');
    }
}

/// Whether names of stages and accesses are shown whole.
#[derive(Clone, Copy)]
pub(super) struct TextNames {
    pub(super) detail: Detail,
}

impl TextNames {
    pub(super) fn new(detail: Detail) -> TextNames {
        TextNames { detail }
    }

    /// A text that may be of others.
    pub(super) fn show(self, text: &str) -> String {
        let safe = visible(text);
        match self.detail {
            Detail::Brief => short_names(&safe),
            Detail::Verbose => safe,
        }
    }

    /// A stage beside an access, where it needs no more than `COMPUTE`.
    pub(super) fn show_stage(self, stage: &str) -> String {
        let shown = self.show(stage);
        shown
            .strip_suffix("_SHADER")
            .filter(|_| self.detail == Detail::Brief)
            .map_or_else(|| shown.clone(), str::to_owned)
    }

    /// An access beside a stage: `STORAGE_READ`.
    pub(super) fn show_access(self, access: &str) -> String {
        let shown = self.show(access);
        let rest = shown.strip_prefix("SHADER_").filter(|it| self.detail == Detail::Brief && it.contains('_'));
        rest.map_or_else(|| shown.clone(), str::to_owned)
    }

    /// A line of a file, with the names that it has.
    pub(super) fn show_source(self, text: &str) -> String {
        visible(text.trim())
    }
}

/// All findings that are not known, then how many there are, then what is no finding.
pub(super) fn render_text_report(report: &FindingsReport, options: &TextOptions) -> String {
    let all = report.new_findings();
    let most = if options.detail == Detail::Verbose { all.len() } else { FINDINGS_MAX };
    let mut out = String::new();
    let mut library = &None;
    for finding in all.iter().take(most) {
        if finding.library != *library {
            library = &finding.library;
            library_heading(&all, library.as_deref().unwrap_or_default(), options, &mut out);
        }
        out += &render_finding(report, finding, options);
        out.push('\n');
    }
    let mut line = |role: TextRole, text: &str| {
        for (at, row) in wrap(text, options.width, options.width.saturating_sub(2)).iter().enumerate() {
            let indent = if at == 0 { "" } else { "  " };
            StyledLine::new().with(role, &format!("{indent}{row}")).write(&mut out, options.coloring);
        }
    };
    if !report.findings.is_empty() || report.ignored > 0 {
        line(TextRole::Bold, &format!("lavascope: {}", report.totals()));
    }
    if let Some(more) = all.len().checked_sub(most).filter(|it| *it > 0) {
        let words = count(more as u64, "more finding");
        line(TextRole::Plain, &format!("lavascope: {words} not shown: use --verbose, or --format short"));
    }
    for notice in &report.notices {
        let text = visible_lines(&notice.line());
        let mut lines = text.iter();
        line(notice_role(notice.severity), &format!("lavascope: {}", lines.next().map_or("", String::as_str)));
        lines.for_each(|it| line(TextRole::Plain, &format!("  {it}")));
    }
    out
}

/// Says that what follows is not in the program itself.
fn library_heading(all: &[&Finding], library: &str, options: &TextOptions, out: &mut String) {
    let number = all.iter().filter(|it| it.library.as_deref() == Some(library)).count() as u64;
    let text = format!("in the library {}: {}", visible(library), count(number, "finding"));
    for row in wrap(&text, options.width, options.width) {
        StyledLine::new().with(TextRole::Bold, &row).write(out, options.coloring);
    }
}

fn notice_role(severity: FindingSeverity) -> TextRole {
    match severity {
        FindingSeverity::Error => TextRole::Error,
        FindingSeverity::Warning | FindingSeverity::Performance => TextRole::Warning,
        FindingSeverity::Info => TextRole::Plain,
    }
}

/// The lines of a text, in which nothing is left that a terminal obeys.
pub(super) fn visible_lines(text: &str) -> Vec<String> {
    text.lines().map(visible).collect()
}

/// One finding, in at most [`LINES_MAX`] lines where the terminal is wide enough; in fewer if there are many findings.
pub(super) fn render_finding(report: &FindingsReport, finding: &Finding, options: &TextOptions) -> String {
    let names = TextNames::new(options.detail);
    let has_many = report.findings.iter().filter(|it| !it.is_known).count() >= MANY_FINDINGS;
    let lines_max = if has_many { LINES_OF_MANY_MAX } else { LINES_MAX };
    let columns = options.width.max(20);
    // Narrower terminals need more lines for the same.
    let lines_max = lines_max * COLUMNS_MIN / columns.min(COLUMNS_MIN);
    let page = FindingPage { report, finding, names, columns, lines_max };
    let budgets = match options.detail {
        Detail::Brief => &PageBudget::ALL[..],
        Detail::Verbose => &[PageBudget::UNLIMITED],
    };
    let mut lines = Vec::new();
    for budget in budgets {
        lines = page.lines(*budget);
        if page.rows(&lines) <= page.lines_max {
            break;
        }
    }
    let mut out = String::new();
    lines.iter().for_each(|it| it.write(&mut out, options.coloring));
    out
}

/// What of a finding is shown.
#[derive(Clone, Copy)]
struct PageBudget {
    operations: usize,
    has_callers: bool,
    /// Whether the function is named even if that takes a line of its own.
    has_function: bool,
    notes: usize,
    edits: EditLayout,
    marks: MarkLayout,
    /// Whether each path and each label takes one line.
    is_cut: bool,
    /// Whether the fix has the lines that are left.
    is_fix_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EditLayout {
    LineByLine,
    /// Those that only add something stand behind each other.
    Joined,
    /// Likewise, and an old value stands in one line with the new one.
    OneLine,
}

impl PageBudget {
    const UNLIMITED: PageBudget = PageBudget {
        operations: usize::MAX,
        has_callers: true,
        has_function: true,
        notes: usize::MAX,
        edits: EditLayout::LineByLine,
        marks: MarkLayout::OwnLine,
        is_cut: false,
        is_fix_cut: false,
    };
    const WITHOUT_CALLERS: PageBudget =
        PageBudget { operations: 1, has_callers: false, notes: 0, ..PageBudget::UNLIMITED };
    const JOINED: PageBudget = PageBudget { edits: EditLayout::Joined, ..PageBudget::WITHOUT_CALLERS };
    const WITHOUT_MARKS: PageBudget =
        PageBudget { has_function: false, marks: MarkLayout::BeforeLabel, ..PageBudget::JOINED };
    const ONE_LINE: PageBudget = PageBudget { edits: EditLayout::OneLine, ..PageBudget::WITHOUT_MARKS };
    const CUT: PageBudget = PageBudget { is_cut: true, ..PageBudget::ONE_LINE };
    /// From the most to the least.
    const ALL: [PageBudget; 14] = [
        PageBudget { operations: 2, ..PageBudget::UNLIMITED },
        PageBudget { operations: 1, ..PageBudget::UNLIMITED },
        PageBudget { operations: 1, notes: 1, ..PageBudget::UNLIMITED },
        PageBudget { operations: 1, notes: 1, has_callers: false, ..PageBudget::UNLIMITED },
        PageBudget::WITHOUT_CALLERS,
        PageBudget::JOINED,
        PageBudget { has_function: false, ..PageBudget::JOINED },
        PageBudget::WITHOUT_MARKS,
        PageBudget::ONE_LINE,
        PageBudget { edits: EditLayout::Joined, ..PageBudget::CUT },
        PageBudget::CUT,
        PageBudget { marks: MarkLayout::BeforeCutLabel, ..PageBudget::CUT },
        PageBudget { operations: 0, ..PageBudget::CUT },
        PageBudget { operations: 0, is_fix_cut: true, ..PageBudget::CUT },
    ];
}

/// A finding to be laid out.
struct FindingPage<'a> {
    report: &'a FindingsReport,
    finding: &'a Finding,
    names: TextNames,
    columns: usize,
    lines_max: usize,
}

impl FindingPage<'_> {
    fn lines(&self, budget: PageBudget) -> Vec<StyledLine> {
        let mut lines = self.headline();
        let often = self.location(budget, &mut lines);
        if budget.has_callers {
            lines.extend(self.callers());
        }
        lines.extend(self.places(budget));
        let fixes = if self.names.detail == Detail::Verbose { usize::MAX } else { 1 };
        let mut fix: Vec<StyledLine> =
            self.finding.fixes.iter().take(fixes).flat_map(|it| self.fix(it, budget)).collect();
        let mut notes = self.notes(budget, &often, false);
        if budget.is_fix_cut && self.rows(&lines) + self.rows(&fix) + self.rows(&notes) > self.lines_max {
            notes = self.notes(budget, &often, true);
            fix.truncate(self.lines_max.saturating_sub(self.rows(&lines) + self.rows(&notes)).max(1));
        }
        lines.extend(fix);
        lines.extend(notes);
        if self.names.detail == Detail::Verbose {
            lines.extend(self.details());
        }
        lines
    }

    /// What the lines take in the terminal, which breaks those that are too wide.
    fn rows(&self, lines: &[StyledLine]) -> usize {
        lines.iter().map(|it| it.width().div_ceil(self.columns).max(1)).sum()
    }

    /// The text in one line if the budget is small: a path loses its first folders, other texts lose their last words.
    fn shortened(&self, text: String, budget: PageBudget, indent: usize) -> String {
        let space = self.columns.saturating_sub(indent);
        if budget.is_cut { cut_words(&cut_path(&text, space), space) } else { text }
    }

    /// A first part, then words that go on below `indent`.
    fn paragraph(
        &self,
        role: TextRole,
        first: &str,
        text: &str,
        text_role: TextRole,
        indent: usize,
    ) -> Vec<StyledLine> {
        let head = width(first);
        let rows = wrap(text, self.columns.saturating_sub(head), self.columns.saturating_sub(indent));
        let mut lines = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            lines.push(match at {
                0 => StyledLine::new().with(role, first).with(text_role, row),
                _ => StyledLine::new().with(text_role, &format!("{:indent$}{row}", "")),
            });
        }
        lines
    }

    fn headline(&self) -> Vec<StyledLine> {
        let finding = self.finding;
        let (severity, code) = (finding.severity.word(), visible(self.report.short_code(finding)));
        let first = format!("{severity}[{code}]");
        let role = TextRole::of_severity(finding.severity);
        let text = format!("{first}: {}", self.names.show(finding.headline()));
        let mut rows = wrap(&text, self.columns, self.columns.saturating_sub(4)).into_iter();
        let head = rows.next().unwrap_or_default();
        let begin = match head.strip_prefix(&first) {
            Some(title) => StyledLine::new().with(role, &first).with(TextRole::Bold, title),
            // The code of a newer layer has words that do not fit.
            None => StyledLine::new().with(role, &head),
        };
        let more = rows.map(|it| StyledLine::new().with(TextRole::Bold, &format!("    {it}")));
        [begin].into_iter().chain(more).collect()
    }

    /// Where a person should look, and how often it happened. Returns the latter if there is no room for it.
    fn location(&self, budget: PageBudget, lines: &mut Vec<StyledLine>) -> String {
        let finding = self.finding;
        let access = finding.accesses.first();
        let (place, around) = match (finding.location(), access) {
            (Some(source), _) => {
                let function =
                    source.function.as_ref().map_or(String::new(), |it| format!("  {}()", simple_function_name(it)));
                let column = source.column.filter(|_| finding.source.is_some());
                let column = column.map_or(String::new(), |it| format!(":{it}"));
                let place = format!("{}:{}{column}", source.file, source.line);
                let has_room = width(&place) + width(&function) <= self.columns.saturating_sub(6);
                (if has_room || budget.has_function { place + &function } else { place }, String::new())
            }
            (None, Some(access)) if access.place.is_empty() => (access.function.clone(), surroundings(access)),
            (None, Some(access)) => (place_line(&access.function, &access.place, &access.stack), surroundings(access)),
            (None, None) => (finding.function.clone(), String::new()),
        };
        let around = self.file().into_iter().chain([around]).filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ");
        let (place, around) = (self.names.show(&place), self.names.show(&around));
        let mut often = self.frequency();
        let mut add = |first: &str, text: String| {
            if text.is_empty() {
                return;
            }
            let text = self.shortened(text, budget, 6);
            let mut new = self.paragraph(TextRole::Gutter, first, &text, TextRole::Plain, 6);
            let end = self.columns.min(ALIGN_MAX);
            let has_room = |it: &&mut StyledLine| it.width() + 2 + width(&often) <= end;
            if let Some(line) = new.last_mut().filter(has_room).filter(|_| !often.is_empty()) {
                let pad = " ".repeat(end - line.width() - width(&often));
                line.parts.push((TextRole::Plain, pad + &std::mem::take(&mut often)));
            }
            lines.extend(new);
        };
        add("  --> ", place);
        add("      ", around);
        often
    }

    /// `in a.lava`, where several files were checked.
    fn file(&self) -> Option<String> {
        let file = self.finding.file.as_ref().filter(|_| self.finding.source.is_none())?;
        let is_other = |it: &Finding| it.file.as_ref() != Some(file);
        self.report.findings.iter().any(is_other).then(|| format!("in {file}"))
    }

    /// `300 times in 20 frames, first: frame 0, by 5 commands`.
    fn frequency(&self) -> String {
        let finding = self.finding;
        let often = (finding.occurrences > 1).then(|| format!("{} times", finding.occurrences));
        let mut text = match finding.frames {
            Some(frames) if frames.count > 1 => {
                let often = often.filter(|_| finding.occurrences > frames.count);
                let often = often.map_or(String::new(), |it| format!("{it} in "));
                format!("{often}{}, first: frame {}", count(frames.count, "frame"), frames.first)
            }
            Some(frames) => often.map_or(String::new(), |it| format!("{it} in ")) + &format!("frame {}", frames.first),
            None => often.unwrap_or_default(),
        };
        if finding.sites > 1 {
            text += if text.is_empty() { "" } else { ", " };
            text += &format!("by {} commands", finding.sites);
        }
        text
    }

    /// The functions of the program that lead to the access.
    fn callers(&self) -> Vec<StyledLine> {
        // Those of the command that called a shader do not lead to the line of the shader.
        let access = self.finding.accesses.first().filter(|_| self.finding.source.is_none());
        let Some(access) = access else { return Vec::new() };
        let mut callers: Vec<String> = caller_names(&access.stack).into_iter().skip(1).collect();
        if callers.is_empty() {
            return Vec::new();
        }
        if self.names.detail == Detail::Brief && callers.len() > CALLERS_MAX {
            callers.truncate(CALLERS_MAX);
            callers.push("…".to_owned());
        }
        let text = self.names.show(&callers.join(" < "));
        self.paragraph(TextRole::Plain, "      called by ", &text, TextRole::Plain, 8)
    }

    /// The earlier access, what lies between, and the later access.
    fn places(&self, budget: PageBudget) -> Vec<StyledLine> {
        let names = self.names;
        let layout = PlacesLayout { columns: self.columns, names, marks: budget.marks, is_cut: budget.is_cut };
        if self.finding.is_called_shader() {
            let mut blocks = PlaceBlock::of_shader(&self.finding.shown_accesses(), names);
            if budget.is_cut {
                blocks.iter_mut().for_each(|it| it.cut_label(self.columns));
            }
            return render_places(blocks, self.finding.location().map(|it| it.file.as_str()), layout);
        }
        let mut finding = self.finding.clone();
        if let [last, prior, ..] = &mut finding.accesses[..]
            && names.detail == Detail::Brief
        {
            last.action = without_repeat(&last.action, &prior.action);
        }
        make_places_distinct(&mut finding);
        let Some((last, before)) = finding.accesses.split_first() else { return Vec::new() };
        let earlier = if budget.is_cut { 1 } else { usize::MAX };
        let mut blocks: Vec<PlaceBlock> =
            before.iter().take(earlier).rev().map(|it| PlaceBlock::of_access(it, false, names)).collect();
        let operations = finding.operations.iter().take(budget.operations);
        blocks.extend(operations.map(|it| PlaceBlock::of_operation(it, names)));
        let is_primary = finding.operations.is_empty() || budget.operations == 0;
        blocks.push(PlaceBlock::of_access(last, is_primary, names));
        let file = finding.location().map(|it| it.file.as_str());
        render_places(blocks, file, layout)
    }

    fn fix(&self, fix: &FindingFix, budget: PageBudget) -> Vec<StyledLine> {
        let first = if fix.is_verified { "help (verified): " } else { "help (not verified): " };
        if fix.changes.iter().all(|it| it.edits.is_empty()) {
            return self.paragraph(TextRole::Help, first, &self.names.show(&fix.text), TextRole::Plain, 4);
        }
        let mut lines = Vec::new();
        for (at, change) in fix.changes.iter().enumerate() {
            let first = if at == 0 { first } else { "  and " };
            let head = self.shortened(self.names.show(&change_head(change, self.finding)), budget, width(first));
            lines.extend(self.paragraph(TextRole::Help, first, &head, TextRole::Plain, 4));
            lines.extend(self.edits(&change.edits, budget.edits));
        }
        lines
    }

    fn edits(&self, edits: &[FixEdit], layout: EditLayout) -> Vec<StyledLine> {
        if layout != EditLayout::LineByLine && edits.iter().all(|it| it.before.is_none()) {
            let all: Vec<String> = edits.iter().map(added).collect();
            return self.paragraph(TextRole::Added, "     + ", &self.names.show(&all.join(", ")), TextRole::Added, 9);
        }
        let mut lines = Vec::new();
        for edit in edits {
            if let Some(before) = &edit.before {
                if layout == EditLayout::OneLine {
                    let text = self.names.show(&format!("{}: {before} -> {}", edit.field, edit.after));
                    lines.extend(self.paragraph(TextRole::Added, "     ~ ", &text, TextRole::Added, 9));
                    continue;
                }
                let text = self.names.show(&assignment(&edit.field, before));
                lines.extend(self.paragraph(TextRole::Removed, "     - ", &text, TextRole::Removed, 9));
            }
            lines.extend(self.paragraph(
                TextRole::Added,
                "     + ",
                &self.names.show(&added(edit)),
                TextRole::Added,
                9,
            ));
        }
        lines
    }

    /// Why there is no fix, what else to know, how often it happened, what is not shown, and where to read on.
    fn notes(&self, budget: PageBudget, often: &str, is_fix_cut: bool) -> Vec<StyledLine> {
        let finding = self.finding;
        let mut notes: Vec<String> = Vec::new();
        if let Some(why) = finding.no_fix.as_ref().filter(|_| finding.fixes.is_empty()) {
            notes.push(format!("no fix: {why}"));
        }
        notes.extend(finding.notes.iter().take(budget.notes).cloned());
        let mut hidden = Vec::new();
        let operations = finding.operations.len().saturating_sub(budget.operations) as u64;
        let left = finding.notes.len().saturating_sub(budget.notes) as u64;
        for (number, word) in [(operations + finding.unrelated_operations, "other barrier"), (left, "note")] {
            if number > 0 {
                hidden.push(count(number, word));
            }
        }
        if is_fix_cut {
            hidden.push("a part of the fix".to_owned());
        }
        let mut last = if often.is_empty() { String::new() } else { format!("{often}; ") };
        if self.names.detail == Detail::Verbose {
            if finding.unrelated_operations > 0 {
                last += &format!("{} not listed; ", count(finding.unrelated_operations, "other barrier"));
            }
        } else if !hidden.is_empty() {
            last += &format!("{} not shown (--verbose); ", hidden.join(", "));
        }
        last += &format!("`lavascope explain {}`", self.report.short_code(finding));
        notes.push(last);
        let line = |it: &String| self.paragraph(TextRole::Bold, "note: ", &self.names.show(it), TextRole::Plain, 6);
        notes.iter().flat_map(line).collect()
    }

    /// What only those see who ask for it.
    fn details(&self) -> Vec<StyledLine> {
        let finding = self.finding;
        let mut rows: Vec<(usize, String)> = Vec::new();
        let mut section = |title: &str, lines: Vec<String>| {
            if !lines.is_empty() {
                rows.push((0, format!("{title}:")));
                rows.extend(lines.into_iter().map(|it| (2, it)));
            }
        };
        section("message", finding.message.lines().map(str::to_owned).collect());
        section("how it came about", finding.explanation.clone());
        for access in &finding.accesses {
            section(&format!("call stack of the {}", access.role), stack_lines(&access.stack));
        }
        for operation in &finding.operations {
            section(&format!("call stack of the {}", operation.kind), stack_lines(&operation.stack));
        }
        let site =
            |it: &crate::FindingSite| format!("{}: {}", place_line(&it.function, &it.place, &it.stack), it.resource);
        section("also at", finding.more_sites.iter().map(site).collect());
        section("objects", finding.objects.iter().map(object_line).collect());
        section("properties", finding.properties.iter().map(|it| format!("{} = {}", it.key, it.value)).collect());
        let known_by = [format!("fingerprint {}", finding.full_fingerprint())].into_iter();
        section("known by", known_by.chain(finding.identity.iter().cloned()).collect());
        let line = |(indent, text): &(usize, String)| {
            self.paragraph(TextRole::Plain, &" ".repeat(*indent), &self.names.show(text), TextRole::Plain, indent + 2)
        };
        rows.iter().flat_map(line).collect()
    }
}

/// Lets a reader tell the accesses apart, where both are written in one line.
fn make_places_distinct(finding: &mut Finding) {
    let line = |it: &FindingAccess| it.stack.source().map(|it| (it.file.clone(), it.line));
    let [last, prior, ..] = &mut finding.accesses[..] else { return };
    if line(last).is_none() || line(last) != line(prior) {
        return;
    }
    let is_in_library = |it: &Stack| it.frames.first().is_some_and(|it| it.library.is_some());
    if is_in_library(&last.stack) && is_in_library(&prior.stack) {
        // One call of the program made all of it. What differs is inside of the library.
        let accesses = finding.accesses.iter_mut().map(|it| &mut it.stack);
        let stacks = accesses.chain(finding.operations.iter_mut().map(|it| &mut it.stack));
        stacks.filter(|it| is_in_library(it)).for_each(|it| it.frames.retain(|it| it.library.is_some()));
        return;
    }
    let numbers = [&*last, &*prior].map(|it| it.place.split_once(" of ").unwrap_or((it.place.as_str(), "")));
    let names = match numbers {
        [one, other] if one == other => [String::new(), "earlier: ".to_owned()],
        [one, other] if one.1 == other.1 => [one, other].map(|it| format!("{} ", it.0)),
        _ => [&*last, &*prior].map(|it| format!("{}: ", it.place)),
    };
    for (access, name) in [last, prior].into_iter().zip(names) {
        access.action.insert_str(0, &name);
    }
}

/// `reads it (set 0, binding 0)`, where the line of the earlier access has named what it is.
fn without_repeat(action: &str, prior: &str) -> String {
    let resource = resource_of(prior);
    if resource.is_empty() {
        return action.to_owned();
    }
    let whole = |phrase: &str| format!("{phrase} of {resource}");
    for (phrase, short) in [("the layout", "its layout"), ("the ownership", "its ownership")] {
        if action.contains(&whole(phrase)) {
            return action.replacen(&whole(phrase), short, 1);
        }
    }
    let begin = action.find(resource).map(|at| at + resource.len());
    // `"a"` is not the resource in `writes "a"[0..8]`.
    let is_all = begin.is_some_and(|end| action[end..].is_empty() || action[end..].starts_with(' '));
    if is_all { action.replacen(resource, "it", 1) } else { action.to_owned() }
}

/// What an action is about, with its part: `"a"[0..8]` of `writes "a"[0..8] (set 0, binding 0)`.
fn resource_of(action: &str) -> &str {
    let phrases = ["changes the layout of ", "transfers the ownership of "];
    let rest = phrases.iter().find_map(|it| action.strip_prefix(it));
    let rest = rest.or_else(|| action.split_once(' ').map(|it| it.1)).unwrap_or_default();
    let name_end = rest.strip_prefix('"').and_then(|it| it.find('"')).map_or(0, |it| it + 2);
    let ends = [" (", " as "].iter().filter_map(|it| rest[name_end..].find(it));
    &rest[..ends.min().map_or(rest.len(), |it| it + name_end)]
}

fn place_line(function: &str, place: &str, stack: &Stack) -> String {
    match stack.source() {
        Some(source) => format!("{function} at {}:{}", source.file, source.line),
        None if place.starts_with(function) => place.to_owned(),
        None => format!("{function}, {place}"),
    }
}

/// The labels around a command, and the commands beside it.
fn surroundings(access: &FindingAccess) -> String {
    let mut parts = Vec::new();
    parts.extend(access.labels.as_ref().map(|it| format!("in {it}")));
    if let Some(neighbors) = &access.neighbors {
        parts.extend(neighbors.before.as_ref().map(|it| format!("after {it}")));
        parts.extend(neighbors.after.as_ref().map(|it| format!("before {it}")));
    }
    parts.join(", ")
}

/// The frames with a source line: `record plasma.c:204`.
fn caller_names(stack: &Stack) -> Vec<String> {
    let named = stack.source_frames().map(|source| {
        let file = source.file.rsplit('/').next().unwrap_or(&source.file);
        let function = source.function.as_deref().map_or(String::new(), |it| format!("{} ", simple_function_name(it)));
        format!("{function}{file}:{}", source.line)
    });
    named.collect()
}

/// `in the barrier at plasma.c:199`, `insert before vkCmdDispatch at plasma.c:204`. A reader knows the folder of the
/// finding by now.
pub(super) fn change_head(change: &FixChange, finding: &Finding) -> String {
    let is_insertion = change.target.starts_with("before ");
    let verb = if is_insertion { "insert" } else { "in" };
    let Some(source) = change.stack.source() else {
        return match (change.target.as_str(), change.place.as_str()) {
            ("", place) => format!("in {place}"),
            (target, "") => format!("{verb} {target}"),
            // `the subpass dependency` at `subpass dependency 1 of VkRenderPass#0`.
            (target, place) if target.strip_prefix("the ").is_some_and(|it| place.starts_with(it)) => {
                format!("in {place}")
            }
            (target, place) => {
                // The reader knows the command buffer of the finding.
                let known = finding.accesses.first().and_then(|it| it.place.split_once(" of "));
                let numbered = place.split_once(" of ").filter(|it| known.is_some_and(|known| known.1 == it.1));
                format!("{verb} {target} at {}", numbered.map_or(place, |it| it.0))
            }
        };
    };
    let is_known = finding.location().is_some_and(|it| it.file == source.file);
    let file = source.file.rsplit('/').next().filter(|_| is_known).unwrap_or(&source.file);
    let place = format!("{file}:{}", source.line);
    if let Some((function, library)) = library_function(&change.stack).filter(|_| !change.target.is_empty()) {
        return format!("{verb} {} in {function}() of {library}", change.target);
    }
    match change.target.as_str() {
        "" => format!("in {place}"),
        // Scenarios have no functions.
        target if target.starts_with("before line ") => format!("insert before {place}"),
        target => format!("{verb} {target} at {place}"),
    }
}

pub(super) fn added(edit: &FixEdit) -> String {
    assignment(&edit.field, &edit.after)
}

pub(super) fn assignment(field: &str, value: &str) -> String {
    match (field, value) {
        ("", value) => value.to_owned(),
        (field, "") => field.to_owned(),
        (function, value) if function.starts_with("vk") => format!("{function}({value})"),
        (field, value) => format!("{field} = {value}"),
    }
}

pub(super) fn stack_lines(stack: &Stack) -> Vec<String> {
    let line = |frame: &crate::StackFrame| {
        let source = frame.source.as_ref();
        let function = source.and_then(|it| it.function.as_deref()).or(frame.symbol.as_deref());
        match (source.filter(|it| it.line > 0), function) {
            (Some(source), Some(function)) => format!("{function} at {}:{}", source.file, source.line),
            (Some(source), None) => format!("{}:{}", source.file, source.line),
            (None, function) => {
                let (function, module) = (function.unwrap_or("?"), frame.module.as_deref().unwrap_or("?"));
                format!("{function} ({module}+{:#x})", frame.offset)
            }
        }
    };
    stack.frames.iter().map(line).collect()
}

pub(super) fn object_line(object: &crate::FindingObject) -> String {
    let name = object.name.as_ref().map_or(String::new(), |it| format!(" \"{it}\""));
    let description = object.description.as_ref().map_or(String::new(), |it| format!(", {it}"));
    format!("{}#{}{name}{description}", object.kind, object.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_accesses_use_is_named_once() {
        let cases = [
            ("reads \"a\" (set 0, binding 0)", "writes \"a\" (set 0, binding 1)", "reads it (set 0, binding 0)"),
            ("reads \"a\"[0..8]", "writes \"a\"[0..8]", "reads it"),
            ("reads \"a\"[0..8]", "writes \"a\"", "reads \"a\"[0..8]"),
            ("changes the layout of \"a as b\"", "clears \"a as b\" as color attachment", "changes its layout"),
            ("reads \"a\"", "changes the layout of \"a\"", "reads it"),
            ("transfers the ownership of VkBuffer#1", "writes VkBuffer#1", "transfers its ownership"),
            ("reads VkBuffer#11", "writes VkBuffer#1", "reads VkBuffer#11"),
            ("reads \"b\"", "", "reads \"b\""),
        ];
        for (action, prior, expected) in cases {
            assert_eq!(without_repeat(action, prior), expected, "after {prior}");
        }
    }
}
