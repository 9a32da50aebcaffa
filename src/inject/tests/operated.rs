//! StatefulSets that an operator has made.

use super::manifests::manifest;
use crate::{Options, Severity, inject};

#[test] // proves MANIFEST-3
fn a_stateful_set_of_an_operator_is_refused_with_the_object_to_change() {
    for (api, kind, resource) in [
        ("elasticsearch.k8s.elastic.co/v1", "Elasticsearch", "elasticsearch"),
        ("opensearch.org/v1", "OpenSearchCluster", "opensearchclusters.opensearch.org"),
        ("opensearch.opster.io/v1", "OpenSearchCluster", "opensearchclusters.opensearch.opster.io"),
    ] {
        let owner =
            format!("{{apiVersion: {api}, kind: {kind}, name: big, uid: x, controller: true}}");
        let owned = |owner: &str| {
            let metadata = format!("  name: logs\n  ownerReferences: [{owner}]\n  namespace:");
            manifest("hand-written.yaml").replace("  name: logs\n  namespace:", &metadata)
        };
        let found = inject(&owned(&owner), &Options::default()).unwrap_err();
        let [found] = &found[..] else { panic!("{found:#?}") };
        assert_eq!(found.severity, Severity::Error);
        assert_eq!(found.object.as_deref(), Some("StatefulSet/logs"));
        assert!(found.message.contains(&format!("it belongs to {kind} big")), "{found}");
        let command = format!(
            "`kubectl --namespace search get {resource} big --output yaml | kubectl stayput inject | kubectl \
             replace --filename -`"
        );
        assert!(found.remedy.contains(&command), "{found}");
        // One that does not control it, and other controllers.
        for owner in [
            owner.replace("controller: true", "controller: false"),
            owner.replace(api, "example.org/v1"),
        ] {
            assert!(inject(&owned(&owner), &Options::default()).is_ok(), "{owner}");
        }
    }
}
