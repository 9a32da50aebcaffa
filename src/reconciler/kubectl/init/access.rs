//! The reconciler's right to renew what is made here.

use super::made::Made;
use crate::certificates::{role, role_binding};
use crate::kubectl::apiserver::{ApiError, Kind};
use stayput_certificates::names::Names;

/// With `secrets`, the certificates, too.
pub(super) async fn make(
    made: &mut Made<'_>,
    names: &Names,
    secrets: bool,
) -> Result<(), ApiError> {
    let renews = "the reconciler's right to renew these objects and no others";
    made.ensure(Kind::Role, role(names, secrets), renews).await?;
    made.ensure(Kind::RoleBinding, role_binding(names), renews).await
}
