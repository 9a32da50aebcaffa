//! Engines that misbehave: deaf to TERM, and leaving processes about.

use serde_json::json;
use stayput_api::{Code, State};

use super::config::mounted;
use crate::processes::expect_childless;
use crate::stage::{Stage, expect};

/// Enough to be a storm on a small machine, and over in a second.
const ORPHANS: u32 = 200;

pub(super) fn deaf_engine_is_killed(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.narrator.step("An engine of two JVMs that ignores TERM, with five children that do too");
    restart_with(
        stage,
        "standin.launcher: true\nstandin.ignore_term: true\nstandin.setsid_children: 5",
    )?;
    let status = stage.stop(&json!({"grace": "500ms"}))?;
    if let Some(line) = stage.ground.logged("Full thread dump") {
        stage.narrator.quote(&line);
    }
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.signal, exit.reason.as_str()), (Some(9), "killed"), "last_exit")?;
    expect(exit.took_ms >= 500, true, "the whole grace was given, it")?;
    expect_childless(stage.manager_pid())?;
    stage.narrator.proved(&format!(
        "it had its 500 ms and a thread dump, then all of its processes were killed ({} ms)",
        exit.took_ms
    ));

    // As a reconciler that was cut off and now repeats a request of long ago.
    let stale = stage.post("start", &json!({"sequence": 1}))?;
    stale.refused(Code::StaleSequence)?;
    stage.narrator.proved("a request from the past is refused: requests are fenced by sequence");
    Ok(())
}

pub(super) fn orphans_are_reaped(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.narrator.step(&format!("{ORPHANS} orphans, and a helper that outlives its engine"));
    restart_with(stage, &format!("standin.orphans: {ORPHANS}\nstandin.helper: true"))?;
    let status = stage.stop(&json!({}))?;
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.code, exit.reason.as_str()), (Some(143), "stopped"), "last_exit")?;
    let [helper] = &exit.stragglers[..] else {
        return Err(format!("one straggler, the helper, was expected: {:?}", exit.stragglers));
    };
    stage.narrator.tell(&format!("straggler: pid {}, {}", helper.pid, helper.command));
    expect_childless(stage.manager_pid())?;
    stage
        .narrator
        .proved("no orphan is left, not even as a zombie; the helper was ended and named");
    Ok(())
}

/// Mounts another config and gets the engine to run on it, from whatever it is doing.
fn restart_with(stage: &mut Stage<'_>, settings: &str) -> Result<(), String> {
    let checksum = stage.mount(settings)?;
    stage.narrator.tell(&format!("elasticsearch.yml: {}", settings.replace('\n', ", ")));
    stage.stop(&json!({}))?;
    stage.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    let status = stage.start(&json!({"checksum": checksum}))?;
    expect(status.state, State::Running, "state")
}
