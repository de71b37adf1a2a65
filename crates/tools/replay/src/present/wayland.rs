//! A window of Wayland. It uses the system's libwayland-client, which is opened only if frames are shown.
//!
//! The library knows the basic interfaces; those of windows (xdg-shell) are passed to it as tables. A request is a
//! number and an array of arguments.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lavascope_platform::library::Library;

const LIBRARY: &str = "libwayland-client.so.0";

/// Requests, by their numbers in the protocol.
const DISPLAY_GET_REGISTRY: u32 = 1;
const REGISTRY_BIND: u32 = 0;
const COMPOSITOR_CREATE_SURFACE: u32 = 0;
const SURFACE_COMMIT: u32 = 6;
const SHELL_GET_SURFACE: u32 = 2;
const SHELL_PONG: u32 = 3;
const SHELL_SURFACE_GET_TOPLEVEL: u32 = 1;
const SHELL_SURFACE_ACK: u32 = 4;
const TOPLEVEL_SET_TITLE: u32 = 2;

/// How often the window asks for its first size.
const ROUNDS_MAX: u32 = 100;

#[repr(C)]
struct WlMessage {
    name: *const c_char,
    signature: *const c_char,
    types: *const *const Interface,
}

#[repr(C)]
struct Interface {
    name: *const c_char,
    version: c_int,
    method_count: c_int,
    methods: *const WlMessage,
    event_count: c_int,
    events: *const WlMessage,
}

// SAFETY: all values are statics of this file that nobody changes; their pointers lead to other statics.
unsafe impl Sync for WlMessage {}
// SAFETY: all values are statics of this file that nobody changes; their pointers lead to other statics.
unsafe impl Sync for Interface {}

/// No argument has a type that the library has to know: new objects are given theirs when they are made.
struct Types([*const Interface; 4]);
// SAFETY: the only value is a static of null pointers.
unsafe impl Sync for Types {}
static NO_TYPES: Types = Types([ptr::null(); 4]);

const fn message(name: &'static CStr, signature: &'static CStr) -> WlMessage {
    WlMessage { name: name.as_ptr(), signature: signature.as_ptr(), types: NO_TYPES.0.as_ptr() }
}

const fn interface(name: &'static CStr, methods: &'static [WlMessage], events: &'static [WlMessage]) -> Interface {
    let (method_count, event_count) = (methods.len() as c_int, events.len() as c_int);
    let (methods, events) = (methods.as_ptr(), events.as_ptr());
    Interface { name: name.as_ptr(), version: 1, method_count, methods, event_count, events }
}

static SHELL_METHODS: [WlMessage; 4] = [
    message(c"destroy", c""),
    message(c"create_positioner", c"n"),
    message(c"get_xdg_surface", c"no"),
    message(c"pong", c"u"),
];
static SHELL_EVENTS: [WlMessage; 1] = [message(c"ping", c"u")];
static SHELL: Interface = interface(c"xdg_wm_base", &SHELL_METHODS, &SHELL_EVENTS);

static SHELL_SURFACE_METHODS: [WlMessage; 5] = [
    message(c"destroy", c""),
    message(c"get_toplevel", c"n"),
    message(c"get_popup", c"n?oo"),
    message(c"set_window_geometry", c"iiii"),
    message(c"ack_configure", c"u"),
];
static SHELL_SURFACE_EVENTS: [WlMessage; 1] = [message(c"configure", c"u")];
static SHELL_SURFACE: Interface = interface(c"xdg_surface", &SHELL_SURFACE_METHODS, &SHELL_SURFACE_EVENTS);

static TOPLEVEL_METHODS: [WlMessage; 3] =
    [message(c"destroy", c""), message(c"set_parent", c"?o"), message(c"set_title", c"s")];
static TOPLEVEL_EVENTS: [WlMessage; 2] = [message(c"configure", c"iia"), message(c"close", c"")];
static TOPLEVEL: Interface = interface(c"xdg_toplevel", &TOPLEVEL_METHODS, &TOPLEVEL_EVENTS);

/// An object of the protocol here.
type Proxy = *mut c_void;

/// A function for an event, with any parameters.
type WlEventHandler = *const c_void;

/// The functions that are needed.
struct Client {
    connect: unsafe extern "C" fn(*const c_char) -> Proxy,
    disconnect: unsafe extern "C" fn(Proxy),
    roundtrip: unsafe extern "C" fn(Proxy) -> c_int,
    dispatch_pending: unsafe extern "C" fn(Proxy) -> c_int,
    flush: unsafe extern "C" fn(Proxy) -> c_int,
    request: unsafe extern "C" fn(Proxy, u32, *mut usize),
    create: unsafe extern "C" fn(Proxy, u32, *mut usize, *const Interface, u32) -> Proxy,
    add_listener: unsafe extern "C" fn(Proxy, *const WlEventHandler, *mut c_void) -> c_int,
    destroy: unsafe extern "C" fn(Proxy),
    /// Tables of the library, which is never closed.
    registry: &'static Interface,
    compositor: &'static Interface,
    surface: &'static Interface,
    /// Never closed: the driver uses it too.
    _library: ManuallyDrop<Library>,
}

/// The state that events change, and the answers to them.
struct WaylandState {
    client: Client,
    /// Numbers and names of what the compositor offers.
    globals: Mutex<Vec<(u32, Vec<u8>)>>,
    /// Whether the window may be shown.
    is_configured: AtomicBool,
}

/// A window, until it is dropped.
pub(crate) struct WaylandWindow {
    /// The state that events change: they have its address, so it does not move with the window. A `Box` would not do,
    /// since moving one asserts that no other pointer leads to its contents.
    state: Arc<WaylandState>,
    display: Proxy,
    surface: Proxy,
    /// All that was made of the protocol, in that order.
    proxies: Vec<Proxy>,
}

// SAFETY: the pointers are objects of libwayland, which belong to no thread: it locks its connections itself.
unsafe impl Send for WaylandWindow {}
// SAFETY: `&WaylandWindow` gives only `handles` and `dispatch_events`. libwayland locks its connections itself, and the events change
// only the mutex and the atomic of the `WaylandState`.
unsafe impl Sync for WaylandWindow {}

impl Client {
    fn open() -> Result<Client, String> {
        // SAFETY: the initializers of libwayland-client have no preconditions.
        let library = unsafe { Library::open(LIBRARY) }.map_err(|it| format!("{LIBRARY} cannot be opened: {it}"))?;
        macro_rules! symbol {
            ($name:literal) => {{
                // SAFETY: the headers of libwayland-client give the symbol the type of the field, which the compiler
                // infers. Its tables are constants, and the library is never closed.
                let found = unsafe { library.get($name) };
                found.map_err(|it| format!("{LIBRARY} lacks a function: {it}"))?
            }};
        }
        Ok(Client {
            connect: symbol!("wl_display_connect"),
            disconnect: symbol!("wl_display_disconnect"),
            roundtrip: symbol!("wl_display_roundtrip"),
            dispatch_pending: symbol!("wl_display_dispatch_pending"),
            flush: symbol!("wl_display_flush"),
            request: symbol!("wl_proxy_marshal_array"),
            create: symbol!("wl_proxy_marshal_array_constructor_versioned"),
            add_listener: symbol!("wl_proxy_add_listener"),
            destroy: symbol!("wl_proxy_destroy"),
            registry: symbol!("wl_registry_interface"),
            compositor: symbol!("wl_compositor_interface"),
            surface: symbol!("wl_surface_interface"),
            _library: ManuallyDrop::new(library),
        })
    }
}

/// Functions for the events of an object. They live for ever, as the library wants it.
struct WlListener<const N: usize>([WlEventHandler; N]);
// SAFETY: all values are statics of addresses of functions, which nobody changes.
unsafe impl<const N: usize> Sync for WlListener<N> {}

static REGISTRY_LISTENER: WlListener<2> = WlListener([on_global as WlEventHandler, on_global_remove as WlEventHandler]);
static SHELL_LISTENER: WlListener<1> = WlListener([on_ping as WlEventHandler]);
static SHELL_SURFACE_LISTENER: WlListener<1> = WlListener([on_surface_configure as WlEventHandler]);
static TOPLEVEL_LISTENER: WlListener<2> =
    WlListener([on_toplevel_configure as WlEventHandler, on_close as WlEventHandler]);

unsafe extern "C" fn on_global(state: *const WaylandState, _: Proxy, number: u32, name: *const c_char, _version: u32) {
    // SAFETY: `listen_to` gave the state of the window, which lives until the connection has ended; the protocol has a
    // text here, which the library ends with a zero.
    let (state, name) = unsafe { (&*state, CStr::from_ptr(name)) };
    let mut globals = state.globals.lock().unwrap_or_else(PoisonError::into_inner);
    globals.push((number, name.to_bytes().to_vec()));
}

unsafe extern "C" fn on_global_remove(_: *const WaylandState, _: Proxy, _number: u32) {}

unsafe extern "C" fn on_ping(state: *const WaylandState, shell: Proxy, serial: u32) {
    // SAFETY: `listen_to` gave the state of the window, which lives until the connection has ended. The library calls
    // this for a live object, and the request has one argument.
    unsafe { ((*state).client.request)(shell, SHELL_PONG, [serial as usize].as_mut_ptr()) };
}

unsafe extern "C" fn on_surface_configure(state: *const WaylandState, surface: Proxy, serial: u32) {
    // SAFETY: `listen_to` gave the state of the window, which lives until the connection has ended. The library calls
    // this for a live object, and the request has one argument.
    unsafe {
        ((*state).client.request)(surface, SHELL_SURFACE_ACK, [serial as usize].as_mut_ptr());
        (*state).is_configured.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn on_toplevel_configure(
    _: *const WaylandState,
    _: Proxy,
    _width: i32,
    _height: i32,
    _states: *const c_void,
) {
}

unsafe extern "C" fn on_close(_: *const WaylandState, _: Proxy) {}

impl WaylandWindow {
    /// A window on the display of the environment.
    pub(crate) fn open(title: &CStr) -> Result<WaylandWindow, String> {
        let client = Client::open()?;
        // SAFETY: the function takes null for the display that the environment names.
        let display = unsafe { (client.connect)(ptr::null()) };
        if display.is_null() {
            return Err("there is no Wayland display; set WAYLAND_DISPLAY and XDG_RUNTIME_DIR".to_owned());
        }
        let state = WaylandState { client, globals: Mutex::default(), is_configured: AtomicBool::new(false) };
        let mut window =
            WaylandWindow { state: Arc::new(state), display, surface: ptr::null_mut(), proxies: Vec::new() };
        window.create_window(title)?;
        Ok(window)
    }

    fn create_window(&mut self, title: &CStr) -> Result<(), String> {
        let Client { registry, compositor, surface, .. } = self.state.client;
        let registry = self.create(self.display, DISPLAY_GET_REGISTRY, &mut [0], registry)?;
        self.listen_to(registry, &REGISTRY_LISTENER);
        self.roundtrip()?;
        let compositor = self.bind(registry, c"wl_compositor", compositor)?;
        let shell = self.bind(registry, SHELL_NAME, &raw const SHELL)?;
        self.listen_to(shell, &SHELL_LISTENER);
        self.surface = self.create(compositor, COMPOSITOR_CREATE_SURFACE, &mut [0], surface)?;
        let mut arguments = [0, self.surface.expose_provenance()];
        let shown = self.create(shell, SHELL_GET_SURFACE, &mut arguments, &raw const SHELL_SURFACE)?;
        self.listen_to(shown, &SHELL_SURFACE_LISTENER);
        let toplevel = self.create(shown, SHELL_SURFACE_GET_TOPLEVEL, &mut [0], &raw const TOPLEVEL)?;
        self.listen_to(toplevel, &TOPLEVEL_LISTENER);
        // SAFETY: live objects of this connection. The title is the one argument of its request, and ends with a zero;
        // a commit has none.
        unsafe {
            let client = &self.state.client;
            (client.request)(toplevel, TOPLEVEL_SET_TITLE, [title.as_ptr().expose_provenance()].as_mut_ptr());
            (client.request)(self.surface, SURFACE_COMMIT, [0].as_mut_ptr());
        }
        // Nothing may be shown before the compositor has sent the size of the window.
        for _ in 0..ROUNDS_MAX {
            self.roundtrip()?;
            if self.state.is_configured.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        Err("the Wayland display does not show the window".to_owned())
    }

    /// Makes an object by a request of another one.
    fn create(
        &mut self,
        of: Proxy,
        request: u32,
        arguments: &mut [usize],
        interface: *const Interface,
    ) -> Result<Proxy, String> {
        // SAFETY: a live object of this connection, and as many arguments as the signature of the request has;
        // `interface` is a static of the library or of this file, with all requests that are made and all events up to
        // version 1.
        let made = unsafe { (self.state.client.create)(of, request, arguments.as_mut_ptr(), interface, 1) };
        if made.is_null() {
            return Err("the Wayland display has no registry".to_owned());
        }
        self.proxies.push(made);
        Ok(made)
    }

    /// Takes something that the compositor offers.
    fn bind(&mut self, registry: Proxy, name: &CStr, interface: *const Interface) -> Result<Proxy, String> {
        let globals = self.state.globals.lock().unwrap_or_else(PoisonError::into_inner);
        let number = globals.iter().find(|it| it.1 == name.to_bytes()).map(|it| it.0 as usize);
        drop(globals);
        let number = number.ok_or_else(|| format!("the Wayland display does not have {}", name.to_string_lossy()))?;
        self.create(registry, REGISTRY_BIND, &mut [number, name.as_ptr().expose_provenance(), 1, 0], interface)
    }

    fn listen_to<const N: usize>(&self, proxy: Proxy, events: &'static WlListener<N>) {
        let state = Arc::as_ptr(&self.state).cast_mut().cast();
        // SAFETY: a live object of this connection, and a static with a function for each of its events up to version
        // 1. They read the state only, which `drop` keeps until the connection has ended.
        unsafe { (self.state.client.add_listener)(proxy, events.0.as_ptr(), state) };
    }

    /// Waits until the compositor has answered all requests.
    fn roundtrip(&self) -> Result<(), String> {
        // SAFETY: `open` made the connection, and only `drop` ends it.
        match unsafe { (self.state.client.roundtrip)(self.display) } < 0 {
            true => Err("the Wayland display does not answer".to_owned()),
            false => Ok(()),
        }
    }

    /// What the driver needs: the connection, and the surface.
    pub(crate) fn handles(&self) -> (u64, u64) {
        (self.display.expose_provenance() as u64, self.surface.expose_provenance() as u64)
    }

    /// Answers requests of the compositor. The driver reads the events while it waits for the compositor.
    pub(crate) fn dispatch_events(&self) {
        // SAFETY: `open` made the connection, and only `drop` ends it.
        unsafe {
            (self.state.client.dispatch_pending)(self.display);
            (self.state.client.flush)(self.display);
        }
    }
}

const SHELL_NAME: &CStr = c"xdg_wm_base";

impl Drop for WaylandWindow {
    fn drop(&mut self) {
        // SAFETY: `&mut self` guarantees that nobody uses the objects, and surfaces of Vulkan are destroyed before
        // their window. The newest object goes first, and the connection after all of them; the state is dropped
        // afterwards.
        unsafe {
            for proxy in self.proxies.drain(..).rev() {
                (self.state.client.destroy)(proxy);
            }
            (self.state.client.disconnect)(self.display);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol's own numbers: a request is named by its place.
    #[test]
    fn requests_stand_at_their_numbers() {
        let name = |interface: &Interface, request: u32| {
            assert!((request as c_int) < interface.method_count);
            // SAFETY: the static has `method_count` messages, and their names are literals.
            unsafe { CStr::from_ptr((*interface.methods.add(request as usize)).name) }
        };
        assert_eq!(name(&SHELL, SHELL_GET_SURFACE), c"get_xdg_surface");
        assert_eq!(name(&SHELL, SHELL_PONG), c"pong");
        assert_eq!(name(&SHELL_SURFACE, SHELL_SURFACE_GET_TOPLEVEL), c"get_toplevel");
        assert_eq!(name(&SHELL_SURFACE, SHELL_SURFACE_ACK), c"ack_configure");
        assert_eq!(name(&TOPLEVEL, TOPLEVEL_SET_TITLE), c"set_title");
    }
}
