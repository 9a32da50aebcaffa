//! Note on a pod about the content that its containers were started with: nobody can ask a process for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compare::{Difference, content_differences};
use crate::content::{Content, Ignore, Source};
use crate::uses::{Arrival, Use};

/// Longest note in bytes. A longer one is not written: then a change is not known.
const LONGEST: usize = 16 * 1024;
/// Seconds after a change in which a kubelet may give the old content to a pod that is new to it.
const LAG: i64 = 10;
/// Seconds after a change in which a kubelet may give the old content to a pod that is there: it
/// may leave it mounted, and give it to another container from its cache
/// (`configMapAndSecretChangeDetectionStrategy: Cache`).
const RENEWED: i64 = 180;

/// The content that a container was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// How often the kubelet had restarted the container: this tells one from the next.
    pub restarts: i32,
    /// Known content. An object that is not in it is unknown.
    pub content: Content,
    /// Content that the init containers have read and that is not read later, if there is any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<InitNote>,
    /// Notes of the containers beside it, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, OtherNote>,
}

/// The content that a container beside the engine's was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherNote {
    /// How often the kubelet had restarted that container.
    pub restarts: i32,
    /// Known content. An object that is not in it is unknown.
    pub content: Content,
}

/// The content that a pod was started with: another container of it does not read it again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InitNote {
    /// When the init containers were started, if that is known: this tells one run from the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<i64>,
    /// Known content. An object that is not in it is unknown.
    pub content: Content,
}

impl Note {
    /// Reads the text of [`Note::text`]; `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The annotation's value; `None` if it would be too long.
    pub fn text(&self) -> Option<String> {
        serde_json::to_string(self).ok().filter(|text| text.len() <= LONGEST)
    }
}

/// A container that runs, and its pod. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started {
    /// Time when the container was started.
    pub at: i64,
    /// How often the kubelet had restarted the container before.
    pub restarts: i32,
    /// Time when the pod was made.
    pub pod: i64,
    /// Time when the first of the pod's init containers was started last, if that is known.
    pub init: Option<i64>,
}

/// A container that runs beside the engine's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Name of the container.
    pub name: String,
    /// Start of the container, and of its pod.
    pub started: Started,
    /// Objects and keys that the container has read at its start.
    pub uses: BTreeSet<Use>,
}

/// When an object got its content, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// Time when the object was made.
    pub created: i64,
    /// Time of the last change of the object, if anybody recorded it.
    pub changed: Option<i64>,
}

impl Age {
    /// True if containers of a pod made at `pod` got the object's present content if they were
    /// started at `at`.
    fn was_there(self, pod: i64, at: Option<i64>) -> bool {
        let Some(changed) = self.changed else { return false };
        if changed <= self.created {
            // There was no other content that the kubelet could have had.
            return self.created <= at.unwrap_or(pod);
        }
        changed + LAG <= pod || at.is_some_and(|at| changed + RENEWED <= at)
    }
}

/// Differences of a pod's content from the wanted one, and the notes to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// Differences; empty also where nothing is known.
    pub differences: Vec<Difference>,
    /// Note to write for the container that runs, unless it is written already.
    pub now: Option<String>,
    /// Note to write for the next container, once it has been proven.
    pub next: Option<String>,
    /// Note for another pod, which would have all of the wanted content.
    pub anew: Option<String>,
}

/// Compares the content that a container, and its pod, was started with, as it is `noted` on the pod, with
/// the `wanted` one. Content that is not noted yet is noted only if it has not changed since.
pub fn compare_content(
    uses: &BTreeSet<Use>,
    others: &[Other],
    wanted: &Content,
    ages: &BTreeMap<Source, Age>,
    started: Started,
    noted: Option<&str>,
) -> Compared {
    let (by_pod, by_container): (BTreeSet<Use>, BTreeSet<Use>) =
        uses.iter().cloned().partition(|used| used.arrival == Arrival::NewPod);
    let old = noted.and_then(Note::parse);
    let old_init = old.as_ref().and_then(|note| note.init.clone());
    let old_others = old.as_ref().map(|note| note.others.clone()).unwrap_or_default();
    // Another container of the pod may have been given what is noted of the last one.
    let (old, last) = match old {
        Some(note) if note.restarts == started.restarts => (note.content, Content::default()),
        Some(note) => (Content::default(), note.content),
        None => (Content::default(), Content::default()),
    };
    let container =
        Side::of(&by_container, wanted, old.renewed(wanted), &last.renewed(wanted), |source| {
            is_there(ages, source, |age| age.was_there(started.pod, Some(started.at)))
        });
    // A run whose time is not known is the one that is noted.
    let noted_run = old_init.as_ref().and_then(|init| init.started);
    let is_same_run = noted_run.zip(started.init).is_none_or(|(noted, now)| noted == now);
    let old = old_init.filter(|_| is_same_run).map(|init| init.content).unwrap_or_default();
    let pod = Side::of(&by_pod, wanted, old.renewed(wanted), &Content::default(), |source| {
        is_there(ages, source, |age| age.was_there(started.pod, started.init))
    });
    let init = |started, content: &Content| {
        (!by_pod.is_empty()).then(|| InitNote { started, content: content.clone() })
    };
    let run = init(started.init.or(noted_run), &pod.actual);
    let OtherSides { differences: of_others, actual, anew } =
        OtherSides::of(others, wanted, ages, old_others);
    let note = |restarts, content: &Content, init, others: &BTreeMap<String, OtherNote>| {
        Note { restarts, content: content.clone(), init, others: others.clone() }.text()
    };
    let now = note(started.restarts, &container.actual, run.clone(), &actual);
    Compared {
        now: now.filter(|now| Some(now.as_str()) != noted),
        next: note(started.restarts.saturating_add(1), &container.next, run, &actual),
        anew: note(0, &container.next, init(None, &pod.next), &anew),
        differences: [pod.differences, container.differences, of_others].concat(),
    }
}

/// Content that the containers beside the engine's were started with, and content that those of
/// another pod would be started with: none of them is made anew for its content alone.
#[derive(Default)]
struct OtherSides {
    differences: Vec<Difference>,
    actual: BTreeMap<String, OtherNote>,
    anew: BTreeMap<String, OtherNote>,
}

impl OtherSides {
    fn of(
        others: &[Other],
        wanted: &Content,
        ages: &BTreeMap<Source, Age>,
        mut old: BTreeMap<String, OtherNote>,
    ) -> Self {
        let mut sides = Self::default();
        for Other { name, started, uses } in others {
            let old = old.remove(name).filter(|old| old.restarts == started.restarts);
            let old = old.map(|old| old.content).unwrap_or_default();
            let uses: BTreeSet<Use> =
                uses.iter().cloned().map(|used| Use { arrival: Arrival::NewPod, ..used }).collect();
            let side =
                Side::of(&uses, wanted, old.renewed(wanted), &Content::default(), |source| {
                    is_there(ages, source, |age| age.was_there(started.pod, Some(started.at)))
                });
            sides.differences.extend(side.differences);
            let note = |restarts, content| OtherNote { restarts, content };
            sides.actual.insert(name.clone(), note(started.restarts, side.actual));
            sides.anew.insert(name.clone(), note(0, side.next));
        }
        sides
    }
}

fn is_there(ages: &BTreeMap<Source, Age>, source: &Source, was: impl Fn(Age) -> bool) -> bool {
    ages.get(source).is_some_and(|age| was(*age))
}

/// Content that a container, or a pod, was started with, and content that another one would be started with.
struct Side {
    actual: Content,
    next: Content,
    differences: Vec<Difference>,
}

impl Side {
    /// Takes the `wanted` content where the `old` one is not known, if the wanted one was there;
    /// otherwise it may still be the `last` one.
    fn of(
        uses: &BTreeSet<Use>,
        wanted: &Content,
        old: Content,
        last: &Content,
        was_there: impl Fn(&Source) -> bool,
    ) -> Self {
        let wanted = wanted.used(uses);
        let mut actual = old;
        for (source, keys) in wanted.objects() {
            let known = if was_there(source) { Some(keys) } else { last.objects().get(source) };
            if let Some(keys) = known.filter(|_| !actual.objects().contains_key(source)) {
                actual.add(source.clone(), keys.clone(), Ignore::Nothing);
            }
        }
        let actual = actual.used(uses).noted(&wanted);
        let mut next = actual.clone();
        for (source, keys) in wanted.objects() {
            next.add(source.clone(), keys.clone(), Ignore::Nothing);
        }
        Self { differences: content_differences(uses, &wanted, &actual), actual, next }
    }
}
