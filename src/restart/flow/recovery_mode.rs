//! The OpenSearch operator mistakes two pods that are not ready for a failure of the whole cluster, and then
//! deletes its StatefulSet and recreates it. A setting of the operator turns that off, which nobody can see
//! from here.

use crate::blocker::{Check, refuse};
use crate::context::Context;
use crate::snapshot::namespace_and_name;
use crate::{Code, OperatorKind, Request, Strategy, annotation};

/// Passes unless the request stops several pods of the OpenSearch operator at once and nobody has confirmed that the
/// operator does not recover clusters by itself.
pub(super) fn not_taken_for_a_failure(context: &Context<'_>, request: &Request) -> Check {
    let cluster = &context.snapshot.cluster;
    let is_off =
        cluster.annotations.get(annotation::PARALLEL_RECOVERY).is_some_and(|it| it == "false");
    if is_off || !stops_several_at_once(context, request) {
        return Ok(());
    }
    let made_by = context.index.pods().filter_map(|pod| pod.operator.as_ref());
    let Some(operator) = made_by.into_iter().find(|made| made.kind == OperatorKind::OpenSearch)
    else {
        return Ok(());
    };
    let (namespace, name) = namespace_and_name(&cluster.name);
    let message = format!(
        "{} makes the StatefulSet of {} again when two pods are not ready; install it with \
         manager.parallelRecoveryEnabled=false, then confirm: kubectl annotate searchcluster {name} --namespace \
         {namespace} {}=false",
        operator.name(),
        operator.describe_object(),
        annotation::PARALLEL_RECOVERY
    );
    refuse(Code::GateClosed, message)
}

fn stops_several_at_once(context: &Context<'_>, request: &Request) -> bool {
    let pods = context.index.pods().len();
    let allowed = match request.strategy {
        _ if request.goes_as_a_whole() => pods,
        Strategy::Coordinated => pods,
        Strategy::Rolling | Strategy::Immediate => context.policy.max_unavailable.of(pods),
    };
    let named = request.target.nodes.len();
    allowed > 1 && named != 1 && pods > 1
}
