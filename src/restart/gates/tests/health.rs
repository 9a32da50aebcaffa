//! Green, or yellow for good.

use std::collections::BTreeSet;

use super::{code, engine, names, sentence, shards, unknown};
use crate::restart::gate::Gate;
use crate::restart::gates::Settled;
use crate::restart::{Allocation, AllocationBefore, Code, Color, Engine, Health};

const HEALTH: Option<Code> = Some(Code::Health);

/// A change of the cluster.
type Change = fn(&mut Engine);

/// Three data nodes, two copies of nothing assigned for want of a fourth: yellow, and at rest.
fn yellow() -> Engine {
    let mut engine = engine("logs-0 master data elected, logs-1 master data, logs-2 master data");
    let health = numbers(&mut engine);
    health.color = Color::Yellow;
    health.unassigned = 2;
    engine.shards = Ok(shards(&["events/0: logs-0* logs-1 ?", "events/1: logs-1* logs-2 ?"]));
    engine
}

/// Its health, to change something.
fn numbers(engine: &mut Engine) -> &mut Health {
    engine.health.as_mut().expect("a health")
}

/// Sets `cluster.routing.allocation.enable`.
fn allocation(engine: &mut Engine, persistent: Option<&str>, transient: Option<&str>) {
    let setting = AllocationBefore {
        persistent: persistent.map(str::to_owned),
        transient: transient.map(str::to_owned),
    };
    engine.allocation = Ok(Allocation { setting, marker: None });
}

/// What the rule says of one node.
fn health(
    engine: &Engine,
    candidate: &str,
    is_healthy: bool,
    fenced: &BTreeSet<String>,
    expected_data: usize,
) -> Gate {
    Settled::of(engine, fenced, expected_data).gate(candidate, is_healthy)
}

#[test]
fn a_healthy_node_goes_when_green_or_settled_and_a_broken_one_in_any_color() {
    let cases: [(&str, Change, Option<Code>, Option<Code>); 18] = [
        ("green", |e| numbers(e).color = Color::Green, None, None),
        (
            "green, shards moving",
            |e| {
                numbers(e).color = Color::Green;
                numbers(e).relocating = 4;
            },
            None,
            None,
        ),
        ("yellow and at rest", |_| (), None, None),
        ("red", |e| numbers(e).color = Color::Red, HEALTH, None),
        ("some other color", |e| numbers(e).color = Color::Unknown, HEALTH, None),
        ("initializing", |e| numbers(e).initializing = 3, HEALTH, None),
        ("relocating", |e| numbers(e).relocating = 1, HEALTH, None),
        ("delayed", |e| numbers(e).delayed = 1, HEALTH, None),
        ("looking for shards", |e| numbers(e).in_flight_fetch = 1, HEALTH, None),
        ("queue not calm", |e| numbers(e).timed_out = true, HEALTH, None),
        ("a data node missing", |e| numbers(e).data_nodes = 2, HEALTH, None),
        ("a primary nowhere", |e| e.shards = Ok(shards(&["events/0: ?* logs-1"])), HEALTH, None),
        (
            "allocation of primaries only, transient",
            |e| allocation(e, Some("all"), Some("primaries")),
            HEALTH,
            None,
        ),
        ("allocation off, persistent", |e| allocation(e, Some("none"), None), HEALTH, None),
        (
            "a persistent setting that a transient one overrules",
            |e| allocation(e, Some("none"), Some("ALL")),
            None,
            None,
        ),
        (
            "allocation not known",
            |e| e.allocation = Err(unknown()),
            Some(Code::EngineUnreachable),
            None,
        ),
        ("shards not known", |e| e.shards = Err(unknown()), Some(Code::EngineUnreachable), None),
        (
            "health not known",
            |e| e.health = Err(unknown()),
            Some(Code::EngineUnreachable),
            Some(Code::EngineUnreachable),
        ),
    ];
    for (what, change, healthy, broken) in cases {
        let mut engine = yellow();
        change(&mut engine);
        let answer = |is_healthy| code(&health(&engine, "logs-1", is_healthy, &names(""), 3));
        assert_eq!(answer(true), healthy, "{what}, a healthy node");
        assert_eq!(answer(false), broken, "{what}, a node that is not healthy");
    }
}

#[test]
fn green_needs_neither_shards_nor_allocation() {
    let mut engine = yellow();
    numbers(&mut engine).color = Color::Green;
    engine.shards = Err(unknown());
    engine.allocation = Err(unknown());
    assert_eq!(health(&engine, "logs-1", true, &names(""), 3), Ok(()));
}

#[test]
fn fenced_nodes_are_not_expected_and_do_not_stand_in_for_others() {
    let (all, without_c) = (
        "a master elected data, b data, c data, m master",
        "a master elected data, b data, m master",
    );
    let cases = [
        ("c is fenced and gone; a and b are expected and in", without_c, 2, "c", 2, None),
        ("c is fenced and gone, and so is b", "a master elected data, m master", 1, "c", 2, HEALTH),
        ("c is fenced and still in: all three are", all, 3, "c", 2, None),
        (
            "c is fenced and still in; the health counts one of the others out",
            all,
            2,
            "c",
            2,
            HEALTH,
        ),
        ("m is fenced and still in: it holds no data", all, 3, "m", 3, None),
    ];
    for (what, nodes, data_nodes, fenced, expected, answer) in cases {
        let mut engine = engine(nodes);
        numbers(&mut engine).color = Color::Yellow;
        numbers(&mut engine).data_nodes = data_nodes;
        assert_eq!(code(&health(&engine, "a", true, &names(fenced), expected)), answer, "{what}");
    }
}

#[test]
fn the_sentence_names_the_node_and_the_numbers() {
    let mut engine = yellow();
    numbers(&mut engine).initializing = 3;
    numbers(&mut engine).data_nodes = 2;
    allocation(&mut engine, None, Some("primaries"));
    let told = sentence(health(&engine, "logs-1", true, &names(""), 3));
    for words in [
        "logs-1 is not stopped",
        "2 unassigned",
        "3 shards initializing",
        "2 of 3 data nodes are in",
        "cluster.routing.allocation.enable is \"primaries\"",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
}
