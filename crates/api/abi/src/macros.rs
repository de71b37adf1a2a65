//! Macros of the generated files.

/// Ties a structure, or the image of a command, to its layout.
macro_rules! structure {
    ($name:ident, $layout:ident) => {
        // SAFETY: the generator makes the type and the layout of the same name out of one element of the registry; `sizes!`
        // makes the compiler compare their sizes.
        unsafe impl $crate::structure::Structure for $name {
            fn layout() -> &'static $crate::desc::Layout {
                &$layout
            }
        }
    };
}

/// Commands by number.
macro_rules! command_table {
    ($($name:ident = $number:literal, $desc:ident;)*) => {
        /// A command of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Command {
            $($name = $number,)*
        }

        /// The description of each command, by number.
        pub static COMMANDS: &[&CommandDesc] = &[$(&$desc,)*];

        impl Command {
            pub const ALL: &'static [Command] = &[$(Command::$name,)*];

            pub fn from_number(number: u16) -> Option<Command> {
                Self::ALL.get(usize::from(number)).copied()
            }

            pub const fn desc(self) -> &'static CommandDesc {
                COMMANDS[self as usize]
            }
        }
    };
}
