//! Which diagnostics somebody does not want to hear of.
//!
//! A rule is `code=REGEX`, `label=REGEX` or `object=REGEX`. It fits a diagnostic whose code, the path of whose debug
//! labels (of either access) or one of whose objects fits the expression, which may match anywhere in the text. The short
//! form of a code, `RAW`, has to match as a whole. An object without a name goes by what it is like, `VkBuffer, 1024
//! bytes`.

use std::fmt;

use regex::Regex;

use crate::{Diagnostic, short_code};

/// One rule.
#[derive(Clone, Debug)]
pub struct IgnoreRule {
    target: IgnoreTarget,
    regex: Regex,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IgnoreTarget {
    Code,
    Label,
    Object,
}

const PREFIXES: [(&str, IgnoreTarget); 3] =
    [("code=", IgnoreTarget::Code), ("label=", IgnoreTarget::Label), ("object=", IgnoreTarget::Object)];

/// Expressions larger than this are not compiled.
const SIZE_MAX: usize = 1 << 20;

impl IgnoreRule {
    /// Says what is wrong with a text that is no rule.
    pub fn parse(text: &str) -> Result<IgnoreRule, String> {
        let found = PREFIXES.iter().find_map(|(word, what)| Some((*what, text.strip_prefix(word)?)));
        let Some((what, regex)) = found else {
            return Err(format!("`{text}` must begin with code=, label= or object="));
        };
        if regex.is_empty() {
            return Err(format!("`{text}` has no expression, and would match everything"));
        }
        match regex::RegexBuilder::new(regex).size_limit(SIZE_MAX).build() {
            Ok(regex) => Ok(IgnoreRule { target: what, regex }),
            Err(regex::Error::CompiledTooBig(_)) => Err(format!("`{text}` is too large")),
            // The last line says it, those before show where.
            Err(error) => {
                let error = error.to_string();
                let why = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
                Err(format!("`{text}` is not a regular expression: {why}"))
            }
        }
    }

    /// Several rules in one text: a comma ends one where another begins, so that expressions may have commas.
    pub fn split(text: &str) -> Vec<&str> {
        let mut rules = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let ends = rest.match_indices(',').map(|it| it.0);
            let is_end = |at: &usize| PREFIXES.iter().any(|it| rest[at + 1..].trim_start().starts_with(it.0));
            let end = ends.into_iter().find(is_end).unwrap_or(rest.len());
            rules.push(rest[..end].trim());
            rest = rest.get(end + 1..).unwrap_or("");
        }
        rules.retain(|it| !it.is_empty());
        rules
    }

    pub fn matches(&self, diagnostic: &Diagnostic) -> bool {
        let labels: Vec<String> = diagnostic.locations.iter().filter_map(|it| it.labels.path()).collect();
        let objects = diagnostic.objects.iter();
        let objects: Vec<String> =
            objects.filter_map(|it| object_text(it.kind, it.name.as_deref(), it.description.as_deref())).collect();
        self.matches_texts(&diagnostic.code.0, &labels, &objects)
    }

    /// As [`IgnoreRule::matches`], for what is no [`Diagnostic`] any more: the code, the label paths, and the objects
    /// by [`object_text`].
    pub fn matches_texts(&self, code: &str, labels: &[String], objects: &[String]) -> bool {
        match self.target {
            IgnoreTarget::Code => {
                self.regex.is_match(code) || short_code(code).is_some_and(|it| self.matches_whole(it))
            }
            IgnoreTarget::Label => labels.iter().any(|it| self.regex.is_match(it)),
            IgnoreTarget::Object => objects.iter().any(|it| self.regex.is_match(it)),
        }
    }

    /// `code=WAR` is not meant for another short form that has these letters, too.
    fn matches_whole(&self, text: &str) -> bool {
        self.regex.find(text).is_some_and(|it| it.len() == text.len())
    }
}

/// What an object is called by rules: its name, else what it is like.
pub fn object_text(kind: &str, name: Option<&str>, description: Option<&str>) -> Option<String> {
    name.map(str::to_owned).or_else(|| description.map(|it| format!("{kind}, {it}")))
}

/// The text that it came from.
impl fmt::Display for IgnoreRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = PREFIXES.iter().find(|it| it.1 == self.target).map_or("", |it| it.0);
        write!(f, "{word}{}", self.regex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DebugLabels, DiagnosticLocation, DiagnosticObject, Severity};

    fn diagnostic() -> Diagnostic {
        let labels = DebugLabels { queue: Vec::new(), commands: vec!["Frame".into(), "Shadows".into()] };
        let prior =
            DiagnosticLocation { labels, ..DiagnosticLocation::new("prior access", String::new(), String::new()) };
        let places = vec![DiagnosticLocation::new("access", String::new(), String::new()), prior];
        let unnamed =
            DiagnosticObject { description: Some("1024 bytes".into()), ..DiagnosticObject::new("VkBuffer", 3, None) };
        let objects = vec![unnamed, DiagnosticObject::new("VkQueue", 0, Some("graphics".into()))];
        let code = "SYNC-HAZARD-READ-AFTER-WRITE";
        Diagnostic { locations: places, objects, ..Diagnostic::new(code, Severity::Error, String::new()) }
    }

    #[test]
    fn rules_fit_what_they_are_about() {
        let fits = |rule: &str| IgnoreRule::parse(rule).expect(rule).matches(&diagnostic());
        for rule in [
            "code=READ-AFTER",
            "code=^SYNC-",
            "code=RAW",
            "code=^RA.$",
            "label=^Frame::",
            "label=Shadows$",
            "object=^VkBuffer, 1024",
        ] {
            assert!(fits(rule), "{rule}");
        }
        assert!(fits("object=graph") && fits("object=(?i)GRAPHICS"));
        for rule in [
            "code=READ-AFTER$",
            "code=RA",
            "code=WAR",
            "label=^Shadows",
            "label=graphics",
            "object=Shadows",
            "object=VkQueue",
        ] {
            assert!(!fits(rule), "{rule}");
        }
    }

    #[test]
    fn what_is_no_rule_is_said() {
        let why = |rule: &str| IgnoreRule::parse(rule).expect_err(rule);
        assert_eq!(why("vertices"), "`vertices` must begin with code=, label= or object=");
        assert_eq!(why("object="), "`object=` has no expression, and would match everything");
        assert_eq!(why("object=(a"), "`object=(a` is not a regular expression: unclosed group");
        assert_eq!(why("code=a{1000}{1000}"), "`code=a{1000}{1000}` is too large");
    }

    #[test]
    fn a_comma_ends_a_rule_where_another_begins() {
        assert_eq!(IgnoreRule::split("object=a{1,3}, label=b,c,code=d"), ["object=a{1,3}", "label=b,c", "code=d"]);
        assert_eq!(IgnoreRule::split(" object=a "), ["object=a"]);
        assert_eq!(IgnoreRule::split("wrong,object=a"), ["wrong", "object=a"]);
        assert_eq!((IgnoreRule::split(" ").len(), IgnoreRule::split(" , ")), (0, vec![","]));
        for rule in ["object=a{1,3}", "label=b,c"] {
            assert_eq!(IgnoreRule::parse(rule).expect(rule).to_string(), rule);
        }
    }
}
