//! The story: its order, its beginning and its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stayput::api::State;

use crate::ground::Ground;
use crate::manager::{self, Manager};
use crate::narrator::Narrator;
use crate::processes;
use crate::stage::{Stage, expect, mount};
use crate::volume::Volume;

mod config;
mod trouble;

/// Plays everything, and leaves no process and no file behind, however it ends.
pub(crate) fn play() -> Result<(), String> {
    let began = Instant::now();
    // Whatever the manager should lose falls to us, so that nothing escapes the last look.
    prctl::set_child_subreaper(true).map_err(|error| format!("PR_SET_CHILD_SUBREAPER: {error}"))?;
    let ground = Ground::new().map_err(|error| format!("no temporary directory: {error}"))?;
    let mut narrator = Narrator::new();
    let interrupted = Arc::new(AtomicBool::new(false));
    let result = perform(&ground, &mut narrator, &interrupted);
    let left_behind = processes::end_all();
    if interrupted.load(Ordering::SeqCst) {
        return Err("it was interrupted".to_owned());
    }
    match result {
        Ok(starts) => {
            expect(left_behind, 0, "the number of processes left behind")?;
            close(&narrator, starts, began);
            Ok(())
        }
        Err(sentence) => {
            let log = ground.end_of_log();
            Err(format!("{sentence}\n\nThe last lines of manager and engine:\n{log}"))
        }
    }
}

/// All steps; how often the engine was started.
fn perform(
    ground: &Ground,
    narrator: &mut Narrator,
    interrupted: &Arc<AtomicBool>,
) -> Result<u64, String> {
    narrator.step("Start: the manager starts the engine on the config that is mounted");
    let mut volume = Volume::new(ground.mount());
    let checksum = mount(&mut volume, ground, "node.attr.zone: a")?;
    show_command(ground, narrator);
    let manager = Manager::start(ground)?;
    kill_when_interrupted(manager.pid, interrupted)?;
    let mut stage = Stage::new(ground, narrator, volume, manager);
    let status = stage.wait_until("a running engine", |status| status.state == State::Running)?;
    expect(status.ready, Some(true), "ready")?;
    let run = status.run.ok_or("there is no run in the status")?;
    expect(run.checksum.as_deref(), Some(checksum.as_str()), "the checksum the engine runs with")?;
    stage.engine("PUT", "/docs/1", Some(&json!({"kept": true})), "/result")?;
    stage.narrator.proved(
        "it is ready, on exactly this config: `sha256sum * | sha256sum` gives the same checksum",
    );

    config::swap_is_seen(&mut stage)?;
    config::wrong_checksum_is_refused(&mut stage)?;
    config::bad_config_is_held_and_rolled_back(&mut stage)?;
    trouble::deaf_engine_is_killed(&mut stage)?;
    trouble::orphans_are_reaped(&mut stage)?;
    end(&mut stage)
}

/// The command as a person would type it, with the temporary directory as `$T`.
fn show_command(ground: &Ground, narrator: &Narrator) {
    let directory = ground.path().display().to_string();
    narrator.tell(&format!("$ T={directory}"));
    narrator.tell("$ stayput run \\");
    for (option, value) in manager::options(ground) {
        let value = value.unwrap_or_default().replace(&directory, "$T");
        narrator.tell(format!("      {option} {value}").trim_end());
    }
    narrator.tell("      -- standin-engine --config $T/config");
}

fn end(stage: &mut Stage<'_>) -> Result<u64, String> {
    stage.narrator.step("The end: the pod is deleted while the engine is stopped");
    let starts = stage.status()?.starts;
    stage.narrator.tell(&format!("$ kill -TERM {}", stage.manager_pid()));
    expect(stage.manager.terminate()?, 0, "the manager's exit code")?;
    stage.narrator.proved("the manager exits with 0: nothing was running, nothing was lost");
    Ok(starts)
}

/// A demo that is broken off fails at its next call and then cleans up as after any failure.
fn kill_when_interrupted(manager: Pid, interrupted: &Arc<AtomicBool>) -> Result<(), String> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(|error| error.to_string())?;
    let interrupted = Arc::clone(interrupted);
    thread::spawn(move || {
        if signals.forever().next().is_some() {
            interrupted.store(true, Ordering::SeqCst);
            // It is not collected before the demo ends, so the pid is still its own.
            let _ = kill(manager, Signal::SIGKILL);
        }
    });
    Ok(())
}

fn close(narrator: &Narrator, starts: u64, began: Instant) {
    let (steps, seconds) = (narrator.steps(), began.elapsed().as_secs_f32());
    println!();
    narrator.tell(&format!(
        "{steps} steps in {seconds:.1} s: {starts} engine runs under one manager, whose pid never \
         changed."
    ));
    narrator.tell("No process and no file is left. README.md goes on with a real engine.");
}
