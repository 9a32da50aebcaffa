//! What people with weak eyes or without a mouse need, as far as it can be read from the files.

use std::collections::BTreeMap;

use crate::html::{SCRIPT, STYLE};

/// The colors of one scheme, by name.
fn colors(style: &str) -> BTreeMap<&str, [f64; 3]> {
    let value = |text: &str| {
        let part = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        [1, 3, 5].map(|at| f64::from(part(at)) / 255.0)
    };
    let pairs = style.split("--").skip(1).filter_map(|text| text.split_once(": #"));
    pairs.map(|(name, rest)| (name, value(&format!("#{}", &rest[..6])))).collect()
}

/// As WCAG 2 defines it.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let linear =
        |part: f64| if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    let luminance = |[red, green, blue]: [f64; 3]| {
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test] // proves PAGE-7
fn every_text_has_enough_contrast_in_both_schemes() {
    assert!((contrast([0.0; 3], [1.0; 3]) - 21.0).abs() < 0.01);
    let (light, rest) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let (dark, _) = rest.split_once("}\n}").unwrap();
    for scheme in [light, dark] {
        let colors = colors(scheme);
        assert_eq!(colors.len(), 16, "{colors:?}");
        for (name, color) in &colors {
            let backs = ["page", "panel"].into_iter().map(str::to_owned);
            let backs = backs.chain([format!("{name}-back")]).filter(|_| !is_back(name));
            for back in backs.filter(|back| colors.contains_key(back.as_str())) {
                let found = contrast(*color, colors[back.as_str()]);
                assert!(found >= 4.5, "{name} on {back}: {found:.2}");
            }
        }
        // Messages stand on these.
        for back in ["bad-back", "neutral-back", "warning-back"] {
            for name in ["text", "link"] {
                let found = contrast(colors[name], colors[back]);
                assert!(found >= 4.5, "{name} on {back}: {found:.2}");
            }
        }
    }
}

fn is_back(name: &str) -> bool {
    name.ends_with("-back") || ["page", "panel", "line"].contains(&name)
}

#[test] // proves PAGE-7
fn nothing_is_asked_from_elsewhere() {
    for text in [STYLE, SCRIPT] {
        for address in ["http:", "https:", "//cdn", "@import", "url("] {
            assert!(!text.contains(address), "{address}");
        }
    }
}
