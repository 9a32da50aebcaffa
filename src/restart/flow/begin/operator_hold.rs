//! Restarts wait while an operator replaces pods: two that stop nodes of one engine do not see each other's stops
//! in time. Where an operator deletes only pods that are not ready, a stop would make it delete the pod; and one takes
//! two that are not ready for a failure of the cluster.

use crate::changes::{Check, refuse};
use crate::flow::member::update::frozen_update::planned_update;
use crate::flow::observed::recovering_operator;
use crate::snapshot::Replacement;
use crate::{Code, Context, Operator, Pod, Request, Strategy};

/// The pods that an operator replaces, seen by a restart.
pub(crate) struct OperatorHold<'t, 'a> {
    context: &'t Context<'a>,
    strategy: Strategy,
    /// The first operator that replaces one pod after the other.
    replacing: Option<&'a Operator>,
    /// The first pod that is not ready.
    not_ready: Option<&'a Pod>,
}

impl<'t, 'a> OperatorHold<'t, 'a> {
    pub(crate) fn of(context: &'t Context<'a>, request: &Request) -> Self {
        let not_ready = context.index.pods().find(|pod| !pod.ready);
        let mut hold = Self { context, strategy: request.strategy, replacing: None, not_ready };
        let mut left = context.index.pods().filter_map(|pod| hold.left_to_operator(pod));
        hold.replacing = left.find_map(|(operator, replacement)| {
            (replacement == Replacement::EachPod).then_some(operator)
        });
        hold
    }

    /// Passes unless an operator replaces pods, or would replace this one once it is stopped. A node that is down
    /// already may be restarted: an operator may wait for it. An immediate restart waits for nothing.
    pub(crate) fn check(&self, pod: &Pod) -> Check {
        if self.strategy == Strategy::Immediate || !pod.ready {
            return Ok(());
        }
        let would_be = || Some(self.left_to_operator(pod)?.0);
        match self.replacing.or_else(would_be) {
            Some(operator) => {
                refuse(Code::OperatorReplaces, operator.replaces(&self.context.snapshot.cluster))
            }
            None => self.is_only_one_not_ready(pod),
        }
    }

    /// Passes unless this ready pod would be the second one that is not, of an operator that takes two for a failure.
    fn is_only_one_not_ready(&self, pod: &Pod) -> Check {
        let Some(operator) = recovering_operator(self.context, pod) else { return Ok(()) };
        let Some(other) = self.not_ready else { return Ok(()) };
        let message = format!(
            "{} is not ready, and {} makes the StatefulSet of {} again when two pods are not",
            other.name,
            operator.name(),
            operator.describe_object()
        );
        refuse(Code::OperatorReplaces, message)
    }

    /// The operator of a pod of an older revision that is not updated here, with the pods that it deletes.
    fn left_to_operator<'p>(&self, pod: &'p Pod) -> Option<(&'p Operator, Replacement)> {
        let operator = pod.operator.as_ref().filter(|operator| operator.replaces_pods)?;
        let replacement = operator.replacement(&self.context.snapshot.cluster);
        let policy = self.context.policy;
        let is_left = match &pod.update {
            Ok(None) => policy.update.is_empty(),
            Ok(Some(_)) => planned_update(policy, self.strategy, pod).is_none(),
            Err(_) => true,
        };
        (is_left && replacement != Replacement::NoPod).then_some((operator, replacement))
    }
}
