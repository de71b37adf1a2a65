//! Constants of data graphs: the tensor in the chain of their structure says how many bytes they have.

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::{
    Command, CreateDataGraphPipelinesARMParams, DataGraphPipelineConstantARM, DataGraphPipelineCreateInfoARM,
    DataGraphPipelineShaderModuleCreateInfoARM, Format, HandleType, ObjectId, Pipeline, Ptr, Structure,
    TensorDescriptionARM,
};
use lavascope_marshal::{Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker};
use lavascope_record::check;
use lavascope_record::pack_context::NoPackContext;

struct NoObjects;

impl IdResolver for NoObjects {
    fn id(&self, ty: HandleType, _handle: u64, _access: HandleAccess) -> ObjectId {
        ObjectId::unknown(ty)
    }
}

impl HandleResolver for NoObjects {
    fn handle(&self, _id: ObjectId) -> u64 {
        0
    }
}

/// The bytes of a constant after it was packed and unpacked for a driver.
fn through_a_record(format: Format, dimensions: &[i64], strides: &[i64], bytes: &[u8], size: usize) -> Vec<u8> {
    let tensor = TensorDescriptionARM {
        format,
        dimension_count: dimensions.len() as u32,
        p_dimensions: Ptr::to_slice(dimensions),
        p_strides: if strides.is_empty() { Ptr::NULL } else { Ptr::to_slice(strides) },
        ..TensorDescriptionARM::zeroed()
    };
    let constant = DataGraphPipelineConstantARM {
        p_next: Ptr::to(&tensor).cast(),
        p_constant_data: Ptr::to_slice(bytes).cast(),
        ..DataGraphPipelineConstantARM::zeroed()
    };
    let module = DataGraphPipelineShaderModuleCreateInfoARM {
        constant_count: 1,
        p_constants: Ptr::to(&constant),
        ..DataGraphPipelineShaderModuleCreateInfoARM::zeroed()
    };
    let info =
        DataGraphPipelineCreateInfoARM { p_next: Ptr::to(&module).cast(), ..DataGraphPipelineCreateInfoARM::zeroed() };
    let mut pipelines = [Pipeline(0)];
    let params = CreateDataGraphPipelinesARMParams {
        create_info_count: 1,
        p_create_infos: Ptr::to(&info),
        p_pipelines: Ptr::new(pipelines.as_mut_ptr().expose_provenance() as u64),
        ..CreateDataGraphPipelinesARMParams::zeroed()
    };
    let (mut stream, mut arena) = (RecordBuffer::default(), Arena::default());
    let image = (&raw const params).cast();
    // SAFETY: the parameters of this command, whose structures are variables of this function.
    let words = unsafe {
        Packer::new(&NoObjects, &NoPackContext).pack_parameters(
            &mut stream,
            Command::CreateDataGraphPipelinesARM,
            image,
            1,
        )
    };
    let unpacker = Unpacker { handles: &NoObjects, purpose: UnpackPurpose::Driver };
    let image = unpacker.unpack(check(words).expect("it was just packed"), &mut arena).expect("nothing is missing");
    // SAFETY: `unpack` made the parameters of this command, and the arena keeps them.
    unsafe {
        let info = &*(*image.cast::<CreateDataGraphPipelinesARMParams>()).p_create_infos.as_ptr();
        let module = &*info.p_next.cast::<DataGraphPipelineShaderModuleCreateInfoARM>().as_ptr();
        let data = (*module.p_constants.as_ptr()).p_constant_data.cast::<u8>();
        std::slice::from_raw_parts(data.as_ptr(), size).to_vec()
    }
}

#[test]
fn constants_of_data_graphs_are_in_the_record() {
    let bytes: Vec<u8> = (0..48).collect();
    assert_eq!(through_a_record(Format::R8_SINT, &[3, 2, 8], &[], &bytes, 48), bytes);
    assert_eq!(through_a_record(Format::R32_SFLOAT, &[3, 4], &[], &bytes, 48), bytes);
    // Rows of 16 bytes, of which the last ends early.
    assert_eq!(through_a_record(Format::R16_SINT, &[3, 4], &[16, 2], &bytes, 40), bytes[..40]);
}
