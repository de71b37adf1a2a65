//! The formats for machines obey their schemas: JSON ours, SARIF that of OASIS, JUnit XML the rules of `junit-10.xsd`.

mod examples;

use std::path::{Path, PathBuf};
use std::process::Command;

use lavascope_findings::{FindingsReport, ReportFormat, TextOptions, render};
use roxmltree::{Document, Node};
use serde_json::Value;

/// A report with everything, and one with nothing.
fn reports() -> [FindingsReport; 2] {
    [examples::report(), FindingsReport::default()]
}

fn json(report: &FindingsReport, format: ReportFormat) -> Value {
    serde_json::from_str(&render(report, format, &TextOptions::FILE)).expect("JSON")
}

fn assert_valid(schema: &Value, document: &Value) {
    let validator = jsonschema::validator_for(schema).expect("a schema");
    let errors: Vec<String> =
        validator.iter_errors(document).map(|it| format!("{}: {it}", it.instance_path())).collect();
    assert!(errors.is_empty(), "{}\n{document:#}", errors.join("\n"));
}

fn published_schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/findings.schema.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON")
}

/// Forbids what the schema does not describe. Readers must accept it, since newer versions add members.
fn forbid_others(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            members.values_mut().for_each(forbid_others);
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_others),
        _ => {}
    }
}

#[test]
fn json_obeys_its_schema_which_describes_all_of_it() {
    let mut schema = published_schema();
    for report in reports() {
        assert_valid(&schema, &json(&report, ReportFormat::Json));
    }
    forbid_others(&mut schema);
    assert_valid(&schema, &json(&examples::report(), ReportFormat::Json));
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let mut wrong = json(&examples::report(), ReportFormat::Json);
    wrong["findings"][0]["severity"] = "fatal".into();
    assert!(!validator.is_valid(&wrong));
}

/// The folder of a package that is fetched for its files.
fn package_folder(name: &str) -> PathBuf {
    let arguments = ["metadata", "--format-version", "1", "--locked"];
    let mut command = Command::new(env!("CARGO"));
    let output = command.args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages.iter().find(|it| it["name"] == name).expect("a package of this workspace");
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    manifest.parent().expect("a folder").to_owned()
}

#[test]
fn sarif_obeys_its_schema() {
    let path = package_folder("serde-sarif").join("src/schema.json");
    let mut schema: Value = serde_json::from_str(&std::fs::read_to_string(path).expect("the schema")).expect("JSON");
    // The expression for languages has an unbalanced bracket. We write no languages.
    for part in ["run", "toolComponent"] {
        let language = schema["definitions"][part]["properties"]["language"].as_object_mut().expect("a member");
        assert!(language.remove("pattern").is_some());
    }
    for report in reports() {
        assert_valid(&schema, &json(&report, ReportFormat::Sarif));
    }
    let mut wrong = json(&examples::report(), ReportFormat::Sarif);
    wrong["runs"][0]["results"][0]["level"] = "fatal".into();
    assert!(!jsonschema::validator_for(&schema).expect("a schema").is_valid(&wrong));
}

#[test]
fn sarif_has_rules_fingerprints_ways_and_fixes() {
    let sarif = json(&examples::report(), ReportFormat::Sarif);
    let run = &sarif["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let described: Vec<&Value> = rules.iter().filter(|it| it["help"].is_object()).collect();
    assert!(described.len() >= 2 && described.iter().all(|it| it["help"]["markdown"].is_string()), "{rules:?}");
    for result in run["results"].as_array().expect("results") {
        let rule = &rules[result["ruleIndex"].as_u64().expect("an index") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        assert!(result["partialFingerprints"]["lavascopeIdentity/v1"].is_string(), "{result:#}");
        // Services refuse results that are in no file.
        assert!(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string(), "{result:#}");
    }
    let result = &run["results"][0];
    let steps = result["codeFlows"][0]["threadFlows"][0]["locations"].as_array().expect("steps");
    let lines: Vec<_> = steps.iter().map(|it| &it["location"]["physicalLocation"]["region"]["startLine"]).collect();
    assert_eq!(lines, [197, 199, 204], "the earlier access, the barrier, the later access");
    let replacement = &result["fixes"][0]["artifactChanges"][0]["replacements"][0];
    assert_eq!(replacement["deletedRegion"]["startLine"], 199, "{replacement:#}");
    let text = replacement["insertedContent"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT"), "{replacement:#}");
}

/// Attributes of an element: those that it must have, and those that it may have.
struct ElementRule {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    children: &'static [&'static str],
}

/// What `junit-10.xsd` of the xUnit plugin of Jenkins allows, as far as we use it.
const RULES: [ElementRule; 7] = [
    ElementRule {
        name: "testsuites",
        required: &[],
        optional: &["name", "time", "tests", "failures", "errors"],
        children: &["testsuite"],
    },
    ElementRule {
        name: "testsuite",
        required: &["name", "tests"],
        optional: &["failures", "errors", "skipped", "time", "timestamp"],
        children: &["testcase", "system-out"],
    },
    ElementRule {
        name: "testcase",
        required: &["name"],
        optional: &["classname", "file", "line", "time"],
        children: &["skipped", "error", "failure", "system-out"],
    },
    ElementRule { name: "skipped", required: &[], optional: &["message", "type"], children: &[] },
    ElementRule { name: "error", required: &[], optional: &["message", "type"], children: &[] },
    ElementRule { name: "failure", required: &[], optional: &["message", "type"], children: &[] },
    ElementRule { name: "system-out", required: &[], optional: &[], children: &[] },
];

fn assert_element(element: Node<'_, '_>) {
    let name = element.tag_name().name();
    let rule = RULES.iter().find(|it| it.name == name).unwrap_or_else(|| panic!("<{name}> is not allowed"));
    for required in rule.required {
        assert!(element.has_attribute(*required), "<{name}> without {required}");
    }
    for attribute in element.attributes() {
        let name = attribute.name();
        assert!(rule.required.contains(&name) || rule.optional.contains(&name), "<{}> with {name}", rule.name);
    }
    for child in element.children().filter(Node::is_element) {
        assert!(rule.children.contains(&child.tag_name().name()), "{child:?} in <{name}>");
        assert_element(child);
    }
}

#[test]
fn junit_obeys_its_schema_and_its_counts_are_right() {
    for report in reports() {
        let text = render(&report, ReportFormat::Junit, &TextOptions::FILE);
        let document = Document::parse(&text).expect("XML");
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "testsuites");
        assert_element(root);
        let count = |name: &str| root.descendants().filter(|it| it.has_tag_name(name)).count().to_string();
        let suite = root.first_element_child().expect("a suite");
        let attributes = [("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")];
        for (attribute, element) in attributes {
            assert_eq!(suite.attribute(attribute), Some(&*count(element)), "{attribute}");
        }
    }
}
