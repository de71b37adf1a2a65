//! Environment variables: `LAVASCOPE_NAME`, and what the Khronos library makes of the two layer names.
//!
//! A variable without a value counts as not set.

use std::ffi::{OsStr, OsString};

use crate::problem::SettingSource;
use crate::resolve::{Collector, Namespace, Rank};
use crate::table::key_meaning;

/// Weakest first, the last stronger than the application itself; whose names follow the prefix, and whether nobody else would use it.
const PREFIXES: [(&str, Namespace, PrefixOwner); 8] = [
    ("VK_", Namespace::Khronos, PrefixOwner::Anybody),
    ("VK_VALIDATION_", Namespace::Khronos, PrefixOwner::Anybody),
    ("VK_KHRONOS_VALIDATION_", Namespace::Khronos, PrefixOwner::Anybody),
    ("VK_LAYER_", Namespace::Khronos, PrefixOwner::Anybody),
    ("VK_INSPECT_", Namespace::Own, PrefixOwner::Anybody),
    ("VK_LAVASCOPE_INSPECT_", Namespace::Own, PrefixOwner::Lavascope),
    ("VK_LAYER_LAVASCOPE_INSPECT_", Namespace::Own, PrefixOwner::Lavascope),
    ("LAVASCOPE_", Namespace::Own, PrefixOwner::Lavascope),
];

/// Nobody but the Khronos layer has such variables.
const KHRONOS_PREFIX: &str = "VK_KHRONOS_VALIDATION_";

/// Variables of other parts of Lavascope; a `*` stands for anything.
const OTHER_VARIABLES: [&str; 6] = [
    "LAVASCOPE_LAYER_LIBRARY",
    "LAVASCOPE_BLESS",
    "LAVASCOPE_BENCH_*",
    "LAVASCOPE_NULL_*",
    "LAVASCOPE_SAMPLE_*",
    "LAVASCOPE_TEST_*",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum PrefixOwner {
    Lavascope,
    Anybody,
}

pub(crate) fn collect(variables: &[(OsString, OsString)], collector: &mut Collector) {
    let mut variables: Vec<(&str, &OsStr)> =
        variables.iter().filter_map(|(name, value)| Some((name.to_str()?, &value[..]))).collect();
    variables.sort_unstable();
    for (name, value) in variables.into_iter().filter(|it| !it.1.is_empty()) {
        collect_one(name, value, collector);
    }
}

/// Whether a variable may say something to this crate.
pub(crate) fn is_of_interest(name: &OsStr) -> bool {
    name.to_str().is_some_and(|it| PREFIXES.iter().any(|(prefix, ..)| it.starts_with(prefix)))
}

fn collect_one(name: &str, value: &OsStr, collector: &mut Collector) {
    let place = SettingSource::Variable(name.to_owned());
    let fitting = || {
        let all = PREFIXES.iter().enumerate();
        all.filter_map(|(at, (prefix, namespace, owner))| Some((at, name.strip_prefix(prefix)?, *namespace, *owner)))
    };
    let found = fitting().find_map(|(at, key, namespace, _)| Some((at, namespace, key_meaning(namespace, key)?)));
    if let Some((at, namespace, meaning)) = found {
        let rank = if at == PREFIXES.len() - 1 { Rank::LavascopeVariable } else { Rank::Environment(at) };
        return collector.add(namespace, meaning, value, rank, &place);
    }
    let ours = fitting().find(|it| it.3 == PrefixOwner::Lavascope && !is_other_variable(name));
    if let Some((at, key, ..)) = ours {
        collector.report_unknown(&place, name, key, |it| format!("{}{}", PREFIXES[at].0, it.to_ascii_uppercase()));
    } else if let Some(key) = name.strip_prefix(KHRONOS_PREFIX) {
        collector.note_foreign(&place, &key.to_ascii_lowercase(), &value.to_string_lossy());
    }
}

fn is_other_variable(name: &str) -> bool {
    OTHER_VARIABLES.iter().any(|text| match text.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *text,
    })
}
