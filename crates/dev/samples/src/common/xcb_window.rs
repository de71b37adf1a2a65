//! A window of an X server, for drivers without headless surfaces. The X library is opened when needed.

use std::ffi::{c_char, c_int, c_void};

use ash::ext;
use lavascope_platform::library::Library;

use crate::common::SampleInstance;
use crate::failure::Failure;

/// Side of the window in pixels.
const SIZE: u16 = 64;

pub(crate) struct XcbWindow {
    pub(crate) connection: *mut c_void,
    pub(crate) window: u32,
    xcb: Library,
}

/// `xcb_screen_iterator_t`; the first member of a screen is its root window.
#[repr(C)]
struct ScreenIterator {
    screen: *const u32,
    remaining: c_int,
    index: c_int,
}

type Connect = unsafe extern "C" fn(*const c_char, *mut c_int) -> *mut c_void;
type ConnectionError = unsafe extern "C" fn(*mut c_void) -> c_int;
type Setup = unsafe extern "C" fn(*mut c_void) -> *const c_void;
type Roots = unsafe extern "C" fn(*const c_void) -> ScreenIterator;
type Id = unsafe extern "C" fn(*mut c_void) -> u32;
type Create =
    unsafe extern "C" fn(*mut c_void, u8, u32, u32, i16, i16, u16, u16, u16, u16, u32, u32, *const c_void) -> u32;
type Map = unsafe extern "C" fn(*mut c_void, u32) -> u32;
type Disconnect = unsafe extern "C" fn(*mut c_void);

impl XcbWindow {
    /// A window, unless the driver has headless surfaces.
    pub(crate) fn if_needed() -> Result<Option<XcbWindow>, Failure> {
        match SampleInstance::offers(ext::headless_surface::NAME)? {
            true => Ok(None),
            false => XcbWindow::open().map(Some),
        }
    }

    /// Opens a window on the server that `DISPLAY` names.
    fn open() -> Result<XcbWindow, Failure> {
        let lacks = |what: &str| Failure::Unsupported(format!("{what}, and no driver has VK_EXT_headless_surface"));
        // SAFETY: the initializers of the X library have no preconditions.
        let xcb = unsafe { Library::open("libxcb.so.1") }.map_err(|_| lacks("libxcb.so.1 is not there"))?;
        // SAFETY: the types are those of xcb/xcb.h, and the library is open as long as the connection. `xcb_connect`
        // never returns null. Where the iterator says that a screen is left, its data begins with the root window.
        let (connection, window) = unsafe {
            let connection = symbol::<Connect>(&xcb, "xcb_connect")?(std::ptr::null(), std::ptr::null_mut());
            if symbol::<ConnectionError>(&xcb, "xcb_connection_has_error")?(connection) != 0 {
                symbol::<Disconnect>(&xcb, "xcb_disconnect")?(connection);
                return Err(lacks("there is no X server to connect to"));
            }
            let setup = symbol::<Setup>(&xcb, "xcb_get_setup")?(connection);
            let screens = symbol::<Roots>(&xcb, "xcb_setup_roots_iterator")?(setup);
            if screens.remaining <= 0 {
                symbol::<Disconnect>(&xcb, "xcb_disconnect")?(connection);
                return Err(lacks("the X server has no screen"));
            }
            let root = *screens.screen;
            let window = symbol::<Id>(&xcb, "xcb_generate_id")?(connection);
            // Depth, class and visual are the parent's.
            let create = symbol::<Create>(&xcb, "xcb_create_window")?;
            create(connection, 0, window, root, 0, 0, SIZE, SIZE, 0, 0, 0, 0, std::ptr::null());
            symbol::<Map>(&xcb, "xcb_map_window")?(connection, window);
            symbol::<ConnectionError>(&xcb, "xcb_flush")?(connection);
            (connection, window)
        };
        Ok(XcbWindow { connection, window, xcb })
    }
}

impl Drop for XcbWindow {
    fn drop(&mut self) {
        // SAFETY: the type is that of xcb/xcb.h. `open` made the connection, which only this closes; samples declare
        // the window before the `Gpu`, so that its surface is gone by now.
        unsafe {
            if let Ok(disconnect) = symbol::<Disconnect>(&self.xcb, "xcb_disconnect") {
                disconnect(self.connection);
            }
        }
    }
}

/// # Safety
///
/// `T` is the type that the headers of the library give to the function `name`.
unsafe fn symbol<T: Copy>(library: &Library, name: &str) -> Result<T, Failure> {
    // SAFETY: `T` is the type of the symbol, by the contract of this function; nobody uses it after the window is dropped.
    unsafe { library.get(name) }.map_err(|error| Failure::Unsupported(error.to_string()))
}
