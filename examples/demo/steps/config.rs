//! Config changes: seen, applied on request, refused if unexpected, rolled back if bad.

use serde_json::{Value, json};
use stayput_api::{Code, ConfigChoice, State, Status};

use crate::error::Result;
use crate::pod::{Pod, expect};

/// The attribute that shows which config the engine has read.
const ZONE: &str = "/nodes/demo-0/attributes/zone";

pub(super) fn swap_is_seen(pod: &mut Pod<'_>) -> Result<()> {
    pod.narrator.step("Config change: the kubelet replaces the mounted config");
    let checksum = pod.mount("node.attr.zone: b")?;
    pod.narrator.note("elasticsearch.yml in the volume now contains node.attr.zone: b");
    let status = pod.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    expect(drift(&status), Some(true), "drift")?;
    expect(status.state, State::Running, "state")?;
    expect(zone(pod)?, json!("a"), "the engine's zone")?;
    pod.narrator
        .proved("the status shows the drift; the engine is not restarted until that is requested");
    Ok(())
}

pub(super) fn wrong_checksum_is_refused(pod: &mut Pod<'_>) -> Result<()> {
    pod.narrator.step("Restart with the expected config, and with no other");
    let before = pod.status()?;
    let checksum = mounted(&before).cloned().ok_or("no checksum of the mounted config")?;
    pod.post("start", &json!({"checksum": checksum}))?.refused(Code::WrongConfig)?;
    pod.narrator.proved("409: a start request does not restart a running engine");

    let status = pod.stop(&json!({}))?;
    expect(status.state, State::Stopped, "state")?;
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.code, exit.reason.as_str()), (Some(143), "stopped"), "last_exit")?;
    pod.narrator.proved("the engine is stopped: none of its processes is left");

    let meant = format!("sha256:{}", "0".repeat(64));
    pod.post("start", &json!({"checksum": meant}))?.refused(Code::ChecksumMismatch)?;
    let status = pod.status()?;
    expect((status.state, status.starts), (State::Stopped, before.starts), "state and starts")?;
    pod.narrator
        .proved("412: the mounted config is not the expected one, so the engine is not started");

    let status = pod.start(&json!({"checksum": checksum}))?;
    expect(drift(&status), Some(false), "drift")?;
    expect(zone(pod)?, json!("b"), "the engine's zone")?;
    let kept = pod.engine("GET", "/docs/1", None, "/_source")?;
    expect(kept, json!({"kept": true}), "the document")?;
    pod.narrator.proved("the engine runs with the new config, and still has its data");
    Ok(())
}

pub(super) fn bad_config_is_held_and_rolled_back(pod: &mut Pod<'_>) -> Result<()> {
    pod.narrator.step("A bad config: no crash loop, and a way back");
    let checksum = pod.mount("node.atr.zone: c")?;
    pod.narrator.note("elasticsearch.yml now has a typo: node.atr.zone");
    pod.stop(&json!({}))?;
    pod.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    let reply = pod.post("start", &json!({"checksum": checksum}))?;
    reply.refused(Code::StartFailed)?;
    if let Some(line) = pod.files.logged("unknown setting") {
        pod.narrator.quote(&line);
    }
    let status = pod.status()?;
    expect(status.state, State::Failed, "state")?;
    let exit = status.last_exit.ok_or("no last_exit after a failed start")?;
    expect(exit.code, Some(78), "last_exit.code")?;
    let reason = status.reason.ok_or("the status does not say why the engine does not run")?;
    pod.narrator.note(&format!("reason: {} ({})", reason.message, reason.code));
    pod.narrator.proved("the engine refused its config (exit code 78); the manager does not start it again, and reports why");

    let status = pod.start(&json!({"config": "last_good"}))?;
    let config = status.config.clone().ok_or("no config in the status")?;
    let run = status.run.clone().ok_or("no run in the status")?;
    expect(run.config, ConfigChoice::LastGood, "run.config")?;
    expect(run.checksum, config.last_good, "the checksum of the run")?;
    expect(config.drift, Some(true), "drift")?;
    // Zone b if the engine was up for a minute with it, else still zone a.
    expect(zone(pod)?.is_string(), true, "a zone")?;
    pod.narrator.proved(
        "the engine runs with the last config that was up for a minute; the status still shows the drift",
    );
    Ok(())
}

/// Checksum of the mounted config.
pub(super) fn mounted(status: &Status) -> Option<&String> {
    status.config.as_ref()?.checksum.as_ref()
}

fn drift(status: &Status) -> Option<bool> {
    status.config.as_ref()?.drift
}

fn zone(pod: &Pod<'_>) -> Result<Value> {
    pod.engine("GET", "/_nodes/_local", None, ZONE)
}
