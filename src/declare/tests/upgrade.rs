//! Over which versions an engine is upgraded.

use super::{made, usual};
use crate::Distribution::{self, Elasticsearch, OpenSearch};
use crate::{Version, plan};

/// Why the upgrade is refused.
fn refused(distribution: Distribution, from: Version, to: Version) -> Option<String> {
    let mut cluster = usual();
    for set in &mut cluster.node_sets {
        // Each of these engines knows them.
        set.config.clear();
    }
    cluster.engine.distribution = distribution;
    cluster.engine.version = from;
    let there = made(&cluster);
    cluster.engine.version = to;
    let refusals = plan(&cluster, &there).err()?;
    let [refusal] = &refusals[..] else { panic!("{refusals:#?}") };
    assert_eq!(refusal.field, "spec.engine.version");
    Some(refusal.problem.clone())
}

#[test] // proves DECLARE-25
fn the_versions_that_the_engines_start_on_are_taken() {
    for (distribution, from, to) in [
        (Elasticsearch, Version(6, 7, 2), Version(7, 0, 1)),
        (Elasticsearch, Version(6, 8, 0), Version(7, 1, 0)),
        (Elasticsearch, Version(6, 8, 23), Version(7, 17, 29)),
        (Elasticsearch, Version(7, 17, 0), Version(8, 19, 0)),
        (Elasticsearch, Version(7, 2, 0), Version(7, 17, 0)),
        (Elasticsearch, Version(8, 0, 0), Version(8, 19, 0)),
        (Elasticsearch, Version(8, 18, 0), Version(9, 0, 5)),
        (Elasticsearch, Version(9, 0, 5), Version(9, 1, 0)),
        (Elasticsearch, Version(8, 19, 0), Version(9, 2, 0)),
        (OpenSearch, Version(1, 3, 20), Version(2, 19, 3)),
        (OpenSearch, Version(2, 19, 0), Version(3, 2, 0)),
        (OpenSearch, Version(2, 19, 3), Version(2, 19, 3)),
        (OpenSearch, Version(3, 0, 0), Version(4, 0, 0)),
    ] {
        assert_eq!(refused(distribution, from, to), None, "{from} to {to}");
    }
}

#[test] // proves DECLARE-25
fn an_upgrade_that_leaves_versions_out_is_refused_with_the_next_one() {
    for (distribution, from, to, next) in [
        (Elasticsearch, Version(6, 6, 2), Version(7, 0, 0), "6.7"),
        (Elasticsearch, Version(6, 7, 2), Version(7, 1, 0), "6.8"),
        (Elasticsearch, Version(6, 8, 0), Version(8, 19, 0), "7.17"),
        (Elasticsearch, Version(7, 16, 3), Version(8, 0, 0), "7.17"),
        (Elasticsearch, Version(8, 17, 0), Version(9, 0, 0), "8.18"),
        (Elasticsearch, Version(8, 18, 0), Version(9, 1, 0), "8.19"),
        (OpenSearch, Version(1, 3, 20), Version(3, 0, 0), "2.19"),
        (OpenSearch, Version(2, 18, 0), Version(3, 0, 0), "2.19"),
        (OpenSearch, Version(2, 19, 3), Version(4, 0, 0), "3.0"),
    ] {
        let problem = refused(distribution, from, to).expect("it is refused");
        let words = format!("starts on what {next} or a later one has written");
        assert!(problem.contains(&words), "{from} to {to}: {problem}");
    }
}

/// A release that came out after the next major version began.
#[test] // proves DECLARE-25
fn an_upgrade_to_an_older_release_is_refused_with_one_that_is_not_older() {
    for (from, to, later) in
        [(Version(6, 8, 0), Version(7, 0, 1), "7.1"), (Version(8, 19, 0), Version(9, 0, 5), "9.1")]
    {
        let problem = refused(Elasticsearch, from, to).expect("it is refused");
        let words = format!("is {to}, which is older than elasticsearch {from}");
        assert!(problem.contains(&words), "{problem}");
        assert!(problem.contains(&format!("write {later} or a higher version")), "{problem}");
    }
}
