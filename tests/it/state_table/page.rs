//! The page itself.

use std::fmt::Write as _;

use stayput_api::{ConfigChoice, Span, StartRequest, State, StopRequest};
use stayput_manager::lifecycle::{Event, OnExit, Phase, Timer};

use super::drive::{Drive, Left, MOUNTED};

const HEAD: &str = "\
# States, requests and events

Generated from `src/manager/lifecycle` by a test, which also compares: what stands here is what the
code does. The sequence is checked before all of this, in every state: a request with a lower or a reused
sequence is refused, a repeated one is answered and does not act again.

## What a request gets

The answer comes when the request is written down (202: it is in progress, 200: what was asked for
already holds); after the arrow stands the state that follows. A `stop` is never refused because of
the state. With `?wait=` the answer comes when what was asked for holds.

";

const MIDDLE: &str = "
* *other checksum* is one that is neither mounted nor running.
* After TERM to the manager every `start` gets 503 `terminating`; a `stop` is still taken.
* While a request is being decided (a config is verified, the intent is written, the engine is
  spawned) the next request waits. If 64 wait already, further ones get 503 `too_many_waiting`.
* When the journal cannot be written, a `stop` gets 503 `journal_unavailable` and nothing is
  stopped; a `start` is carried out, and the status says `durable: false`.
* As long as the journal could not be read, because its disk has not answered since the manager started, the engine
  is `failed` (`journal_unreadable`), and a `stop`, or a `start` with a sequence, gets 503 `journal_unavailable`. A
  `start` without a sequence is carried out, and the journal is not followed then; a refused one changes nothing.
  Otherwise the journal is followed when the disk answers, as at any other start.
* A `stop` with `resumeAfter` is followed by a start without a request, unless one is accepted before, or another
  caller has stopped the engine without `resumeAfter`. If it
  is due during the stop, or the container is down then, it is made as soon as that is over; if that is more
  than ten seconds late, or the manager was frozen meanwhile, it waits a minute for a request first. If its
  config is neither mounted nor the last good one, or no process can be made, it is not made (`resume_refused`) and
  tried again.
* A start that nobody requests, and for which processes, memory, descriptors or room for the copy of the config are
  missing, is tried again every minute (`backoff`) and does not count; with `--on-exit exit` the manager ends. After a
  requested start such a lack is reported, and the engine is held.
* After TERM to the manager only `--termination-grace` limits the stop: without it, KILL is left to the kubelet, and
  `--grace` does not count.
* A drain that a `stop` asked for and that is longer than `--drain` is cut to that by TERM to the manager.
* After a `stop` with `exit` the manager ends with 0, when the engine is stopped and the answer is sent.
* The container killed as a whole leaves no end of the run: the next manager shows `ended_with_manager`. A
  requested start that was never ready and ended so three times in a row is held.
* `POST /es/upgrade` ([upgrade.md](upgrade.md)) gets 202 while the engine is `running`, `stopped` or `failed` and
  nothing is being decided or written, and 409 `not_at_rest` otherwise. Until it is known whether another version can
  take over, the next request waits. While it takes over, what waits gets 503 `unavailable`.

## What happens next

Phases are finer than states. Where it depends on `--on-exit`, each case has a row. \"Held\" means
`failed` with a reason, until the next start or stop request.

";

pub(crate) fn page() -> String {
    format!("{HEAD}{}{MIDDLE}{}", requests(), events())
}

fn requests() -> String {
    let with = |checksum: &str| StartRequest {
        checksum: Some(checksum.to_owned()),
        ..StartRequest::default()
    };
    let last_good = StartRequest { config: ConfigChoice::LastGood, ..StartRequest::default() };
    let starts = [StartRequest::default(), with(MOUNTED), with("sha256:other"), last_good];
    let mut table = "| state | `stop` | `start` | `start`, mounted checksum | \
                     `start`, other checksum | `start`, last good |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for state in State::ALL {
        let mut rows: Vec<String> = Phase::ALL
            .into_iter()
            .filter(|phase| phase.state() == state)
            .map(|phase| {
                let before = some_way_into(phase);
                let mut cells = vec![answer(before.clone(), Drive::stop)];
                for start in &starts {
                    cells.push(answer(before.clone(), |drive| drive.start(start.clone())));
                }
                cells.join(" | ")
            })
            .collect();
        rows.dedup();
        assert_eq!(rows.len(), 1, "phases of {state:?} answer differently: the page must tell");
        for row in rows {
            _ = writeln!(table, "| `{}` | {row} |", state.as_str());
        }
    }
    table
}

fn some_way_into(phase: Phase) -> Drive {
    let policies = [OnExit::Exit, OnExit::Restart];
    let mut ways = policies.into_iter().filter_map(|on_exit| Drive::into(phase, on_exit));
    ways.next().expect("every phase can be reached")
}

fn answer(mut drive: Drive, ask: impl Fn(&mut Drive)) -> String {
    let before = drive.lifecycle.state();
    ask(&mut drive);
    let after = drive.lifecycle.state();
    let answer = match drive.reply.expect("every request is answered") {
        Ok(accepted) if accepted.done => "200".to_owned(),
        Ok(_) => "202".to_owned(),
        Err(refusal) => format!("{} `{}`", refusal.code.http_status(), refusal.code.as_str()),
    };
    if before == after { answer } else { format!("{answer} → `{}`", after.as_str()) }
}

type Can = fn(&Drive) -> bool;
type Happens = fn(&mut Drive);

/// An event, and whether it can happen in a phase.
struct Happening {
    name: &'static str,
    can: Can,
    happens: Happens,
}

fn timer(name: &'static str, timer: Timer) -> Happening {
    // One entry per timer, because a function pointer has no captures.
    let (can, happens): (Can, Happens) = match timer {
        Timer::Drain => (|d| runs(d, Timer::Drain), |d| d.fires(Timer::Drain)),
        Timer::Grace => (|d| runs(d, Timer::Grace), |d| d.fires(Timer::Grace)),
        Timer::Dump => (|d| runs(d, Timer::Dump), |d| d.fires(Timer::Dump)),
        Timer::TreeGrace => (|d| runs(d, Timer::TreeGrace), |d| d.fires(Timer::TreeGrace)),
        Timer::Kill => (|d| runs(d, Timer::Kill), |d| d.fires(Timer::Kill)),
        Timer::Settle => (|d| runs(d, Timer::Settle), |d| d.fires(Timer::Settle)),
        Timer::Prove => (|d| runs(d, Timer::Prove), |d| d.fires(Timer::Prove)),
        Timer::Keep => (|d| runs(d, Timer::Keep), |d| d.fires(Timer::Keep)),
        Timer::Backoff => (|d| runs(d, Timer::Backoff), |d| d.fires(Timer::Backoff)),
        Timer::Resume => (|d| runs(d, Timer::Resume), |d| d.fires(Timer::Resume)),
        Timer::Journal => (|d| runs(d, Timer::Journal), |d| d.fires(Timer::Journal)),
        Timer::Rewrite => (|d| runs(d, Timer::Rewrite), |d| d.fires(Timer::Rewrite)),
        Timer::Prepare => (|d| runs(d, Timer::Prepare), |d| d.fires(Timer::Prepare)),
        Timer::Upgrade => (|d| runs(d, Timer::Upgrade), |d| d.fires(Timer::Upgrade)),
    };
    Happening { name, can, happens }
}

fn runs(drive: &Drive, timer: Timer) -> bool {
    drive.due(timer).is_some()
}

fn events() -> String {
    let alive: Can = |drive| drive.lifecycle.leader_is_alive();
    let happening = |name, can, happens| Happening { name, can, happens };
    let all: Vec<Happening> = vec![
        happening(
            "the probe answers, or it lived 10 s without one",
            |drive| drive.lifecycle.phase() == Phase::Starting,
            |drive| drive.event(Event::Ready),
        ),
        happening(
            "the engine ends after a requested start",
            |drive| drive.lifecycle.phase() == Phase::Starting,
            |drive| {
                drive.stop();
                drive.leader_ends(143, Left::Nothing);
                drive.start(StartRequest::default());
                drive.actions.clear();
                drive.leader_ends(1, Left::Nothing);
            },
        ),
        happening("the engine ends", alive, |drive| drive.leader_ends(1, Left::Nothing)),
        happening("the launcher ends, the server lives on", alive, |drive| {
            drive.leader_ends(1, Left::Server);
        }),
        happening("leader and server end, helpers live on", alive, |drive| {
            drive.leader_ends(1, Left::Straggler);
        }),
        happening(
            "the last process ends",
            |drive| drive.lifecycle.is_ending() && !drive.lifecycle.leader_is_alive(),
            Drive::last_process_ends,
        ),
        timer("the drain is over", Timer::Drain),
        timer("the grace is over", Timer::Grace),
        timer("the dump had its time", Timer::Dump),
        timer("the tree's grace is over", Timer::TreeGrace),
        timer("KILL had its time", Timer::Kill),
        timer("it was up for a minute", Timer::Prove),
        timer("the back-off is over", Timer::Backoff),
        happening(
            "`resumeAfter` has passed",
            |drive| drive.lifecycle.phase() == Phase::Stopped,
            |drive| {
                let resume_after = Some(Span(1000));
                drive.stop_with(StopRequest { resume_after, ..StopRequest::default() });
                drive.fires(Timer::Resume);
            },
        ),
        happening(
            "a stop with `exit`",
            |drive| drive.lifecycle.phase() == Phase::Stopped,
            |drive| drive.stop_with(StopRequest { exit: true, ..StopRequest::default() }),
        ),
        happening("TERM to the manager", |_| true, |drive| drive.event(Event::Terminate)),
        happening(
            "a second TERM",
            |drive| drive.lifecycle.run().is_some(),
            |drive| {
                drive.event(Event::Terminate);
                drive.actions.clear();
                let grace = drive.due(Timer::Grace);
                drive.event(Event::Terminate);
                if drive.due(Timer::Grace) != grace {
                    drive.actions.push("what is left of the grace is cut to the tree's".to_owned());
                }
            },
        ),
        happening("the container is killed and comes back", |_| true, Drive::comes_back),
    ];
    let mut table = "| phase | event | what follows |\n|---|---|---|\n".to_owned();
    for phase in Phase::ALL {
        for event in &all {
            for (policies, outcome) in outcomes(phase, event) {
                let name = name(phase);
                _ = writeln!(table, "| {name} | {}{policies} | {outcome} |", event.name);
            }
        }
    }
    table
}

/// What follows, in one row if it is the same for every `on_exit`.
fn outcomes(phase: Phase, event: &Happening) -> Vec<(String, String)> {
    let mut outcomes: Vec<(String, String)> = vec![];
    for (option, on_exit) in
        [("exit", OnExit::Exit), ("restart", OnExit::Restart), ("hold", OnExit::Hold)]
    {
        let Some(mut drive) = Drive::into(phase, on_exit) else {
            continue;
        };
        if (event.can)(&drive) {
            (event.happens)(&mut drive);
            outcomes.push((format!(", `--on-exit {option}`"), outcome(phase, &drive)));
        }
    }
    let agree = outcomes.windows(2).all(|pair| pair[0].1 == pair[1].1);
    if agree {
        outcomes.truncate(1);
        for (policies, _) in &mut outcomes {
            policies.clear();
        }
    }
    outcomes
}

fn outcome(before: Phase, drive: &Drive) -> String {
    let after = drive.lifecycle.phase();
    let mut parts = drive.actions.clone();
    let held = drive.lifecycle.intent().held.as_ref();
    if let Some(held) = held.filter(|_| after != before) {
        parts.push(format!("held: `{}`", held.code.as_str()));
    }
    parts.dedup();
    let actions = parts.join("; ");
    match (after == before, actions.is_empty()) {
        (true, true) => "stays".to_owned(),
        (true, false) => actions,
        (false, true) => format!("→ {}", name(after)),
        (false, false) => format!("→ {}; {actions}", name(after)),
    }
}

/// The phase, and the state that users see if its name differs.
fn name(phase: Phase) -> String {
    let own = format!("{phase:?}").to_lowercase();
    let state = phase.state().as_str();
    if own == state { own } else { format!("{own} (`{state}`)") }
}
