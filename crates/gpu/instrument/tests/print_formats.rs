//! What shaders print, against the C library: random formats of C with random values.

use std::ffi::{CString, c_int, c_longlong, c_uint, c_ulonglong};

use lavascope_instrument::{PrintArgument, PrintScalar, format_print};
use lavascope_test_support::TestRng;

/// A conversion of C with the values for it.
struct RandomConversion {
    format: String,
    /// The values of the stars.
    stars: Vec<i32>,
    value: RandomValue,
}

#[derive(Clone, Copy, Debug)]
enum RandomValue {
    Int(i32),
    Uint(u32),
    Long(i64),
    Ulong(u64),
    Float(f32),
    Double(f64),
}

impl RandomValue {
    fn argument(self) -> (PrintScalar, Vec<u32>) {
        let int = |bits, is_signed| PrintScalar::Int { bits, is_signed };
        let halves = |bits: u64| vec![bits as u32, (bits >> 32) as u32];
        match self {
            RandomValue::Int(value) => (int(32, true), vec![value as u32]),
            RandomValue::Uint(value) => (int(32, false), vec![value]),
            RandomValue::Long(value) => (int(64, true), halves(value as u64)),
            RandomValue::Ulong(value) => (int(64, false), halves(value)),
            RandomValue::Float(value) => (PrintScalar::Float { bits: 32 }, vec![value.to_bits()]),
            RandomValue::Double(value) => (PrintScalar::Float { bits: 64 }, halves(value.to_bits())),
        }
    }
}

fn random_bits(rng: &mut TestRng) -> u64 {
    let any = rng.next_u64();
    match rng.below(6u32) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << rng.below(64u32),
        3 => any >> rng.below(64u32),
        4 => !(any >> rng.below(64u32)),
        _ => any,
    }
}

fn random_double(rng: &mut TestRng) -> f64 {
    const SPECIAL: [f64; 10] =
        [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1.0, -1.5, f64::MAX, f64::MIN_POSITIVE, 9.5];
    match rng.below(4u32) {
        0 => SPECIAL[rng.below(SPECIAL.len())],
        1 => f64::from_bits(random_bits(rng)),
        2 => f64::from(rng.below(2_000_000u32)) / 1000.0 - 1000.0,
        _ => f64::from(rng.below(1000u32)) / 8.0 * 10f64.powi(rng.below(40u32) as i32 - 20),
    }
}

fn random_conversion(rng: &mut TestRng) -> RandomConversion {
    let mut format = "%".to_owned();
    let mut stars = Vec::new();
    for flag in ["-", "+", " ", "#", "0"] {
        format += if rng.below(4u32) == 0 { flag } else { "" };
    }
    if rng.below(2u32) == 0 {
        random_size(rng, &mut format, &mut stars);
    }
    if rng.below(2u32) == 0 {
        format.push('.');
        if rng.below(6u32) > 0 {
            random_size(rng, &mut format, &mut stars);
        }
    }
    let value = if rng.below(2u32) == 0 { random_float(rng, &mut format) } else { random_integer(rng, &mut format) };
    RandomConversion { format, stars, value }
}

fn random_size(rng: &mut TestRng, format: &mut String, stars: &mut Vec<i32>) {
    let size = rng.below(30i32);
    match rng.below(5u32) {
        0 => {
            format.push('*');
            stars.push(size - 6);
        }
        // A width does not begin with a zero, which is a flag.
        _ => *format += &(size + 1).to_string(),
    }
}

fn random_float(rng: &mut TestRng, format: &mut String) -> RandomValue {
    let double = random_double(rng);
    *format += if rng.below(4u32) == 0 { "l" } else { "" };
    format.push(rng.pick(&['a', 'A', 'e', 'E', 'f', 'F', 'g', 'G']));
    if rng.below(2u32) == 0 { RandomValue::Float(double as f32) } else { RandomValue::Double(double) }
}

fn random_integer(rng: &mut TestRng, format: &mut String) -> RandomValue {
    let (kind, bits) = (rng.pick(&['d', 'i', 'o', 'u', 'x', 'X']), random_bits(rng));
    let length = rng.pick(&["", "", "h", "hh", "l", "ll"]);
    *format += length;
    format.push(kind);
    match (length.starts_with('l'), "di".contains(kind)) {
        (true, true) => RandomValue::Long(bits as i64),
        (true, false) => RandomValue::Ulong(bits),
        (false, true) => RandomValue::Int(bits as i32),
        (false, false) => RandomValue::Uint(bits as u32),
    }
}

/// What the C library prints.
fn printed_by_c(conversion: &RandomConversion) -> String {
    let format = CString::new(conversion.format.clone()).expect("no zero");
    let mut buffer = [0u8; 2048];
    let (to, size) = (buffer.as_mut_ptr().cast(), buffer.len());
    macro_rules! print {
        ($value:expr) => {
            // SAFETY: the buffer has the size that is passed, and the format has conversions for these arguments.
            unsafe {
                match conversion.stars[..] {
                    [] => libc::snprintf(to, size, format.as_ptr(), $value),
                    [one] => libc::snprintf(to, size, format.as_ptr(), one as c_int, $value),
                    [one, two] => libc::snprintf(to, size, format.as_ptr(), one as c_int, two as c_int, $value),
                    _ => unreachable!("a conversion has two sizes at most"),
                }
            }
        };
    }
    let length = match conversion.value {
        RandomValue::Int(value) => print!(value as c_int),
        RandomValue::Uint(value) => print!(value as c_uint),
        RandomValue::Long(value) => print!(value as c_longlong),
        RandomValue::Ulong(value) => print!(value as c_ulonglong),
        RandomValue::Float(value) => print!(f64::from(value)),
        RandomValue::Double(value) => print!(value),
    };
    String::from_utf8(buffer[..length as usize].to_vec()).expect("plain text")
}

#[test]
fn formats_of_c_print_what_c_prints() {
    let mut rng = TestRng::new(20_261_119);
    for _ in 0..250_000 {
        let (mut format, mut expected) = (String::new(), String::new());
        let (mut arguments, mut words) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let conversion = random_conversion(&mut rng);
            format += &conversion.format;
            format += " and %% ";
            expected += &printed_by_c(&conversion);
            expected += " and % ";
            for star in &conversion.stars {
                arguments.push(PrintArgument::Scalar(PrintScalar::Int { bits: 32, is_signed: true }));
                words.push(*star as u32);
            }
            let (scalar, own) = conversion.value.argument();
            arguments.push(PrintArgument::Scalar(scalar));
            words.extend(own);
        }
        let printed = format_print(&format, &arguments, &words).expect("a format without problems");
        assert_eq!(printed, expected, "{format:?} of {words:x?}");
    }
}
