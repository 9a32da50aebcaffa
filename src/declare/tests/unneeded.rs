//! Secrets of node sets that are gone.

use std::collections::BTreeMap;

use super::{made, usual};
use crate::{SeenSecret, garbage};

const MINUTE: u64 = 60_000;

fn secret(set: &str, mounted: bool) -> SeenSecret {
    let name = format!("logs-{set}-config");
    SeenSecret { uid: format!("uid of {name}"), name, node_set: set.into(), mounted }
}

#[test] // proves DECLARE-31
fn only_what_nobody_has_needed_for_a_quarter_of_an_hour() {
    let (cluster, mut observed) = (usual(), made(&usual()));
    observed.sets.insert("running".into(), observed.sets["data"].clone());
    let seen = [
        secret("data", false),
        secret("running", false),
        secret("mounted", true),
        secret("old", false),
    ];
    let names =
        |due: Vec<&SeenSecret>| due.into_iter().map(|one| one.name.clone()).collect::<Vec<_>>();
    let (due, since) = garbage(&cluster, &observed, &seen, &BTreeMap::new(), 7 * MINUTE);
    assert!(due.is_empty() && since.len() == 1, "{since:?}");
    let (due, since) = garbage(&cluster, &observed, &seen, &since, 21 * MINUTE);
    assert!(due.is_empty(), "{due:?}");
    let (due, _) = garbage(&cluster, &observed, &seen, &since, 22 * MINUTE);
    assert_eq!(names(due), ["logs-old-config"]);
    // A pod has mounted it meanwhile: the time begins anew.
    let (_, since) = garbage(&cluster, &observed, &[secret("old", true)], &since, 20 * MINUTE);
    let (due, _) = garbage(&cluster, &observed, &seen, &since, 30 * MINUTE);
    assert!(due.is_empty(), "{due:?}");
}
