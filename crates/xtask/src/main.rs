fn main() {
    let a: Vec<String> = ["vk.xml", "video.xml"]
        .map(|p| std::fs::read_to_string(format!("/tmp/reg/vulkan_object/{p}")).unwrap())
        .to_vec();
    let r = lavascope_registry::parse(&a[0], &a[1]).unwrap();
    match lavascope_codegen::emit(&r) {
        Ok(files) => {
            for (p, t) in files {
                std::fs::create_dir_all(p.parent().unwrap()).unwrap();
                std::fs::write(p, t).unwrap();
            }
        }
        Err(e) => {
            for e in e {
                println!("{e}")
            }
        }
    }
}
