//! Running compute shaders on a device.
