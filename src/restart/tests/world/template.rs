//! The template that an owner wants for a pod, and what kubelet and scheduler do with a pod that is
//! made from it, or changed.

mod limits;
mod observed;

use std::collections::BTreeMap;

use super::sidecar::Sidecar;
use crate::annotation::ACTUAL_REVISION;
use crate::{Change, GivenSettings, LabelAhead, PodPatch, PodUpdate, Settings, Time, UpdateStep};
pub(crate) use limits::Limits;

/// Until the kubelet sees a change of a pod, in milliseconds.
const SEEN: u64 = 500;
/// Until a new container runs, in milliseconds.
pub(super) const MADE: u64 = 1_000;
/// How much later the kubelet makes a container of which earlier ones have ended, in milliseconds.
const DELAYED: u64 = 20_000;

/// How images begin that admission has changed.
const MIRROR: &str = "mirror/";

const NOT_SIGNED: &str = "admission webhook \"images.example\" denied the request: not signed";
const NO_LOWER: &str =
    "spec.containers[0].resources.limits: Forbidden: memory limits cannot be decreased";

/// Fields of a pod template by name: `image`, `sidecar`, `env` (from a ConfigMap), `variable` (`discovery.type`, with a
/// value of its own), `memory`, `label`, `asked`, `affinity`, `tls` (a variable: TLS between the nodes if `true`).
pub(crate) type Template = BTreeMap<String, String>;

/// The template of every pod at the beginning.
pub(crate) fn first() -> Template {
    let fields =
        ["image", "sidecar", "env", "variable", "memory", "label", "asked", "affinity", "tls"];
    fields.into_iter().map(|field| (field.to_owned(), "a".to_owned())).collect()
}

/// The revision's name: the same template has the same name again.
pub(crate) fn revision(template: &Template) -> String {
    let differing = template.iter().filter(|(_, value)| *value != "a");
    let named: Vec<String> = differing.map(|(field, value)| format!("{field}-{value}")).collect();
    if named.is_empty() { "rev".into() } else { format!("rev-{}", named.join("-")) }
}

fn step(field: &str) -> UpdateStep {
    match field {
        "label" => UpdateStep::Relabel,
        "asked" | "sidecar" | "variable" => UpdateStep::Restart,
        "image" | "env" => UpdateStep::Container,
        "memory" => UpdateStep::Resize,
        _ => UpdateStep::Replace,
    }
}

fn change(from: &str, to: &str) -> Change {
    Change { seen: Some(from.into()), wanted: Some(to.into()) }
}

/// What admission makes of an image.
fn mirrored(image: &str) -> String {
    format!("{MIRROR}{}", image.strip_prefix(MIRROR).unwrap_or(image))
}

fn json(memory: &str) -> String {
    format!("{{\"limits\":{{\"memory\":\"{memory}\"}}}}")
}

/// The annotation with which the engine of a container with its own value gets the wanted one.
fn environment(own: &str, wanted: &str) -> Option<String> {
    (own != wanted).then(|| format!("{{\"VARIABLE\":\"{wanted}\"}}"))
}

/// The settings that a container of this template gives its engine.
fn given(template: &Template) -> Settings {
    let fields = [("xpack.security.transport.ssl.enabled", "tls"), ("discovery.type", "variable")];
    fields.map(|(setting, field)| (setting.to_owned(), template[field].clone())).into()
}

/// How a pod gets from one template to the other.
pub(crate) fn update(from: &Template, to: &Template) -> Option<PodUpdate> {
    let differing: Vec<&String> =
        to.keys().filter(|field| from.get(*field) != to.get(*field)).collect();
    let highest = differing.iter().map(|field| step(field)).max()?;
    let mut patch = PodPatch::default();
    for field in &differing {
        let change = change(&from[*field], &to[*field]);
        match field.as_str() {
            "image" => drop(patch.images.insert("engine".into(), change)),
            "sidecar" => drop(patch.images.insert("sidecar".into(), change)),
            "memory" => {
                let change = self::change(&json(&from["memory"]), &json(&to["memory"]));
                patch.resources.insert("engine".into(), change);
            }
            "label" => drop(patch.labels.insert("team".into(), change)),
            "asked" => drop(patch.annotations.insert("restartedAt".into(), change)),
            _ => {}
        }
    }
    let because = differing.iter().filter(|field| step(field) == highest);
    let because = because.map(|field| format!("{field} {} → {}", from[*field], to[*field]));
    Some(PodUpdate {
        from: revision(from),
        to: revision(to),
        step: highest,
        because: because.collect(),
        new_container: differing.iter().any(|field| step(field) == UpdateStep::Container),
        data_elsewhere: false,
        settings: (given(from) != given(to))
            .then(|| Box::new(GivenSettings { from: given(from), to: given(to) })),
        patch,
    })
}

/// The pod's part of spec and status, and its kubelet's work.
#[derive(Debug, Clone)]
pub(crate) struct Living {
    /// Templates are read.
    pub(crate) is_read: bool,
    /// The template that it was made from, or changed to.
    pub(crate) actual: Template,
    /// The template of the revision that its label names.
    pub(crate) labelled: Template,
    /// When that came there.
    pub(crate) labelled_at: u64,
    /// The template that its owner wants.
    pub(crate) wanted: Template,
    /// `metadata.resourceVersion`.
    pub(crate) version: u64,
    /// The image in its spec, that of its container, and when the kubelet looks.
    pub(crate) image: String,
    pub(crate) sidecar: Sidecar,
    pub(crate) running_image: String,
    pub(crate) env: String,
    /// The variable in its spec, the annotation, and when the kubelet has mounted that.
    pub(crate) variable: String,
    pub(crate) environment: Option<String>,
    pub(crate) environment_at: Option<u64>,
    memory: String,
    pub(crate) memory_in_effect: String,
    containers: u64,
    /// The number of its volume claim: one that is made again has another one.
    claim: u32,
    /// The number of the one that ended last.
    ended: Option<u64>,
    pub(crate) kubelet_at: Option<u64>,
    pub(crate) back_at: Option<u64>,
    /// The manager's container does not exist.
    is_down: bool,
    pub(crate) limits: Limits,
    /// It waits for a Kubernetes node.
    pub(crate) is_pending: bool,
}

impl Living {
    pub(crate) fn new(template: &Template) -> Self {
        Self {
            is_read: false,
            actual: template.clone(),
            labelled: template.clone(),
            labelled_at: 0,
            wanted: template.clone(),
            version: 1,
            image: template["image"].clone(),
            sidecar: Sidecar::new(&template["sidecar"]),
            running_image: template["image"].clone(),
            env: template["env"].clone(),
            variable: template["variable"].clone(),
            environment: None,
            environment_at: None,
            memory: template["memory"].clone(),
            memory_in_effect: template["memory"].clone(),
            containers: 1,
            claim: 1,
            ended: None,
            kubelet_at: None,
            back_at: None,
            is_down: false,
            limits: Limits::default(),
            is_pending: false,
        }
    }

    /// Templates are read; in any case of a pod whose label is ahead.
    pub(crate) fn reads(&self) -> bool {
        self.is_read || self.actual != self.labelled
    }

    /// The pod that its owner makes in its place.
    pub(crate) fn remade(&self) -> Self {
        let made = Self::new(&self.wanted);
        let is_pending = self.limits.is_full;
        let claim = self.claim + u32::from(self.limits.loses_claim);
        let made =
            Self { is_read: self.is_read, limits: self.limits.clone(), is_pending, claim, ..made };
        if !made.limits.bad_images.contains(&made.image) {
            return made;
        }
        Self { is_down: true, containers: 0, running_image: String::new(), ..made }
    }

    /// Why the pod that its owner would make in its place fits nowhere, if another one is to come.
    pub(crate) fn why_it_would_not_fit(&self) -> Option<String> {
        let update = self.update().filter(|_| self.reads())?;
        let memory = &self.wanted["memory"];
        if update.step == UpdateStep::Resize && self.limits.no_room.contains(memory) {
            return Some(format!("its Kubernetes node has no room for {memory} of memory"));
        }
        let is_asked = self.limits.would_not_fit && update.step == UpdateStep::Replace;
        is_asked.then(|| "another pod in its place would not fit: the node is cordoned".to_owned())
    }

    /// Why the apiserver would not delete it, if another one is to come.
    pub(crate) fn why_it_is_not_deleted(&self) -> Option<String> {
        let update = self.update().filter(|_| self.reads())?;
        let is_asked = self.limits.is_kept && update.step == UpdateStep::Replace;
        is_asked.then(|| "pods are forbidden to be deleted: apply deploy/replace".to_owned())
    }

    /// The uids of its volume claims.
    pub(crate) fn claim_uids(&self) -> BTreeMap<String, String> {
        let uid = || ("data".to_owned(), format!("claim-{}", self.claim));
        self.reads().then(uid).into_iter().collect()
    }

    /// Why the apiserver would not change images or sizes, if others are wanted.
    pub(crate) fn why_it_is_not_changed(&self) -> Option<String> {
        let update = self.update().filter(|_| self.reads())?;
        let is_asked = self.limits.is_fixed && update.step != UpdateStep::Relabel;
        let is_resized = update.step == UpdateStep::Resize && self.memory != self.wanted["memory"];
        if is_resized && self.limits.refused.contains(&self.wanted["memory"]) {
            return Some(NO_LOWER.to_owned());
        }
        let has_any = self.image != self.wanted["image"]
            || self.sidecar.image != self.wanted["sidecar"]
            || is_resized;
        (is_asked && has_any && update.step != UpdateStep::Replace).then(|| NOT_SIGNED.to_owned())
    }

    /// Why the apiserver would not make this change back.
    pub(crate) fn why_it_is_not_set_back(&self, patch: &PodPatch) -> Option<String> {
        if self.refuses(&patch.resources) {
            return Some(NO_LOWER.to_owned());
        }
        self.limits.is_fixed.then(|| NOT_SIGNED.to_owned())
    }

    fn refuses(&self, sizes: &BTreeMap<String, Change>) -> bool {
        let mut refused = self.limits.refused.iter().map(|size| Some(json(size)));
        refused.any(|size| sizes.values().any(|change| change.wanted == size))
    }

    /// How it gets to what its owner wants. Its labels are those of the revision in its label.
    fn update(&self) -> Option<PodUpdate> {
        let labels = update(&self.labelled, &self.wanted);
        let mut update = update(&self.actual, &self.wanted).or_else(|| {
            let to = revision(&self.wanted);
            labels.clone().map(|label| PodUpdate {
                from: to.clone(),
                to,
                step: UpdateStep::Relabel,
                because: vec![format!("its label names {}", revision(&self.labelled))],
                new_container: false,
                settings: None,
                patch: PodPatch::default(),
                ..label
            })
        })?;
        let PodPatch { labels, annotations, .. } =
            labels.map(|label| label.patch).unwrap_or_default();
        let seen = self.environment.clone();
        let wanted = environment(&self.variable, &self.wanted["variable"]);
        let differs = self.actual["variable"] != self.wanted["variable"] || seen != wanted;
        let variables = differs.then_some(Change { seen, wanted });
        update.patch = PodPatch { labels, annotations, variables, ..update.patch };
        Some(update)
    }

    /// Its label, if that is ahead of it.
    pub(crate) fn ahead(&self) -> Option<Box<LabelAhead>> {
        let back = update(&self.labelled, &self.actual)?.patch;
        let back =
            PodPatch { labels: back.labels, annotations: back.annotations, ..PodPatch::default() };
        let (revision, since) = (revision(&self.labelled), Time(self.labelled_at));
        Some(Box::new(LabelAhead { revision, since, back: Ok(back) }))
    }

    /// What it lacks, with the images that a dry run has told.
    pub(crate) fn lacks(&self) -> Option<PodUpdate> {
        let mut update = self.update().filter(|_| self.reads())?;
        if self.limits.mirrors {
            for change in update.patch.images.values_mut() {
                change.wanted = change.wanted.as_deref().map(mirrored);
            }
        }
        Some(update)
    }

    /// No container of the manager runs.
    pub(crate) fn is_without_container(&self) -> bool {
        self.is_down || self.is_pending
    }

    /// A container that was made anew.
    pub(crate) fn has_new_container(&mut self) {
        self.ended = (self.containers > 0).then_some(self.containers);
        self.containers += 1;
        self.is_down = false;
        self.version += 1;
        self.running_image.clone_from(&self.image);
        if self.limits.low.contains(&self.memory) {
            self.memory_in_effect.clone_from(&self.memory);
        }
        // It is read when a container is made.
        self.env.clone_from(&self.wanted["env"]);
    }

    pub(crate) fn patch_images(&mut self, images: &BTreeMap<String, Change>, now: u64) -> bool {
        let seen = |name: &String| match name.as_str() {
            "engine" => &self.image,
            _ => &self.sidecar.image,
        };
        if self.limits.is_fixed
            || images.iter().any(|(name, change)| change.seen.as_ref() != Some(seen(name)))
        {
            return false;
        }
        for (name, change) in images {
            let wanted = change.wanted.clone().expect("an image");
            let mirrors = self.limits.mirrors || self.limits.mirrors_unseen;
            let wanted = if mirrors { mirrored(&wanted) } else { wanted };
            match name.as_str() {
                "engine" => {
                    self.image = wanted;
                    self.kubelet_at = Some(now + SEEN);
                }
                _ => self.sidecar.gets(wanted, now + SEEN),
            }
        }
        self.version += 1;
        true
    }

    /// The kubelet sees the image; whether it ends the container.
    pub(crate) fn kubelet_looks(&mut self, now: u64) -> bool {
        if self.kubelet_at.is_none_or(|at| at > now) {
            return false;
        }
        self.kubelet_at = None;
        self.version += 1;
        let differs = self.running_image != self.image;
        let is_bad = self.limits.bad_images.contains(&self.image);
        let had_one = !self.is_down;
        self.is_down |= differs;
        let is_delayed = self.limits.delayed_images.contains(&self.image);
        let made = now + MADE + if is_delayed { DELAYED } else { 0 };
        self.back_at = (self.is_down && !is_bad).then_some(made);
        if had_one && differs {
            self.ended = Some(self.containers);
        }
        had_one && differs
    }

    /// A registry has the image again.
    pub(crate) fn can_pull(&mut self, image: &str, now: u64) {
        self.limits.bad_images.remove(image);
        if self.image == image && self.is_down && self.kubelet_at.is_none() {
            self.back_at.get_or_insert(now + MADE);
        }
        self.sidecar.is_pulled_after_all(image, now + MADE);
    }

    /// The new container ends at once, and the kubelet makes no other one for a long time.
    pub(crate) fn container_ends_at_once(&mut self) -> bool {
        let ends = self.limits.ending_images.contains(&self.image);
        if ends {
            self.containers += 1;
            self.ended = Some(self.containers);
            self.version += 1;
        }
        ends
    }

    pub(crate) fn resize(&mut self, resources: &BTreeMap<String, Change>) -> bool {
        let Some(change) = resources.get("engine") else { return false };
        if self.limits.is_fixed
            || self.refuses(resources)
            || change.seen != Some(json(&self.memory))
        {
            return false;
        }
        let wanted = change.wanted.clone().unwrap_or_default();
        self.memory = wanted.split('"').nth(5).unwrap_or_default().to_owned();
        self.version += 1;
        let no = self.limits.infeasible.contains(&self.memory)
            || self.limits.low.contains(&self.memory)
            || self.limits.no_room.contains(&self.memory)
            || self.limits.deferred.contains(&self.memory);
        if !no {
            self.memory_in_effect.clone_from(&self.memory);
        }
        true
    }

    /// A patch of the annotation with its variables, which is mounted a while later.
    pub(crate) fn gets_variables(&mut self, change: &Change, mounted: u64) -> bool {
        if change.seen != self.environment {
            return false;
        }
        self.environment.clone_from(&change.wanted);
        self.environment_at = Some(mounted);
        self.version += 1;
        true
    }

    /// A patch of labels and annotations; refused if the pod has others than it has seen. `says_actual`: an annotation
    /// has the revision that it was made from.
    pub(crate) fn relabel(
        &mut self,
        labels: &BTreeMap<String, Change>,
        annotations: &BTreeMap<String, Change>,
        known: &[Template],
        says_actual: bool,
    ) -> bool {
        let seen = says_actual.then(|| revision(&self.actual));
        let actual = annotations.get(ACTUAL_REVISION);
        if actual.is_some_and(|change| change.seen != seen) {
            return false;
        }
        let named =
            |name: &Option<String>| known.iter().find(|one| Some(revision(one)) == *name).cloned();
        let mut label = self.labelled.clone();
        if let Some(change) = labels.get("controller-revision-hash") {
            let of = |changes: &BTreeMap<String, Change>, key: &str, field: &str| {
                changes
                    .get(key)
                    .is_none_or(|change| change.seen.as_ref() == self.labelled.get(field))
            };
            let is_seen = change.seen == Some(revision(&self.labelled))
                && of(labels, "team", "label")
                && of(annotations, "restartedAt", "asked");
            let Some(named) = named(&change.wanted).filter(|_| is_seen) else { return false };
            label = named;
        }
        self.actual = match actual.map(|change| &change.wanted) {
            Some(Some(name)) => named(&Some(name.clone())).expect("a known revision"),
            None if says_actual => self.actual.clone(),
            Some(None) | None => label.clone(),
        };
        self.labelled = label;
        self.version += 1;
        true
    }

    /// Both, if the pod differs from the revision that it says it was made from.
    pub(crate) fn why_mislabelled(&self) -> Option<String> {
        let is = |field: &str, value: &String| {
            let value = value.strip_prefix(MIRROR).unwrap_or(value);
            self.actual[field] == value
        };
        let whole = is("image", &self.image)
            && is("image", &self.running_image)
            && is("sidecar", &self.sidecar.image)
            && is("sidecar", &self.sidecar.running_image)
            && is("memory", &self.memory)
            && is("memory", &self.memory_in_effect)
            && self.environment == environment(&self.variable, &self.actual["variable"]);
        (!whole).then(|| format!("says {} and is {self:?}", revision(&self.actual)))
    }

    /// There is room for every size, and what could not be given now is. The image and the size that
    /// it was made from are there: there is nothing that it could be set back to instead.
    pub(crate) fn is_repaired(&mut self, now: u64) {
        let own = self.actual["image"].clone();
        self.limits.broken_images.remove(&own);
        self.limits.broken_variables.remove(&self.actual["variable"]);
        let is_pulled = (self.limits.bad_images.remove(&own)
            | self.limits.ending_images.remove(&own))
            && self.image == own;
        if is_pulled && self.is_down && self.kubelet_at.is_none() {
            self.back_at.get_or_insert(now + MADE);
        }
        let sidecars = self.actual["sidecar"].clone();
        self.limits.unready_images.remove(&sidecars);
        if self.limits.bad_images.remove(&sidecars) | self.limits.ending_images.remove(&sidecars) {
            self.sidecar.is_pulled_after_all(&sidecars, now + MADE);
        }
        self.limits.deferred.clear();
        self.limits.refused.clear();
        self.limits.no_room.clear();
        self.limits.low.clear();
        self.limits.would_not_fit = false;
        self.limits.is_kept = false;
        self.limits.is_fixed = false;
        self.limits.infeasible.remove(&self.actual["memory"]);
        if !self.limits.infeasible.contains(&self.memory) {
            self.memory_in_effect.clone_from(&self.memory);
        }
    }
}
