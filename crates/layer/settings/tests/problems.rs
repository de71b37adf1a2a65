//! What is said about settings that cannot be used, to the letter.
//!
//! `problems.txt` holds the cases: a line of a settings file, a variable or a setting of the application, and under it
//! what is said. With `LAVASCOPE_BLESS=1` it is written anew instead of compared.

use std::path::Path;

use lavascope_settings::{ApplicationSettings, LayerSetting, SettingValues, SettingsFile, Sources, resolve};

#[test]
fn every_problem_reads_as_its_file_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/problems.txt");
    let expected = std::fs::read_to_string(&path).expect("the cases");
    let mut actual = String::new();
    for line in expected.lines().filter(|it| !it.starts_with("  ")) {
        actual.push_str(line);
        actual.push('\n');
        if !line.is_empty() && !line.starts_with("//") {
            for problem in resolve(&sources(line)).1 {
                actual.push_str(&format!("  {problem}\n"));
            }
        }
    }
    if std::env::var_os("LAVASCOPE_BLESS").is_some() {
        return std::fs::write(&path, &actual).expect("writable cases");
    }
    for (actual, expected) in actual.lines().zip(expected.lines()) {
        assert_eq!(actual, expected, "if this is better, LAVASCOPE_BLESS=1 writes it");
    }
    assert_eq!(actual.lines().count(), expected.lines().count());
}

/// `file: LINE`, `NAME=VALUE` for a variable, or `LAYER NAME TYPE VALUE…` for a setting of the application.
fn sources(case: &str) -> Sources {
    if let Some(line) = case.strip_prefix("file: ") {
        let bytes = unescaped(line);
        let file = Some(SettingsFile { path: "vk_layer_settings.txt".to_owned(), bytes });
        return Sources { file, ..Sources::default() };
    }
    if let Some((name, value)) = case.split_once('=') {
        return Sources { environment: vec![(name.into(), value.into())], ..Sources::default() };
    }
    let mut words = case.split(' ').map(str::to_owned);
    let mut next = || words.next().expect("LAYER NAME TYPE");
    let (layer, name, kind) = (next(), next(), next());
    let numbers = |it: &mut dyn Iterator<Item = String>| it.map(|it| it.parse().expect("a number")).collect();
    let values = match kind.as_str() {
        "int64" => SettingValues::Int64(numbers(&mut words)),
        "float64" => SettingValues::Float64(words.map(|it| it.parse().expect("a number")).collect()),
        "string" => SettingValues::String(words.collect()),
        other => SettingValues::Unknown(other.parse().expect("int64, float64, string or the number of a type")),
    };
    let layer_settings = vec![vec![LayerSetting { layer, name, values }]];
    Sources {
        application: ApplicationSettings { layer_settings, ..ApplicationSettings::default() },
        ..Sources::default()
    }
}

/// `\n` and `\xff` as in Rust.
fn unescaped(text: &str) -> Vec<u8> {
    let mut pieces = text.split('\\');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (byte, rest) = match piece.strip_prefix('x') {
            Some(hex) => (u8::from_str_radix(&hex[..2], 16).expect("two hexadecimal digits"), &hex[2..]),
            None => (b'\n', piece.strip_prefix('n').expect("\\n or \\x")),
        };
        bytes.push(byte);
        bytes.extend(rest.bytes());
    }
    bytes
}
