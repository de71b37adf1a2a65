//! A window of X11. It uses the system's libxcb, which is opened only if frames are shown.

use std::ffi::{CStr, c_int, c_void};
use std::mem::ManuallyDrop;

use lavascope_platform::library::{Library, c_free};

const LIBRARY: &str = "libxcb.so.1";

/// Numbers of the X protocol.
const INPUT_OUTPUT: u16 = 1;
const REPLACE: u8 = 0;
const ATOM_STRING: u32 = 31;
const ATOM_WM_NAME: u32 = 39;
const WIDTH_AND_HEIGHT: u16 = 4 | 8;

/// The first members of the server's description of a screen.
#[repr(C)]
struct XScreen {
    root: u32,
    default_colormap: u32,
    white_pixel: u32,
    black_pixel: u32,
    current_input_masks: u32,
    pixels: [u16; 2],
    millimeters: [u16; 2],
    installed_maps: [u16; 2],
    root_visual: u32,
    backing_stores: u8,
    save_unders: u8,
    root_depth: u8,
}

#[repr(C)]
struct XScreens {
    data: *const XScreen,
    rest: c_int,
    index: c_int,
}

/// The functions that are needed; what the server answers to them is not.
struct Xcb {
    connect: unsafe extern "C" fn(*const u8, *mut c_int) -> *mut c_void,
    has_error: unsafe extern "C" fn(*mut c_void) -> c_int,
    disconnect: unsafe extern "C" fn(*mut c_void),
    setup: unsafe extern "C" fn(*mut c_void) -> *const c_void,
    screens: unsafe extern "C" fn(*const c_void) -> XScreens,
    generate_id: unsafe extern "C" fn(*mut c_void) -> u32,
    create_window:
        unsafe extern "C" fn(*mut c_void, u8, u32, u32, i16, i16, u16, u16, u16, u16, u32, u32, *const u32) -> u32,
    map_window: unsafe extern "C" fn(*mut c_void, u32) -> u32,
    configure: unsafe extern "C" fn(*mut c_void, u32, u16, *const u32) -> u32,
    change_property: unsafe extern "C" fn(*mut c_void, u8, u32, u32, u32, u8, u32, *const u8) -> u32,
    flush: unsafe extern "C" fn(*mut c_void) -> c_int,
    poll: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    /// Never closed: the driver uses it too.
    _library: ManuallyDrop<Library>,
}

/// A window, until it is dropped.
pub(crate) struct X11Window {
    xcb: Xcb,
    connection: *mut c_void,
    id: u32,
}

// SAFETY: a connection of libxcb belongs to no thread; the library locks it itself.
unsafe impl Send for X11Window {}
// SAFETY: `&X11Window` only makes requests and takes events, for which libxcb locks the connection itself.
unsafe impl Sync for X11Window {}

impl Xcb {
    fn open() -> Result<Xcb, String> {
        // SAFETY: the initializers of libxcb have no preconditions.
        let library = unsafe { Library::open(LIBRARY) }.map_err(|it| format!("{LIBRARY} cannot be opened: {it}"))?;
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: xcb/xcb.h and xcb/xproto.h give the symbol the type of the field, which the compiler infers.
                let found = unsafe { library.get($name) };
                found.map_err(|it| format!("{LIBRARY} lacks a function: {it}"))?
            }};
        }
        Ok(Xcb {
            connect: function!("xcb_connect"),
            has_error: function!("xcb_connection_has_error"),
            disconnect: function!("xcb_disconnect"),
            setup: function!("xcb_get_setup"),
            screens: function!("xcb_setup_roots_iterator"),
            generate_id: function!("xcb_generate_id"),
            create_window: function!("xcb_create_window"),
            map_window: function!("xcb_map_window"),
            configure: function!("xcb_configure_window"),
            change_property: function!("xcb_change_property"),
            flush: function!("xcb_flush"),
            poll: function!("xcb_poll_for_event"),
            _library: ManuallyDrop::new(library),
        })
    }
}

impl X11Window {
    /// A window of this size on the display of the environment.
    pub(crate) fn open(title: &CStr, width: u32, height: u32) -> Result<X11Window, String> {
        let xcb = Xcb::open()?;
        // SAFETY: the function takes null for the display that the environment names, and null for no number of a
        // screen.
        let connection = unsafe { (xcb.connect)(std::ptr::null(), std::ptr::null_mut()) };
        // SAFETY: `xcb_connect` never returns null; the function takes connections that failed, too.
        if unsafe { (xcb.has_error)(connection) } != 0 {
            // SAFETY: a connection that failed is also given back, once; nobody uses it afterwards.
            unsafe { (xcb.disconnect)(connection) };
            return Err("there is no X display; set DISPLAY".to_owned());
        }
        let size = |it: u32| u16::try_from(it).unwrap_or(u16::MAX).max(1);
        // SAFETY: the connection has no error. The setup lies in its memory; where the iterator says that a screen is
        // left, its data begins with an `XScreen`. The lists of values are empty, and the title has `length` bytes.
        let id = unsafe {
            let XScreens { data: screen, rest, .. } = (xcb.screens)((xcb.setup)(connection));
            if screen.is_null() || rest <= 0 {
                (xcb.disconnect)(connection);
                return Err("the X display has no screen".to_owned());
            }
            let id = (xcb.generate_id)(connection);
            let (root, visual) = ((*screen).root, (*screen).root_visual);
            let (width, height) = (size(width), size(height));
            let none = std::ptr::null();
            (xcb.create_window)(connection, 0, id, root, 0, 0, width, height, 0, INPUT_OUTPUT, visual, 0, none);
            let text = title.to_bytes();
            let length = text.len() as u32;
            (xcb.change_property)(connection, REPLACE, id, ATOM_WM_NAME, ATOM_STRING, 8, length, text.as_ptr());
            (xcb.map_window)(connection, id);
            (xcb.flush)(connection);
            id
        };
        Ok(X11Window { xcb, connection, id })
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        let values = [width, height];
        // SAFETY: `open` made the connection, and only `drop` ends it; there are as many values as bits in the mask.
        unsafe {
            (self.xcb.configure)(self.connection, self.id, WIDTH_AND_HEIGHT, values.as_ptr());
            (self.xcb.flush)(self.connection);
        }
    }

    /// What the driver needs: the connection, and the number of the window.
    pub(crate) fn handles(&self) -> (u64, u32) {
        (self.connection.expose_provenance() as u64, self.id)
    }

    /// Reads pending events of the server, so that they do not accumulate.
    pub(crate) fn dispatch_events(&self) {
        // SAFETY: `open` made the connection, and only `drop` ends it. By xcb/xcb.h, an event is memory of `malloc`
        // that the caller frees.
        unsafe {
            loop {
                let event = (self.xcb.poll)(self.connection);
                if event.is_null() {
                    return;
                }
                c_free(event);
            }
        }
    }
}

impl Drop for X11Window {
    fn drop(&mut self) {
        // SAFETY: `open` made the connection, and this ends it once. Surfaces of Vulkan are destroyed before their
        // window.
        unsafe { (self.xcb.disconnect)(self.connection) };
    }
}
