//! The debug names of objects, for findings.
//!
//! A name is forgotten with its object, because the next object with the same handle is another one. Shaders outlive
//! their module, and findings may mention a shader object after it is destroyed. Such values hold a shared copy of the
//! name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use lavascope_abi::ObjectType;

use crate::gpu::pipeline::variants::lock;

/// The names of live objects.
#[derive(Default)]
pub(crate) struct DebugNames(HashMap<(i32, u64), SharedName>);

/// The name of an object, which stays valid after the object is destroyed.
#[derive(Clone, Default)]
pub(crate) struct SharedName(Arc<Mutex<Option<String>>>);

impl SharedName {
    pub(crate) fn get(&self) -> Option<String> {
        lock(&self.0).clone()
    }
}

impl DebugNames {
    /// The application sets a name. A null or empty name removes it.
    pub(crate) fn set(&mut self, ty: ObjectType, handle: u64, name: Option<String>) {
        if is_reported_type(ty) {
            *lock(&self.share(ty, handle).0) = name.filter(|it| !it.is_empty());
        }
    }

    pub(crate) fn get(&self, ty: ObjectType, handle: u64) -> Option<String> {
        self.0.get(&(ty.0, handle))?.get()
    }

    /// A shared copy of the name that an object has, or gets later.
    pub(crate) fn share(&mut self, ty: ObjectType, handle: u64) -> SharedName {
        self.0.entry((ty.0, handle)).or_default().clone()
    }

    /// An object is destroyed. Returns its name.
    pub(crate) fn remove(&mut self, ty: ObjectType, handle: u64) -> Option<String> {
        self.0.remove(&(ty.0, handle))?.get()
    }
}

/// Whether findings name objects of this type. Names of other types are not stored, because their removal is not
/// tracked.
fn is_reported_type(ty: ObjectType) -> bool {
    matches!(
        ty,
        ObjectType::BUFFER
            | ObjectType::COMMAND_BUFFER
            | ObjectType::PIPELINE
            | ObjectType::SHADER_MODULE
            | ObjectType::SHADER_EXT
            | ObjectType::ACCELERATION_STRUCTURE_KHR
            | ObjectType::ACCELERATION_STRUCTURE_NV
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: ObjectType = ObjectType::SHADER_MODULE;

    #[test]
    fn a_name_outlives_its_module_where_a_pipeline_holds_it() {
        let mut names = DebugNames::default();
        let held = names.share(MODULE, 1);
        assert_eq!(held.get(), None);
        names.set(MODULE, 1, Some("sky".to_owned()));
        assert_eq!((held.get(), names.get(MODULE, 1)), (Some("sky".to_owned()), Some("sky".to_owned())));
        assert_eq!(names.remove(MODULE, 1), Some("sky".to_owned()));
        assert_eq!((held.get(), names.get(MODULE, 1)), (Some("sky".to_owned()), None));
        // The handle now belongs to another module.
        names.set(MODULE, 1, Some("sea".to_owned()));
        assert_eq!((held.get(), names.get(MODULE, 1)), (Some("sky".to_owned()), Some("sea".to_owned())));
    }

    #[test]
    fn a_name_is_taken_away() {
        for none in [None, Some(String::new())] {
            let mut names = DebugNames::default();
            names.set(MODULE, 1, Some("sky".to_owned()));
            names.set(MODULE, 1, none);
            assert_eq!(names.get(MODULE, 1), None);
        }
    }

    #[test]
    fn what_is_gone_and_what_nobody_speaks_of_has_no_entry() {
        let mut names = DebugNames::default();
        for round in 0..100 {
            names.set(MODULE, round, Some("sky".to_owned()));
            names.remove(MODULE, round);
            names.set(ObjectType::IMAGE, round, Some("sky".to_owned()));
        }
        assert!(names.0.is_empty());
    }
}
