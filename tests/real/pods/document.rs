//! A document whose `sh` blocks are run as they are.

use std::fs;
use std::path::Path;
use std::time::Instant;

use super::fixture::Fixture;

/// Its blocks marked `sh`, with their headings, and who runs them.
pub(super) struct Document<'a> {
    pub(super) fixture: &'a Fixture,
    blocks: Vec<(String, String)>,
}

impl<'a> Document<'a> {
    /// The document of this name; `sections` are those with blocks, which the test runs.
    #[track_caller]
    pub(super) fn read(fixture: &'a Fixture, name: &str, sections: &[&str]) -> Self {
        let whole = Self::read_all(fixture, name);
        let mut found: Vec<&str> =
            whole.blocks.iter().map(|(heading, _)| heading.as_str()).collect();
        found.dedup();
        assert_eq!(found, sections, "a section that nobody runs");
        whole
    }

    /// The document of this name, of which another test runs other sections.
    pub(super) fn read_all(fixture: &'a Fixture, name: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name);
        let text = fs::read_to_string(path).expect("the document");
        let mut blocks = Vec::new();
        for part in text.split("\n## ").skip(1) {
            let heading = part.lines().next().expect("a heading");
            for rest in part.split("```sh\n").skip(1) {
                let script = rest.split("```").next().expect("a block");
                blocks.push((heading.to_owned(), script.to_owned()));
            }
        }
        Self { fixture, blocks }
    }

    /// Runs the blocks below a heading; `before` is called before each; what was printed.
    pub(super) fn section_with(&self, heading: &str, mut before: impl FnMut(&str)) -> String {
        let mut all = String::new();
        for (_, script) in self.blocks.iter().filter(|(of, _)| of == heading) {
            before(script);
            let block = Instant::now();
            let printed = self.fixture.people.run(script);
            println!("{heading}: {} ms\n{script}{printed}", block.elapsed().as_millis());
            all += &printed;
        }
        assert!(!all.is_empty(), "there is no {heading:?}, or it prints nothing");
        all
    }

    /// The commands of the only block below a heading.
    #[track_caller]
    pub(super) fn commands(&self, heading: &str) -> Vec<&str> {
        let mut blocks = self.blocks.iter().filter(|(of, _)| of == heading);
        let (Some((_, script)), None) = (blocks.next(), blocks.next()) else {
            panic!("{heading:?} has not one block")
        };
        script.lines().collect()
    }

    pub(super) fn section(&self, heading: &str) -> String {
        self.section_with(heading, |_| ())
    }
}
