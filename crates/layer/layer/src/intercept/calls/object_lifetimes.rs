//! Objects that a call creates or destroys: the handle table gains and loses them.

use lavascope_abi::desc::Layout;
use lavascope_abi::{Command, DeferredOperationKHR, HandleType};
use lavascope_marshal::RecordBuffer;
use lavascope_record::{Call, OrderEdge, check};
use lavascope_stream::ObjectParent;

use super::pack_by_desc;
use crate::intercept::deferred_operations::{DeferredStatus, deferred_status};
use crate::intercept::handle_table::HandleTable;
use crate::intercept::handles::{CallHandle, direct_handles, handle_type, nested_handles};
use crate::intercept::object_deps::{ObjectDeps, ObjectIdResolver};
use crate::intercept::object_parent;
use crate::process::process_state::PROCESS_STATE;

/// Gives ids to the objects that a call returned, and stores the state of them that later packing needs.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that has returned to us and not to the application.
/// `outputs` must be what `outputs_image` gathered from it, and `layout` the layout of that.
pub(super) unsafe fn add_returned_objects(
    handles: &HandleTable,
    command: Command,
    params: *const u8,
    (outputs, layout): (&[u64], &'static Layout),
    edge: Option<OrderEdge>,
) {
    let base = outputs.as_ptr().expose_provenance() as u64;
    // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
    let mut returned = unsafe { direct_handles(layout, base) };
    let is_creation = creates_objects(command);
    // The structures that a creation returns repeat handles of its parameters, for example the layout of a pipeline.
    if !is_creation {
        // SAFETY: the contract of this function: the image of the outputs of the call, whose layout this is.
        returned.extend(unsafe { nested_handles(layout, base) });
    }
    returned.retain(|it| it.is_behind_pointer);
    if returned.is_empty() {
        return;
    }
    // SAFETY: the contract of this function: the parameters of the call that made these objects.
    let (parent, note) = unsafe { object_parent::parent_and_note(handles, command, params, returned[0].ty) };
    for object in &returned {
        let table = handles.table_for(object.ty);
        // A query, `vkGetDeviceQueue` for one, returns the same object again.
        if object.handle == 0 || !is_creation && table.slot(object.ty, object.handle).is_some() {
            continue;
        }
        add_object(table, object.ty, object.handle, (parent, note), edge);
    }
    if defines_pack_context(command) {
        // SAFETY: the contract of this function, which is that of `store_pack_context`.
        unsafe { store_pack_context(handles, command, params, &returned) };
    }
}

/// A new object, last used by the call that created it.
fn add_object(
    handles: &HandleTable,
    ty: HandleType,
    handle: u64,
    (parent, note): (ObjectParent, u32),
    edge: Option<OrderEdge>,
) {
    if let Some(slot) = handles.add(ty, handle, parent, note)
        && let Some(edge) = edge
    {
        PROCESS_STATE.objects.set_last_edge(slot, edge);
    }
}

fn creates_objects(command: Command) -> bool {
    let name = command.desc().name;
    name.starts_with("vkCreate") || name.starts_with("vkAllocate") || name.starts_with("vkRegister")
}

/// Follows deferred host operations: their pipelines exist only when the operation is complete.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obeyed its VUIDs, and that has returned `result`
/// to us and not returned to the application.
pub(super) unsafe fn follow_deferred_operation(
    handles: &HandleTable,
    command: Command,
    params: *const u8,
    result: u64,
    edge: Option<OrderEdge>,
) {
    // SAFETY: the contract of this function, which is that of `deferred_status`.
    match unsafe { deferred_status(command, params, result) } {
        DeferredStatus::Unrelated => {}
        DeferredStatus::Begun => {
            // SAFETY: `deferred_status` gives this for `vkCreateRayTracingPipelinesKHR` alone, so that these are its
            // parameters.
            let params = unsafe { &*params.cast() };
            // SAFETY: `deferred_status` gives this where the call returned `VK_OPERATION_DEFERRED_KHR`.
            unsafe { handles.deferred.begin(params) };
        }
        DeferredStatus::Complete(operation) => add_deferred_pipelines(handles, operation, edge),
    }
}

fn add_deferred_pipelines(handles: &HandleTable, operation: DeferredOperationKHR, edge: Option<OrderEdge>) {
    let add = |pipeline| add_object(handles, HandleType::Pipeline, pipeline, (ObjectParent::None, 0), edge);
    // SAFETY: `deferred_status` gives an operation only where a call found that it is complete. That call has not
    // returned to the application, and every call by which the application can find out comes here first.
    unsafe { handles.deferred.complete(operation.0, add) };
}

/// Whether packing later calls needs the parameters of this creation. For example, a render pass defines which members
/// of a `VkGraphicsPipelineCreateInfo` are read.
fn defines_pack_context(command: Command) -> bool {
    matches!(
        command,
        Command::CreateRenderPass
            | Command::CreateRenderPass2
            | Command::CreateDescriptorUpdateTemplate
            | Command::CreateGraphicsPipelines
    )
}

/// Stores the state of new objects that packing needs, from the parameters of their creation.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and that has not returned to the
/// application.
unsafe fn store_pack_context(handles: &HandleTable, command: Command, params: *const u8, created: &[CallHandle]) {
    let (mut record, deps) = (RecordBuffer::default(), ObjectDeps::default());
    let resolver = ObjectIdResolver { handles, thread: 0, deps: &deps, is_ordered: false, last_command_buffer: None };
    // SAFETY: the contract of this function, which is that of `pack_by_desc`.
    unsafe { pack_by_desc(&mut record, &resolver, command, params, 0) };
    if let Ok(record) = check(record.words())
        && let Some(call) = Call::of(record)
    {
        let created: Vec<u64> = created.iter().map(|it| it.handle).collect();
        handles.store_pack_context(call, &created);
    }
}

/// Forgets the objects that a call destroys, before the driver sees the call: the driver may give the same handle to
/// another thread at once.
///
/// # Safety
///
/// `params` must point to the parameters of a call of `command` that obey its VUIDs and was not passed on yet.
#[cold]
pub(super) unsafe fn remove_destroyed_objects(handles: &HandleTable, command: Command, params: *const u8) {
    let desc = command.desc();
    let is_end = desc.name.starts_with("vkDestroy") || desc.name.starts_with("vkFree");
    let is_reset = command == Command::ResetDescriptorPool;
    if !is_end && !is_reset && command != Command::ReleasePerformanceConfigurationINTEL {
        return;
    }
    // The destroyed object is the last handle of the parameters, after the device and the pool.
    let Some(ended) = desc.parameters.fixups.iter().rev().find_map(handle_type) else { return };
    let base = params.expose_provenance() as u64;
    // SAFETY: the contract of this function: the image of a call of this command, whose layout this is.
    for object in unsafe { direct_handles(desc.parameters, base) }.into_iter().filter(|it| it.ty == ended) {
        let table = handles.table_for(object.ty);
        match table.slot(object.ty, object.handle) {
            Some(pool) if is_reset => table.remove_children(pool),
            _ => table.remove(object.ty, object.handle),
        }
    }
}
