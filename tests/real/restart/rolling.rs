//! One rolling restart with a changed config, and all checks during it and after it.

use stayput_restart::{Outcome, Strategy};

use super::fixture::{Fixture, NAMES};
use super::load::{self, Load, Work};
use super::sampler::{Sampler, Seen};
use super::step;

/// Carries it out while documents are written, from `first` on; `meanwhile` runs at the same time.
/// Returns what was seen, and the number of documents.
pub(super) fn restart(
    fixture: &mut Fixture,
    id: &str,
    first: usize,
    meanwhile: impl FnOnce(&mut Fixture),
) -> (Seen, usize) {
    let attribute = format!("node.attr.stayput: {id}");
    let expected = fixture.configure_all(&attribute, str::to_owned);
    let before = fixture.facts();
    let settings = fixture.settings();
    let master = fixture.engine("/_cluster/state/master_node")["master_node"].clone();
    let nodes = fixture.nodes();
    let (load, sampler) = (Load::start(&nodes, first), Sampler::start(&nodes));

    fixture.ask(id, "rolling", &[]);
    meanwhile(fixture);
    let entry = fixture.until_over(id);
    let seen = sampler.end();
    let work = load.end();
    let Work { written, retries, searches, failed_searches } = work;
    step(&format!(
        "{id} took {} s; written {written} with {retries} retries; {searches} searches, \
         {failed_searches} failed; {} observations: {:?}",
        entry.seconds, seen.answers, seen.health
    ));
    assert_eq!((entry.outcome, entry.nodes), (Outcome::Done, 3), "{entry:?}");
    assert_eq!(entry.strategy, Strategy::Rolling);
    // The last node's copies may still be recovering, or the engine may be slow to answer.
    let not_green = ["the cluster was not green yet", "the cluster's health was not known"];
    let is_not_green = not_green.iter().any(|text| entry.reason.starts_with(text));
    assert!(entry.reason.is_empty() || is_not_green, "{entry:?}");

    // Three new processes with the requested config, under the same managers.
    let after = fixture.facts();
    for name in NAMES {
        let (was, is) = (&before[name], &after[name]);
        assert!(is.manager_pid.is_some());
        assert_eq!((was.manager_pid, &was.boot), (is.manager_pid, &is.boot), "{name}");
        assert_ne!(was.run, is.run, "{name}");
        assert!(is.ephemeral.is_some() && was.ephemeral != is.ephemeral, "{name}: {is:?}");
        assert_eq!(was.id, is.id, "{name}");
        assert_eq!(is.checksum.as_ref(), Some(&expected[name]), "{name}");
        let last = fixture.last_restart(name);
        assert_eq!((last.id.as_str(), last.outcome), (id, Outcome::Done), "{name}");
    }
    // One at a time, and the elected master is not the first if all may be restarted. Later it waits
    // only for nodes that nothing else blocks.
    assert!(seen.answers > 20, "{seen:?}");
    for (color, number) in &seen.health {
        assert!(color == "green" || color == "yellow", "{:?}", seen.health);
        assert!(*number >= 2, "{:?}", seen.health);
    }
    assert!(
        seen.health.iter().any(|(_, number)| *number == 2),
        "no node was ever stopped: {seen:?}"
    );
    println!("elected: {master} at first, then {:?}", seen.masters);
    let went_first = after.values().min_by_key(|facts| &facts.started_at);
    assert_ne!(went_first.and_then(|facts| facts.id.as_deref()), master.as_str(), "{after:#?}");
    // Nothing is left over, nothing is lost.
    assert_eq!(fixture.settings(), settings);
    let status = fixture.status();
    assert!(status.ledger.debts.is_empty() && status.ledger.restart.is_none(), "{status:#?}");
    fixture.until_formed();
    load::assert_found(nodes[0], written);
    assert!(written > first + 50, "{written}");
    // While a primary moves, an answer may lack a shard; this must be rare.
    assert!(searches > 50 && failed_searches * 5 < searches, "{searches} {failed_searches}");
    (seen, written)
}

/// Whether allocation was limited for this restart, with our mark.
pub(super) fn was_limited(seen: &Seen, id: &str) -> bool {
    seen.settings.iter().any(|settings| {
        settings.contains(r#""cluster.routing.allocation.enable":"primaries""#)
            && settings.contains("cluster.metadata.stayput")
            && settings.contains(id)
    })
}
