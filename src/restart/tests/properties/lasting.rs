//! One fault that stays. Nothing repairs it: the restart ends all the same, or the status says what it
//! waits for; and nothing is limited any more that can be set back.

use proptest::prelude::*;

use super::super::driver::Driver;
use super::super::scenario::play_line;
use super::{Case, always_the_same, case};
use crate::{Direction, Report, plan, report};

/// In how many phases it must have ended, or be shown: each node of a rolling restart may take one to
/// stop, one to start and one to be brought back.
const PHASES: u64 = 16;

#[derive(Debug, Clone, Copy)]
enum Lasting {
    NeverReady(usize),
    NoneReady,
    FailsOnItsConfig(usize),
    WritesRefused,
    Unreachable,
    /// Its manager; its pod stays listed.
    Silent(usize),
    /// Of the pods from this one on.
    PatchesRefused(usize),
}

impl Lasting {
    fn happens(self, driver: &mut Driver) {
        let count = driver.world.pods.len();
        let name = |node: usize| format!("logs-{}", node % count);
        let line = match self {
            Self::NeverReady(node) => format!("engine of {} is never ready on v2", name(node)),
            Self::NoneReady => "engine of logs-* is never ready on v2".into(),
            Self::FailsOnItsConfig(node) => format!("engine of {} refuses v2", name(node)),
            Self::WritesRefused => "engine refuses writes".into(),
            Self::Unreachable => "engine unreachable".into(),
            Self::Silent(node) => format!("freeze manager {}", name(node)),
            Self::PatchesRefused(first) => {
                for node in (first % count..count).rev().skip(1) {
                    play_line(driver, &format!("patches of {} are refused", name(node)));
                }
                format!("patches of {} are refused", name(count - 1))
            }
        };
        play_line(driver, &line);
    }
}

fn lasting() -> impl Strategy<Value = Lasting> {
    prop_oneof![
        2 => (0_usize..5).prop_map(Lasting::NeverReady),
        1 => Just(Lasting::NoneReady),
        2 => (0_usize..5).prop_map(Lasting::FailsOnItsConfig),
        2 => Just(Lasting::WritesRefused),
        1 => Just(Lasting::Unreachable),
        2 => (0_usize..5).prop_map(Lasting::Silent),
        2 => (0_usize..5).prop_map(Lasting::PatchesRefused),
    ]
}

/// What the status says now.
fn seen(driver: &mut Driver) -> Report {
    let (snapshot, _) = driver.world.observe(&driver.flushed.clone());
    report(&snapshot, &driver.policy, &plan(&snapshot, &driver.policy))
}

fn play(case: &Case, at: u64, lasting: Lasting) -> (String, Vec<String>) {
    let mut driver = case.driver();
    case.asks(&mut driver);
    driver.run(at, |_| false);
    lasting.happens(&mut driver);
    let long = PHASES * driver.policy.phase_timeout;
    driver.run(long, |_| false);
    driver.laws.check(&driver.world, &driver.policy);
    let mut wrong = std::mem::take(&mut driver.wrong);
    wrong.append(&mut driver.laws.wrong);
    let report = seen(&mut driver);
    let is_shown = report
        .conditions
        .iter()
        .any(|one| matches!(one.kind.as_str(), "Blocked" | "Degraded") && one.status == "True");
    if driver.world.ledger().restart.is_some() && !is_shown {
        wrong.push(format!("L1: it goes on, and nothing says why: {:?}", report.message));
    }
    let goes_forward = driver.world.ledger().restart.as_ref();
    let goes_forward = goes_forward.is_some_and(|one| one.direction == Direction::Forward);
    let answers = driver.world.engine.observe(driver.world.now).is_ok();
    if matches!(lasting, Lasting::Silent(_)) && goes_forward && answers {
        wrong.push("L1: it goes forward, and waits without end for a manager".into());
    }
    let is_tight = driver.world.engine.allocation.marker.is_some();
    // Without a master nobody can set it back.
    if is_tight && driver.world.engine.takes_writes() {
        wrong.push("L5: allocation is still limited".into());
    }
    if is_tight && !is_shown {
        wrong.push(format!("L5: allocation is limited unseen: {:?}", report.message));
    }
    (driver.page.text().to_owned(), wrong)
}

proptest! {
    #![proptest_config(always_the_same(48))]

    #[test] // proves RESTART-56, RESTART-96
    fn a_fault_that_stays_ends_every_restart_or_is_shown(
        case in case(),
        at in 0_u64..60_000,
        lasting in lasting(),
    ) {
        let case = Case { change: true, faults: Vec::new(), ..case };
        let (page, wrong) = play(&case, at, lasting);
        prop_assert!(wrong.is_empty(), "{lasting:?} {}\n{page}", wrong.join("\n"));
    }
}
