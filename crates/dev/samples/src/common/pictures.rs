//! A picture in host memory.

use std::io::Write;
use std::path::Path;

use crate::arguments::SampleOptions;
use crate::failure::Failure;

/// Rows of pixels, four bytes each: red, green, blue, alpha.
pub(crate) struct Picture {
    width: u32,
    height: u32,
    bytes: Vec<u8>,
}

impl Picture {
    pub(crate) fn new(width: u32, height: u32, bytes: Vec<u8>) -> Picture {
        assert_eq!(bytes.len(), width as usize * height as usize * 4, "a pixel has four bytes");
        Picture { width, height, bytes }
    }

    pub(crate) fn pixel(&self, x: u32, y: u32) -> [u8; 4] {
        let at = (y as usize * self.width as usize + x as usize) * 4;
        [self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]]
    }

    /// Every place, row by row.
    pub(crate) fn pixels(&self) -> impl Iterator<Item = (u32, u32)> {
        let width = self.width;
        (0..self.height).flat_map(move |y| (0..width).map(move |x| (x, y)))
    }

    /// Writes the file that the user asked for, if any.
    pub(crate) fn save(&self, options: &SampleOptions) -> Result<(), Failure> {
        options.save.as_deref().map_or(Ok(()), |it| self.write_ppm(it))
    }

    /// PPM has no alpha, and every viewer of pictures reads it.
    fn write_ppm(&self, path: &Path) -> Result<(), Failure> {
        let mut bytes = format!("P6\n{} {}\n255\n", self.width, self.height).into_bytes();
        bytes.extend(self.bytes.chunks_exact(4).flat_map(|it| [it[0], it[1], it[2]]));
        Ok(std::fs::File::create(path)?.write_all(&bytes)?)
    }
}
