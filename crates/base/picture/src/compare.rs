//! How equal two pictures are: exactly, or as people see them.

use crate::Picture;

/// How one picture compares with another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// How far the worst channel of the worst pixel is off, of 255.
    pub difference: u8,
    /// How similar they look: 1 for equal ones, 0 for such as have nothing in common.
    pub similarity: f64,
}

/// Pictures of other sizes are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has {} x {} pixels, and what it is compared with {} x {}", one.0, one.1, other.0, other.1)]
pub struct SizeMismatch {
    /// Width and height.
    pub one: (u32, u32),
    pub other: (u32, u32),
}

/// A number that is another one for any other picture, as good as surely.
pub fn hash(picture: &Picture) -> String {
    let sizes = [picture.width, picture.height].into_iter().flat_map(u32::to_le_bytes);
    // Fowler, Noll and Vo's: the same on every machine.
    let start = 0xcbf2_9ce4_8422_2325_u64;
    let step = |all: u64, it: u8| (all ^ u64::from(it)).wrapping_mul(0x0000_0100_0000_01b3);
    format!("{:016x}", sizes.chain(picture.rgba.iter().copied()).fold(start, step))
}

pub fn compare(one: &Picture, other: &Picture) -> Result<Comparison, SizeMismatch> {
    let size = |it: &Picture| (it.width, it.height);
    if size(one) != size(other) {
        return Err(SizeMismatch { one: size(one), other: size(other) });
    }
    let difference = one.rgba.iter().zip(&other.rgba).map(|it| it.0.abs_diff(*it.1)).max().unwrap_or(0);
    Ok(Comparison { difference, similarity: if difference == 0 { 1.0 } else { similarity(one, other) } })
}

/// How far each channel of each pixel is off, brightened so that the worst one is white; opaque.
pub fn difference(one: &Picture, other: &Picture) -> Result<Picture, SizeMismatch> {
    let worst = u32::from(compare(one, other)?.difference).max(1);
    let brightened = |it: (&u8, &u8)| (u32::from(it.0.abs_diff(*it.1)) * 255 / worst) as u8;
    let mut rgba: Vec<u8> = one.rgba.iter().zip(&other.rgba).map(brightened).collect();
    // A difference of alpha alone would be invisible.
    for pixel in rgba.chunks_exact_mut(4) {
        let alpha = pixel[3];
        pixel[..3].iter_mut().for_each(|it| *it = (*it).max(alpha));
        pixel[3] = 255;
    }
    Ok(Picture { width: one.width, height: one.height, rgba })
}

/// Edges of the squares that are compared, in pixels.
const SQUARE: u32 = 8;

/// Structural similarity: of each square the mean, the contrast and how the two go together, for each color; the mean
/// of all squares. A shift of one pixel or of one step of a color changes it little, a missing object much.
fn similarity(one: &Picture, other: &Picture) -> f64 {
    let mut sum = 0.0;
    let mut count = 0u64;
    for top in (0..one.height).step_by(SQUARE as usize) {
        for left in (0..one.width).step_by(SQUARE as usize) {
            for channel in 0..3 {
                sum += square_similarity(one, other, (left, top), channel);
                count += 1;
            }
        }
    }
    // Pictures that are less similar than unrelated ones count as unrelated.
    if count == 0 { 1.0 } else { (sum / count as f64).max(0.0) }
}

fn square_similarity(one: &Picture, other: &Picture, (left, top): (u32, u32), channel: usize) -> f64 {
    // Constants that prevent a division by zero for dark and plain squares.
    const SMALL: [f64; 2] = [(0.01 * 255.0) * (0.01 * 255.0), (0.03 * 255.0) * (0.03 * 255.0)];
    let (mut count, mut sums, mut squares, mut product) = (0.0, [0.0; 2], [0.0; 2], 0.0);
    for y in top..(top + SQUARE).min(one.height) {
        for x in left..(left + SQUARE).min(one.width) {
            let at = (y as usize * one.width as usize + x as usize) * 4 + channel;
            let both = [one, other].map(|it| f64::from(it.rgba.get(at).copied().unwrap_or(0)));
            count += 1.0;
            for (at, value) in both.iter().enumerate() {
                sums[at] += value;
                squares[at] += value * value;
            }
            product += both[0] * both[1];
        }
    }
    let means = sums.map(|it| it / count);
    let variance = |at: usize| squares[at] / count - means[at] * means[at];
    let together = product / count - means[0] * means[1];
    let brightness = (2.0 * means[0] * means[1] + SMALL[0]) / (means[0] * means[0] + means[1] * means[1] + SMALL[0]);
    brightness * (2.0 * together + SMALL[1]) / (variance(0) + variance(1) + SMALL[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bright disk on dark ground.
    fn disk(center: u32, bright: u8) -> Picture {
        let (width, height) = (50, 40);
        let pixel = |at: u32| {
            let (x, y) = ((at % width).abs_diff(center), (at / width).abs_diff(20));
            if x * x + y * y < 100 { [bright, bright / 2, 30, 255] } else { [20, 20, 20, 255] }
        };
        Picture { width, height, rgba: (0..width * height).flat_map(pixel).collect() }
    }

    #[test]
    fn small_changes_are_similar_and_missing_things_are_not() {
        let whole = disk(25, 200);
        assert_eq!(compare(&whole, &whole).expect("of one size"), Comparison { difference: 0, similarity: 1.0 });
        let close = compare(&whole, &disk(25, 203)).expect("of one size");
        assert!(close.difference == 3 && close.similarity > 0.99, "{close:?}");
        let other = compare(&whole, &disk(8, 200)).expect("of one size");
        assert!(other.difference == 180 && other.similarity < 0.8, "{other:?}");
        assert_eq!(hash(&whole), hash(&disk(25, 200)));
        assert_ne!(hash(&whole), hash(&disk(25, 201)));
        let cut = Picture { height: 39, rgba: whole.rgba[..39 * 50 * 4].to_vec(), ..whole.clone() };
        assert!(compare(&whole, &cut).is_err());
    }

    #[test]
    fn a_difference_shows_where_pictures_differ() {
        let picture = |rgba: [u8; 8]| Picture { width: 2, height: 1, rgba: rgba.to_vec() };
        let one = picture([10, 20, 30, 255, 0, 0, 0, 255]);
        let other = picture([10, 25, 20, 255, 0, 0, 0, 254]);
        let shown = difference(&one, &other).expect("of one size");
        assert_eq!(shown.rgba, [0, 127, 255, 255, 25, 25, 25, 255]);
        assert_eq!(difference(&one, &one).expect("of one size").rgba, [0, 0, 0, 255, 0, 0, 0, 255]);
        assert!(difference(&one, &Picture { width: 1, height: 2, ..one.clone() }).is_err());
    }
}
