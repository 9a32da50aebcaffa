use crate::identify::*;

#[test]
fn versions_are_read_and_compared_by_number() {
    let read = |text: &str| text.parse::<Version>();
    assert_eq!(read("8.19.0"), Ok(Version::new(8, 19, 0)));
    assert_eq!(read("9.0.0-beta1-SNAPSHOT"), Ok(Version::new(9, 0, 0)));
    assert!(read("7.9.3").unwrap() < read("7.15.2").unwrap());
    assert_eq!(read("3.2.0").unwrap().to_string(), "3.2.0");
    for text in ["", "8", "8.19", "8.19.x", "8.19.0.1", "v8.19.0"] {
        assert!(read(text).is_err(), "{text}");
    }
}
