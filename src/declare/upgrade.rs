//! Which engine may follow the one that is there.
//!
//! Sources: the makers' documents of upgrades. An engine refuses to start on what another one has written
//! that is newer, or too old.

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
    let problem = if newest > wanted {
        format!(
            "downgrade: is {wanted}, and nodes were declared with {newest}. An engine cannot read what \
             a newer one has written: write {newest} or a higher version"
        )
    } else {
        let first = oldest_before(engine);
        if oldest >= first {
            return None;
        }
        let Version(major, minor, _) = first;
        format!(
            "is {wanted}, and nodes were declared with {oldest}. {} {wanted} starts on what {major}.{minor} \
             or a later one has written: upgrade to that first",
            engine.distribution.name()
        )
    };
    Some(Refusal::new("spec.engine.version", problem))
}

/// The oldest version that the engine can follow.
fn oldest_before(engine: &Engine) -> Version {
    use Distribution::{Elasticsearch, OpenSearch};
    match (engine.distribution, engine.version) {
        (Elasticsearch, Version(7, ..)) => Version(6, 8, 0),
        (Elasticsearch, Version(8, ..)) => Version(7, 17, 0),
        (Elasticsearch, Version(9, 0, _)) => Version(8, 18, 0),
        (Elasticsearch, Version(9, ..)) => Version(8, 19, 0),
        (OpenSearch, Version(3, ..)) => Version(2, 19, 0),
        (Elasticsearch | OpenSearch, Version(major, ..)) => Version(major.saturating_sub(1), 0, 0),
    }
}
