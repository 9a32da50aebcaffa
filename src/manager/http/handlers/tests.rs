mod wait;

use serde_json::json;

use super::*;

fn status(change: impl FnOnce(&mut Status)) -> Status {
    let mut status: Status = serde_json::from_value(json!({
        "manager": {
            "version": "1", "boot_id": "b", "pid": 1, "since": "2026-11-14T09:00:00Z", "durable": true,
            "pod": {"namespace": null, "name": null, "uid": null}
        },
        "cursor": "b:1", "desired": "running", "state": "running", "ready": true,
        "since": "2026-11-14T09:00:00Z", "sequence": 1, "starts": 1,
        "run": {
            "id": "one", "pid": 23, "started_at": "2026-11-14T09:00:00Z", "checksum": null,
            "config": "mounted"
        },
        "last_exit": null, "last_request": null, "config": null, "reason": null
    }))
    .unwrap();
    change(&mut status);
    status
}

fn election() -> Status {
    status(|status| status.ready = Some(false))
}

#[tokio::test(start_paused = true)] // proves ACCESS-6
async fn an_election_takes_no_pod_out_of_its_service() {
    let last = LastReady::default();
    assert!(!last.is_ready(&election()), "it was never ready");
    assert!(last.is_ready(&status(|_| {})));
    tokio::time::advance(GRACE / 2).await;
    assert!(last.is_ready(&election()));
    assert!(last.is_ready(&status(|_| {})));
    tokio::time::advance(GRACE / 2).await;
    assert!(last.is_ready(&election()), "counted from the last success");
    tokio::time::advance(GRACE / 2).await;
    assert!(!last.is_ready(&election()));
}

#[tokio::test(start_paused = true)] // proves ACCESS-6
async fn a_drain_a_stop_and_another_process_get_no_more_requests() {
    let last = LastReady::default();
    let draining = |status: &mut Status| {
        status.ready = Some(false);
        let (code, message) = (DRAINING.to_owned(), String::new());
        status.reason = Some(stayput_api::Reason { code, message });
    };
    let stopping = |status: &mut Status| status.state = State::Stopping;
    let other = |status: &mut Status| {
        status.ready = Some(false);
        status.run.as_mut().unwrap().id = "two".into();
    };
    for change in [draining as fn(&mut Status), stopping, other] {
        assert!(last.is_ready(&status(|_| {})));
        assert!(!last.is_ready(&status(change)));
    }
    // What was ended on purpose does not come back by the grace.
    assert!(last.is_ready(&status(|_| {})) && !last.is_ready(&status(draining)));
    assert!(!last.is_ready(&election()));
}
