use stayput_http::manager_client::{Address, ManagerClient};
use tokio::net::UnixListener;
use tokio::time::{Instant, sleep};

use crate::observe::managers::poll::*;
use crate::pods::{PodFacts, Reading};

fn pod(uid: &str) -> Arc<PodFacts> {
    let pod = serde_json::json!({
        "metadata": { "name": uid, "namespace": "n", "uid": uid, "resourceVersion": "1" },
    });
    Arc::new(PodFacts::of(&serde_json::from_value(pod).unwrap(), &Reading::default()).unwrap())
}

#[tokio::test(start_paused = true)] // proves RESTART-15
async fn a_manager_that_hangs_delays_one_look_by_a_second_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("mute");
    // It never accepts.
    let _mute = UnixListener::bind(&socket).unwrap();
    let client = || ManagerClient::new(Address::Socket(socket.clone()));
    let hangs = || vec![(pod("hangs"), Ok(client().unwrap()))];
    let metrics = Arc::new(Metrics::new());
    let mut background = Background::default();
    let began = Instant::now();
    background.begin(hangs(), &metrics, |_| false);
    assert!(background.answers().await.is_empty());
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    // The next look.
    assert!(background.answers().await.is_empty());
    assert!(began.elapsed() == Duration::from_secs(1) && background.is_asking("hangs"));
    sleep(STATUS_TIMEOUT).await;
    let late = background.answers().await;
    assert!(late.len() == 1 && late[0].result.is_err() && !background.is_busy(), "{late:?}");
    // It is known now that it does not answer.
    let began = Instant::now();
    background.begin(hangs(), &metrics, |uid| uid == "hangs");
    assert!(background.answers().await.is_empty());
    assert_eq!(began.elapsed(), Duration::ZERO);
}
