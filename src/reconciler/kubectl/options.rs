//! The options with which kubectl finds the same apiserver, in commands that a person types.

use std::ffi::OsString;

use stayput_restart::shell_word;

const KUBECTL: &str = "kubectl ";
const OURS: &str = "stayput ";

/// As a shell reads them, with a space in front of each; empty if there are none.
pub(super) fn in_shell(options: &[OsString]) -> String {
    let words = options.iter().map(|word| format!(" {}", shell_word(&word.to_string_lossy())));
    words.collect()
}

/// Puts the options, of [`in_shell`], into each command of kubectl in a text that is made of commands.
pub(super) fn into_commands(text: &str, options: &str) -> String {
    let mut parts = text.split(KUBECTL);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all += match part.strip_prefix(OURS) {
            Some(_) => "kubectl stayput",
            None => "kubectl",
        };
        all += options;
        all.push(' ');
        all += part.strip_prefix(OURS).unwrap_or(part);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_gets_them() {
        let options = in_shell(&["--context".into(), "prod eu".into()]);
        assert_eq!(options, " --context 'prod eu'");
        for (text, expected) in [
            ("kubectl -n a get pods", "kubectl --context 'prod eu' -n a get pods"),
            ("kubectl stayput -n a plan b", "kubectl stayput --context 'prod eu' -n a plan b"),
            (
                "x \"$(kubectl get y)\" | kubectl stayput inject",
                "x \"$(kubectl --context 'prod eu' get y)\" | kubectl stayput --context 'prod eu' inject",
            ),
            ("timedatectl status", "timedatectl status"),
        ] {
            assert_eq!(into_commands(text, &options), expected);
            assert_eq!(into_commands(text, ""), text);
        }
    }
}
