//! Fingerprint of one build of the JVM and of the engine's jars, which an archive of classes is for.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use super::WarmError;

/// The JVM's own file about its build, and a line for each jar of the engine's `lib`: its name, its size in
/// bytes, and its time of change in seconds since 1970. The JVM checks the same, and ignores an archive
/// that was made with others. `options` is a file of `jvm.options.d`, beside which `lib` is in all images
/// of engines; what is not there adds nothing.
pub(super) fn made_for(java_home: &Path, options: &Path) -> Result<String, WarmError> {
    let mut text = read(&java_home.join("release"))?;
    let lib = options.ancestors().nth(3).map(|home| home.join("lib"));
    let mut jars = lib.as_deref().map_or_else(|| Ok(Vec::new()), jars)?;
    jars.sort();
    text.push_str(&jars.concat());
    Ok(text)
}

fn read(path: &Path) -> Result<String, WarmError> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(source) => Err(WarmError::File { path: path.to_owned(), source }),
    }
}

fn jars(lib: &Path) -> Result<Vec<String>, WarmError> {
    let failed = |source| WarmError::File { path: lib.to_owned(), source };
    let entries = match fs::read_dir(lib) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut lines = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "jar") {
            // A link is followed, as the JVM does.
            let found = fs::metadata(&path).map_err(failed)?;
            let changed = found.modified().map_err(failed)?;
            let seconds = changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lines.push(format!("{name} {} {seconds}\n", found.len()));
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves STOP-27
    fn another_jvm_and_another_jar_are_seen_and_other_files_are_not() {
        let home = tempfile::tempdir().unwrap();
        let (java, lib) = (home.path().join("jdk"), home.path().join("lib"));
        let options = home.path().join("config/jvm.options.d/warm.options");
        let now = || made_for(&java, &options).unwrap();
        assert_eq!(now(), "");
        fs::create_dir_all(&java).unwrap();
        fs::create_dir_all(&lib).unwrap();
        let mut seen = vec![now()];
        for (path, text) in [
            (java.join("release"), "JAVA_VERSION=\"17.0.1\"\n"),
            (java.join("release"), "JAVA_VERSION=\"17.0.2\"\n"),
            (lib.join("b.jar"), "1"),
            (lib.join("a.jar"), "1"),
            (lib.join("a.jar"), "12"),
        ] {
            fs::write(path, text).unwrap();
            seen.push(now());
            assert!(seen[..seen.len() - 1].iter().all(|before| *before != now()), "{seen:#?}");
        }
        for other in [lib.join("tools.txt"), java.join("other")] {
            fs::write(other, "1").unwrap();
            assert_eq!(seen.last(), Some(&now()));
        }
        let touched = fs::File::options().append(true).open(lib.join("a.jar")).unwrap();
        touched.set_modified(UNIX_EPOCH).unwrap();
        assert_ne!(seen.last(), Some(&now()));
    }
}
