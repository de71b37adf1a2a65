//! A clear color as a texel of a format.

use lavascope_abi::desc::{FormatComponent, FormatDesc};

/// The bytes of a texel; none for formats whose components do not stand for themselves.
pub(crate) fn pack_color(desc: &FormatDesc, color: [u32; 4]) -> Option<Vec<u8>> {
    if desc.is_compressed || !desc.planes.is_empty() || desc.block_extent != [1, 1, 1] {
        return None;
    }
    let mut bits: Vec<(u64, u32)> = Vec::new();
    for format_component in desc.components {
        let value = match format_component.name {
            "R" => color[0],
            "G" => color[1],
            "B" => color[2],
            "A" => color[3],
            _ => 0,
        };
        bits.push((component(format_component, value)?, format_component.bits));
    }
    // The name of a packed format begins with the highest bits, that of another with the first byte.
    if desc.name.contains("PACK") {
        bits.reverse();
    }
    let mut bytes = vec![0; desc.block_size as usize];
    let mut at = 0;
    for (value, width) in bits {
        for bit in 0..width.min(64) {
            let place = at + bit as usize;
            let byte = bytes.get_mut(place / 8)?;
            *byte |= ((value >> bit & 1) as u8) << (place % 8);
        }
        at += width as usize;
    }
    Some(bytes)
}

/// The bits of a component, whose clear value is a float or an integer by its format.
fn component(format_component: &FormatComponent, word: u32) -> Option<u64> {
    let float = f64::from(f32::from_bits(word));
    let mask = if format_component.bits >= 64 { u64::MAX } else { (1 << format_component.bits) - 1 };
    let bits = match format_component.numeric {
        "UINT" => u64::from(word),
        "SINT" => i64::from(word as i32) as u64,
        "UNORM" => (float.clamp(0.0, 1.0) * mask as f64).round() as u64,
        "SNORM" => (float.clamp(-1.0, 1.0) * (mask >> 1) as f64).round() as i64 as u64,
        "SRGB" if format_component.name == "A" => (float.clamp(0.0, 1.0) * mask as f64).round() as u64,
        "SRGB" => (srgb(float.clamp(0.0, 1.0)) * mask as f64).round() as u64,
        "USCALED" | "SSCALED" => float as i64 as u64,
        "SFLOAT" if format_component.bits == 32 => u64::from(word),
        "SFLOAT" if format_component.bits == 64 => float.to_bits(),
        "SFLOAT" if format_component.bits == 16 => u64::from(half(f32::from_bits(word))),
        _ => return None,
    };
    Some(bits & mask)
}

fn srgb(linear: f64) -> f64 {
    if linear <= 0.003_130_8 { linear * 12.92 } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 }
}

/// A float as half a float, rounded to the nearest.
fn half(value: f32) -> u16 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if size >= 65520.0 {
        return sign | 0x7c00;
    }
    // Below this all steps are the same, above it the step grows with the exponent.
    let exponent = size.log2().floor().max(-14.0);
    let step = (exponent - 10.0).exp2();
    let steps = (size / step).round() as u32;
    let base = ((exponent + 14.0) as u32) << 10;
    sign | (base + steps) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capabilities::formats;
    use lavascope_abi::Format;

    fn pack(format: Format, color: [f32; 4]) -> Vec<u8> {
        formats::find(format).and_then(|it| pack_color(it, color.map(f32::to_bits))).unwrap_or_default()
    }

    #[test]
    fn colors_become_texels() {
        assert_eq!(pack(Format::R8G8B8A8_UNORM, [1.0, 0.5, 0.0, 1.0]), [255, 128, 0, 255]);
        assert_eq!(pack(Format::B8G8R8A8_UNORM, [1.0, 0.5, 0.0, 1.0]), [0, 128, 255, 255]);
        assert_eq!(pack(Format::A2B10G10R10_UNORM_PACK32, [1.0, 0.0, 0.0, 0.0]), 0x3ffu32.to_le_bytes());
        assert_eq!(pack(Format::R5G6B5_UNORM_PACK16, [1.0, 0.0, 0.0, 0.0]), 0xf800u16.to_le_bytes());
        assert_eq!(pack(Format::R32_SFLOAT, [0.25; 4]), 0.25f32.to_le_bytes());
        assert_eq!(pack(Format::R8_SNORM, [-1.0; 4]), [0x81]);
        assert!(pack(Format::BC1_RGB_UNORM_BLOCK, [0.0; 4]).is_empty());
    }

    #[test]
    fn halves() {
        let known = [(0.0, 0), (1.0, 0x3c00), (-2.0, 0xc000), (65504.0, 0x7bff), (0.000_000_06, 1), (1e9, 0x7c00)];
        for (value, bits) in known {
            assert_eq!(half(value), bits, "{value}");
        }
        // The largest subnormal and the smallest normal.
        assert_eq!((half(6.0975e-5), half(6.1035e-5)), (0x03ff, 0x0400));
    }
}
