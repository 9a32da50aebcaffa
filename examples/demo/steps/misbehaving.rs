//! Engines that misbehave: one ignores SIGTERM, one leaves processes behind.

use serde_json::json;
use stayput_api::{Code, State};

use super::config::mounted;
use crate::error::Result;
use crate::pod::{Pod, expect};
use crate::processes::expect_childless;

/// Many for a small machine, but reaped within a second.
const ORPHANS: u32 = 200;
/// The name of their processes.
const ORPHAN: &str = "standin";

pub(super) fn engine_that_ignores_term_is_killed(pod: &mut Pod<'_>) -> Result<()> {
    pod.narrator.step("An engine of two processes and five children, which all ignore SIGTERM");
    restart_with(
        pod,
        "standin.launcher: true\nstandin.ignore_term: true\nstandin.setsid_children: 5",
    )?;
    let status = pod.stop(&json!({"grace": "500ms"}))?;
    if let Some(line) = pod.files.logged("Full thread dump") {
        pod.narrator.quote(&line);
    }
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.signal, exit.reason.as_str()), (Some(9), "killed"), "last_exit")?;
    expect(exit.took_ms >= 500, true, "the whole grace was given, it")?;
    expect_childless(pod.manager_pid())?;
    pod.narrator.proved(&format!(
        "the engine got 500 ms and a thread dump, then all of its processes were killed ({} ms)",
        exit.took_ms
    ));

    // Like a reconciler that lost its connection and now repeats an old request.
    let stale = pod.post("start", &json!({"sequence": 1}))?;
    stale.refused(Code::StaleSequence)?;
    pod.narrator.proved("409: an old request is refused, because its sequence is too low");
    Ok(())
}

pub(super) fn orphans_are_reaped(pod: &mut Pod<'_>) -> Result<()> {
    pod.narrator.step(&format!("{ORPHANS} orphans, and a helper that outlives its engine"));
    restart_with(pod, &format!("standin.orphans: {ORPHANS}\nstandin.helper: true"))?;
    let status = pod.stop(&json!({}))?;
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.code, exit.reason.as_str()), (Some(143), "stopped"), "last_exit")?;
    // On a busy machine an orphan may still be ending.
    let others: Vec<_> = exit.stragglers.iter().filter(|one| one.command != ORPHAN).collect();
    let [helper] = &others[..] else {
        return Err(
            format!("one straggler, the helper, was expected: {:?}", exit.stragglers).into()
        );
    };
    pod.narrator.note(&format!("straggler: pid {}, {}", helper.pid, helper.command));
    expect_childless(pod.manager_pid())?;
    pod.narrator
        .proved("no orphan is left, not even as a zombie; the helper was ended and is reported");
    Ok(())
}

/// Mounts another config and starts the engine with it, whatever it does now.
fn restart_with(pod: &mut Pod<'_>, settings: &str) -> Result<()> {
    let checksum = pod.mount(settings)?;
    pod.narrator.note(&format!("elasticsearch.yml: {}", settings.replace('\n', ", ")));
    pod.stop(&json!({}))?;
    pod.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    let status = pod.start(&json!({"checksum": checksum}))?;
    expect(status.state, State::Running, "state")
}
