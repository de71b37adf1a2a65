//! Swapchains: acquiring and presenting images.

use std::cell::Cell;
use std::collections::VecDeque;

use lavascope_abi as vk;
use lavascope_record::{Call, Outcome, View, Views};
use lavascope_sync_ir::{self as program, FenceId, HostStep, QueueId, ResourceId, SemaphoreId, SemaphorePoint, Tiling};

use crate::device::{TrackedCall, TrackedDevice};
use crate::listener::{Destroyed, TrackerOutput};
use crate::resource::format;
use crate::resource::image::{TrackedImage, is_plausible_image};

pub(crate) struct TrackedSwapchain {
    info: program::ImageDesc,
    is_exclusive: bool,
    /// By index, as far as the application queried them.
    images: Vec<vk::Image>,
    /// Present ids that the host may wait for, with a fence for each.
    presented: VecDeque<(u64, FenceId)>,
}

/// The host can wait only for this many recent presents.
const PRESENTED_MAX: usize = 64;

impl TrackedDevice {
    pub(crate) fn track_swapchains(&mut self, tracked: TrackedCall<'_>, out: &mut TrackerOutput<'_>) -> bool {
        match (tracked.call, tracked.outcome) {
            (Call::CreateSwapchainKHR(params), Some(Outcome::CreateSwapchainKHR(made))) => {
                if let (Some(info), Some(handle)) = (params.p_create_info(), made.p_swapchain()) {
                    self.swapchains.insert(handle.0, TrackedSwapchain::from_create_info(info));
                }
            }
            (Call::CreateSharedSwapchainsKHR(params), Some(Outcome::CreateSharedSwapchainsKHR(made))) => {
                self.create_shared(params.p_create_infos(), made.p_swapchains());
            }
            (Call::DestroySwapchainKHR(params), None) => self.destroy_swapchain(params.swapchain.0, out),
            (Call::GetSwapchainImagesKHR(params), Some(Outcome::GetSwapchainImagesKHR(done))) => {
                self.add_swapchain_images(params.swapchain.0, done.p_swapchain_images(), out);
            }
            (Call::AcquireNextImageKHR(params), Some(Outcome::AcquireNextImageKHR(done))) => {
                let index = done.p_image_index().copied().filter(|_| is_acquired(done.result));
                self.acquire(params.swapchain.0, index, params.semaphore, params.fence, out);
            }
            (Call::AcquireNextImage2KHR(params), Some(Outcome::AcquireNextImage2KHR(done))) => {
                let index = done.p_image_index().copied().filter(|_| is_acquired(done.result));
                if let Some(info) = params.p_acquire_info() {
                    self.acquire(info.swapchain.0, index, info.semaphore, info.fence, out);
                }
            }
            (Call::WaitForPresentKHR(params), Some(Outcome::WaitForPresentKHR(done))) => {
                self.wait_for_present(params.swapchain, params.present_id, done.result, out);
            }
            (Call::WaitForPresent2KHR(params), Some(Outcome::WaitForPresent2KHR(done))) => {
                if let Some(info) = params.p_present_wait2_info() {
                    self.wait_for_present(params.swapchain, info.present_id, done.result, out);
                }
            }
            (Call::ReleaseSwapchainImagesKHR(params), None) => {
                if let Some(info) = params.p_release_info() {
                    self.release_images(info, out);
                }
            }
            _ => return false,
        }
        true
    }

    fn create_shared(&mut self, infos: Views<'_, vk::SwapchainCreateInfoKHR>, handles: &[vk::SwapchainKHR]) {
        for (info, handle) in infos.iter().zip(handles) {
            self.swapchains.insert(handle.0, TrackedSwapchain::from_create_info(info));
        }
    }

    fn destroy_swapchain(&mut self, handle: u64, out: &mut TrackerOutput<'_>) {
        let Some(swapchain) = self.swapchains.remove(handle) else { return };
        swapchain.presented.iter().for_each(|it| out.destroyed(Some(Destroyed::Fence(it.1))));
        for image in swapchain.images {
            if let Some(image) = self.images.remove(image.0) {
                self.destroy_resource(image.resource, 0, out);
            }
        }
    }

    fn add_swapchain_images(&mut self, handle: u64, images: &[vk::Image], out: &mut TrackerOutput<'_>) {
        let Some(swapchain) = self.swapchains.get(handle).filter(|it| is_plausible_image(&it.info)) else { return };
        let (info, is_exclusive) = (swapchain.info.clone(), swapchain.is_exclusive);
        for image in images.iter().filter(|it| it.0 != 0) {
            if self.images.get(image.0).is_some() {
                continue;
            }
            let mut own = TrackedImage {
                info: info.clone(),
                aspects: format::aspects(info.format),
                ty: vk::ImageType::_2D,
                size: None,
                resource: None,
                memory: 0,
                is_disjoint: false,
                is_sparse: false,
                granularity: None,
                block_size: None,
                has_slice_ranges: false,
                is_exclusive,
                layouts: Vec::new(),
                is_used: Cell::new(false),
            };
            own.resource = Some(self.add_resource(image.0, &own.to_resource(None), out));
            self.images.insert(image.0, own);
        }
        if let Some(swapchain) = self.swapchains.get_mut(handle).filter(|it| it.images.len() < images.len()) {
            swapchain.images = images.to_vec();
        }
    }

    pub(crate) fn swapchain_image(&self, handle: u64, index: u32) -> Option<ResourceId> {
        let image = self.swapchains.get(handle)?.images.get(index as usize)?;
        self.images.get(image.0)?.resource
    }

    fn acquire(
        &mut self,
        swapchain: u64,
        index: Option<u32>,
        semaphore: vk::Semaphore,
        fence: vk::Fence,
        out: &mut TrackerOutput<'_>,
    ) {
        let Some(index) = index else { return };
        let Some(image) = self.swapchain_image(swapchain, index) else {
            out.report_untracked("an image of a swapchain that nobody asked for");
            return;
        };
        let semaphore = self.semaphores.get(semaphore.0).map(|it| it.id);
        self.signal_external(semaphore.map(|semaphore| SemaphorePoint { semaphore, value: None }).into_iter());
        out.step(HostStep::Acquire { image, semaphore, fence: self.fences.get(fence.0).copied() });
    }

    pub(crate) fn present(&mut self, queue: QueueId, info: View<'_, vk::PresentInfoKHR>, out: &mut TrackerOutput<'_>) {
        let pairs = info.p_swapchains().iter().zip(info.p_image_indices());
        let images: Vec<ResourceId> =
            pairs.filter_map(|(swapchain, index)| self.swapchain_image(swapchain.0, *index)).collect();
        let semaphore = |it: &vk::Semaphore| Some(self.semaphores.get(it.0)?.id);
        let waits: Vec<SemaphoreId> = info.p_wait_semaphores().iter().filter_map(semaphore).collect();
        if images.len() != info.swapchain_count as usize || waits.len() != info.wait_semaphore_count as usize {
            out.report_untracked("a semaphore, or an image of a swapchain, that is not known");
        }
        let points: Vec<SemaphorePoint> =
            waits.iter().map(|it| SemaphorePoint { semaphore: *it, value: None }).collect();
        self.wait_external(&points, out);
        for fence in self.present_fences(info, out) {
            // A wait for the fence also waits for the semaphores of the present.
            self.forward_semaphores(queue, &points, &points, fence, out);
        }
        out.step(HostStep::Present { queue, waits, images });
    }

    /// The fences that a present signals: those of the application, and one for each present id.
    fn present_fences(&mut self, info: View<'_, vk::PresentInfoKHR>, out: &mut TrackerOutput<'_>) -> Vec<FenceId> {
        let given = info.chained::<vk::SwapchainPresentFenceInfoKHR>();
        let given = given.map_or(&[][..], |it| it.p_fences());
        let mut fences: Vec<FenceId> = given.iter().filter_map(|it| self.signaled_fence(*it, out)).collect();
        let ids = info.chained::<vk::PresentIdKHR>().map(|it| it.p_present_ids());
        let ids = ids.or(info.chained::<vk::PresentId2KHR>().map(|it| it.p_present_ids())).unwrap_or_default();
        for (swapchain, id) in info.p_swapchains().iter().zip(ids).filter(|it| *it.1 != 0) {
            let fence = self.new_fence(out);
            let Some(own) = self.swapchains.get_mut(swapchain.0) else { continue };
            own.presented.push_back((*id, fence));
            if own.presented.len() > PRESENTED_MAX {
                out.destroyed(own.presented.pop_front().map(|it| Destroyed::Fence(it.1)));
            }
            fences.push(fence);
        }
        fences
    }

    /// The host waited until an image was presented.
    fn wait_for_present(
        &mut self,
        swapchain: vk::SwapchainKHR,
        id: u64,
        result: vk::Result,
        out: &mut TrackerOutput<'_>,
    ) {
        let own = self.swapchains.get_mut(swapchain.0).filter(|_| is_acquired(result));
        let Some(own) = own else { return };
        let is_over = |it: &&(u64, FenceId)| it.0 <= id;
        let fences: Vec<FenceId> = own.presented.iter().filter(is_over).map(|it| it.1).collect();
        own.presented.retain(|it| it.0 > id);
        out.step(HostStep::WaitFences(fences.clone()));
        fences.into_iter().for_each(|it| out.destroyed(Some(Destroyed::Fence(it))));
    }

    /// Images are released without a present: all accesses to them must be complete.
    fn release_images(&mut self, info: View<'_, vk::ReleaseSwapchainImagesInfoKHR>, out: &mut TrackerOutput<'_>) {
        let indices = info.p_image_indices();
        let images: Vec<ResourceId> =
            indices.iter().filter_map(|it| self.swapchain_image(info.swapchain.0, *it)).collect();
        if images.len() != indices.len() {
            out.report_untracked("an image of a swapchain that nobody asked for");
        }
        out.step(HostStep::Present { queue: QueueId(0), waits: Vec::new(), images });
    }
}

impl TrackedSwapchain {
    fn from_create_info(info: View<'_, vk::SwapchainCreateInfoKHR>) -> TrackedSwapchain {
        let is_exclusive = info.image_sharing_mode == vk::SharingMode::EXCLUSIVE;
        let info = program::ImageDesc {
            format: info.image_format,
            extent: [info.image_extent.width.max(1), info.image_extent.height.max(1), 1],
            mips: 1,
            layers: info.image_array_layers,
            tiling: Tiling::Optimal,
            alias: false,
        };
        TrackedSwapchain { info, is_exclusive, images: Vec::new(), presented: VecDeque::new() }
    }
}

fn is_acquired(result: vk::Result) -> bool {
    result == vk::Result::SUCCESS || result == vk::Result::SUBOPTIMAL_KHR
}
