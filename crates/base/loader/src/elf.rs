//! For which machine a library was built, from the first bytes of its file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use lavascope_platform::library::IS_ELF;

/// Up to and including `e_machine`.
const HEADER_SIZE: usize = 20;
const CLASS_64: u8 = 2;
const MACHINE_X86: u16 = 3;
const MACHINE_ARM: u16 = 40;
const MACHINE_X86_64: u16 = 62;
const MACHINE_AARCH64: u16 = 183;
const MACHINE_RISCV: u16 = 243;
const MACHINE_LOONGARCH: u16 = 258;

/// The target of the file in words, or none if it is not an ELF file.
pub(crate) fn architecture(path: &Path) -> io::Result<Option<String>> {
    let mut header = Vec::with_capacity(HEADER_SIZE);
    File::open(path)?.take(HEADER_SIZE as u64).read_to_end(&mut header)?;
    Ok(parse(&header))
}

/// The architecture of this program in the words of [`architecture`], where libraries are ELF files at all.
pub(crate) fn native() -> Option<String> {
    let machine = match std::env::consts::ARCH {
        "x86_64" => MACHINE_X86_64,
        "aarch64" => MACHINE_AARCH64,
        "riscv64" => MACHINE_RISCV,
        "loongarch64" => MACHINE_LOONGARCH,
        _ => return None,
    };
    IS_ELF.then(|| architecture_name(machine, CLASS_64))
}

fn parse(header: &[u8]) -> Option<String> {
    let header: &[u8; HEADER_SIZE] = header.try_into().ok()?;
    if !header.starts_with(b"\x7fELF") {
        return None;
    }
    let machine = [header[18], header[19]];
    let is_big_endian = header[5] == 2;
    let machine = if is_big_endian { u16::from_be_bytes(machine) } else { u16::from_le_bytes(machine) };
    let words = architecture_name(machine, header[4]);
    Some(if is_big_endian { format!("{words} big-endian") } else { words })
}

fn architecture_name(machine: u16, class: u8) -> String {
    let name = match machine {
        MACHINE_X86 => "x86",
        MACHINE_ARM => "arm",
        MACHINE_X86_64 => "x86-64",
        MACHINE_AARCH64 => "aarch64",
        MACHINE_RISCV => "riscv",
        MACHINE_LOONGARCH => "loongarch",
        _ => return format!("ELF machine {machine}"),
    };
    format!("{name} {}-bit", if class == CLASS_64 { 64 } else { 32 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(class: u8, data: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut bytes = b"\x7fELF".to_vec();
        bytes.extend([class, data]);
        bytes.resize(18, 0);
        bytes.extend(machine);
        bytes
    }

    #[test]
    fn the_machine_is_read_in_the_byte_order_of_the_file() {
        assert_eq!(parse(&header(2, 1, [62, 0])).as_deref(), Some("x86-64 64-bit"));
        assert_eq!(parse(&header(1, 1, [62, 0])).as_deref(), Some("x86-64 32-bit"));
        assert_eq!(parse(&header(2, 2, [0, 183])).as_deref(), Some("aarch64 64-bit big-endian"));
        assert_eq!(parse(&header(2, 1, [0xff, 0xff])).as_deref(), Some("ELF machine 65535"));
    }

    #[test]
    fn what_is_short_or_something_else_is_no_elf_file() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(&header(2, 1, [62, 0])[..19]), None);
        assert_eq!(parse(b"#!/bin/sh\necho no driver\n".first_chunk::<20>().expect("long enough")), None);
    }

    #[test]
    fn this_program_is_native() {
        let program = std::env::current_exe().expect("tests have a file");
        if let Some(native) = native() {
            assert_eq!(architecture(&program).expect("readable"), Some(native));
        }
    }
}
