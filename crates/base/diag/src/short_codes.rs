//! The short forms of codes, which reports print and `--ignore` takes: `RAW` for `SYNC-HAZARD-READ-AFTER-WRITE`.

/// Code and short form. Codes that name a function have the form of its first version, and of a draw.
const SHORT_CODES: [(&str, &str); 35] = [
    ("SYNC-HAZARD-READ-AFTER-WRITE", "RAW"),
    ("SYNC-HAZARD-WRITE-AFTER-READ", "WAR"),
    ("SYNC-HAZARD-WRITE-AFTER-WRITE", "WAW"),
    ("SYNC-HAZARD-READ-RACING-WRITE", "RRW"),
    ("SYNC-HAZARD-WRITE-RACING-WRITE", "WRW"),
    ("SYNC-HAZARD-WRITE-RACING-READ", "WRR"),
    ("SYNC-HAZARD-READ-AFTER-PRESENT", "RAP"),
    ("SYNC-HAZARD-WRITE-AFTER-PRESENT", "WAP"),
    ("SYNC-HAZARD-PRESENT-AFTER-READ", "PAR"),
    ("SYNC-HAZARD-PRESENT-AFTER-WRITE", "PAW"),
    ("UNASSIGNED-VkBufferMemoryBarrier-buffer-00004", "UNRELEASED"),
    ("UNASSIGNED-VkImageMemoryBarrier-image-00004", "UNRELEASED"),
    ("SYNC-CONTENTS-READ-WITHOUT-ACQUIRE", "UNACQUIRED"),
    ("SYNC-CONTENTS-READ-WITHOUT-TRANSFER", "UNOWNED"),
    ("SYNC-CONTENTS-WRITE-TO-PRESERVED", "PRESERVED"),
    ("SYNC-CONTENTS-READ-NOT-PRESERVED", "UNPRESERVED"),
    ("SYNC-vkCmdSetEvent-reset-race", "SET-RESET"),
    ("SYNC-vkCmdSetEvent-set-race", "SET-SET"),
    ("SYNC-vkCmdSetEvent-wait", "SET-WAIT"),
    ("SYNC-vkCmdResetEvent-set-race", "RESET-SET"),
    ("SYNC-vkCmdWaitEvents-unsynchronized-setops", "WAIT-RACE"),
    ("SYNC-NEVER-EXECUTED", "NEVER"),
    ("SYNC-OVER-SYNCHRONIZATION", "OVER"),
    ("VUID-vkCmdDraw-None-10068", "DESCRIPTOR-INDEX"),
    ("VUID-vkCmdDraw-None-08114", "DESCRIPTOR-UNWRITTEN"),
    ("VUID-vkCmdDraw-storageBuffers-06936", "STORAGE-BOUNDS"),
    ("VUID-vkCmdDraw-uniformBuffers-06935", "UNIFORM-BOUNDS"),
    ("VUID-vkCmdDraw-None-08613", "STORAGE-BOUNDS"),
    ("VUID-vkCmdDraw-None-08612", "UNIFORM-BOUNDS"),
    ("UNASSIGNED-Inline uniform block access out of bounds", "INLINE-BOUNDS"),
    ("UNASSIGNED-Descriptor Texel Buffer texel out of bounds", "TEXEL-BOUNDS"),
    ("VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819", "ADDRESS-BOUNDS"),
    ("VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-12281", "INSTANCE-REFERENCE"),
    ("UNASSIGNED-Acceleration structure reference unknown", "INSTANCE-REFERENCE-NV"),
    ("VVL-DEBUG-PRINTF", "PRINTF"),
];

/// The part of a code that stands before the function, and the function of the table.
const FUNCTIONS: [(&str, &str); 2] = [("VUID-", "vkCmdDraw"), ("SYNC-", "vkCmdSetEvent")];

/// The short form of a code; none if it has none.
pub fn short_code(code: &str) -> Option<&'static str> {
    let find = |wanted: &str| SHORT_CODES.iter().find(|it| it.0 == wanted).map(|it| it.1);
    // The same code of another command, or of another version of the function.
    let of_other_function = || {
        let (prefix, function) = FUNCTIONS.iter().find(|it| code.starts_with(it.0))?;
        let (name, rest) = code[prefix.len()..].split_once('-')?;
        let is_version = *prefix == "VUID-" && name.starts_with("vkCmd") || name.starts_with(function);
        is_version.then(|| find(&format!("{prefix}{function}-{rest}"))).flatten()
    };
    find(code).or_else(of_other_function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_all_functions_have_a_short_form() {
        for (code, short) in [
            ("SYNC-HAZARD-READ-AFTER-WRITE", Some("RAW")),
            ("VUID-vkCmdDraw-storageBuffers-06936", Some("STORAGE-BOUNDS")),
            ("VUID-vkCmdDispatchIndirect-storageBuffers-06936", Some("STORAGE-BOUNDS")),
            ("VUID-vkCmdTraceRaysKHR-None-08114", Some("DESCRIPTOR-UNWRITTEN")),
            ("VUID-vkCmdDispatch-None-08613", Some("STORAGE-BOUNDS")),
            ("VUID-RuntimeSpirv-PhysicalStorageBuffer64-11819", Some("ADDRESS-BOUNDS")),
            ("VUID-vkCmdBuildAccelerationStructuresKHR-pInfos-12281", Some("INSTANCE-REFERENCE")),
            ("SYNC-vkCmdSetEvent2KHR-set-race", Some("SET-SET")),
            ("SYNC-vkCmdResetEvent-set-race", Some("RESET-SET")),
            ("VUID-VkBufferCreateInfo-storageBuffers-06936", None),
            ("VUID-vkCmdDraw", None),
            ("RAW", None),
            ("", None),
        ] {
            assert_eq!(short_code(code), short, "{code}");
        }
    }
}
