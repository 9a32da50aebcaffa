//! Text of the option file, and arguments of the engine; nothing is done here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::{Warm, WarmError};

/// Variables with which the engines' scripts find their JVM, in the scripts' order.
pub(super) const JAVA_HOMES: [&str; 3] = ["OPENSEARCH_JAVA_HOME", "ES_JAVA_HOME", "JAVA_HOME"];

/// Checks the requested paths.
pub(super) fn check(warm: &Warm) -> Result<(), WarmError> {
    for path in [&warm.archive, &warm.options] {
        // The engine changes its directory, and a path in an option file cannot be quoted.
        let text = path.to_str().filter(|text| text.starts_with('/'));
        if text.is_none_or(|text| text.contains(|c: char| c.is_whitespace() || c == ':')) {
            return Err(WarmError::Path(path.clone()));
        }
    }
    match warm.options.extension() {
        Some(extension) if extension == "options" => Ok(()),
        Some(_) | None => Err(WarmError::NoOptionFile(warm.options.clone())),
    }
}

/// The JVM that the engine's script will start.
pub(super) fn java_home(
    given: Option<PathBuf>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let set = |name: &&str| variable(name).filter(|value| !value.is_empty());
    given.or_else(|| JAVA_HOMES.iter().find_map(set).map(PathBuf::from))
}

/// The option file: JVMs that know no such archives do not get the option.
pub(super) fn option_file(archive: &Path) -> String {
    format!(
        "# Written by `stayput warm`: classes that the server JVM maps instead of loading them.\n\
         # A JVM that they do not fit ignores them; the log of `stayput run` shows that.\n\
         13-:-XX:SharedArchiveFile={}\n",
        archive.display()
    )
}

/// Arguments of an engine that runs alone, on throwaway data in `work`.
pub(super) fn arguments(work: &Path, http: u16, transport: u16) -> Vec<OsString> {
    [
        format!("path.data={}", work.join("data").display()),
        format!("path.logs={}", work.join("logs").display()),
        "network.host=127.0.0.1".to_owned(),
        format!("http.port={http}"),
        format!("transport.port={transport}"),
        "discovery.type=single-node".to_owned(),
    ]
    .map(|setting| format!("-E{setting}").into())
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves STOP-25
    fn only_paths_that_an_option_file_can_hold_are_accepted() {
        for (archive, options, error) in [
            ("/a/warm.jsa", "/c/jvm.options.d/warm.options", None),
            ("warm.jsa", "/c/warm.options", Some("warm.jsa")),
            ("/a b/warm.jsa", "/c/warm.options", Some("/a b/warm.jsa")),
            ("/a:b/warm.jsa", "/c/warm.options", Some("/a:b/warm.jsa")),
            ("/a/warm.jsa", "c/warm.options", Some("c/warm.options")),
            ("/a/warm.jsa", "/c/warm", Some(".options")),
        ] {
            let warm = Warm {
                archive: archive.into(),
                options: options.into(),
                java_home: None,
                command: Vec::new(),
            };
            let checked = check(&warm).map_err(|error| error.to_string());
            match error {
                None => assert_eq!(checked, Ok(())),
                Some(part) => assert!(checked.unwrap_err().contains(part), "{archive} {options}"),
            }
        }
    }

    #[test]
    fn the_jvm_is_the_one_that_the_script_takes() {
        for (given, set, home) in [
            (None, vec![("JAVA_HOME", "/j"), ("OPENSEARCH_JAVA_HOME", "/o")], Some("/o")),
            (None, vec![("JAVA_HOME", "/j"), ("ES_JAVA_HOME", "")], Some("/j")),
            (Some("/g"), vec![("JAVA_HOME", "/j")], Some("/g")),
            (None, vec![], None),
        ] {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
            };
            assert_eq!(java_home(given.map(PathBuf::from), variable), home.map(PathBuf::from));
        }
    }

    #[test]
    fn jvms_without_such_archives_do_not_get_the_option() {
        let options = option_file(Path::new("/a.jsa"));
        let lines: Vec<&str> = options.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines, ["13-:-XX:SharedArchiveFile=/a.jsa"]);
    }
}
