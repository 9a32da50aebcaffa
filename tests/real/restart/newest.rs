//! The newest engines: a rolling restart under load, which is what another version would change.

use super::fixture::Fixture;
use super::{load, on, rolling};
use crate::support::cluster::Flavor;

fn story(mut fixture: Fixture) {
    load::create(fixture.nodes()[0]);
    fixture.until_formed();
    let (seen, _) = rolling::restart(&mut fixture, "newest", 0, |_| {});
    assert!(rolling::was_limited(&seen, "newest"), "{seen:?}");
}

#[test] // proves RESTART-156
fn opensearch_3() {
    on("newest::opensearch_3", Flavor::OpenSearch3, story);
}

#[test] // proves RESTART-156
fn elasticsearch_9() {
    on("newest::elasticsearch_9", Flavor::Elasticsearch9, story);
}
