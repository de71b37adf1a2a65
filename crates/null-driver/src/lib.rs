//! A Vulkan driver that accepts everything and draws nothing: today its default entry points.
//!
//! Every command of the registry has a function here that returns success, or zero, and writes nothing. Commands
//! that must do something will be written by hand in front of these.

#[macro_use]
mod macros;

#[rustfmt::skip]
mod generated;

pub use generated::entry_point;

#[cfg(test)]
mod tests {
    use super::entry_point;
    use lavascope_abi::{Buffer, BufferCreateInfo, Command, Device, FnCreateBuffer, Ptr, Structure};

    #[test]
    fn every_command_has_its_own_type_of_function() {
        assert!(Command::ALL.iter().all(|it| entry_point(*it).0 != 0));
    }

    #[test]
    fn defaults_succeed_and_write_nothing() {
        let function = entry_point(Command::CreateBuffer);
        // SAFETY: the entry point of this command has this type.
        let create = unsafe { std::mem::transmute::<u64, FnCreateBuffer>(function.0) };
        let (info, buffer) = (BufferCreateInfo::zeroed(), Buffer(7));
        // SAFETY: the default looks at nothing.
        let result = unsafe { create(Device(1), Ptr::to(&info), Ptr::NULL, Ptr::to(&buffer)) };
        assert_eq!((result, buffer), (lavascope_abi::Result::SUCCESS, Buffer(7)));
    }
}
