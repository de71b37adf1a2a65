//! Writes members of structures by name, from our own numbers or values of a profile.

use lavascope_abi::desc::{EnumDesc, Field, Layout, Ty};
use serde_json::Value;

/// The bytes of a structure that is being filled.
pub(crate) struct StructBytes<'a>(pub(crate) &'a mut [u8]);

impl StructBytes<'_> {
    fn put(&mut self, at: u32, bytes: &[u8]) {
        let at = at as usize;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Writes `values` into the plain values of a field, in their order; the last one repeats.
    pub(crate) fn numbers(&mut self, base: u32, field: &Field, values: &mut impl Iterator<Item = f64>) {
        for index in 0..field.count {
            let at = base + field.at + index * field.ty.size();
            match &field.ty {
                Ty::Struct(layout) => layout.fields.iter().for_each(|it| self.numbers(at, it, values)),
                Ty::Chain | Ty::Pointer(_) | Ty::Opaque => {}
                ty => {
                    let Some(value) = values.next() else { return };
                    self.number(at, ty, value);
                }
            }
        }
    }

    fn number(&mut self, at: u32, ty: &Ty, value: f64) {
        match (ty, ty.size()) {
            (Ty::F32, _) => self.put(at, &(value as f32).to_le_bytes()),
            (Ty::F64, _) => self.put(at, &value.to_le_bytes()),
            (_, 1) => self.put(at, &[value as u8]),
            (_, 2) => self.put(at, &(value as u16).to_le_bytes()),
            (Ty::I32, _) => self.put(at, &(value as i32).to_le_bytes()),
            (_, 4) => self.put(at, &(value as i64 as u32).to_le_bytes()),
            _ => self.put(at, &(value as u64).to_le_bytes()),
        }
    }

    /// Writes an object of a profile into a structure.
    pub(crate) fn object(&mut self, base: u32, layout: &Layout, value: &Value) -> Result<(), ProfileError> {
        let Some(members) = value.as_object() else {
            return Err(ProfileError::new(layout.name, format!("{} wants an object", layout.name)));
        };
        members.iter().try_for_each(|(name, value)| self.member(base, layout, name, value))
    }

    pub(crate) fn member(&mut self, base: u32, layout: &Layout, name: &str, value: &Value) -> Result<(), ProfileError> {
        let Some(field) = layout.fields.iter().find(|it| it.name == name) else {
            let names = layout.fields.iter().map(|it| it.name);
            let hint = nearest(name, names).map(|it| format!("; is it {it}?")).unwrap_or_default();
            return Err(ProfileError::new(name, format!("{} has no member {name}{hint}", layout.name)));
        };
        if let (Ty::Char, Some(text)) = (&field.ty, value.as_str()) {
            let mut bytes = vec![0; field.count as usize];
            let size = text.len().min(bytes.len() - 1);
            bytes[..size].copy_from_slice(&text.as_bytes()[..size]);
            self.put(base + field.at, &bytes);
            return Ok(());
        }
        match value.as_array().filter(|_| field.count > 1) {
            Some(values) => values
                .iter()
                .take(field.count as usize)
                .enumerate()
                .try_for_each(|(at, value)| self.value(base + field.at + at as u32 * field.ty.size(), field, value)),
            None => self.value(base + field.at, field, value),
        }
    }

    fn value(&mut self, at: u32, field: &Field, value: &Value) -> Result<(), ProfileError> {
        let number = match &field.ty {
            Ty::Struct(layout) => return self.object(at, layout, value),
            Ty::Chain | Ty::Pointer(_) | Ty::Opaque => return Ok(()),
            Ty::Enum(desc) | Ty::Flags(desc) => enum_value(desc, value),
            Ty::Bool32 => value.as_bool().map(|it| f64::from(u8::from(it))).or(value.as_f64()),
            _ => value.as_f64(),
        };
        let Some(number) = number else {
            return Err(ProfileError::new(field.name, format!("{value} is not a value of {}", field.name)));
        };
        if field.ty.size() == 8 && !matches!(field.ty, Ty::F64) {
            let exact = value.as_u64().or(value.as_i64().map(|it| it as u64)).unwrap_or(number as u64);
            self.put(at, &exact.to_le_bytes());
        } else {
            self.number(at, &field.ty, number);
        }
        Ok(())
    }
}

/// A number, a name, or a list of names of bits.
fn enum_value(desc: &EnumDesc, value: &Value) -> Option<f64> {
    if let Some(values) = value.as_array() {
        return values
            .iter()
            .try_fold(0, |bits, it| Some(bits | enum_value(desc, it)? as u64))
            .map(|number| number as f64);
    }
    if let Some(name) = value.as_str() {
        return desc.values.iter().find(|it| it.1 == name).map(|it| it.0 as f64);
    }
    value.as_f64()
}

/// A thing in a profile that cannot be understood, and the word that stands there.
#[derive(Debug)]
pub(crate) struct ProfileError {
    pub(crate) word: String,
    pub(crate) problem: String,
}

impl ProfileError {
    pub(crate) fn new(word: &str, problem: String) -> ProfileError {
        ProfileError { word: word.to_owned(), problem }
    }
}

/// The name that differs least from `word`, if that is little.
pub(crate) fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    lavascope_collections::nearest(word, names, 1).pop()
}
