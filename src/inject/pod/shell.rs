//! Commands that give a script to a shell.

/// Index of a shell's script in a command: the word behind `-c`. Other words can stand before the shell,
/// such as those of an init, and options of the shell on both sides of `-c`.
pub(super) fn script_at(command: &[String]) -> Option<usize> {
    let is_shell =
        |word: &String| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "dash" | "ash"));
    let shell = command.iter().position(is_shell)?;
    let mut reads_script = false;
    let mut words = command.iter().enumerate().skip(shell + 1);
    while let Some((at, word)) = words.next() {
        match word.strip_prefix(['-', '+']) {
            None => return reads_script.then_some(at),
            // The end of the options.
            Some("" | "-") => return words.next().map(|(at, _)| at).filter(|_| reads_script),
            Some("-rcfile" | "-init-file") => {
                words.next();
            }
            Some(long) if long.starts_with('-') => {}
            Some(letters) => {
                reads_script |= word.starts_with('-') && letters.contains('c');
                // The name of an option follows each of them, as in `-euo pipefail`.
                for _ in letters.matches(['o', 'O']) {
                    words.next();
                }
            }
        }
    }
    None
}
