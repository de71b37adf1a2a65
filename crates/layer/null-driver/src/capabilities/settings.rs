//! Settings: from the environment, and from a profile file that removes capabilities.

use std::ffi::CStr;

use lavascope_abi::{Extent3D, HEADER_VERSION, QueueFamilyProperties, QueueFlagBits, QueueFlags};

use crate::capabilities::extensions::ApiBlock;
use crate::capabilities::profile::Profile;

/// Everything about a driver that is not the same for all.
#[derive(Clone)]
pub(crate) struct DriverSettings {
    pub(crate) execute: Execute,
    /// The submission over which the device is lost, from one; zero for never.
    pub(crate) lose_at_submission: u64,
    /// Where this is another number, so are addresses, handles of shader groups and descriptors.
    pub(crate) salt: u64,
    /// What happens to shaders that use device addresses.
    pub(crate) compiler: Compiler,
    /// A command of devices that no registry has.
    pub(crate) unknown_command: Option<String>,
    /// The size of each memory heap.
    pub(crate) heap_bytes: u64,
    pub(crate) queue_families: Vec<QueueFamilyProperties>,
    pub(crate) profile: Option<Profile>,
}

/// Which recorded commands are performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execute {
    Nothing,
    Transfer,
}

/// What the driver does with a pipeline or a shader object whose shader uses device addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiler {
    Works,
    /// It returns an error.
    Fails,
    /// It ends the process, as a bug of a compiler does.
    Crashes,
}

/// Vulkan 1.4 with the registry's patch.
pub(crate) const API_VERSION: u32 = 1 << 22 | 4 << 12 | HEADER_VERSION;
const HEAP_BYTES: u64 = 16 << 30;
const QUEUES_PER_FAMILY: u32 = 4;

impl DriverSettings {
    pub(crate) fn new() -> DriverSettings {
        DriverSettings {
            execute: Execute::Nothing,
            lose_at_submission: 0,
            salt: 0,
            compiler: Compiler::Works,
            unknown_command: None,
            heap_bytes: HEAP_BYTES,
            queue_families: queue_families().into(),
            profile: None,
        }
    }

    /// The settings of the environment, or the error.
    pub(crate) fn from_environment() -> Result<DriverSettings, String> {
        #[cfg(test)]
        if let Some(settings) = for_tests::current() {
            return Ok(settings);
        }
        let mut settings = DriverSettings::new();
        if let Some(path) = std::env::var_os("LAVASCOPE_NULL_PROFILE").filter(|it| !it.is_empty()) {
            settings.apply(Profile::read(path.as_ref())?);
        }
        if let Some(value) = std::env::var_os("LAVASCOPE_NULL_EXECUTE").filter(|it| !it.is_empty()) {
            let value = value.to_string_lossy();
            settings.execute = Execute::parse(&value).map_err(|it| format!("LAVASCOPE_NULL_EXECUTE: {it}"))?;
        }
        if let Some(value) = std::env::var_os("LAVASCOPE_NULL_LOSE").filter(|it| !it.is_empty()) {
            let number = value.to_str().and_then(|it| it.parse().ok());
            settings.lose_at_submission =
                number.ok_or("LAVASCOPE_NULL_LOSE: say the number of a submission, from 1")?;
        }
        if let Some(value) = std::env::var_os("LAVASCOPE_NULL_SALT").filter(|it| !it.is_empty()) {
            let number = value.to_str().and_then(|it| it.parse().ok());
            settings.salt = number.ok_or("LAVASCOPE_NULL_SALT: say a number")?;
        }
        if let Some(value) = std::env::var_os("LAVASCOPE_NULL_COMPILE").filter(|it| !it.is_empty()) {
            settings.compiler = match value.to_str() {
                Some("fail") => Compiler::Fails,
                Some("crash") => Compiler::Crashes,
                _ => return Err("LAVASCOPE_NULL_COMPILE: say \"fail\" or \"crash\"".to_owned()),
            };
        }
        settings.unknown_command = std::env::var("LAVASCOPE_NULL_FUTURE").ok().filter(|it| !it.is_empty());
        Ok(settings)
    }

    pub(crate) fn apply(&mut self, profile: Profile) {
        self.execute = profile.execute.unwrap_or(self.execute);
        self.heap_bytes = profile.heap_bytes.unwrap_or(self.heap_bytes);
        if let Some(families) = &profile.queue_families {
            self.queue_families.clone_from(families);
        }
        self.profile = Some(profile);
    }

    /// Whether an extension is there; a profile takes away what it does not list.
    pub(crate) fn has_extension(&self, name: &CStr) -> bool {
        self.profile.as_ref().is_none_or(|it| it.has_extension(name))
    }

    pub(crate) fn spec_version(&self, block: &ApiBlock) -> u32 {
        let limit = self.profile.as_ref().and_then(|it| it.spec_version(block.name));
        limit.map_or(block.spec_version, |it| it.min(block.spec_version))
    }

    pub(crate) fn has_feature(&self, structure: &str, member: &str) -> bool {
        self.profile.as_ref().is_none_or(|it| it.has_feature(structure, member))
    }
}

impl Execute {
    pub(crate) fn parse(text: &str) -> Result<Execute, String> {
        match text {
            "none" | "nothing" => Ok(Execute::Nothing),
            "transfer" => Ok(Execute::Transfer),
            _ => Err(format!("\"{text}\" cannot be executed; say \"transfer\" or \"none\"")),
        }
    }
}

/// Two families for graphics, two for compute, two for transfers, one for video.
fn queue_families() -> [QueueFamilyProperties; 7] {
    let compute = QueueFlagBits::COMPUTE.0 | QueueFlagBits::TRANSFER.0 | QueueFlagBits::SPARSE_BINDING.0;
    let graphics = QueueFlagBits::GRAPHICS.0 | compute;
    let video = QueueFlagBits::VIDEO_DECODE_KHR.0 | QueueFlagBits::VIDEO_ENCODE_KHR.0 | QueueFlagBits::TRANSFER.0;
    let flags = [
        graphics | QueueFlagBits::PROTECTED.0,
        graphics,
        compute | QueueFlagBits::PROTECTED.0,
        compute | QueueFlagBits::OPTICAL_FLOW_NV.0 | QueueFlagBits::DATA_GRAPH_ARM.0,
        QueueFlagBits::TRANSFER.0 | QueueFlagBits::SPARSE_BINDING.0,
        QueueFlagBits::TRANSFER.0,
        video,
    ];
    flags.map(|flag| QueueFamilyProperties {
        queue_flags: QueueFlags(flag),
        queue_count: QUEUES_PER_FAMILY,
        timestamp_valid_bits: 64,
        min_image_transfer_granularity: Extent3D { width: 1, height: 1, depth: 1 },
    })
}

/// Settings of one thread, since the environment is everybody's.
#[cfg(test)]
pub(crate) mod for_tests {
    use super::DriverSettings;
    use std::cell::RefCell;

    thread_local!(static CURRENT: RefCell<Option<DriverSettings>> = const { RefCell::new(None) });

    pub(crate) fn current() -> Option<DriverSettings> {
        CURRENT.with(|it| it.borrow().clone())
    }

    pub(crate) fn set(settings: Option<DriverSettings>) {
        CURRENT.with(|it| *it.borrow_mut() = settings);
    }
}
