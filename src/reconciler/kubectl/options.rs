//! The options with which kubectl finds the same apiserver, in commands that a person types.

use std::ffi::OsString;

use super::args::CommonArgs;
use stayput_restart::shell_word;

const KUBECTL: &str = "kubectl ";
const OURS: &str = "stayput ";

/// Those that were given.
pub(super) fn given(common: &CommonArgs) -> Vec<OsString> {
    let file = common.kubeconfig.as_ref().map(|file| ["--kubeconfig".into(), file.into()]);
    let context = common.context.as_ref().map(|name| ["--context".into(), name.into()]);
    file.into_iter().chain(context).flatten().collect()
}

/// Those that were given, of [`in_shell`].
pub(super) fn given_in_shell(common: &CommonArgs) -> String {
    in_shell(&given(common))
}

/// As a shell reads them, with a space in front of each; empty if there are none.
pub(super) fn in_shell(options: &[OsString]) -> String {
    let words = options.iter().map(|word| format!(" {}", shell_word(&word.to_string_lossy())));
    words.collect()
}

/// Puts the options, of [`in_shell`], into each command of kubectl in a text that is made of commands.
/// One that has them stays as it is.
pub(super) fn into_commands(text: &str, options: &str) -> String {
    let mut parts = text.split(KUBECTL);
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (program, rest) = match part.strip_prefix(OURS) {
            Some(rest) => ("kubectl stayput", rest),
            None => ("kubectl", part),
        };
        all += program;
        if !rest.starts_with(options.trim_start()) {
            all += options;
        }
        all.push(' ');
        all += rest;
    }
    all
}

/// The same for a text that has commands between backticks.
pub(super) fn into_quoted_commands(text: &str, options: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => into_commands(part, options),
    });
    parts.collect::<Vec<_>>().join("`")
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
            assert_eq!(into_commands(expected, &options), expected, "once is enough");
            assert_eq!(into_commands(text, ""), text);
        }
    }

    #[test]
    fn what_is_no_command_stays() {
        let text = "kubectl does not answer; check with `kubectl cluster-info`, or see `date`";
        let expected =
            "kubectl does not answer; check with `kubectl --context a cluster-info`, or see `date`";
        assert_eq!(into_quoted_commands(text, " --context a"), expected);
        assert_eq!(into_quoted_commands(text, ""), text);
    }
}
