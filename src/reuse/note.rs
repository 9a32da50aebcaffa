//! What a container was started with, as it is noted on its pod: nobody can ask a process for it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::compare::{Difference, content_differences};
use crate::content::Content;
use crate::ignore::Ignore;
use crate::source::Source;
use crate::uses::Use;

/// A longer note is not written: then a change is not known.
const LONGEST: usize = 16 * 1024;
/// For so long after a change a kubelet may give the old content to a new container, in seconds.
const LAG: i64 = 10;

/// The content that a container was started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How often the kubelet had restarted the container: this tells one from the next.
    pub restarts: i32,
    /// What is known of the content. An object that is not in it is unknown.
    pub content: Content,
}

#[derive(Serialize, Deserialize)]
struct Written {
    restarts: i32,
    content: BTreeMap<String, BTreeMap<String, String>>,
}

impl Note {
    /// Reads what [`Note::text`] wrote; none if it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let Written { restarts, content } = serde_json::from_str(text).ok()?;
        let mut known = Content::default();
        for (source, digests) in content {
            known.add(Source::parse(&source)?, digests, Ignore::Nothing);
        }
        Some(Self { restarts, content: known })
    }

    /// The annotation's value; none if it would be too long.
    pub fn text(&self) -> Option<String> {
        let objects = self.content.objects().iter();
        let content = objects.map(|(source, keys)| (source.to_string(), keys.clone())).collect();
        let written = Written { restarts: self.restarts, content };
        serde_json::to_string(&written).ok().filter(|text| text.len() <= LONGEST)
    }
}

/// A container that runs. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Started {
    /// When it was started.
    pub at: i64,
    /// How often the kubelet had restarted it before.
    pub restarts: i32,
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
}

/// What is wanted of a pod whose container reads this, and what it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compared {
    /// What differs; empty also where nothing is known.
    pub differences: Vec<Difference>,
    /// What is to be noted of the container that runs; none if that is noted already.
    pub now: Option<String>,
    /// What is to be noted of the next container, once it has been proven.
    pub next: Option<String>,
}

/// Compares what a container was started with, as it is `noted` on its pod, with what is `wanted`.
/// What is not noted yet is noted only if it has not changed since the container was started.
pub fn compare_content(
    uses: &BTreeSet<Use>,
    wanted: &Content,
    ages: &BTreeMap<Source, Age>,
    started: Started,
    noted: Option<&str>,
) -> Compared {
    let wanted = wanted.used(uses);
    let old = noted.and_then(Note::parse).filter(|note| note.restarts == started.restarts);
    let mut actual = old.map(|note| note.content).unwrap_or_default();
    for (source, keys) in wanted.objects() {
        let was_there = ages.get(source).is_some_and(|age| age.was_there(started.at));
        if !actual.objects().contains_key(source) && was_there {
            actual.add(source.clone(), keys.clone(), Ignore::Nothing);
        }
    }
    let actual = actual.used(uses).noted(&wanted);
    let differences = content_differences(uses, &wanted, &actual);
    let note = |restarts, content| Note { restarts, content }.text();
    let now = note(started.restarts, actual.clone());
    let mut next = actual;
    for (source, keys) in wanted.objects() {
        next.add(source.clone(), keys.clone(), Ignore::Nothing);
    }
    Compared {
        differences,
        now: now.filter(|now| Some(now.as_str()) != noted),
        next: note(started.restarts.saturating_add(1), next),
    }
}
