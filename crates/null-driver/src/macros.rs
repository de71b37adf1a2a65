//! What the generated entry points are made of.

/// Defines a function per command, and the way from a command to its function.
macro_rules! default_entry_points {
    ($($name:ident: $ty:ident = fn($($parameter:ty),*) -> $result:ty;)*) => {
        $(unsafe extern "system" fn $name($(_: $parameter),*) -> $result {
            Default::default()
        })*

        /// The default function of a command.
        pub fn entry_point(command: Command) -> FnPtr {
            static ENTRIES: &[fn() -> u64] = &[$(|| ($name as $ty as *const ()).expose_provenance() as u64,)*];
            FnPtr(ENTRIES[command as usize]())
        }
    };
}
