//! Facts of the snapshot about a pod, a member or the cluster.

use crate::changes::{Check, refuse};
use crate::snapshot::namespace_and_name;
use crate::{
    Blocker, Code, Context, Ledger, Manager, Member, Operator, OperatorKind, Pod, Request, Restart,
    Sources, Strategy, annotation, foreign_text,
};
use stayput_api::Desired;

/// True if the time of so many phases has passed since the member took its slot. A phase that ends early
/// leaves its remaining time to the next one, so that only the time of the slot must be stored.
pub(crate) fn is_over_time(context: &Context<'_>, member: &Member, phases: u64) -> bool {
    context.snapshot.now.since(member.since) >= phases.saturating_mul(context.policy.phase_timeout)
}

/// True if the cluster lists a new process of this member's node.
pub(crate) fn has_joined(context: &Context<'_>, member: &Member) -> Result<bool, Blocker> {
    context.index.engine()?;
    Ok(lists_new_process(context, member))
}

/// True if the cluster lists a new process of this member's node; false if the engine is unreachable.
pub(crate) fn lists_new_process(context: &Context<'_>, member: &Member) -> bool {
    let node = context.index.node(&member.node);
    node.is_some_and(|node| member.is_new_process(node))
}

/// True if the cluster lists the process that the member had before its turn; false if the engine is
/// unreachable.
pub(crate) fn lists_old_process(context: &Context<'_>, member: &Member) -> bool {
    let node = context.index.node(&member.node);
    node.is_some_and(|node| member.ephemeral_id.as_ref() == Some(&node.ephemeral_id))
}

/// Checksum of the config that the sources have now. Without declared sources, of the mounted config.
pub(crate) fn expected_now(pod: &Pod, manager: &Manager) -> Result<Option<String>, Blocker> {
    match &pod.sources {
        Sources::Checksum(checksum) => Ok(Some(checksum.clone())),
        Sources::Unknown(_) => Ok(manager.mounted.clone()),
        Sources::Absent(message) => {
            Err(Blocker { code: Code::SourceAbsent, message: message.clone() })
        }
    }
}

/// True if the spec or an annotation requests that this node is kept stopped.
pub(crate) fn is_to_be_stopped(context: &Context<'_>, pod: &Pod) -> bool {
    context.snapshot.cluster.keeps_stopped(pod)
}

/// True if another client has stopped the engine of this pod: no entry of ours says that we have.
pub(crate) fn is_stopped_by_another(context: &Context<'_>, ledger: &Ledger, pod: &Pod) -> bool {
    let is_ours = ledger.owes_start(&pod.uid)
        || ledger.kept_stopped.iter().any(|kept| kept.pod_uid == pod.uid);
    let manager = context.index.manager(&pod.uid);
    !is_ours && manager.is_ok_and(|manager| manager.desired == Desired::Stopped)
}

/// Passes unless a person has paused the cluster.
pub(crate) fn not_paused(context: &Context<'_>) -> Check {
    if context.snapshot.cluster.paused {
        return refuse(Code::Paused, "paused (spec.paused): nothing is stopped");
    }
    Ok(())
}

/// Passes unless people want no node to be stopped now for this request, by a pause, a gate or maintenance
/// windows; or the OpenSearch operator could take the stops for a failure.
pub(crate) fn not_held(context: &Context<'_>, request: &Request) -> Check {
    not_paused(context)?;
    not_gated(context, request)?;
    not_gated_after(context)?;
    not_taken_for_a_failure(context, request)?;
    if request.outside_windows { Ok(()) } else { not_outside_windows(context) }
}

/// Maximum length of a gate's text in a message, in characters.
const LONGEST_TEXT: usize = 100;

/// Passes if every gate is open for this request.
fn not_gated(context: &Context<'_>, request: &Request) -> Check {
    let cluster = &context.snapshot.cluster;
    let closed = cluster.closed_gates(annotation::GATE, &request.id);
    let Some((gate, remarks)) = first_and_remarks(closed) else { return Ok(()) };
    let open = open_gate(&cluster.name, annotation::GATE, gate, &request.id);
    let message =
        format!("the gate {gate} is closed{remarks}; to open it for this restart: {open}");
    refuse(Code::GateClosed, message)
}

/// Passes if every gate after a restart says that the last one was checked.
fn not_gated_after(context: &Context<'_>) -> Check {
    let Some(last) = context.snapshot.ledger.last_to_check() else { return Ok(()) };
    let cluster = &context.snapshot.cluster;
    let closed = cluster.closed_gates(annotation::GATE_AFTER, &last.id);
    let Some((gate, remarks)) = first_and_remarks(closed) else { return Ok(()) };
    let open = open_gate(&cluster.name, annotation::GATE_AFTER, gate, &last.id);
    let message = format!(
        "restart {} has ended, and the gate {gate} is closed until it is checked{remarks}; once it \
         is, to let the next restart go: {open}",
        last.id
    );
    refuse(Code::GateClosed, message)
}

/// Name of the first closed gate, and remarks for a message: its text, and the number of further gates.
fn first_and_remarks<'a>(
    mut closed: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<(&'a str, String)> {
    let (gate, text) = closed.next()?;
    let text: String = text.chars().filter(|c| !c.is_control()).take(LONGEST_TEXT).collect();
    let text = foreign_text(&text);
    let text = match text.trim() {
        "" => String::new(),
        text => format!(" ({text})"),
    };
    let more = match closed.count() {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some((gate, text + &more))
}

/// The command that opens a gate.
fn open_gate(cluster: &str, kind: &str, gate: &str, id: &str) -> String {
    let (namespace, name) = namespace_and_name(cluster);
    format!(
        "kubectl annotate searchcluster {name} --namespace {namespace} --overwrite {kind}{gate}={id}"
    )
}

/// Passes while a maintenance window is open, or if there are none.
pub(crate) fn not_outside_windows(context: &Context<'_>) -> Check {
    match context.snapshot.cluster.closed_until {
        Some(opens) => refuse(
            Code::OutsideWindow,
            format!(
                "outside of the maintenance windows (spec.restart.windows): the next one opens at {opens}"
            ),
        ),
        None => Ok(()),
    }
}

/// True if the SearchCluster is deleted together with its pods: then debts need not be paid. Pods that the
/// selector does not match any more are not gone.
pub(crate) fn is_deleted_with_its_pods(context: &Context<'_>) -> bool {
    let cluster = &context.snapshot.cluster;
    cluster.deleting && context.snapshot.pods.is_empty() && cluster.unselected.is_empty()
}

/// The zone that a restart stops as a whole, for messages.
pub(crate) fn describe_zone(restart: &Restart) -> String {
    format!("zone {}", restart.request.target.zone.as_deref().unwrap_or_default())
}

/// End of a message: the command for a pod whose Kubernetes node is gone for good.
pub(crate) fn if_gone_for_good(context: &Context<'_>, pod: &Pod) -> String {
    let (namespace, _) = namespace_and_name(&context.snapshot.cluster.name);
    format!(
        "; if its Kubernetes node is gone for good: `kubectl -n {namespace} delete pod {} --force`",
        pod.name
    )
}

/// Passes unless the request stops several pods of the OpenSearch operator at once and nobody has confirmed that the
/// operator does not recover clusters by itself.
fn not_taken_for_a_failure(context: &Context<'_>, request: &Request) -> Check {
    let cluster = &context.snapshot.cluster;
    if !stops_several_at_once(context, request) {
        return Ok(());
    }
    let Some(operator) = context.index.pods().find_map(|pod| recovering_operator(context, pod))
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

/// The OpenSearch operator of a pod, unless a person has confirmed that it does not recover clusters by itself: it makes
/// a StatefulSet again when two of its pods are not ready.
pub(crate) fn recovering_operator<'p>(context: &Context<'_>, pod: &'p Pod) -> Option<&'p Operator> {
    let annotations = &context.snapshot.cluster.annotations;
    let is_off = annotations.get(annotation::PARALLEL_RECOVERY).is_some_and(|it| it == "false");
    pod.operator.as_ref().filter(|operator| operator.kind != OperatorKind::Eck && !is_off)
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
