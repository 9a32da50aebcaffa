//! Phrases that several pages use.

use std::collections::BTreeSet;

use crate::cluster_view::ClusterView;
use crate::format::{duration_as_given, time_to_second};
use crate::options::into_quoted_commands;
use crate::page::{Page, Tone};
use crate::pod_view::PodView;
use stayput_restart::{Outcome, Request, UpdateStep};

/// Why a SearchCluster has no status, and what to check.
pub(crate) const NOT_PROCESSED: &str = "stayput-reconciler has not processed this SearchCluster yet; check that it runs and watches \
     this namespace: `kubectl get pods -A -l app.kubernetes.io/name=stayput-reconciler`";

/// [`NOT_PROCESSED`] with the options of kubectl that its command needs.
pub(super) fn not_processed(view: &ClusterView) -> String {
    into_quoted_commands(NOT_PROCESSED, &view.options)
}

/// Adds a warning that no reconciler works, if that is known.
pub(super) fn add_reconciler(view: &ClusterView, page: &mut Page) {
    if let Some(warning) = view.reconciler.warning() {
        page.toned("reconciler", Tone::Bad, warning);
    }
}

/// Adds the warning of [`add_reconciler`] once for all clusters: one reconciler works for all.
pub(super) fn add_reconciler_of_all(views: &[ClusterView], page: &mut Page) {
    if let Some(view) = views.first() {
        add_reconciler(view, page);
    }
}

/// Adds the options of kubectl that the reconciler's commands lack.
pub(super) fn add_options(view: &ClusterView, page: &mut Page) {
    if !view.options.is_empty() {
        let options = &view.options;
        page.fact("commands", format!("that the reconciler has written also need{options}"));
    }
}

/// Length of a checksum in reports, in digits.
const SHORT: usize = 12;
/// Maximum number of ignored changes on a page.
const MOST_IGNORED: usize = 5;

pub(crate) const fn tone_of_outcome(outcome: Outcome) -> Tone {
    match outcome {
        Outcome::Done => Tone::Good,
        Outcome::Superseded => Tone::Warning,
        Outcome::Aborted | Outcome::RolledBack | Outcome::Interfered => Tone::Bad,
    }
}

/// The phase of a pod; without one, a text if its node is kept stopped.
pub(super) fn phase_of(view: &ClusterView, pod: &PodView) -> String {
    match &pod.phase {
        Some(phase) => phase.clone(),
        None if view.is_kept_stopped(pod) => "(kept stopped)".into(),
        None => "-".into(),
    }
}

/// A sentence for each config whose changes do not restart the engines that run on it; only about the
/// config `runs_on`, if the beginning of its checksum is given.
pub(super) fn ignored_changes(view: &ClusterView, runs_on: Option<&str>) -> Vec<String> {
    let short = |checksum: &str| checksum.chars().take(SHORT).collect::<String>();
    let all = view.status.iter().flat_map(|status| status.ledger.ignored_changes.iter());
    let meant = all.filter(|(config, _)| runs_on.is_none_or(|runs_on| config.starts_with(runs_on)));
    let sentence = |(config, counts_as): (&str, &BTreeSet<String>)| {
        let wanted: Vec<String> = counts_as.iter().map(|one| format!("{}…", short(one))).collect();
        format!(
            "no restart for the change from {}… to {}: only what stayput.dev/ignore takes out differs",
            short(config),
            wanted.join(", ")
        )
    };
    meant.map(sentence).take(MOST_IGNORED).collect()
}

/// Why a node is down, or why it waits.
pub(super) fn message(view: &ClusterView, pod: &PodView) -> String {
    let report = view.node_report(&pod.node);
    let message = report.and_then(|report| report.message.clone());
    let down = report.and_then(|report| report.down.as_ref()).map(|_| "DOWN");
    let code = report.and_then(|report| report.blocked_by.as_deref());
    match (message, down.or(code)) {
        (Some(message), Some(code)) => format!("{code}: {message}"),
        (Some(message), None) => message,
        (None, _) if view.is_kept_stopped(pod) => "it is kept stopped".into(),
        (None, _) => match view.left_out(&pod.node) {
            Some(unknown) => unknown,
            None if pod.phase.is_some() => "the reconciler has not reported on it yet".into(),
            None => "nothing to do".into(),
        },
    }
}

/// Adds a warning that the restart under way may be an outage because its request allows it, and how to
/// end the restart.
pub(super) fn add_outage(view: &ClusterView, page: &mut Page) {
    let Some(restart) = view.restart().filter(|restart| restart.request.allow_outage) else {
        return;
    };
    let message = format!(
        "allowed by restart {}: its nodes are stopped even if no master can be elected, or a shard has \
         no copy, until they are back; to end that: {}",
        restart.request.id,
        view.command("cancel")
    );
    page.toned("outage", Tone::Warning, message);
}

/// A request in one line.
pub(crate) fn request_summary(request: &Request) -> String {
    let mut text = format!("{} {}", request.strategy.as_str(), request.id);
    let target = &request.target;
    if !target.nodes.is_empty() {
        text = format!("{text} of {}", target.nodes.join(", "));
    }
    if let Some(role) = &target.role {
        text = format!("{text}, role {role}");
    }
    if let Some(zone) = &target.zone {
        text = format!("{text}, zone {zone}");
    }
    if let Some(time) = request.not_before {
        text = format!("{text}, not before {}", time_to_second(time));
    }
    if let Some(deadline) = request.deadline {
        text = format!("{text}, deadline {}", duration_as_given(deadline));
    }
    if request.allow_outage {
        text = format!("{text}, allowing an outage");
    }
    if request.outside_windows {
        text = format!("{text}, also outside of maintenance windows");
    }
    if !request.skip_rules.is_empty() {
        text = format!("{text}, without {}", request.skip_rules.join(", "));
    }
    match &request.by {
        Some(by) => format!("{text}, requested by {by}"),
        None => text,
    }
}

/// The fields of the pod's template that need more than a restart of the process, and the parts of the
/// pod that are kept, if there are such fields.
pub(super) fn update(step: UpdateStep, because: &[String]) -> Option<String> {
    let is_more = step != UpdateStep::Restart || !because.is_empty();
    let fields = if because.is_empty() { "the revision".to_owned() } else { because.join("; ") };
    is_more.then(|| format!("{}, keeps {}: {fields}", step.name(), step.keeps()))
}

/// A remark, shown once, for all nodes of a restart for which [`update`] returns `None`.
pub(super) fn only_restarted() -> String {
    let step = UpdateStep::Restart;
    format!("({}, unless another step is named: keeps {})", step.name(), step.keeps())
}
