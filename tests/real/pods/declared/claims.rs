//! The claims of the nodes.

use std::collections::BTreeMap;

use crate::pods::fixture::Fixture;

/// The uid of each claim, by the name of its pod.
pub(super) fn claims(fixture: &Fixture) -> BTreeMap<String, String> {
    let list = fixture.read("persistentvolumeclaims");
    let claims = list["items"].as_array().expect("a list").iter().map(|claim| {
        let text = |name: &str| claim["metadata"][name].as_str().expect("text");
        let pod = text("name").strip_prefix("data-").expect("a claim for data");
        (pod.to_owned(), text("uid").to_owned())
    });
    claims.collect()
}
