//! Shader faults as people read them: the access stands in the shader, and a command of the program called the shader.

use std::borrow::Cow;

use crate::{Finding, FindingAccess};

/// The role of the access of a shader fault that has the line of the shader.
const SHADER: &str = "shader";

impl Finding {
    /// The accesses as reports show them. The shader comes first if there is one, with what it does. Then comes the
    /// command that called it.
    pub(crate) fn shown_accesses(&self) -> Cow<'_, [FindingAccess]> {
        let [command, shader] = &self.accesses[..] else { return Cow::Borrowed(&self.accesses) };
        if shader.role != SHADER {
            return Cow::Borrowed(&self.accesses);
        }
        let access = FindingAccess {
            action: command.action.clone(),
            stage: command.stage.clone(),
            access: command.access.clone(),
            is_write: command.is_write,
            ..shader.clone()
        };
        let call = FindingAccess {
            action: format!("calls the shader{}", labels_text(command)),
            stage: String::new(),
            access: String::new(),
            is_write: false,
            ..command.clone()
        };
        Cow::Owned(vec![access, call])
    }

    /// Whether a shader did it, and a command called that.
    pub(crate) fn is_called_shader(&self) -> bool {
        self.accesses.len() == 2 && self.accesses[1].role == SHADER
    }
}

/// `called by this dispatch, in "Frame::Particles"`: what stands below the line of the command.
pub(crate) fn caller_label(command: &FindingAccess) -> String {
    format!("called by this {}{}", launch_word(&command.function), labels_text(command))
}

fn labels_text(command: &FindingAccess) -> String {
    command.labels.as_ref().map_or(String::new(), |it| format!(", in {it:?}"))
}

/// What a command is that calls shaders.
pub(crate) fn launch_word(function: &str) -> &'static str {
    match function {
        name if name.starts_with("vkCmdDispatch") => "dispatch",
        name if name.starts_with("vkCmdTraceRays") => "ray tracing command",
        _ => "draw",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shader_does_it_and_the_command_calls_the_shader() {
        let command = FindingAccess {
            role: "access".to_owned(),
            function: "vkCmdDispatch".to_owned(),
            action: "reads e[16]".to_owned(),
            stage: "STAGE".to_owned(),
            labels: Some("frame".to_owned()),
            ..FindingAccess::default()
        };
        let shader = FindingAccess { role: "shader".to_owned(), ..FindingAccess::default() };
        let fault = Finding { accesses: vec![command.clone(), shader], ..Finding::default() };
        let shown = fault.shown_accesses();
        assert_eq!((shown[0].action.as_str(), shown[0].stage.as_str()), ("reads e[16]", "STAGE"));
        assert_eq!((shown[1].action.as_str(), shown[1].stage.as_str()), ("calls the shader, in \"frame\"", ""));
        assert_eq!(caller_label(&shown[1]), "called by this dispatch, in \"frame\"");
        assert!(fault.is_called_shader());
        let alone = Finding { accesses: vec![command], ..Finding::default() };
        assert_eq!(&*alone.shown_accesses(), &alone.accesses[..]);
        assert_eq!(
            (launch_word("vkCmdTraceRaysKHR"), launch_word("vkCmdDrawIndexed")),
            ("ray tracing command", "draw")
        );
    }
}
