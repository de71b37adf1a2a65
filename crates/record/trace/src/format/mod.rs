//! The parts of the file: blocks, columns, contents, the index.

pub(crate) mod block;
pub(crate) mod byte_reader;
pub(crate) mod column_decoder;
pub(crate) mod column_encoder;
pub(crate) mod content;
pub(crate) mod content_window;
pub(crate) mod index;
pub(crate) mod schema;
