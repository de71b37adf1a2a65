//! A window of the display that the environment names: of Wayland, or of X11.

use std::ffi::CStr;

use lavascope_abi as vk;
use lavascope_abi::{Ptr, Structure};

use crate::call::functions::{Functions, driver};
use crate::port::instance::out;
use crate::present::virtual_swapchain::check;
use crate::present::{wayland, x11};

/// A window, until it is dropped.
pub(crate) enum ReplayWindow {
    Wayland(wayland::WaylandWindow),
    X11(x11::X11Window),
}

/// Extensions of an instance that can show something in one of them.
pub(crate) const EXTENSIONS: &[&CStr] = &[c"VK_KHR_surface", c"VK_KHR_wayland_surface", c"VK_KHR_xcb_surface"];

impl ReplayWindow {
    /// A window and the surface on it. Where both kinds of displays are there, that of Wayland, unless the driver
    /// cannot use it.
    pub(crate) fn open(
        functions: &Functions,
        instance: vk::Instance,
        extent: vk::Extent2D,
    ) -> Result<(ReplayWindow, vk::SurfaceKHR), String> {
        let has = |name: &str| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let mut why = "there is no display; set WAYLAND_DISPLAY or DISPLAY".to_owned();
        for (name, open) in [("WAYLAND_DISPLAY", open_wayland as OpenWindowFn), ("DISPLAY", open_x11)] {
            if !has(name) {
                continue;
            }
            match open(functions, instance, extent) {
                Ok(pair) => return Ok(pair),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// A window of X11 has a size of its own; one of Wayland is as large as what is shown in it.
    pub(crate) fn resize(&self, extent: vk::Extent2D) {
        if let ReplayWindow::X11(x) = self {
            x.resize(extent.width, extent.height);
        }
    }

    /// Reads pending events of the display, so that they do not accumulate.
    pub(crate) fn dispatch_events(&self) {
        match self {
            ReplayWindow::Wayland(wayland) => wayland.dispatch_events(),
            ReplayWindow::X11(x) => x.dispatch_events(),
        }
    }
}

type OpenWindowFn = fn(&Functions, vk::Instance, vk::Extent2D) -> Result<(ReplayWindow, vk::SurfaceKHR), String>;

const TITLE: &CStr = c"lavascope replay";

fn open_wayland(
    functions: &Functions,
    instance: vk::Instance,
    _: vk::Extent2D,
) -> Result<(ReplayWindow, vk::SurfaceKHR), String> {
    let window = wayland::WaylandWindow::open(TITLE)?;
    let (display, surface) = window.handles();
    let info = vk::WaylandSurfaceCreateInfoKHR {
        display: Ptr::new(display),
        surface: Ptr::new(surface),
        ..vk::WaylandSurfaceCreateInfoKHR::zeroed()
    };
    let mut handle = vk::SurfaceKHR(0);
    let made = driver!(
        functions,
        CreateWaylandSurfaceKHR,
        FnCreateWaylandSurfaceKHR(instance, Ptr::to(&info), Ptr::NULL, out(&mut handle))
    );
    check("a surface on the Wayland display", made)?;
    Ok((ReplayWindow::Wayland(window), handle))
}

fn open_x11(
    functions: &Functions,
    instance: vk::Instance,
    extent: vk::Extent2D,
) -> Result<(ReplayWindow, vk::SurfaceKHR), String> {
    let window = x11::X11Window::open(TITLE, extent.width, extent.height)?;
    let (connection, id) = window.handles();
    let info = vk::XcbSurfaceCreateInfoKHR {
        connection: Ptr::new(connection),
        window: id,
        ..vk::XcbSurfaceCreateInfoKHR::zeroed()
    };
    let mut handle = vk::SurfaceKHR(0);
    let made = driver!(
        functions,
        CreateXcbSurfaceKHR,
        FnCreateXcbSurfaceKHR(instance, Ptr::to(&info), Ptr::NULL, out(&mut handle))
    );
    check("a surface on the X display", made)?;
    Ok((ReplayWindow::X11(window), handle))
}
