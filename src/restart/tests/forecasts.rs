//! Forecasts of clusters in particular states.

use super::driver::Driver;
use super::scenario::play_line;
use super::world::World;
use crate::{
    Forecast, ForecastNode, ForecastStep, ForecastStepKind, MemberStep, Policy, Request, Strategy,
    Target, UpdateStep, forecast,
};

/// Two hot and two warm nodes, three masters.
fn pools() -> Driver {
    let world = World::new(&[
        ("logs-hot-0", "data_hot"),
        ("logs-hot-1", "data_hot"),
        ("logs-master-0", "master"),
        ("logs-master-1", "master"),
        ("logs-master-2", "master"),
        ("logs-warm-0", "data_warm"),
        ("logs-warm-1", "data_warm"),
    ]);
    Driver::new(world, Policy::default())
}

fn asked(strategy: Strategy, target: Target) -> Request {
    Request { id: "dry-run".into(), strategy, target, ..Request::default() }
}

/// A forecast at this time, with the engine read.
fn forecast_of(driver: &mut Driver, request: Option<&Request>) -> Forecast {
    let (mut snapshot, _) = driver.world.observe(&driver.flushed.clone());
    snapshot.engine = driver.world.engine.observe(driver.world.now);
    forecast(&snapshot, &driver.policy, request)
}

/// What blocks, every step (`Now Restart a b`), and the nodes that are never restarted.
fn summary(forecast: &Forecast) -> Vec<String> {
    let blocked = forecast.blocked_by.iter().map(|one| format!("blocked by {}", one.code.as_str()));
    let step = |step: &ForecastStep| {
        let names: Vec<&str> = step.nodes.iter().map(|node| node.name.as_str()).collect();
        format!("{:?} {:?} {}", step.when, step.kind, names.join(" "))
    };
    let never = forecast
        .never
        .iter()
        .map(|one| format!("never {} {}", one.node.as_deref().unwrap_or("-"), one.code.as_str()));
    let not_yet = forecast
        .not_yet
        .iter()
        .map(|one| format!("not yet {} {}", one.node.as_deref().unwrap_or("-"), one.code.as_str()));
    blocked.chain(forecast.steps.iter().map(step)).chain(not_yet).chain(never).collect()
}

#[test]
fn all_goes_in_order_and_everybody_waits_for_the_first() {
    let mut driver = pools();
    let seen = forecast_of(&mut driver, None);
    let order = [
        "Now Restart logs-warm-1",
        "Later Restart logs-warm-0",
        "Later Restart logs-hot-1",
        "Later Restart logs-hot-0",
        "Later Restart logs-master-2",
        "Later Restart logs-master-1",
        "Later Restart logs-master-0",
    ];
    assert_eq!(summary(&seen), order);
    assert_eq!(seen.waiting.len(), 6, "{seen:#?}");
    let first = &seen.waiting[0];
    assert_eq!(first.code.as_str(), "not_its_turn");
    assert_eq!(first.message, "logs-warm-1 goes first; its turn comes later");
}

/// Nobody is under way then, and the shards of the last one still come back: that needs only time.
#[test] // proves RULE-20
fn between_two_nodes_the_others_come_later_and_not_some_day() {
    let nodes = ["logs-0", "logs-1", "logs-2"].map(|name| (name, "master+data"));
    let mut driver = Driver::new(World::new(&nodes), Policy::default());
    driver.world.engine.shards.recovery = 60_000;
    play_line(&mut driver, "request rolling r1");
    let is_between = |driver: &Driver| {
        let ledger = driver.world.ledger();
        let is_finished = |member: &crate::Member| member.step == MemberStep::Finished;
        ledger.under_way().next().is_none() && ledger.members().any(is_finished)
    };
    assert!(driver.run(600_000, is_between));
    let seen = forecast_of(&mut driver, None);
    assert_eq!(summary(&seen), ["Later Restart logs-1", "Later Restart logs-0"]);
}

#[test]
fn what_holds_all_is_named_and_the_steps_are_told_beyond_it() {
    let mut driver = pools();
    play_line(&mut driver, "pause");
    let seen = forecast_of(&mut driver, None);
    assert_eq!(summary(&seen)[..2], ["blocked by paused", "Later Restart logs-warm-1"]);
    assert_eq!(seen.steps.len(), 7);
    let coordinated = asked(Strategy::Coordinated, Target::default());
    let seen = forecast_of(&mut driver, Some(&coordinated));
    let all = "logs-hot-0 logs-hot-1 logs-master-0 logs-master-1 logs-master-2 logs-warm-0 \
               logs-warm-1";
    assert_eq!(
        summary(&seen),
        [
            "blocked by paused".to_owned(),
            format!("Later Stop {all}"),
            "Later Start logs-master-0 logs-master-1 logs-master-2".to_owned(),
            "Later Start logs-hot-0 logs-hot-1 logs-warm-0 logs-warm-1".to_owned(),
        ]
    );
    assert!(seen.waiting.iter().all(|one| one.code.as_str() == "paused"), "{seen:#?}");
}

#[test]
fn a_request_behind_another_goes_when_that_is_over() {
    let mut driver = pools();
    play_line(&mut driver, "request rolling r1");
    driver.run(40_000, |_| false);
    for strategy in [Strategy::Rolling, Strategy::Coordinated] {
        let seen = forecast_of(&mut driver, Some(&asked(strategy, Target::default())));
        let lines = summary(&seen);
        assert_eq!(lines[0], "blocked by another_in_progress", "{lines:?}");
        assert!(seen.never.is_empty() && !seen.steps.is_empty(), "{seen:#?}");
        let starts = |step: &&ForecastStep| step.kind != ForecastStepKind::Start;
        let nodes = seen.steps.iter().filter(starts).flat_map(|step| &step.nodes).count();
        assert_eq!(nodes, 7, "{lines:?}");
        assert_eq!(seen.waiting.len(), 7);
    }
}

#[test]
fn a_coordinated_restart_names_the_one_that_is_in_the_way() {
    let mut driver = pools();
    play_line(&mut driver, "freeze manager logs-hot-1");
    driver.run(40_000, |_| false);
    let seen = forecast_of(&mut driver, Some(&asked(Strategy::Coordinated, Target::default())));
    assert!(seen.steps.is_empty(), "{seen:#?}");
    assert_eq!(seen.never.len(), 7, "{seen:#?}");
    let all = &seen.never[0];
    assert_eq!(all.code.as_str(), "manager_unreachable");
    assert!(all.message.starts_with("logs-hot-1: "), "{all:?}");
}

#[test]
fn a_zone_goes_as_one_or_names_who_keeps_it() {
    let mut driver = pools();
    for (node, zone) in [("logs-warm-0", "b"), ("logs-hot-0", "b"), ("logs-master-0", "b")] {
        driver.world.engine.roles.get_mut(node).unwrap().zone = Some(zone.into());
    }
    driver.policy.max_unavailable = crate::Share::Nodes(3);
    let target = Target { zone: Some("b".into()), ..Target::default() };
    let zone = asked(Strategy::Rolling, target);
    let seen = forecast_of(&mut driver, Some(&zone));
    let names = seen.steps.iter().flat_map(|step| &step.nodes).count();
    assert!(names == 3 || seen.never.len() == 3, "{seen:#?}");
    driver.world.engine.shards.add("once", 0, &["logs-hot-0"]);
    driver.world.settle();
    let seen = forecast_of(&mut driver, Some(&zone));
    assert!(seen.steps.is_empty(), "{seen:#?}");
    assert_eq!(summary(&seen)[0], "blocked by unreplicated_index");
    assert_eq!(seen.never.len(), 3, "{seen:#?}");
}

#[test]
fn a_request_that_is_refused_says_why() {
    let mut driver = pools();
    let target = Target { nodes: vec!["logs-9".into()], ..Target::default() };
    let seen = forecast_of(&mut driver, Some(&asked(Strategy::Rolling, target)));
    let blocker = seen.blocked_by.as_ref().expect("it is refused");
    assert_eq!(
        blocker.message,
        "the request is refused: there is no node logs-9 among the cluster's pods"
    );
    assert!(seen.steps.is_empty() && seen.never.is_empty());
    play_line(&mut driver, "delete the searchcluster");
    let seen = forecast_of(&mut driver, None);
    let blocker = seen.blocked_by.as_ref().expect("nothing begins");
    assert!(blocker.message.contains("is being deleted"), "{blocker:?}");
}

#[test] // proves RULE-20
fn a_copy_that_is_being_built_blocks_not_yet_and_a_lost_one_for_good() {
    let mut driver = pools();
    play_line(&mut driver, "a copy on logs-hot-0 fails");
    driver.run(1_000, |_| false);
    let lines = summary(&forecast_of(&mut driver, None));
    assert!(lines.iter().any(|line| line.starts_with("not yet logs-hot-1")), "{lines:?}");
    assert!(lines.iter().all(|line| !line.starts_with("never")), "{lines:?}");
    driver.run(60_000, |_| false);
    driver.world.engine.shards.add("once", 0, &["logs-hot-0"]);
    driver.world.settle();
    let lines = summary(&forecast_of(&mut driver, None));
    assert!(lines.contains(&"never logs-hot-0 unreplicated_index".to_owned()), "{lines:?}");
    assert!(lines.iter().all(|line| !line.starts_with("not yet")), "{lines:?}");
}

#[test] // proves RULE-20
fn a_node_is_not_judged_while_our_own_restart_keeps_the_engine_from_answering() {
    let nodes = ["logs-0", "logs-1", "logs-2", "logs-3"].map(|name| (name, "master+data"));
    let policy =
        Policy { allow_outage: true, max_unavailable: crate::Share::Nodes(3), ..Policy::default() };
    let mut driver = Driver::new(World::new(&nodes), policy);
    play_line(&mut driver, "request immediate r1");
    driver.run(18_000, |_| false);
    let seen = forecast_of(&mut driver, None);
    assert_eq!(summary(&seen)[1..], ["not yet logs-0 engine_unreachable"], "{seen:#?}");
    driver.run(10 * 60_000, |driver| driver.world.ledger().restart.is_none());
    play_line(&mut driver, "engine unreachable");
    let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
    let seen = forecast(&snapshot, &driver.policy, None);
    assert_eq!(seen.never.len(), 4, "nothing is under way: {seen:#?}");
}

#[test] // proves RESTART-148, RULE-20
fn the_roles_of_a_node_that_is_down_for_its_restart_are_known() {
    let nodes = ["logs-hot-0", "logs-hot-1", "logs-hot-2"].map(|name| (name, "data_hot"));
    let masters = ["logs-master-0", "logs-master-1", "logs-master-2"].map(|name| (name, "master"));
    let all: Vec<_> = nodes.into_iter().chain(masters).collect();
    let policy = Policy { max_unavailable: crate::Share::Nodes(2), ..Policy::default() };
    let mut driver = Driver::new(World::new(&all), policy);
    play_line(&mut driver, "request rolling r1 nodes logs-hot-2");
    play_line(&mut driver, "run until logs-hot-2 is starting");
    let (mut snapshot, _) = driver.world.observe(&driver.flushed.clone());
    snapshot.engine = driver.world.engine.observe(driver.world.now);
    let hot_0 = snapshot.pods.iter().find(|pod| pod.node == "logs-hot-0").unwrap().clone();
    let restart = snapshot.ledger.restart.as_mut().unwrap();
    restart.members.push(crate::Member {
        pod_uid: hot_0.uid,
        pod: hot_0.name,
        node: hot_0.node,
        ..crate::Member::default()
    });
    // Without the role of logs-hot-2, logs-hot-0 is the last of its tier that serves.
    snapshot.pods.iter_mut().find(|pod| pod.node == "logs-hot-1").unwrap().ready = false;
    let seen = forecast(&snapshot, &driver.policy, None);
    assert_eq!(
        summary(&seen),
        ["UnderWay Restart logs-hot-2", "Later Restart logs-hot-0"],
        "{seen:#?}"
    );
}

#[test]
fn a_rolling_restart_to_a_config_that_needs_all_at_once_is_refused_and_a_coordinated_one_is_not() {
    let mut driver = pools();
    for line in [
        "config v1 has cluster.name=logs",
        "config v2 has cluster.name=other",
        "run 1s",
        "change config logs-* v2",
    ] {
        play_line(&mut driver, line);
    }
    let rolling = asked(Strategy::Rolling, Target::default());
    let seen = forecast_of(&mut driver, Some(&rolling));
    assert_eq!(summary(&seen), ["blocked by invalid_input"]);
    let says = &seen.blocked_by.as_ref().unwrap().message;
    assert!(says.starts_with("the request is refused: cluster.name changes from"), "{says}");
    let coordinated = asked(Strategy::Coordinated, Target::default());
    let seen = forecast_of(&mut driver, Some(&coordinated));
    assert_eq!(seen.blocked_by, None);
    // All are stopped; then the masters are started, and then the others.
    assert_eq!(seen.steps.len(), 3, "{:?}", summary(&seen));
}

#[test]
fn a_snapshot_blocks_not_yet_and_a_gate_is_named_before_the_steps_that_follow() {
    let mut driver = pools();
    play_line(&mut driver, "a snapshot is taken of logs-hot-0");
    play_line(&mut driver, "gate backup closed");
    let rolling = asked(Strategy::Rolling, Target::default());
    let seen = forecast_of(&mut driver, Some(&rolling));
    let lines = summary(&seen);
    assert_eq!(lines[0], "blocked by gate_closed");
    let waits = "not yet logs-hot-0 do_not_interrupt_running_snapshot".to_owned();
    assert!(lines.contains(&waits), "{lines:?}");
    assert!(lines.iter().any(|line| line == "Later Restart logs-hot-1"), "{lines:?}");
    assert!(seen.never.is_empty(), "{lines:?}");
}

#[test] // proves UPDATE-32
fn the_step_and_the_fields_of_each_pod_are_told_whether_it_is_carried_out_or_not() {
    let mut driver = pools();
    for line in [
        "policy update relabel,restart,container",
        "pause",
        "template logs-warm-0 image=b",
        "template logs-hot-0 label=b",
        "template logs-hot-1 affinity=b",
    ] {
        play_line(&mut driver, line);
    }
    let seen = forecast_of(&mut driver, None);
    let nodes = seen.steps.iter().flat_map(|step| &step.nodes);
    let told: Vec<_> = nodes.map(|node| (node.name.as_str(), node.step, &node.because)).collect();
    let none = Vec::new();
    for told in &told {
        let expected = match told.0 {
            "logs-warm-0" => (told.0, UpdateStep::Container, &vec!["image a → b".to_owned()]),
            name => (name, UpdateStep::Restart, &none),
        };
        assert_eq!(*told, expected);
    }
    assert_eq!(told.len(), 7);
    let others = |forecast: &Forecast| -> Vec<String> {
        let line = |node: &ForecastNode| {
            format!("{} {}: {} ({})", node.name, node.step.name(), node.because[0], node.message)
        };
        forecast.other_updates.iter().map(line).collect()
    };
    let label = "logs-hot-0 relabel: label a → b (without a restart, once spec.paused is false)";
    let affinity = "logs-hot-1 replace: affinity a → b (not carried out: spec.update.allow does not have \
                    this step; add it there, or delete the pod yourself)";
    assert_eq!(others(&seen), [label, affinity]);

    let coordinated = asked(Strategy::Coordinated, Target::default());
    let image = "logs-warm-0 container: image a → b (a coordinated restart does not carry it out; another \
                 restart follows)";
    assert_eq!(others(&forecast_of(&mut driver, Some(&coordinated))), [label, affinity, image]);

    let nodes = vec!["logs-warm-1".to_owned()];
    let another = asked(Strategy::Rolling, Target { nodes, ..Target::default() });
    let image = "logs-warm-0 container: image a → b (with its restart)";
    assert_eq!(others(&forecast_of(&mut driver, Some(&another))), [label, affinity, image]);
}
