//! The properties that tools read off a hazard, for each type of message: keys, values and order are those of the
//! Khronos layer.

use lavascope_abi::{DescriptorType, ImageLayout};
use lavascope_diag::{DebugLabels, Diagnostic, DiagnosticObject};
use lavascope_explain::{CommandSequenceNumber, ExecutorNames, NumberedNames, ProgramNames, report};
use lavascope_scenario::parse;
use lavascope_sync_ir::{
    Command, CommandBufferId, Descriptor, HazardKind, Origin, Program, ProgramLocation, QueueId, ResourceId,
};

/// Names as a running program has them.
struct Live<'a> {
    numbers: NumberedNames<'a>,
    /// What stands for a word of the scenario.
    functions: &'a [(&'a str, &'a str)],
}

impl ProgramNames for Live<'_> {
    fn resource(&self, resource: ResourceId) -> String {
        self.numbers.resource(resource)
    }

    fn object(&self, resource: ResourceId) -> DiagnosticObject {
        self.numbers.object(resource)
    }

    fn queue(&self, queue: QueueId) -> String {
        format!("VkQueue#{}", queue.0)
    }

    fn location(&self, place: &ProgramLocation) -> String {
        self.numbers.location(place)
    }

    fn recorded_command(&self, buffer: CommandBufferId, command: u32) -> String {
        self.numbers.recorded_command(buffer, command)
    }

    fn function(&self, place: &ProgramLocation, stage: u64) -> String {
        let own = self.numbers.function(place, stage);
        self.functions.iter().find(|it| it.0 == own).map_or(own, |it| it.1.to_owned())
    }

    fn labels(&self, place: &ProgramLocation) -> DebugLabels {
        let queue = vec!["Frame".to_owned()];
        match place {
            ProgramLocation::Command(_) => DebugLabels { queue, commands: vec!["Sky".to_owned()] },
            ProgramLocation::Step(_) => DebugLabels::default(),
        }
    }

    fn submitting_call(&self, place: &ProgramLocation) -> Option<String> {
        matches!(place, ProgramLocation::Command(_)).then(|| "vkQueueSubmit".to_owned())
    }

    fn executor(&self, place: &ProgramLocation) -> Option<ExecutorNames> {
        let ProgramLocation::Command(at) = place else { return None };
        let depth = if at.path.len() > 1 { "secondary" } else { "main" };
        Some(ExecutorNames { command_buffer: format!("VkCommandBuffer \"{depth}\""), queue: "VkQueue#0".to_owned() })
    }

    fn sequence(&self, place: &ProgramLocation) -> Option<CommandSequenceNumber> {
        let ProgramLocation::Command(at) = place else { return None };
        Some(CommandSequenceNumber { command: *at.path.last()?, resets: 2 })
    }
}

fn program(text: &str) -> Program {
    parse(&format!("# A program.\n# spec: synchronization\n# expect: clean\n\n{text}"))
        .unwrap_or_else(|error| panic!("{error:?}\n{text}"))
        .program
}

/// The only hazard of a program.
fn hazard(program: &Program) -> Diagnostic {
    hazard_of(program, &[])
}

fn hazard_of(program: &Program, functions: &[(&str, &str)]) -> Diagnostic {
    let all = report(program, &Live { numbers: NumberedNames(program), functions });
    let [diagnostic] = &all[..] else { panic!("{} findings: {all:#?}", all.len()) };
    diagnostic.clone()
}

/// Every access of the commands of the first command buffer comes from a part of them.
fn with_origin(text: &str, origin: Origin) -> Program {
    let mut program = program(text);
    for command in &mut program.command_buffers[0].commands {
        if let Command::Action(accesses) = command {
            accesses.iter_mut().for_each(|it| it.origin = origin);
        }
    }
    program
}

fn descriptor(ty: DescriptorType, layout: Option<ImageLayout>) -> Origin {
    Origin::descriptor(Descriptor { set: 1, binding: 3, element: 2, ty: ty.0, layout: layout.map(|it| it.0) })
}

/// The keys that every hazard has.
const COMMON: [&str; 10] = [
    "message_type",
    "hazard_type",
    "access",
    "prior_access",
    "read_barriers",
    "write_barriers",
    "command",
    "prior_command",
    "debug_region",
    "prior_debug_region",
];

/// The type, and what only some types have.
fn special(diagnostic: &Diagnostic) -> String {
    let mut text = diagnostic.property("message_type").expect("a type").to_owned();
    for fact in
        diagnostic.properties.iter().filter(|it| !COMMON.contains(&it.key) && !["seq_no", "reset_no"].contains(&it.key))
    {
        text += &format!(" {}={}", fact.key, fact.value);
    }
    text
}

fn check(text: &str, expected: &str) {
    assert_eq!(special(&hazard(&program(text))), expected, "{text}");
}

fn check_origin(text: &str, origin: Origin, expected: &str) {
    assert_eq!(special(&hazard(&with_origin(text, origin))), expected, "{text}");
}

#[test]
fn the_order_is_that_of_the_khronos_layer() {
    let diagnostic = hazard(&program(
        "buffer a b c 64\ncmd main\n  copy a -> b\n  barrier copy:write => compute:storage_read\n  copy b -> c",
    ));
    let seen: Vec<(&str, &str)> = diagnostic.properties.iter().map(|it| (it.key, it.value.as_str())).collect();
    let write = "VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_WRITE_BIT)";
    let expected = [
        ("message_type", "BufferCopyError"),
        ("hazard_type", "READ_AFTER_WRITE"),
        ("access", "VK_PIPELINE_STAGE_2_COPY_BIT(VK_ACCESS_2_TRANSFER_READ_BIT)"),
        ("prior_access", write),
        ("write_barriers", "VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT(VK_ACCESS_2_SHADER_STORAGE_READ_BIT)"),
        ("command", "copy"),
        ("prior_command", "copy"),
        ("debug_region", "Frame::Sky"),
        ("prior_debug_region", "Frame::Sky"),
        ("seq_no", "0"),
        ("reset_no", "2"),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn copies_and_clears() {
    let copy = "buffer a b c 64\ncmd main\n  copy a -> b\n  copy b -> c";
    check(copy, "BufferCopyError");
    check_origin(copy, Origin::region(7), "BufferCopyError region_index=7");
    let images = "image a b c 8x8\ncmd main\n  copy a -> b\n  WORD b -> c";
    for (word, expected) in [
        ("copy", "ImageCopyError region_index=1"),
        ("blit", "ImageBlitError region_index=1"),
        ("resolve", "ImageResolveError region_index=1"),
    ] {
        check_origin(&images.replace("WORD", word), Origin::region(1), expected);
    }
    let clear = "image a b 8x8\ncmd main\n  copy a -> b\n  clear b";
    check_origin(clear, Origin::region(0), "ImageSubresourceRangeError region_index=0");
    check("buffer a b 64\ncmd main\n  copy a -> b\n  fill b", "BufferError");
    check("buffer a b 64\ncmd main\n  copy a -> b\n  draw reads vertices b", "BufferError");
    check("buffer a b 64\ncmd main\n  copy a -> b\n  draw reads indirect b", "BufferError");
    // The results of queries are copied too, but have no regions.
    let results = hazard_of(&program(copy), &[("copy", "vkCmdCopyQueryPoolResults")]);
    assert_eq!(special(&results), "BufferError");
}

#[test]
fn shaders() {
    let buffer = "buffer a b 64\ncmd main\n  copy a -> b\n  dispatch reads b";
    check(buffer, "BufferDescriptorError");
    let origin = descriptor(DescriptorType::STORAGE_BUFFER, None);
    let binding = "descriptor_binding=3 descriptor_array_element=2";
    let expected = format!("BufferDescriptorError descriptor_type=VK_DESCRIPTOR_TYPE_STORAGE_BUFFER {binding}");
    check_origin(buffer, origin, &expected);
    let diagnostic = hazard(&with_origin(buffer, origin));
    let text = "Shader stage VK_SHADER_STAGE_COMPUTE_BIT reads buffer 1[0..64], which was previously written by \
                copy[Frame::Sky].\nIt is bound to descriptor set 1, binding 3 (VK_DESCRIPTOR_TYPE_STORAGE_BUFFER), \
                array element 2.";
    assert!(diagnostic.message.contains(text), "{}", diagnostic.message);
    let image = "image a b 8x8\ncmd main\n  copy a -> b\n  draw samples b at fragment";
    let origin = descriptor(DescriptorType::SAMPLED_IMAGE, Some(ImageLayout::GENERAL));
    let expected = format!(
        "ImageDescriptorError descriptor_type=VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE {binding} \
         image_layout=VK_IMAGE_LAYOUT_GENERAL"
    );
    check_origin(image, origin, &expected);
    let structure = "buffer a b 64\ncmd main\n  access acceleration_structure_build:acceleration_structure_write b\n  \
                     dispatch compute:acceleration_structure_read b";
    let origin = descriptor(DescriptorType::ACCELERATION_STRUCTURE_KHR, None);
    let ty = "VK_DESCRIPTOR_TYPE_ACCELERATION_STRUCTURE_KHR";
    let expected = format!("AccelerationStructureDescriptorError descriptor_type={ty} {binding}");
    check_origin(structure, origin, &expected);
    assert!(hazard(&with_origin(structure, origin)).message.contains("traces rays against buffer 1"));
    let table = "buffer a b 64\ncmd main\n  copy a -> b\n  access ray_tracing:shader_binding_table_read b";
    check(table, "BufferError");
}

#[test]
fn acceleration_structures_and_video() {
    let build = "acceleration_structure_build:acceleration_structure_write";
    let text = format!("buffer a 64\ncmd main\n  access {build} a\n  access {build} a");
    check_origin(&text, Origin::ACCELERATION_STRUCTURE, "AccelerationStructureError");
    let diagnostic = hazard(&with_origin(&text, Origin::ACCELERATION_STRUCTURE));
    assert!(diagnostic.message.contains("The buffer holds an acceleration structure."), "{}", diagnostic.message);
    // Scratch memory is no acceleration structure.
    check(&text, "BufferError");
    let video = "image a 8x8\nqueue v: video_decode\ncmd main\n  access video_decode:video_decode_write a\n  \
                 access video_decode:video_decode_read a\nv submit main";
    check(video, "VideoError");
}

#[test]
fn attachments() {
    let color = "access color:color_write a";
    let pass = "pass rp\n  attachment color load=none store=none\n  subpass color 0\n";
    let inside =
        format!("buffer b 64\nimage a 8x8\n{pass}cmd main\n  copy a -> b\n  begin rp with a\n  {color}\n  end pass");
    check(&inside, "RenderPassAttachmentError");
    let rendering = "image a 8x8\nbuffer b 64\ncmd main\n  copy a -> b\n  begin rendering color a load=none store=none\n  \
                     draw writes color a\n  end rendering";
    check(rendering, "DynamicRenderingAttachmentError");
    let clear = hazard_of(&program(rendering), &[("draw", "vkCmdClearAttachments")]);
    assert_eq!(special(&clear), "ClearAttachmentError image_aspects=VK_IMAGE_ASPECT_COLOR_BIT");
    assert!(clear.message.contains("vkCmdClearAttachments[Frame::Sky] clears image 0"), "{}", clear.message);
}

#[test]
fn load_store_and_resolve() {
    let rendering = |rest: &str| format!("buffer b 256\nimage a wide 8x8\ncmd main\n  {rest}");
    let load =
        |op: &str| rendering(&format!("copy b -> a\n  begin rendering color a load={op} store=none\n  end rendering"));
    check(&load("load"), "BeginRenderingError load_op=VK_ATTACHMENT_LOAD_OP_LOAD");
    check(&load("clear"), "BeginRenderingError load_op=VK_ATTACHMENT_LOAD_OP_CLEAR");
    check(&load("dont_care"), "BeginRenderingError load_op=VK_ATTACHMENT_LOAD_OP_DONT_CARE");
    let message = |text: &str| hazard(&program(text)).message;
    assert!(message(&load("clear")).contains(" clears image 1"));
    assert!(message(&load("dont_care")).contains(" potentially modifies image 1"));
    let store = rendering("begin rendering color a load=none store=store\n  copy a -> b\n  end rendering");
    check(&store, "EndRenderingStoreError store_op=VK_ATTACHMENT_STORE_OP_STORE");
    let resolve =
        rendering("copy a -> b\n  begin rendering color wide load=none store=none resolve a\n  end rendering");
    let mut program = program(&resolve);
    for command in &mut program.command_buffers[0].commands {
        if let Command::BeginRendering(begin_rendering) = command {
            begin_rendering.attachments[0].resolve.as_mut().expect("it is resolved").mode = 2;
        }
    }
    let diagnostic = hazard(&program);
    assert_eq!(special(&diagnostic), "EndRenderingResolveError resolve_mode=VK_RESOLVE_MODE_AVERAGE_BIT");
    assert!(
        diagnostic.message.contains("writes to single sample resolve attachment image 1"),
        "{}",
        diagnostic.message
    );
    let pass = |attachment: &str, rest: &str| {
        let uses =
            "  subpass color 0\n  dependency external => 0: all => all\n  dependency 0 => external: all => all\n";
        format!("buffer b 256\nimage a 8x8\npass rp\n  attachment color {attachment}\n{uses}cmd main\n  {rest}")
    };
    let begin = "copy b -> a\n  begin rp with a\n  end pass";
    check(&pass("load=clear store=none", begin), "RenderPassLoadOpError load_op=VK_ATTACHMENT_LOAD_OP_CLEAR");
    let end = "begin rp with a\n  copy a -> b\n  end pass";
    check(&pass("load=none store=store", end), "RenderPassStoreOpError store_op=VK_ATTACHMENT_STORE_OP_STORE");
    let none = "attachment color load=none store=none";
    let resolved =
        format!("buffer b 256\nimage wide a 8x8\npass rp\n  {none}\n  {none}\n  subpass color 0, resolve 0 to 1\n");
    check(&format!("{resolved}cmd main\n  copy a -> b\n  begin rp with wide, a\n  end pass"), "RenderPassResolveError");
    let again = "  subpass input 1\n  dependency 0 => 1: none => all:memory_read\n";
    let layouts =
        "old_layout=VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL new_layout=VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL";
    check(
        &format!("{resolved}{again}cmd main\n  begin rp with wide, a\n  next subpass\n  end pass"),
        &format!("RenderPassLayoutTransitionVsResolveError {layouts}"),
    );
}

#[test]
fn transitions() {
    let barrier = "buffer b 256\nimage a 8x8\ncmd main\n  copy a -> b\n  barrier none => none b, none => none layout a";
    check(barrier, "ImageBarrierError");
    let diagnostic = hazard(&program(barrier));
    assert!(diagnostic.message.contains("performs image layout transition on image 1"), "{}", diagnostic.message);
    assert!(diagnostic.message.contains("\npImageMemoryBarriers[0]: srcStageMask = VK_PIPELINE_STAGE_2_NONE"));
    let pass = |attachment: &str, dependency: &str, rest: &str| {
        let head = "buffer b 256\nimage a 8x8\npass rp\n  attachment color store=none load=";
        format!("{head}{attachment}\n  subpass color 0\n  {dependency}\ncmd main\n  {rest}")
    };
    let into = pass("none initial=undefined", "", "copy a -> b\n  begin rp with a\n  end pass");
    let layouts = "old_layout=VK_IMAGE_LAYOUT_UNDEFINED new_layout=VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL";
    check(&into, &format!("RenderPassLayoutTransitionError {layouts}"));
    let own =
        pass("clear initial=undefined", "dependency external => 0: none => color:read", "begin rp with a\n  end pass");
    check(&own, "RenderPassLoadOpVsLayoutTransitionError load_op=VK_ATTACHMENT_LOAD_OP_CLEAR");
    let layouts = "old_layout=VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL new_layout=VK_IMAGE_LAYOUT_GENERAL";
    let last = pass(
        "none final=general",
        "dependency 0 => external: none => all",
        "begin rp with a\n  copy a -> b\n  end pass",
    );
    check(&last, &format!("RenderPassFinalLayoutTransitionError {layouts}"));
    let diagnostic = hazard(&program(&last));
    assert!(diagnostic.message.contains("performs final image layout transition during render pass 0 on image 1"));
    let stored = last.replace("store=none", "store=store").replace("copy a -> b\n  ", "");
    check(&stored, &format!("RenderPassFinalLayoutTransitionVsStoreOrResolveError {layouts}"));
    let transfer = "buffer a b 64 exclusive\nqueue g: graphics family=0 t: transfer family=1\ncmd main\n  copy a -> b\n  \
                    barrier none => none owner b 0 -> 1\ng submit main";
    let diagnostic = hazard(&program(transfer));
    assert_eq!(diagnostic.property("access"), Some("SYNC_QUEUE_FAMILY_OWNERSHIP_TRANSFER"));
    assert!(
        diagnostic.message.contains("performs queue family ownership transfer on buffer 1"),
        "{}",
        diagnostic.message
    );
}

#[test]
fn submissions_and_secondaries() {
    let two = "buffer a b c 64\ncmd one\n  copy a -> b\ncmd two\n  copy b -> c\nq submit one\nq submit one two";
    let all = report(&program(two), &Live { numbers: NumberedNames(&program(two)), functions: &[] });
    let diagnostic = all.iter().find(|it| it.code.0.ends_with("READ-AFTER-WRITE")).expect("a read after a write");
    assert_eq!(special(diagnostic), "SubmitTimeError submit_index=1 batch_index=0 command_buffer_index=1");
    let main = "VkCommandBuffer \"main\"";
    let text = format!(
        "vkQueueSubmit(): READ_AFTER_WRITE hazard detected. copy[Frame::Sky] (from {main} submitted on the current \
         VkQueue#0) reads buffer 1[0..64], which was previously written by another copy[Frame::Sky] command (from \
         {main} submitted on VkQueue#0)."
    );
    assert!(diagnostic.message.starts_with(&text), "{}", diagnostic.message);
    assert_eq!(diagnostic.function, "vkQueueSubmit");
    let nested = "buffer a b c 64\nsecondary part\n  copy b -> c\ncmd main\n  copy a -> b\n  execute part";
    let diagnostic = hazard(&program(nested));
    assert_eq!(special(&diagnostic), "SubmitTimeError command_buffer_index=0");
    let text = format!(
        "vkCmdExecuteCommands(): READ_AFTER_WRITE hazard detected. copy[Frame::Sky] (from the secondary \
         VkCommandBuffer \"secondary\") reads buffer 1[0..64], which was previously written by another \
         copy[Frame::Sky] command (from the primary {main})."
    );
    assert!(diagnostic.message.starts_with(&text), "{}", diagnostic.message);
    // What a secondary command buffer did is known to the one that executed it.
    let after = "buffer a b c 64\nsecondary part\n  copy a -> b\ncmd main\n  execute part\n  copy b -> c";
    check(after, "BufferCopyError");
}

#[test]
fn presentation_and_the_host() {
    let present = "image a 8x8\nsemaphore s\ncmd main\n  clear a\nacquire a signal s\nq submit main wait s at clear\n\
                   q present a";
    check(present, "PresentError submit_index=1 batch_index=0 swapchain_index=0");
    let acquire = "image a 8x8\nsemaphore s\ncmd main\n  clear a\nacquire a signal s\nq submit main wait s at color";
    let diagnostic = hazard(&program(acquire));
    assert_eq!(
        (diagnostic.property("hazard_type"), diagnostic.property("message_type")),
        (Some("WRITE_AFTER_READ"), Some("SubmitTimeError"))
    );
    assert_eq!(diagnostic.property("prior_access"), Some("SYNC_PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL"));
    assert_eq!(diagnostic.property("read_barriers"), Some("VK_PIPELINE_STAGE_2_COLOR_ATTACHMENT_OUTPUT_BIT"));
    assert!(
        diagnostic.message.contains("which was previously accessed by vkAcquireNextImageKHR."),
        "{}",
        diagnostic.message
    );
    let host = "buffer a b 64\ncmd main\n  copy a -> b\nq submit main\nhost reads b";
    check(host, "HostError submit_index=0 batch_index=0");
    assert!(
        hazard(&program(host)).message.starts_with("Host access: READ_RACING_WRITE hazard detected. The host reads")
    );
}

/// What a value looks like.
#[derive(Clone, Copy, Debug)]
enum ValueForm {
    /// The kind of message, `BufferCopyError`.
    MessageType,
    /// `READ_AFTER_WRITE`.
    HazardType,
    /// `STAGE(ACCESS)` with one bit each, or the name of what has neither.
    Access,
    /// `0`, or `STAGES(ACCESSES)` for each barrier, with `:` between them.
    WriteBarriers,
    /// `0`, or stages.
    Stages,
    /// A function of the API, or the word of a scenario for one.
    Function,
    Number,
    /// A value of an enumeration, by the beginning of its name.
    Enum(&'static str),
    Labels,
}

/// Each key in the order of the Khronos layer, the form of its values, and what it means there.
const KEYS: [(&str, ValueForm, &str); 26] = [
    ("message_type", ValueForm::MessageType, "which kind of message it is: the other keys depend on it"),
    ("hazard_type", ValueForm::HazardType, "the code without `SYNC-HAZARD-`, with underscores"),
    ("access", ValueForm::Access, "stage and access of the later access"),
    ("prior_access", ValueForm::Access, "stage and access of the earlier access"),
    ("read_barriers", ValueForm::Stages, "stages that wait for the earlier read"),
    ("write_barriers", ValueForm::WriteBarriers, "accesses to which the earlier write is visible"),
    ("command", ValueForm::Function, "the command of the later access"),
    ("prior_command", ValueForm::Function, "the command of the earlier access"),
    ("debug_region", ValueForm::Labels, "the debug labels around the later command"),
    ("prior_debug_region", ValueForm::Labels, "the debug labels around the earlier command"),
    ("submit_index", ValueForm::Number, "the submission of the earlier access on its queue, from zero"),
    ("batch_index", ValueForm::Number, "the batch of the earlier access in its submission"),
    ("command_buffer_index", ValueForm::Number, "the place of the later command buffer where it is executed"),
    ("swapchain_index", ValueForm::Number, "the place of the swapchain in what is presented"),
    ("region_index", ValueForm::Number, "the region of a copy, blit, resolve or clear"),
    ("descriptor_type", ValueForm::Enum("VK_DESCRIPTOR_TYPE_"), "of the descriptor that the shader goes through"),
    ("descriptor_binding", ValueForm::Number, "the number of that binding in its set"),
    ("descriptor_array_element", ValueForm::Number, "the element of that binding"),
    ("image_layout", ValueForm::Enum("VK_IMAGE_LAYOUT_"), "the layout in that descriptor"),
    ("load_op", ValueForm::Enum("VK_ATTACHMENT_LOAD_OP_"), "of the attachment that is loaded"),
    ("store_op", ValueForm::Enum("VK_ATTACHMENT_STORE_OP_"), "of the attachment that is stored"),
    ("resolve_mode", ValueForm::Enum("VK_RESOLVE_MODE_"), "of the attachment that is resolved"),
    ("old_layout", ValueForm::Enum("VK_IMAGE_LAYOUT_"), "before a layout transition of a render pass"),
    ("new_layout", ValueForm::Enum("VK_IMAGE_LAYOUT_"), "behind a layout transition of a render pass"),
    ("seq_no", ValueForm::Number, "the number of the earlier command in its command buffer"),
    ("reset_no", ValueForm::Number, "how often that command buffer had been recorded before"),
];

impl ValueForm {
    fn has(self, value: &str) -> bool {
        let is_mask = |text: &str, prefix: &str| text.split('|').all(|it| it.starts_with(prefix));
        let stages = |text: &str| is_mask(text, "VK_PIPELINE_STAGE_2_");
        let side = |text: &str| {
            let parts = text.strip_suffix(')').and_then(|it| it.split_once('('));
            parts.is_some_and(|(stage, access)| {
                stages(stage) && (access == "ALL_ACCESSES" || is_mask(access, "VK_ACCESS_2_"))
            })
        };
        match self {
            ValueForm::MessageType => value.ends_with("Error") && value.chars().all(char::is_alphanumeric),
            ValueForm::HazardType => HazardKind::ALL.iter().any(|it| it.name().replace('-', "_") == value),
            ValueForm::Access => value.starts_with("SYNC_") || side(value) && !value.contains('|'),
            ValueForm::WriteBarriers => value == "0" || value.split(':').all(side),
            ValueForm::Stages => value == "0" || stages(value),
            ValueForm::Function => !value.is_empty() && !value.contains('('),
            ValueForm::Number => value.parse::<u64>().is_ok(),
            ValueForm::Enum(prefix) => value.starts_with(prefix),
            ValueForm::Labels => !value.is_empty(),
        }
    }
}

/// Over all scenarios: no key that is not in the table, none twice, and values that mean what the table says.
#[test]
fn every_property_means_what_it_means_to_the_khronos_layer() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/scenarios");
    let folders = std::fs::read_dir(root).expect("the corpus").flatten().map(|it| it.path());
    let files = folders.flat_map(|it| std::fs::read_dir(it).expect("a folder").flatten().map(|it| it.path()));
    let mut seen = std::collections::BTreeSet::new();
    for path in files.filter(|it| it.extension().is_some_and(|it| it == "vks")) {
        let text = std::fs::read_to_string(&path).expect("a scenario");
        let program = parse(&text).expect("a scenario that parses").program;
        let all = report(&program, &Live { numbers: NumberedNames(&program), functions: &[] });
        for diagnostic in all.iter().filter(|it| it.code.0.starts_with("SYNC-HAZARD-")) {
            let place = |key: &str| KEYS.iter().position(|it| it.0 == key);
            let places: Vec<Option<usize>> = diagnostic.properties.iter().map(|it| place(it.key)).collect();
            assert!(places.iter().all(Option::is_some), "{}: {:?}", path.display(), diagnostic.properties);
            assert!(places.windows(2).all(|it| it[0] < it[1]), "{}: {:?}", path.display(), diagnostic.properties);
            for fact in &diagnostic.properties {
                let (_, form, meaning) = KEYS[place(fact.key).unwrap_or_default()];
                assert!(form.has(&fact.value), "{}: {} = {}: {meaning}", path.display(), fact.key, fact.value);
                seen.insert(fact.key);
            }
            let (at, prior) = (diagnostic.property("command"), diagnostic.property("prior_command"));
            let (labels, kind) = (diagnostic.locations[0].labels.path(), diagnostic.property("hazard_type"));
            assert_eq!(at, diagnostic.locations[0].path.last().map(String::as_str));
            assert_eq!(prior, diagnostic.locations[1].path.last().map(String::as_str));
            assert_eq!(labels.as_deref(), diagnostic.property("debug_region"));
            assert_eq!(diagnostic.code.0.strip_prefix("SYNC-HAZARD-").map(|it| it.replace('-', "_")).as_deref(), kind);
        }
    }
    // Scenarios do not say through which descriptor or region something is accessed, nor how it is resolved.
    let of_calls = [
        "resolve_mode",
        "region_index",
        "descriptor_type",
        "descriptor_binding",
        "descriptor_array_element",
        "image_layout",
    ];
    let missing: Vec<&str> =
        KEYS.iter().map(|it| it.0).filter(|it| !seen.contains(it) && !of_calls.contains(it)).collect();
    assert!(missing.is_empty(), "{missing:?} are nowhere in the corpus");
}
