//! Converts C names to Rust names.

/// `VkBufferCreateInfo` to `BufferCreateInfo`; names of the video standards keep their `StdVideo`.
pub(crate) fn type_name(c_name: &str) -> String {
    c_name.strip_prefix("Vk").unwrap_or(c_name).to_owned()
}

/// `vkCmdDraw` to `CmdDraw`.
pub(crate) fn command_name(c_name: &str) -> String {
    c_name.strip_prefix("vk").unwrap_or(c_name).to_owned()
}

/// `pQueueFamilyIndices` to `p_queue_family_indices`; keywords get a trailing underscore.
pub(crate) fn field_name(c_name: &str) -> String {
    let snake = snake_case(c_name);
    match snake.as_str() {
        "type" | "mod" | "ref" | "match" | "in" | "use" | "final" => format!("{snake}_"),
        _ => snake,
    }
}

/// `BufferCreateInfo` to `BUFFER_CREATE_INFO`.
pub(crate) fn screaming_snake_case(name: &str) -> String {
    snake_case(name).to_uppercase()
}

pub(crate) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|it| chars[it]);
        let next_is_lower = chars.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins_word = match before {
            None | Some('_') => false,
            Some(character) if character.is_ascii_lowercase() || character.is_ascii_digit() => c.is_ascii_uppercase(),
            Some(_) => c.is_ascii_uppercase() && next_is_lower,
        };
        if begins_word {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The file for a version or extension: `core_1_0`, `khr_swapchain`, `video_codec_h264std`.
pub(crate) fn block_module(block: &str) -> String {
    if let Some(version) = block.strip_prefix("VK_VERSION_") {
        return format!("core_{version}");
    }
    block.trim_start_matches("VK_").trim_start_matches("vulkan_").to_lowercase()
}

/// The name of a value without its enum prefix: `VK_PRESENT_MODE_FIFO_KHR` of `VkPresentModeKHR` becomes `FIFO_KHR`.
pub(crate) fn value_name(enum_name: &str, value: &str) -> String {
    let (stem, number) = match enum_name.split_once("FlagBits") {
        Some((stem, rest)) => (stem, rest.chars().take_while(char::is_ascii_digit).collect::<String>()),
        None => (without_vendor(enum_name), String::new()),
    };
    let mut prefix = format!("{}_", screaming_snake_case_of_value(stem));
    if !number.is_empty() {
        prefix.push_str(&format!("{number}_"));
    }
    let own = value.strip_prefix(&prefix).unwrap_or(value.strip_prefix("VK_").unwrap_or(value));
    let own = own.replace("_BIT_", "_");
    let own = own.strip_suffix("_BIT").unwrap_or(&own);
    let own = own.to_uppercase();
    if own.starts_with(|c: char| c.is_ascii_digit()) { format!("_{own}") } else { own }
}

/// In names of values, digits are separate words: `VkImageType2D` becomes `VK_IMAGE_TYPE_2D`.
fn screaming_snake_case_of_value(name: &str) -> String {
    let mut out = String::new();
    let mut last = '_';
    for c in name.chars() {
        let begins =
            c.is_ascii_uppercase() && !last.is_ascii_uppercase() || c.is_ascii_digit() && last.is_ascii_lowercase();
        if begins && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
        last = c;
    }
    out
}

fn without_vendor(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_habits_of_rust() {
        assert_eq!(field_name("ppEnabledLayerNames"), "pp_enabled_layer_names");
        assert_eq!(field_name("type"), "type_");
        assert_eq!(screaming_snake_case("BufferCreateInfo"), "BUFFER_CREATE_INFO");
        assert_eq!(value_name("VkPresentModeKHR", "VK_PRESENT_MODE_FIFO_KHR"), "FIFO_KHR");
        assert_eq!(value_name("VkAccessFlagBits2", "VK_ACCESS_2_SHADER_READ_BIT"), "SHADER_READ");
        assert_eq!(value_name("VkImageType", "VK_IMAGE_TYPE_2D"), "_2D");
        assert_eq!(block_module("VK_VERSION_1_3"), "core_1_3");
    }
}
