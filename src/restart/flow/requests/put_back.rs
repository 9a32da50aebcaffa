//! Nodes that have failed in an update of ours whose template was put back since: nothing is to be updated then, and
//! no restart would start them.

use crate::changes::Changes;
use crate::flow::answers::SEQUENCE_GAP;
use crate::flow::observed::{expected_now, is_to_be_stopped};
use crate::flow::requests::configs::remember_all;
use crate::flow::requests::update::{is_left_alone, update_id};
use crate::flow::requests::{has_been_tried, last_of, try_of};
use crate::ledger::{LedgerChange, OwnKind};
use crate::{Context, Ledger, Outcome, Pod, Reason, StartDebt};
use stayput_api::{ConfigChoice, State};

/// Owes the start of each of these nodes, once: the templates that were put back count as tried from then on.
pub(crate) fn start_put_back(context: &Context<'_>, ledger: &Ledger) -> Changes {
    let mut changes = Changes::default();
    let cluster = &context.snapshot.cluster;
    let is_held = !cluster.has_status || cluster.paused || ledger.restart.is_some();
    if context.policy.update.is_empty() || is_held {
        return changes;
    }
    let Some((last, outcome)) = last_of(ledger, OwnKind::Templates) else { return changes };
    if outcome == Some(Outcome::Done) {
        return changes;
    }
    let pods = context.index.pods().filter(|pod| {
        let is_ours = is_left_alone(ledger, pod) && has_been_tried(pod, last);
        is_ours && !is_to_be_stopped(context, pod)
    });
    let starts: Vec<StartDebt> = pods.filter_map(|pod| owed_start(context, pod)).collect();
    // The id of the wanted templates is certain only if all are known.
    if starts.is_empty() || context.index.pods().any(|pod| pod.update.is_err()) {
        return changes;
    }
    let id = update_id(context);
    if try_of(&id, last).is_some() {
        return changes;
    }
    changes.ledger.extend(remember_all(context, ledger, OwnKind::Templates, id));
    for start in starts {
        let message =
            format!("{} is started again: the template that it failed on was put back", start.node);
        changes.event(Some(&start.pod_uid), Reason::DebtIncurred, message);
        changes.change(LedgerChange::AddStartDebt(start));
    }
    changes
}

/// The start of a failed engine in a pod that needs no update, on the config that its sources have now.
fn owed_start(context: &Context<'_>, pod: &Pod) -> Option<StartDebt> {
    let manager = context.index.manager(&pod.uid).ok()?;
    let is_down = manager.state == State::Failed && pod.update == Ok(None);
    let checksum = expected_now(pod, manager).ok().filter(|_| is_down)?;
    Some(StartDebt {
        pod_uid: pod.uid.clone(),
        node: pod.node.clone(),
        stop_sequence: None,
        sequence: manager.sequence + SEQUENCE_GAP,
        config: ConfigChoice::Mounted,
        checksum,
        absent_since: None,
        since: Some(context.snapshot.now),
        update: None,
    })
}
