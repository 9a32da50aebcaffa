//! Words of commands that people copy into a shell.

use std::borrow::Cow;

/// A text as one word for a POSIX shell. Names of indices, files and owners may have characters that a
/// shell would carry out.
#[must_use]
pub fn shell_word(text: &str) -> Cow<'_, str> {
    // With NUL allowed nothing is refused; no argument of a program can have one.
    shlex::Quoter::new().allow_nul(true).quote(text).unwrap_or(Cow::Borrowed("''"))
}

/// A text of somebody else (an engine, a webhook, an annotation) as a part of a message. Text between
/// backquotes in a message is shown as a command of ours; text between apostrophes is not.
#[must_use]
pub fn foreign_text(text: &str) -> String {
    text.replace('`', "'")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{foreign_text, shell_word};

    #[test] // proves OPERATE-6
    fn a_text_of_others_has_no_command() {
        assert_eq!(foreign_text("run `kubectl delete ns`"), "run 'kubectl delete ns'");
    }

    #[test]
    fn a_plain_name_stays_as_it_is() {
        assert_eq!(shell_word("logs-2026.11.26"), "logs-2026.11.26");
        assert_eq!(shell_word("$(reboot)"), "'$(reboot)'");
        assert_eq!(shell_word("x;reboot"), "'x;reboot'");
        assert_eq!(shell_word(""), "''");
    }

    proptest! {
        #[test] // proves ACCESS-18
        fn any_text_is_one_word_and_comes_back(text in "[^\\x00]*") {
            let command = format!("echo {}", shell_word(&text));
            prop_assert_eq!(shlex::split(&command), Some(vec!["echo".to_owned(), text]));
        }
    }
}
