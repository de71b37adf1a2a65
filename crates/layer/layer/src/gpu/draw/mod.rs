//! What is bound in command buffers, and the tables of each draw.

pub(crate) mod choice_cache;
pub(crate) mod command_buffer;
pub(crate) mod command_buffer_slots;
pub(crate) mod launch_counts;
pub(crate) mod push_constants;
pub(crate) mod record;
pub(crate) mod recorded_draws;
pub(crate) mod recorded_variant;
pub(crate) mod update_after_bind;
pub(crate) mod variant_choice;
