//! Dry runs of pod patches, and of undoing them: admission may refuse an image or a size, and after the stop
//! that would be known too late.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use stayput_kube_access::apiserver::Objects;
use stayput_restart::{
    self as restart, Change, Ledger, PodPatch, PodUpdate, Policy, Unreturnable, UpdateStep,
    annotation, to_be_set_back,
};
use tokio::time::Instant;

use crate::apiserver::{ApiError, Apiserver};
use crate::concurrency::{done_by, join_limited};
use crate::execute::patches;
use crate::execute::patches::On;
use crate::failure::Failure;
use crate::observe::snapshot::{Ages, unknown};
use crate::pods::PodFacts;

/// Maximum age of an answer about a pod that is not under way.
const MAX_AGE: Duration = Duration::from_secs(10);

/// How long an answer about a pod that is not under way counts where later ones are missing.
const OUTLIVES: Duration = Duration::from_mins(3);

const NO_RESIZE: &str = "this apiserver has no pods/resize, though one said so: are there apiservers of \
                         several versions?";

const NOT_REPLACED: &str = "; another pod can have this size: add replace to spec.update.allow, or delete the pod \
                            yourself";

const NOT_ASKED: &str = "the apiserver was not asked yet: it is slow to answer";

/// Scope of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Question {
    /// Pods of one owner with the same patch. One pod answers for all that are not under way.
    Of { owner: Option<String>, patch: PodPatch },
    /// The pod with this uid: its turn has begun.
    OfPod(String),
}

impl Question {
    fn of_all(pod: &PodFacts, update: &PodUpdate) -> Self {
        let owner = pod.owner.as_ref().map(|owner| owner.uid.clone());
        Self::Of { owner, patch: update.patch.clone() }
    }

    fn is_of_all(&self) -> bool {
        matches!(self, Self::Of { .. })
    }
}

/// Result of a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// The patch would be taken. Images, by container, that admission makes of the wanted ones.
    Yes(BTreeMap<String, String>),
    /// The patch would be refused: the reason.
    No(String),
    /// The apiserver's own rules let nobody give this size to an existing pod: the reason. A replacement can
    /// have it.
    NotResized(String),
    /// The apiserver cannot change the size of any pod.
    NoResize,
    /// No answer, with the reason: the next one may be another.
    Missing(String),
}

/// Results of the dry runs.
#[derive(Debug, Default)]
pub(super) struct PatchDryRuns {
    /// Time and result of the last dry run; no time if there was none left to run it.
    known: BTreeMap<Question, (Option<Instant>, Answer)>,
    asked: BTreeMap<String, Question>,
    /// Updates of pods that are to be replaced since they cannot be resized, by uid. Their dry runs go on.
    replaced: BTreeMap<String, PodUpdate>,
    /// True if pods may be replaced.
    may_replace: bool,
}

impl PatchDryRuns {
    /// Changes the step of an update to `replace`, if that is allowed, where an existing pod cannot have its
    /// new size. The checks for a deletion and for room follow after that.
    pub(super) fn replace_refused(
        &mut self,
        policy: &Policy,
        facts: &PodFacts,
        pod: &mut restart::Pod,
    ) {
        self.replaced.remove(&facts.uid);
        let Ok(Some(update)) = &mut pod.update else { return };
        if update.step != UpdateStep::Resize || !policy.update.contains(&UpdateStep::Replace) {
            return;
        }
        // The pod's turn may have begun since the dry run for all pods of its owner.
        let own = self.known.get(&Question::OfPod(facts.uid.clone()));
        let known = own.or_else(|| self.known.get(&Question::of_all(facts, update)));
        let Some((_, Answer::NotResized(why))) = known else { return };
        self.replaced.insert(facts.uid.clone(), update.clone());
        update.step = UpdateStep::Replace;
        update.because.push(format!("a running pod cannot get that size: {why}"));
        // A replacement reads all content again.
        update.patch.annotations.remove(annotation::CONTENT);
    }

    /// Makes the due dry runs of pods whose images or sizes are to be changed, and forgets all others. Starts
    /// those of pods that are not under way only until `end`; the next observation goes on with the rest.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        policy: &Policy,
        pods: &[(&Arc<PodFacts>, &restart::Pod)],
        ages: &Ages<'_>,
        end: Instant,
    ) {
        self.asked.clear();
        self.may_replace = policy.update.contains(&UpdateStep::Replace);
        let mut due: BTreeMap<Question, (&PodFacts, &PodUpdate)> = BTreeMap::new();
        for (facts, pod) in pods {
            let facts: &PodFacts = facts;
            let Ok(Some(update)) = &pod.update else { continue };
            let update = self.replaced.get(&facts.uid).unwrap_or(update);
            if !policy.update.contains(&update.step) || !is_patched(update) {
                continue;
            }
            let is_under_way = ages.is_under_way(&facts.uid);
            let question = if is_under_way {
                Question::OfPod(facts.uid.clone())
            } else {
                Question::of_all(facts, update)
            };
            let is_known = |(at, _): &(Option<Instant>, Answer)| {
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
        let last = |question: &Question| self.known.get(question).and_then(|(at, _)| *at);
        due.sort_by_key(|(question, _)| (question.is_of_all(), last(question)));
        let ask = async |(question, (facts, update)): (Question, (&PodFacts, &PodUpdate))| {
            let end = question.is_of_all().then_some(end);
            let answer = answer(api, facts, update, ages.is_under_way(&facts.uid));
            let answer = done_by(end, answer).await;
            (question, answer)
        };
        for (question, answer) in join_limited(due.into_iter().map(ask).collect()).await {
            match answer {
                Some(Answer::Missing(why)) if question.is_of_all() => {
                    self.not_answered(question, why)
                }
                Some(answer) => {
                    self.known.insert(question, (Some(Instant::now()), answer));
                }
                None => {
                    let not_asked = || (None, Answer::No(NOT_ASKED.to_owned()));
                    self.known.entry(question).or_insert_with(not_asked);
                }
            }
        }
    }

    /// Keeps the last answer for three minutes: by a refusal, labels that are ahead go back, and the pod's
    /// operator deletes it. After that, and without one, a missing answer counts as a refusal.
    fn not_answered(&mut self, question: Question, why: String) {
        let known = self.known.get(&question);
        let is_kept = known.is_some_and(|(at, _)| at.is_some_and(|at| at.elapsed() < OUTLIVES));
        if !is_kept {
            self.known.insert(question, (Some(Instant::now()), Answer::No(why)));
        }
    }

    /// True if the apiserver cannot change the size of any pod.
    pub(super) fn shows_no_resize(&self) -> bool {
        self.known.values().any(|(_, answer)| *answer == Answer::NoResize)
    }

    /// Writes into a pod the reason why the apiserver would not change it, or the images that admission makes
    /// of the wanted ones: those become the wanted images.
    pub(super) fn write_into(&self, pod: &mut restart::Pod) {
        let answer = self.asked.get(&pod.uid).and_then(|question| self.known.get(question));
        match answer.map(|(_, answer)| answer) {
            None => {}
            Some(Answer::No(why)) => pod.unchangeable = Some(why.clone()),
            Some(Answer::NotResized(why)) => {
                let remedy = if self.may_replace { "" } else { NOT_REPLACED };
                pod.unchangeable = Some(format!("{why}{remedy}"));
            }
            Some(Answer::NoResize) => pod.unchangeable = Some(NO_RESIZE.to_owned()),
            Some(Answer::Missing(why)) => pod.update = Err(unknown(why.clone())),
            Some(Answer::Yes(images)) => {
                let Ok(Some(update)) = &mut pod.update else { return };
                for (container, image) in images {
                    if let Some(change) = update.patch.images.get_mut(container) {
                        change.wanted = Some(image.clone());
                    }
                }
            }
        }
    }
}

/// True if images or sizes of the pod are changed between stop and start.
fn is_patched(update: &PodUpdate) -> bool {
    let PodPatch { images, resources, .. } = &update.patch;
    let changes_images = images.values().any(|image| image.seen != image.wanted);
    match update.step {
        UpdateStep::Restart | UpdateStep::Container => changes_images,
        UpdateStep::Resize => changes_images || !resources.is_empty(),
        UpdateStep::None | UpdateStep::Relabel | UpdateStep::Replace | UpdateStep::Move => false,
    }
}

/// Makes a dry run. In a turn the node waits for a missing answer, and an error of the apiserver's own is a
/// refusal: the next answer may come after the stop.
async fn answer(api: &Apiserver, pod: &PodFacts, update: &PodUpdate, is_under_way: bool) -> Answer {
    match ask(api, pod, update).await {
        Ok(Ok(answer)) => answer,
        // The pod is another one by now, or has changed: the next look has another question.
        Ok(Err(error)) if error.is_not_found() || error.is_conflict() => {
            Answer::Yes(BTreeMap::new())
        }
        Ok(Err(error)) if error.is_no_answer() || !is_under_way && !is_definite(&error) => {
            Answer::Missing(error.to_string())
        }
        Ok(Err(error)) => Answer::No(error.to_string()),
        Err(failure) => Answer::No(failure.to_string()),
    }
}

async fn ask(
    api: &Apiserver,
    pod: &PodFacts,
    update: &PodUpdate,
) -> Result<Result<Answer, ApiError>, Failure> {
    let PodPatch { images, resources, .. } = &update.patch;
    if update.step == UpdateStep::Resize && !resources.is_empty() {
        let patch = patches::resources(pod, On::AnyVersion, resources)?;
        if let Err(error) = try_to_resize(api, pod, patch).await {
            // Not found is either the pod or the subresource.
            if error.is_not_found()
                && api.objects::<Pod>(&pod.namespace).get(&pod.name).await.is_ok()
            {
                return Ok(Ok(Answer::NoResize));
            }
            if error.is_size_of_no_living_pod() {
                return Ok(Ok(Answer::NotResized(error.to_string())));
            }
            return Ok(Err(error));
        }
    }
    if images.is_empty() {
        return Ok(Ok(Answer::Yes(BTreeMap::new())));
    }
    let first = match try_images(api, pod, images).await? {
        Ok(first) if first.is_empty() => return Ok(Ok(Answer::Yes(first))),
        Ok(first) => first,
        Err(error) => return Ok(Err(error)),
    };
    // A second dry run must leave these images as they are: a pod would never have the wanted ones otherwise.
    let mut again = images.clone();
    for (container, image) in &first {
        let wanted = Some(image.clone());
        again.entry(container.clone()).and_modify(|change| change.wanted = wanted);
    }
    let second = try_images(api, pod, &again).await?;
    Ok(second.map(|second| match second.into_iter().next() {
        None => Answer::Yes(first),
        Some((container, image)) => Answer::No(format!(
            "admission rewrites the image {} of container {container} again, to {image}: name an image \
             that it does not rewrite",
            first.get(&container).map(String::as_str).unwrap_or_default()
        )),
    }))
}

/// Images, by container, that admission makes of the wanted ones, where it changes them.
async fn try_images(
    api: &Apiserver,
    pod: &PodFacts,
    images: &BTreeMap<String, Change>,
) -> Result<Result<BTreeMap<String, String>, ApiError>, Failure> {
    let patch = patches::images(pod, On::AnyVersion, images)?;
    let then = match pods(api, pod).patch(&pod.name, patch).await {
        Ok(then) => then,
        Err(error) => return Ok(Err(error)),
    };
    let spec = then.spec.unwrap_or_default();
    let containers = spec.containers.into_iter().chain(spec.init_containers.unwrap_or_default());
    let others = containers.filter_map(|container| {
        let (wanted, image) = (images.get(&container.name)?.wanted.as_ref()?, container.image?);
        (*wanted != image).then_some((container.name, image))
    });
    Ok(Ok(others.collect()))
}

/// The pods of the namespace of this one, for dry runs.
fn pods(api: &Apiserver, pod: &PodFacts) -> Objects<Pod> {
    api.objects(&pod.namespace).dry_run(true)
}

/// Dry run of changing CPU and memory of a living pod.
async fn try_to_resize(
    api: &Apiserver,
    pod: &PodFacts,
    patch: json_patch::Patch,
) -> Result<(), ApiError> {
    pods(api, pod).patch_subresource("resize", &pod.name, patch).await.map(drop)
}

/// Refused rollbacks, by uid of the pod.
#[derive(Debug, Default)]
pub(super) struct UndoDryRuns(BTreeMap<String, Unreturnable>);

impl UndoDryRuns {
    /// Makes a dry run for each pod that is to be rolled back.
    pub(super) async fn read(
        &mut self,
        api: &Apiserver,
        ledger: &Ledger,
        pods: &[(&Arc<PodFacts>, &restart::Pod)],
    ) {
        let due =
            pods.iter().filter_map(|(facts, pod)| Some((facts, to_be_set_back(ledger, pod)?)));
        let ask =
            async |(facts, patch): (&&Arc<PodFacts>, PodPatch)| match ask_undo(api, facts, &patch)
                .await
            {
                Ok(Err(error)) if is_definite(&error) => {
                    let why = error.to_string();
                    Some((facts.uid.clone(), Unreturnable { patch, why }))
                }
                Ok(Ok(()) | Err(_)) | Err(_) => None,
            };
        let answers = join_limited(due.map(ask).collect()).await;
        self.0 = answers.into_iter().flatten().collect();
    }

    /// The refused rollback of this pod.
    pub(super) fn of(&self, uid: &str) -> Option<Box<Unreturnable>> {
        self.0.get(uid).cloned().map(Box::new)
    }
}

/// True if the apiserver would refuse the next time, too. A passing error, such as a token that one apiserver
/// of several does not take yet, is worth a retry.
fn is_definite(error: &ApiError) -> bool {
    let may_pass = error.is_no_answer()
        || error.is_conflict()
        || error.is_server_error()
        || error.is_unauthorized();
    !may_pass && !error.is_not_found()
}

async fn ask_undo(
    api: &Apiserver,
    pod: &PodFacts,
    patch: &PodPatch,
) -> Result<Result<(), ApiError>, Failure> {
    let PodPatch { images, resources, .. } = patch;
    if !resources.is_empty() {
        let patch = patches::resources(pod, On::AnyVersion, resources)?;
        return Ok(try_to_resize(api, pod, patch).await);
    }
    let patch = patches::images(pod, On::AnyVersion, images)?;
    Ok(pods(api, pod).patch(&pod.name, patch).await.map(drop))
}

#[cfg(test)]
mod tests;
