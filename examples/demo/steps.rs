//! The steps of the demo, in order.

use std::path::PathBuf;
use std::time::Instant;

use nix::sys::prctl;
use serde_json::json;
use stayput_api::State;
use stayput_standin::harness::kubelet::AtomicWriter;

use crate::cluster;
use crate::error::{Context, Error, Result};
use crate::files::PodFiles;
use crate::interruption::Interruption;
use crate::manager::{self, Manager};
use crate::narrator::Narrator;
use crate::pod::{Pod, expect, mount};
use crate::processes;

mod config;
mod misbehaving;

/// Runs all steps. Leaves no process and no file behind, also if it fails.
pub(crate) fn run(engine: Option<PathBuf>) -> Result<()> {
    let began = Instant::now();
    let engine = cluster::Engine::new(engine)?;
    // A process that the manager has lost becomes our child, so it is found at the end.
    prctl::set_child_subreaper(true).context("PR_SET_CHILD_SUBREAPER")?;
    let files = PodFiles::new().context("no temporary directory")?;
    let mut narrator = Narrator::new();
    let interruption = Interruption::watch()?;
    let result = one_engine(&files, &mut narrator, &interruption)
        .map_err(|error| {
            let log = files.end_of_log();
            Error::from(format!("{error}\n\nThe last lines of manager and engine:\n{log}"))
        })
        .and_then(|starts| {
            cluster::run(&engine, &mut narrator, &interruption)?;
            Ok(starts)
        });
    let left_behind = processes::end_all();
    if interruption.came() {
        return Err("it was interrupted".into());
    }
    let starts = result?;
    expect(left_behind, 0, "the number of processes left behind")?;
    close(&narrator, starts, began);
    Ok(())
}

/// The steps with one engine; returns how often it was started.
fn one_engine(
    files: &PodFiles,
    narrator: &mut Narrator,
    interruption: &Interruption,
) -> Result<u64> {
    narrator.part("Part 1: one engine, and the manager that is PID 1 in its pod");
    narrator.step("Start: the manager starts the engine with the mounted config");
    let mut volume = AtomicWriter::new(&files.mount());
    let checksum = mount(&mut volume, files, "node.attr.zone: a")?;
    show_command(files, narrator);
    let manager = Manager::start(files)?;
    interruption.register(manager.pid);
    let mut pod = Pod::new(files, narrator, volume, manager);
    let status = pod.wait_until("a running engine", |status| status.state == State::Running)?;
    expect(status.ready, Some(true), "ready")?;
    let run = status.run.ok_or("there is no run in the status")?;
    expect(run.checksum.as_deref(), Some(checksum.as_str()), "the checksum the engine runs with")?;
    pod.engine("PUT", "/docs/1", Some(&json!({"kept": true})), "/result")?;
    pod.narrator.proved(
        "the engine is ready; `sha256sum * | sha256sum` gives the checksum that the status shows",
    );

    config::swap_is_seen(&mut pod)?;
    config::wrong_checksum_is_refused(&mut pod)?;
    config::bad_config_is_held_and_rolled_back(&mut pod)?;
    misbehaving::engine_that_ignores_term_is_killed(&mut pod)?;
    misbehaving::orphans_are_reaped(&mut pod)?;
    end(&mut pod, interruption)
}

/// The command as a user would type it, with the temporary directory as `$T`.
fn show_command(files: &PodFiles, narrator: &Narrator) {
    let directory = files.path().display().to_string();
    narrator.note(&format!("$ T={directory}"));
    narrator.note("$ stayput run \\");
    for (option, value) in manager::options(files) {
        let value = value.unwrap_or_default().replace(&directory, "$T");
        narrator.note(format!("      {option} {value}").trim_end());
    }
    narrator.note("      -- standin-engine --config $T/config");
}

fn end(pod: &mut Pod<'_>, interruption: &Interruption) -> Result<u64> {
    pod.narrator.step("End: the pod is deleted while the engine is stopped");
    let starts = pod.status()?.starts;
    pod.narrator.note(&format!("$ kill -TERM {}", pod.manager_pid()));
    interruption.unregister(pod.manager_pid());
    expect(pod.manager.terminate()?, 0, "the manager's exit code")?;
    pod.narrator.proved("the manager exits with code 0");
    Ok(starts)
}

fn close(narrator: &Narrator, starts: u64, began: Instant) {
    let (steps, seconds) = (narrator.steps(), began.elapsed().as_secs_f32());
    println!();
    narrator.note(&format!(
        "{steps} steps in {seconds:.1} s: one manager started its engine {starts} times, and a cluster of \
         three nodes restarted twice. Every manager kept its pid, and every pod its uid."
    ));
    narrator.note("No process and no file is left. README.md continues with a real engine.");
}
