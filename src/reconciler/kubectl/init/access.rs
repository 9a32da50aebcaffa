//! The reconciler's right to renew the objects that `init` creates.

use super::made::Made;
use crate::certificates::{role, role_binding};
use crate::kubectl::apiserver::{ApiError, Kind};
use stayput_certificates::names::Names;

/// Creates the right; with `secrets`, also for the certificates.
pub(super) async fn make(
    made: &mut Made<'_>,
    names: &Names,
    secrets: bool,
) -> Result<(), ApiError> {
    let renews = "the reconciler's right to renew these objects and no others";
    made.ensure(Kind::Role, role(names, secrets), renews).await?;
    made.ensure(Kind::RoleBinding, role_binding(names), renews).await
}
