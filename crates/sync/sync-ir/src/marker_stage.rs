//! The stage of a buffer marker, in one byte that has room for other things.

/// The stage of a marker, by the number of its bit. It is an enum so that [`RasterOrder`] stays one byte.
///
/// [`RasterOrder`]: crate::RasterOrder
#[rustfmt::skip]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerStage {
    B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15,
    B16, B17, B18, B19, B20, B21, B22, B23, B24, B25, B26, B27, B28, B29, B30, B31,
    B32, B33, B34, B35, B36, B37, B38, B39, B40, B41, B42, B43, B44, B45, B46, B47,
    B48, B49, B50, B51, B52, B53, B54, B55, B56, B57, B58, B59, B60, B61, B62, B63,
}

#[rustfmt::skip]
const ALL: [MarkerStage; 64] = {
    use MarkerStage::*;
    [
        B0, B1, B2, B3, B4, B5, B6, B7, B8, B9, B10, B11, B12, B13, B14, B15,
        B16, B17, B18, B19, B20, B21, B22, B23, B24, B25, B26, B27, B28, B29, B30, B31,
        B32, B33, B34, B35, B36, B37, B38, B39, B40, B41, B42, B43, B44, B45, B46, B47,
        B48, B49, B50, B51, B52, B53, B54, B55, B56, B57, B58, B59, B60, B61, B62, B63,
    ]
};

impl MarkerStage {
    /// The stage whose bit has this number.
    pub fn from_bit(bit: u32) -> MarkerStage {
        ALL[bit as usize % ALL.len()]
    }

    /// The lowest of some stages.
    pub fn from_stages(stages: u64) -> MarkerStage {
        MarkerStage::from_bit(stages.trailing_zeros())
    }

    /// As a mask of stages.
    pub const fn stages(self) -> u64 {
        1 << self as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RasterOrder;

    #[test]
    fn each_bit_has_a_stage() {
        for bit in 0..64 {
            assert_eq!(MarkerStage::from_bit(bit).stages(), 1 << bit);
            assert_eq!(MarkerStage::from_stages(1 << bit), MarkerStage::from_bit(bit));
        }
    }

    /// Recordings have millions of these.
    #[test]
    fn an_order_is_one_byte() {
        assert_eq!(size_of::<RasterOrder>(), 1);
    }
}
