//! Bounds texts that another program has written.

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
