//! Unmaps the manager's own code when its use is over: after the start, and each time after the requests.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Unmaps the program's text, and the constants before it. Pages that are used later are mapped
/// again from the page cache. Pages that only the start used (reading settings, keys, the command
/// line), or only requests, are not, and the kernel reclaims them first when the engine needs
/// memory. Best effort: without `/proc` nothing happens.
pub fn unmap_code() {
    // They stay where they are, and this also runs whenever the last connection is closed.
    static MAPPINGS: OnceLock<Vec<(usize, usize)>> = OnceLock::new();
    let mappings = match MAPPINGS.get() {
        Some(mappings) => mappings,
        None => match unchanged_mappings() {
            // Without a free descriptor nothing is found now, but perhaps later.
            none if none.is_empty() => return,
            found => MAPPINGS.get_or_init(|| found),
        },
    };
    for &(start, length) in mappings {
        // SAFETY: the range is a private mapping of our own executable that is not writable and
        // never was, so no page of it was ever changed in memory: the kernel drops the mapping of
        // each page and maps the same content from the file when it is next used.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

fn unchanged_mappings() -> Vec<(usize, usize)> {
    let Ok(program) = fs::read_link("/proc/self/exe") else { return Vec::new() };
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(|line| unchanged_mapping(line, &program)).collect()
}

/// Address and length of a line of `/proc/self/maps` that is text of `program`, or the constants at
/// the file's beginning. Constants at other offsets are left out: they may be relocated, which
/// cannot be seen there, and then exist only in memory. The first page holds the ELF header and is
/// never relocated, nor is the rest of its segment.
fn unchanged_mapping(line: &str, program: &Path) -> Option<(usize, usize)> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let first = fields.next()?.bytes().all(|digit| digit == b'0');
    let file = fields.nth(2)?;
    let unchanged = permissions == "r-xp" || (permissions == "r--p" && first);
    if !unchanged || Path::new(file) != program {
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
    fn only_what_is_the_same_in_the_file_is_released() {
        let program = Path::new("/stayput");
        let text = "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /stayput";
        assert_eq!(unchanged_mapping(text, program), Some((0x7f00_0000_1000, 0x2000)));
        let head = "7f0000000000-7f0000001000 r--p 00000000 fe:00 42    /stayput";
        assert_eq!(unchanged_mapping(head, program), Some((0x7f00_0000_0000, 0x1000)));
        for other in [
            "7f0000003000-7f0000004000 r--p 00003000 fe:00 42    /stayput",
            "7f0000004000-7f0000005000 rw-p 00004000 fe:00 42    /stayput",
            "7f0000001000-7f0000003000 r-xp 00001000 fe:00 42    /lib/libc.so.6",
            "7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0     [vdso]",
            "7f0000001000-7f0000003000 rwxp 00000000 00:00 0",
            "torn",
            "",
        ] {
            assert_eq!(unchanged_mapping(other, program), None, "{other}");
        }
    }

    #[test]
    fn the_program_goes_on() {
        unmap_code();
        assert!(fs::read_to_string("/proc/self/maps").is_ok());
    }
}
