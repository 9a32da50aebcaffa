//! Each condition of settled yellow, alone.

use super::{code, engine, message, names, shards, unknown};
use crate::rules::settled::SettledYellow;
use crate::{Allocation, AllocationBefore, Code, Color, Engine, Health, Predicate};

const RESTLESS: Option<Code> = Some(Code::Predicate(Predicate::Yellow));
const NOT_KNOWN: Option<Code> = Some(Code::EngineUnreachable);

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

/// The engine's health, to change something.
fn numbers(engine: &mut Engine) -> &mut Health {
    engine.health.as_mut().expect("a health")
}

/// Sets `cluster.routing.allocation.enable`.
fn allocation(engine: &mut Engine, persistent: Option<&str>, transient: Option<&str>) {
    let setting = AllocationBefore {
        persistent: persistent.map(str::to_owned),
        transient: transient.map(str::to_owned),
    };
    engine.allocation = Ok(Allocation { setting, ..Allocation::default() });
}

#[test] // proves RULE-10
fn settled_is_when_nothing_is_going_to_happen() {
    let cases: [(&str, Change, Option<Code>); 18] = [
        ("at rest", |_| (), None),
        ("initializing", |e| numbers(e).initializing = 3, RESTLESS),
        ("relocating", |e| numbers(e).relocating = 1, RESTLESS),
        ("delayed", |e| numbers(e).delayed = 1, RESTLESS),
        ("looking for shards", |e| numbers(e).in_flight_fetch = 1, RESTLESS),
        ("queue not calm", |e| numbers(e).timed_out = true, RESTLESS),
        ("a data node missing", |e| numbers(e).data_nodes = 2, RESTLESS),
        ("one data node more than expected", |e| numbers(e).data_nodes = 4, None),
        ("no copy is unassigned by now", |e| numbers(e).unassigned = 0, None),
        ("a primary nowhere", |e| e.shards = Ok(shards(&["events/0: ?* logs-1"])), RESTLESS),
        ("a primary being built", |e| e.shards = Ok(shards(&["events/0: ~logs-0*"])), None),
        (
            "allocation of primaries only, transient",
            |e| allocation(e, Some("all"), Some("primaries")),
            RESTLESS,
        ),
        ("allocation off, persistent", |e| allocation(e, Some("none"), None), RESTLESS),
        (
            "a persistent setting that a transient one overrules",
            |e| allocation(e, Some("none"), Some("ALL")),
            None,
        ),
        ("allocation not known", |e| e.allocation = Err(unknown()), NOT_KNOWN),
        ("shards not known", |e| e.shards = Err(unknown()), NOT_KNOWN),
        ("health not known", |e| e.health = Err(unknown()), NOT_KNOWN),
        (
            "restless and partly not known: not known",
            |e| {
                numbers(e).initializing = 1;
                e.shards = Err(unknown());
            },
            NOT_KNOWN,
        ),
    ];
    for (what, change, answer) in cases {
        let mut engine = yellow();
        change(&mut engine);
        assert_eq!(code(&SettledYellow::of(&engine, &names(""), 3).check()), answer, "{what}");
    }
}

#[test]
fn fenced_nodes_are_not_expected_and_do_not_stand_in_for_others() {
    let (all, without_c) = (
        "a master elected data, b data, c data, m master, co",
        "a master elected data, b data, m master, co",
    );
    let cases = [
        ("c is kept_stopped and gone; a and b are expected and in", without_c, 2, "c", 2, None),
        (
            "c is kept_stopped and gone, and so is b",
            "a master elected data, m master",
            1,
            "c",
            2,
            RESTLESS,
        ),
        ("c is kept_stopped and still in: all three are", all, 3, "c", 2, None),
        (
            "c is kept_stopped and still in; the health counts one of the others out",
            all,
            2,
            "c",
            2,
            RESTLESS,
        ),
        ("m is kept_stopped and still in: it holds no data", all, 3, "m", 3, None),
        ("co is kept_stopped and still in: it has no roles at all", all, 3, "co", 3, None),
    ];
    for (what, nodes, data_nodes, kept_stopped, expected, answer) in cases {
        let mut engine = engine(nodes);
        numbers(&mut engine).color = Color::Yellow;
        numbers(&mut engine).data_nodes = data_nodes;
        let settled = SettledYellow::of(&engine, &names(kept_stopped), expected);
        assert_eq!(code(&settled.check()), answer, "{what}");
    }
}

#[test]
fn the_sentence_names_the_numbers() {
    let mut engine = yellow();
    numbers(&mut engine).initializing = 3;
    numbers(&mut engine).data_nodes = 2;
    engine.shards = Ok(shards(&["events/0: logs-0* logs-1 ?", "events/1: logs-1* ~logs-2 ?"]));
    allocation(&mut engine, None, Some("primaries"));
    let found = message(SettledYellow::of(&engine, &names(""), 3).check());
    for text in [
        "2 shard copies unassigned, 3 shard copies initializing, the first is shard 1 of events on logs-2",
        "2 of 3 data nodes are in",
        "cluster.routing.allocation.enable is \"primaries\"",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
}
