//! The application's memory, as the rules read it.

use lavascope_event::memory::Memory;

/// Addresses of this process.
#[derive(Clone, Copy)]
pub struct CMemory(());

impl CMemory {
    /// # Safety
    ///
    /// Until it is dropped, the rules may read every sibling and structure that the specification makes readable
    /// for the call being walked.
    pub unsafe fn of_this_process() -> CMemory {
        CMemory(())
    }
}

/// No system maps anything below for a program: what is there is null, or an offset from it.
const LOWEST_ADDRESS: u64 = 4096;

impl Memory for CMemory {
    fn read(&self, at: u64, width: u8) -> Option<u64> {
        if at < LOWEST_ADDRESS {
            return None;
        }
        let address = std::ptr::with_exposed_provenance::<u8>(at as usize);
        // SAFETY: whoever made this `CMemory` promised that what the rules ask for is readable. The reads are
        // unaligned because an application may hand us any address.
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
