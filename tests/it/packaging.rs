//! What packages and releases have besides the programs: completions, man pages, the krew manifest.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::program::{Ended, finish, kubectl_stayput};
use crate::support::programs::program;
use crate::support::yaml::documents;

fn completion(shell: &str) -> Ended {
    finish(&mut kubectl_stayput(Path::new("/none"), ["completion", shell]))
}

/// The commands of `kubectl stayput`, but for `help`.
fn commands() -> Vec<String> {
    let program = stayput_kubectl::definition();
    let commands: Vec<String> =
        program.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    assert!(commands.len() > 14, "{commands:?}");
    commands
}

#[test] // proves DOCTOR-2
fn the_program_prints_the_definition() {
    let ended = finish(&mut kubectl_stayput(Path::new("/none"), ["crd"]));
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/base/crd.yaml");
    let installed = std::fs::read_to_string(installed).unwrap();
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout == installed, "it is what deploy/ has");
}

#[test] // proves OPERATE-15
fn every_shell_completes_every_command_and_code() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let ended = completion(shell);
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{shell}");
        for word in commands().iter().map(String::as_str).chain(["--allow-unreplicated"]) {
            // fish has options without their dashes.
            let word = word.trim_start_matches('-');
            assert!(ended.stdout.contains(word), "{shell}: no {word}");
        }
    }
    assert_eq!(completion("csh").code, 64);
}

/// As bash itself does it.
#[test] // proves OPERATE-15
fn bash_completes_what_was_begun() {
    let script = completion("bash").stdout;
    let begun = |words: &str| {
        let ask = "COMP_WORDS=(kubectl-stayput $1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
                   _kubectl__stayput kubectl-stayput \"${COMP_WORDS[-1]}\" \"${COMP_WORDS[-2]}\"; \
                   echo \"${COMPREPLY[@]}\"";
        let all = format!("{script}\n{ask}");
        let output = Command::new("bash").args(["-c", &all, "bash", words]).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && error.is_empty(), "{error}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    assert_eq!(begun("rest"), "restart");
    assert_eq!(begun("restart --coord"), "--coordinated");
    assert_eq!(begun("runbook quo"), "quorum");
}

#[test] // proves OPERATE-15
fn every_command_has_a_man_page() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(program("examples/man-pages"));
    let ended = finish(command.arg(directory.path()));
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    let read = |name: &str| {
        fs::read_to_string(directory.path().join(name)).unwrap_or_else(|_| panic!("no {name}"))
    };
    for command in commands() {
        let page = read(&format!("kubectl-stayput-{command}.1"));
        assert!(page.starts_with(".ie") && page.contains(".SH NAME"), "{page}");
    }
    assert!(read("stayput-run.1").contains("state\\-dir"));
    assert!(read("stayput-reconciler-run.1").contains("own\\-namespace"));
    let empty = finish(&mut Command::new(program("examples/man-pages")));
    assert!(empty.code != 0 && empty.stderr.contains("DIRECTORY"), "{}", empty.stderr);
}

/// A build on one machine (`tests/real/docker.rs`) does not show that the class path is the same on another.
#[test]
fn the_image_of_opensearch_makes_an_archive_of_classes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/opensearch/Dockerfile");
    let text = fs::read_to_string(file).unwrap();
    let is_said = |line: &&str| !line.trim_start().starts_with('#');
    let text: Vec<&str> = text.lines().filter(is_said).collect();
    let text = text.join("\n").replace("\\\n", " ");
    assert!(text.lines().any(|line| line == "ARG WARM=yes"), "{text}");
    let run = text.lines().find(|line| line.contains("stayput warm")).expect("no archive is made");
    assert!(run.starts_with("RUN if [ \"$WARM\" = yes ]; then "), "{run}");
    // The order of the files is then the same on every machine, and the archive fits.
    let class_path = "OPENSEARCH_CLASSPATH=$(LC_ALL=C; IFS=:; \
                      set -- \"$OPENSEARCH_HOME\"/lib/*.jar; echo \"$*\")";
    let (before, warm) = run.split_once("stayput warm").unwrap();
    assert!(before.contains("bin/opensearch-env") && before.contains(class_path), "{before}");
    let words: Vec<&str> = warm.split_whitespace().collect();
    let home = "/usr/share/opensearch";
    let archive = format!("{home}/warm.jsa");
    // The engine reads every file with this end in this directory.
    let options = format!("{home}/config/jvm.options.d/warm.options");
    assert_eq!(words[..4], ["--archive", &archive, "--options", &options]);
    assert!(text.contains("ENTRYPOINT [\"/usr/local/bin/stayput\", \"run\""), "{text}");
}

/// `@NAME@` in the manifest is filled in for a release.
#[test] // proves OPERATE-15
fn the_krew_manifest_is_one_and_names_the_archives() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/krew/stayput.yaml");
    let text = fs::read_to_string(file).unwrap();
    let text = text.replace("@VERSION@", "0.1.0").replace("@URL@", "https://example.org/v0.1.0");
    let text = text.replace("@SHA256_AMD64@", "a").replace("@SHA256_ARM64@", "b");
    assert!(!text.contains('@'), "{text}");
    let [plugin] = documents(&text).try_into().unwrap();
    assert_eq!(plugin["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&plugin["kind"], &plugin["spec"]["version"]), (&"Plugin".into(), &"v0.1.0".into()));
    // krew finds the plugin by this name, and kubectl by that of the program.
    assert_eq!(plugin["metadata"]["name"], "stayput");
    let platforms = plugin["spec"]["platforms"].as_array().unwrap();
    let archives: Vec<&str> = platforms.iter().filter_map(|one| one["uri"].as_str()).collect();
    let archive = |arch: &str| {
        format!("https://example.org/v0.1.0/kubectl-stayput-0.1.0-linux-{arch}.tar.gz")
    };
    assert_eq!(archives, [archive("amd64"), archive("arm64")]);
    for platform in platforms {
        assert_eq!(platform["bin"], "kubectl-stayput");
        let files: Vec<&str> = platform["files"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|one| one["from"].as_str())
            .collect();
        assert_eq!(files, ["kubectl-stayput", "LICENSE"]);
    }
}
