//! Forty years, with steps that come late, and with readers and mounts that lag.

use proptest::prelude::*;

use super::{DAY, HOUR, START, YEAR, authority, existing, good, serving};
use crate::{Authority, CertificateFacts, Id, Serving, Step, decide};

/// What is written, and how long after it was read or mounted.
struct Lagging<T> {
    now: T,
    before: Vec<(u64, T)>,
}

impl<T: Clone> Lagging<T> {
    fn set(&mut self, at: u64, next: T) {
        self.before.push((at, std::mem::replace(&mut self.now, next)));
    }

    /// All that somebody who is `lag` late may still have.
    fn may_have(&self, at: u64, lag: u64) -> Vec<T> {
        let late = self.before.iter().filter(|(until, _)| until + lag > at);
        late.map(|(_, old)| old.clone()).chain([self.now.clone()]).collect()
    }
}

struct World {
    now: u64,
    next_id: u8,
    authority: Authority,
    trusted: Lagging<Vec<Authority>>,
    serving: Lagging<Serving>,
    known: Vec<Authority>,
}

impl World {
    fn new() -> Self {
        let first = authority(1, START);
        Self {
            now: START,
            next_id: 2,
            authority: first,
            trusted: Lagging { now: vec![first], before: Vec::new() },
            serving: Lagging { now: serving(1, START), before: Vec::new() },
            known: vec![first],
        }
    }

    fn facts(&self) -> CertificateFacts {
        CertificateFacts {
            now: self.now,
            authority: existing(self.authority),
            trusted: existing(self.trusted.now.clone()),
            trusted_since: self.trusted.before.last().map_or(START, |(at, _)| *at),
            serving: existing(self.serving.now),
            ..good()
        }
    }

    /// One step; whether there was one.
    fn turn(&mut self) -> bool {
        let decision = decide(&self.facts());
        assert_eq!(decision.problems, [], "{:#?}", self.facts());
        match decision.step {
            None => return false,
            Some(Step::MakeAuthority) => {
                self.authority = authority(self.next_id, self.now);
                self.known.push(self.authority);
                self.next_id += 1;
            }
            Some(Step::Trust(ids)) => {
                let of = |id: &Id| *self.known.iter().find(|one| one.id == *id).unwrap();
                self.trusted.set(self.now, ids.iter().map(of).collect());
            }
            Some(Step::Issue) => {
                let mut next = serving(0, self.now);
                next.signed_by = Some(self.authority.id);
                self.serving.set(self.now, next);
            }
        }
        true
    }

    /// Every manager can be called by everybody.
    fn check(&self) {
        for serving in self.serving.may_have(self.now, DAY - HOUR) {
            let validity = serving.validity;
            assert!(validity.not_before <= self.now && self.now <= validity.not_after);
            for trusted in self.trusted.may_have(self.now, HOUR - 1) {
                let by = trusted.iter().find(|one| Some(one.id) == serving.signed_by);
                assert!(by.is_some_and(|by| self.now <= by.validity.not_after), "{serving:?}");
            }
        }
    }
}

proptest! {
    #[test] // proves RESTART-6
    fn every_manager_can_always_be_called(
        pauses in prop::collection::vec((1_u64..30 * DAY, any::<bool>()), 800..1500)
    ) {
        let mut world = World::new();
        for (pause, settles) in pauses {
            world.now += pause;
            if world.now > START + 40 * YEAR {
                break;
            }
            world.check();
            // Otherwise the process ends after one step.
            while world.turn() && settles {
                world.check();
            }
            world.check();
        }
        prop_assert!(world.next_id > 2, "no CA was changed");
    }
}
