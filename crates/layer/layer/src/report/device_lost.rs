//! A device was lost: how far it came, as far as the host knows, and what the driver reports about it.
//!
//! Reported once, by the call that found out. `VK_EXT_device_fault` is asked where the application enabled it.

use lavascope_abi::*;
use lavascope_settings::MessageSeverity;

use crate::capture::device_metadata::text_of;
use crate::loader::device::DeviceData;
use crate::loader::interface::{out, out_slice};
use crate::report::messages::OutgoingMessage;
use crate::report::report_file;
use crate::report::validation::Inbox;

/// Faulty addresses, and remarks of the vendor, that are reported.
const FAULTS_MAX: u32 = 16;

/// Tells it on the thread that found out.
pub(crate) fn report_device_lost(device: &DeviceData, inbox: &Inbox, command: Command) {
    let mut lines = inbox.queue_progress();
    lines.extend(fault_lines(device));
    // What was found until then comes first: it may be the reason.
    inbox.deliver(device.handles());
    let title = format!("{}() returned VK_ERROR_DEVICE_LOST", command.desc().name);
    let text = format!("{title}\n{}", lines.iter().map(|it| format!("  {it}\n")).collect::<String>());
    let message = OutgoingMessage::new(MessageSeverity::Error, c"LAVASCOPE-DeviceLost", &text);
    if report_file::device_lost(&title, &lines) {
        inbox.messages().send_to_messengers(&message);
    } else {
        inbox.messages().send(&message);
    }
}

/// What `VK_EXT_device_fault` gives, where the application switched it on.
fn fault_lines(device: &DeviceData) -> Vec<String> {
    let Some(ask) = device.table.get_device_fault_info_ext.filter(|_| device.has_device_fault) else {
        return Vec::new();
    };
    let mut counts = DeviceFaultCountsEXT::zeroed();
    counts.s_type = StructureType::DEVICE_FAULT_COUNTS_EXT;
    // SAFETY: `device` is that of a call that has not returned, so its handle is alive. The call returned
    // VK_ERROR_DEVICE_LOST (VUID-vkGetDeviceFaultInfoEXT-device-07336), and the feature is enabled. The counts are
    // ours.
    if unsafe { ask(device.handle, out(&mut counts), Ptr::NULL) } != Result::SUCCESS {
        return vec!["the driver has nothing to say about the fault".to_owned()];
    }
    // The vendor's dump is for tools of the vendor.
    counts.vendor_binary_size = 0;
    counts.address_info_count = counts.address_info_count.min(FAULTS_MAX);
    counts.vendor_info_count = counts.vendor_info_count.min(FAULTS_MAX);
    let mut addresses = vec![DeviceFaultAddressInfoKHR::zeroed(); counts.address_info_count as usize];
    let mut vendor = vec![DeviceFaultVendorInfoKHR::zeroed(); counts.vendor_info_count as usize];
    let mut info = DeviceFaultInfoEXT::zeroed();
    info.s_type = StructureType::DEVICE_FAULT_INFO_EXT;
    info.p_address_infos = out_slice(&mut addresses);
    info.p_vendor_infos = out_slice(&mut vendor);
    // SAFETY: as for the first call, and the arrays are as long as the counts say
    // (VUID-vkGetDeviceFaultInfoEXT-pFaultCounts-07337 to 07339): a null one has no elements.
    let result = unsafe { ask(device.handle, out(&mut counts), out(&mut info)) };
    if result != Result::SUCCESS && result != Result::INCOMPLETE {
        return vec!["the driver has nothing to say about the fault".to_owned()];
    }
    let mut lines = vec![format!("the driver says: {}", text_of(&info.description))];
    lines.extend(addresses.iter().take(counts.address_info_count as usize).map(address_line));
    lines.extend(vendor.iter().take(counts.vendor_info_count as usize).map(|vendor_info| {
        format!(
            "the driver says: {}, code {:#x}, data {:#x}",
            text_of(&vendor_info.description),
            vendor_info.vendor_fault_code,
            vendor_info.vendor_fault_data
        )
    }));
    lines
}

fn address_line(address_info: &DeviceFaultAddressInfoKHR) -> String {
    use DeviceFaultAddressTypeKHR as T;
    let what = match address_info.address_type {
        T::NONE_KHR => return "no address belongs to the fault".to_owned(),
        T::READ_INVALID_KHR => "an invalid read",
        T::WRITE_INVALID_KHR => "an invalid write",
        T::EXECUTE_INVALID_KHR => "an invalid execution",
        T::INSTRUCTION_POINTER_UNKNOWN_KHR => "an instruction",
        T::INSTRUCTION_POINTER_INVALID_KHR => "an invalid instruction pointer",
        T::INSTRUCTION_POINTER_FAULT_KHR => "a fault of an instruction",
        _ => "a fault",
    };
    // As precise as the device is: a power of two.
    let precision = address_info.address_precision.max(1);
    let first = address_info.reported_address & !(precision - 1);
    match precision {
        1 => format!("{what} at {first:#x}"),
        _ => format!("{what} at {first:#x} to {:#x}", first.saturating_add(precision - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_reported_as_precisely_as_it_is_known() {
        let mut address_info = DeviceFaultAddressInfoKHR::zeroed();
        address_info.address_type = DeviceFaultAddressTypeKHR::WRITE_INVALID_KHR;
        (address_info.reported_address, address_info.address_precision) = (0x12345, 0x1000);
        assert_eq!(address_line(&address_info), "an invalid write at 0x12000 to 0x12fff");
        address_info.address_precision = 1;
        assert_eq!(address_line(&address_info), "an invalid write at 0x12345");
        assert_eq!(text_of(b"two words\0more"), "two words");
    }
}
