//! The lines of a script, one command each.

use super::{operators, templates, wait};
use crate::late_requests::record_reason;
use crate::tests::driver::{ActionFate, Driver};
use crate::tests::world::engine::id_of;
use crate::tests::world::{Asked, Services, SimPod, Tool};
use crate::{
    Disabled, Drain, OnConfigChange, Operator, OperatorKind, Request, RunningSnapshot, Share,
    Sources, Strategy, Time, UpdateStep, annotation,
};
use stayput_api::{Span, StartRequest, StopRequest};

/// `three nodes`, or names with their roles: `logs-0:master+data logs-1:data`; `data-a*2:data@a` is
/// a pool of two nodes in zone a.
pub(super) fn nodes(text: &str) -> Vec<(String, String)> {
    let many = |count: usize| {
        (0..count).map(|at| (format!("logs-{at}"), "master+data".to_owned())).collect()
    };
    match text {
        "one node" => many(1),
        "two nodes" => many(2),
        "three nodes" => many(3),
        named => named
            .split_whitespace()
            .map(|node| node.split_once(':').expect("a node has roles: name:master+data"))
            .flat_map(|(name, roles)| {
                let names = match name.split_once('*') {
                    None => vec![name.to_owned()],
                    Some((pool, count)) => {
                        let count: usize = count.parse().expect("a pool has a number of nodes");
                        (0..count).map(|at| format!("{pool}-{at}")).collect()
                    }
                };
                names.into_iter().map(|name| (name, roles.to_owned()))
            })
            .collect(),
    }
}

pub(super) fn carry_out(driver: &mut Driver, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let now = driver.world.now;
    match words[..] {
        ["run", "until", ref rest @ ..] => wait::until(driver, rest),
        ["run", span] => {
            driver.run(span_of(span), |_| false);
        }
        ["show"] => show(driver),
        ["report"] => report(driver),
        ["policy", ref rest @ ..] => policy(driver, rest),
        ["change", "config", pods, to] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).change_sources(Sources::Checksum(to.into()), now);
            }
        }
        ["config", checksum, "has", ref settings @ ..] => {
            let one =
                |text: &&str| text.split_once('=').map(|(name, value)| (name.into(), value.into()));
            let settings = settings.iter().map(|text| one(text).expect("SETTING=VALUE")).collect();
            driver.world.configs.insert(checksum.into(), settings);
        }
        ["remove", "source", "of", pods] => {
            for pod in matching(driver, pods) {
                let absent = Sources::Absent(format!("Secret {pod}-config is absent"));
                driver.world.pod(&pod).change_sources(absent, now);
            }
        }
        ["the", "sources", "of", pods, "are", "not", "found"] => {
            for pod in matching(driver, pods) {
                let unknown = format!("the pod {pod} has no --config: name them in the spec");
                driver.world.pod(&pod).change_sources(Sources::Unknown(unknown), now);
            }
        }
        ["request", strategy, ref rest @ ..] => request(driver, strategy, rest),
        ["cancel", id] => annotate_cluster(driver, annotation::CANCEL, Some(id)),
        ["annotate", "cluster", key, "-"] => annotate_cluster(driver, &full(key), None),
        ["annotate", "cluster", key, value] => annotate_cluster(driver, &full(key), Some(value)),
        ["annotate", "pod", pod, key, "-"] => driver.world.annotate(pod, &full(key), None),
        ["annotate", "pod", pod, key, value] => {
            driver.world.annotate(pod, &full(key), Some(value));
        }
        ["a", "tool", "applies", "restart-phase", "-"] => driver.world.object.end_tool(),
        ["a", "tool", "applies", "restart-phase", "-", "to", pod] => {
            driver.world.pod(pod).applied_phase = None;
            driver.world.annotate(pod, annotation::PHASE, None);
        }
        ["a", "tool", "applies", "restart-phase", phase, "to", pod] => {
            driver.world.pod(pod).applied_phase = Some(phase.to_owned());
        }
        ["a", "tool", how @ ("applies" | "writes"), "restart-phase", phase] => {
            let is_declared = how == "applies";
            driver.world.object.tool = Some(Tool { phase: phase.to_owned(), is_declared });
        }
        ["gate", name, value] => {
            annotate_cluster(driver, &format!("{}{name}", annotation::GATE), written(value));
        }
        ["gate", "after", name, value] => {
            annotate_cluster(driver, &format!("{}{name}", annotation::GATE_AFTER), written(value));
        }
        ["a", "snapshot", "is", "taken", "of", node] => {
            let name = "nightly:friday".to_owned();
            let running = RunningSnapshot { name, since: Time(now), shards: 3 };
            driver.world.engine.snapshots.insert(node.into(), running);
        }
        ["the", "snapshot", "ends"] => driver.world.engine.snapshots.clear(),
        ["pause"] => driver.world.object.touch().paused = true,
        ["windows", "closed", "for", span] => {
            let opens = Time(driver.world.now).plus(span_of(span));
            driver.world.object.touch().closed_until = Some(opens);
        }
        ["resume"] => driver.world.object.touch().paused = false,
        ["keep", node, "stopped"] => {
            driver.world.object.touch().stopped.insert(node.into());
        }
        ["let", node, "run"] => {
            driver.world.object.touch().stopped.remove(node);
        }
        ["delete", "the", "searchcluster"] => driver.world.object.touch().deleting = true,
        ["crash"] => driver.crash(),
        ["crash", "after", "every", "action"] => {
            driver.fates = vec![ActionFate::CrashAfter; 60];
        }
        ["controller", "off"] => driver.is_off = true,
        ["controller", "on"] => driver.is_off = false,
        ["flushes", "take", span] => driver.flush_time = span_of(span),
        ["delay", "allocation", span] => driver.slow_allocation = Some(span_of(span)),
        ["delay", "exclusion", span] => driver.slow_exclusion = Some(span_of(span)),
        ["delay", "stop", span] => driver.slow_stop = Some(span_of(span)),
        ["another", "client", "excludes", node, "from", "voting"] => {
            driver.laws.excluded.insert(node.into());
            driver.world.engine.exclude(node);
        }
        ["another", "client", "removes", "all", "voting", "exclusions"] => {
            driver.laws.excluded.clear();
            driver.world.engine.clear_exclusions();
        }
        ["votes", "do", "not", "move"] => driver.world.engine.votes.is_stuck = true,
        ["the", "engine", "reads", "its", "state", "in", span] => {
            driver.world.engine.recovery.takes = span_of(span);
        }
        [who @ ("eck" | "opensearch"), "makes", "the", "pods"] => {
            let kind = match who {
                "eck" => OperatorKind::Eck,
                _ => OperatorKind::OpenSearch,
            };
            for pod in &mut driver.world.pods {
                let object = "logs".to_owned();
                pod.operator = Some(Operator { kind, object, replaces_pods: false });
            }
        }
        ["operator:", ref words @ ..] => operators::carry_out(driver, words),
        ["another", "client", "deletes", "shutdown", "records"] => {
            driver.world.engine.loses_records = true;
        }
        ["records", "on"] => driver.world.engine.keeps_records = true,
        ["another", "client", "announces", "the", "restart", "of", node] => {
            driver.world.engine.announce(now, &id_of(node), "of another");
        }
        ["another", "searchcluster", "announces", "the", "restart", "of", node, "for", id] => {
            let reason = record_reason("search/other", id);
            driver.world.engine.announce(now, &id_of(node), &reason);
        }
        ["another", "client" | "searchcluster", "withdraws", "the", "restart", "of", node] => {
            driver.world.engine.forget(&id_of(node));
        }
        ["engine", "unreachable"] => driver.world.engine.unreachable = true,
        ["engine", "refuses", "writes"] => driver.world.engine.refuses_writes = true,
        ["engine", "takes", "writes"] => driver.world.engine.refuses_writes = false,
        ["engine", "reachable"] => driver.world.engine.unreachable = false,
        ["engine", "is", "another", "cluster"] => driver.world.engine.uuid = "uuid-of-b".into(),
        ["another", "client", "sets", "allocation", to] => {
            driver.world.engine.allocation.setting.transient = Some(to.into());
            driver.laws.before.transient = Some(to.into());
        }
        ["another", "client", "resets", "allocation"] => {
            driver.world.engine.allocation = crate::Allocation::default();
        }
        ["freeze", "manager", pod] => driver.world.pod(pod).machine.freeze(),
        ["thaw", "manager", pod] => driver.world.thaw(pod),
        ["disconnect", "manager", pod] => driver.world.pod(pod).machine.unreachable = true,
        ["reconnect", "manager", pod] => driver.world.pod(pod).machine.unreachable = false,
        ["container", "of", pod, "restarts"] => {
            let pod = driver.world.pod(pod);
            if !pod.gone && !pod.living.is_without_container() {
                pod.container_restarts(now);
            }
        }
        ["sidecar", "of", pod, "crashes"] => driver.world.pod(pod).sidecar_crashes = true,
        ["sidecar", "of", pod, "runs"] => driver.world.pod(pod).sidecar_crashes = false,
        ["disk", "of", pod, "is", "read-only"] => driver.world.pod(pod).machine.read_only = true,
        ["config", "of", pod, "does", "not", "arrive"] => {
            driver.world.pod(pod).mount_is_stuck = true;
        }
        ["config", "of", pod, "arrives"] => driver.world.pod(pod).unstick(now),
        ["engine", "of", pods, "refuses", checksum] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).machine.habits.refuses.insert(checksum.into());
            }
        }
        ["engine", "of", pods, "is", "never", "ready", "on", checksum] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).machine.habits.never_ready.insert(checksum.into());
            }
        }
        ["engine", "of", pods, "finds", "no", "other", "node", "on", checksum] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).machine.habits.never_joins.insert(checksum.into());
            }
        }
        ["another", "client", "removes", "our", "marker"] => {
            driver.world.engine.allocation.marker = None;
            driver.laws.before = driver.world.engine.allocation.setting.clone();
        }
        ["another", "searchcluster", "limits", "allocation"] => {
            driver.world.engine.is_limited_by_another();
        }
        ["engine", "of", pod, "starts", "in", span] => {
            driver.world.pod(pod).machine.habits.start = span_of(span);
        }
        ["engine", "of", pod, "does", "not", "end"] => {
            driver.world.pod(pod).machine.habits.immortal = true;
        }
        ["engine", "of", pod, "ends", "after", "all"] => {
            driver.world.pod(pod).machine.lets_go(now);
        }
        ["engine", "of", pod, "hangs"] => driver.world.pod(pod).machine.hangs(now, true),
        ["engine", "of", pod, "answers"] => driver.world.pod(pod).machine.hangs(now, false),
        ["engine", "of", pods, "dies"] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).machine.engine_dies(now);
            }
        }
        ["index", name, "on", ref nodes @ ..] => driver.world.engine.shards.add(name, 0, nodes),
        ["searchable", "snapshot", name, "on", node] => {
            driver.world.engine.searchable_snapshots.insert(name.into());
            driver.world.engine.shards.add(name, 0, &[node]);
        }
        ["services", "send", "requests", "to", pods] => services(driver, pods, Services::Send),
        ["services", "always", "send", "requests", "to", pods] => {
            services(driver, pods, Services::SendAlways);
        }
        ["no", "service", "has", pods] => services(driver, pods, Services::Absent),
        ["zone", "of", node, "is", "unknown"] => {
            driver.world.engine.roles.get_mut(node).unwrap().zone = None;
        }
        ["person", "stops", pod] => person(driver, pod, Asked::Stop(StopRequest::default())),
        ["person", "starts", pod] => person(driver, pod, Asked::Start(StartRequest::default())),
        ["owner", "will", "replace", pod] => {
            driver.world.pod(pod).outdated = Some("its StatefulSet has a newer revision".into());
        }
        ["node", pod, "leaves"] => {
            driver.world.pod(pod).leaving = Some("4 shards are still on it".into());
        }
        ["node", pod, "stays"] => driver.world.pod(pod).leaving = None,
        ["pod", pod, "is", "being", "deleted"] => driver.world.pod(pod).terminating = true,
        ["replace", "pod", pod] => replace(driver, pod, None),
        ["replace", "pod", pod, "on", config] => replace(driver, pod, Some(config)),
        ["the", "selector", "matches", "nothing"] => select(driver, false),
        ["the", "selector", "is", "corrected"] => select(driver, true),
        ["pod", pod, "is", "not", "listed"] => driver.world.pod(pod).unlisted = true,
        ["pod", pod, "is", "listed"] => driver.world.pod(pod).unlisted = false,
        ["pod", pods, "is", "gone", "for", "good"] => {
            for pod in matching(driver, pods) {
                driver.world.pod(&pod).goes_for_good();
            }
        }
        ["a", "copy", "on", node, "fails"] => driver.world.engine.shards.fail_one(now, node),
        _ if templates::carry_out(driver, &words) => {}
        _ => panic!("no such command: {line}"),
    }
    driver.world.settle();
}

/// Edits the selector, so that it matches every pod or none.
fn select(driver: &mut Driver, all: bool) {
    driver.world.selects_nothing = !all;
    driver.world.pods.iter_mut().for_each(|pod| pod.unlisted = !all);
}

/// What is written into an annotation; `-` takes it away.
fn written(value: &str) -> Option<&str> {
    (value != "-").then_some(value)
}

pub(super) fn full(key: &str) -> String {
    let known = annotation::ALL.into_iter().find(|known| known.rsplit('/').next() == Some(key));
    known.unwrap_or_else(|| panic!("no annotation of ours: {key}")).to_owned()
}

/// `logs-1`, or `logs-*` for all that begin so.
pub(super) fn matching(driver: &Driver, pattern: &str) -> Vec<String> {
    let names = driver.world.pods.iter().filter(|pod| !pod.gone).map(|pod| pod.name.clone());
    let found: Vec<String> = match pattern.strip_suffix('*') {
        Some(start) => names.filter(|name| name.starts_with(start)).collect(),
        None => names.filter(|name| name == pattern).collect(),
    };
    assert!(!found.is_empty(), "there is no pod {pattern}");
    found
}

pub(super) fn span_of(text: &str) -> u64 {
    let span = humantime::parse_duration(text).unwrap_or_else(|_| panic!("no span: {text}"));
    u64::try_from(span.as_millis()).unwrap()
}

fn annotate_cluster(driver: &mut Driver, key: &str, value: Option<&str>) {
    driver.world.changes_of_others += 1;
    let annotations = &mut driver.world.object.touch().annotations;
    match value {
        Some(value) => annotations.insert(key.to_owned(), value.to_owned()),
        None => annotations.remove(key),
    };
}

/// `request rolling r1 nodes logs-1,logs-2 deadline 10m after 5m`, or `zone a`, or `role data`.
fn request(driver: &mut Driver, strategy: &str, rest: &[&str]) {
    let strategy = match strategy {
        "rolling" => Strategy::Rolling,
        "immediate" => Strategy::Immediate,
        "coordinated" => Strategy::Coordinated,
        other => panic!("no strategy: {other}"),
    };
    let mut request = Request { id: rest[0].into(), strategy, ..Request::default() };
    for pair in rest[1..].chunks(2) {
        match pair {
            ["nodes", nodes] => {
                request.target.nodes = nodes.split(',').map(str::to_owned).collect();
            }
            ["zone", zone] => request.target.zone = Some((*zone).into()),
            ["role", role] => request.target.role = Some((*role).into()),
            ["allow-unreplicated", pattern] => {
                request.allow_unreplicated.push((*pattern).to_owned());
            }
            ["deadline", span] => request.deadline = Some(Span(span_of(span))),
            ["skip-rule", name] => request.skip_rules.push((*name).to_owned()),
            ["allow", "outage"] => request.allow_outage = true,
            ["outside", "windows"] => request.outside_windows = true,
            ["after", span] => {
                request.not_before = Some(Time(driver.world.now).plus(span_of(span)));
            }
            other => panic!("no part of a request: {other:?}"),
        }
    }
    let text = serde_json::to_string(&request).unwrap();
    annotate_cluster(driver, annotation::REQUEST, Some(&text));
}

fn policy(driver: &mut Driver, words: &[&str]) {
    let policy = &mut driver.policy;
    match words {
        ["allowOutage"] => policy.allow_outage = true,
        ["drain", "auto"] => policy.drain = Drain::Auto,
        ["drain", span] => policy.drain = Drain::Fixed(span_of(span)),
        ["no", "rollback"] => policy.rollback = false,
        ["maxUnavailable", count] => policy.max_unavailable = share(count),
        ["disable", names @ ..] => policy.disabled = Disabled::by_annotation(&names.join(",")),
        ["phaseTimeout", span] => policy.phase_timeout = span_of(span),
        ["update", steps] => {
            let step = |name: &str| {
                let all = [
                    UpdateStep::Relabel,
                    UpdateStep::Restart,
                    UpdateStep::Container,
                    UpdateStep::Resize,
                    UpdateStep::Replace,
                ];
                all.into_iter().find(|step| step.name() == name).expect("a step")
            };
            policy.update = steps.split(',').filter(|name| *name != "none").map(step).collect();
            for pod in &mut driver.world.pods {
                pod.living.is_read = true;
            }
        }
        ["onConfigChange", "rolling"] => policy.on_config_change = OnConfigChange::Rolling,
        ["onConfigChange", "auto"] => policy.on_config_change = OnConfigChange::Auto,
        ["onConfigChange", "coordinated"] => policy.on_config_change = OnConfigChange::Coordinated,
        other => panic!("no policy: {other:?}"),
    }
}

fn services(driver: &mut Driver, pods: &str, services: Services) {
    for pod in matching(driver, pods) {
        driver.world.pod(&pod).services = services;
    }
}

fn person(driver: &mut Driver, pod: &str, asked: Asked) {
    let uid = driver.world.pod(pod).uid.clone();
    driver.world.ask(&uid, asked, "person");
}

/// The pod is deleted, and its owner makes another one of the same name. The kubelet mounts what the
/// sources have, or first an old config that it has kept.
fn replace(driver: &mut Driver, name: &str, kept: Option<&str>) {
    let now = driver.world.now;
    let pod = driver.world.pod(name);
    let sources = pod.sources.clone();
    let Sources::Checksum(config) = &sources else { panic!("sources of {name}") };
    let incarnation: u32 = pod.uid.rsplit("uid").next().unwrap().parse().unwrap();
    let mut next = SimPod::new(name, incarnation + 1, kept.unwrap_or(config), now);
    if kept.is_some() {
        next.change_sources(sources, now);
    }
    next.living = pod.living.remade();
    next.operator = pod.operator.take();
    next.boots(now);
    *pod = next;
}

/// Prints the whole state.
fn show(driver: &mut Driver) {
    let now = driver.world.now;
    let ledger = driver.world.ledger().clone();
    let lines = crate::tests::ledger_changes::describe_whole(&ledger);
    for line in lines {
        driver.page.line(now, "  ledger", &line);
    }
    for at in 0..driver.world.pods.len() {
        let pod = &driver.world.pods[at];
        let line = crate::tests::page::describe(pod, &driver.world);
        driver.page.line(now, "  pod", &format!("{} {line}", pod.name));
    }
    let engine = driver.world.engine.describe(now);
    driver.page.line(now, "  engine", &engine);
}

/// Prints what the status shows for people.
fn report(driver: &mut Driver) {
    let now = driver.world.now;
    let (snapshot, _) = driver.world.observe(&driver.flushed);
    let made = crate::plan(&snapshot, &driver.policy);
    let report = crate::report(&snapshot, &driver.policy, &made);
    let message = report.message.as_deref().unwrap_or_default();
    driver.page.line(now, "  status", &format!("{}: {message}", report.phase));
    let shown = |kind: &str, status: &str| match kind {
        "Stalled" => status == "True",
        kind => matches!(kind, "Blocked" | "Degraded"),
    };
    for one in report.conditions.iter().filter(|one| shown(&one.kind, &one.status)) {
        let line = format!("{} {} ({})", one.kind, one.status, one.reason);
        driver.page.line(now, "  status", &line);
    }
    let disabled = |kind: &str, status: &str| kind == "PredicatesDisabled" && status == "True";
    for one in report.conditions.iter().filter(|one| disabled(&one.kind, &one.status)) {
        driver.page.line(now, "  status", &format!("{}: {}", one.kind, one.message));
    }
    for node in &report.nodes {
        let state = node.state.as_deref().unwrap_or("unknown");
        let why = node.down.as_ref().map_or(String::new(), |code| format!("DOWN ({code}), "));
        let leaves = if node.step == Some(UpdateStep::Move) { "move, " } else { "" };
        let message = node.message.as_deref().unwrap_or_default();
        let line = format!("{} {state}: {why}{leaves}{message}", node.name);
        driver.page.line(now, "  status", &line);
    }
}

/// `2` or `25%`.
fn share(text: &str) -> Share {
    match text.strip_suffix('%') {
        Some(percent) => Share::Percent(percent.parse().unwrap()),
        None => Share::Nodes(text.parse().unwrap()),
    }
}
