//! Makes text from outside short, and safe for a terminal.

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

/// Cuts a text after so many characters, and marks the cut with `…`.
pub fn shorten(text: &mut String, most: usize) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        text.truncate(at);
        text.push('…');
        text.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_between_characters_and_is_marked() {
        let mut text = "größer".to_owned();
        shorten(&mut text, 6);
        assert_eq!(text, "größer");
        shorten(&mut text, 3);
        assert_eq!(text, "grö…");
    }
}
