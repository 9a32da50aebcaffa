//! How a pod gets to what its owner wants: the steps, the one for its template and its content together, and the part of
//! it that a living pod takes.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::Difference;
use crate::note::Compared;
use crate::settings::Settings;

/// The annotation of a pod with a note of the content that it was started with.
pub const CONTENT: &str = "stayput.dev/content";

/// Limit of the differences that a message shows.
const SHOWN: usize = 5;

/// How a pod gets from the template that it was made from to the one that its owner wants.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct PodUpdate {
    /// The revision of its owner that it was made from.
    pub from: String,
    /// The revision that its owner wants.
    pub to: String,
    /// The least step that gets there.
    pub step: UpdateStep,
    /// The fields that need this step, with their values, for people; the first few.
    pub because: Vec<String>,
    /// Besides another size, a field differs that only another container of the manager picks up.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub new_container: bool,
    /// The engine of a pod that is made from the wanted template has its data at another place: it begins without
    /// that of this pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub data_elsewhere: bool,
    /// Settings of the engine that may need all nodes at once, from the variables and arguments of both
    /// templates, if they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<Box<GivenSettings>>,
    /// The part of the difference that a living pod takes.
    #[serde(default, skip_serializing_if = "PodPatch::is_empty")]
    pub patch: PodPatch,
}

impl PodUpdate {
    /// True if the kubelet makes the manager's container anew. Another size comes to the container
    /// that runs.
    #[must_use]
    pub fn makes_a_container(&self) -> bool {
        self.step == UpdateStep::Container || self.step == UpdateStep::Resize && self.new_container
    }

    /// The fields that need this step, or the revisions, in one line.
    #[must_use]
    pub fn fields(&self) -> String {
        if self.because.is_empty() {
            format!("{} to {}", self.from, self.to)
        } else {
            self.because.join("; ")
        }
    }
}

/// Settings of the engine that the templates of a pod give.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct GivenSettings {
    /// By the template that it was made from.
    pub from: Settings,
    /// By the template that its owner wants.
    pub to: Settings,
}

/// Changes of a living pod.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase", default)]
pub struct PodPatch {
    /// Images, by container.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub images: BTreeMap<String, Change>,
    /// `resources`, by container, as JSON with sorted keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, Change>,
    /// Labels, without that of the revision.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Change>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Change>,
    /// The annotation with the variables that the engine gets with its next process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variables: Option<Change>,
}

impl PodPatch {
    /// True if the patch changes nothing.
    pub fn is_empty(&self) -> bool {
        let Self { images, resources, labels, annotations, variables } = self;
        let maps = [images, resources, labels, annotations];
        maps.into_iter().all(BTreeMap::is_empty) && variables.is_none()
    }
}

/// A change of one annotation, label, image or size.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The value seen; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<String>,
    /// The value wanted; none to remove it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted: Option<String>,
}

/// Ways to bring changed content to a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentWays {
    /// True if the kubelet makes the container anew when its process has ended.
    pub is_made_anew: bool,
    /// True if the pod may be replaced, or if its operator replaces it.
    pub may_replace: bool,
}

impl Compared {
    /// The step of changed content beside that of the template, and the note to write.
    fn step_and_note(
        self,
        content: Option<UpdateStep>,
        template: Option<UpdateStep>,
        makes_a_container: bool,
    ) -> (Option<UpdateStep>, Option<String>) {
        match (content, template) {
            // The next look notes the content that the replacement was started with.
            (_, Some(UpdateStep::Replace | UpdateStep::Move)) => (content, None),
            // The note is not written to this pod, but tells one change from the next.
            (Some(UpdateStep::Replace), _) => (content, self.anew),
            // A new container, for whatever reason, is started with the wanted content.
            (_, Some(UpdateStep::Container)) => (content, self.next),
            (_, Some(UpdateStep::Resize)) if makes_a_container => (content, self.next),
            (_, Some(UpdateStep::Resize)) => (content, self.now),
            (
                Some(step),
                None | Some(UpdateStep::None | UpdateStep::Relabel | UpdateStep::Restart),
            ) => (Some(step), self.next),
            (None, None | Some(UpdateStep::None | UpdateStep::Relabel)) => {
                (self.now.is_some().then_some(UpdateStep::Relabel), self.now)
            }
            (None, Some(UpdateStep::Restart)) => (None, self.now),
        }
    }
}

/// Merges the update of a template, if there is one, and that of the content into one stop. `noted` is the note on
/// the pod, which was made from `revision`.
pub fn with_content(
    update: Option<PodUpdate>,
    mut compared: Compared,
    noted: Option<&str>,
    revision: &str,
    ways: ContentWays,
) -> Option<PodUpdate> {
    let mut differences = std::mem::take(&mut compared.differences);
    let makes_a_container = update.as_ref().is_some_and(PodUpdate::makes_a_container);
    if !ways.is_made_anew && !makes_a_container {
        for difference in &mut differences {
            difference.step = without_another_container(difference.step);
        }
    }
    let of_template = update.as_ref().map(|update| update.step);
    let needs_pod = |difference: &Difference| difference.step == UpdateStep::Replace;
    let is_first = !ways.may_replace
        && (of_template > Some(UpdateStep::None)
            || compared.now.is_some()
            || differences.iter().any(|difference| !needs_pod(difference)));
    // If no pod may be replaced, changes that need a replacement do not hold the others up.
    let (held_back, differences): (Vec<Difference>, Vec<Difference>) =
        differences.into_iter().partition(|difference| is_first && needs_pod(difference));
    let own = differences.iter().map(|difference| difference.step).max();
    let needs_container =
        differences.iter().any(|difference| difference.step == UpdateStep::Container);
    let (step, note) =
        compared.step_and_note(own, of_template, makes_a_container || needs_container);
    if step.is_none() && note.is_none() && held_back.is_empty() {
        return update;
    }
    let mut update = update.unwrap_or_else(|| PodUpdate {
        from: revision.to_owned(),
        to: revision.to_owned(),
        step: UpdateStep::None,
        because: vec![],
        new_container: false,
        data_elsewhere: false,
        settings: None,
        patch: PodPatch::default(),
    });
    let because = differences.into_iter().map(|difference| difference.field);
    if own >= Some(update.step) {
        update.because.splice(0..0, because);
    } else {
        update.because.extend(because);
    }
    update.because.extend(held_back.into_iter().map(|difference| difference.field));
    update.because.truncate(SHOWN);
    update.step = update.step.max(step.unwrap_or(UpdateStep::None));
    update.new_container |= needs_container;
    if let Some(note) = note.filter(|note| Some(note.as_str()) != noted) {
        let change = Change { seen: noted.map(str::to_owned), wanted: Some(note) };
        update.patch.annotations.insert(CONTENT.to_owned(), change);
    }
    Some(update)
}

/// How a pod gets to what is wanted, from the least to the most that it costs. The highest of
/// several does the work of all of them, with one stop.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum UpdateStep {
    /// Nothing differs.
    None,
    /// The pod is patched; the engine goes on.
    Relabel,
    /// The engine's process is started anew; containers beside it may get other images meanwhile.
    Restart,
    /// The kubelet makes a new container in the same pod.
    Container,
    /// CPU and memory of the pod change between stop and start.
    Resize,
    /// The pod is deleted; its owner makes another one of the same name, with the same claims.
    Replace,
    /// The node leaves the cluster, and its data goes to others before.
    Move,
}

/// The step in the place of this one where the kubelet makes no other container in the same pod.
#[must_use]
pub(crate) fn without_another_container(step: UpdateStep) -> UpdateStep {
    if step == UpdateStep::Container { UpdateStep::Replace } else { step }
}

impl UpdateStep {
    /// True if the step is carried out by a restart of the node.
    pub fn is_of_a_restart(self) -> bool {
        (Self::Restart..Self::Move).contains(&self)
    }

    /// The name that people and programs read.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Relabel => "relabel",
            Self::Restart => "restart",
            Self::Container => "container",
            Self::Resize => "resize",
            Self::Replace => "replace",
            Self::Move => "move",
        }
    }

    /// The part of the pod that the step keeps, for people.
    pub fn keeps(self) -> &'static str {
        match self {
            Self::None => "everything",
            Self::Relabel => "the engine's process",
            Self::Restart => "container, pod, address and volumes",
            Self::Container => "pod, address and volumes",
            Self::Resize => "pod, address, volumes, and the container unless a field needs another",
            Self::Replace => "name and volume claims",
            Self::Move => "the data",
        }
    }
}
