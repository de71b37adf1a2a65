//! A profile file: JSON in the shape of Khronos' Vulkan Profiles. It only takes away.
//!
//! All entries of `capabilities` are merged in their order. Features that are not listed as true are off, extensions
//! that are not listed are absent, listed properties replace ours. `formats` and `profiles` are ignored. Our own key
//! `lavascope` has `execute` and `memory_heap_bytes`.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::path::Path;

use lavascope_abi::desc::{Layout, Ty};
use lavascope_abi::{QueueFamilyProperties, STRUCTURES, Structure, cast, structure_by_name};
use serde_json::Value;

use crate::capabilities::extensions;
use crate::capabilities::extensions::ApiBlockKind;
use crate::capabilities::settings::Execute;
use crate::capabilities::struct_bytes::{ProfileError, StructBytes, nearest};
use crate::generated::extensions::BLOCKS;

const KEYS: &[&str] = &["extensions", "features", "properties", "formats", "queueFamiliesProperties", "videoProfiles"];

/// The allowed keys besides the capabilities; only the last is ours.
const TOP_KEYS: &[&str] = &["$schema", "capabilities", "profiles", "contributors", "history", "lavascope"];

/// The capabilities that the profile leaves.
#[derive(Clone, Default)]
pub(crate) struct Profile {
    /// Extension and the newest spec version of it.
    extensions: BTreeMap<String, u32>,
    /// Structure and member.
    features: Vec<(&'static str, String)>,
    /// Structure, member, value.
    properties: Vec<(&'static str, String, Value)>,
    pub(crate) queue_families: Option<Vec<QueueFamilyProperties>>,
    pub(crate) execute: Option<Execute>,
    pub(crate) heap_bytes: Option<u64>,
}

impl Profile {
    /// Reads a file, or returns the error and its place.
    pub(crate) fn read(path: &Path) -> Result<Profile, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{}: the profile cannot be read: {error}", path.display()))?;
        Profile::parse(&text).map_err(|it| format!("{}:{it}", path.display()))
    }

    fn parse(text: &str) -> Result<Profile, String> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| format!("{}:{}: not JSON: {error}", error.line(), error.column()))?;
        let mut profile = Profile::default();
        profile.document(&value).map_err(|profile_error| {
            let (line, column) = line_and_column(text, &profile_error.word);
            format!("{line}:{column}: {}", profile_error.problem)
        })?;
        Ok(profile)
    }

    pub(crate) fn has_extension(&self, name: &CStr) -> bool {
        self.spec_version(name).is_some()
    }

    pub(crate) fn spec_version(&self, name: &CStr) -> Option<u32> {
        self.extensions.get(name.to_str().ok()?).copied()
    }

    pub(crate) fn has_feature(&self, structure: &str, member: &str) -> bool {
        self.features.iter().any(|it| it.1 == member && is_same_structure(it.0, structure))
    }

    /// The properties that replace those of a structure, written into its bytes.
    pub(crate) fn override_properties(&self, layout: &Layout, bytes: &mut StructBytes<'_>) {
        for (structure, member, value) in &self.properties {
            let has = || layout.fields.iter().any(|it| it.name == *member);
            if is_same_structure(structure, layout.name) && has() {
                // Checked when it was read; a structure that shares only the name of a member keeps its own.
                let _ = bytes.member(0, layout, member, value);
            }
        }
    }

    fn document(&mut self, value: &Value) -> Result<(), ProfileError> {
        let capabilities = value.get("capabilities").and_then(Value::as_object);
        let Some(capabilities) = capabilities else {
            return Err(ProfileError::new("", "a profile has an object \"capabilities\"".to_owned()));
        };
        for key in value.as_object().into_iter().flat_map(|it| it.keys()) {
            if !TOP_KEYS.contains(&key.as_str()) {
                return Err(ProfileError::new(
                    key,
                    format!("a profile cannot have \"{key}\", only {}", TOP_KEYS.join(", ")),
                ));
            }
        }
        for (name, capability) in capabilities {
            for (key, _) in members(capability, name)? {
                if !KEYS.contains(&key.as_str()) {
                    let problem = format!("\"{name}\" cannot have \"{key}\", only {}", KEYS.join(", "));
                    return Err(ProfileError::new(key, problem));
                }
            }
            self.read_extensions(&capability["extensions"])?;
            self.read_features(&capability["features"])?;
            self.read_properties(&capability["properties"])?;
            self.read_queue_families(&capability["queueFamiliesProperties"])?;
        }
        self.read_ours(&value["lavascope"])
    }

    fn read_ours(&mut self, value: &Value) -> Result<(), ProfileError> {
        for (key, value) in members(value, "lavascope")? {
            match (key.as_str(), value.as_str(), value.as_u64()) {
                ("execute", Some(text), _) => {
                    self.execute = Some(Execute::parse(text).map_err(|it| ProfileError::new(text, it))?);
                }
                ("memory_heap_bytes", _, Some(bytes)) => self.heap_bytes = Some(bytes),
                _ => {
                    let problem = "\"lavascope\" has \"execute\", a text, and \"memory_heap_bytes\", a number";
                    return Err(ProfileError::new(key, problem.to_owned()));
                }
            }
        }
        Ok(())
    }

    fn read_extensions(&mut self, value: &Value) -> Result<(), ProfileError> {
        for (name, version) in members(value, "extensions")? {
            let c_name = std::ffi::CString::new(name.as_str()).unwrap_or_default();
            let is_known = extensions::by_name(&c_name).is_some_and(|it| it.kind != ApiBlockKind::Version);
            if !is_known {
                let names = BLOCKS.iter().filter_map(|it| it.name.to_str().ok());
                return Err(unknown(name, "extension", names));
            }
            let version = version.as_u64().map_or(u32::MAX, |it| it as u32);
            self.extensions.insert(name.clone(), version);
        }
        Ok(())
    }

    fn read_features(&mut self, value: &Value) -> Result<(), ProfileError> {
        for (name, value) in members(value, "features")? {
            let (layout, value) = structure(name, value, "features", "VkPhysicalDeviceFeatures")?;
            for (member, value) in members(value, name)? {
                let mut scratch = vec![0; layout.size as usize];
                StructBytes(&mut scratch).member(0, layout, member, value)?;
                if value.as_bool() == Some(true) {
                    self.features.push((layout.name, member.clone()));
                }
            }
        }
        Ok(())
    }

    fn read_properties(&mut self, value: &Value) -> Result<(), ProfileError> {
        for (name, value) in members(value, "properties")? {
            let (layout, value) = structure(name, value, "properties", "VkPhysicalDeviceProperties")?;
            for (member, value) in members(value, name)? {
                let mut scratch = vec![0; layout.size as usize];
                StructBytes(&mut scratch).member(0, layout, member, value)?;
                self.properties.push((layout.name, member.clone(), value.clone()));
            }
        }
        Ok(())
    }

    fn read_queue_families(&mut self, value: &Value) -> Result<(), ProfileError> {
        let Some(families) = value.as_array() else { return Ok(()) };
        for item in families {
            let layout = QueueFamilyProperties::layout();
            let mut words = vec![0u64; (layout.size as usize).div_ceil(8)];
            let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
            let entry = if item[layout.name].is_object() { &item[layout.name] } else { item };
            StructBytes(&mut bytes).object(0, layout, entry)?;
            for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
            let family = cast::<QueueFamilyProperties>(lavascope_abi::bytes_of_slice(&words)).copied();
            self.queue_families.get_or_insert_default().extend(family);
        }
        Ok(())
    }
}

/// The members of an object, which may be absent.
fn members<'a>(value: &'a Value, name: &str) -> Result<impl Iterator<Item = (&'a String, &'a Value)>, ProfileError> {
    match value {
        Value::Object(_) | Value::Null => Ok(value.as_object().into_iter().flatten()),
        _ => Err(ProfileError::new(name, format!("\"{name}\" wants an object"))),
    }
}

/// The structure of a name, and its members; `VkPhysicalDeviceFeatures2` and similar structures are expanded.
fn structure<'a>(
    name: &str,
    members: &'a Value,
    inner: &str,
    whole: &str,
) -> Result<(&'static Layout, &'a Value), ProfileError> {
    let is_wrapper = name.strip_prefix(whole).is_some_and(|it| it == "2" || it == "2KHR");
    let (name, members) = if is_wrapper { (whole, &members[inner]) } else { (name, members) };
    let promoted = name.trim_end_matches(|c: char| c.is_ascii_uppercase());
    match structure_by_name(name).or_else(|| structure_by_name(promoted)) {
        Some(layout) => Ok((layout, members)),
        None => Err(unknown(name, "structure", STRUCTURES.iter().map(|it| it.name))),
    }
}

fn unknown<'a>(name: &str, what: &str, names: impl Iterator<Item = &'a str>) -> ProfileError {
    let hint = nearest(name, names).map(|it| format!("; is it {it}?")).unwrap_or_default();
    ProfileError::new(name, format!("{name} is no {what} of this driver{hint}"))
}

/// The structures of whole versions repeat members of others.
fn is_same_structure(a: &str, b: &str) -> bool {
    let is_version = |it: &str| it.starts_with("VkPhysicalDeviceVulkan1");
    a == b || is_version(a) || is_version(b)
}

/// Line and column of a word in quotes.
fn line_and_column(text: &str, word: &str) -> (usize, usize) {
    let at = text.find(&format!("\"{word}\"")).unwrap_or(0);
    let before = &text[..at];
    (before.matches('\n').count() + 1, at - before.rfind('\n').map_or(0, |it| it + 1) + 1)
}

/// The members of a structure that are booleans.
pub(crate) fn booleans(layout: &'static Layout) -> impl Iterator<Item = &'static lavascope_abi::desc::Field> {
    layout.fields.iter().filter(|it| matches!(it.ty, Ty::Bool32))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{
  "capabilities": { "small": {
    "extensions": { "VK_KHR_swapchain": 70 },
    "features": { "VkPhysicalDeviceFeatures2": { "features": { "geometryShader": true, "logicOp": false } },
                  "VkPhysicalDeviceVulkan12Features": { "timelineSemaphore": true } },
    "properties": { "VkPhysicalDeviceProperties": { "limits": { "maxImageDimension2D": 4096 } } },
    "queueFamiliesProperties": [ { "VkQueueFamilyProperties": { "queueFlags": ["VK_QUEUE_GRAPHICS_BIT", "VK_QUEUE_COMPUTE_BIT"], "queueCount": 1 } } ]
  } },
  "lavascope": { "execute": "transfer", "memory_heap_bytes": 1048576 }
}"#;

    #[test]
    fn a_profile_takes_away() {
        let profile = Profile::parse(GOOD).map_err(|it| panic!("{it}")).unwrap_or_default();
        assert!(profile.has_extension(c"VK_KHR_swapchain") && !profile.has_extension(c"VK_KHR_surface"));
        assert!(profile.has_feature("VkPhysicalDeviceFeatures", "geometryShader"));
        assert!(!profile.has_feature("VkPhysicalDeviceFeatures", "logicOp"));
        assert!(profile.has_feature("VkPhysicalDeviceTimelineSemaphoreFeatures", "timelineSemaphore"));
        assert_eq!((profile.execute, profile.heap_bytes), (Some(Execute::Transfer), Some(1 << 20)));
        let families = profile.queue_families.unwrap_or_default();
        assert_eq!((families.len(), families[0].queue_flags.0, families[0].queue_count), (1, 3, 1));
    }

    #[test]
    fn faults_have_their_place_and_a_proposal() {
        let error = |text: &str| Profile::parse(text).err().unwrap_or_default();
        let typo = error(&GOOD.replace("geometryShader", "geometryShadr"));
        assert!(typo.starts_with("4:") && typo.contains("is it geometryShader?"), "{typo}");
        let typo = error(&GOOD.replace("VkPhysicalDeviceVulkan12Features", "VkPhysicalDeviceVulkan12Feature"));
        assert!(typo.contains("is it VkPhysicalDeviceVulkan12Features?"), "{typo}");
        assert!(error("{ \"capabilities\": 3,, }").starts_with("1:21: not JSON"));
        assert!(error(&GOOD.replace("transfer", "everything")).contains("say \"transfer\" or \"none\""));
        let typo = error(&GOOD.replace("VK_KHR_swapchain", "VK_KHR_swapchains"));
        assert!(typo.starts_with("3:") && typo.contains("is it VK_KHR_swapchain?"), "{typo}");
        let list = error(&GOOD.replace("{ \"VK_KHR_swapchain\": 70 }", "[]"));
        assert!(list.starts_with("3:5: ") && list.contains("\"extensions\" wants an object"), "{list}");
        assert!(error(&GOOD.replace("lavascope", "lavascop")).starts_with("9:3: a profile cannot have \"lavascop\""));
    }
}
