//! Pictures in files.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use crate::Picture;

/// An error in a file.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    #[error("{} cannot be written: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error("{} cannot be read: {cause}", path.display())]
    Read { path: PathBuf, cause: io::Error },
    #[error("{} is not of the kind that lavascope writes: RGBA of 8 bits", path.display())]
    UnsupportedFormat { path: PathBuf },
}

/// The file name of the picture of a frame. Several windows may be presented together; the first is number 0.
pub fn file_name(frame: u64, window: usize) -> String {
    match window {
        0 => format!("frame-{frame:06}.png"),
        window => format!("frame-{frame:06}-window-{window}.png"),
    }
}

/// The frame and the window of a picture by its name; none for other files.
pub fn parse_file_name(file: &str) -> Option<(u64, usize)> {
    let text = file.strip_prefix("frame-")?.strip_suffix(".png")?;
    let (frame, window) = text.split_once("-window-").unwrap_or((text, "0"));
    let found = (frame.parse().ok()?, window.parse().ok()?);
    // Rejects other spellings of the same numbers.
    Some(found).filter(|it| file_name(it.0, it.1) == file)
}

/// Writes a picture atomically: a process that is killed meanwhile leaves no incomplete file.
pub fn write(path: &Path, picture: &Picture) -> Result<(), PictureError> {
    let failed = |cause: io::Error| PictureError::Write { path: path.to_owned(), cause };
    let bytes = encode(picture).map_err(|it| failed(it.into()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let part = path.with_extension("png.part");
    fs::write(&part, bytes).and_then(|()| fs::rename(&part, path)).map_err(failed)
}

fn encode(picture: &Picture) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, picture.width, picture.height);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&picture.rgba)?;
    writer.finish()?;
    Ok(bytes)
}

pub fn read(path: &Path) -> Result<Picture, PictureError> {
    let failed = |cause: io::Error| PictureError::Read { path: path.to_owned(), cause };
    let file = File::open(path).map_err(failed)?;
    let mut reader = png::Decoder::new(BufReader::new(file)).read_info().map_err(|it| failed(it.into()))?;
    let size = reader.output_buffer_size().ok_or_else(|| failed(io::Error::other("it is too large")))?;
    let mut rgba = vec![0; size];
    let info = reader.next_frame(&mut rgba).map_err(|it| failed(it.into()))?;
    if (info.color_type, info.bit_depth) != (png::ColorType::Rgba, png::BitDepth::Eight) {
        return Err(PictureError::UnsupportedFormat { path: path.to_owned() });
    }
    Ok(Picture { width: info.width, height: info.height, rgba })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_again() {
        let folder = std::env::temp_dir().join(format!("lavascope-picture-{}", std::process::id()));
        let path = folder.join("deep").join(file_name(7, 0));
        let picture = Picture { width: 3, height: 2, rgba: (0..24).collect() };
        write(&path, &picture).expect("it can be written");
        assert_eq!(read(&path).expect("it can be read"), picture);
        let others: Vec<_> = fs::read_dir(folder.join("deep")).expect("it is there").collect();
        assert_eq!(others.len(), 1, "{others:?}");
        fs::write(&path, "no picture").expect("it can be written");
        let error = read(&path).expect_err("it is none").to_string();
        assert!(error.contains("frame-000007.png cannot be read: "), "{error}");
        fs::remove_dir_all(&folder).expect("it is ours");
    }

    #[test]
    fn windows_of_one_frame_have_names_of_their_own() {
        assert_eq!([file_name(12, 0), file_name(12, 1)], ["frame-000012.png", "frame-000012-window-1.png"]);
        for pair in [(0, 0), (12, 1), (1_234_567, 0)] {
            assert_eq!(parse_file_name(&file_name(pair.0, pair.1)), Some(pair));
        }
        for text in
            ["frame-12.png", "frame-000012.png.part", "frame-000012-window-0.png", "frame-+00012.png", "other.png"]
        {
            assert_eq!(parse_file_name(text), None, "{text}");
        }
    }
}
