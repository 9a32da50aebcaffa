//! A crash between any two steps is repaired by the next staging.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use tempfile::{TempDir, tempdir};

use super::*;

/// A source and a target; the target holds a file of the engine.
struct Fixture {
    source: TempDir,
    target: TempDir,
}

/// Content of the target by path; a link is `-> …`.
type Tree = BTreeMap<String, String>;

impl Fixture {
    fn new() -> Self {
        let fixture = Self { source: tempdir().unwrap(), target: tempdir().unwrap() };
        fs::write(fixture.target.path().join("keystore"), "the engine's").unwrap();
        fixture
    }

    fn job(&self, files: &[(&str, &str)], links: &[&str]) -> Job {
        let source = |path: &str| self.source.path().join(path);
        for (path, content) in files {
            fs::create_dir_all(source(path).parent().unwrap()).unwrap();
            let _ = fs::remove_dir_all(source(path));
            fs::write(source(path), content).unwrap();
        }
        Job {
            target: self.target.path().to_owned(),
            items: files
                .iter()
                .map(|(path, content)| Item {
                    relative: path.into(),
                    source: source(path),
                    sha256: ContentDigest::of(content.as_bytes()),
                    access: Permissions { mode: 0o640, uid: 0, gid: 0 },
                })
                .collect(),
            links: links
                .iter()
                .map(|path| Link { relative: path.into(), source: source(path) })
                .collect(),
        }
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut left = vec![self.target.path().to_owned()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() && !path.is_symlink() {
                    left.push(path);
                    continue;
                }
                let content = match fs::read_link(&path) {
                    Ok(link) => format!("-> {}", link.display()),
                    Err(_) => fs::read_to_string(&path).unwrap(),
                };
                let below = path.strip_prefix(self.target.path()).unwrap();
                tree.insert(below.to_str().unwrap().to_owned(), content);
            }
        }
        tree
    }

    /// Runs a staging up to its step `most`; returns whether it was completed.
    fn interrupted(&self, job: &Job, most: usize) -> bool {
        let progress = Progress::unseen();
        let staging = Staging::open(job, &progress).unwrap();
        let mut steps = staging.filling();
        steps.extend(staging.placing().unwrap());
        steps.iter().take(most).for_each(|step| staging.run(step).unwrap());
        steps.len() <= most
    }
}

fn stage_all(jobs: &[Job]) -> Result<(), Error> {
    stage(jobs, &Progress::unseen())
}

const OLD: [(&str, &str); 5] = [
    ("both", "old"),
    ("gone", "old"),
    ("dir/gone", "old"),
    ("file-then-dir", "old"),
    ("dir-then-file/x", "old"),
];
const NEW: [(&str, &str); 5] = [
    ("both", "new"),
    ("added", "new"),
    ("other/added", "new"),
    ("file-then-dir/x", "new"),
    ("dir-then-file", "new"),
];

/// The content of the target after a staging, whatever happened before.
fn expected(fixture: &Fixture, job: &Job) -> Tree {
    let mut tree: Tree = [("keystore".to_owned(), "the engine's".to_owned())].into();
    for item in &job.items {
        let path = item.relative.to_str().unwrap().to_owned();
        tree.insert(path, fs::read_to_string(&item.source).unwrap());
    }
    for link in &job.links {
        let path = link.relative.to_str().unwrap().to_owned();
        tree.insert(path, format!("-> {}", link.source.display()));
    }
    tree.insert(MANIFEST_NAME.to_owned(), fixture.tree().remove(MANIFEST_NAME).unwrap());
    tree
}

#[test]
fn a_crash_after_any_step_is_repaired_by_the_next_staging() {
    for third_is_old in [false, true] {
        for most in 0.. {
            let fixture = Fixture::new();
            let job = fixture.job(&OLD, &["live"]);
            stage_all(&[job]).unwrap();
            fs::remove_dir_all(fixture.source.path()).unwrap();
            let job = fixture.job(&NEW, &["live-too"]);
            let ended = fixture.interrupted(&job, most);
            // The next start may find the same config mounted or another one.
            let job = if third_is_old {
                fs::remove_dir_all(fixture.source.path()).unwrap();
                fixture.job(&OLD, &["live"])
            } else {
                job
            };
            stage_all(std::slice::from_ref(&job)).unwrap();
            assert_eq!(fixture.tree(), expected(&fixture, &job), "after {most} steps");
            if ended {
                break;
            }
        }
    }
}

#[test]
fn until_all_is_copied_and_compared_the_target_stays_as_it_was() {
    let fixture = Fixture::new();
    stage_all(&[fixture.job(&OLD, &[])]).unwrap();
    let before = fixture.tree();
    let job = fixture.job(&[("both", "new"), ("more", "new")], &[]);
    fs::write(fixture.source.path().join("more"), "swapped meanwhile").unwrap();
    let error = stage_all(std::slice::from_ref(&job)).unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error}");
    fs::remove_file(fixture.source.path().join("more")).unwrap();
    assert!(matches!(stage_all(&[job]).unwrap_err(), Error::Source(_)));
    assert_eq!(fixture.tree(), before);
    assert!(!fixture.target.path().join(target::FILLED).exists());
}

#[test]
fn the_same_paths_again_write_no_manifest() {
    let fixture = Fixture::new();
    let job = fixture.job(&OLD, &["live"]);
    stage_all(std::slice::from_ref(&job)).unwrap();
    let progress = Progress::unseen();
    let staging = Staging::open(&job, &progress).unwrap();
    let steps = staging.placing().unwrap();
    assert!(!steps.contains(&Step::Announce) && !steps.contains(&Step::Settle));
}

#[test]
fn no_link_in_the_target_is_followed() {
    let fixture = Fixture::new();
    let outside = tempdir().unwrap();
    fs::write(outside.path().join("x"), "outside").unwrap();
    let target = fixture.target.path();
    symlink(outside.path(), target.join("dir")).unwrap();
    symlink(outside.path().join("x"), target.join("file")).unwrap();
    symlink(outside.path(), target.join(target::FILLED)).unwrap();
    // A link in place of a file is replaced, one in place of a directory is refused.
    stage_all(&[fixture.job(&[("file", "inside")], &[])]).unwrap();
    assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "inside");
    let error = stage_all(&[fixture.job(&[("dir/x", "inside")], &[])]).unwrap_err().to_string();
    assert!(error.contains("dir/x needs a directory where there is a file or a link"), "{error}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "outside");
}

#[test]
fn a_manifest_that_is_not_ours_is_refused_and_nothing_is_removed() {
    for (manifest, reason) in [
        ("", "cannot be read"),
        ("{\"schema\":1,\"paths\":[\"x\"", "cannot be read"),
        ("{\"schema\":2,\"paths\":[]}", "another version"),
        ("{\"schema\":1,\"paths\":[\"../x\"]}", "lists files outside"),
        ("{\"schema\":1,\"paths\":[\"/etc/passwd\"]}", "lists files outside"),
        ("{\"schema\":1,\"paths\":[\"a//b\"]}", "lists files outside"),
    ] {
        let fixture = Fixture::new();
        fs::write(fixture.target.path().join(MANIFEST_NAME), manifest).unwrap();
        let before = fixture.tree();
        let error = stage_all(&[fixture.job(&OLD, &[])]).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("remove it"), "{error}");
        assert_eq!(fixture.tree(), before);
    }
}

#[test]
fn names_that_cannot_be_staged_are_refused() {
    for (path, reason) in [
        ("../outside", "not a path below"),
        (MANIFEST_NAME, "a name stayput needs"),
        (".stayput-staging/x", "a name stayput needs"),
    ] {
        let fixture = Fixture::new();
        let mut job = fixture.job(&[("x", "x")], &[]);
        job.items[0].relative = path.into();
        let error = stage_all(&[job]).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
