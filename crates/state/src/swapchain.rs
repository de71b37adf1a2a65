//! Swapchains: images that come from elsewhere, and go there to be shown.

use lavascope_abi as vk;
use lavascope_event::{Call, Outcome, View, Views};
use lavascope_program::{self as program, QueueId, ResourceId, SemaphoreId, Step, Tiling};

use crate::device::{Device, Event};
use crate::format;
use crate::image::{Image, is_sane};
use crate::listener::Out;

pub(crate) struct Swapchain {
    info: program::Image,
    is_exclusive: bool,
    /// By index, as far as somebody asked for them.
    images: Vec<vk::Image>,
}

impl Device {
    pub(crate) fn swapchain_commands(&mut self, event: Event<'_>, out: &mut Out<'_>) -> bool {
        match (event.call, event.outcome) {
            (Call::CreateSwapchainKHR(it), Some(Outcome::CreateSwapchainKHR(made))) => {
                if let (Some(info), Some(handle)) = (it.p_create_info(), made.p_swapchain()) {
                    self.swapchains.insert(handle.0, Swapchain::of(info));
                }
            }
            (Call::CreateSharedSwapchainsKHR(it), Some(Outcome::CreateSharedSwapchainsKHR(made))) => {
                self.create_shared(it.p_create_infos(), made.p_swapchains());
            }
            (Call::DestroySwapchainKHR(it), None) => self.destroy_swapchain(it.swapchain.0, out),
            (Call::GetSwapchainImagesKHR(it), Some(Outcome::GetSwapchainImagesKHR(done))) => {
                self.add_swapchain_images(it.swapchain.0, done.p_swapchain_images(), out);
            }
            (Call::AcquireNextImageKHR(it), Some(Outcome::AcquireNextImageKHR(done))) => {
                let index = done.p_image_index().copied().filter(|_| is_acquired(done.result));
                self.acquire(it.swapchain.0, index, it.semaphore, it.fence, out);
            }
            (Call::AcquireNextImage2KHR(it), Some(Outcome::AcquireNextImage2KHR(done))) => {
                let index = done.p_image_index().copied().filter(|_| is_acquired(done.result));
                if let Some(info) = it.p_acquire_info() {
                    self.acquire(info.swapchain.0, index, info.semaphore, info.fence, out);
                }
            }
            _ => return false,
        }
        true
    }

    fn create_shared(&mut self, infos: Views<'_, vk::SwapchainCreateInfoKHR>, handles: &[vk::SwapchainKHR]) {
        for (info, handle) in infos.iter().zip(handles) {
            self.swapchains.insert(handle.0, Swapchain::of(info));
        }
    }

    fn destroy_swapchain(&mut self, handle: u64, out: &mut Out<'_>) {
        let Some(swapchain) = self.swapchains.remove(handle) else { return };
        for image in swapchain.images {
            if let Some(image) = self.images.remove(image.0) {
                self.destroy_resource(image.resource, 0, out);
            }
        }
    }

    fn add_swapchain_images(&mut self, handle: u64, images: &[vk::Image], out: &mut Out<'_>) {
        let Some(swapchain) = self.swapchains.get(handle).filter(|it| is_sane(&it.info)) else { return };
        let (info, is_exclusive) = (swapchain.info.clone(), swapchain.is_exclusive);
        for image in images.iter().filter(|it| it.0 != 0) {
            if self.images.get(image.0).is_some() {
                continue;
            }
            let mut own = Image {
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
                is_exclusive,
            };
            own.resource = Some(self.add_resource(image.0, &own.with(None), out));
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
        out: &mut Out<'_>,
    ) {
        let Some(index) = index else { return };
        let Some(image) = self.swapchain_image(swapchain, index) else {
            out.missing("an image of a swapchain that nobody asked for");
            return;
        };
        let semaphore = self.semaphores.get(semaphore.0).map(|it| it.id);
        out.step(Step::Acquire { image, semaphore, fence: self.fences.get(fence.0).copied() });
    }

    pub(crate) fn present(&mut self, queue: QueueId, info: View<'_, vk::PresentInfoKHR>, out: &mut Out<'_>) {
        let pairs = info.p_swapchains().iter().zip(info.p_image_indices());
        let images: Vec<ResourceId> =
            pairs.filter_map(|(swapchain, index)| self.swapchain_image(swapchain.0, *index)).collect();
        let semaphore = |it: &vk::Semaphore| Some(self.semaphores.get(it.0)?.id);
        let waits: Vec<SemaphoreId> = info.p_wait_semaphores().iter().filter_map(semaphore).collect();
        if images.len() != info.swapchain_count as usize || waits.len() != info.wait_semaphore_count as usize {
            out.missing("a semaphore, or an image of a swapchain, that is not known");
        }
        if info.chained::<vk::SwapchainPresentFenceInfoKHR>().is_some() {
            out.missing("fences that presentation signals");
        }
        out.step(Step::Present { queue, waits, images });
    }
}

impl Swapchain {
    fn of(info: View<'_, vk::SwapchainCreateInfoKHR>) -> Swapchain {
        let is_exclusive = info.image_sharing_mode == vk::SharingMode::EXCLUSIVE;
        let info = program::Image {
            format: info.image_format,
            extent: [info.image_extent.width.max(1), info.image_extent.height.max(1), 1],
            mips: 1,
            layers: info.image_array_layers,
            tiling: Tiling::Optimal,
            alias: false,
        };
        Swapchain { info, is_exclusive, images: Vec::new() }
    }
}

fn is_acquired(result: vk::Result) -> bool {
    result == vk::Result::SUCCESS || result == vk::Result::SUBOPTIMAL_KHR
}
