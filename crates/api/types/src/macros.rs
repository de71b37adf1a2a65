//! Macros of the generated files.

/// A number with a name of its own: a handle, an enum, a mask.
///
/// Each trait here costs the compiler 700 implementations; for more, take the number.
macro_rules! newtype {
    ($name:ident, $number:ty) => {
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $number);

        // SAFETY: transparent, and its one field is a number, of which every bit pattern is a value.
        unsafe impl $crate::pod::Pod for $name {}
    };
}

/// Makes a structure a plain value.
///
/// The implementations are by hand and few: there are thousands of structures, and each costs compile time.
macro_rules! plain {
    ($name:ident) => {
        image!($name);
        impl Copy for $name {}
        impl Clone for $name {
            fn clone(&self) -> $name {
                *self
            }
        }
    };
}

/// Makes the parameters or outputs of a command plain data.
macro_rules! image {
    ($name:ident) => {
        // SAFETY: the generator writes `repr(C)` before each such type, and gives it fields of numbers, `Ptr`, `FnPtr`, arrays
        // and other such types only.
        unsafe impl $crate::pod::Pod for $name {}
    };
}

/// Makes the compiler check the sizes that the generator computed.
macro_rules! sizes {
    ($($name:ident = $size:literal;)*) => {
        const _: () = {
            $(assert!(size_of::<$name>() == $size);)*
        };
    };
}

/// Safe views of a union's words as its members.
macro_rules! union_members {
    ($name:ident { $($member:ident: $ty:ty,)* }) => {
        impl $name {
            $(
                pub fn $member(&self) -> &$ty {
                    const {
                        assert!(size_of::<$ty>() <= size_of::<$name>() && align_of::<$ty>() <= align_of::<$name>());
                        $crate::pod::assert_pod::<$ty>();
                    }
                    // SAFETY: the assertion says that the member is not larger than the words, nor more aligned, and it is a
                    // `Pod`, of which every bit pattern is a value.
                    unsafe { &*self.words.as_ptr().cast() }
                }
            )*
        }
    };
}

/// The types of handles with their properties.
macro_rules! handle_types {
    ($($name:ident = $number:literal, $c_name:literal, $object:literal, $report:literal, $parent:expr, $dispatchable:literal;)*) => {
        /// The type of an object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum HandleType {
            $($name = $number,)*
        }

        impl HandleType {
            pub const ALL: &'static [HandleType] = &[$(HandleType::$name,)*];

            pub const fn from_number(number: u8) -> Option<HandleType> {
                match number {
                    $($number => Some(HandleType::$name),)*
                    _ => None,
                }
            }

            /// By `VkObjectType`.
            pub const fn from_object_type(number: i32) -> Option<HandleType> {
                match number {
                    $($object => Some(HandleType::$name),)*
                    _ => None,
                }
            }

            /// By `VkDebugReportObjectTypeEXT`.
            pub fn from_debug_report(number: i32) -> Option<HandleType> {
                Self::ALL.iter().copied().find(|it| number >= 0 && it.debug_report() == number)
            }

            /// The `VkDebugReportObjectTypeEXT`, or -1.
            pub const fn debug_report(self) -> i32 {
                match self {
                    $(HandleType::$name => $report,)*
                }
            }

            /// The `VkObjectType`.
            pub const fn object_type(self) -> i32 {
                match self {
                    $(HandleType::$name => $object,)*
                }
            }

            /// The name in C.
            pub const fn name(self) -> &'static str {
                match self {
                    $(HandleType::$name => $c_name,)*
                }
            }

            pub const fn parent(self) -> Option<HandleType> {
                match self {
                    $(HandleType::$name => $parent,)*
                }
            }

            pub const fn is_dispatchable(self) -> bool {
                match self {
                    $(HandleType::$name => $dispatchable,)*
                }
            }
        }
    };
}
