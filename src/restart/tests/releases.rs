//! Two versions of the reconciler read what each other writes: an upgrade, and the way back, may come
//! in the middle of a restart. `tests/fixtures/ledgers` has what earlier versions wrote, and the
//! schemas of what they read and write; docs/upgrade.md says what may be changed.

mod accepts;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::Ledger;
use accepts::{faults, faults_of_older, unknown};

/// One version that must be read, and must be able to read.
struct Release {
    name: &'static str,
    ledgers: &'static str,
    schema: &'static str,
    /// Fields that were added since, which this version drops when it writes. Each is one that a
    /// restart can do without. None: this version cannot go on with a ledger of today.
    dropped: Option<&'static [&'static str]>,
}

macro_rules! release {
    ($name:literal, $dropped:expr) => {
        Release {
            name: $name,
            ledgers: include_str!(concat!("../../../tests/fixtures/ledgers/", $name, ".jsonl")),
            schema: include_str!(concat!(
                "../../../tests/fixtures/ledgers/",
                $name,
                ".schema.json"
            )),
            dropped: $dropped,
        }
    };
}

const RELEASES: [Release; 2] = [
    // It has no lines of members: it would not know who is under way.
    release!("2026-11-22", None),
    // It has none of these: with it, a change of ignored keys restarts nodes, windows hold none back,
    // no rule is skipped, no request allows an outage (such a restart waits), and a node that was kept
    // stopped is started on what is mounted. The last node of a restart shows the time of the whole
    // restart, no heap that stayed as it was is told, and volume claims are compared by name alone. What was
    // given up is known by its id alone. A deletion waits again for pods that cannot be patched. A container
    // beside the manager's is not waited for, what may pass is given up at once, and an image that admission
    // has changed is not set back. A template that has the data at another place is not held back. A start that
    // is owed keeps all nodes waiting and is made on whatever is mounted, and a manager that does not answer keeps
    // a coordinated restart waiting that goes forward. A pod that the apiserver refuses to set back is asked for
    // again and again, and its engine waits. Nodes that are brought back together count as under way there.
    release!(
        "2026-11-23",
        Some(&[
            "/debts/start/*/checksum",
            "/debts/start/*/since",
            "/debts/start/*/update/claimUids",
            "/debts/start/*/update/givenUp",
            "/debts/start/*/update/heap",
            "/debts/start/*/update/hinderedSince",
            "/debts/start/*/update/others",
            "/debts/start/*/update/stays",
            "/debts/start/*/update/update/dataElsewhere",
            "/debts/start/*/update/update/settings",
            "/history/*/allowedOutage",
            "/history/*/began",
            "/history/*/skippedRules",
            "/ignoredChanges",
            "/keptStopped/*/checksum",
            "/keptStopped/*/config",
            "/lastResult",
            "/oldPhases",
            "/queued/allowOutage",
            "/queued/outsideWindows",
            "/queued/skipRules",
            "/restart/members/*/silentSince",
            "/restart/members/*/update/claimUids",
            "/restart/members/*/update/givenUp",
            "/restart/members/*/update/heap",
            "/restart/members/*/update/hinderedSince",
            "/restart/members/*/update/others",
            "/restart/members/*/update/stays",
            "/restart/members/*/update/update/dataElsewhere",
            "/restart/members/*/update/update/settings",
            "/restart/request/allowOutage",
            "/restart/request/outsideWindows",
            "/restart/request/skipRules",
            "/restart/restarting/*/backOn",
            "/restart/restarting/*/ending",
            "/restart/restarting/*/givenBack",
            "/restart/restarting/*/step",
            "/stillShownSince",
            "/triedConfigs",
            "/triedTemplates",
        ])
    ),
];

/// What this version reads and what it writes.
fn schema() -> Value {
    let of = |settings: SchemaSettings| {
        settings.into_generator().into_root_schema_for::<Ledger>().to_value()
    };
    let settings = SchemaSettings::draft2020_12;
    let mut schema = json!({"reads": of(settings()), "writes": of(settings().for_serialize())});
    drop_words(&mut schema);
    schema
}

/// Takes out what is for people: another comment is no other form.
fn drop_words(schema: &mut Value) {
    if let Some(fields) = schema.as_object_mut() {
        fields.retain(|name, value| {
            let is_word = ["description", "title"].contains(&name.as_str()) && value.is_string();
            !is_word
        });
        fields.values_mut().for_each(drop_words);
    }
    schema.as_array_mut().into_iter().flatten().for_each(drop_words);
}

#[test] // proves RESTART-25
fn ledgers_of_earlier_versions_are_read_and_written_again() {
    for Release { name, ledgers, .. } in RELEASES {
        for line in ledgers.lines() {
            let ledger: Ledger = serde_json::from_str(line)
                .unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            let again = serde_json::to_value(&ledger).unwrap();
            assert_eq!(serde_json::from_value::<Ledger>(again.clone()).unwrap(), ledger, "{line}");
            // The form of members changed twice: see `ledger/written.rs`. Those that are brought back had an
            // entry each.
            let before: Value = serde_json::from_str(line).unwrap();
            let entries = before["restart"]["members"].as_array();
            if name != "2026-11-22" && entries.is_none_or(Vec::is_empty) {
                assert_eq!(again, before, "{name}: it is written in another form");
            }
        }
    }
}

#[test] // proves RESTART-25, UPDATE-39
fn what_earlier_versions_write_is_read_and_the_other_way_round() {
    let ours = schema();
    for Release { name, schema, dropped, .. } in RELEASES {
        let theirs: Value = serde_json::from_str(schema).unwrap();
        assert_eq!(faults(&ours["reads"], &theirs["writes"]), Vec::<String>::new(), "{name}");
        let Some(dropped) = dropped else { continue };
        let older = faults_of_older(&theirs["reads"], &ours["writes"]);
        assert_eq!(older, Vec::<String>::new(), "{name}");
        assert_eq!(unknown(&theirs["reads"], &ours["writes"]), dropped, "{name}");
    }
}

/// So that no change of the form goes unseen.
#[test] // proves RESTART-25
#[allow(clippy::disallowed_methods, reason = "a test reads and writes its golden file")]
fn the_form_is_the_one_that_is_written_down() {
    let file =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../proto/ledger.schema.json");
    let text = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(&file).unwrap_or_default() == text,
        "the form of the ledger has changed: read \"What of the ledger may be changed\" in \
         docs/upgrade.md, then `UPDATE_DOCS=1 cargo test -p stayput-restart releases`"
    );
}
