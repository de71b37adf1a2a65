//! The border to the loader: negotiation, dispatch chains, instances and devices.

pub(crate) mod chain;
pub(crate) mod creation_failure;
pub(crate) mod device;
pub(crate) mod device_limits;
pub(crate) mod dispatch;
pub(crate) mod enumerate;
pub(crate) mod instance;
pub(crate) mod interface;
pub(crate) mod pnext_chain;
pub(crate) mod proc_addr;
pub(crate) mod raised_version;
