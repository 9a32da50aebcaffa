//! Renders text for a terminal: facts and tables in columns, colored where wanted. Text from elsewhere
//! cannot move the cursor.

pub(crate) mod plan;
pub(crate) mod status;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

use stayput_http::terminal::plain;
use stayput_pod_update::Difference;
use stayput_restart::UpdateStep;

pub(crate) use crate::text::plan::{dry_run, forecast, plan};
pub(crate) use crate::text::status::{
    history, history_of_all, status, status_of_all, why, why_in_snapshot,
};

use crate::diff::Diff;
use crate::doctor::{Examined, Severity};
use crate::format::{NOT_PROCESSED, or_dash};
use crate::init::{InitOutput, InitResult};
use crate::options::into_quoted_commands;
use crate::view::{ClusterView, Tone};

/// Colors values, or leaves them uncolored.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Paint {
    pub(crate) colored: bool,
}

impl Paint {
    /// The text in the tone's color. Control characters in it are escaped first.
    pub(crate) fn text(self, tone: Tone, text: &str) -> String {
        let text = plain(text);
        let color = match tone {
            Tone::Neutral => return text.into_owned(),
            _ if !self.colored => return text.into_owned(),
            Tone::Good => 32,
            Tone::Warning => 33,
            Tone::Bad => 31,
        };
        format!("\u{1b}[{color}m{text}\u{1b}[0m")
    }
}

/// A page under construction.
#[derive(Debug)]
pub(crate) struct Page {
    paint: Paint,
    text: String,
}

impl Page {
    pub(crate) const fn new(paint: Paint) -> Self {
        Self { paint, text: String::new() }
    }

    /// Adds a line with a name and a value. An empty name continues the fact above.
    pub(crate) fn fact(&mut self, name: &str, value: impl AsRef<str>) {
        self.toned(name, Tone::Neutral, value);
    }

    pub(crate) fn toned(&mut self, name: &str, tone: Tone, value: impl AsRef<str>) {
        let value = self.paint.text(tone, value.as_ref());
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{name:<12}{value}");
    }

    pub(crate) fn line(&mut self, text: impl AsRef<str>) {
        self.text.push_str(&plain(text.as_ref()));
        self.text.push('\n');
    }

    /// Adds rows in columns of equal width; the first row is the head.
    pub(crate) fn table<const N: usize>(&mut self, rows: &[[String; N]]) {
        let rows: Vec<[Cow<'_, str>; N]> =
            rows.iter().map(|row| row.each_ref().map(|cell| plain(cell))).collect();
        let mut widths = [0; N];
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        for row in &rows {
            let mut line = String::new();
            for (cell, width) in row.iter().zip(widths) {
                let _ = write!(line, "{cell:<width$}   ");
            }
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// [`NOT_PROCESSED`] with the options of kubectl that its command needs.
pub(crate) fn not_processed(view: &ClusterView) -> String {
    into_quoted_commands(NOT_PROCESSED, &view.options)
}

/// Adds a warning that no reconciler works, if that is known.
pub(crate) fn add_reconciler(view: &ClusterView, page: &mut Page) {
    if let Some(warning) = view.reconciler.warning() {
        page.toned("reconciler", Tone::Bad, warning);
    }
}

/// Adds the warning of [`add_reconciler`] once for all clusters: one reconciler works for all.
pub(crate) fn add_reconciler_of_all(views: &[ClusterView], page: &mut Page) {
    if let Some(view) = views.first() {
        add_reconciler(view, page);
    }
}

/// Adds the options of kubectl that the reconciler's commands lack.
pub(crate) fn add_options(view: &ClusterView, page: &mut Page) {
    if !view.options.is_empty() {
        let options = &view.options;
        page.fact("commands", format!("that the reconciler has written also need{options}"));
    }
}

/// Length of a checksum in reports, in digits.
const SHORT: usize = 12;
/// Maximum number of ignored changes on a page.
const MOST_IGNORED: usize = 5;

/// A sentence for each config whose changes do not restart the engines that run on it; only about the
/// config `runs_on`, if the beginning of its checksum is given.
pub(crate) fn ignored_changes(view: &ClusterView, runs_on: Option<&str>) -> Vec<String> {
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

/// Adds a warning that the restart under way may be an outage because its request allows it, and how to
/// end the restart.
pub(crate) fn add_outage(view: &ClusterView, page: &mut Page) {
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

/// The fields of the pod's template that need more than a restart of the process, and the parts of the
/// pod that are kept, if there are such fields.
pub(crate) fn update(step: UpdateStep, because: &[String]) -> Option<String> {
    let is_more = step != UpdateStep::Restart || !because.is_empty();
    let fields = if because.is_empty() { "the revision".to_owned() } else { because.join("; ") };
    is_more.then(|| format!("{}, keeps {}: {fields}", step.name(), step.keeps()))
}

/// A line for each node that lacks a change of its pod template, or is getting it.
pub(crate) fn updates(view: &ClusterView) -> impl Iterator<Item = String> {
    view.report().into_iter().flat_map(|report| &report.nodes).filter_map(|node| {
        let update = update(node.step?, &node.because)?;
        Some(format!("{}: {update}", node.name))
    })
}

/// A remark, shown once, for all nodes of a restart for which [`update`] returns `None`.
pub(crate) fn only_restarted() -> String {
    let step = UpdateStep::Restart;
    format!("({}, unless another step is named: keeps {})", step.name(), step.keeps())
}

pub(crate) fn doctor(all: &[Examined], paint: Paint) -> String {
    let mut page = Page::new(paint);
    for examined in all {
        page.fact("cluster", format!("{}/{}", examined.namespace, examined.cluster));
        for finding in &examined.findings {
            let tone = match finding.severity {
                Severity::Error => Tone::Bad,
                Severity::Unknown | Severity::Warning => Tone::Warning,
                Severity::Note => Tone::Neutral,
            };
            let text = format!("{}: {}: {}", finding.code, finding.object, finding.message);
            page.toned(finding.severity.as_str(), tone, text);
            for line in finding.remedy.lines() {
                page.fact("", line);
            }
        }
        let count = |severity: Severity, one: &str, many: &str| {
            let same = examined.findings.iter().filter(|finding| finding.severity == severity);
            let count = same.count();
            format!("{count} {}", if count == 1 { one } else { many })
        };
        if examined.findings.is_empty() {
            page.toned("result", Tone::Good, "nothing is wrong");
        } else {
            let counts = [
                count(Severity::Error, "error", "errors"),
                count(Severity::Unknown, "unknown", "unknown"),
                count(Severity::Warning, "warning", "warnings"),
                count(Severity::Note, "note", "notes"),
            ];
            page.fact("result", counts.join(", "));
        }
    }
    page.into_text()
}

pub(crate) fn diff(diff: &Diff) -> String {
    let mut page = Page::new(Paint::default());
    let head = ["POD", "STEP", "KEPT", "FIELD", "FROM", "TO"];
    let mut rows = vec![head.map(str::to_owned)];
    for pod in &diff.pods {
        let otherwise = if pod.removed.is_some() { "removed" } else { "unknown" };
        let start = [pod.pod.as_str(), pod.step.unwrap_or(otherwise), pod.kept.unwrap_or("-")];
        let mut because = pod.because.iter();
        rows.push(diff_row(start, because.next()));
        for each in because {
            // A lower step, which the highest one does with it.
            rows.push(diff_row(["", &format!("({})", each.step.name()), ""], Some(each)));
        }
    }
    if diff.pods.is_empty() {
        page.line("the SearchCluster has no pods");
    } else {
        page.table(&rows);
    }
    for pod in &diff.pods {
        if let Some(why) = pod.removed.as_ref().or(pod.unknown.as_ref()) {
            page.line(format!("{}: {why}", pod.pod));
        }
    }
    if diff.pods.iter().any(|pod| pod.is_outdated) {
        for (set, command) in diff.rolling_stateful_sets.iter().zip(&diff.on_delete) {
            page.line(format!(
                "StatefulSet {set} replaces its pods by itself. To keep them: {command}"
            ));
        }
    }
    page.into_text()
}

fn diff_row([pod, step, kept]: [&str; 3], difference: Option<&Difference>) -> [String; 6] {
    let value = |value: Option<&String>| or_dash(value.map_or("", String::as_str)).to_owned();
    let field = value(difference.map(|each| &each.field));
    let from = value(difference.and_then(|each| each.from.as_ref()));
    let to = value(difference.and_then(|each| each.to.as_ref()));
    [pod.to_owned(), step.to_owned(), kept.to_owned(), field, from, to]
}

pub(crate) fn init(output: &InitOutput) -> String {
    let mut page = Page::new(Paint::default());
    let mut rows = vec![["OBJECT", "RESULT", "MESSAGE"].map(str::to_owned)];
    for object in &output.objects {
        let name = format!("{} {}", object.kind, object.name);
        rows.push([name, word(object.result, output.dry_run).to_owned(), object.message.clone()]);
    }
    page.table(&rows);
    for note in &output.notes {
        page.line(format!("note: {note}"));
    }
    for command in &output.next {
        page.line(format!("next: {command}"));
    }
    page.into_text()
}

const fn word(result: InitResult, dry_run: bool) -> &'static str {
    match (result, dry_run) {
        (InitResult::Made, false) => "made",
        (InitResult::Made, true) => "would be made",
        (InitResult::Changed, false) => "changed",
        (InitResult::Changed, true) => "would be changed",
        (InitResult::Unchanged, _) => "unchanged",
        (InitResult::Left, _) => "left as it is",
        (InitResult::Missing, _) => "missing",
    }
}
