//! The engine versions that may follow the current one.
//!
//! An engine refuses to start on data of a newer engine, or of one that is too old. Sources:
//! * Elasticsearch 7: "from 6.8", and "the upgrade path from 6.8 to 7.0 is not supported"
//!   (elastic.co/guide/en/elasticsearch/reference/7.16/setup-upgrade.html). 7.0 takes 6.7
//!   (github.com/elastic/elasticsearch/pull/46720).
//! * Elasticsearch 8: "you must first upgrade to 7.17" (…/reference/8.18/rolling-upgrades.html).
//! * Elasticsearch 9: 9.0 takes 8.18 and not 8.19, later ones 8.19
//!   (github.com/elastic/docs-content/issues/1685, …/pull/2296).
//! * OpenSearch: one major version at a time, and 3 takes 2.19
//!   (docs.opensearch.org/latest/migrate-or-upgrade/rolling-upgrade).

use crate::{Cluster, Distribution, Engine, Observed, ObservedSet, Refusal, Version};

pub(crate) fn engine_changes(cluster: &Cluster, observed: &Observed) -> Vec<Refusal> {
    let engine = &cluster.engine;
    let mut sets = observed.sets.values();
    let other =
        sets.find_map(|set| set.distribution().filter(|was| *was != engine.distribution.name()));
    let other = other.map(|was| {
        let problem =
            format!("the nodes run {was}, which cannot become another engine: write {was}");
        Refusal::new("spec.engine.distribution", problem)
    });
    // Between distributions, versions say nothing.
    let refused = other.or_else(|| version_change(engine, observed));
    refused.into_iter().collect()
}

fn version_change(engine: &Engine, observed: &Observed) -> Option<Refusal> {
    let versions = || observed.sets.values().filter_map(ObservedSet::version);
    let (oldest, newest) = (versions().min()?, versions().max()?);
    let wanted = engine.version;
    let first = oldest_before(engine);
    let older = older_than(engine)
        .filter(|(too_new, _)| versions().any(|there| there.0 < wanted.0 && there >= *too_new));
    let name = engine.distribution.name();
    let problem = if newest > wanted {
        format!(
            "downgrade: is {wanted}, and nodes were declared with {newest}. An engine cannot read what \
             a newer one has written: write {newest} or a higher version"
        )
    } else if let Some((_, Version(major, minor, _))) = older {
        format!(
            "is {wanted}, which is older than {name} {newest}, and does not start on what that has \
             written: write {major}.{minor} or a higher version"
        )
    } else if oldest < first {
        let Version(major, minor, _) = first;
        format!(
            "is {wanted}, and nodes were declared with {oldest}. {name} {wanted} starts on what {major}.{minor} \
             or a later one has written: upgrade to that first"
        )
    } else {
        return None;
    };
    Some(Refusal::new("spec.engine.version", problem))
}

/// The oldest version that the engine can follow.
fn oldest_before(engine: &Engine) -> Version {
    use Distribution::{Elasticsearch, OpenSearch};
    match (engine.distribution, engine.version) {
        (Elasticsearch, Version(7, 0, _)) => Version(6, 7, 0),
        (Elasticsearch, Version(7, ..)) => Version(6, 8, 0),
        (Elasticsearch, Version(8, ..)) => Version(7, 17, 0),
        (Elasticsearch, Version(9, 0, _)) => Version(8, 18, 0),
        (Elasticsearch, Version(9, ..)) => Version(8, 19, 0),
        (OpenSearch, Version(3, ..)) => Version(2, 19, 0),
        (Elasticsearch | OpenSearch, Version(major, ..)) => Version(major.saturating_sub(1), 0, 0),
    }
}

/// The oldest release of the major version before that came out after this one, and what can follow it.
fn older_than(engine: &Engine) -> Option<(Version, Version)> {
    match (engine.distribution, engine.version) {
        (Distribution::Elasticsearch, Version(7, 0, _)) => {
            Some((Version(6, 8, 0), Version(7, 1, 0)))
        }
        (Distribution::Elasticsearch, Version(9, 0, _)) => {
            Some((Version(8, 19, 0), Version(9, 1, 0)))
        }
        _ => None,
    }
}
