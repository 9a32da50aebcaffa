//! Which SearchCluster may use which Secret.

use std::collections::BTreeMap;

use crate::cluster::{ALLOW, allows};

#[test]
fn only_named_clusters_may_use_it() {
    let with = |value: &str| BTreeMap::from([(ALLOW.to_owned(), value.to_owned())]);
    assert_eq!(allows("logs-admin", &with("logs"), "logs"), Ok(()));
    assert_eq!(allows("logs-admin", &with("metrics, logs"), "logs"), Ok(()));
    for annotations in [BTreeMap::new(), with(""), with("logs-2"), with("*"), with("log")] {
        let message = allows("logs-admin", &annotations, "logs").unwrap_err().to_string();
        assert!(message.ends_with("kubectl annotate secret logs-admin stayput.dev/allow=logs"));
    }
}
