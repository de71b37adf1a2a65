//! Makes a finding out of a diagnostic: the one place that does.

use lavascope_diag::{
    CommandNeighbors, Diagnostic, DiagnosticIdentity, DiagnosticLocation, DiagnosticObject, DiagnosticOperation,
    DiagnosticSite, FirstAccessKey, Fix, FrameRange, Property, Severity, render_text,
};

use crate::{
    Finding, FindingAccess, FindingFix, FindingObject, FindingOperation, FindingProperty, FindingSeverity, FindingSite,
    FixChange, FixEdit, FrameSpan, NeighborCommands, Stack,
};

impl Finding {
    /// The finding of a diagnostic, which has happened as often as that says. `stack` knows call stacks by number.
    pub fn of(diagnostic: &Diagnostic, stack: &dyn Fn(u32) -> Stack) -> Finding {
        let identity = DiagnosticIdentity::of(diagnostic);
        Finding {
            code: diagnostic.code.to_string(),
            severity: diagnostic.severity.into(),
            title: diagnostic.title(),
            message: message(diagnostic),
            function: diagnostic.function.clone(),
            accesses: diagnostic.locations.iter().map(|it| access(it, stack)).collect(),
            operations: diagnostic.operations.iter().map(|it| operation(it, stack)).collect(),
            unrelated_operations: diagnostic.unrelated_operations,
            fixes: diagnostic.fixes.iter().map(|it| fix(it, stack)).collect(),
            no_fix: diagnostic.no_fix.clone(),
            objects: diagnostic.objects.iter().map(FindingObject::from).collect(),
            notes: diagnostic.notes.clone(),
            explanation: diagnostic.explanation.clone(),
            properties: diagnostic.properties.iter().map(property).collect(),
            fingerprint: identity.fingerprint(),
            first_access: FirstAccessKey::of(diagnostic).map_or_else(String::new, |it| it.to_string()),
            identity: identity.lines,
            occurrences: diagnostic.count,
            sites: diagnostic.sites,
            more_sites: diagnostic.more_sites.iter().map(|it| site(it, stack)).collect(),
            frames: diagnostic.frames.map(FrameSpan::from),
            ..Finding::default()
        }
    }

    /// All call stacks, to find names for their addresses.
    pub fn stacks_mut(&mut self) -> impl Iterator<Item = &mut Stack> {
        let accesses = self.accesses.iter_mut().map(|it| &mut it.stack);
        let operations = self.operations.iter_mut().map(|it| &mut it.stack);
        let changes = self.fixes.iter_mut().flat_map(|it| &mut it.changes).map(|it| &mut it.stack);
        accesses.chain(operations).chain(changes).chain(self.more_sites.iter_mut().map(|it| &mut it.stack))
    }
}

impl From<Severity> for FindingSeverity {
    fn from(severity: Severity) -> FindingSeverity {
        match severity {
            Severity::Error => FindingSeverity::Error,
            Severity::Warning => FindingSeverity::Warning,
            Severity::Performance => FindingSeverity::Performance,
            Severity::Information => FindingSeverity::Info,
        }
    }
}

impl From<FrameRange> for FrameSpan {
    fn from(FrameRange { first, last, count }: FrameRange) -> FrameSpan {
        FrameSpan { first, last, count }
    }
}

/// What messengers get, without severity and code, which are members of their own, and without properties.
fn message(diagnostic: &Diagnostic) -> String {
    let text = render_text(&Diagnostic { count: 1, properties: Vec::new(), ..diagnostic.clone() });
    text.split_once('\n').map_or("", |it| it.1).trim_end().to_owned()
}

fn access(location: &DiagnosticLocation, stack: &dyn Fn(u32) -> Stack) -> FindingAccess {
    let text = &location.access;
    let function = Some(&text.function).filter(|it| !it.is_empty()).or(location.path.last());
    FindingAccess {
        role: location.role.to_owned(),
        function: function.cloned().unwrap_or_default(),
        action: text.action.clone(),
        stage: text.stage.clone(),
        access: text.access.clone(),
        is_write: text.is_write,
        place: place_alone(location),
        path: location.path.clone(),
        labels: location.labels.path(),
        neighbors: location.neighbors.as_ref().map(NeighborCommands::from),
        stack: captured(location.stack, stack),
    }
}

/// The place without the function and the labels behind it, which are members of their own.
fn place_alone(location: &DiagnosticLocation) -> String {
    let Some(last) = location.path.last() else { return location.text.clone() };
    let parts = location.text.split_once(": ");
    let place = parts.filter(|it| it.1.starts_with("vk") && it.1.contains(last.as_str()));
    place.map_or(&*location.text, |it| it.0).to_owned()
}

impl From<&CommandNeighbors> for NeighborCommands {
    fn from(CommandNeighbors { index, before, after }: &CommandNeighbors) -> NeighborCommands {
        NeighborCommands { index: *index, before: before.clone(), after: after.clone() }
    }
}

fn captured(number: u32, stack: &dyn Fn(u32) -> Stack) -> Stack {
    if number == 0 { Stack::default() } else { stack(number) }
}

/// Another pair of accesses with the same cause.
fn site(site: &DiagnosticSite, stack: &dyn Fn(u32) -> Stack) -> FindingSite {
    FindingSite {
        resource: site.resource.clone(),
        function: site.function.clone(),
        place: site.place.clone(),
        labels: site.labels.path(),
        stack: captured(site.stack, stack),
    }
}

fn operation(operation: &DiagnosticOperation, stack: &dyn Fn(u32) -> Stack) -> FindingOperation {
    FindingOperation {
        kind: operation.kind.to_owned(),
        function: operation.function.clone(),
        scope: operation.scope.clone(),
        gap: operation.gap.clone(),
        is_near_miss: operation.is_near_miss,
        src_stages: operation.src_stages.clone(),
        src_access: operation.src_access.clone(),
        dst_stages: operation.dst_stages.clone(),
        dst_access: operation.dst_access.clone(),
        place: operation.place.clone(),
        labels: operation.labels.path(),
        stack: captured(operation.stack, stack),
    }
}

fn fix(fix: &Fix, stack: &dyn Fn(u32) -> Stack) -> FindingFix {
    let edit = |lavascope_diag::FixEdit { field, before, after }: &lavascope_diag::FixEdit| FixEdit {
        field: field.clone(),
        before: before.clone(),
        after: after.clone(),
    };
    let change = |change: &lavascope_diag::FixChange| FixChange {
        target: change.target.clone(),
        place: change.place.clone(),
        stack: captured(change.stack, stack),
        edits: change.edits.iter().map(edit).collect(),
    };
    FindingFix {
        text: fix.text.clone(),
        is_verified: fix.is_verified,
        changes: fix.changes.iter().map(change).collect(),
    }
}

impl From<&DiagnosticObject> for FindingObject {
    fn from(object: &DiagnosticObject) -> FindingObject {
        FindingObject {
            kind: object.kind.to_owned(),
            id: object.id,
            name: object.name.clone(),
            description: object.description.clone(),
        }
    }
}

fn property(property: &Property) -> FindingProperty {
    FindingProperty { key: property.key.to_owned(), value: property.value.clone() }
}

#[cfg(test)]
mod tests {
    use lavascope_diag::{AccessText, DebugLabels};

    use super::*;
    use crate::StackFrame;

    #[test]
    fn everything_of_a_diagnostic_is_in_its_finding() {
        let access = AccessText { action: "reads \"a\"".to_owned(), is_write: true, ..AccessText::default() };
        let location = DiagnosticLocation {
            access,
            path: vec!["vkCmdExecuteCommands".to_owned(), "vkCmdDraw".to_owned()],
            stack: 7,
            labels: DebugLabels { queue: vec!["Frame".to_owned()], commands: Vec::new() },
            ..DiagnosticLocation::new("access", "command 3".to_owned(), "command 3".to_owned())
        };
        let change = lavascope_diag::FixChange { stack: 8, ..lavascope_diag::FixChange::default() };
        let diagnostic = Diagnostic {
            title: "a title".to_owned(),
            locations: vec![location],
            operations: vec![DiagnosticOperation { gap: "gap".to_owned(), ..DiagnosticOperation::default() }],
            fixes: vec![Fix { changes: vec![change], ..Fix::advice("do this") }],
            properties: vec![Property { key: "key", value: "value".to_owned() }],
            count: 3,
            sites: 2,
            more_sites: vec![DiagnosticSite { stack: 9, ..DiagnosticSite::default() }],
            frames: Some(FrameRange::new(4)),
            ..Diagnostic::new("CODE", Severity::Warning, "it is wrong.".to_owned())
        };
        let number = |it: u32| Stack { frames: vec![StackFrame { offset: it.into(), ..StackFrame::default() }] };
        let mut finding = Finding::of(&diagnostic, &number);
        assert_eq!((finding.title.as_str(), finding.severity), ("a title", FindingSeverity::Warning));
        assert_eq!(finding.message, "it is wrong.\n  access: command 3\nFix (not verified): do this");
        let access = &finding.accesses[0];
        assert_eq!((access.function.as_str(), access.labels.as_deref()), ("vkCmdDraw", Some("Frame")));
        assert_eq!((access.stack.frames[0].offset, access.is_write), (7, true));
        assert_eq!((finding.operations[0].gap.as_str(), finding.operations[0].stack.frames.len()), ("gap", 0));
        assert_eq!((finding.properties[0].value.as_str(), finding.occurrences), ("value", 3));
        assert_eq!(finding.fingerprint, DiagnosticIdentity::of(&diagnostic).fingerprint());
        let offsets: Vec<u64> = finding.stacks_mut().flat_map(|it| &it.frames).map(|it| it.offset).collect();
        assert_eq!(offsets, [7, 8, 9]);
        assert_eq!((finding.sites, finding.frames), (2, Some(FrameSpan { first: 4, last: 4, count: 1 })));
    }
}
