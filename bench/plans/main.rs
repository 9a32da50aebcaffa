//! How long one plan takes, by the number of pods and by what is going on.
//!
//! Usage: `bench-plan [ROUNDS [SITUATION | forecast]]`. One line each: its name, then for 10, 100,
//! 1,000 and 2,000 pods the milliseconds of one `plan()`, of one `report()` on it, and of the sum
//! over all bytes of the snapshot. The sum shows how long reading each byte once takes; only small
//! snapshots fit into the caches. Each is the lowest of the rounds, because other programs on the
//! machine only add time.

mod expected;
mod quiet;
mod reading;
mod restarting;
mod situations;
mod special;
mod under_way;

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};

use stayput_restart::{Action, Plan, Saved, Snapshot, forecast, plan, report};

use situations::SITUATIONS;

const SIZES: [usize; 4] = [10, 100, 1_000, stayput_restart::MAX_MEMBERS];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds = std::env::args().nth(1).map_or(Ok(20), |rounds| rounds.parse::<u32>())?;
    let wanted = std::env::args().nth(2);
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    if wanted.as_deref() == Some("forecast") {
        return foretell(rounds);
    }
    for (name, situation, comes) in SITUATIONS.into_iter().filter(|(name, ..)| is_wanted(name)) {
        let mut line = name.to_owned();
        for nodes in SIZES {
            let (snapshot, policy) = situation(nodes);
            let planned = plan(&snapshot, &policy);
            assert!(comes(&planned, nodes), "{name}: not what {nodes} nodes come to");
            assert!(covers(&snapshot, &planned), "{name}: a pod is missing in the plan");
            // Large ones need no repetition, because the clock is precise enough for them.
            let rounds = if nodes >= stayput_restart::MAX_MEMBERS { rounds.min(8) } else { rounds };
            let planning = lowest(rounds, || drop(black_box(plan(&snapshot, &policy))));
            let reporting =
                lowest(rounds, || drop(black_box(report(&snapshot, &policy, &planned))));
            let reading = lowest(rounds, || _ = black_box(reading::sum(&snapshot)));
            line.push_str(&format!(" {planning:.4} {reporting:.4} {reading:.4}"));
            // With real-time priority the kernel ends what does not pause for ten seconds
            // (`lib/undisturbed.py`).
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("{line}");
    }
    Ok(())
}

/// Milliseconds of a dry run of the whole restart, and bytes of the snapshot as it is saved.
fn foretell(rounds: u32) -> Result<(), Box<dyn std::error::Error>> {
    for nodes in SIZES {
        let (snapshot, policy) = quiet::requested(nodes);
        let mut steps = 0;
        let took = lowest(rounds, || steps = forecast(&snapshot, &policy, None).steps.len());
        let saved = serde_json::to_vec(&Saved::new(snapshot, policy))?.len();
        println!("forecast {nodes} {steps} steps {took:.2} ms, saved {saved} bytes");
    }
    Ok(())
}

/// Milliseconds of the fastest round.
fn lowest(rounds: u32, mut work: impl FnMut()) -> f64 {
    let times = (0..rounds.max(1)).map(|_| {
        let began = Instant::now();
        work();
        began.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Every pod is acted on, or has a reason why not.
fn covers(snapshot: &Snapshot, planned: &Plan) -> bool {
    let acted = planned.actions.iter().filter_map(Action::pod);
    let told = planned.waiting.iter().filter_map(|waiting| waiting.pod.as_deref());
    let all: BTreeSet<&str> = acted.chain(told).collect();
    snapshot.pods.iter().all(|pod| all.contains(pod.uid.as_str()))
}
