//! What a diagnostic is known by, from run to run and from machine to machine.
//!
//! Code, functions with their stages and accesses, debug labels and objects; never handles, lines, threads, times,
//! counts or frames. An object is known by its name. One without a name is known by what it is like, and by how many
//! objects like it were created before it. The queue and the submission do not matter, nor does whether a hazard was
//! found when its commands were recorded or when they were submitted. Of causes that agree in all that, the order
//! counts in which the program reaches them.

use xxhash_rust::xxh64::xxh64;

use crate::{Diagnostic, ordinal_word, short_names};

/// See [`DiagnosticIdentity::of`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DiagnosticIdentity {
    pub code: String,
    /// One for each place and object, to be read by people: `access: vkCmdDraw in "Frame::Shadows"`.
    pub lines: Vec<String>,
}

impl DiagnosticIdentity {
    pub fn of(diagnostic: &Diagnostic) -> DiagnosticIdentity {
        let mut lines = Vec::new();
        for place in &diagnostic.locations {
            // Without functions there is only where it is written, as in scenarios.
            let mut text = if place.path.is_empty() { place.cause.clone() } else { place.path.join(" > ") };
            if let Some(labels) = place.labels.path() {
                text += &format!(" in {labels:?}");
            }
            let names = [&place.access.stage, &place.access.access].map(|it| short_names(it));
            let names: Vec<&str> = names.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
            if !names.is_empty() {
                text += &format!(" ({})", names.join(", "));
            }
            lines.push(format!("{}: {}", place.role, one_line(&text)));
        }
        for object in diagnostic.objects.iter().filter(|it| it.name.is_some() || it.description.is_some()) {
            let text = match (&object.name, &object.description) {
                (_, description) if object.is_swapchain_image => {
                    format!("{} of a swapchain, {}", object.kind, description.as_deref().unwrap_or_default())
                }
                (Some(name), _) => format!("{} {name:?}", object.kind),
                (None, description) => {
                    let nth = Some(object.ordinal).filter(|it| *it > 0).map(|it| ordinal_word(it.into()));
                    let nth = nth.map_or_else(String::new, |it| format!(", {it}"));
                    format!("{}, {}{nth}", object.kind, description.as_deref().unwrap_or_default())
                }
            };
            lines.push(format!("object: {}", one_line(&text)));
        }
        if diagnostic.ordinal > 0 {
            lines.push(format!("order: {} like this", ordinal_word(diagnostic.ordinal.into())));
        }
        DiagnosticIdentity { code: diagnostic.code.to_string(), lines }
    }

    /// A number for programs that compare.
    pub fn fingerprint(&self) -> String {
        let text = format!("{}\n{}", self.code, self.lines.join("\n"));
        format!("{:016x}", xxh64(text.as_bytes(), 0))
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DebugLabels, DiagnosticLocation, DiagnosticObject, Severity};

    fn diagnostic(id: u64) -> Diagnostic {
        let place = DiagnosticLocation {
            path: vec!["vkCmdExecuteCommands".into(), "vkCmdDraw".into()],
            labels: DebugLabels { queue: vec!["Frame".into()], commands: vec!["Shadows".into()] },
            ..DiagnosticLocation::new(
                "access",
                format!("command 3 of VkCommandBuffer#{id}"),
                format!("of VkCommandBuffer#{id}"),
            )
        };
        let unnamed =
            DiagnosticObject { description: Some("1024 bytes".into()), ..DiagnosticObject::new("VkBuffer", id, None) };
        let objects = vec![unnamed, DiagnosticObject::new("VkImage", id + 1, Some("sky\n\"day\"".into())), {
            // Nothing is known of it that would be the same the next time.
            DiagnosticObject::new("VkQueue", id, None)
        }];
        let text = format!("it is VkBuffer#{id}");
        Diagnostic { locations: vec![place], objects, ..Diagnostic::new("CODE", Severity::Error, text) }
    }

    #[test]
    fn numbers_of_objects_do_not_count() {
        let (one, other) = (DiagnosticIdentity::of(&diagnostic(1)), DiagnosticIdentity::of(&diagnostic(77)));
        assert_eq!(one, other);
        assert_eq!(one.fingerprint(), other.fingerprint());
        assert_eq!(
            one.lines,
            [
                "access: vkCmdExecuteCommands > vkCmdDraw in \"Frame::Shadows\"",
                "object: VkBuffer, 1024 bytes",
                "object: VkImage \"sky\\n\\\"day\\\"\"",
            ]
        );
    }

    #[test]
    fn counts_frames_and_sites_do_not_count() {
        let own = diagnostic(1);
        let frames = Some(crate::FrameRange::new(7));
        let other = Diagnostic { count: 300, sites: 4, frames, title: "other".into(), ..own.clone() };
        assert_eq!(DiagnosticIdentity::of(&own), DiagnosticIdentity::of(&other));
    }

    #[test]
    fn stages_accesses_and_order_are_in_the_lines() {
        let mut own = Diagnostic { ordinal: 1, ..diagnostic(1) };
        own.locations[0].access.stage = "VK_PIPELINE_STAGE_2_COPY_BIT".into();
        own.locations[0].access.access = "VK_ACCESS_2_TRANSFER_READ_BIT".into();
        own.objects[0].ordinal = 2;
        let lines = DiagnosticIdentity::of(&own).lines;
        assert_eq!(
            lines,
            [
                "access: vkCmdExecuteCommands > vkCmdDraw in \"Frame::Shadows\" (COPY, TRANSFER_READ)",
                "object: VkBuffer, 1024 bytes, 3rd",
                "object: VkImage \"sky\\n\\\"day\\\"\"",
                "order: 2nd like this",
            ]
        );
    }

    #[test]
    fn what_counts_makes_another() {
        let own = diagnostic(1);
        let is_other =
            |it: Diagnostic| DiagnosticIdentity::of(&it).fingerprint() != DiagnosticIdentity::of(&own).fingerprint();
        let mut code = own.clone();
        code.code = crate::Code("OTHER".into());
        let mut label = own.clone();
        label.locations[0].labels.commands = vec!["Sky".into()];
        let mut function = own.clone();
        function.locations[0].path[1] = "vkCmdDispatch".into();
        let mut name = own.clone();
        name.objects[1].name = Some("sea".into());
        let mut size = own.clone();
        size.objects[0].description = Some("2048 bytes".into());
        let mut stage = own.clone();
        stage.locations[0].access.stage = "VK_PIPELINE_STAGE_2_VERTEX_SHADER_BIT".into();
        let mut created = own.clone();
        created.objects[0].ordinal = 1;
        let second = Diagnostic { ordinal: 1, ..own.clone() };
        for item in [code, label, function, name, size, stage, created, second] {
            assert!(is_other(item.clone()), "{item:?}");
        }
    }
}
