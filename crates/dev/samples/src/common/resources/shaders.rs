//! The compiled shaders, which `cargo xtask shaders` makes from the sources beside them.

use std::io::Cursor;

use ash::vk;

use crate::common::Gpu;
use crate::failure::Failure;

#[derive(Clone, Copy)]
pub(crate) struct Shader {
    pub(crate) name: &'static str,
    pub(crate) code: &'static [u8],
}

impl Shader {
    /// The stage that the name of the source ends with.
    pub(crate) fn stage(self) -> vk::ShaderStageFlags {
        match self.name.rsplit('.').next().unwrap_or_default() {
            "vert" => vk::ShaderStageFlags::VERTEX,
            "frag" => vk::ShaderStageFlags::FRAGMENT,
            "geom" => vk::ShaderStageFlags::GEOMETRY,
            "tesc" => vk::ShaderStageFlags::TESSELLATION_CONTROL,
            "tese" => vk::ShaderStageFlags::TESSELLATION_EVALUATION,
            "task" => vk::ShaderStageFlags::TASK_EXT,
            "mesh" => vk::ShaderStageFlags::MESH_EXT,
            "rgen" => vk::ShaderStageFlags::RAYGEN_KHR,
            "rint" => vk::ShaderStageFlags::INTERSECTION_KHR,
            "rahit" => vk::ShaderStageFlags::ANY_HIT_KHR,
            "rchit" => vk::ShaderStageFlags::CLOSEST_HIT_KHR,
            "rmiss" => vk::ShaderStageFlags::MISS_KHR,
            "rcall" => vk::ShaderStageFlags::CALLABLE_KHR,
            _ => vk::ShaderStageFlags::COMPUTE,
        }
    }
}

/// A shader by the name of its source file.
macro_rules! shader {
    ($name:literal) => {
        $crate::common::Shader {
            name: $name,
            code: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $name, ".spv")),
        }
    };
}
pub(crate) use shader;

impl Gpu {
    /// A module that the caller destroys once its pipeline exists.
    pub(crate) fn shader_module(&self, shader: Shader) -> Result<vk::ShaderModule, Failure> {
        let code = ash::util::read_spv(&mut Cursor::new(shader.code))?;
        let info = vk::ShaderModuleCreateInfo::default().code(&code);
        // SAFETY: `info` lives until the call returns, and the code is what the compiler made (lifetime).
        let module = unsafe { self.device.create_shader_module(&info, None) }?;
        Ok(self.name(module, shader.name))
    }
}
