//! Decides if a changed config can be brought to nodes one by one, or needs all of them at once, since a
//! node with the new one and a node with the old one cannot be in one cluster.

use std::collections::{BTreeMap, BTreeSet};

use stayput_pod_update::{EngineVersion, Reason, Settings};

use crate::context::Context;
use crate::rules::numbers;
use crate::{Blocker, Code, Engine, KnownConfigs, Ledger, Pod, PodUpdate, Snapshot, Sources};

/// A change that needs all nodes at once.
#[derive(Debug)]
pub(crate) struct NeedsCoordinated {
    reason: Reason,
    /// Other settings whose changes need all nodes at once.
    others: Vec<&'static str>,
    /// A node whose sources keep the old value: with it the cluster cannot be complete.
    pub(crate) keeps: Option<String>,
}

impl NeedsCoordinated {
    /// The change with these reasons, if there are any.
    fn of(reasons: Vec<Reason>, keeps: Option<String>) -> Option<Self> {
        let mut reasons = reasons.into_iter();
        let reason = reasons.next()?;
        let others = reasons.map(|reason| reason.setting).collect();
        Some(Self { reason, others, keeps })
    }

    /// The setting and the reason, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let Reason { setting, from, to, why } = &self.reason;
        let others = match &self.others[..] {
            [] => String::new(),
            others => format!(" (so does {})", others.join(", ")),
        };
        format!(
            "{setting} changes from {from} to {to}{others}, which all nodes need at once, since {why}"
        )
    }

    /// The sentence about a change by a pod template, with advice for a person, for the end of
    /// a message.
    pub(crate) fn by_template(&self, pod: &Pod) -> String {
        format!(
            "{}: undo that in the pod template of {}, or delete the pods of all nodes together, which is \
             an outage",
            self.sentence(),
            pod.name
        )
    }

    /// Name of the setting, for a history.
    pub(crate) const fn setting(&self) -> &'static str {
        self.reason.setting
    }
}

/// The settings that a pod's engine runs on, and those of its sources, as far as they are known.
struct Known<'a> {
    pod: &'a Pod,
    runs_on: Option<&'a Settings>,
    wanted: Option<&'a Settings>,
}

/// The settings that engines run on, and those of their sources, as far as they are known.
type Pair<'a> = (Option<&'a Settings>, Option<&'a Settings>);

/// Number of nodes with each pair, and the name of the first. Many nodes have few pairs.
type Pairs<'a> = BTreeMap<Pair<'a>, (usize, &'a str)>;

impl<'a> Known<'a> {
    fn of(pod: &'a Pod, seen: &'a KnownConfigs, remembered: &'a KnownConfigs) -> Self {
        let find = |checksum: &str| seen.of(checksum).or_else(|| remembered.of(checksum));
        let manager = pod.manager.as_ref().ok();
        let runs_on = manager.and_then(|manager| find(manager.runs_on()?));
        let wanted = match &pod.sources {
            Sources::Checksum(checksum) => find(checksum),
            Sources::Unknown(_) | Sources::Absent(_) => None,
        };
        Self { pod, runs_on, wanted }
    }

    const fn pair(&self) -> Pair<'a> {
        (self.runs_on, self.wanted)
    }

    /// The change of settings that the pod is to get, if it gets one.
    fn change(&self) -> Result<Option<(&'a Settings, &'a Settings)>, Blocker> {
        let unknown = |message| Err(Blocker { code: Code::PendingRestart, message });
        match (self.runs_on, self.wanted) {
            (Some(old), Some(new)) => Ok((old != new).then_some((old, new))),
            (None, _) => unknown(never_seen(self.pod)),
            (Some(_), None) => unknown(format!(
                "the sources of {} have no elasticsearch.yml or opensearch.yml that can be read",
                self.pod.node
            )),
        }
    }
}

/// True if nodes that drift, or that are to get another pod template, have other decisive settings, so
/// that the engine's version is needed to judge the change.
pub(crate) fn needs_version(snapshot: &Snapshot) -> bool {
    let (seen, remembered) = (&snapshot.configs, &snapshot.ledger.configs);
    let differs = |pod: &Pod| {
        let known = Known::of(pod, seen, remembered);
        pod.drifts() && known.runs_on.is_some() && known.wanted != known.runs_on
    };
    let gives_others = |pod: &Pod| match &pod.update {
        Ok(Some(update)) => update.settings.is_some(),
        Ok(None) | Err(_) => false,
    };
    !seen.are_alike(remembered) && snapshot.pods.iter().any(differs)
        || snapshot.pods.iter().any(gives_others)
}

/// The change that needs all nodes at once, if these drifting pods have one between their config and
/// that of their sources.
///
/// # Errors
/// The answer is not known: the config that an engine runs on was never seen in its sources, its manager
/// does not answer, or the engine does not tell its version.
pub(crate) fn needs_coordinated(
    context: &Context<'_>,
    ledger: &Ledger,
    drifting: &[&Pod],
) -> Result<Option<NeedsCoordinated>, Blocker> {
    let (seen, remembered) = (&context.snapshot.configs, &ledger.configs);
    let drifting = drifting.iter().map(|pod| Known::of(pod, seen, remembered));
    judge(context, ledger, drifting.collect())
}

/// The change between two configs that needs all nodes at once, if there is one, for one pod with any
/// engine: `from` is the config with which the pod was in one cluster with the others, or could have
/// been, and `to` the one that it would run on.
///
/// # Errors
/// As [`needs_coordinated`].
pub(crate) fn needs_coordinated_between(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
    from: &str,
    to: &str,
) -> Result<Option<NeedsCoordinated>, Blocker> {
    let (seen, remembered) = (&context.snapshot.configs, &ledger.configs);
    let find = |checksum| seen.of(checksum).or_else(|| remembered.of(checksum));
    judge(context, ledger, vec![Known { pod, runs_on: find(from), wanted: find(to) }])
}

/// The change that needs all nodes at once, if the pod template that this pod is to get by a restart, or
/// to be recreated from, has one: a variable or an argument gives its engine another value of a decisive
/// setting. Others may have the value that it has now, unless it is the only node.
///
/// # Errors
/// The engine does not tell its version.
pub(crate) fn template_needs_coordinated(
    context: &Context<'_>,
    ledger: &Ledger,
    pod: &Pod,
    update: &PodUpdate,
) -> Result<Option<NeedsCoordinated>, Blocker> {
    let Some(given) = update.settings.as_ref().filter(|_| update.step.is_of_a_restart()) else {
        return Ok(None);
    };
    let engine = context.index.engine()?;
    if context.index.pods().len() == 1 && engine.nodes.len() <= 1 {
        return Ok(None);
    }
    let version = version(engine).ok_or_else(|| unknown_version(engine))?;
    let known = Known::of(pod, &context.snapshot.configs, &ledger.configs);
    // The file's value counts where the container gives none.
    let with = |file: Option<&Settings>, given: &Settings| {
        let mut all = file.or(known.wanted).cloned().unwrap_or_default();
        all.extend(given.clone());
        all
    };
    let (old, new) = (with(known.runs_on, &given.from), with(known.wanted, &given.to));
    let reasons = stayput_pod_update::needs_coordinated(&old, &new, version);
    Ok(NeedsCoordinated::of(reasons, None))
}

fn unknown_version(engine: &Engine) -> Blocker {
    let message = format!("the engine's version {} is not known", engine.version);
    Blocker { code: Code::PendingRestart, message }
}

/// The change that needs all nodes at once, if these nodes have one. A change that is known to need them does
/// so whatever else is unknown.
fn judge<'a>(
    context: &'a Context<'_>,
    ledger: &'a Ledger,
    drifting: Vec<Known<'a>>,
) -> Result<Option<NeedsCoordinated>, Blocker> {
    let mut unknown = None;
    let mut changes: BTreeMap<(&Settings, &Settings), Vec<&Pod>> = BTreeMap::new();
    for known in drifting {
        match known.change() {
            Ok(Some(change)) => changes.entry(change).or_default().push(known.pod),
            Ok(None) => {}
            Err(blocker) => drop(unknown.get_or_insert(blocker)),
        }
    }
    if changes.is_empty() {
        return unknown.map_or(Ok(None), Err);
    }
    let (seen, remembered) = (&context.snapshot.configs, &ledger.configs);
    let all: Vec<Known<'_>> =
        context.index.pods().map(|pod| Known::of(pod, seen, remembered)).collect();
    let unknown_of_any = unknown_of_any(context, &all);
    if all.iter().all(|known| known.runs_on.is_none()) && unknown_of_any.is_none() {
        // No other engine runs.
        return unknown.map_or(Ok(None), Err);
    }
    let engine = context.index.engine()?;
    let version = version(engine).ok_or_else(|| unknown_version(engine))?;
    let mut pairs = Pairs::new();
    for known in &all {
        pairs.entry(known.pair()).or_insert((0, &known.pod.node)).0 += 1;
    }
    let mut reasons: Vec<Reason> = Vec::new();
    let mut keeps = None;
    for ((old, new), pods) in changes {
        // Two nodes with the same change are each other's others.
        let itself = match pods[..] {
            [pod] => Some(Known::of(pod, seen, remembered).pair()),
            _ => None,
        };
        for reason in stayput_pod_update::needs_coordinated(old, new, version) {
            match effect(&reason, new, version, &pairs, itself) {
                Effect::None => unknown = unknown.or_else(|| unknown_of_any.clone()),
                Effect::NeedsAll { keeps: node } => {
                    keeps = keeps.or(node);
                    if reasons.iter().all(|known| known.setting != reason.setting) {
                        reasons.push(reason);
                    }
                }
            }
        }
    }
    match (NeedsCoordinated::of(reasons, keeps), unknown) {
        (None, Some(unknown)) => Err(unknown),
        (change, _) => Ok(change),
    }
}

/// Effect of a changed setting on other nodes.
enum Effect {
    /// No other node is known to run on the old value.
    None,
    /// Others run on the old value. `keeps`: one of them whose sources keep it.
    NeedsAll { keeps: Option<String> },
}

/// Effect of the change that `reason` names, to the settings `new`. `itself`: settings of the node with this
/// change, if it is the only one.
fn effect(
    reason: &Reason,
    new: &Settings,
    version: EngineVersion,
    pairs: &Pairs<'_>,
    itself: Option<Pair<'_>>,
) -> Effect {
    // Compares with the old value, because a node that has changed already has the new one.
    let has_old = |settings: &Settings| {
        let changes = stayput_pod_update::needs_coordinated(settings, new, version);
        changes.iter().any(|one| (one.setting, &one.from) == (reason.setting, &reason.from))
    };
    let mut others = pairs.iter().filter(|(pair, (count, _))| {
        let is_itself = *count == 1 && itself == Some(**pair);
        !is_itself && pair.0.is_some_and(has_old)
    });
    if others.clone().next().is_none() {
        return Effect::None;
    }
    let keeping = others.find(|((_, wanted), _)| wanted.is_none_or(has_old));
    Effect::NeedsAll { keeps: keeping.map(|(_, (_, node))| (*node).to_owned()) }
}

/// Why the settings that some engine runs on are not known: it may have the old ones.
fn unknown_of_any(context: &Context<'_>, all: &[Known<'_>]) -> Option<Blocker> {
    if let Some(node) = without_pod(context) {
        let message = format!(
            "{node} is in the cluster without a listed pod, so it is unknown whether a rolling restart \
             is safe"
        );
        return Some(Blocker { code: Code::PodGone, message });
    }
    let mut unknown = all.iter().filter(|known| known.runs_on.is_none());
    unknown.find_map(|known| match context.index.manager(&known.pod.uid) {
        Err(blocker) => {
            let message = format!(
                "the config of {} is unknown, so it is unknown whether a rolling restart is safe: {}",
                known.pod.node, blocker.message
            );
            Some(Blocker { message, ..blocker })
        }
        Ok(manager) if manager.run.is_none() => None,
        Ok(_) => Some(Blocker { code: Code::PendingRestart, message: never_seen(known.pod) }),
    })
}

/// A node that the engine lists, and that has no pod here.
fn without_pod<'a>(context: &Context<'a>) -> Option<&'a str> {
    let pods: BTreeSet<&str> = context.index.pods().map(|pod| pod.node.as_str()).collect();
    let mut nodes = context.index.engine().ok()?.nodes.iter().map(|node| node.name.as_str());
    nodes.find(|node| !pods.contains(node))
}

fn never_seen(pod: &Pod) -> String {
    format!(
        "the config that {} runs on was never seen in its sources, so it is unknown whether a rolling \
         restart is safe",
        pod.node
    )
}

/// The oldest version that runs: in the middle of an upgrade, the node that answered may be upgraded
/// already, and the configs are those of the others.
fn version(engine: &Engine) -> Option<EngineVersion> {
    // `opensearch 2.19.3`.
    let (distribution, answered) = engine.version.split_once(' ')?;
    let of_nodes = engine.nodes.iter().filter_map(|node| numbers(&node.version));
    let numbers = of_nodes.chain(numbers(answered)).min()?;
    let number = |at: usize| u32::try_from(*numbers.get(at)?).ok();
    let (major, minor) = (number(0)?, number(1)?);
    match distribution {
        "elasticsearch" => Some(EngineVersion::Elasticsearch(major, minor)),
        "opensearch" => Some(EngineVersion::OpenSearch(major, minor)),
        _ => None,
    }
}
