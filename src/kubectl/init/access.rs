//! The reconciler's rights in a namespace: to restart clusters, and to renew what `init` creates.

use stayput_certificates::names::SecretNames;
use stayput_kube_access::certificates::{cluster_role_binding, role, role_binding};

use crate::apiserver::ApiError;
use crate::apiserver::kind::Kind;
use crate::init::made::Made;

/// Creates the rights; with `secrets`, also for the certificates; with `declared`, also to make nodes.
pub(crate) async fn make(
    made: &mut Made<'_>,
    names: &SecretNames,
    secrets: bool,
    declared: bool,
) -> Result<(), ApiError> {
    let renews = "the reconciler's right to renew these objects and no others";
    made.ensure(Kind::Role, role(names, secrets), renews).await?;
    made.ensure(Kind::RoleBinding, role_binding(names), renews).await?;
    let restarts = "the reconciler's rights in this namespace, to restart clusters";
    let binding = cluster_role_binding("stayput-clusters", "stayput-reconciler");
    made.ensure(Kind::RoleBinding, binding, restarts).await?;
    if declared {
        let makes = "the reconciler's rights in this namespace, to make nodes";
        let binding = cluster_role_binding("stayput-declared", "stayput-reconciler-declared");
        made.ensure(Kind::RoleBinding, binding, makes).await?;
    }
    Ok(())
}
