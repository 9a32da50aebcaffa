//! What a container was started with, and its pod, as it is noted on the pod: nobody can ask a process
//! for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compare::{Difference, content_differences};
use crate::content::Content;
use crate::ignore::Ignore;
use crate::source::Source;
use crate::uses::{Arrival, Use};

/// A longer note is not written: then a change is not known.
const LONGEST: usize = 16 * 1024;
/// For so long after a change a kubelet may give the old content to a new container, in seconds.
const LAG: i64 = 10;
/// For so long after a change a kubelet may leave the old content mounted in a pod that is there, in
/// seconds.
const RENEWED: i64 = 180;

/// The content that a container was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How often the kubelet had restarted the container: this tells one from the next.
    pub restarts: i32,
    /// What is known of the content. An object that is not in it is unknown.
    pub content: Content,
    /// What only its init containers have read; none if they read nothing that is not read later.
    pub init: Option<InitNote>,
}

/// The content that a pod was started with: another container of it does not read it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitNote {
    /// When the init containers were started, if that is known: this tells one run from the next.
    pub started: Option<i64>,
    /// What is known of the content. An object that is not in it is unknown.
    pub content: Content,
}

#[derive(Serialize, Deserialize)]
struct Written {
    restarts: i32,
    content: Objects,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init: Option<WrittenInit>,
}

#[derive(Serialize, Deserialize)]
struct WrittenInit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<i64>,
    content: Objects,
}

/// Digests by object and key.
type Objects = BTreeMap<String, BTreeMap<String, String>>;

fn read(objects: Objects) -> Option<Content> {
    let mut known = Content::default();
    for (source, digests) in objects {
        known.add(Source::parse(&source)?, digests, Ignore::Nothing);
    }
    Some(known)
}

fn written(content: &Content) -> Objects {
    let objects = content.objects().iter();
    objects.map(|(source, keys)| (source.to_string(), keys.clone())).collect()
}

impl Note {
    /// Reads what [`Note::text`] wrote; none if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let Written { restarts, content, init } = serde_json::from_str(text).ok()?;
        let init = match init {
            Some(WrittenInit { started, content }) => {
                Some(InitNote { started, content: read(content)? })
            }
            None => None,
        };
        Some(Self { restarts, content: read(content)?, init })
    }

    /// The annotation's value; none if it would be too long.
    pub fn text(&self) -> Option<String> {
        let init = self
            .init
            .as_ref()
            .map(|init| WrittenInit { started: init.started, content: written(&init.content) });
        let note = Written { restarts: self.restarts, content: written(&self.content), init };
        serde_json::to_string(&note).ok().filter(|text| text.len() <= LONGEST)
    }
}

/// A container that runs, and its pod. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started {
    /// When it was started.
    pub at: i64,
    /// How often the kubelet had restarted it before.
    pub restarts: i32,
    /// When its pod was made.
    pub pod: i64,
    /// When the first of the pod's init containers was started last; none if that is not known.
    pub init: Option<i64>,
}

/// When an object got what it contains, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Age {
    /// When it was made.
    pub created: i64,
    /// When anything of it was changed last; none if nobody wrote that down.
    pub changed: Option<i64>,
}

impl Age {
    /// Whether a container that was started then got what the object contains now.
    fn was_there(self, started: i64) -> bool {
        match self.changed {
            None => false,
            // There was no other content that the kubelet could have had.
            Some(changed) if changed <= self.created => self.created <= started,
            Some(changed) => changed + LAG <= started,
        }
    }

    /// Whether the init containers got what the object contains now. They may run again in a pod whose
    /// volumes the kubelet has mounted long before.
    fn was_there_for_init(self, started: Started) -> bool {
        let Some(changed) = self.changed else { return false };
        if changed <= self.created {
            return self.created <= started.init.unwrap_or(started.pod);
        }
        changed + LAG <= started.pod || started.init.is_some_and(|init| changed + RENEWED <= init)
    }
}

/// What is wanted of a pod whose containers read this, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// What differs; empty also where nothing is known.
    pub differences: Vec<Difference>,
    /// What is to be noted of the container that runs; none if that is noted already.
    pub now: Option<String>,
    /// What is to be noted of the next container, once it has been proven.
    pub next: Option<String>,
    /// What would be noted of another pod: it has everything that is wanted.
    pub anew: Option<String>,
}

/// Compares what a container, and its pod, was started with, as it is `noted` on the pod, with what is
/// `wanted`. What is not noted yet is noted only if it has not changed since.
pub fn compare_content(
    uses: &BTreeSet<Use>,
    wanted: &Content,
    ages: &BTreeMap<Source, Age>,
    started: Started,
    noted: Option<&str>,
) -> Compared {
    let (by_pod, by_container): (BTreeSet<Use>, BTreeSet<Use>) =
        uses.iter().cloned().partition(|used| used.arrival == Arrival::NewPod);
    let old = noted.and_then(Note::parse);
    let old_init = old.as_ref().and_then(|note| note.init.clone());
    let old = old.filter(|note| note.restarts == started.restarts).map(|note| note.content);
    let container = Side::of(&by_container, wanted, old, |source| {
        is_there(ages, source, |age| age.was_there(started.at))
    });
    // A run whose time is not known is the one that is noted.
    let noted_run = old_init.as_ref().and_then(|init| init.started);
    let is_same_run = noted_run.zip(started.init).is_none_or(|(noted, now)| noted == now);
    let old = old_init.filter(|_| is_same_run).map(|init| init.content);
    let pod = Side::of(&by_pod, wanted, old, |source| {
        is_there(ages, source, |age| age.was_there_for_init(started))
    });
    let init = |started, content: &Content| {
        (!by_pod.is_empty()).then(|| InitNote { started, content: content.clone() })
    };
    let run = init(started.init.or(noted_run), &pod.actual);
    let note = |restarts, content: &Content, init: Option<InitNote>| {
        Note { restarts, content: content.clone(), init }.text()
    };
    let now = note(started.restarts, &container.actual, run.clone());
    Compared {
        now: now.filter(|now| Some(now.as_str()) != noted),
        next: note(started.restarts.saturating_add(1), &container.next, run),
        anew: note(0, &container.next, init(None, &pod.next)),
        differences: [pod.differences, container.differences].concat(),
    }
}

fn is_there(ages: &BTreeMap<Source, Age>, source: &Source, was: impl Fn(Age) -> bool) -> bool {
    ages.get(source).is_some_and(|age| was(*age))
}

/// What a container, or a pod, was started with, and what another one would be.
struct Side {
    actual: Content,
    next: Content,
    differences: Vec<Difference>,
}

impl Side {
    /// What is not known of the `old` content is what is wanted, if that was there.
    fn of(
        uses: &BTreeSet<Use>,
        wanted: &Content,
        old: Option<Content>,
        was_there: impl Fn(&Source) -> bool,
    ) -> Self {
        let wanted = wanted.used(uses);
        let mut actual = old.unwrap_or_default();
        for (source, keys) in wanted.objects() {
            if !actual.objects().contains_key(source) && was_there(source) {
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
