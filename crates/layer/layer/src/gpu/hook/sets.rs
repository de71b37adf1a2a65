//! Hooks for descriptor sets and for writes to them.

use lavascope_abi::*;

use super::{deref_param, hooks};
use crate::DeviceTable;
use crate::gpu::{DeviceChecks, checks_of, slice};
use crate::process::catch_panic::{catch_panic, run_if_enabled};

hooks! {
    allocate_descriptor_sets = fn(device: Device, p_info: Ptr<DescriptorSetAllocateInfo>, p_made: Ptr<DescriptorSet>) -> Result, |gpu, forward| {
        let result = forward();
        if result == Result::SUCCESS {
            // SAFETY: VUID-vkAllocateDescriptorSets-pAllocateInfo-parameter: a valid structure, with its chain, until
            // the call returns; VUID-vkAllocateDescriptorSets-pDescriptorSets-parameter: places for as many handles as
            // it says, which the call has written.
            let keep = || unsafe { gpu.state().track_sets(deref_param(p_info), p_made) };
            run_if_enabled("vkAllocateDescriptorSets", keep, || ());
        }
        result
    }
    free_descriptor_sets = fn(device: Device, pool: DescriptorPool, count: u32, p_sets: Ptr<DescriptorSet>) -> Result, |gpu, forward| {
        // SAFETY: VUID-vkFreeDescriptorSets-pDescriptorSets-00310: an array of so many handles until the call returns.
        let sets = unsafe { slice(p_sets, count) };
        let forget = || {
            let mut state = gpu.state();
            sets.iter().for_each(|it| drop(state.sets.remove(&it.0)));
            gpu.invalidate_choices();
        };
        catch_panic("vkFreeDescriptorSets", forget, || ());
        forward()
    }
    reset_descriptor_pool = fn(device: Device, pool: DescriptorPool, flags: DescriptorPoolResetFlags) -> Result, |gpu, forward| {
        catch_panic("vkResetDescriptorPool", || gpu.forget_pool(pool), || ());
        forward()
    }
    destroy_descriptor_pool = fn(device: Device, pool: DescriptorPool, p_allocator: Ptr<Opaque>) -> (), |gpu, forward| {
        catch_panic("vkDestroyDescriptorPool", || gpu.forget_pool(pool), || ());
        forward();
    }
    update_descriptor_sets = fn(device: Device, write_count: u32, p_writes: Ptr<WriteDescriptorSet>, copy_count: u32, p_copies: Ptr<CopyDescriptorSet>) -> (), |gpu, forward| {
        forward();
        // SAFETY: VUID-vkUpdateDescriptorSets-pDescriptorWrites-parameter and
        // VUID-vkUpdateDescriptorSets-pDescriptorCopies-parameter: arrays of so many until the call returns.
        let (writes, copies) = unsafe { (slice(p_writes, write_count), slice(p_copies, copy_count)) };
        let note = || {
            let mut state = gpu.state();
            // SAFETY: VUID-vkUpdateDescriptorSets-pDescriptorWrites-parameter: each is valid, with its chain and the
            // array that its type asks for.
            writes.iter().for_each(|it| unsafe { state.apply_write(it) });
            copies.iter().for_each(|it| state.apply_copy(it));
            gpu.invalidate_choices();
        };
        let written = || writes.iter().map(|it| it.dst_set).chain(copies.iter().map(|it| it.dst_set));
        run_if_enabled("vkUpdateDescriptorSets", note, || gpu.forget_contents("vkUpdateDescriptorSets", written()));
    }
}

impl DeviceChecks {
    fn forget_pool(&self, pool: DescriptorPool) {
        self.state().forget_pool(pool);
        self.invalidate_choices();
    }

    /// Sets are written while their contents are not tracked: older contents must not decide anything.
    pub(in crate::gpu) fn forget_contents(&self, name: &str, sets: impl Iterator<Item = DescriptorSet>) {
        let forget = || {
            let mut state = self.state();
            sets.for_each(|set| {
                state
                    .sets
                    .get_mut(&set.0)
                    .into_iter()
                    .for_each(crate::gpu::resource::descriptor_sets::DescriptorSetState::forget_contents)
            });
            self.invalidate_choices();
        };
        catch_panic(name, forget, || ());
    }
}
