//! Reads answers that were recorded from real engines, and checks that our requests are the
//! recorded ones.

mod answers;
mod cluster;
mod excluded;
mod exclusions;
mod explain;
mod identify;
mod quorum;
mod running_snapshots;
mod settings;
mod shards;
mod store_types;
mod unauthorized;

use std::fs;

use super::answer::{Answer, Asked};
use super::transport::Call;

const OPENSEARCH_2: &str = "opensearch-2.19.3";
const OPENSEARCH_3: &str = "opensearch-3.2.0";
const ELASTICSEARCH_6: &str = "elasticsearch-6.8.23";
const ELASTICSEARCH_7: &str = "elasticsearch-7.17.29";
const ELASTICSEARCH_8: &str = "elasticsearch-8.19.0";
const ELASTICSEARCH_9: &str = "elasticsearch-9.1.0";
const ALL: [&str; 6] = [
    OPENSEARCH_2,
    OPENSEARCH_3,
    ELASTICSEARCH_6,
    ELASTICSEARCH_7,
    ELASTICSEARCH_8,
    ELASTICSEARCH_9,
];

/// The engine's recorded answer. Its file holds the request's first line, the request's body, the
/// status with the header `Allow`, if any, and the answer's body.
#[track_caller]
fn recorded(engine: &str, name: &str) -> Answer {
    let path =
        format!("{}/../../tests/fixtures/engines/{engine}/{name}.http", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).expect(&path);
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().expect("four parts").to_owned();
    let (what, _, status, body) = (line(), line(), line(), line());
    let (status, allow) = match status.split_once(" Allow: ") {
        Some((status, allow)) => (status.to_owned(), Some(allow.to_owned())),
        None => (status, None),
    };
    let what = what.split('?').next().unwrap().to_owned();
    let asked = Asked { what, endpoint: "http://10.0.0.7:9200".into(), shown: "the API key" };
    Answer { status: status.parse().unwrap(), allow, body: body.into(), asked }
}

/// The same, once it is certain that this request was the one recorded.
#[track_caller]
fn answer_to(call: &Call, engine: &str, name: &str) -> Answer {
    let path =
        format!("{}/../../tests/fixtures/engines/{engine}/{name}.http", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).expect(&path);
    let mut lines = text.lines().map(str::to_owned);
    let recorded = (lines.next().unwrap(), lines.next().unwrap());
    assert_eq!(call.as_recorded(), recorded, "{engine} {name}");
    self::recorded(engine, name)
}

/// An answer made up.
fn made_up(status: u16, body: &str) -> Answer {
    let asked = Asked {
        what: "GET /_cluster/health".into(),
        endpoint: "http://10.0.0.7:9200".into(),
        shown: "the user and password",
    };
    Answer { status, allow: None, body: body.to_owned().into(), asked }
}
