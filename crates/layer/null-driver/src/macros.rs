//! The macros of the generated entry points: one for each way of answering a command.
//!
//! Every entry point exists twice: plain, and with a line in the log (`log.rs`) before it.

/// The address of a function with the type of its command.
macro_rules! address {
    ($name:expr, $ty:ident) => {
        FnPtr(($name as $ty as *const ()).expose_provenance() as u64)
    };
}

/// Commands that are accepted without any effect.
macro_rules! empty {
    ($($name:ident: $command:ident, $ty:ident = fn($($parameter:ty),*) -> $result:ty;)*) => {
        mod nothing {
            use crate::calls::command_return::CommandReturn;
            use lavascope_abi::*;

            $(unsafe extern "system" fn $name<const LOGS: bool>($(_: $parameter),*) -> $result {
                if LOGS {
                    crate::calls::command_log::log_command(Command::$command);
                }
                CommandReturn::success()
            })*

            pub(crate) fn empty<const LOGS: bool>(command: Command) -> Option<FnPtr> {
                match command {
                    $(Command::$command => Some(address!($name::<LOGS>, $ty)),)*
                    _ => None,
                }
            }
        }
        pub(crate) use nothing::empty;
    };
}

/// Commands whose outputs the tables describe well enough.
macro_rules! by_table {
    ($($name:ident: $command:ident, $params:ident, $ty:ident = fn($($parameter:ident: $parameter_ty:ty),*) -> $result:ty;)*) => {
        mod table {
            use crate::calls::command_return::{CommandReturn, catch_panic};
            use lavascope_abi::*;

            $(unsafe extern "system" fn $name<const LOGS: bool>($($parameter: $parameter_ty),*) -> $result {
                if LOGS {
                    crate::calls::command_log::log_command(Command::$command);
                }
                let params = $params { $($parameter),* };
                // SAFETY: the loader and the application call this entry point with the parameters of this command,
                // whose valid usage (its `VUID-vk…-parameter` rules) says that pointers and handles are valid until it
                // returns.
                let work = || unsafe { crate::calls::described_outputs::write_outputs(Command::$command, &params) };
                catch_panic(stringify!($command), || CommandReturn::from_result(work()), CommandReturn::failure)
            })*

            pub(crate) fn by_table<const LOGS: bool>(command: Command) -> Option<FnPtr> {
                match command {
                    $(Command::$command => Some(address!($name::<LOGS>, $ty)),)*
                    _ => None,
                }
            }
        }
        pub(crate) use table::by_table;
    };
}

/// Commands with a function of their own; `$finder` gives their entry points.
macro_rules! hand_written {
    ($module:ident, $finder:ident, $($name:ident: $command:ident, $params:ident, $ty:ident = $home:ident fn($($parameter:ident: $parameter_ty:ty),*) -> $result:ty;)*) => {
        mod $module {
            use crate::calls::command_return::{CommandReturn, catch_panic};
            use crate::calls::application_memory::ApplicationMemory;
            use lavascope_abi::*;

            $(unsafe extern "system" fn $name<const LOGS: bool>($($parameter: $parameter_ty),*) -> $result {
                if LOGS {
                    crate::calls::command_log::log_command(Command::$command);
                }
                let params = $params { $($parameter),* };
                // SAFETY: the loader and the application call this entry point with the parameters of this command,
                // whose valid usage (its `VUID-vk…-parameter` rules) says that pointers and handles are valid until it
                // returns; `c` is used until then.
                let c = unsafe { ApplicationMemory::in_call() };
                catch_panic(stringify!($command), || crate::$home::$name(c, &params), CommandReturn::failure)
            })*

            pub(crate) fn $finder<const LOGS: bool>(command: Command) -> Option<FnPtr> {
                match command {
                    $(Command::$command => Some(address!($name::<LOGS>, $ty)),)*
                    _ => None,
                }
            }
        }
        pub(crate) use $module::$finder;
    };
}

macro_rules! by_hand {
    ($($tokens:tt)*) => { hand_written! { hand, by_hand, $($tokens)* } };
}

macro_rules! by_hand_in_transfers {
    ($($tokens:tt)*) => { hand_written! { transfers, by_hand_in_transfers, $($tokens)* } };
}
