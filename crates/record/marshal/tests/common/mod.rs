//! Handles and ids of the model in `sim`, for packing and unpacking.

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::{HandleResolver, IdResolver};
use lavascope_sim::SyntheticObjects;

pub(crate) struct SimHandles;

impl IdResolver for SimHandles {
    fn id(&self, ty: HandleType, handle: u64, _access: HandleAccess) -> ObjectId {
        SyntheticObjects::id_of(ty, handle)
    }
}

impl HandleResolver for SimHandles {
    fn handle(&self, id: ObjectId) -> u64 {
        SyntheticObjects::handle_of_id(id)
    }
}
