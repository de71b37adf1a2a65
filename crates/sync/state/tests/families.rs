//! Accesses of extension commands: ray tracing, device-generated commands, device addresses.

mod common;

use common::*;
use lavascope_abi::{AccessFlags2 as Bits, PipelineStageFlags2 as Stage, *};
use lavascope_state::Collector;
use lavascope_sync_ir::{Certainty, HostStep, Region};

const BUILD: u64 = Stage::ACCELERATION_STRUCTURE_BUILD_KHR.0;
const COPY_STRUCTURE: u64 = Stage::ACCELERATION_STRUCTURE_COPY_KHR.0;
const STRUCTURE_READ: u64 = Bits::ACCELERATION_STRUCTURE_READ_KHR.0;
const STRUCTURE_WRITE: u64 = Bits::ACCELERATION_STRUCTURE_WRITE_KHR.0;

/// The model with buffer `n` at address `n << 16`, and command buffer 2 in recording.
fn addressed() -> App<Collector> {
    let mut app = fixture();
    (1..7).for_each(|it| app.set_buffer_address(it, it << 16));
    app.begin(2);
    app
}

fn at(serial: u64, offset: u64) -> u64 {
    (serial << 16) + offset
}

/// The accesses of the last command: resource, stage, access and bytes.
fn last(app: &App<Collector>) -> Vec<(u32, u64, u64, std::ops::Range<u64>)> {
    let index = app.program().command_buffers[0].commands.len() - 1;
    let all = accesses(app.program(), 0, index).iter();
    all.map(|item| match &item.region {
        Region::Buffer(bytes) => (item.resource.0, item.stage, item.access, bytes.clone()),
        Region::Image(_) => (item.resource.0, item.stage, item.access, 0..0),
    })
    .collect()
}

fn missing(app: &App<Collector>) -> Vec<&'static str> {
    app.tracker.untracked().map(|it| it.0.reason).collect()
}

fn make_structure(app: &mut App<Collector>, serial: u64, buffer_serial: u64) {
    let info = AccelerationStructureCreateInfoKHR {
        buffer: buffer(buffer_serial),
        size: 1024,
        ..AccelerationStructureCreateInfoKHR::zeroed()
    };
    create!(
        app, CreateAccelerationStructureKHR, CreateAccelerationStructureKHRParams, info,
        p_acceleration_structure: acceleration_structure(serial)
    );
}

#[test]
fn acceleration_structures_are_serialized_and_asked() {
    let mut app = addressed();
    make_structure(&mut app, 1, 5);
    let mut out = CopyAccelerationStructureToMemoryInfoKHR {
        src: acceleration_structure(1),
        ..CopyAccelerationStructureToMemoryInfoKHR::zeroed()
    };
    out.dst.words = [at(1, 256)];
    record!(
        app,
        CmdCopyAccelerationStructureToMemoryKHR,
        CmdCopyAccelerationStructureToMemoryKHRParams { p_info: Ptr::to(&out) }
    );
    let written = (0, COPY_STRUCTURE, Bits::TRANSFER_WRITE.0, 256..312);
    assert_eq!(last(&app), [(4, COPY_STRUCTURE, STRUCTURE_READ, 0..1024), written]);
    let mut back = CopyMemoryToAccelerationStructureInfoKHR {
        dst: acceleration_structure(1),
        ..CopyMemoryToAccelerationStructureInfoKHR::zeroed()
    };
    back.src.words = [at(1, 256)];
    record!(
        app,
        CmdCopyMemoryToAccelerationStructureKHR,
        CmdCopyMemoryToAccelerationStructureKHRParams { p_info: Ptr::to(&back) }
    );
    let read = (0, COPY_STRUCTURE, Bits::TRANSFER_READ.0, 256..312);
    assert_eq!(last(&app), [(4, COPY_STRUCTURE, STRUCTURE_WRITE, 0..1024), read]);
    record!(
        app,
        CmdWriteAccelerationStructuresPropertiesKHR,
        CmdWriteAccelerationStructuresPropertiesKHRParams {
            acceleration_structure_count: 1,
            p_acceleration_structures: Ptr::to(&acceleration_structure(1)),
            query_type: QueryType::ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR,
            query_pool: query_pool(1),
            first_query: 0,
        }
    );
    assert_eq!(last(&app), [(4, BUILD, STRUCTURE_READ, 0..1024)]);
}

#[test]
fn the_host_builds_and_copies_what_lies_in_buffers() {
    let mut app = addressed();
    make_structure(&mut app, 1, 5);
    make_structure(&mut app, 2, 6);
    let info = AccelerationStructureBuildGeometryInfoKHR {
        dst_acceleration_structure: acceleration_structure(1),
        ..AccelerationStructureBuildGeometryInfoKHR::zeroed()
    };
    let ranges = Ptr::<AccelerationStructureBuildRangeInfoKHR>::NULL;
    call!(
        app,
        BuildAccelerationStructuresKHR,
        BuildAccelerationStructuresKHRParams {
            deferred_operation: DeferredOperationKHR(0),
            info_count: 1,
            p_infos: Ptr::to(&info),
            pp_build_range_infos: Ptr::to(&ranges),
        }
    );
    let info = CopyAccelerationStructureInfoKHR {
        src: acceleration_structure(1),
        dst: acceleration_structure(2),
        ..CopyAccelerationStructureInfoKHR::zeroed()
    };
    call!(
        app,
        CopyAccelerationStructureKHR,
        CopyAccelerationStructureKHRParams { deferred_operation: DeferredOperationKHR(0), p_info: Ptr::to(&info) }
    );
    let access = |resource, is_write| HostStep::HostAccess {
        resource: lavascope_sync_ir::ResourceId(resource),
        region: Region::Buffer(0..1024),
        is_write,
        certainty: Certainty::Certain,
    };
    assert_eq!(app.program().steps, [access(4, true), access(4, false), access(5, true)]);
    assert_eq!(missing(&app), ["memory that the host names by an address of its own"]);
}

fn make_structure_nv(app: &mut App<Collector>, serial: u64) {
    let info = AccelerationStructureCreateInfoNV::zeroed();
    create!(
        app, CreateAccelerationStructureNV, CreateAccelerationStructureNVParams, info,
        p_acceleration_structure: structure_nv(serial)
    );
    let info = AccelerationStructureMemoryRequirementsInfoNV {
        acceleration_structure: structure_nv(serial),
        ..AccelerationStructureMemoryRequirementsInfoNV::zeroed()
    };
    let needs = MemoryRequirements2 {
        memory_requirements: MemoryRequirements { size: 512, alignment: 256, memory_type_bits: 1 },
        ..MemoryRequirements2::zeroed()
    };
    call!(
        app,
        GetAccelerationStructureMemoryRequirementsNV,
        GetAccelerationStructureMemoryRequirementsNVParams {
            p_info: Ptr::to(&info),
            p_memory_requirements: Ptr::to(&needs).cast(),
        }
    );
    let info = BindAccelerationStructureMemoryInfoNV {
        acceleration_structure: structure_nv(serial),
        memory: memory(MEMORY),
        memory_offset: (1 << 22) + serial * 4096,
        ..BindAccelerationStructureMemoryInfoNV::zeroed()
    };
    call!(
        app,
        BindAccelerationStructureMemoryNV,
        BindAccelerationStructureMemoryNVParams { bind_info_count: 1, p_bind_infos: Ptr::to(&info) }
    );
}

#[test]
fn structures_of_nv_have_memory_of_their_own() {
    let mut app = addressed();
    make_structure_nv(&mut app, 1);
    make_structure_nv(&mut app, 2);
    let mut geometry = GeometryNV::zeroed();
    geometry.geometry.triangles = GeometryTrianglesNV {
        vertex_data: buffer(1),
        vertex_offset: 16,
        vertex_count: 4,
        vertex_stride: 12,
        vertex_format: Format::R32G32B32_SFLOAT,
        index_data: buffer(2),
        index_count: 6,
        index_type: IndexType::UINT16,
        ..GeometryTrianglesNV::zeroed()
    };
    let info = AccelerationStructureInfoNV {
        type_: AccelerationStructureTypeKHR::BOTTOM_LEVEL_KHR,
        geometry_count: 1,
        p_geometries: Ptr::to(&geometry),
        ..AccelerationStructureInfoNV::zeroed()
    };
    record!(
        app,
        CmdBuildAccelerationStructureNV,
        CmdBuildAccelerationStructureNVParams {
            p_info: Ptr::to(&info),
            instance_data: Buffer(0),
            instance_offset: 0,
            update: Bool32(1),
            dst: structure_nv(1),
            src: structure_nv(2),
            scratch: buffer(3),
            scratch_offset: 512,
        }
    );
    let wanted = [
        (10, BUILD, STRUCTURE_WRITE, 0..512),
        (11, BUILD, STRUCTURE_READ, 0..512),
        (2, BUILD, STRUCTURE_WRITE, 512..768),
        (0, BUILD, Bits::SHADER_READ.0, 16..64),
        (1, BUILD, Bits::SHADER_READ.0, 0..12),
    ];
    assert_eq!(last(&app), wanted);
    record!(
        app,
        CmdCopyAccelerationStructureNV,
        CmdCopyAccelerationStructureNVParams {
            dst: structure_nv(2),
            src: structure_nv(1),
            mode: CopyAccelerationStructureModeKHR::COMPACT_KHR,
        }
    );
    let wanted = [(10, COPY_STRUCTURE, STRUCTURE_READ, 0..512), (11, COPY_STRUCTURE, STRUCTURE_WRITE, 0..512)];
    assert_eq!(last(&app), wanted);
    assert_eq!(missing(&app), [""; 0]);
}

#[test]
fn traces_of_nv_read_their_tables() {
    let mut app = addressed();
    let stages = [stage(ShaderStageFlagBits::RAYGEN_KHR, 2)];
    let info = RayTracingPipelineCreateInfoNV {
        stage_count: 1,
        p_stages: Ptr::to_slice(&stages),
        ..RayTracingPipelineCreateInfoNV::zeroed()
    };
    call!(
        app,
        CreateRayTracingPipelinesNV,
        CreateRayTracingPipelinesNVParams {
            pipeline_cache: PipelineCache(0),
            create_info_count: 1,
            p_create_infos: Ptr::to(&info),
            p_allocator: Ptr::NULL,
            p_pipelines: Ptr::to(&pipeline(7)),
        }
    );
    app.bind_pipeline(2, PipelineBindPoint::RAY_TRACING_KHR, 7);
    record!(
        app,
        CmdTraceRaysNV,
        CmdTraceRaysNVParams {
            raygen_shader_binding_table_buffer: buffer(1),
            raygen_shader_binding_offset: 64,
            miss_shader_binding_table_buffer: Buffer(0),
            miss_shader_binding_offset: 0,
            miss_shader_binding_stride: 0,
            hit_shader_binding_table_buffer: buffer(2),
            hit_shader_binding_offset: 0,
            hit_shader_binding_stride: 32,
            callable_shader_binding_table_buffer: Buffer(0),
            callable_shader_binding_offset: 0,
            callable_shader_binding_stride: 0,
            width: 8,
            height: 8,
            depth: 1,
        }
    );
    let (stage, table) = (Stage::RAY_TRACING_SHADER_KHR.0, Bits::SHADER_BINDING_TABLE_READ_KHR.0);
    assert_eq!(last(&app), [(0, stage, table, 64..4096), (1, stage, table, 0..4096)]);
    assert!(accesses(app.program(), 0, 0).iter().all(|it| it.certainty == Certainty::Anywhere));
}

#[test]
fn micromaps_are_built_copied_and_taken() {
    let mut app = addressed();
    for serial in [1, 2] {
        let info = MicromapCreateInfoEXT { buffer: buffer(4 + serial), size: 256, ..MicromapCreateInfoEXT::zeroed() };
        create!(app, CreateMicromapEXT, CreateMicromapEXTParams, info, p_micromap: micromap(serial));
    }
    let usage = MicromapUsageEXT { count: 2, subdivision_level: 2, format: 2 };
    let mut info = MicromapBuildInfoEXT {
        dst_micromap: micromap(1),
        usage_counts_count: 1,
        p_usage_counts: Ptr::to(&usage),
        triangle_array_stride: 8,
        ..MicromapBuildInfoEXT::zeroed()
    };
    info.data.words = [at(1, 0)];
    info.scratch_data.words = [at(2, 0)];
    info.triangle_array.words = [at(3, 256)];
    record!(app, CmdBuildMicromapsEXT, CmdBuildMicromapsEXTParams { info_count: 1, p_infos: Ptr::to(&info) });
    let stage = Stage::MICROMAP_BUILD_EXT.0;
    let (read, write) = (Bits::MICROMAP_READ_EXT.0, Bits::MICROMAP_WRITE_EXT.0);
    let wanted = [
        (4, stage, write, 0..256),
        (1, stage, write, 0..256),
        (2, stage, Bits::SHADER_READ.0, 256..272),
        (0, stage, Bits::SHADER_READ.0, 0..8),
    ];
    assert_eq!(last(&app), wanted);
    let info = CopyMicromapInfoEXT { src: micromap(1), dst: micromap(2), ..CopyMicromapInfoEXT::zeroed() };
    record!(app, CmdCopyMicromapEXT, CmdCopyMicromapEXTParams { p_info: Ptr::to(&info) });
    assert_eq!(last(&app), [(4, stage, read, 0..256), (5, stage, write, 0..256)]);
    assert_eq!(missing(&app), [""; 0]);
}

#[test]
fn memory_is_decompressed_from_one_address_to_another() {
    let mut app = addressed();
    let region = DecompressMemoryRegionEXT {
        src_address: at(1, 16),
        dst_address: at(2, 0),
        compressed_size: 100,
        decompressed_size: 400,
    };
    let info =
        DecompressMemoryInfoEXT { region_count: 1, p_regions: Ptr::to(&region), ..DecompressMemoryInfoEXT::zeroed() };
    record!(app, CmdDecompressMemoryEXT, CmdDecompressMemoryEXTParams { p_decompress_memory_info_ext: Ptr::to(&info) });
    let stage = Stage::MEMORY_DECOMPRESSION_EXT.0;
    let wanted = [
        (0, stage, Bits::MEMORY_DECOMPRESSION_READ_EXT.0, 16..116),
        (1, stage, Bits::MEMORY_DECOMPRESSION_WRITE_EXT.0, 0..400),
    ];
    assert_eq!(last(&app), wanted);
}

#[test]
fn copies_with_parameters_in_memory_read_these_and_write_subresources() {
    let mut app = addressed();
    let parts = [one_layer()];
    record!(
        app,
        CmdCopyMemoryToImageIndirectNV,
        CmdCopyMemoryToImageIndirectNVParams {
            copy_buffer_address: at(1, 0),
            copy_count: 1,
            stride: 56,
            dst_image: image(1),
            dst_image_layout: ImageLayout::GENERAL,
            p_image_subresources: Ptr::to_slice(&parts),
        }
    );
    let wanted = [
        (0, Stage::COPY_INDIRECT_KHR.0, Bits::INDIRECT_COMMAND_READ.0, 0..56),
        (IMAGES[0], Stage::COPY.0, Bits::TRANSFER_WRITE.0, 0..0),
    ];
    assert_eq!(last(&app), wanted);
    let certainties: Vec<Certainty> = accesses(app.program(), 0, 0).iter().map(|it| it.certainty).collect();
    assert_eq!(certainties, [Certainty::Certain, Certainty::Anywhere]);
    assert_eq!(missing(&app), ["memory that parameters in memory name"]);
}

fn make_layout(app: &mut App<Collector>, tokens: &[IndirectCommandsTokenTypeEXT]) {
    let token = |type_| IndirectCommandsLayoutTokenEXT { type_, ..IndirectCommandsLayoutTokenEXT::zeroed() };
    let tokens: Vec<_> = tokens.iter().map(|it| token(*it)).collect();
    let info = IndirectCommandsLayoutCreateInfoEXT {
        token_count: tokens.len() as u32,
        p_tokens: Ptr::to_slice(&tokens),
        ..IndirectCommandsLayoutCreateInfoEXT::zeroed()
    };
    create!(
        app, CreateIndirectCommandsLayoutEXT, CreateIndirectCommandsLayoutEXTParams, info,
        p_indirect_commands_layout: commands_layout(1)
    );
}

fn execute(app: &mut App<Collector>, is_preprocessed: u32) {
    let info = GeneratedCommandsInfoEXT {
        indirect_commands_layout: commands_layout(1),
        indirect_execution_set: execution_set(1),
        indirect_address: at(1, 0),
        indirect_address_size: 64,
        preprocess_address: at(5, 0),
        preprocess_size: 128,
        max_sequence_count: 4,
        sequence_count_address: at(6, 8),
        ..GeneratedCommandsInfoEXT::zeroed()
    };
    record!(
        app,
        CmdExecuteGeneratedCommandsEXT,
        CmdExecuteGeneratedCommandsEXTParams {
            is_preprocessed: Bool32(is_preprocessed),
            p_generated_commands_info: Ptr::to(&info),
        }
    );
}

#[test]
fn generated_commands_read_their_parameters_and_do_what_their_layout_says() {
    let indirect = (Stage::DRAW_INDIRECT.0, Bits::INDIRECT_COMMAND_READ.0);
    for is_preprocessed in [0, 1] {
        let mut app = addressed();
        make_layout(&mut app, &[IndirectCommandsTokenTypeEXT::DISPATCH_EXT]);
        bind_set(&mut app, 1, &[]);
        app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 2);
        execute(&mut app, is_preprocessed);
        let (write, stage) = (Bits::SHADER_STORAGE_WRITE.0, Stage::COMPUTE_SHADER.0);
        let shader = (3, stage, write, 0..4096);
        let preprocess = (Stage::COMMAND_PREPROCESS_EXT.0, Bits::COMMAND_PREPROCESS_WRITE_EXT.0);
        let wanted = if is_preprocessed == 1 {
            vec![(4, indirect.0, indirect.1, 0..128), shader]
        } else {
            let parameters = (0, indirect.0, indirect.1, 0..64);
            let count = (5, indirect.0, indirect.1, 8..12);
            vec![parameters, count, (4, preprocess.0, preprocess.1, 0..128), shader]
        };
        assert_eq!(last(&app), wanted);
        assert_eq!(missing(&app), [""; 0]);
    }
}

#[test]
fn generated_commands_may_use_any_pipeline_of_their_set() {
    let mut app = addressed();
    make_layout(
        &mut app,
        &[IndirectCommandsTokenTypeEXT::EXECUTION_SET_EXT, IndirectCommandsTokenTypeEXT::DISPATCH_EXT],
    );
    app.make_compute_pipeline(8, 0);
    let pipelines = IndirectExecutionSetPipelineInfoEXT {
        initial_pipeline: pipeline(8),
        max_pipeline_count: 4,
        ..IndirectExecutionSetPipelineInfoEXT::zeroed()
    };
    let mut info = IndirectExecutionSetCreateInfoEXT::zeroed();
    info.info.words = [Ptr::to(&pipelines).0];
    create!(
        app, CreateIndirectExecutionSetEXT, CreateIndirectExecutionSetEXTParams, info,
        p_indirect_execution_set: execution_set(1)
    );
    let write = WriteIndirectExecutionSetPipelineEXT {
        index: 2,
        pipeline: pipeline(2),
        ..WriteIndirectExecutionSetPipelineEXT::zeroed()
    };
    call!(
        app,
        UpdateIndirectExecutionSetPipelineEXT,
        UpdateIndirectExecutionSetPipelineEXTParams {
            indirect_execution_set: execution_set(1),
            execution_set_write_count: 1,
            p_execution_set_writes: Ptr::to(&write),
        }
    );
    bind_set(&mut app, 1, &[]);
    execute(&mut app, 1);
    let all = accesses(app.program(), 0, 0);
    let writes: Vec<_> = all.iter().filter(|it| it.access == Bits::SHADER_STORAGE_WRITE.0).collect();
    assert_eq!(writes.len(), 1);
    assert_eq!((writes[0].resource.0, writes[0].certainty), (3, Certainty::Maybe));
}

#[test]
fn optical_flow_reads_its_inputs_and_writes_its_vectors() {
    let mut app = addressed();
    let info = OpticalFlowSessionCreateInfoNV::zeroed();
    create!(app, CreateOpticalFlowSessionNV, CreateOpticalFlowSessionNVParams, info, p_session: flow_session(1));
    use OpticalFlowSessionBindingPointNV as Place;
    for (binding_point, serial) in [(Place::INPUT_NV, 1), (Place::REFERENCE_NV, 2), (Place::FLOW_VECTOR_NV, 3)] {
        call!(
            app,
            BindOpticalFlowSessionImageNV,
            BindOpticalFlowSessionImageNVParams {
                session: flow_session(1),
                binding_point: binding_point,
                view: image_view(serial),
                layout: ImageLayout::GENERAL,
            }
        );
    }
    let info = OpticalFlowExecuteInfoNV::zeroed();
    record!(
        app,
        CmdOpticalFlowExecuteNV,
        CmdOpticalFlowExecuteNVParams { session: flow_session(1), p_execute_info: Ptr::to(&info) }
    );
    let (stage, read, write) = (Stage::OPTICAL_FLOW_NV.0, Bits::OPTICAL_FLOW_READ_NV.0, Bits::OPTICAL_FLOW_WRITE_NV.0);
    let wanted = [(IMAGES[0], stage, read, 0..0), (IMAGES[1], stage, read, 0..0), (IMAGES[2], stage, write, 0..0)];
    assert_eq!(last(&app), wanted);
}

#[test]
fn tensors_are_copied_and_barriers_are_about_them() {
    let mut app = addressed();
    for serial in [1, 2] {
        let description = TensorDescriptionARM::zeroed();
        let info = TensorCreateInfoARM { p_description: Ptr::to(&description), ..TensorCreateInfoARM::zeroed() };
        create!(app, CreateTensorARM, CreateTensorARMParams, info, p_tensor: tensor(serial));
        let info = BindTensorMemoryInfoARM {
            tensor: tensor(serial),
            memory: memory(MEMORY),
            memory_offset: (1 << 23) + serial * 4096,
            ..BindTensorMemoryInfoARM::zeroed()
        };
        call!(app, BindTensorMemoryARM, BindTensorMemoryARMParams { bind_info_count: 1, p_bind_infos: Ptr::to(&info) });
    }
    for (src_tensor, dst_tensor) in [(tensor(1), tensor(2)), (tensor(2), tensor(1))] {
        let info = CopyTensorInfoARM { src_tensor, dst_tensor, ..CopyTensorInfoARM::zeroed() };
        record!(app, CmdCopyTensorARM, CmdCopyTensorARMParams { p_copy_tensor_info: Ptr::to(&info) });
        let barrier = TensorMemoryBarrierARM {
            src_stage_mask: Stage::COPY,
            src_access_mask: Bits::TRANSFER_WRITE,
            dst_stage_mask: Stage::COPY,
            dst_access_mask: Bits::TRANSFER_READ,
            tensor: tensor(2),
            ..TensorMemoryBarrierARM::zeroed()
        };
        let info = DependencyInfo { p_next: Ptr::to(&barrier).cast(), ..DependencyInfo::zeroed() };
        record!(app, CmdPipelineBarrier2, CmdPipelineBarrier2Params { p_dependency_info: Ptr::to(&info) });
    }
    app.end(2);
    app.submit(0, 2, Fence(0));
    assert_eq!(lavascope_engine::check(app.program()), []);
    assert_eq!(missing(&app), [""; 0]);
}

#[test]
fn descriptors_in_a_buffer_are_read_and_what_they_lead_to_is_counted() {
    let mut app = addressed();
    call!(
        app,
        GetDescriptorSetLayoutSizeEXT,
        GetDescriptorSetLayoutSizeEXTParams { layout: set_layout(1), p_layout_size_in_bytes: Ptr::to(&64) }
    );
    let info = DescriptorBufferBindingInfoEXT { address: at(6, 0), ..DescriptorBufferBindingInfoEXT::zeroed() };
    record!(
        app,
        CmdBindDescriptorBuffersEXT,
        CmdBindDescriptorBuffersEXTParams { buffer_count: 1, p_binding_infos: Ptr::to(&info) }
    );
    record!(
        app,
        CmdSetDescriptorBufferOffsetsEXT,
        CmdSetDescriptorBufferOffsetsEXTParams {
            pipeline_bind_point: PipelineBindPoint::COMPUTE,
            layout: pipeline_layout(1),
            first_set: 0,
            set_count: 1,
            p_buffer_indices: Ptr::to(&0),
            p_offsets: Ptr::to(&256),
        }
    );
    app.bind_pipeline(2, PipelineBindPoint::COMPUTE, 2);
    dispatch(&mut app, 1);
    assert_eq!(last(&app), [(5, Stage::COMPUTE_SHADER.0, Bits::DESCRIPTOR_BUFFER_READ_EXT.0, 256..320)]);
    assert_eq!(missing(&app), ["what is reached through descriptors that stand in buffers"]);
}

#[test]
fn draws_that_resolve_go_to_what_they_resolve_to() {
    let mut app = addressed();
    let color = RenderingAttachmentInfo {
        image_view: image_view(1),
        resolve_mode: ResolveModeFlagBits::CUSTOM_EXT,
        resolve_image_view: image_view(2),
        ..RenderingAttachmentInfo::zeroed()
    };
    let info = RenderingInfo {
        render_area: Rect2D { extent: Extent2D { width: 16, height: 16 }, ..Rect2D::zeroed() },
        layer_count: 1,
        color_attachment_count: 1,
        p_color_attachments: Ptr::to(&color),
        ..RenderingInfo::zeroed()
    };
    record!(app, CmdBeginRendering, CmdBeginRenderingParams { p_rendering_info: Ptr::to(&info) });
    app.bind_pipeline(2, PipelineBindPoint::GRAPHICS, 1);
    let drawn = |app: &mut App<Collector>| {
        app.draw(2, 3, 0);
        last(app).into_iter().map(|it| (it.0, it.2)).collect::<Vec<_>>()
    };
    assert_eq!(drawn(&mut app), [(IMAGES[0], Bits::COLOR_ATTACHMENT_WRITE.0)]);
    record!(app, CmdBeginCustomResolveEXT, CmdBeginCustomResolveEXTParams { p_begin_custom_resolve_info: Ptr::NULL });
    assert_eq!(drawn(&mut app), [(IMAGES[1], Bits::COLOR_ATTACHMENT_WRITE.0)]);
}
