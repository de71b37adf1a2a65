//! The memory of the application, as an input of the rules of `record`.

use lavascope_record::memory::ReadableMemory;

/// Memory at addresses of this process.
#[derive(Clone, Copy)]
pub struct CMemory(());

impl CMemory {
    /// # Safety
    ///
    /// Until it is dropped, pass it only to the rules and walkers of `record`, and only for frames of a call whose
    /// pointers are valid as the specification demands. Those read only what it makes readable for that call.
    pub unsafe fn of_this_process() -> CMemory {
        CMemory(())
    }
}

/// No system maps lower addresses for a program: such an address is null, or an offset from null.
const LOWEST_ADDRESS: u64 = 4096;

impl ReadableMemory for CMemory {
    fn read(&self, at: u64, width: u8) -> Option<u64> {
        if at < LOWEST_ADDRESS {
            return None;
        }
        let address = std::ptr::with_exposed_provenance::<u8>(at as usize);
        // SAFETY: by the contract of `of_this_process` only the rules read, and only siblings and structures of a call,
        // which its valid usage makes readable. The reads are unaligned, because an application may pass any address.
        unsafe {
            Some(match width {
                1 => u64::from(address.read()),
                2 => u64::from(address.cast::<u16>().read_unaligned()),
                4 => u64::from(address.cast::<u32>().read_unaligned()),
                _ => address.cast::<u64>().read_unaligned(),
            })
        }
    }

    fn follow(&self, at: u64) -> Option<u64> {
        self.read(at, 8).filter(|it| *it != 0)
    }
}
