//! `kubectl stayput inject` and `uninject`: files and pipes in, manifests out, or nothing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::support::program::{Ended, kubectl_stayput};

fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/inject/tests/manifests")
}

/// Runs it without any cluster.
fn run(args: &[&str], stdin: &str) -> Ended {
    let mut command = kubectl_stayput(Path::new("/nonexistent"), args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A wrong command line ends it before it reads.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn manifest(name: &str) -> String {
    fs::read_to_string(manifests().join(name)).unwrap()
}

#[test] // proves MANIFEST-32
fn in_a_pipe_and_back() {
    let text = manifest("opensearch-chart.yaml");
    let injected = run(&["inject"], &text);
    assert_eq!(injected.code, 0, "{}", injected.stderr);
    assert!(injected.stdout.contains("/stayput/stayput"));
    assert!(injected.stderr.contains("stdin: note: document 2, StatefulSet/search-master"));
    for args in [["inject", "-"], ["uninject", "-"]] {
        let again = run(&args, &injected.stdout);
        let expected = if args[0] == "inject" { &injected.stdout } else { &text };
        assert_eq!((again.code, &again.stdout), (0, expected));
    }
}

#[test] // proves STOP-29
fn an_archive_of_classes_comes_and_goes_with_its_option() {
    let text = manifest("opensearch-chart.yaml");
    let warm = run(&["inject", "--warm"], &text);
    assert_eq!(warm.code, 0, "{}", warm.stderr);
    assert!(warm.stdout.contains("--best-effort"), "{}", warm.stdout);
    assert_eq!(run(&["inject"], &warm.stdout).stdout, run(&["inject"], &text).stdout);
    assert_eq!(run(&["uninject"], &warm.stdout).stdout, text);
}

#[test] // proves MANIFEST-9
fn the_secrets_of_a_secured_engine_come_and_go_with_their_options() {
    let text = manifest("elasticsearch-chart.yaml");
    let options =
        ["--ready-auth", "secret/logs-reader", "--ready-ca", "secret/logs-certs/root.pem"];
    let secured = run(&[&["inject"], &options[..]].concat(), &text);
    assert_eq!(secured.code, 0, "{}", secured.stderr);
    assert!(secured.stdout.contains("value: /stayput-ready-ca/root.pem"), "{}", secured.stdout);
    assert!(!secured.stderr.contains("readinessProbe"), "{}", secured.stderr);
    assert_eq!(run(&["inject"], &secured.stdout).stdout, run(&["inject"], &text).stdout);
    assert_eq!(run(&["uninject"], &secured.stdout).stdout, text);
    let check = run(&[&["inject", "--check"], &options[..]].concat(), &text);
    for added in ["mountPath=/stayput-ready-auth", "name=STAYPUT_READY_CA", "name=stayput-ready-ca"]
    {
        assert!(check.stdout.contains(added), "{added}: {}", check.stdout);
    }
    for (option, value, reason) in [
        ("--ready-auth", "logs-reader", "write secret/NAME"),
        ("--ready-auth", "configmap/logs-reader", "a password belongs into a Secret"),
        ("--ready-ca", "secret/", "write secret/NAME or configmap/NAME"),
    ] {
        let refused = run(&["inject", option, value], &text);
        assert_eq!((refused.code, refused.stdout.as_str()), (64, ""));
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    let port = ["inject", "--ready", "tcp://127.0.0.1:9200", "--ready-auth", "secret/logs-reader"];
    let refused = run(&port, &text);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(refused.stderr.contains("asks for no user"), "{}", refused.stderr);
}

#[test] // proves MANIFEST-29
fn a_program_reads_what_would_be_changed_and_what_was_found() {
    let text = manifest("opensearch-chart.yaml");
    let check = |options: &[&str]| {
        let ended = run(&[&["inject", "--check", "-o", "json"], options].concat(), &text);
        let output: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
        (ended, output)
    };
    let (ended, output) = check(&[]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert_eq!(output["possible"], true);
    let changed = &output["changed"][0];
    assert_eq!((&changed["file"], &changed["document"]), (&"stdin".into(), &2.into()));
    assert_eq!(changed["object"], "StatefulSet/search-master");
    assert!(changed["edits"].as_array().is_some_and(|edits| !edits.is_empty()), "{changed}");
    let note = &output["findings"][0];
    assert_eq!((&note["severity"], &note["object"]), (&"note".into(), &changed["object"]));
    assert!(note["remedy"].is_string(), "{note}");

    let port = ["--ready", "tcp://127.0.0.1:9200", "--ready-auth", "secret/logs-reader"];
    let (ended, output) = check(&port);
    assert_eq!((ended.code, &output["possible"]), (1, &false.into()));
    assert_eq!(output["changed"], serde_json::json!([]));
    let found = output["findings"].as_array().expect("findings");
    let is_error = |one: &serde_json::Value| {
        one["severity"] == "error" && one["message"].to_string().contains("asks for no user")
    };
    assert!(found.iter().any(is_error), "{found:?}");
}

#[test] // proves MANIFEST-32
fn several_files_become_one_stream() {
    let file = |name: &str| manifests().join(name).to_str().unwrap().to_owned();
    let (eck, list) = (file("eck.yaml"), file("list.json"));
    let both = run(&["inject", &eck, &list, "--cluster", "one"], "");
    assert_eq!(both.code, 0, "{}", both.stderr);
    let parts: Vec<&str> = both.stdout.split("---\n").collect();
    assert_eq!(parts.len(), 2);
    assert!(parts.iter().all(|part| part.contains("one-manager-tls")));
    assert_eq!(run(&["uninject"], parts[0]).stdout, manifest("eck.yaml"));
    assert_eq!(run(&["uninject"], parts[1]).stdout, manifest("list.json"));
}

#[test]
fn a_check_says_what_would_be_done() {
    let check = run(&["inject", "--check"], &manifest("hand-written.yaml"));
    assert_eq!((check.code, check.stderr.as_str()), (0, ""));
    assert!(check.stdout.starts_with("StatefulSet/logs\n  adds to "), "{}", check.stdout);
    assert!(
        check
            .stdout
            .contains("replaces spec.template.spec.containers[name=opensearch].readinessProbe\n")
    );
    let none = run(&["inject", "--check"], "kind: Pod\n");
    assert_eq!((none.code, none.stdout.as_str()), (0, "nothing would be changed\n"));
    assert!(none.stderr.starts_with("note: no engine was found"), "{}", none.stderr);
}

#[test] // proves MANIFEST-30
fn where_no_engine_is_found_it_says_so() {
    let text = manifest("hand-written.yaml");
    let own = text.replace("opensearchproject/opensearch", "example/search");
    let own = own.replace("- name: opensearch\n", "- name: search\n");
    let none = run(&["inject"], &own);
    assert_eq!((none.code, &none.stdout), (0, &own));
    assert!(none.stderr.contains("stdin: note: document 2, StatefulSet/logs, "), "{}", none.stderr);
    let absent = run(&["inject", "--container", "foo"], &text);
    assert_eq!((absent.code, absent.stdout.as_str()), (1, ""));
    assert!(absent.stderr.contains("has a container foo"), "{}", absent.stderr);
    for (option, value) in [
        ("--ready", "foo"),
        ("--cluster", "Foo_Bar"),
        ("--image", "a b"),
        ("--config", "secret/a=b"),
    ] {
        let refused = run(&["inject", option, value], &text);
        assert_eq!((refused.code, refused.stdout.as_str()), (64, ""), "{option}");
    }
}

#[test] // proves MANIFEST-30
fn with_an_error_nothing_is_written() {
    let good = manifest("hand-written.yaml");
    let bad = good.replace("opensearchproject/opensearch:2.19.3", "example/search:1");
    for args in [&["inject"][..], &["inject", "--check"]] {
        let failed = run(args, &format!("{good}---\n{bad}"));
        assert_eq!((failed.code, failed.stdout.as_str()), (1, ""));
        assert!(
            failed.stderr.contains("stdin: error: document 4, StatefulSet/logs, ")
                && failed.stderr.contains("example/search:1 is not known. Give it word by word"),
            "{}",
            failed.stderr
        );
        let words = ["--command", "./start", "--command", "-v"];
        let given = run(&[args, &words].concat(), &bad);
        assert_eq!(given.code, 0, "{}", given.stderr);
    }
    let missing = run(&["inject", "/nonexistent/file"], "");
    assert_eq!((missing.code, missing.stdout.as_str()), (64, ""));
    assert!(missing.stderr.contains("cannot read /nonexistent/file"), "{}", missing.stderr);
    let broken = run(&["uninject"], "a: [");
    assert_eq!((broken.code, broken.stdout.as_str()), (1, ""));
    assert_eq!(run(&["inject", "--config", "logs-config"], "").code, 64);
}

/// kubectl splits a stream at `---`: what is for the beginning of a file alone may not stand in its middle.
#[test] // proves MANIFEST-32
fn the_head_of_a_file_does_not_end_up_in_the_middle_of_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let text = manifest("eck.yaml");
    let first = file("a", text.clone());
    for head in ["\u{feff}", "%YAML 1.1\n---\n", "\u{feff}# x\n%YAML 1.1\n---\n"] {
        let second = file("b", format!("{head}{text}"));
        let both = run(&["inject", &first, &second], "");
        assert_eq!(both.code, 0, "{}", both.stderr);
        assert!(!both.stdout.contains("%YAML") && !both.stdout.contains('\u{feff}'), "{head:?}");
        let back = run(&["uninject"], &both.stdout);
        assert_eq!(back.code, 0, "{head:?}: {}", back.stderr);
        assert_eq!(back.stdout.matches("kind: Elasticsearch").count(), 2);
        let alone = run(&["inject", &second], "");
        assert_eq!(run(&["uninject"], &alone.stdout).stdout, format!("{head}{text}"));
    }
}

#[test] // proves MANIFEST-29
fn what_was_injected_is_not_injected_again_and_a_check_says_so() {
    let once = run(&["inject"], &manifest("hand-written.yaml")).stdout;
    let check = run(&["inject", "--check"], &once);
    assert_eq!((check.code, check.stdout.as_str()), (0, "nothing would be changed\n"));
    assert_eq!(check.stderr, "", "an engine was found");
    let json = run(&["inject", "--check", "-o", "json"], &once);
    let output: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(
        (&output["changed"], &output["findings"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    let other = run(&["inject", "--check", "--image", "mirror/manager:1"], &once);
    let expected = "StatefulSet/logs\n  replaces spec.template.spec.initContainers[name=stayput]\n";
    assert_eq!(other.stdout, expected);
}

#[test] // proves MANIFEST-5
fn an_object_is_left_out_by_name() {
    let text = manifest("hand-written.yaml");
    let skipped = run(&["inject", "--skip", "StatefulSet/logs"], &text);
    assert_eq!((skipped.code, &skipped.stdout), (0, &text));
    for wrong in ["logs", "statefulset/logs", "StatefulSet/"] {
        assert_eq!(run(&["inject", "--skip", wrong], &text).code, 64, "{wrong}");
    }
}

#[test] // proves MANIFEST-6
fn what_cannot_be_meant_is_refused() {
    let text = manifest("hand-written.yaml");
    for (args, message) in [
        (&["inject", "--output", "json"][..], "is for inject --check"),
        (&["inject", "--command", ""], "a word of the command is not empty"),
        (&["inject", "--config", "secret/A_B"], "lower case letters"),
    ] {
        let refused = run(args, &text);
        assert_eq!((refused.code, refused.stdout.as_str()), (64, ""), "{args:?}");
        assert!(refused.stderr.contains(message), "{args:?}: {}", refused.stderr);
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), b"a: b\nc: \xe9\n").unwrap();
    let refused = run(&["inject", file.path().to_str().unwrap()], "");
    assert_eq!(refused.code, 64);
    assert!(refused.stderr.contains("is not UTF-8 in line 2"), "{}", refused.stderr);
}
