//! The application's memory during a call: the one place where its pointers are followed.

use std::ffi::CStr;
use std::marker::PhantomData;

use lavascope_abi::{
    BaseInStructure, CommandBuffer, Device, Instance, Opaque, PhysicalDevice, Ptr, Queue, Result, Structure,
};

use crate::calls::dispatchable;
use crate::device::{DeviceData, QueueData};
use crate::execution::commands::CommandBufferData;
use crate::instance::{InstanceData, PhysicalDeviceData};

/// The right to follow the pointers and dispatchable handles of the call that we are inside.
#[derive(Clone, Copy)]
pub(crate) struct ApplicationMemory<'a>(PhantomData<&'a ()>);

impl<'a> ApplicationMemory<'a> {
    /// # Safety
    ///
    /// Every pointer handed to the methods must come from the parameters of the current call, which must be valid
    /// as the specification demands, and the value must not outlive the call.
    pub(crate) unsafe fn in_call() -> ApplicationMemory<'a> {
        ApplicationMemory(PhantomData)
    }

    /// The target of a pointer; none for null.
    pub(crate) fn get<T>(self, from: Ptr<T>) -> Option<&'a T> {
        // SAFETY: null or valid for the duration of the call, by the promise made to `in_call`.
        unsafe { from.as_ptr().as_ref() }
    }

    /// `count` elements; none of them where the pointer is null.
    pub(crate) fn slice<T>(self, from: Ptr<T>, count: impl TryInto<usize>) -> &'a [T] {
        let count = count.try_into().unwrap_or(0);
        if from.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: valid for `count` elements, by the promise made to `in_call`.
        unsafe { std::slice::from_raw_parts(from.as_ptr(), count) }
    }

    /// Elements to write.
    pub(crate) fn slice_mut<T>(self, to: Ptr<T>, count: impl TryInto<usize>) -> &'a mut [T] {
        let count = count.try_into().unwrap_or(0);
        if to.is_null() || count == 0 {
            return &mut [];
        }
        // SAFETY: valid for `count` elements and ours to write, by the promise made to `in_call`.
        unsafe { std::slice::from_raw_parts_mut(to.as_mut_ptr(), count) }
    }

    /// An output structure; none for null.
    pub(crate) fn get_mut<T>(self, to: Ptr<T>) -> Option<&'a mut T> {
        // SAFETY: null or valid and ours to write during the call, by the promise made to `in_call`.
        unsafe { to.as_mut_ptr().as_mut() }
    }

    /// Writes an output, unless the pointer is null.
    pub(crate) fn write<T>(self, to: Ptr<T>, value: T) {
        if !to.is_null() {
            // SAFETY: valid for a `T`, by the promise made to `in_call`; outputs may be uninitialized.
            unsafe { to.as_mut_ptr().write(value) };
        }
    }

    pub(crate) fn text(self, from: Ptr<u8>) -> &'a CStr {
        if from.is_null() {
            return c"";
        }
        // SAFETY: a terminated text, by the promise made to `in_call`.
        unsafe { CStr::from_ptr(from.as_ptr().cast()) }
    }

    /// The structures of a `pNext` chain, by address and structure type.
    pub(crate) fn chain(self, first: Ptr<Opaque>) -> impl Iterator<Item = (Ptr<Opaque>, i32)> {
        let mut next = first;
        std::iter::from_fn(move || {
            let in_structure = self.get(next.cast::<BaseInStructure>())?;
            let found = (next, in_structure.s_type.0);
            next = in_structure.p_next;
            Some(found)
        })
    }

    /// The structure of a type in a chain.
    pub(crate) fn find<T: Structure>(self, first: Ptr<Opaque>) -> Option<&'a T> {
        self.place_of::<T>(first).and_then(|it| self.get(it))
    }

    /// As [`ApplicationMemory::find`], to write.
    pub(crate) fn find_mut<T: Structure>(self, first: Ptr<Opaque>) -> Option<&'a mut T> {
        self.place_of::<T>(first).and_then(|it| self.get_mut(it))
    }

    fn place_of<T: Structure>(self, first: Ptr<Opaque>) -> Option<Ptr<T>> {
        let wanted = T::layout().s_type()?;
        self.chain(first).find(|it| it.1 == wanted).map(|it| it.0.cast())
    }

    /// The two calls of an enumeration: the count alone, or as many elements as there is room for.
    pub(crate) fn enumerate<T: 'a, I>(
        self,
        count: Ptr<u32>,
        to: Ptr<T>,
        items: &[I],
        mut write: impl FnMut(&'a mut T, usize),
    ) -> Result {
        let Some(count) = self.get_mut(count) else { return Result::ERROR_UNKNOWN };
        let all = items.len() as u32;
        if to.is_null() {
            *count = all;
            return Result::SUCCESS;
        }
        *count = all.min(*count);
        for (at, slice_mut_item) in self.slice_mut(to, *count).iter_mut().enumerate() {
            write(slice_mut_item, at);
        }
        if *count < all { Result::INCOMPLETE } else { Result::SUCCESS }
    }

    /// The same for plain values.
    pub(crate) fn enumerate_values<T: Copy + 'a>(self, count: Ptr<u32>, to: Ptr<T>, items: &[T]) -> Result {
        self.enumerate(count, to, items, |it, at| *it = items[at])
    }

    /// The two calls of a command that gives bytes: their number alone, or the bytes if there is room.
    pub(crate) fn give_bytes(self, size: Ptr<u64>, to: Ptr<Opaque>, bytes: &[u8]) -> Result {
        let Some(size) = self.get_mut(size) else { return Result::ERROR_UNKNOWN };
        if to.is_null() {
            *size = bytes.len() as u64;
            return Result::SUCCESS;
        }
        if *size < bytes.len() as u64 {
            *size = 0;
            return Result::INCOMPLETE;
        }
        *size = bytes.len() as u64;
        self.slice_mut(to.cast::<u8>(), bytes.len()).copy_from_slice(bytes);
        Result::SUCCESS
    }

    pub(crate) fn instance(self, handle: Instance) -> &'a InstanceData {
        // SAFETY: a handle that we gave and that is alive, by the promise made to `in_call`.
        unsafe { dispatchable::data(handle.0) }
    }

    pub(crate) fn physical_device(self, handle: PhysicalDevice) -> &'a PhysicalDeviceData {
        // SAFETY: a handle that we gave and that is alive, by the promise made to `in_call`.
        unsafe { dispatchable::data(handle.0) }
    }

    pub(crate) fn device(self, handle: Device) -> &'a DeviceData {
        // SAFETY: a handle that we gave and that is alive, by the promise made to `in_call`.
        unsafe { dispatchable::data(handle.0) }
    }

    pub(crate) fn queue(self, handle: Queue) -> &'a QueueData {
        // SAFETY: a handle that we gave and that is alive, by the promise made to `in_call`.
        unsafe { dispatchable::data(handle.0) }
    }

    pub(crate) fn command_buffer(self, handle: CommandBuffer) -> &'a CommandBufferData {
        // SAFETY: a handle that we gave and that is alive, by the promise made to `in_call`.
        unsafe { dispatchable::data(handle.0) }
    }

    /// Ends the life of a dispatchable object.
    pub(crate) fn destroy<T>(self, handle: u64) {
        // SAFETY: host access to a handle that is destroyed "must be externally synchronized", so that no other thread
        // uses it, and this call is the last that has it.
        unsafe { dispatchable::destroy::<T>(handle) };
    }
}
