//! The story: its order, its beginning and its end.

use std::path::PathBuf;
use std::time::Instant;

use nix::sys::prctl;
use serde_json::json;
use stayput_api::State;

use crate::cluster;
use crate::ground::Ground;
use crate::interruption::Interruption;
use crate::manager::{self, Manager};
use crate::narrator::Narrator;
use crate::processes;
use crate::stage::{Stage, expect, mount};
use crate::volume::Volume;

mod config;
mod trouble;

/// Plays everything, and leaves no process and no file behind, however it ends.
pub(crate) fn play(engine: Option<PathBuf>) -> Result<(), String> {
    let began = Instant::now();
    let engine = cluster::Engine::new(engine)?;
    // Whatever the manager should lose falls to us, so that nothing escapes the last look.
    prctl::set_child_subreaper(true).map_err(|error| format!("PR_SET_CHILD_SUBREAPER: {error}"))?;
    let ground = Ground::new().map_err(|error| format!("no temporary directory: {error}"))?;
    let mut narrator = Narrator::new();
    let interruption = Interruption::watch()?;
    let result = perform(&ground, &mut narrator, &interruption)
        .map_err(|sentence| {
            let log = ground.end_of_log();
            format!("{sentence}\n\nThe last lines of manager and engine:\n{log}")
        })
        .and_then(|starts| {
            cluster::play(&engine, &mut narrator, &interruption)?;
            Ok(starts)
        });
    let left_behind = processes::end_all();
    if interruption.came() {
        return Err("it was interrupted".to_owned());
    }
    let starts = result?;
    expect(left_behind, 0, "the number of processes left behind")?;
    close(&narrator, starts, began);
    Ok(())
}

/// All steps; how often the engine was started.
fn perform(
    ground: &Ground,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<u64, String> {
    narrator.act("First act: one engine, and the manager that is PID 1 of its pod");
    narrator.step("Start: the manager starts the engine on the config that is mounted");
    let mut volume = Volume::new(ground.mount());
    let checksum = mount(&mut volume, ground, "node.attr.zone: a")?;
    show_command(ground, narrator);
    let manager = Manager::start(ground)?;
    interruption.kills(manager.pid);
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
    end(&mut stage, interruption)
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

fn end(stage: &mut Stage<'_>, interruption: &Interruption) -> Result<u64, String> {
    stage.narrator.step("The end: the pod is deleted while the engine is stopped");
    let starts = stage.status()?.starts;
    stage.narrator.tell(&format!("$ kill -TERM {}", stage.manager_pid()));
    interruption.forgets(stage.manager_pid());
    expect(stage.manager.terminate()?, 0, "the manager's exit code")?;
    stage.narrator.proved("the manager exits with 0: nothing was running, nothing was lost");
    Ok(starts)
}

fn close(narrator: &Narrator, starts: u64, began: Instant) {
    let (steps, seconds) = (narrator.steps(), began.elapsed().as_secs_f32());
    println!();
    narrator.tell(&format!(
        "{steps} steps in {seconds:.1} s: {starts} engine runs under one manager, and a cluster of \
         three restarted twice, without another pid of a manager or another uid of a pod."
    ));
    narrator.tell("No process and no file is left. README.md goes on with a real engine.");
}
