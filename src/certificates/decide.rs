//! The next step for the certificates of one cluster.
//!
//! A CA is changed in three steps, each decided from the present objects, wherever the last process
//! ended: a new CA; the CA is trusted beside the old one; the managers get a certificate that the
//! new CA signed. The old CA is trusted until every manager has that certificate.

use stayput_http::validity::Validity;

use crate::facts::{Authority, CertificateFacts, Existing, Id, Serving};
use crate::problem::Problem;

/// Seconds by which a certificate begins to be valid before it is made: clocks differ.
pub(crate) const BACKDATED: u64 = 3600;
/// Seconds by which our clock and the apiserver's may differ. If they differ by more, nothing is made.
const CLOCKS_DIFFER: u64 = BACKDATED / 2;
/// Seconds that a new CA is trusted before managers show certificates that it signed: whoever
/// checks them has read it by then.
const READ_BY_THEN: u64 = 3600;
/// Seconds that the last CA is trusted after managers were given a certificate of the next one.
const MOUNTED_BY_THEN: u64 = 24 * 3600;

/// Next object to write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A new CA, with a new key.
    MakeAuthority,
    /// These CAs, and no others, as those that managers are checked with.
    Trust(Vec<Id>),
    /// A new certificate for the managers, with a new key.
    Issue,
}

/// Result of [`decide`].
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decision {
    /// Object to write next. After that, decide again.
    pub step: Option<Step>,
    /// Problems, the worst first.
    pub problems: Vec<Problem>,
}

/// Decides on the next step for the certificates.
pub fn decide(facts: &CertificateFacts) -> Decision {
    let mut decision = Decision { step: None, problems: ends(facts) };
    let parts = [
        (facts.names.authority.clone(), owner(facts.authority.as_ref())),
        (facts.names.trusted.clone(), owner(facts.trusted.as_ref())),
        (facts.names.serving.clone(), owner(facts.serving.as_ref())),
    ];
    let has_ours = parts.iter().any(|(_, is_ours)| *is_ours == Some(true));
    let has_gap = parts.iter().any(|(_, is_ours)| is_ours.is_none());
    if !(has_ours || has_gap && facts.may_create) {
        return decision;
    }
    let foreign = parts.into_iter().find(|(_, is_ours)| *is_ours == Some(false));
    let step = match (foreign, facts.clock_differs) {
        (Some((object, _)), _) => {
            let (namespace, cluster) = facts.names.owner();
            Err(Problem::Mixed { object, namespace, cluster })
        }
        (None, Some(seconds)) if seconds > CLOCKS_DIFFER => Err(Problem::Clocks { seconds }),
        (None, _) => step(facts),
    };
    match step {
        Ok(step) => decision.step = step,
        Err(problem) => decision.problems.insert(0, problem),
    }
    decision
}

fn owner<T>(found: Option<&Existing<T>>) -> Option<bool> {
    found.map(|found| found.is_ours)
}

fn step(facts: &CertificateFacts) -> Result<Option<Step>, Problem> {
    let absent = |object: String, step: Step| {
        if facts.may_create {
            Ok(Some(step))
        } else {
            let (namespace, cluster) = facts.names.owner();
            Err(Problem::Absent { object, namespace, cluster })
        }
    };
    let Some(authority) = &facts.authority else {
        return absent(facts.names.authority.clone(), Step::MakeAuthority);
    };
    // Its key may be the only one that can still sign, so it is not replaced without being asked.
    let authority = authority.content.as_ref().map_err(|problem| Problem::Unusable {
        object: facts.names.authority.clone(),
        problem: problem.clone(),
        namespace: facts.names.namespace.clone(),
        cluster: facts.names.cluster.clone(),
    })?;
    if facts.now >= due(authority.validity) {
        return Ok(Some(Step::MakeAuthority));
    }

    let Some(trusted) = &facts.trusted else {
        return absent(facts.names.trusted.clone(), Step::Trust(vec![authority.id]));
    };
    let none = Vec::new();
    let trusted = trusted.content.as_ref().unwrap_or(&none);
    if !contains(trusted, authority.id) {
        let others = trusted.iter().filter(|other| other.validity.not_after > facts.now);
        let others = others.map(|other| other.id);
        return Ok(Some(Step::Trust([authority.id].into_iter().chain(others).collect())));
    }

    let Some(serving) = &facts.serving else {
        return absent(facts.names.serving.clone(), Step::Issue);
    };
    let Ok(serving) = &serving.content else { return Ok(Some(Step::Issue)) };
    if is_useless(serving, trusted, facts.now) {
        return Ok(Some(Step::Issue));
    }
    let is_by_it = serving.signed_by == Some(authority.id);
    let is_known = facts.now >= facts.trusted_since.saturating_add(READ_BY_THEN);
    if (facts.now >= due(serving.validity) || !is_by_it) && is_known {
        return Ok(Some(Step::Issue));
    }
    let is_mounted = facts.now >= made(serving.validity).saturating_add(MOUNTED_BY_THEN);
    let is_over = trusted.len() > 1 && is_by_it && is_mounted;
    Ok(is_over.then(|| Step::Trust(vec![authority.id])))
}

/// Time when two thirds of a certificate's life are over.
fn due(validity: Validity) -> u64 {
    validity.not_before.saturating_add(validity.life() / 3 * 2)
}

fn made(validity: Validity) -> u64 {
    validity.not_before.saturating_add(BACKDATED)
}

fn contains(authorities: &[Authority], id: Id) -> bool {
    authorities.iter().any(|authority| authority.id == id)
}

/// True if managers cannot be called with this certificate.
fn is_useless(serving: &Serving, trusted: &[Authority], now: u64) -> bool {
    let is_trusted = serving.signed_by.is_some_and(|id| contains(trusted, id));
    let Validity { not_before, not_after } = serving.validity;
    !is_trusted || !serving.is_named || now < not_before || now > not_after
}

/// Certificates that have ended, or end soon.
fn ends(facts: &CertificateFacts) -> Vec<Problem> {
    let trusted = facts.trusted.as_ref().and_then(|found| found.content.as_ref().ok());
    // Those beside it may be left from earlier.
    let trusted = trusted.into_iter().flatten().map(|one| one.validity);
    let trusted = trusted.max_by_key(|validity| validity.not_after);
    let serving = facts.serving.as_ref().and_then(|found| found.content.as_ref().ok());
    let all = [
        (facts.names.serving.clone(), serving.map(|serving| serving.validity)),
        (facts.names.trusted.clone(), trusted),
    ];
    let mut problems: Vec<Problem> = Vec::new();
    for (object, validity) in all {
        let Some(validity) = validity else { continue };
        let at = validity.not_after;
        if facts.now > at {
            problems.insert(0, Problem::Expired { object, at });
        } else if facts.now >= validity.notice() {
            problems.push(Problem::ExpiresSoon { object, at });
        }
    }
    problems
}
