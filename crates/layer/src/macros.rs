//! What the generated dispatch tables are made of.

/// Defines a table with one function per command and how to fill it.
macro_rules! dispatch_table {
    ($(#[$doc:meta])* $table:ident { $($field:ident: $ty:ident = [$($name:literal),*],)* }) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $field: Option<$ty>,)*
        }

        impl $table {
            /// Fills the table. `next` gives the function of a name, or null.
            ///
            /// # Safety
            ///
            /// What `next` gives for a name must be the function of that name, for as long as the table is used.
            pub unsafe fn load(mut next: impl FnMut(&std::ffi::CStr) -> FnPtr) -> $table {
                $table {
                    $($field: {
                        let found = [$($name),*].into_iter().map(&mut next).find(|it| it.0 != 0).unwrap_or_default();
                        // SAFETY: null is none, and anything else is a function of this type by the caller's word.
                        unsafe { std::mem::transmute::<FnPtr, Option<$ty>>(found) }
                    },)*
                }
            }
        }
    };
}

/// Defines a function per command that shows the call to the watcher and passes it on.
macro_rules! shims {
    ($($name:ident: $command:ident, $params:ident, $ty:ident, $level:ident = fn($first:ident: $first_ty:ty $(, $parameter:ident: $parameter_ty:ty)*) -> $result:ty;)*) => {
        $(unsafe extern "system" fn $name<const CHAIN: usize>($first: $first_ty $(, $parameter: $parameter_ty)*) -> $result {
            // SAFETY: the first parameter is a dispatchable handle that is alive, by the command's valid usage.
            let Some(next) = (unsafe { $level::<CHAIN>($first.0) }).and_then(|it| it.table.$name) else {
                return Default::default();
            };
            let params = $params { $first $(, $parameter)* };
            // SAFETY: these are the parameters of this command, valid as the specification demands.
            unsafe { enter(Command::$command, &params) };
            // SAFETY: the application's own parameters, for the function of that name.
            let result = unsafe { next($first $(, $parameter)*) };
            // SAFETY: the same parameters, after the call returned.
            unsafe { leave(Command::$command, &params, result.bits()) };
            result
        })*

        /// The function that stands in for a command while somebody watches; null for one that has none.
        pub(crate) fn shim<const CHAIN: usize>(command: Command) -> FnPtr {
            match command {
                $(Command::$command => FnPtr(($name::<CHAIN> as $ty as *const ()).expose_provenance() as u64),)*
                _ => FnPtr::default(),
            }
        }
    };
}
