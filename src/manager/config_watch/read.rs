//! Reads the config directories so that one checksum is one generation.

use super::generation::{Generation, Problem};
use super::progress::Progress;
use super::settings::ConfigSettings;
use super::walk::walk;

/// Number of attempts to read the directories if a change comes in between. Each takes a fraction
/// of a millisecond for a usual config; the kubelet swaps about once a minute.
const ATTEMPTS: usize = 8;

/// Reads all directories until nothing changed in the meantime.
pub(super) fn read(settings: &ConfigSettings, progress: &Progress) -> Generation {
    for _ in 0..ATTEMPTS {
        let walked = walk(settings, progress);
        if !walked.changed && walked.generation.fingerprint.is_current() {
            return walked.generation.finished(settings);
        }
    }
    let mut generation = walk(settings, progress).generation;
    generation.problems.push(Problem {
        message: format!(
            "the config changed each of the {ATTEMPTS} times it was read; it is read again at the \
             next change"
        ),
        hides_checksum: true,
    });
    generation.finished(settings)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::settings::ConfigDir;
    use super::*;

    #[test] // proves RESTART-128
    fn a_file_without_the_first_masters_has_the_digest_of_the_formed_one() {
        let read = |text: &str| {
            let dir = tempfile::tempdir().expect("a directory");
            fs::write(dir.path().join("elasticsearch.yml"), text).expect("a file");
            fs::write(dir.path().join("jvm.options"), text).expect("a file");
            let settings = ConfigSettings {
                dirs: vec![ConfigDir { name: None, path: dir.path().to_owned() }],
                ..ConfigSettings::default()
            };
            let read = super::read(&settings, &Progress::unseen());
            read.files().map(|file| (file.sha256, file.formed_sha256)).collect::<Vec<_>>()
        };
        let formed = read("cluster.name: logs\n");
        let first = read("cluster.name: logs\ncluster.initial_master_nodes: [a]\n");
        assert_eq!(first[0].1.as_ref(), Some(&formed[0].0));
        assert_eq!([&formed[0].1, &formed[1].1, &first[1].1], [&None; 3]);
    }
}
