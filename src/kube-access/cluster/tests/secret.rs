//! Which SearchCluster may use which Secret.

use std::collections::BTreeMap;

use crate::cluster::secret::{ALLOW, allow_command, allows, others};

fn with(value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([(ALLOW.to_owned(), value.to_owned())])
}

#[test]
fn only_named_clusters_may_use_it() {
    let asked = |annotations| allows("search", "logs-admin", &annotations, "logs");
    assert_eq!(asked(with("logs")), Ok(()));
    assert_eq!(asked(with("metrics, logs")), Ok(()));
    for annotations in [BTreeMap::new(), with(""), with("logs-2"), with("*"), with("log")] {
        let message = asked(annotations).unwrap_err().to_string();
        assert!(message.contains(
            "does not allow its use by SearchCluster logs: kubectl -n search annotate --overwrite \
             secret logs-admin "
        ));
    }
}

#[test]
fn the_command_that_allows_it_leaves_others_in() {
    for (before, after) in [
        ("", "stayput.dev/allow=logs"),
        ("metrics", "stayput.dev/allow='metrics,logs'"),
        ("metrics, traces,", "stayput.dev/allow='metrics,traces,logs'"),
    ] {
        let command = allows("search", "s", &with(before), "logs").unwrap_err().command;
        assert_eq!(command, format!("kubectl -n search annotate --overwrite secret s {after}"));
    }
}

#[test]
fn one_that_leaves_takes_only_itself_out() {
    for (before, after) in [
        ("logs", Some(vec![])),
        ("other, logs", Some(vec!["other"])),
        ("logs,a,b", Some(vec!["a", "b"])),
        ("other", None),
        ("", None),
    ] {
        assert_eq!(others(&with(before), "logs"), after, "{before}");
    }
    let off = "kubectl -n search annotate secret s stayput.dev/allow-";
    assert_eq!(allow_command("search", "s", &[]), off);
}
