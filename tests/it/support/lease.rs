//! The Lease of the reconciler.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

/// Writes the Lease of a leader that renewed it at this time.
pub(crate) async fn lead(client: Client, renewed: &str) {
    let api: Api<Lease> = Api::namespaced(client, "stayput");
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "stayput-reconciler"},
        "spec": {"holderIdentity": "one", "renewTime": renewed},
    });
    let params = PatchParams::apply("test").force();
    api.patch("stayput-reconciler", &params, &Patch::Apply(lease)).await.expect("it is taken");
}

/// Writes the Lease of a leader that works until the test ends. A minute after the last renewal it counts as
/// gone, and on a slow machine a test may take longer: so it is renewed ahead of time.
pub(crate) async fn lead_throughout(client: Client) {
    let renewed = Timestamp::now() + Duration::from_secs(3600);
    lead(client, &format!("{renewed:.6}")).await;
}
