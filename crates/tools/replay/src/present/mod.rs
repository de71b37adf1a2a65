//! Swapchains, windows and screenshots.

pub(crate) mod real_swapchain;
pub(crate) mod screenshot;
pub(crate) mod virtual_swapchain;
pub(crate) mod wayland;
pub(crate) mod window;
pub(crate) mod x11;
