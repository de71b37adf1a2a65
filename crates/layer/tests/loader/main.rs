//! The layer through the real loader, on the null driver.
//!
//! Each test runs itself again in a process of its own, with the environment that it needs: the loader and the layer
//! read it once, and what they say and leave behind belongs to a process.

mod capture;
mod child;
mod death;
mod drop_in;
mod gpu;
mod growth;
mod hazards;
mod inline;
mod lifetimes;
mod lost;
mod memory;
mod messages;
mod objects;
mod order;
mod proc_addr;
mod queues;
mod threads;
mod validation;
mod wanted;
mod world;
