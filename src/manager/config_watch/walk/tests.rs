//! A config that is nested as deeply as is followed, and deeper, on a part of the stack that a walk has.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::tempdir;

use super::*;
use crate::config_watch::ConfigDir;
use crate::worker::on_a_quarter_of_the_stack;

/// Makes a directory of the config inside another one, and returns where the next one goes.
type Nest = fn(&Path) -> PathBuf;

fn plain(parent: &Path) -> PathBuf {
    let inside = parent.join("d");
    fs::create_dir(&inside).unwrap();
    inside
}

/// A kubelet's volume in a directory of the one above it.
fn volume(parent: &Path) -> PathBuf {
    let inside = parent.join("v");
    fs::create_dir_all(inside.join("..1")).unwrap();
    symlink("..1", inside.join("..data")).unwrap();
    fs::write(inside.join("..1/file"), "x").unwrap();
    symlink("..data/file", inside.join("file")).unwrap();
    inside
}

fn nested(levels: usize, nest: Nest) -> Walked {
    let root = tempdir().unwrap();
    let mut deepest = root.path().to_owned();
    for _ in 0..levels {
        deepest = nest(&deepest);
    }
    fs::write(deepest.join("deepest"), vec![b'x'; 64 * 1024]).unwrap();
    let dirs = vec![ConfigDir { name: None, path: root.path().to_owned() }];
    let settings = ConfigSettings { dirs, ..ConfigSettings::default() };
    on_a_quarter_of_the_stack(|| walk(&settings, &Progress::unseen()))
}

#[test] // proves CONFIG-6
fn the_deepest_config_that_is_followed_needs_a_quarter_of_the_stack() {
    for nest in [plain as Nest, volume] {
        // The root is a level, too.
        let walked = nested(MAX_DEPTH - 1, nest);
        assert_eq!(walked.generation.messages(), Vec::<String>::new());
        let deepest = walked.generation.entries.iter().any(|e| e.relative.ends_with("deepest"));
        assert!(deepest, "{:?}", walked.generation.entries);
    }
}

#[test] // proves CONFIG-6
fn a_deeper_one_is_named_and_read_no_further() {
    for nest in [plain as Nest, volume] {
        let walked = nested(MAX_DEPTH + 8, nest);
        let messages = walked.generation.messages();
        assert!(messages.len() == 1 && messages[0].ends_with(LOOP), "{messages:?}");
    }
}

#[test] // proves CONFIG-6
fn links_nest_as_directories_do() {
    // A chain: each link leads to the next directory, which has the next link.
    let root = tempdir().unwrap();
    for level in 0..MAX_DEPTH + 8 {
        let here = root.path().join(format!("{level}"));
        fs::create_dir(&here).unwrap();
        symlink(format!("../{}", level + 1), here.join("next")).unwrap();
    }
    fs::create_dir(root.path().join(format!("{}", MAX_DEPTH + 8))).unwrap();
    let dirs = vec![ConfigDir { name: None, path: root.path().to_owned() }];
    let settings = ConfigSettings { dirs, max_files: 100_000, ..ConfigSettings::default() };
    let walked = on_a_quarter_of_the_stack(|| walk(&settings, &Progress::unseen()));
    let messages = walked.generation.messages();
    assert!(!messages.is_empty() && messages.iter().all(|m| m.ends_with(LOOP)), "{messages:?}");
}
