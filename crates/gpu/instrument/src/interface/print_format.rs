//! The format strings of `debugPrintfEXT`: those of C, vectors (`%v3f`), and `%ul` for 64 bits in hexadecimal.
//!
//! SPIR-V leaves the format to its reader. C decides what each conversion prints; what C does not have is as in the
//! Khronos layer. The type of an argument comes from the module, not from the format, so a conversion that does not fit
//! its argument never shifts the arguments behind it.

use std::borrow::Cow;
use std::ops::Range;

use lavascope_spirv::{Id, Instruction, Module};
use spirv::Op;

/// Longer fields are cut: C promises no more than this many characters of a conversion.
const WIDTH_MAX: usize = 4095;

/// Words that the arguments of a print may have.
const WORDS_MAX: usize = 64;

/// What the format sees of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrintArgument {
    Scalar(PrintScalar),
    /// A vector with so many components.
    Vector(PrintScalar, u32),
    /// An `OpString`.
    Text(String),
    /// Nothing that can be printed.
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintScalar {
    Int { bits: u32, is_signed: bool },
    Float { bits: u32 },
    Bool,
    Pointer,
}

impl PrintScalar {
    /// Words in a record. Numbers with fewer bits are extended to 32.
    fn words(self) -> usize {
        if self.is_wide() { 2 } else { 1 }
    }

    fn is_wide(self) -> bool {
        matches!(self, PrintScalar::Int { bits: 64, .. } | PrintScalar::Float { bits: 64 } | PrintScalar::Pointer)
    }

    fn of_type(module: &Module, ty: Id) -> Option<PrintScalar> {
        let ty = module.definition(ty)?;
        Some(match ty.op()? {
            Op::TypeInt => PrintScalar::Int { bits: ty.word(2), is_signed: ty.word(3) != 0 },
            Op::TypeFloat => PrintScalar::Float { bits: ty.word(2) },
            Op::TypeBool => PrintScalar::Bool,
            Op::TypePointer if ty.word(2) == spirv::StorageClass::PhysicalStorageBuffer as u32 => PrintScalar::Pointer,
            _ => return None,
        })
    }
}

impl PrintArgument {
    /// The arguments of a print.
    pub(crate) fn all(module: &Module, print: Instruction<'_>) -> Vec<PrintArgument> {
        print.words_from(6).iter().map(|it| PrintArgument::of(module, Id(*it))).collect()
    }

    fn of(module: &Module, id: Id) -> PrintArgument {
        let Some(value) = module.definition(id) else { return PrintArgument::Other };
        if value.is(Op::String) {
            return PrintArgument::Text(value.text(2).into_owned());
        }
        let Some(ty) = value.result_type() else { return PrintArgument::Other };
        let vector = module.definition(ty).filter(|it| it.is(Op::TypeVector));
        let scalar = PrintScalar::of_type(module, vector.map_or(ty, |it| it.id(2)));
        match (scalar, vector) {
            (Some(scalar), None) => PrintArgument::Scalar(scalar),
            (Some(scalar), Some(vector)) => PrintArgument::Vector(scalar, vector.word(3)),
            (None, _) => PrintArgument::Other,
        }
    }

    /// Words in a record.
    pub(crate) fn words(&self) -> usize {
        match self {
            PrintArgument::Scalar(scalar) => scalar.words(),
            PrintArgument::Vector(scalar, count) => scalar.words() * *count as usize,
            PrintArgument::Text(_) | PrintArgument::Other => 0,
        }
    }

    /// The components, with their words.
    fn values(&self, words: &mut impl Iterator<Item = u32>) -> Vec<PrintValue> {
        let (scalar, count) = match self {
            PrintArgument::Scalar(scalar) => (*scalar, 1),
            PrintArgument::Vector(scalar, count) => (*scalar, *count),
            PrintArgument::Text(_) | PrintArgument::Other => return Vec::new(),
        };
        let mut word = || u64::from(words.next().unwrap_or(0));
        let mut one = |_| PrintValue { scalar, bits: if scalar.is_wide() { word() | word() << 32 } else { word() } };
        (0..count).map(&mut one).collect()
    }
}

/// A number that was printed, with its bits extended to 32 or 64.
#[derive(Clone, Copy)]
struct PrintValue {
    scalar: PrintScalar,
    bits: u64,
}

impl PrintValue {
    fn as_signed(self) -> i64 {
        match self.scalar {
            PrintScalar::Int { bits: 64, .. } | PrintScalar::Float { bits: 64 } | PrintScalar::Pointer => {
                self.bits as i64
            }
            // C converts an unsigned number to `int`.
            PrintScalar::Int { .. } | PrintScalar::Float { .. } | PrintScalar::Bool => i64::from(self.bits as i32),
        }
    }

    /// The number, or the bits of an integer taken for one.
    fn as_float(self) -> f64 {
        if self.scalar.is_wide() { f64::from_bits(self.bits) } else { f64::from(f32::from_bits(self.bits as u32)) }
    }
}

/// A part of a format.
#[derive(Debug, PartialEq, Eq)]
enum FormatPiece<'a> {
    Text(&'a str),
    Conversion(Conversion),
}

/// A conversion: `%-8.3v4lx`.
#[derive(Debug, PartialEq, Eq)]
struct Conversion {
    /// Its bytes in the format.
    place: Range<usize>,
    flags: String,
    width: Option<FieldSize>,
    precision: Option<FieldSize>,
    /// Zero for a scalar.
    components: u32,
    length: LengthModifier,
    /// A letter of C; `u` of `%ul` is an `x`.
    kind: char,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldSize {
    Given(usize),
    /// A star: the next argument.
    Argument,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LengthModifier {
    #[default]
    Int,
    Char,
    Short,
    Long,
}

/// What is wrong with a format or with the arguments for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrintProblem {
    /// Nothing is printed. Otherwise what is printed may not be what is meant.
    pub is_error: bool,
    pub text: String,
}

impl PrintProblem {
    fn error(text: String) -> PrintProblem {
        PrintProblem { is_error: true, text }
    }

    fn warning(text: String) -> PrintProblem {
        PrintProblem { is_error: false, text }
    }
}

/// What a print prints: its format, and the words of its arguments.
pub fn format_print(format: &str, arguments: &[PrintArgument], words: &[u32]) -> Result<String, PrintProblem> {
    let pieces = parse(format)?;
    let mut words = words.iter().copied();
    let mut rest = arguments.iter();
    let mut text = String::new();
    for piece in pieces {
        match piece {
            FormatPiece::Text(literal) => text += literal,
            FormatPiece::Conversion(conversion) => {
                let mut size = |field: Option<FieldSize>| match field? {
                    FieldSize::Given(size) => Some(size as i64),
                    FieldSize::Argument => Some(rest.next()?.values(&mut words).first()?.as_signed()),
                };
                let sizes = (size(conversion.width), size(conversion.precision));
                let argument = rest.next().ok_or_else(|| PrintProblem::error("arguments are missing".into()))?;
                conversion.print(&mut text, sizes, argument, &argument.values(&mut words));
            }
        }
    }
    Ok(text)
}

impl Conversion {
    /// Appends an argument. The sizes are those of the field: its width and precision.
    fn print(
        &self,
        text: &mut String,
        (width, precision): (Option<i64>, Option<i64>),
        argument: &PrintArgument,
        values: &[PrintValue],
    ) {
        let mut flags = self.flags.clone();
        flags.push_str(if width.is_some_and(|it| it < 0) { "-" } else { "" });
        let limited = |size: i64| usize::try_from(size.unsigned_abs()).map_or(WIDTH_MAX, |it| it.min(WIDTH_MAX));
        let (width, precision) = (width.map(limited), precision.filter(|it| *it >= 0).map(limited));
        let field = PrintField { flags: &flags, width, precision };
        if let PrintArgument::Text(string) = argument {
            return field.print_text(text, string);
        }
        for (at, value) in values.iter().take(self.components.max(1) as usize).enumerate() {
            text.push_str(if at > 0 { ", " } else { "" });
            self.print_value(text, &field, *value);
        }
    }

    fn print_value(&self, text: &mut String, field: &PrintField<'_>, value: PrintValue) {
        let (signed, is_wide) = (value.as_signed(), value.scalar.is_wide());
        // C promotes small integers to `int`, and the length says what it converts them back to.
        let unsigned = if is_wide { value.bits } else { value.bits & u64::from(u32::MAX) };
        let (signed, unsigned) = match self.length {
            LengthModifier::Char => (i64::from(signed as i8), unsigned & 0xff),
            LengthModifier::Short => (i64::from(signed as i16), unsigned & 0xffff),
            LengthModifier::Int | LengthModifier::Long => (signed, unsigned),
        };
        match self.kind {
            'd' | 'i' => field.print_integer(text, field.sign(signed < 0), signed.unsigned_abs().to_string()),
            'u' => field.print_integer(text, "", unsigned.to_string()),
            'o' => field.print_octal(text, unsigned),
            'x' | 'X' => field.print_hexadecimal(text, self.kind, unsigned),
            'p' => field.print_text(text, &if value.bits == 0 { "(nil)".into() } else { format!("{:#x}", value.bits) }),
            'c' => field.print_text(text, &char::from(value.bits as u8).to_string()),
            kind => field.print_float(text, kind, value.as_float()),
        }
    }
}

/// Where a value is printed.
struct PrintField<'a> {
    flags: &'a str,
    width: Option<usize>,
    precision: Option<usize>,
}

impl PrintField<'_> {
    fn has(&self, flag: char) -> bool {
        self.flags.contains(flag)
    }

    fn sign(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.has('+'), self.has(' ')) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        }
    }

    fn print_octal(&self, text: &mut String, number: u64) {
        let digits = format!("{number:o}");
        // The alternate form has a zero in front.
        let lacks_zero = self.has('#') && number > 0 && self.precision.unwrap_or(0) <= digits.len();
        let digits = if lacks_zero { format!("0{digits}") } else { digits };
        let precision = if self.has('#') { self.precision.map(|it| it.max(1)) } else { self.precision };
        PrintField { precision, ..*self }.print_integer(text, "", digits);
    }

    fn print_hexadecimal(&self, text: &mut String, kind: char, number: u64) {
        let (prefix, digits) = match kind {
            'X' => ("0X", format!("{number:X}")),
            _ => ("0x", format!("{number:x}")),
        };
        self.print_integer(text, if self.has('#') && number > 0 { prefix } else { "" }, digits);
    }

    /// Digits behind a sign or a prefix. The precision is the least number of digits, and zero with none is empty.
    fn print_integer(&self, text: &mut String, prefix: &str, digits: String) {
        let digits = if self.precision == Some(0) && digits == "0" { String::new() } else { digits };
        let missing = self.precision.unwrap_or(1).saturating_sub(digits.len());
        let digits = "0".repeat(missing) + &digits;
        // The flag for zeros counts only without a precision.
        self.print_padded(text, prefix, &digits, self.has('0') && self.precision.is_none());
    }

    fn print_float(&self, text: &mut String, kind: char, value: f64) {
        let magnitude = value.abs();
        let (prefix, body) = match kind.to_ascii_lowercase() {
            _ if value.is_nan() => ("", "nan".to_owned()),
            _ if value.is_infinite() => ("", "inf".to_owned()),
            'a' => ("0x", self.hexadecimal_float(magnitude)),
            'e' => ("", self.scientific(magnitude, self.precision.unwrap_or(6))),
            'g' => ("", self.shortest(magnitude, self.precision.unwrap_or(6).max(1))),
            _ => ("", self.with_point(format!("{magnitude:.0$}", self.precision.unwrap_or(6)))),
        };
        let (prefix, body) = match kind.is_ascii_uppercase() {
            true => (prefix.to_uppercase(), body.to_uppercase()),
            false => (prefix.to_owned(), body),
        };
        let prefix = self.sign(value.is_sign_negative()).to_owned() + &prefix;
        self.print_padded(text, &prefix, &body, self.has('0') && value.is_finite());
    }

    /// The alternate form has a point in any case.
    fn with_point(&self, digits: String) -> String {
        if self.has('#') && !digits.contains('.') { digits + "." } else { digits }
    }

    /// With an exponent of at least two digits.
    fn scientific(&self, magnitude: f64, precision: usize) -> String {
        let number = format!("{magnitude:.precision$e}");
        let (digits, exponent) = number.split_once('e').unwrap_or((&number, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", self.with_point(digits.to_owned()), exponent.abs())
    }

    /// `%g`: so many significant digits, in the shorter form, without zeros at the end.
    fn shortest(&self, magnitude: f64, significant: usize) -> String {
        let rounded = format!("{magnitude:.0$e}", significant - 1);
        let exponent: i64 = rounded.split_once('e').and_then(|it| it.1.parse().ok()).unwrap_or(0);
        let is_fixed = (-4..significant as i64).contains(&exponent);
        let number = match is_fixed {
            true => self.with_point(format!("{magnitude:.0$}", (significant as i64 - 1 - exponent) as usize)),
            false => self.scientific(magnitude, significant - 1),
        };
        if self.has('#') {
            return number;
        }
        let (digits, tail) = number.split_at(number.find('e').unwrap_or(number.len()));
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        format!("{digits}{tail}")
    }

    /// `%a` of a finite number, as the GNU C library has it: the digit before the point is 1, or 0 for numbers that are
    /// not normal.
    fn hexadecimal_float(&self, magnitude: f64) -> String {
        const DIGITS: usize = 13;
        let bits = magnitude.to_bits();
        let exponent = match bits {
            0 => 0,
            _ => (bits >> 52).max(1) as i64 - 1023,
        };
        let whole = bits & ((1 << 52) - 1) | u64::from(bits >> 52 > 0) << 52;
        let digits = self.precision.unwrap_or(DIGITS).min(DIGITS);
        let (cut, half) = (4 * (DIGITS - digits), (1 << (4 * (DIGITS - digits))) >> 1);
        let (kept, rest) = (whole >> cut, whole & ((1 << cut) - 1));
        let rounded = kept + u64::from(rest > half || rest == half && half > 0 && kept & 1 == 1);
        let all = format!("{rounded:0width$x}", width = digits + 1);
        let (lead, places) = all.split_at(all.len() - digits);
        let places = match self.precision {
            Some(precision) => places.to_owned() + &"0".repeat(precision - digits),
            None => places.trim_end_matches('0').to_owned(),
        };
        let point = if places.is_empty() && !self.has('#') { "" } else { "." };
        format!("{lead}{point}{places}p{exponent:+}")
    }

    /// A prefix and digits in the field, with zeros between them if those fill the field.
    fn print_padded(&self, text: &mut String, prefix: &str, digits: &str, fills_with_zeros: bool) {
        let missing = self.width.unwrap_or(0).saturating_sub(prefix.len() + digits.len());
        let (spaces, zeros) = (" ".repeat(missing), "0".repeat(missing));
        let parts = match (self.has('-'), fills_with_zeros) {
            (true, _) => [prefix, "", digits, &spaces],
            (false, true) => [prefix, &zeros, digits, ""],
            (false, false) => [&spaces, prefix, digits, ""],
        };
        parts.iter().for_each(|it| text.push_str(it));
    }

    fn print_text(&self, text: &mut String, string: &str) {
        let cut: String = string.chars().take(self.precision.unwrap_or(usize::MAX)).collect();
        let width = self.width.unwrap_or(0);
        *text += &if self.has('-') { format!("{cut:<width$}") } else { format!("{cut:>width$}") };
    }
}

/// The pieces of a format, in order.
fn parse(format: &str) -> Result<Vec<FormatPiece<'_>>, PrintProblem> {
    let mut pieces = Vec::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        pieces.push(FormatPiece::Text(&rest[..at]));
        rest = &rest[at..];
        if rest.starts_with("%%") {
            pieces.push(FormatPiece::Text("%"));
            rest = &rest[2..];
            continue;
        }
        let place = format.len() - rest.len();
        let conversion = ConversionParser { format, rest: &rest[1..] }.parse(place)?;
        rest = &format[conversion.place.end..];
        pieces.push(FormatPiece::Conversion(conversion));
    }
    pieces.push(FormatPiece::Text(rest));
    Ok(pieces)
}

struct ConversionParser<'a> {
    format: &'a str,
    rest: &'a str,
}

impl<'a> ConversionParser<'a> {
    /// A conversion whose `%` is at a place of the format.
    fn parse(mut self, place: usize) -> Result<Conversion, PrintProblem> {
        let flags: String = self.take_while(|it| "-+ #0".contains(it)).into();
        let width = self.size(place)?;
        let precision = match self.take('.') {
            true => Some(self.size(place)?.unwrap_or(FieldSize::Given(0))),
            false => None,
        };
        let components = match self.take('v') {
            true => self.components(place)?,
            false => 0,
        };
        let length = self.length();
        let Some(kind) = self.rest.chars().next().filter(|it| !it.is_whitespace()) else {
            return Err(self.error(place, "has no conversion specifier behind it; `%%` prints the character"));
        };
        if !"diouxXaAeEfFgGcsp".contains(kind) {
            let text = format!("has the conversion specifier `{}`, which does not exist", kind.escape_debug());
            return Err(self.error(place, &text));
        }
        self.rest = &self.rest[1..];
        // `%ul` is another word for `%lx`.
        let is_hexadecimal = kind == 'u' && length == LengthModifier::Int && self.take('l');
        let (kind, length) = if is_hexadecimal { ('x', LengthModifier::Long) } else { (kind, length) };
        let place = place..self.format.len() - self.rest.len();
        Ok(Conversion { place, flags, width, precision, components, length, kind })
    }

    fn take(&mut self, wanted: char) -> bool {
        let after = self.rest.strip_prefix(wanted);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'a str {
        let (part, rest) = self.rest.split_at(self.rest.find(|it| !is_part(it)).unwrap_or(self.rest.len()));
        self.rest = rest;
        part
    }

    fn size(&mut self, place: usize) -> Result<Option<FieldSize>, PrintProblem> {
        if self.take('*') {
            return Ok(Some(FieldSize::Argument));
        }
        match self.take_while(|it| it.is_ascii_digit()) {
            "" => Ok(None),
            digits => match digits.parse() {
                Ok(size) if size <= WIDTH_MAX => Ok(Some(FieldSize::Given(size))),
                _ => Err(self.error(place, &format!("has the size {digits}; sizes go up to {WIDTH_MAX}"))),
            },
        }
    }

    fn components(&mut self, place: usize) -> Result<u32, PrintProblem> {
        let digit = self.rest.chars().next().and_then(|it| it.to_digit(10)).filter(|it| (2..=4).contains(it));
        let Some(count) = digit else {
            return Err(self.error(place, "is a vector without a number of components; `%v2`, `%v3` and `%v4` exist"));
        };
        self.rest = &self.rest[1..];
        Ok(count)
    }

    fn length(&mut self) -> LengthModifier {
        match self.take_while(|it| "hljztL".contains(it)) {
            "" => LengthModifier::Int,
            "h" => LengthModifier::Short,
            "hh" => LengthModifier::Char,
            _ => LengthModifier::Long,
        }
    }

    fn error(&self, place: usize, what: &str) -> PrintProblem {
        PrintProblem::error(format!("{} {what}", position(self.format, place)))
    }
}

/// A `%` of a format, by its position in characters from 1.
fn position(format: &str, place: usize) -> String {
    let before = format.get(..place).unwrap_or(format);
    format!("the `%` at position {} of {}", before.chars().count() + 1, quoted(format))
}

/// What is wrong with a print: an error at most, or several warnings.
pub(crate) fn check_print(module: &Module, print: Instruction<'_>) -> Vec<PrintProblem> {
    let Some(format) = module.definition(print.id(5)).filter(|it| it.is(Op::String)) else {
        return vec![PrintProblem::error("the format is no `OpString`".into())];
    };
    let arguments = PrintArgument::all(module, print);
    let words: usize = arguments.iter().map(PrintArgument::words).sum();
    if words > WORDS_MAX {
        let text =
            format!("{} has arguments of {words} words; at most {WORDS_MAX} are printed", quoted(&format.text(2)));
        return vec![PrintProblem::error(text)];
    }
    check_format(&format.text(2), &arguments)
}

/// The beginning of a format, for a message.
fn quoted(format: &str) -> String {
    let start: String = format.chars().take(40).collect();
    format!("\"{}{}\"", start.escape_debug(), if start.len() < format.len() { "…" } else { "" })
}

fn check_format(format: &str, arguments: &[PrintArgument]) -> Vec<PrintProblem> {
    let pieces = match parse(format) {
        Ok(pieces) => pieces,
        Err(problem) => return vec![problem],
    };
    let conversions = pieces.iter().filter_map(|piece| match piece {
        FormatPiece::Conversion(conversion) => Some(conversion),
        FormatPiece::Text(_) => None,
    });
    let stars =
        |it: &Conversion| [it.width, it.precision].iter().filter(|it| **it == Some(FieldSize::Argument)).count();
    let (mut needed, mut problems) = (0, Vec::new());
    for conversion in conversions {
        let sizes = needed..needed + stars(conversion);
        needed = sizes.end + 1;
        let is_size =
            |it: &usize| matches!(arguments.get(*it), None | Some(PrintArgument::Scalar(PrintScalar::Int { .. })));
        let place = || position(format, conversion.place.start);
        if !sizes.clone().all(|it| is_size(&it)) {
            return vec![PrintProblem::error(format!("{} has a `*`, but its argument is no integer", place()))];
        }
        let Some(argument) = arguments.get(sizes.end) else { continue };
        match conversion.misfit(argument) {
            Some((true, text)) => return vec![PrintProblem::error(format!("{} {text}", place()))],
            Some((false, text)) => problems.push(PrintProblem::warning(format!("{} {text}", place()))),
            None => {}
        }
    }
    let (given, quoted) = (arguments.len(), quoted(format));
    if given < needed {
        return vec![PrintProblem::error(format!("{quoted} needs {needed} arguments, and there are {given}"))];
    }
    if given > needed {
        let text = format!("{quoted} has conversions for {needed} of {given} arguments; the others are ignored");
        problems.push(PrintProblem::warning(text));
    }
    problems
}

impl Conversion {
    /// Why an argument does not fit, and whether nothing can be printed for that.
    fn misfit(&self, argument: &PrintArgument) -> Option<(bool, Cow<'static, str>)> {
        let scalar = match (argument, self.components) {
            (PrintArgument::Text(_), 0) if self.kind == 's' => return None,
            (PrintArgument::Text(_), _) => return Some((true, "does not fit a string".into())),
            (PrintArgument::Other, _) => {
                return Some((true, "has an argument that is no number, no vector and no pointer".into()));
            }
            (PrintArgument::Vector(..), 0) => {
                return Some((true, "is for a scalar, and its argument is a vector".into()));
            }
            (PrintArgument::Scalar(_), 1..) => return Some((true, "is for a vector, and its argument is none".into())),
            (PrintArgument::Vector(_, count), own) if *count != own => {
                return Some((
                    false,
                    format!("is for a vector of {own} components, and its argument has {count}").into(),
                ));
            }
            (PrintArgument::Scalar(scalar) | PrintArgument::Vector(scalar, _), _) => *scalar,
        };
        let is_wide = scalar.is_wide() && scalar != PrintScalar::Pointer;
        let is_long = self.length == LengthModifier::Long;
        let is_integer = self.is_integer() && !matches!(scalar, PrintScalar::Float { .. });
        match scalar {
            _ if self.kind == 's' => Some((true, "is for a string, and its argument is none".into())),
            PrintScalar::Float { .. } if !self.is_float() => {
                Some((false, "is for an integer, and its argument is a floating-point number".into()))
            }
            PrintScalar::Int { .. } | PrintScalar::Bool | PrintScalar::Pointer if self.is_float() => {
                Some((false, "is for a floating-point number, and its argument is none".into()))
            }
            _ if is_integer && is_wide && !is_long => {
                Some((false, "is for 32 bits, and its argument has 64; `l` is missing".into()))
            }
            _ if is_integer && is_long && !scalar.is_wide() => {
                Some((false, "is for 64 bits, and its argument has fewer".into()))
            }
            _ => None,
        }
    }

    fn is_float(&self) -> bool {
        "aAeEfFgG".contains(self.kind)
    }

    fn is_integer(&self) -> bool {
        "diouxX".contains(self.kind)
    }
}
