//! A device, its queues, and the objects that it keeps until the end of the sample.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use ash::{ext, vk};

use super::features::FeatureSet;
use super::owned_object::Object;
use crate::common::{Feature, SampleInstance};
use crate::failure::Failure;

const DEVICE_VARIABLE: &str = "LAVASCOPE_SAMPLE_DEVICE";

/// The features that a sample requires, and those that it uses if they exist.
#[derive(Clone, Copy)]
pub(crate) struct Needs<'a> {
    pub(crate) features: &'a [Feature],
    pub(crate) features_optional: &'a [Feature],
    pub(crate) extensions: &'a [&'static CStr],
    pub(crate) extensions_optional: &'a [&'static CStr],
    /// Besides the queue for everything, one that runs beside it; the same one where there is no other.
    pub(crate) second_queue: bool,
    /// Whether that one computes, too.
    pub(crate) second_computes: bool,
}

impl Needs<'static> {
    /// The features of every device with Vulkan 1.2.
    pub(crate) const NOTHING: Needs<'static> = Needs {
        features: &[],
        features_optional: &[],
        extensions: &[],
        extensions_optional: &[],
        second_queue: false,
        second_computes: false,
    };
}

/// A device with all required features.
///
/// It is shared by the threads of a sample; the queues belong to one of them at a time.
pub(crate) struct Gpu {
    pub(crate) device: ash::Device,
    pub(crate) physical_device: vk::PhysicalDevice,
    /// Draws, computes and copies.
    pub(crate) main: Queue,
    pub(crate) second: Queue,
    pub(crate) debug: Option<ext::debug_utils::Device>,
    pub(crate) memory: vk::PhysicalDeviceMemoryProperties,
    enabled: Vec<Feature>,
    extensions: Vec<&'static CStr>,
    owned_objects: Mutex<Vec<Object>>,
    /// Last, since fields are dropped in their order.
    pub(crate) instance: SampleInstance,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    pub(crate) handle: vk::Queue,
    pub(crate) family: u32,
}

impl Gpu {
    pub(crate) fn new(needs: &Needs) -> Result<Gpu, Failure> {
        Gpu::with_instance(SampleInstance::new(&[])?, needs)
    }

    pub(crate) fn with_instance(instance: SampleInstance, needs: &Needs) -> Result<Gpu, Failure> {
        // SAFETY: `SampleInstance` destroys its handle when it is dropped, and it is borrowed here (lifetime).
        let devices = unsafe { instance.handle.enumerate_physical_devices() }?;
        let mut reasons = Vec::new();
        for device in devices {
            match Candidate::new(&instance, device, needs) {
                Ok(candidate) => return candidate.create(instance, needs),
                Err(reason) => reasons.push(reason),
            }
        }
        let reasons = if reasons.is_empty() { "there is no device".to_owned() } else { reasons.join("; ") };
        Err(Failure::Unsupported(reasons))
    }

    pub(crate) fn has(&self, feature: Feature) -> bool {
        self.enabled.contains(&feature)
    }

    pub(crate) fn has_extension(&self, name: &CStr) -> bool {
        self.extensions.contains(&name)
    }

    /// Destroys the object at the end of the sample, before older ones.
    pub(crate) fn destroy_at_end<T: Into<Object> + Copy>(&self, object: T) -> T {
        self.owned_objects.lock().unwrap_or_else(PoisonError::into_inner).push(object.into());
        object
    }

    /// The families that use an object shared by both queues.
    pub(crate) fn families(&self) -> Vec<u32> {
        if self.main.family == self.second.family { vec![] } else { vec![self.main.family, self.second.family] }
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let kept = std::mem::take(&mut *self.owned_objects.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: `&mut self` says that no thread uses the device any more; after waiting its queues do not either, and
        // a lost device is idle as well. `destroy_at_end` has each object once, and destroys it before what it was made of. What
        // was not kept is destroyed by now, so that the device has no child left (VUID-vkDestroyDevice-device-05137).
        unsafe {
            let _ = self.device.device_wait_idle();
            kept.into_iter().rev().for_each(|it| it.destroy(&self.device));
            self.device.destroy_device(None);
        }
    }
}

/// A physical device that fits.
struct Candidate {
    device: vk::PhysicalDevice,
    api_version: u32,
    features: Vec<Feature>,
    extensions: Vec<&'static CStr>,
    families: Vec<vk::QueueFamilyProperties>,
    main: u32,
}

impl Candidate {
    /// The reason is for the user, where a device does not fit.
    fn new(instance: &SampleInstance, device: vk::PhysicalDevice, needs: &Needs) -> Result<Candidate, String> {
        // SAFETY: the caller enumerated the device from this instance, which is borrowed (lifetime).
        let properties = unsafe { instance.handle.get_physical_device_properties(device) };
        let name = properties.device_name_as_c_str().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = std::env::var(DEVICE_VARIABLE).unwrap_or_default();
        if !name.contains(&wanted) {
            return Err(format!("{name} is not the {wanted} that {DEVICE_VARIABLE} asks for"));
        }
        let version_min = instance.api_version.min(vk::API_VERSION_1_2);
        if properties.api_version < version_min {
            return Err(format!("{name} has no Vulkan 1.{}", vk::api_version_minor(version_min)));
        }
        let api_version = properties.api_version.min(instance.api_version);
        // SAFETY: the caller enumerated the device from this instance, which is borrowed (lifetime).
        let offered = unsafe { instance.handle.enumerate_device_extension_properties(device) }.unwrap_or_default();
        let is_offered = |it: &CStr| offered.iter().any(|have| have.extension_name_as_c_str() == Ok(it));
        if let Some(missing) = needs.extensions.iter().find(|it| !is_offered(it)) {
            return Err(format!("{name} has no {}", missing.to_string_lossy()));
        }
        let mut supported = FeatureSet::supported(&instance.handle, device, api_version, &is_offered);
        if let Some(missing) = needs.features.iter().find(|it| !supported.supports(**it)) {
            return Err(format!("{name} has no {missing:?}"));
        }
        // SAFETY: the caller enumerated the device from this instance, which is borrowed (lifetime).
        let families = unsafe { instance.handle.get_physical_device_queue_family_properties(device) };
        let all = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE;
        let binds_sparse = needs.features.contains(&Feature::SparseBinding);
        let all = if binds_sparse { all | vk::QueueFlags::SPARSE_BINDING } else { all };
        let main = families.iter().position(|it| it.queue_flags.contains(all));
        let main = main.ok_or_else(|| format!("{name} has no queue that both draws and computes"))?;
        let features_optional = needs.features_optional.iter().filter(|it| supported.supports(**it));
        let extensions_optional = needs.extensions_optional.iter().filter(|it| is_offered(it));
        Ok(Candidate {
            device,
            api_version,
            features: needs.features.iter().chain(features_optional).copied().collect(),
            extensions: needs.extensions.iter().chain(extensions_optional).copied().collect(),
            families,
            main: main as u32,
        })
    }

    fn create(self, instance: SampleInstance, needs: &Needs) -> Result<Gpu, Failure> {
        let main = (self.main, 0);
        let second = if needs.second_queue { self.find_second_queue(needs.second_computes) } else { main };
        let mut counts = BTreeMap::new();
        for (family, index) in [main, second] {
            let count = counts.entry(family).or_insert(0);
            *count = (index + 1).max(*count);
        }
        let priorities = [1.0, 1.0];
        let queues = counts.iter().map(|(family, count): (&u32, &u32)| {
            let priorities = &priorities[..*count as usize];
            vk::DeviceQueueCreateInfo::default().queue_family_index(*family).queue_priorities(priorities)
        });
        let queues: Vec<_> = queues.collect();
        let mut features = FeatureSet::empty(self.api_version, &|it| self.extensions.contains(&it));
        self.features.iter().for_each(|it| features.enable(*it));
        let extensions: Vec<_> = self.extensions.iter().map(|it| it.as_ptr()).collect();
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues).enabled_extension_names(&extensions);
        let info = features.chain(info);
        // SAFETY: `info` and what it points to live until the call returns; the device was found to have it all.
        let device = unsafe { instance.handle.create_device(self.device, &info, None) }?;
        let queue = |(family, index): (u32, u32)| {
            // SAFETY: `queues` asked for this family and index (VUID-vkGetDeviceQueue-queueFamilyIndex-00384,
            // VUID-vkGetDeviceQueue-queueIndex-00385), without flags.
            Queue { handle: unsafe { device.get_device_queue(family, index) }, family }
        };
        let (main, second) = (queue(main), queue(second));
        let debug = instance.has_debug_utils.then(|| ext::debug_utils::Device::new(&instance.handle, &device));
        // SAFETY: `new` got the device from this instance (lifetime).
        let memory = unsafe { instance.handle.get_physical_device_memory_properties(self.device) };
        let (enabled, extensions, kept) = (self.features, self.extensions, Mutex::default());
        let physical_device = self.device;
        let gpu = Gpu {
            device,
            physical_device,
            main,
            second,
            debug,
            memory,
            enabled,
            extensions,
            owned_objects: kept,
            instance,
        };
        gpu.name(gpu.second.handle, "second queue");
        gpu.name(gpu.main.handle, "main queue");
        Ok(gpu)
    }

    /// A queue only for copies, else one of any other family, else another one of the same family, else the same.
    fn find_second_queue(&self, computes: bool) -> (u32, u32) {
        let all = vk::QueueFlags::GRAPHICS | vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER;
        let family = |flags: vk::QueueFlags| {
            let found = self.families.iter().position(|it| it.queue_flags & all == flags);
            found.map(|it| (it as u32, 0))
        };
        let same = (self.main, u32::from(self.families[self.main as usize].queue_count > 1));
        family(vk::QueueFlags::TRANSFER)
            .filter(|_| !computes)
            .or_else(|| family(vk::QueueFlags::COMPUTE | vk::QueueFlags::TRANSFER))
            .or_else(|| family(vk::QueueFlags::COMPUTE))
            .unwrap_or(same)
    }
}
