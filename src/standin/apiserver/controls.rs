//! What a test asks of the server: faults, as a network, an overloaded server or a restarted one causes
//! them, and counts of the requests.

use std::collections::BTreeMap;
use std::time::Duration;

/// The kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Refused with this code; the request is not read.
    Refuse(u16),
    /// Refused with this code and message, as admission does; the request is not read.
    Deny(u16, &'static str),
    /// Refused by the apiserver's own rules for this field of the pod, with this message; the request is not read.
    Forbid(&'static str, &'static str),
    /// Carried out with each first text in the body replaced by the second one, as admission changes what it is
    /// given.
    Rewrite(&'static str, &'static str),
    /// Carried out after this long.
    Delay(Duration),
    /// Carried out when it is released: [`ApiServer::release`](super::ApiServer::release).
    Hold,
    /// Carried out, but the connection is closed without an answer.
    LoseAnswer,
    /// Not carried out, and the connection is closed.
    LoseRequest,
    /// Not carried out, and never answered while the client waits.
    Hang,
    /// Carried out, and never answered while the client waits. Dry runs, which change nothing, are answered.
    HangAfter,
}

/// A fault, and which of the next requests it applies to.
#[derive(Debug, Clone)]
pub struct Fault {
    how: How,
    verb: Option<String>,
    resource: Option<String>,
    times: u32,
}

impl Fault {
    /// Applies to the next request of any kind.
    pub fn new(how: How) -> Self {
        Self { how, verb: None, resource: None, times: 1 }
    }

    /// Only requests with this verb: get, list, watch, create, update, patch, delete,
    /// deletecollection.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only requests for this resource, as `pods` or `searchclusters/status`.
    #[must_use]
    pub fn resource(mut self, resource: &str) -> Self {
        self.resource = Some(resource.to_owned());
        self
    }

    /// Applies to this many requests.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = times;
        self
    }

    fn is_for(&self, verb: &str, resource: &str, is_dry_run: bool) -> bool {
        !(is_dry_run && self.how == How::HangAfter)
            && self.verb.as_ref().is_none_or(|wanted| wanted == verb)
            && self.resource.as_ref().is_none_or(|wanted| wanted == resource)
    }
}

/// The faults that have not happened yet.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The fault for this request, if there is one.
    pub(super) fn take(&mut self, verb: &str, resource: &str, is_dry_run: bool) -> Option<How> {
        let fault = self.0.iter_mut().find(|fault| fault.is_for(verb, resource, is_dry_run))?;
        let how = fault.how;
        fault.times = fault.times.saturating_sub(1);
        self.0.retain(|fault| fault.times > 0);
        Some(how)
    }
}

/// One kind of request and its answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// get, list, watch, create, update, patch, delete, deletecollection.
    pub verb: String,
    /// `pods`, `searchclusters/status`, or the path if it is not about objects.
    pub resource: String,
    /// The HTTP status; 0 where none was sent.
    pub code: u16,
}

/// The requests so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts(BTreeMap<Asked, u64>);

impl Counts {
    pub(super) fn add(&mut self, verb: &str, resource: &str, code: u16) {
        let asked = Asked { verb: verb.to_owned(), resource: resource.to_owned(), code };
        *self.0.entry(asked).or_default() += 1;
    }

    /// The number of requests for which `wanted` is true.
    pub fn matching(&self, wanted: impl Fn(&Asked) -> bool) -> u64 {
        self.0.iter().filter(|(asked, _)| wanted(asked)).map(|(_, count)| count).sum()
    }

    /// All requests.
    pub fn total(&self) -> u64 {
        self.matching(|_| true)
    }

    /// Requests for a change, whether or not it was made.
    pub fn writes(&self) -> u64 {
        self.matching(|asked| !["get", "list", "watch"].contains(&asked.verb.as_str()))
    }

    /// Writes refused with 409.
    pub fn conflicts(&self) -> u64 {
        self.matching(|asked| asked.code == 409)
    }

    /// The requests since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |asked: &Asked| earlier.0.get(asked).copied().unwrap_or(0);
        let added = self.0.iter().map(|(asked, count)| (asked.clone(), count - before(asked)));
        Self(added.filter(|(_, count)| *count > 0).collect())
    }

    /// Each kind of request with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&Asked, u64)> {
        self.0.iter().map(|(asked, count)| (asked, *count))
    }
}
