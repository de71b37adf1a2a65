//! The macros of the generated dispatch tables and shims.

/// Defines a table with one function per command and how to fill it.
macro_rules! dispatch_table {
    ($(#[$doc:meta])* $table:ident { $($field:ident: $ty:ident = [$($name:literal),*],)* }) => {
        $(#[$doc])*
        pub struct $table {
            $(pub $field: Option<$ty>,)*
        }

        impl $table {
            /// Fills the table. `next` returns the function of a name, or null.
            ///
            /// # Safety
            ///
            /// What `next` returns for the name of a command must be null or a function with the prototype of that
            /// command, for as long as the table is used.
            pub unsafe fn load(mut next: impl FnMut(&std::ffi::CStr) -> FnPtr) -> $table {
                $table {
                    $($field: {
                        let found = [$($name),*].into_iter().map(&mut next).find(|it| it.0 != 0).unwrap_or_default();
                        // SAFETY: null is none. By the contract of `load` anything else has the prototype of a command
                        // of these names, which are those that have this type in the registry.
                        unsafe { std::mem::transmute::<FnPtr, Option<$ty>>(found) }
                    },)*
                }
            }
        }
    };
}

/// Defines a function for each command. It publishes the call to the listeners, and passes the call on.
///
/// Each line of `shims!` in `generated/mod.rs` is one command. That of `vkCmdDraw` begins with `cmd_draw: CmdDraw,
/// CmdDrawParams, FnCmdDraw, device_of_command_buffer, [fast_pack::cmd_draw], Silent`: the command and its types, how
/// to find the device that it is called on, the generated code that packs it, and that it returns nothing.
macro_rules! shims {
    ($($name:ident: $command:ident, $params:ident, $ty:ident, $level:ident, [$($fast_pack:path)?], $leave:ident = fn($first:ident: $first_ty:ty $(, $parameter:ident: $parameter_ty:ty)*) -> $result:ty;)*) => {
        $(unsafe extern "system" fn $name($first: $first_ty $(, $parameter: $parameter_ty)*) -> $result {
            // `$level` finds the instance or device of the handle, whose table has the next function, and the thread.
            // SAFETY: the implicit VUID of the command for its first parameter (`VUID-vkX-device-parameter` and the
            // like) makes that a dispatchable handle that is alive. It stays so until the shim returns: host access to
            // it is externally synchronized, so no other thread may destroy it meanwhile.
            let Some(called) = (unsafe { $level($first.0) }) else { return Default::default() };
            let Some(next) = called.owner.table.$name else { return Default::default() };
            let params = $params { $first $(, $parameter)* };
            let order = const { CommandOrdering::of(Command::$command) };
            // SAFETY: the registry gives the shim of a command that command's parameters, in their order. The
            // application called it with them, so that they obey the command's VUIDs until it returns.
            let entered = unsafe { enter_call!(called, $command, order, &params, $($fast_pack)?) };
            // Not in a function of its own, so that few frames lie between the debugger and the application.
            if entered.is_special() && entered.is_stop_wanted() {
                lavascope_break_here();
            }
            let result = if entered.is_special() && entered.is_skipped_by_callback() {
                ReturnBits::skipped_result()
            } else {
                // SAFETY: the table has the next function of this command for this instance or device
                // (`load`), and gets what the application passed to the command.
                unsafe { next($first $(, $parameter)*) }
            };
            // SAFETY: `entered` is of this call, on this thread, and `params` are its parameters; the application's
            // memory stays until the shim returns. `result` is what the call returned. Only commands that are recorded
            // or submitted are skipped: they have no outputs, or `VK_ERROR_VALIDATION_FAILED_EXT` as the result, which
            // writes none.
            unsafe { leave_call!($leave, entered, called, $command, order, &params, result) };
            if ReturnBits::is_device_lost(&result) {
                called.owner.on_device_lost(Command::$command);
            }
            // A submission, presentation or wait: calls the messengers with what async validation found meanwhile
            // (`Inbox::deliver`).
            if const { delivers_messages(Command::$command) } {
                called.owner.deliver_messages();
            }
            result
        })*

        /// The shim of a command, which replaces the driver's function if there are listeners; null if the command has
        /// none.
        pub(crate) fn shim(command: Command) -> FnPtr {
            match command {
                $(Command::$command => FnPtr(($name as $ty as *const ()).expose_provenance() as u64),)*
                _ => FnPtr::default(),
            }
        }

        /// The driver's function for a recorded command without outputs and result; null for other commands.
        pub(crate) fn unshimmed(table: &DeviceTable, command: Command) -> FnPtr {
            match command {
                $(Command::$command => unshimmed!($level, $leave, table, $name),)*
                _ => FnPtr::default(),
            }
        }
    };
}

/// The function in a table, for recorded commands without outputs and result.
macro_rules! unshimmed {
    (device_of_command_buffer, Silent, $table:ident, $name:ident) => {
        $table.$name.map_or(FnPtr::default(), |it| FnPtr((it as *const ()).expose_provenance() as u64))
    };
    ($level:ident, $leave:ident, $table:ident, $name:ident) => {
        FnPtr::default()
    };
}

/// Enters a call: with the generated code of the command in `fast_pack`, or by the command's description if it has none.
macro_rules! enter_call {
    ($called:ident, $command:ident, $order:ident, $params:expr,) => {
        enter_by_desc(
            $called.owner.handles(),
            $called.owner.listeners,
            Command::$command,
            $order,
            std::ptr::from_ref($params).cast(),
        )
    };
    ($called:ident, $command:ident, $order:ident, $params:expr, $fast_pack:path) => {
        enter_call(
            &$called,
            Command::$command,
            $order,
            $params,
            |stream, resolver, call, params| $fast_pack(stream, resolver, call, params).map(<[u64]>::len),
            |buffer, resolver, call, params| $fast_pack(buffer, resolver, call, params).map(<[u64]>::len),
        )
    };
}

/// Leaves a call: `Silent` commands have neither outputs nor a result.
macro_rules! leave_call {
    (Leaves, $entered:ident, $called:ident, $command:ident, $order:ident, $params:expr, $result:ident) => {
        leave_call(
            $entered,
            $called.owner.handles(),
            Command::$command,
            $order,
            std::ptr::from_ref($params).cast(),
            $result.bits(),
        )
    };
    (Silent, $entered:ident, $called:ident, $command:ident, $order:ident, $params:expr, $result:ident) => {
        leave_without_outputs($entered, $order)
    };
}

/// Defines a table of the functions that ours replace, and the function that installs ours.
macro_rules! hook_functions {
    ($(#[$doc:meta])* $next:ident for $table:ident { $($name:ident: $ty:ident,)* } and uses { $($used:ident: $used_ty:ident,)* }) => {
        $(#[$doc])*
        pub(crate) struct $next {
            $($name: Option<$ty>,)*
            $($used: Option<$used_ty>,)*
        }

        impl $next {
            fn install(table: &mut $table) -> $next {
                $next {
                    $($name: table.$name.replace($name),)*
                    $($used: table.$used,)*
                }
            }
        }
    };
}
