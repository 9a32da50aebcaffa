//! Snapshots as files: they are read as they were written, and other files are refused.

use super::driver::Driver;
use super::scenario::{moment, play_line};
use super::world::World;
use crate::{Known, Policy, Predicate, Saved, Share, Snapshot, Unknown, annotation, plan};

/// A cluster of three pools in the middle of a rolling restart, with an index without replicas.
fn sample() -> Saved {
    let mut world = World::new(&[
        ("logs-hot-0", "data_hot+data_content"),
        ("logs-hot-1", "data_hot+data_content"),
        ("logs-master-0", "master"),
        ("logs-master-1", "master"),
        ("logs-master-2", "master"),
        ("logs-warm-0", "data_warm"),
        ("logs-warm-1", "data_warm"),
    ]);
    world.engine.shards.add("once", 0, &["logs-hot-1"]);
    world.settle();
    let mut driver = Driver::new(world, Policy::default());
    play_line(&mut driver, "change config logs-* v2");
    play_line(&mut driver, "request rolling 4f2a91c07b3e");
    driver.run(50_000, |_| false);
    let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
    Saved::new(snapshot, driver.policy)
}

fn again(saved: &Saved) -> Saved {
    Saved::parse(&serde_json::to_string(saved).unwrap()).unwrap()
}

#[test]
fn it_comes_back_as_it_was() {
    let saved = sample();
    assert!(saved.snapshot.engine.is_ok() && saved.snapshot.ledger.restart.is_some());
    assert_eq!(again(&saved), saved);
    let mut odd = saved.clone();
    let unknown = |message: &str| Unknown { message: message.into() };
    if let Ok(engine) = &mut odd.snapshot.engine {
        engine.health = Err(unknown("not in time"));
        engine.shards = Err(unknown("not in time"));
        engine.records = Ok(Some(Vec::new()));
    }
    odd.snapshot.pods[0].manager = Err(unknown("refused"));
    odd.policy.max_unavailable = Share::Percent(25);
    let names = format!("{},nonsense", Predicate::Yellow.name());
    odd.policy.disabled = crate::Disabled::by_annotation(&names);
    assert_eq!(again(&odd), odd);
    odd.snapshot.engine = Err(unknown("nobody answers"));
    assert_eq!(again(&odd), odd);
    let text = serde_json::to_string(&odd).unwrap();
    assert!(text.contains(r#""engine":{"unknown":"nobody answers"}"#), "{text}");
}

#[test]
fn what_is_no_snapshot_is_told_so() {
    let text = serde_json::to_string(&sample()).unwrap();
    let wrong = |text: &str| Saved::parse(text).unwrap_err().to_string();
    assert!(wrong("").contains("this is not a snapshot"), "{}", wrong(""));
    assert!(wrong("{}").contains("kubectl stayput snapshot"), "{}", wrong("{}"));
    let later = text.replacen(r#""format":1"#, r#""format":2"#, 1);
    let error = wrong(&later);
    assert!(error.contains("has format 2") && error.contains("reads format 1"), "{error}");
    let half = &text[..text.len() / 2];
    assert!(wrong(half).contains("this is not a snapshot"), "{}", wrong(half));
    let damaged = text.replacen(r#""ready":"#, r#""redy":"#, 1);
    let error = wrong(&damaged);
    assert!(error.contains("is damaged: missing field `ready`"), "{error}");
}

/// The schema is generated from the types, so the saved sample must have every field it requires, and
/// no other field.
#[test]
fn the_sample_has_the_fields_of_the_schema() {
    let sample = include_str!("../../../proto/samples/snapshot.json");
    let sample: serde_json::Value = serde_json::from_str(sample).unwrap();
    let schema = crate::snapshot_schema();
    assert_eq!(super::schema::faults(&schema, &sample), Vec::<String>::new());
    let mut unknown = sample.clone();
    unknown["snapshot"]["pods"][0]["manager"]["known"]["mood"] = "good".into();
    assert_eq!(super::schema::faults(&schema, &unknown).len(), 1);
    let mut missing = sample;
    missing["policy"].as_object_mut().unwrap().remove("drain");
    assert_eq!(super::schema::faults(&schema, &missing), ["/policy has no drain"]);
}

/// A snapshot contains no names and values of Secrets: there is no field for them.
#[test]
fn no_field_is_for_anything_secret() {
    fn names(value: &serde_json::Value, found: &mut Vec<String>) {
        if let Some(properties) = value.get("properties").and_then(|all| all.as_object()) {
            found.extend(properties.keys().cloned());
        }
        match value {
            serde_json::Value::Object(all) => all.values().for_each(|one| names(one, found)),
            serde_json::Value::Array(all) => all.iter().for_each(|one| names(one, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    names(&crate::snapshot_schema(), &mut found);
    names(&schemars::schema_for!(crate::Member).to_value(), &mut found);
    assert!(found.iter().any(|name| name == "annotations"), "{found:?}");
    for name in found {
        let name = name.to_lowercase();
        for word in ["secret", "token", "password", "credential", "bearer", "auth", "key", "env"] {
            assert!(!name.contains(word), "the field {name}");
        }
    }
}

/// In the middle of an update, with the pod and the ledger: only digests, from which the same plan is made.
#[test] // proves UPDATE-84
fn no_value_of_a_variable_is_saved() {
    let (snapshot, policy) = moment(&[
        "three nodes",
        "policy update relabel,restart",
        "template logs-* variable=hunter2",
        "run until logs-2 is stopped",
        "run 500ms",
    ]);
    let whole = serde_json::to_string(&snapshot).unwrap();
    assert!(snapshot.pods.iter().any(|pod| pod.annotations.contains_key(annotation::ENVIRONMENT)));
    assert!(whole.contains("VARIABLE"));
    let saved = Saved::new(snapshot.clone(), policy.clone());
    let written = serde_json::to_string(&saved).unwrap();
    assert!(!written.contains("VARIABLE"), "{written}");
    assert_eq!(plan(&saved.snapshot, &policy).waiting, plan(&snapshot, &policy).waiting);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a test reads and writes its sample")]
fn the_sample_is_as_it_is_written_today() {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/samples/snapshot.json");
    let text = format!("{:#}\n", serde_json::to_value(sample()).unwrap());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    // The version in it is that of the program that wrote it.
    let known: Known<Snapshot> = Saved::parse(&found)
        .map(|saved| saved.snapshot)
        .map_err(|error| Unknown { message: error.to_string() });
    assert_eq!(
        known.as_ref(),
        Ok(&sample().snapshot),
        "proto/samples/snapshot.json: `UPDATE_DOCS=1 cargo test -p stayput-restart saved`"
    );
}
