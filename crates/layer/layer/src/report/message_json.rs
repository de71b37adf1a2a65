//! Messages as JSON, with the keys that readers of the Khronos layer know, in their order. All values are texts.

use std::ffi::CString;

use lavascope_settings::MessageSeverity;
use serde_json::{Value, json};

use crate::report::messages::{MessageLabels, MessageObject, OutgoingMessage, message_number};

/// One object, on one line.
pub(crate) fn format_json(message: &OutgoingMessage<'_>) -> String {
    let severity = match message.severity {
        MessageSeverity::Error => "Error",
        MessageSeverity::Warning => "Warning",
        MessageSeverity::Note => "Info",
    };
    // The function has a key of its own.
    let title = format!("{}(): ", message.function);
    let members: [(&str, Value); 10] = [
        ("Severity", severity.into()),
        ("VUID", message.name.to_string_lossy().into()),
        ("Objects", message.objects.iter().map(object_json).collect()),
        ("MessageID", format!("{:#x}", message_number(message.name)).into()),
        ("Function", message.function.into()),
        ("Location", "".into()),
        ("MainMessage", message.text.strip_prefix(&title).unwrap_or(message.text).into()),
        ("DebugRegion", debug_region(message.labels).into()),
        ("SpecText", "".into()),
        ("SpecUrl", "".into()),
    ];
    // A map would sort them.
    let members: Vec<String> = members.iter().map(|(key, value)| format!("{} : {value}", json!(key))).collect();
    format!("{{ {} }}", members.join(", "))
}

fn object_json(message_object: &MessageObject) -> Value {
    let name = message_object.name.as_ref().map_or_else(String::new, |it| it.to_string_lossy().into_owned());
    json!({ "type": message_object.kind, "handle": format!("{:#x}", message_object.handle), "name": name })
}

fn debug_region(labels: &MessageLabels) -> String {
    let all: Vec<_> = labels.queue.iter().chain(&labels.commands).map(CString::as_c_str).collect();
    all.iter().map(|it| it.to_string_lossy()).collect::<Vec<_>>().join("::")
}

#[cfg(test)]
mod tests {
    use lavascope_abi::ObjectType;

    use super::*;

    #[test]
    fn every_key_is_there_in_order() {
        let labels = MessageLabels { queue: vec![c"Frame".into()], commands: vec![c"Sky".into()] };
        let name = Some(c"a \"b\"".into());
        let objects = [MessageObject { ty: ObjectType::BUFFER, kind: "VkBuffer", handle: 0xbeef, name }];
        let message = OutgoingMessage {
            function: "vkCmdDraw",
            objects: &objects,
            labels: &labels,
            ..OutgoingMessage::new(
                MessageSeverity::Error,
                c"SYNC-HAZARD-WRITE-AFTER-WRITE",
                "vkCmdDraw(): wrong.\nVery.",
            )
        };
        let text = format_json(&message);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["Severity"], "Error");
        assert_eq!(value["Objects"], json!([{ "type": "VkBuffer", "handle": "0xbeef", "name": "a \"b\"" }]));
        assert_eq!((&value["MessageID"], &value["Function"]), (&json!("0x5c0ec5d6"), &json!("vkCmdDraw")));
        assert_eq!((&value["MainMessage"], &value["DebugRegion"]), (&json!("wrong.\nVery."), &json!("Frame::Sky")));
        assert!(!text.contains('\n'), "one line");
        let keys = ["Severity", "VUID", "Objects", "MessageID", "Function", "Location", "MainMessage", "DebugRegion"];
        let places: Vec<_> =
            keys.iter().chain(&["SpecText", "SpecUrl"]).map(|it| text.find(&json!(it).to_string())).collect();
        assert!(places.is_sorted() && places.iter().all(Option::is_some), "{text}");
    }
}
