fn main() {
    let a: Vec<String> = std::env::args().skip(1).map(|p| std::fs::read_to_string(p).unwrap()).collect();
    match lavascope_registry::parse(&a[0], &a[1]) {
        Ok(r) => println!(
            "version {} cmds {} aliases {} structs {} unions {} handles {} ({} disp) enums {} bitmasks {} blocks {} fp {} ext {} stages {} fmts {}",
            r.header_version,
            r.commands.len(),
            r.aliases.len(),
            r.structs.values().filter(|s| !s.is_union).count(),
            r.structs.values().filter(|s| s.is_union).count(),
            r.handles.len(),
            r.handles.values().filter(|h| h.dispatchable).count(),
            r.enums.len(),
            r.bitmasks.len(),
            r.blocks.len(),
            r.function_pointers.len(),
            r.external_types.len(),
            r.sync.stages.len(),
            r.formats.len()
        ),
        Err(e) => {
            for e in e {
                println!("{e}")
            }
        }
    }
}
