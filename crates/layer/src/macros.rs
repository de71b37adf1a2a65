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
