//! Reads the config directories so that one checksum is one generation.

use super::generation::{Generation, Problem};
use super::progress::Progress;
use super::settings::ConfigSettings;
use super::walk::walk;

/// How often a reading is repeated if a change came in between. Each try takes a fraction of a
/// millisecond for a usual config; the kubelet swaps about once a minute.
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
