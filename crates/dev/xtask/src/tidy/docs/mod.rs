//! Rules for documents.

pub(crate) mod architecture_page;
pub(crate) mod ledger;
pub(crate) mod links;
pub(crate) mod page;
pub(crate) mod slug;
pub(crate) mod table;
