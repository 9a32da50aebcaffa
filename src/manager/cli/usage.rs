//! Tips for mistakes on the command line that clap has no advice for.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The error, with a tip if there is one.
pub(super) fn with_tip(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    if error.kind() == ErrorKind::UnknownArgument
        && let Some(ContextValue::String(argument)) = error.get(ContextKind::InvalidArg)
        && let Some(tip) = tip(argument, &usage)
    {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn tip(argument: &str, usage: &str) -> Option<String> {
    if usage.contains("stayput run") && !argument.starts_with('-') {
        return Some(format!("write the engine's command after --, as in -- {argument}"));
    }
    let waits =
        ["stop", "start", "restart"].iter().any(|it| usage.contains(&format!("stayput {it} ")));
    (waits && argument == "--wait")
        .then(|| "it waits unless --no-wait is given; --timeout TIME says how long".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::args::Cli;
    use super::*;

    #[test]
    fn usual_mistakes_get_a_tip() {
        for (line, tip) in [
            ("stayput run sleep 1", "tip: write the engine's command after --, as in -- sleep"),
            ("stayput run --socket s sleep 1", "as in -- sleep"),
            ("stayput stop --wait 10m", "tip: it waits unless --no-wait is given; --timeout TIME"),
            ("stayput run --redy http://x -- x", "a similar argument exists: '--ready'"),
            ("stayput stop --grace -5", "\"-5\" is not a duration"),
            ("stayput wait --for ready --timeout -5s", "\"-5s\" is not a duration"),
        ] {
            let error = Cli::command().try_get_matches_from(line.split(' ')).unwrap_err();
            let text = with_tip(error).to_string();
            assert!(text.contains(tip), "{text}");
        }
    }
}
