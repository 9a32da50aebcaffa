//! Text from elsewhere, made safe for a terminal.

use std::borrow::Cow;

/// As it is, but for what would move the cursor: an engine's command line, a file's name and an
/// annotation may hold that.
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
