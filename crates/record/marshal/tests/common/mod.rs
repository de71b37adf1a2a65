//! The names of the world of `sim`, for packing and unpacking.

use lavascope_abi::desc::Access;
use lavascope_abi::{HandleType, ObjectId};
use lavascope_marshal::{Handles, Ids};
use lavascope_sim::World;

pub(crate) struct Names;

impl Ids for Names {
    fn id(&self, ty: HandleType, handle: u64, _access: Access) -> ObjectId {
        World::id_of(ty, handle)
    }
}

impl Handles for Names {
    fn handle(&self, id: ObjectId) -> u64 {
        World::handle_of_id(id)
    }
}
