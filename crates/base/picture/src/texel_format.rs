//! How the bytes of an image become pixels.

use lavascope_abi::{Extent2D, Format};

use crate::Picture;

/// The texels of a format that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelFormat {
    order: ChannelOrder,
    size: usize,
}

/// How the bytes of a texel become a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelOrder {
    Rgba,
    Bgra,
    /// Ten bits each, red lowest.
    Rgb10,
    /// Ten bits each, blue lowest.
    Bgr10,
    Half,
}

impl TexelFormat {
    /// None for formats that swapchains do not have.
    pub fn of(format: Format) -> Option<TexelFormat> {
        let (order, size) = match format {
            Format::R8G8B8A8_UNORM | Format::R8G8B8A8_SRGB => (ChannelOrder::Rgba, 4),
            Format::A8B8G8R8_UNORM_PACK32 | Format::A8B8G8R8_SRGB_PACK32 => (ChannelOrder::Rgba, 4),
            Format::B8G8R8A8_UNORM | Format::B8G8R8A8_SRGB => (ChannelOrder::Bgra, 4),
            Format::A2B10G10R10_UNORM_PACK32 => (ChannelOrder::Rgb10, 4),
            Format::A2R10G10B10_UNORM_PACK32 => (ChannelOrder::Bgr10, 4),
            Format::R16G16B16A16_SFLOAT => (ChannelOrder::Half, 8),
            _ => return None,
        };
        Some(TexelFormat { order, size })
    }

    /// How many bytes an image of one layer has, one row behind the other.
    pub fn bytes(self, extent: Extent2D) -> u64 {
        u64::from(extent.width) * u64::from(extent.height) * self.size as u64
    }

    /// The picture in the bytes of an image, one row behind the other.
    pub fn picture(self, extent: Extent2D, bytes: &[u8]) -> Picture {
        let rgba = bytes.chunks_exact(self.size).flat_map(|it| pixel(self.order, it)).collect();
        Picture { width: extent.width, height: extent.height, rgba }
    }
}

fn pixel(order: ChannelOrder, bytes: &[u8]) -> [u8; 4] {
    let word = || u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    let ten = |shift: u32| (word() >> (shift + 2)) as u8;
    let half = |at: usize| half_to_byte(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    match order {
        ChannelOrder::Rgba => [bytes[0], bytes[1], bytes[2], bytes[3]],
        ChannelOrder::Bgra => [bytes[2], bytes[1], bytes[0], bytes[3]],
        ChannelOrder::Rgb10 => [ten(0), ten(10), ten(20), 255],
        ChannelOrder::Bgr10 => [ten(20), ten(10), ten(0), 255],
        ChannelOrder::Half => [half(0), half(2), half(4), half(6)],
    }
}

/// A half float between 0 and 1 as a byte; values outside are clamped.
fn half_to_byte(bits: u16) -> u8 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction / 1024.0 * 2f32.powi(-14),
        exponent => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    };
    if bits >> 15 == 1 { 0 } else { (magnitude.min(1.0) * 255.0).round() as u8 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texels_become_pixels() {
        assert_eq!(pixel(ChannelOrder::Bgra, &[1, 2, 3, 4]), [3, 2, 1, 4]);
        assert_eq!(pixel(ChannelOrder::Half, &[0, 0x3c, 0, 0x38, 0, 0, 0, 0xbc]), [255, 128, 0, 0]);
        let word = (1023u32 | 512 << 10 | 3 << 30).to_le_bytes();
        assert_eq!(pixel(ChannelOrder::Rgb10, &word), [255, 128, 0, 255]);
    }

    #[test]
    fn an_image_becomes_a_picture() {
        let extent = Extent2D { width: 2, height: 1 };
        let texels = TexelFormat::of(Format::B8G8R8A8_UNORM).expect("it can be shown");
        assert_eq!(texels.bytes(extent), 8);
        let picture = texels.picture(extent, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(picture, Picture { width: 2, height: 1, rgba: vec![3, 2, 1, 4, 7, 6, 5, 8] });
        assert_eq!(TexelFormat::of(Format::D32_SFLOAT), None);
    }
}
