//! Unmaps the manager's own code once the start is over.

use std::fs;
use std::path::Path;

/// Unmaps the program's text. What runs from then on is mapped again page by page, from the page
/// cache; what ran only at the start (reading settings, keys, the command line) is not, and becomes
/// the first thing the kernel reclaims when the engine needs memory. Best effort: without `/proc`
/// nothing happens.
pub fn release_startup_code() {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return };
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    for (start, length) in maps.lines().filter_map(|line| text_mapping(line, &program)) {
        // SAFETY: the range is a mapping of our own executable that is private, executable and not
        // writable, so no page of it was ever changed in memory: the kernel drops the mapping of
        // each page and maps the same content from the file when it is next executed.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// Address and length of a line of `/proc/self/maps` that is text of `program`. Not its constants:
/// relocated ones look the same there and exist in memory alone.
fn text_mapping(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let file = fields.nth(3)?;
    if permissions != "r-xp" || Path::new(file) != program {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start, end.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_programs_own_text_is_released() {
        let program = Path::new("/stayput");
        let text = "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /stayput";
        assert_eq!(text_mapping(text, program), Some((0x7f00_0000_1000, 0x2000)));
        for other in [
            "7f0000003000-7f0000004000 r--p 00003000 fe:00 42    /stayput",
            "7f0000004000-7f0000005000 rw-p 00004000 fe:00 42    /stayput",
            "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /lib/libc.so.6",
            "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0     [vdso]",
            "7f0000001000-7f0000003000 rwxp 00000000 00:00 0",
            "torn",
            "",
        ] {
            assert_eq!(text_mapping(other, program), None, "{other}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        release_startup_code();
        assert!(fs::read_to_string("/proc/self/maps").is_ok());
    }
}
