//! A law for a whole run: a member whose engine is back is not waited for any longer, unless something of
//! ours is still to take effect. What no request and no patch changes only wastes the time of its phases,
//! in which allocation stays limited.

use std::collections::BTreeMap;

use crate::{Action, LivePod, Member, MemberUpdate, Plan, Pod, Snapshot, Strategy};
use stayput_api::Desired;

/// The longest wait, in milliseconds: longer than for shards that recover, and shorter than a phase.
const LONGEST: u64 = 30_000;

/// Members that stand still: since when, and what was written of them then.
#[derive(Debug, Default)]
pub(crate) struct VainWaits {
    since: BTreeMap<String, (u64, Member)>,
}

impl VainWaits {
    /// Looks at a snapshot and its plan; returns what is wrong.
    pub(crate) fn look(&mut self, snapshot: &Snapshot, plan: &Plan) -> Vec<String> {
        let standing = standing(snapshot, plan);
        self.since.retain(|uid, (_, was)| {
            standing.iter().any(|member| member.pod_uid == *uid && *member == was)
        });
        let now = snapshot.now.0;
        let mut wrong = Vec::new();
        for member in standing {
            let entry = self.since.entry(member.pod_uid.clone());
            let (since, _) = entry.or_insert_with(|| (now, member.clone()));
            if now - *since > LONGEST {
                let why = plan.waiting.iter().find(|one| one.pod.as_ref() == Some(&member.pod_uid));
                let why = why.map_or("nothing", |one| &*one.message);
                let seconds = LONGEST / 1000;
                wrong.push(format!(
                    "{} is back, and is waited for in vain for {seconds} s ({:?}): {why}",
                    member.node, member.step
                ));
            }
        }
        wrong
    }

    /// Nobody looks for a time.
    pub(crate) fn end(&mut self) {
        self.since.clear();
    }
}

/// The members whose engine is back, while the plan does nothing for them or on the engine. Those of a
/// coordinated restart wait for each other.
fn standing<'a>(snapshot: &'a Snapshot, plan: &Plan) -> Vec<&'a Member> {
    let restart = snapshot.ledger.restart.as_ref();
    let Some(restart) = restart.filter(|one| one.request.strategy != Strategy::Coordinated) else {
        return Vec::new();
    };
    if plan.actions.iter().any(is_of_the_engine) {
        return Vec::new();
    }
    let stands = |member: &&Member| {
        let pod = snapshot.pods.iter().find(|pod| pod.uid == member.pod_uid);
        let pod = pod.filter(|pod| !plan.actions.iter().any(|action| is_of_pod(action, pod)));
        member.is_under_way() && pod.is_some_and(|pod| is_back(snapshot, member, pod))
    };
    restart.members.iter().filter(stands).collect()
}

/// Whether its manager has taken its stop, its engine serves, and nothing of its update is still to take
/// effect in its pod.
fn is_back(snapshot: &Snapshot, member: &Member, pod: &Pod) -> bool {
    let (Ok(manager), Ok(engine)) = (&pod.manager, &snapshot.engine) else { return false };
    let serves = manager.is_ready() && manager.durable && manager.desired == Desired::Running;
    let listed = engine.nodes.iter().find(|node| node.name == member.node);
    let is_new =
        listed.is_some_and(|node| Some(&node.ephemeral_id) != member.ephemeral_id.as_ref());
    let has_turned = member.stop_sequence > 0 && manager.sequence >= member.stop_sequence;
    let takes_effect = match (&member.update, &pod.live) {
        (None, _) => false,
        (Some(fixed), Some(live)) => takes_effect(fixed, pod, live),
        (Some(_), None) => true,
    };
    serves && is_new && has_turned && !pod.terminating && !takes_effect
}

/// Whether the kubelet has something of the update still to do.
fn takes_effect(fixed: &MemberUpdate, pod: &Pod, live: &LivePod) -> bool {
    let engine = pod.container.as_deref().unwrap_or_default();
    let image = fixed.update.patch.images.get(engine);
    let is_patched = image.is_some_and(|image| live.images.get(engine) == image.wanted.as_ref());
    let is_old = live.container_id.is_none() || live.container_id == fixed.container_id;
    let is_ready = |name: &String| live.others.get(name).is_some_and(|other| other.ready);
    let others_come = !fixed.others.keys().all(is_ready);
    live.waiting.is_some() || live.resize.is_some() || is_patched && is_old || others_come
}

fn is_of_the_engine(action: &Action) -> bool {
    matches!(
        action,
        Action::TightenAllocation { .. }
            | Action::RestoreAllocation { .. }
            | Action::Flush { .. }
            | Action::PutRecord { .. }
            | Action::DeleteRecord { .. }
            | Action::ExcludeVoter { .. }
            | Action::ClearVotingExclusions
            | Action::ExcludeNames { .. }
    )
}

/// Whether it changes anything of the pod but our annotations.
fn is_of_pod(action: &Action, pod: &Pod) -> bool {
    !matches!(action, Action::PatchPod { .. }) && action.pod() == Some(&pod.uid)
}
