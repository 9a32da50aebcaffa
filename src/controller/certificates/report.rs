//! Reports certificates and keys to people: a condition, gauges and events.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use super::text;
use stayput_certificates::{CertificateFacts, Problem};
use stayput_restart::{Condition, Report, Time};

const CONDITION: &str = "CertificatesValid";

/// Certificates and keys as last read.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// End of validity of each, in seconds since the epoch: `serving`, `ca`.
    pub(crate) ends: BTreeMap<&'static str, u64>,
    pub(super) problems: Vec<Problem>,
    /// The error of the call that failed.
    pub(super) failure: Option<String>,
}

impl Seen {
    pub(super) fn note(&mut self, facts: &CertificateFacts, problems: Vec<Problem>) {
        let serving = facts.serving.as_ref().and_then(|found| found.content.as_ref().ok());
        let trusted = facts.trusted.as_ref().and_then(|found| found.content.as_ref().ok());
        let trusted = trusted.into_iter().flatten().map(|one| one.validity.not_after).max();
        let ends = [("serving", serving.map(|one| one.validity.not_after)), ("ca", trusted)];
        self.ends = ends.into_iter().filter_map(|(name, at)| Some((name, at?))).collect();
        self.problems = problems;
    }

    /// Message of an event, if the problems have changed and there are any.
    pub(super) fn news(&self, before: &Self) -> Option<String> {
        let reasons = |seen: &Self| -> Vec<(&'static str, Option<u64>)> {
            let all = seen.problems.iter();
            all.map(|problem| (problem.reason(), problem.ends_at())).collect()
        };
        let is_new = !self.problems.is_empty() && reasons(self) != reasons(before);
        is_new.then(|| text(&self.problems))
    }

    /// The report with the condition, once certificates or keys were read.
    pub(crate) fn report(&self, mut report: Report, now: Time) -> Report {
        let (status, reason, message) = match (self.problems.first(), &self.failure) {
            (Some(worst), _) => ("False", worst.reason(), text(&self.problems)),
            (None, Some(failure)) => ("Unknown", "NotRead", failure.clone()),
            (None, None) => match self.ends.values().min() {
                Some(first) => ("True", "Valid", format!("until {}", date(*first))),
                None => return report,
            },
        };
        report.conditions.retain(|condition| condition.kind != CONDITION);
        report.conditions.push(Condition {
            kind: CONDITION.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: None,
            last_transition_time: now,
        });
        report
    }
}

fn date(at: u64) -> humantime::Rfc3339Timestamp {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(at.min(253_402_300_799)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: u64 = 1_798_761_600;

    fn seen(problems: &[Problem]) -> Seen {
        Seen {
            ends: BTreeMap::from([("serving", END), ("ca", END + 1)]),
            problems: problems.to_vec(),
            failure: None,
        }
    }

    fn condition(seen: &Seen) -> Option<(String, String, String)> {
        let report = seen.report(Report::default(), Time(0));
        assert_eq!(seen.report(report.clone(), Time(0)), report, "twice is once");
        let only = report.conditions.into_iter().next()?;
        assert_eq!(only.kind, CONDITION);
        Some((only.status, only.reason, only.message))
    }

    fn soon() -> Problem {
        Problem::ExpiresSoon { object: "logs-manager-tls".into(), at: END }
    }

    #[test]
    fn the_condition_says_what_is_wrong_or_until_when_nothing_is() {
        let of = |status: &str, reason: &str, message: &str| {
            Some((status.to_owned(), reason.to_owned(), message.to_owned()))
        };
        assert_eq!(condition(&Seen::default()), None, "nothing is known");
        assert_eq!(condition(&seen(&[])), of("True", "Valid", "until 2027-01-01T00:00:00Z"));
        let wrong = seen(&[soon()]);
        assert_eq!(condition(&wrong), of("False", "ExpiresSoon", &soon().to_string()));
        let failed = Seen { failure: Some("no answer".into()), ..seen(&[]) };
        assert_eq!(condition(&failed), of("Unknown", "NotRead", "no answer"));
    }

    #[test]
    fn each_problem_is_an_event_once() {
        let (good, wrong) = (seen(&[]), seen(&[soon()]));
        assert_eq!(wrong.news(&good), Some(soon().to_string()));
        assert_eq!(wrong.news(&wrong), None);
        assert_eq!(good.news(&wrong), None);
    }
}
