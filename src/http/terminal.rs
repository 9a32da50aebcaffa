//! Makes text from outside safe for a terminal.

use std::borrow::Cow;

/// The text with its control characters escaped: an engine's command line, a file name or an
/// annotation may contain some, and they could move the cursor or change what is on the screen.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}
