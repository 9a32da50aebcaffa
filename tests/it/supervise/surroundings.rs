//! The engine's environment, and other processes in the pod.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use stayput_api::checksum::ContentDigest;

use super::pod::Pod;
use super::processes::{descendants, eventually, is_alive, name as name_of};
use crate::support::isolated::{NAMESPACE, can_run};
use crate::support::programs::send;
use crate::support::skip;

#[test]
fn it_knows_its_run_and_has_a_temporary_directory_emptied_between_runs() {
    let pod = Pod::new();
    let tmp = pod.path("tmp").display().to_string();
    let script = "ls -A $ES_TMPDIR | wc -l >found; touch $ES_TMPDIR/left; \
        echo $STAYPUT_RUN $ES_TMPDIR $OPENSEARCH_TMPDIR >run; exec sleep 600";
    let manager = pod.start(&["--tmp-dir", &tmp], &["sh", "-c", script]);
    for _ in 0..2 {
        let status = manager.until_state("running");
        let run = eventually("the engine's output", || {
            Some(pod.read("run")).filter(|words| words.ends_with('\n'))
        });
        let words: Vec<&str> = run.split_whitespace().collect();
        assert_eq!(words[0], status["run"]["id"]);
        assert!(words[1].starts_with(&tmp) && words[1] == words[2], "{words:?}");
        assert_eq!(pod.read("found").trim(), "0", "what the last run left is gone");
        assert!(fs::exists(format!("{}/left", words[1])).unwrap());
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        fs::remove_file(pod.path("run")).unwrap();
        pod.write("tmp/of-somebody-else", "");
        assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    }
    assert!(pod.path("tmp/of-somebody-else").exists(), "only our own directory is emptied");
}

#[test] // proves STOP-41
fn its_variables_are_those_of_the_file_at_its_start() {
    let pod = Pod::new();
    let file = pod.path("environment").display().to_string();
    pod.write("environment", r#"{"ADDED": "a b=c", "GIVEN": "changed", "TAKEN": null}"#);
    let script = "env >out; mv out env; exec sleep 600";
    let options = ["--environment", &file, "--on-exit", "hold"];
    let mut command = pod.command(&options, &["sh", "-c", script]);
    let manager =
        pod.spawn(command.env("GIVEN", "as given").env("TAKEN", "x").env("LEFT", "as is"));
    let engine_has = |lines: &[&str]| {
        let env = eventually("the engine's output", || {
            Some(pod.read("env")).filter(|text| !text.is_empty())
        });
        fs::remove_file(pod.path("env")).unwrap();
        let own = ["ADDED=", "GIVEN=", "LEFT=", "TAKEN="];
        let mut found: Vec<_> =
            env.lines().filter(|line| own.iter().any(|name| line.starts_with(name))).collect();
        found.sort_unstable();
        assert_eq!(found, lines);
    };
    let current = |status: &Value| {
        status["run"]["environment"].is_string()
            && status["run"]["environment"] == status["environment"]
    };
    let first = manager.until("the digest", current);
    engine_has(&["ADDED=a b=c", "GIVEN=changed", "LEFT=as is"]);

    pod.write("environment", r#"{"ADDED": 1}"#);
    let status =
        manager.until("the new digest", |status| status["environment"] != first["environment"]);
    assert_eq!(status["run"]["environment"], first["environment"]);
    assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
    let refused = manager.post("/es/start?wait=20s", "{}");
    assert_eq!((refused.code, refused.problem()), (412, "config_unknown"), "{refused:?}");
    for part in [file.as_str(), "--environment", "expected a string"] {
        assert!(refused.detail().contains(part), "{refused:?}");
    }

    fs::remove_file(pod.path("environment")).unwrap();
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    let status = manager.until("the digest of nothing", current);
    assert_eq!(status["environment"], ContentDigest::of(b"").to_string());
    engine_has(&["GIVEN=as given", "LEFT=as is", "TAKEN=x"]);
}

#[test]
fn it_goes_before_the_manager_when_memory_runs_out() {
    let pod = Pod::new();
    let manager = pod.start_sleeper();
    manager.until_state("running");
    let score = |pid: u32| -> i32 {
        let text = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        text.trim().parse().unwrap()
    };
    let own = score(manager.pid());
    assert_eq!(score(manager.engine()), (own + 100).min(1000));
}

#[test]
fn as_pid_1_a_stranger_is_neither_waited_for_nor_touched() {
    let name = "supervise::surroundings::as_pid_1_a_stranger_is_neither_waited_for_nor_touched";
    if let Err(reason) = can_run(&NAMESPACE) {
        return skip(name, &reason);
    }
    let pod = Pod::new();
    let plain = pod.command::<&str>(&["--on-exit", "hold"], &["sleep", "600"]);
    let mut command = Command::new(NAMESPACE[0]);
    command.args(&NAMESPACE[1..]).arg(plain.get_program()).args(plain.get_args());
    let manager = pod.spawn(command.current_dir(pod.directory()));
    assert_eq!(manager.until_state("running")["manager"]["pid"], 1);

    // Like `kubectl exec`: enters the namespaces, outside of the tree; its background job is
    // adopted.
    let init = eventually("the namespace", || {
        crate::support::programs::children(manager.pid()).first().copied()
    });
    let entered = Command::new("nsenter")
        .args(["--target", &init.to_string(), "--pid", "--mount", "setsid", "sh", "-c"])
        .arg("sleep 599 >/dev/null 2>&1 &")
        .env_remove("STAYPUT_RUN")
        .output()
        .unwrap();
    assert!(entered.status.success(), "{entered:?}");
    let stranger = eventually("the stranger among the manager's children", || {
        let line = |pid: &u32| crate::support::programs::command_line(*pid).contains("sleep 599");
        crate::support::programs::children(init).into_iter().find(line)
    });

    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()), "{stopped:?}");
    assert!(is_alive(stranger), "a user's process must not be ended");
    let strangers = stopped.body["last_exit"]["strangers"].as_array().unwrap();
    assert_eq!(strangers.len(), 1, "{stopped:?}");
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    send(stranger, Signal::SIGKILL);
    eventually("the stranger is reaped", || (!is_alive(stranger)).then_some(()));
}

#[test]
fn a_job_of_the_script_that_became_the_manager_is_reported_and_left_alone() {
    let pod = Pod::new();
    let plain = pod.command::<&str>(&["--on-exit", "hold"], &["sleep", "600"]);
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 300 & echo $! >job; exec \"$@\"", "sh"]);
    command.arg(plain.get_program()).args(plain.get_args()).current_dir(pod.directory());
    let manager = pod.spawn(&mut command);
    manager.until_state("running");
    let job: u32 = pod.read("job").trim().parse().unwrap();

    let stopped = manager.post("/es/stop?wait=20s", "{}");
    assert_eq!((stopped.code, &stopped.body["state"]), (200, &"stopped".into()), "{stopped:?}");
    assert!(is_alive(job), "processes that it did not launch must not be ended");
    let exit = &stopped.body["last_exit"];
    assert_eq!((&exit["strangers"][0]["pid"], &exit["stragglers"]), (&job.into(), &[(); 0].into()));
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
    assert!(is_alive(job));
    send(job, Signal::SIGKILL);
}

#[test]
fn without_its_proc_nothing_is_taken_for_gone_before_the_kernel_says_so() {
    const FOREIGN_PROC: [&str; 4] = ["unshare", "--pid", "--fork", "--kill-child"];
    let name = "supervise::surroundings::without_its_proc_nothing_is_taken_for_gone_before_the_kernel_says_so";
    if let Err(reason) = can_run(&FOREIGN_PROC) {
        return skip(name, &reason);
    }
    let pod = Pod::new();
    let script = "(trap '' TERM; setsid sleep 7654 & wait) & exec sleep 7653";
    let plain = pod.command(&["--on-exit", "hold", "--tree-grace", "10ms"], &["sh", "-c", script]);
    let mut command = Command::new(FOREIGN_PROC[0]);
    command.args(&FOREIGN_PROC[1..]).arg(plain.get_program()).args(plain.get_args());
    let manager = pod.spawn(command.current_dir(pod.directory()));
    manager.until_state("running");
    manager.until_logged("/proc cannot be used");
    let left = eventually("the helper", || {
        // Its arguments are not enough: they are also part of the manager's.
        let helper = |pid: &u32| {
            name_of(*pid) == "sleep"
                && crate::support::programs::command_line(*pid).contains("7654")
        };
        descendants(manager.pid()).into_iter().find(helper)
    });

    assert_eq!(manager.post("/es/stop", "{}").code, 202);
    let stuck = manager.until_state("stuck");
    assert!(is_alive(left));
    let message = stuck["reason"]["message"].as_str().unwrap();
    assert!(message.contains("/proc") && message.contains("mount"), "{message}");
    let refused = manager.post("/es/start", "{}");
    assert_eq!((refused.code, refused.problem()), (409, "stuck"), "no engine beside another");

    // Both: the helper, and the shell that waits for it.
    send(left, Signal::SIGKILL);
    manager.until_state("stopped");
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}

#[test]
fn the_manager_answers_while_the_temporary_directory_is_emptied() {
    const FILES: usize = 40_000;
    const ROUNDS: usize = 8;
    let pod = Pod::new();
    let tmp = pod.path("tmp").display().to_string();
    let manager = pod.start(&["--tmp-dir", &tmp], &["sleep", "600"]);
    manager.until_state("running");
    let directory = pod.path("tmp/stayput-engine");
    // A round proves nothing if this process had to wait for a processor.
    let answered = (0..ROUNDS).any(|_| {
        assert_eq!(manager.post("/es/stop?wait=20s", "{}").code, 200);
        for number in 0..FILES {
            fs::write(directory.join(format!("{number}")), "").unwrap();
        }
        let listed: Vec<_> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        std::thread::scope(|scope| {
            let start = scope.spawn(|| manager.post("/es/start?wait=40s", "{}"));
            eventually("the first file is gone", || (!listed[0].exists()).then_some(()));
            assert_eq!(manager.get("/livez").code, 200);
            let answered = listed[FILES - 1].exists();
            assert_eq!(start.join().unwrap().code, 200);
            assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
            answered
        })
    });
    assert!(answered, "each answer came after the last file was gone");
}

#[test]
fn a_temporary_directory_that_cannot_be_used_is_said_and_nothing_is_started() {
    let pod = Pod::new();
    let tmp = pod.path("not-there").display().to_string();
    let manager = pod.start(&["--tmp-dir", &tmp, "--on-exit", "hold"], &["sleep", "600"]);
    // Nobody asked for this start, and the directory may come: it is tried again.
    let status = manager.until_state("backoff");
    assert!(status["reason"]["message"].as_str().expect("a text").contains(&tmp), "{status:#}");
    let refused = manager.post("/es/start", "{}");
    assert_eq!((refused.code, refused.problem()), (503, "temp_dir_failed"), "{refused:?}");
    for part in [tmp.as_str(), "--tmp-dir"] {
        assert!(refused.detail().contains(part), "{part}: {}", refused.detail());
    }
    assert_eq!(manager.status()["starts"], 0);
    fs::create_dir(&tmp).unwrap();
    assert_eq!(manager.post("/es/start?wait=20s", "{}").code, 200);
}
