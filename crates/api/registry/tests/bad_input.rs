//! A registry that is not as we know it gives errors that name item and place.

use lavascope_registry::{RegistryError, parse};

const EMPTY: &str = "<registry></registry>";

fn errors(vk: &str) -> Vec<RegistryError> {
    parse(vk, EMPTY).err().unwrap_or_default()
}

#[test]
fn broken_xml_names_the_place() {
    let errors = errors("<registry>\n  <types>\n</registry>");
    assert!(matches!(&errors[..], [RegistryError::Xml { place, .. }] if place.line == 3), "{errors:?}");
}

#[test]
fn an_unknown_element_names_item_and_place() {
    let text = "<registry><types>\n<type category=\"struct\" name=\"VkThing\"><member>\n<colour/></member></type></types></registry>";
    let errors = errors(text);
    let [RegistryError::UnknownElement { place, item, element }] = &errors[..] else { panic!("{errors:?}") };
    assert_eq!((place.line, item.as_str(), element.as_str()), (3, "VkThing", "colour"));
}

#[test]
fn every_fault_is_listed_in_one_run() {
    let text = "<registry wrong=\"1\"><types wrong=\"2\"/><commands wrong=\"3\"/></registry>";
    assert_eq!(errors(text).len(), 3);
}

#[test]
fn a_type_that_is_nowhere_defined_is_named() {
    let text = "<registry><types><type category=\"struct\" name=\"VkThing\"><member><type>VkNowhere</type> <name>a</name></member></type></types>\
                <feature api=\"vulkan\" name=\"VK_VERSION_1_0\" number=\"1.0\"><require><type name=\"VkThing\"/></require></feature></registry>";
    let errors = errors(text);
    assert!(
        matches!(&errors[..], [RegistryError::Undefined { item, name }] if item == "VkThing" && name == "VkNowhere"),
        "{errors:?}"
    );
}

#[test]
fn two_values_for_one_name_conflict() {
    let text = "<registry><enums name=\"VkE\" type=\"enum\"><enum name=\"VK_E_A\" value=\"1\"/></enums>\
                <feature api=\"vulkan\" name=\"VK_VERSION_1_0\" number=\"1.0\"><require><enum name=\"VK_E_A\" extends=\"VkE\" value=\"2\"/></require></feature></registry>";
    let errors = errors(text);
    assert!(matches!(&errors[..], [RegistryError::Conflict { first: 1, second: 2, .. }]), "{errors:?}");
}

#[test]
fn a_number_that_is_none_is_a_bad_value() {
    let text = "<registry><enums name=\"VkE\" type=\"enum\" bitwidth=\"wide\"><enum name=\"VK_E_A\" value=\"one\"/></enums></registry>";
    let errors = errors(text);
    assert_eq!(errors.iter().filter(|it| matches!(it, RegistryError::BadValue { .. })).count(), 2, "{errors:?}");
}
