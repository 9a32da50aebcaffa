//! The config changes: seen, applied when asked, refused when wrong, rolled back when bad.

use serde_json::{Value, json};
use stayput_api::{Code, ConfigChoice, State, Status};

use crate::stage::{Stage, expect};

/// The attribute that tells which config the engine really read.
const ZONE: &str = "/nodes/demo-0/attributes/zone";

pub(super) fn swap_is_seen(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.narrator.step("Config swap: kubelet replaces the mounted config, as a whole");
    let checksum = stage.mount("node.attr.zone: b")?;
    stage.narrator.tell("elasticsearch.yml in the volume now says node.attr.zone: b");
    let status =
        stage.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    expect(drift(&status), Some(true), "drift")?;
    expect(status.state, State::Running, "state")?;
    expect(zone(stage)?, json!("a"), "the engine's zone")?;
    stage.narrator.proved("the drift is shown, and the engine is left alone until somebody asks");
    Ok(())
}

pub(super) fn wrong_checksum_is_refused(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.narrator.step("Restart, for exactly the config that was meant");
    let before = stage.status()?;
    let checksum = mounted(&before).cloned().ok_or("no checksum of the mounted config")?;
    stage.post("start", &json!({"checksum": checksum}))?.refused(Code::WrongConfig)?;
    stage.narrator.proved("asking for a start does not restart an engine that runs");

    let status = stage.stop(&json!({}))?;
    expect(status.state, State::Stopped, "state")?;
    let exit = status.last_exit.ok_or("no last_exit after a stop")?;
    expect((exit.code, exit.reason.as_str()), (Some(143), "stopped"), "last_exit")?;
    stage.narrator.proved("stopped means that none of its processes is left");

    let meant = format!("sha256:{}", "0".repeat(64));
    stage.post("start", &json!({"checksum": meant}))?.refused(Code::ChecksumMismatch)?;
    let status = stage.status()?;
    expect((status.state, status.starts), (State::Stopped, before.starts), "state and starts")?;
    stage.narrator.proved("412: another config than the expected one is mounted, nothing started");

    let status = stage.start(&json!({"checksum": checksum}))?;
    expect(drift(&status), Some(false), "drift")?;
    expect(zone(stage)?, json!("b"), "the engine's zone")?;
    let kept = stage.engine("GET", "/docs/1", None, "/_source")?;
    expect(kept, json!({"kept": true}), "the document")?;
    stage.narrator.proved("the engine runs on the new config, its data is still there");
    Ok(())
}

pub(super) fn bad_config_is_held_and_rolled_back(stage: &mut Stage<'_>) -> Result<(), String> {
    stage.narrator.step("A bad config: held, not crash-looped, and rolled back");
    let checksum = stage.mount("node.atr.zone: c")?;
    stage.narrator.tell("elasticsearch.yml now has a typo: node.atr.zone");
    stage.stop(&json!({}))?;
    stage.wait_until("the new checksum", |status| mounted(status) == Some(&checksum))?;
    let reply = stage.post("start", &json!({"checksum": checksum}))?;
    reply.refused(Code::StartFailed)?;
    if let Some(line) = stage.ground.logged("unknown setting") {
        stage.narrator.quote(&line);
    }
    let status = stage.status()?;
    expect(status.state, State::Failed, "state")?;
    let exit = status.last_exit.ok_or("no last_exit after a failed start")?;
    expect(exit.code, Some(78), "last_exit.code")?;
    let reason = status.reason.ok_or("the status does not say why the engine does not run")?;
    stage.narrator.tell(&format!("reason: {} ({})", reason.message, reason.code));
    stage.narrator.proved("the engine refused its config (78); the manager holds it and says why");

    let status = stage.start(&json!({"config": "last_good"}))?;
    let config = status.config.clone().ok_or("no config in the status")?;
    let run = status.run.clone().ok_or("no run in the status")?;
    expect(run.config, ConfigChoice::LastGood, "run.config")?;
    expect(run.checksum, config.last_good, "the checksum of the run")?;
    expect(config.drift, Some(true), "drift")?;
    expect(zone(stage)?, json!("b"), "the engine's zone")?;
    stage.narrator.proved("the config that last worked runs again; the drift stays visible");
    Ok(())
}

/// Checksum of the mounted config.
pub(super) fn mounted(status: &Status) -> Option<&String> {
    status.config.as_ref()?.checksum.as_ref()
}

fn drift(status: &Status) -> Option<bool> {
    status.config.as_ref()?.drift
}

fn zone(stage: &Stage<'_>) -> Result<Value, String> {
    stage.engine("GET", "/_nodes/_local", None, ZONE)
}
