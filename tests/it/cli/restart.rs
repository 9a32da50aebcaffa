//! `stayput restart`: a stop and a start by one client.

use super::*;

#[test] // proves STOP-40
fn a_restart_starts_nothing_that_another_client_has_stopped_since() {
    // The stop was request 42; by its answer, another client has stopped the engine by request 43.
    let by_another = Status { sequence: 43, ..stopped(4) };
    let stop = Act {
        statuses: vec![by_another.clone()],
        reply: Reply::json(200, by_another).of_request(42),
    };
    let problem = Problem::new(Code::SequenceReused, "sequence 43 was used for another request");
    let start = Act { statuses: vec![], reply: Reply::json(409, problem) };
    let (ended, fake) = against(story(running(1), [stop, start]), "restart");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("is not started again"), "{}", ended.stderr);
    assert_eq!(fake.posts()[1].1, r#"{"sequence":43,"config":"mounted"}"#);
}

#[test] // proves STOP-40
fn a_restart_whose_stop_takes_too_long_says_that_no_start_follows() {
    let reply = Reply::json(202, stopping(1));
    let (ended, fake) = against(Script::Always(reply), "restart --timeout 0s");
    assert_eq!((ended.code, fake.posts().len()), (124, 1));
    assert!(ended.stderr.contains("No start follows: "), "{}", ended.stderr);
    assert!(ended.stderr.contains("run: stayput start"), "{}", ended.stderr);
}

#[test]
fn restart_is_one_unit() {
    let up = Status { sequence: 43, ..running(6) };
    let acts = [stop_act(), start_act(43, Reply::json(200, up))];
    let (ended, fake) = against(story(running(1), acts), "restart --drain 1s");
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(
        lines(&ended),
        [
            "running, ready, pid 23",
            "stopping, pid 23: TERM was sent; KILL follows in 2m",
            "killing, pid 23",
            "stopped, ended with code 143 (stopped)",
            "starting, pid 23",
            "running, ready, pid 23",
        ]
    );
    assert_eq!(
        fake.posts(),
        [
            ("/es/stop?wait=60000ms".into(), r#"{"drain":"1s"}"#.into()),
            ("/es/start?wait=60000ms".into(), r#"{"sequence":43,"config":"mounted"}"#.into()),
        ]
    );
}

#[test]
fn restart_stops_nothing_if_the_start_would_be_refused() {
    let mut status = running(1);
    for (line, reason) in [
        ("restart --checksum sha256:aa", "the mounted config is not known, not sha256:aa"),
        ("restart --checksum sha256:aa", "the mounted config is sha256:bb, not sha256:aa"),
        ("restart --last-good", "there is no last good config"),
    ] {
        let (ended, fake) = against(story(status.clone(), []), line);
        assert_eq!(ended.code, 1, "{line}");
        assert!(ended.stderr.contains("nothing was stopped"), "{}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{}", ended.stderr);
        assert_eq!(fake.posts(), []);
        status.config = Some(Config { checksum: Some("sha256:bb".into()), ..Config::default() });
    }
}

#[test]
fn a_restart_whose_start_fails_says_what_to_run() {
    let problem = Problem::new(Code::StartFailed, "it ended with code 1 before it was ready");
    let acts = [stop_act(), start_act(43, Reply::json(503, problem))];
    let (ended, _fake) = against(story(running(1), acts), "restart");
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("was stopped, and it is not started again"), "{}", ended.stderr);
    assert!(ended.stderr.contains("run: stayput start\n"), "{}", ended.stderr);
    assert!(ended.stderr.contains("refused: it ended with code 1"), "{}", ended.stderr);
}

/// As with `stayput restart | head -1`.
#[test]
fn a_restart_goes_on_when_nobody_reads_its_output_any_more() {
    let dir = TempDir::new().expect("a directory");
    let up = Status { sequence: 43, ..running(6) };
    let acts = [stop_act(), start_act(43, Reply::json(200, up))];
    let (fake, socket) = FakeManager::on_socket(dir.path(), story(running(1), acts));
    assert_eq!(unread(stayput(["restart", "--socket"]).arg(&socket)), (Some(1), String::new()));
    let requests: Vec<String> = fake.posts().into_iter().map(|(target, _)| target).collect();
    assert_eq!(requests, ["/es/stop?wait=60000ms", "/es/start?wait=60000ms"]);
}
