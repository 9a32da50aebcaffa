//! The product's Rust sources: no tests, and no stand-ins.

use std::fs;
use std::path::Path;

/// One file of the product.
pub(crate) struct Source {
    /// The crate's folder below `src`.
    pub(crate) package: String,
    /// The path from the root.
    pub(crate) path: String,
    /// The text, without its module of tests.
    pub(crate) text: String,
}

/// Every file of the product, sorted by path.
pub(crate) fn product() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pattern = root.join("src/**/*.rs");
    let mut sources = Vec::new();
    for path in glob::glob(pattern.to_str().expect("UTF-8")).expect("a pattern") {
        let path = path.expect("a path");
        let name = path.strip_prefix(root).expect("below the root").to_str().expect("UTF-8");
        let package = name.split('/').nth(1).expect("a folder");
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        if is_test || package == "standin" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        sources.push(Source {
            package: package.to_owned(),
            path: name.to_owned(),
            text: without_tests(&text).to_owned(),
        });
    }
    assert!(sources.len() > 100, "{} files", sources.len());
    sources
}

/// The text before `#[cfg(test)] mod … {`.
fn without_tests(text: &str) -> &str {
    let ends = text.match_indices("\n#[cfg(test)]\n").map(|(at, _)| at + 1);
    let begins_module = |at: &usize| {
        let mut lines = text[*at..].lines().skip_while(|line| line.starts_with("#["));
        lines.next().is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    ends.into_iter().find(begins_module).map_or(text, |at| &text[..at])
}

#[test]
fn a_module_of_tests_is_left_out_and_code_for_tests_is_not() {
    let code = "fn a() {}\n#[cfg(test)]\nfn b() {}\n";
    let whole =
        format!("{code}#[cfg(test)]\n#[allow(unused)]\nmod tests {{\n    fn c() {{}}\n}}\n");
    assert_eq!(without_tests(&whole), code);
    assert_eq!(without_tests(code), code);
}
