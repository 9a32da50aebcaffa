//! Progress of carrying out the declaration, for people.

use crate::failure::Failure;
use crate::status_report::{Until, blocked};
use stayput_declare::{ForeignClaim, LeavePlan, Refusal};
use stayput_restart::{Report, Time};

/// Progress of carrying out the declaration.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// All declared objects exist.
    Done,
    /// Some objects or nodes are still to come or to go; the message says what that waits for.
    Waiting(String),
    /// The declaration cannot be carried out; nothing was changed.
    Refused(Vec<Refusal>),
    /// Objects were made, but nodes do not leave before a person changes something.
    Kept(Refusal),
    /// Objects of another owner have names that are needed; nothing was changed.
    Foreign(Vec<String>),
    /// New nodes would mount volume claims of another owner; nothing was changed.
    ForeignClaims(Vec<ForeignClaim>),
    /// A call has failed; objects that were made before it exist.
    Failed(Failure),
}

/// Limit of the leaving nodes, or claims, that a message names.
const NAMED: usize = 3;

impl Verdict {
    /// The verdict with the progress of the nodes that leave.
    pub(super) fn with(self, turn: LeavePlan) -> Self {
        if let Some(refusal) = turn.refusal {
            return Self::Kept(refusal);
        }
        if turn.nodes.is_empty() {
            return self;
        }
        let mut leaving: Vec<String> = turn
            .nodes
            .iter()
            .take(NAMED)
            .map(|(node, how_far)| format!("{node} leaves: {how_far}"))
            .collect();
        if turn.nodes.len() > NAMED {
            leaving.push(format!("{} more nodes leave", turn.nodes.len() - NAMED));
        }
        if let Self::Waiting(waiting) = self {
            leaving.insert(0, waiting);
        }
        Self::Waiting(leaving.join("; "))
    }

    /// Code, reason and message of a problem that is not solved by waiting.
    fn problem(&self) -> Option<(&'static str, &'static str, String)> {
        match self {
            Self::Done | Self::Waiting(_) => None,
            Self::Refused(refusals) => {
                let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
                let message = format!("{}; nothing of the cluster was changed", all.join("; "));
                Some(("declaration_refused", "DeclarationRefused", message))
            }
            Self::Kept(refusal) => {
                Some(("leave_refused", "LeaveRefused", format!("{refusal}; no node leaves")))
            }
            Self::Foreign(objects) => Some((
                "foreign_object",
                "ForeignObject",
                format!(
                    "{} exists and is not of this SearchCluster: delete it, or choose another name. \
                     Nothing of the cluster was changed",
                    objects.join(", ")
                ),
            )),
            Self::ForeignClaims(claims) => {
                let mut all: Vec<String> =
                    claims.iter().take(NAMED).map(ToString::to_string).collect();
                if claims.len() > NAMED {
                    all.push(format!("and {} more", claims.len() - NAMED));
                }
                let message = format!("{}. Nothing of the cluster was changed", all.join("; "));
                Some(("foreign_object", "ForeignObject", message))
            }
            Self::Failed(error) => {
                Some(("declaration_failed", "DeclarationFailed", error.to_string()))
            }
        }
    }

    /// The report with the problem or the wait. A rule that blocks keeps its code.
    pub(super) fn report(&self, mut report: Report, now: Time) -> Report {
        if let Self::Waiting(waiting) = self
            && report.message.is_none()
        {
            report.message = Some(waiting.clone());
        }
        match self.problem() {
            None => report,
            Some((_, _, message)) if report.blocked.is_some() => {
                let before = report.message.unwrap_or_default();
                report.message = Some(format!("{before}; in addition: {message}"));
                report
            }
            Some((code, reason, message)) => {
                let until = match self {
                    Self::Refused(_)
                    | Self::Kept(_)
                    | Self::Foreign(_)
                    | Self::ForeignClaims(_) => Until::APerson,
                    Self::Done | Self::Waiting(_) | Self::Failed(_) => Until::Later,
                };
                blocked(report, code, reason, message, until, now)
            }
        }
    }

    /// Logs a problem that differs from the last one.
    pub(super) fn log(&self, before: &Self) {
        let message = |verdict: &Self| verdict.problem().map(|(_, _, message)| message);
        if let Some(now) = message(self)
            && message(before).as_ref() != Some(&now)
        {
            tracing::warn!("the declaration is not carried out: {now}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Verdict {
        let field = "spec.nodeSets[data].count".to_owned();
        Verdict::Refused(vec![Refusal { field, problem: "is 0: write 1 or more".into() }])
    }

    #[test]
    fn a_refusal_blocks_and_says_that_nothing_was_changed() {
        let report = refused().report(Report::default(), Time(0));
        assert_eq!(report.blocked.as_deref(), Some("declaration_refused"));
        let message = report.message.unwrap();
        let expected = "spec.nodeSets[data].count: is 0: write 1 or more; nothing of the cluster was \
                        changed";
        assert_eq!(message, expected);
        let is_stalled =
            report.conditions.iter().any(|one| one.kind == "Stalled" && one.status == "True");
        assert!(is_stalled, "a person has to correct it");
    }

    #[test]
    fn a_rule_that_blocks_keeps_its_code_and_a_message_is_not_replaced() {
        let message = "two of three".to_owned();
        let quorum = blocked(Report::default(), "quorum", "quorum", message, Until::Later, Time(0));
        let both = refused().report(quorum.clone(), Time(1));
        assert_eq!(both.blocked.as_deref(), Some("quorum"));
        assert!(
            both.message.unwrap().starts_with("two of three; in addition: spec.nodeSets[data]")
        );
        let waiting = Verdict::Waiting("masters".into());
        assert_eq!(waiting.report(quorum.clone(), Time(1)), quorum);
        let alone = waiting.report(Report::default(), Time(1));
        assert_eq!(alone.message.as_deref(), Some("masters"));
        assert_eq!(Verdict::Done.report(quorum.clone(), Time(1)), quorum);
    }
}
