//! Private data of objects.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use lavascope_abi::*;

use crate::calls::application_memory::ApplicationMemory;
use crate::calls::object_table::DriverObjectTable;

static SLOTS: DriverObjectTable<PrivateDataSlotData> = DriverObjectTable::new(HandleType::PrivateDataSlot);

/// Values by type of object and handle.
#[derive(Default)]
struct PrivateDataSlotData {
    values: Mutex<HashMap<(i32, u64), u64>>,
}

pub(crate) fn create_private_data_slot(c: ApplicationMemory<'_>, call: &CreatePrivateDataSlotParams) -> Result {
    c.write(call.p_private_data_slot, PrivateDataSlot(SLOTS.add(PrivateDataSlotData::default())));
    Result::SUCCESS
}

pub(crate) fn destroy_private_data_slot(_: ApplicationMemory<'_>, call: &DestroyPrivateDataSlotParams) {
    SLOTS.remove(call.private_data_slot.0);
}

pub(crate) fn set_private_data(_: ApplicationMemory<'_>, call: &SetPrivateDataParams) -> Result {
    let Some(slot) = SLOTS.get(call.private_data_slot.0) else { return Result::ERROR_UNKNOWN };
    let mut values = slot.values.lock().unwrap_or_else(PoisonError::into_inner);
    values.insert((call.object_type.0, call.object_handle), call.data);
    Result::SUCCESS
}

pub(crate) fn get_private_data(c: ApplicationMemory<'_>, call: &GetPrivateDataParams) {
    let value = SLOTS.get(call.private_data_slot.0).and_then(|slot| {
        let values = slot.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(&(call.object_type.0, call.object_handle)).copied()
    });
    c.write(call.p_data, value.unwrap_or_default());
}
