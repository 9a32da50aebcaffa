//! Whether the apiserver would change pods as their templates ask. Admission may refuse an image or a
//! size, and after the stop that would be told too late.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use stayput_restart::{self as restart, PodPatch, PodUpdate, Policy, UpdateStep};
use tokio::time::Instant;

use super::ages::Ages;
use crate::controller::apiserver::{ApiError, Apiserver};
use crate::controller::concurrency::{done_by, join_limited};
use crate::controller::execute::patches::{self, On};
use crate::controller::failure::Failure;
use crate::controller::pods::Facts;

/// An answer about a pod that is not under way may be this old.
const MAX_AGE: Duration = Duration::from_secs(10);

const NOT_ASKED: &str = "the apiserver was not asked yet: it is slow to answer";

/// What is asked once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// Whether pods of an owner can be changed so. One pod answers for all that are not under way.
    Of { owner: Option<String>, patch: PodPatch },
    /// Whether this pod can be: its turn has begun.
    OfPod(String),
}

impl Question {
    fn is_of_all(&self) -> bool {
        matches!(self, Self::Of { .. })
    }
}

/// What was answered.
#[derive(Debug, Default)]
pub(super) struct Trials {
    /// When, and why not. No time: there was none to ask.
    known: BTreeMap<Question, (Option<Instant>, Option<String>)>,
    asked: BTreeMap<String, Question>,
}

impl Trials {
    /// Asks what is due of pods whose images or sizes are to be changed, and forgets all others. About
    /// pods that are not under way only until `end`; the next observation goes on with the others.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        policy: &Policy,
        pods: &[(&Arc<Facts>, &restart::Pod)],
        ages: &Ages<'_>,
        end: Instant,
    ) {
        self.asked.clear();
        let mut due: BTreeMap<Question, (&Facts, &PodUpdate)> = BTreeMap::new();
        for (facts, pod) in pods {
            let facts: &Facts = facts;
            let Ok(Some(update)) = &pod.update else { continue };
            if !policy.update.contains(&update.step) || !is_patched(update) {
                continue;
            }
            let is_under_way = ages.is_under_way(&facts.uid);
            let question = match is_under_way {
                true => Question::OfPod(facts.uid.clone()),
                false => Question::Of {
                    owner: facts.owner.as_ref().map(|owner| owner.uid.clone()),
                    patch: update.patch.clone(),
                },
            };
            let is_known = |(at, _): &(Option<Instant>, _)| {
                !is_under_way && at.is_some_and(|at| at.elapsed() < MAX_AGE)
            };
            if !self.known.get(&question).is_some_and(is_known) {
                due.entry(question.clone()).or_insert((facts, update));
            }
            self.asked.insert(facts.uid.clone(), question);
        }
        let asked: BTreeSet<&Question> = self.asked.values().collect();
        self.known.retain(|question, _| asked.contains(question));
        let mut due: Vec<_> = due.into_iter().collect();
        let asked = |question: &Question| self.known.get(question).and_then(|(at, _)| *at);
        due.sort_by_key(|(question, _)| (question.is_of_all(), asked(question)));
        let ask = async |(question, (facts, update)): (Question, (&Facts, &PodUpdate))| {
            let end = question.is_of_all().then_some(end);
            let why = done_by(end, why_not(api, facts, update, end.is_none())).await;
            (question, why)
        };
        for (question, why) in join_limited(due.into_iter().map(ask).collect()).await {
            match why {
                Some(why) => {
                    self.known.insert(question, (Some(Instant::now()), why));
                }
                None => {
                    self.known.entry(question).or_insert((None, Some(NOT_ASKED.to_owned())));
                }
            }
        }
    }

    /// Why the apiserver would not change this pod; none if it would, or if nothing is to be changed.
    pub(super) fn unchangeable(&self, uid: &str) -> Option<String> {
        self.known.get(self.asked.get(uid)?)?.1.clone()
    }
}

/// Whether images or sizes of the pod are changed between stop and start.
fn is_patched(update: &PodUpdate) -> bool {
    let PodPatch { images, resources, .. } = &update.patch;
    match update.step {
        UpdateStep::Restart | UpdateStep::Container => !images.is_empty(),
        UpdateStep::Resize => !images.is_empty() || !resources.is_empty(),
        UpdateStep::None | UpdateStep::Relabel | UpdateStep::Replace | UpdateStep::Move => false,
    }
}

/// Why it would not. No answer counts before a turn: the next one may come after the stop. In a turn it
/// is waited for.
async fn why_not(
    api: &Apiserver,
    pod: &Facts,
    update: &PodUpdate,
    is_under_way: bool,
) -> Option<String> {
    match ask(api, pod, update).await {
        Ok(Ok(())) => None,
        // It is another pod by now, or has changed: the next look has another question.
        Ok(Err(error)) if error.is_not_found() || error.is_conflict() => None,
        Ok(Err(error)) if error.is_no_answer() && is_under_way => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(failure) => Some(failure.to_string()),
    }
}

async fn ask(
    api: &Apiserver,
    pod: &Facts,
    update: &PodUpdate,
) -> Result<Result<(), ApiError>, Failure> {
    let PodPatch { images, resources, .. } = &update.patch;
    if update.step == UpdateStep::Resize && !resources.is_empty() {
        let patch = patches::resources(pod, On::AnyVersion, resources)?;
        if let Err(error) = api.try_to_resize_pod(&pod.namespace, &pod.name, patch).await {
            return Ok(Err(error));
        }
    }
    if images.is_empty() {
        return Ok(Ok(()));
    }
    let patch = patches::images(pod, On::AnyVersion, images)?;
    Ok(api.try_to_patch_pod(&pod.namespace, &pod.name, patch).await)
}
