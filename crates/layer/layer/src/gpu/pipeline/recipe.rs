//! The create info of a pipeline, kept to create it again with other checks.
//!
//! The call is packed as for a trace, and unpacked when it is needed. The objects that it names must still exist then:
//! shaders and layouts have copies of ours, and the layer keeps a render pass as long as a recipe needs it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use lavascope_abi::desc::HandleAccess;
use lavascope_abi::*;
use lavascope_marshal::{Arena, HandleResolver, IdResolver, Packer, RecordBuffer, UnpackPurpose, Unpacker};
use lavascope_record::check::check;
use lavascope_record::encoding::Omissions;
use lavascope_record::pack_context::{NoPackContext, PackContext, SubpassUse};

use super::layouts::PipelineLayoutState;
use super::recipe_context::RecipeContext;
use crate::gpu::DeviceChecks;
use crate::gpu::report::debug_names::SharedName;

/// The create info of a pipeline.
pub(crate) struct PipelineRecipe {
    call: PackedCall,
    pub(crate) layout: Arc<PipelineLayoutState>,
    /// The shaders, by stage.
    pub(crate) sources: Vec<ShaderSource>,
    pub(crate) kind: RecipeKind,
    /// The render pass of the create info.
    pass: Option<Arc<KeptRenderPass>>,
}

/// A packed call that can be unpacked again.
pub(crate) struct PackedCall {
    record: Vec<u64>,
    handles: Vec<u64>,
}

/// A shader of the application.
#[derive(Clone)]
pub(crate) struct ShaderSource {
    pub(crate) words: Arc<Vec<u32>>,
    /// Null if the stage had no module of its own.
    pub(crate) module: ShaderModule,
    /// The debug name of the module.
    pub(crate) name: SharedName,
    /// Whether it is selected for checks.
    pub(crate) is_selected: bool,
}

impl ShaderSource {
    /// A shader without a module of its own.
    pub(crate) fn unnamed(words: Arc<Vec<u32>>) -> ShaderSource {
        ShaderSource { words, module: ShaderModule::default(), name: SharedName::default(), is_selected: true }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecipeKind {
    Graphics,
    Compute,
}

/// A render pass that is kept while a recipe needs it.
pub(crate) struct KeptRenderPass {
    pub(crate) handle: RenderPass,
    pub(super) subpasses: Vec<SubpassUse>,
}

/// Handles in the order in which packing found them.
#[derive(Default)]
struct CollectedHandles(RefCell<Vec<u64>>);

impl IdResolver for CollectedHandles {
    fn id(&self, ty: HandleType, handle: u64, _: HandleAccess) -> ObjectId {
        let mut all = self.0.borrow_mut();
        all.push(handle);
        ObjectId::new(ty, all.len() as u64 - 1).unwrap_or(ObjectId::unknown(ty))
    }
}

struct HandlesById<'a>(&'a [u64]);

impl HandleResolver for HandlesById<'_> {
    fn handle(&self, id: ObjectId) -> u64 {
        self.0.get(id.serial() as usize).copied().unwrap_or(0)
    }
}

impl PipelineRecipe {
    /// Keeps what one graphics pipeline is made of; none if that cannot be kept whole.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateGraphicsPipelines` that has not returned.
    pub(crate) unsafe fn graphics(
        info: &GraphicsPipelineCreateInfo,
        (layout, sources): (&Arc<PipelineLayoutState>, &[ShaderSource]),
        pass: Option<Arc<KeptRenderPass>>,
    ) -> Option<PipelineRecipe> {
        let mut place = Pipeline::default();
        let params = CreateGraphicsPipelinesParams {
            device: Device::default(),
            pipeline_cache: PipelineCache::default(),
            create_info_count: 1,
            p_create_infos: Ptr::to(info),
            p_allocator: Ptr::NULL,
            p_pipelines: crate::gpu::out_ptr(&mut place),
        };
        if info.render_pass.0 != 0 && pass.is_none() {
            return None;
        }
        let image = (&raw const params).cast();
        // SAFETY: the image is the parameters of this command for one info, which is valid by the contract of this
        // function. The device and the cache are null, which packing does not follow.
        let call =
            unsafe { PackedCall::new(Command::CreateGraphicsPipelines, image, &RecipeContext(pass.as_deref())) }?;
        let (layout, sources) = (Arc::clone(layout), sources.to_vec());
        Some(PipelineRecipe { call, layout, sources, kind: RecipeKind::Graphics, pass })
    }

    /// Keeps what one compute pipeline is made of; none if that cannot be kept whole.
    ///
    /// # Safety
    ///
    /// The info must be that of a valid `vkCreateComputePipelines` that has not returned.
    pub(crate) unsafe fn compute(
        info: &ComputePipelineCreateInfo,
        (layout, sources): (&Arc<PipelineLayoutState>, &[ShaderSource]),
    ) -> Option<PipelineRecipe> {
        let mut place = Pipeline::default();
        let params = CreateComputePipelinesParams {
            device: Device::default(),
            pipeline_cache: PipelineCache::default(),
            create_info_count: 1,
            p_create_infos: Ptr::to(info),
            p_allocator: Ptr::NULL,
            p_pipelines: crate::gpu::out_ptr(&mut place),
        };
        let image = (&raw const params).cast();
        // SAFETY: the image is the parameters of this command for one info, which is valid by the contract of this
        // function. The device and the cache are null, which packing does not follow.
        let call = unsafe { PackedCall::new(Command::CreateComputePipelines, image, &NoPackContext) }?;
        let (layout, sources) = (Arc::clone(layout), sources.to_vec());
        Some(PipelineRecipe { call, layout, sources, kind: RecipeKind::Compute, pass: None })
    }

    /// Unpacks the parameters of the call into an arena, where they live as long as it.
    pub(crate) fn unpack(&self, arena: &mut Arena) -> Option<*mut u8> {
        debug_assert!(self.pass.as_ref().is_none_or(|it| it.handle.0 != 0), "a pass that is kept has a handle");
        self.call.unpack(arena)
    }
}

impl PackedCall {
    /// None if the call cannot be kept whole.
    ///
    /// # Safety
    ///
    /// `image` must point to the parameters of a call of the command whose pointers obey its VUIDs, and stay until this
    /// returns.
    pub(crate) unsafe fn new(
        command: Command,
        image: *const u8,
        pack_context: &(impl PackContext + ?Sized),
    ) -> Option<PackedCall> {
        let met = CollectedHandles::default();
        let mut stream = RecordBuffer::default();
        // SAFETY: the contract of this function, which is that of `Packer::pack_parameters` for this image.
        let record =
            unsafe { Packer::new(&met, pack_context).pack_parameters(&mut stream, command, image, 0) }.to_vec();
        // A record with omissions cannot reproduce the call.
        check(&record).ok().filter(|it| it.omissions() == Omissions::default())?;
        Some(PackedCall { record, handles: met.0.into_inner() })
    }

    /// Unpacks the parameters of the call into an arena, where they live as long as it.
    pub(crate) fn unpack(&self, arena: &mut Arena) -> Option<*mut u8> {
        let record = check(&self.record).ok()?;
        let unpacker = Unpacker { handles: &HandlesById(&self.handles), purpose: UnpackPurpose::Driver };
        unpacker.unpack(record, arena).ok()
    }
}

/// Render passes by their handles.
#[derive(Default)]
pub(crate) struct RenderPasses {
    alive: HashMap<u64, Arc<KeptRenderPass>>,
    /// Destroyed by the application, and still needed.
    kept: Vec<Arc<KeptRenderPass>>,
}

impl RenderPasses {
    pub(crate) fn add(&mut self, handle: RenderPass, subpasses: Vec<SubpassUse>) {
        self.alive.insert(handle.0, Arc::new(KeptRenderPass { handle, subpasses }));
    }

    pub(crate) fn get(&self, handle: RenderPass) -> Option<Arc<KeptRenderPass>> {
        self.alive.get(&handle.0).cloned()
    }

    /// The application destroys a render pass. Returns whether it is kept for a recipe.
    fn retire(&mut self, handle: RenderPass) -> bool {
        let Some(pass) = self.alive.remove(&handle.0) else { return false };
        let is_needed = Arc::strong_count(&pass) > 1;
        if is_needed {
            self.kept.push(pass);
        }
        is_needed
    }

    /// The render passes that no recipe needs any more.
    fn take_unneeded(&mut self) -> Vec<Arc<KeptRenderPass>> {
        self.kept.extract_if(.., |it| Arc::strong_count(it) == 1).collect()
    }

    pub(crate) fn take_kept(&mut self) -> Vec<Arc<KeptRenderPass>> {
        std::mem::take(&mut self.kept)
    }
}

impl DeviceChecks {
    /// The application destroys a render pass. Returns whether it is kept. One with allocation callbacks is not kept,
    /// because the callbacks may be invalid later.
    pub(crate) fn retain_render_pass(&self, handle: RenderPass, p_allocator: Ptr<Opaque>) -> bool {
        let mut state = self.state();
        if !p_allocator.is_null() {
            state.render_passes.alive.remove(&handle.0);
            return false;
        }
        state.render_passes.retire(handle)
    }

    /// Destroys render passes that no recipe needs any more.
    pub(crate) fn destroy_unused_passes(&self) {
        let unneeded = self.state().render_passes.take_unneeded();
        self.destroy_passes(unneeded);
    }

    pub(crate) fn destroy_passes(&self, passes: Vec<Arc<KeptRenderPass>>) {
        if let Some(destroy) = self.next.destroy_render_pass {
            // SAFETY: the application destroyed each, so that all uses of it are over
            // (VUID-vkDestroyRenderPass-renderPass-00873), and the driver did not see the call: `RenderPasses` kept it, and gives it
            // out once, when no recipe has it or the device ends. It had no callbacks for its memory (`retain_render_pass`).
            passes.iter().for_each(|it| unsafe { destroy(self.device, it.handle, Ptr::NULL) });
        }
    }
}
