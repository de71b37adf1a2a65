//! The names of the world of `sim`, for packing and unpacking.

use lavascope_abi::desc::Access;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::{HandleResolver, IdResolver};
use lavascope_sim::World;

pub(crate) struct SimHandles;

impl IdResolver for SimHandles {
    fn id(&self, ty: HandleType, handle: u64, _access: Access) -> ObjectId {
        World::id_of(ty, handle)
    }
}

impl HandleResolver for SimHandles {
    fn handle(&self, id: ObjectId) -> u64 {
        World::handle_of_id(id)
    }
}
