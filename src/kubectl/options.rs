//! The options with which kubectl finds the same apiserver, in commands that a person types.

use std::ffi::OsString;

use stayput_restart::shell_word;

use crate::args::CommonArgs;

/// Programs that take the options, each as its commands begin. One with a longer name comes first.
const PROGRAMS: [&str; 3] = ["kubectl stayput ", "kubectl ", HELM];
const HELM: &str = "helm ";

/// The options of kubectl that were given on the command line.
pub(crate) fn given(common: &CommonArgs) -> Vec<OsString> {
    let file = common.kubeconfig.as_ref().map(|file| ["--kubeconfig".into(), file.into()]);
    let context = common.context.as_ref().map(|name| ["--context".into(), name.into()]);
    file.into_iter().chain(context).flatten().collect()
}

/// The options of kubectl that were given, in the form of [`in_shell`].
pub(crate) fn given_in_shell(common: &CommonArgs) -> String {
    in_shell(&given(common))
}

/// The options as a shell reads them, with a space in front of each; empty without options.
pub(crate) fn in_shell(options: &[OsString]) -> String {
    let words = options.iter().map(|word| format!(" {}", shell_word(&word.to_string_lossy())));
    words.collect()
}

/// Adds the options, in the form of [`in_shell`], to each command of kubectl and of Helm in a text of
/// commands. A command that has them stays as it is.
pub(crate) fn into_commands(text: &str, options: &str) -> String {
    let mut all = String::new();
    let mut rest = text;
    while let Some((before, program, after)) = next_command(rest) {
        let options = if program == HELM { for_helm(options) } else { options.to_owned() };
        all += before;
        all += program.trim_end();
        if !after.starts_with(options.trim_start()) {
            all += &options;
        }
        all.push(' ');
        rest = after;
    }
    all + rest
}

/// The text before the next command, the program, and the text after it.
fn next_command(text: &str) -> Option<(&str, &'static str, &str)> {
    let is_word = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric());
    let at = |program: &'static str| {
        let (at, _) = text.match_indices(program).find(|(at, _)| is_word(*at))?;
        Some((at, program))
    };
    // Of two at one place the first one, which is the longer one.
    let (at, program) = PROGRAMS.into_iter().filter_map(at).min_by_key(|(at, _)| *at)?;
    Some((&text[..at], program, &text[at + program.len()..]))
}

/// The options under Helm's names.
fn for_helm(options: &str) -> String {
    options.replacen(" --context ", " --kube-context ", 1)
}

/// Adds the options, in the form of [`in_shell`], to the commands between backticks in a text.
pub(crate) fn into_quoted_commands(text: &str, options: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.to_owned(),
        _ => into_commands(part, options),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test] // proves UPDATE-48, OPERATE-5
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
            (
                "helm upgrade a b\nkubectl apply -k helm/",
                "helm --kube-context 'prod eu' upgrade a b\nkubectl --context 'prod eu' apply -k helm/",
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
