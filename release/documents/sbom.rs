//! What a program was built from, as CycloneDX 1.6, from what `cargo tree` and `Cargo.lock` say.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::Failure;

/// One line of `cargo tree --prefix depth`: `2<TAB>NAME vVERSION (…)<TAB>LICENCE`.
struct Line<'a> {
    depth: usize,
    name: &'a str,
    version: &'a str,
    licence: &'a str,
}

impl<'a> Line<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut fields = line.split('\t');
        let depth = fields.next()?.parse().ok()?;
        let mut package = fields.next()?.split(' ');
        let (name, version) = (package.next()?, package.next()?.strip_prefix('v')?);
        // What was shown before is marked.
        let licence = fields.next()?.trim_end_matches(" (*)");
        Some(Self { depth, name, version, licence })
    }

    fn purl(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The first line of the tree is the package that the program is of.
pub(crate) fn sbom(program: &str, tree: &str, lock: &str, date: &str) -> Result<Value, Failure> {
    let checksums = checksums(lock);
    let mut components = BTreeMap::new();
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    // The crates above the line, from the package down.
    let mut above: Vec<String> = Vec::new();
    for line in tree.lines() {
        let read = Line::read(line).ok_or_else(|| format!("not a line of cargo tree: {line}"))?;
        let purl = read.purl();
        above.truncate(read.depth);
        if let Some(parent) = above.last() {
            needs.entry(parent.clone()).or_default().insert(purl.clone());
            components.insert(purl.clone(), component(&read, &checksums)?);
        }
        needs.entry(purl.clone()).or_default();
        above.push(purl);
    }
    let package = tree.lines().next().and_then(Line::read).ok_or("an empty tree")?;
    let dependencies: Vec<Value> =
        needs.iter().map(|(purl, needed)| json!({"ref": purl, "dependsOn": needed})).collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": date,
            "component": {
                "type": "application", "name": program, "version": package.version,
                "bom-ref": package.purl(), "licenses": [{"expression": package.licence}],
            },
        },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": dependencies,
    }))
}

fn component(line: &Line<'_>, checksums: &BTreeMap<(&str, &str), &str>) -> Result<Value, Failure> {
    let Line { name, version, licence, .. } = line;
    let checksum = checksums.get(&(*name, *version));
    let checksum = checksum.ok_or_else(|| format!("Cargo.lock has no {name} {version}"))?;
    let mut component = json!({
        "type": "library", "name": name, "version": version,
        "bom-ref": line.purl(), "purl": line.purl(),
        // Some crates still write it as cargo once did.
        "licenses": [{"expression": licence.replace('/', " OR ")}],
    });
    // Crates of this repository have none.
    if !checksum.is_empty() {
        component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
    }
    Ok(component)
}

/// By name and version; empty for crates of this repository.
fn checksums(lock: &str) -> BTreeMap<(&str, &str), &str> {
    let field = |package: &'_ str, name: &str| {
        let start = package.find(&format!("\n{name} = \""))? + name.len() + 5;
        Some(start..start + package[start..].find('"')?)
    };
    let read = |package| {
        let value = |name| field(package, name).map(|range| &package[range]);
        Some(((value("name")?, value("version")?), value("checksum").unwrap_or_default()))
    };
    lock.split("[[package]]").filter_map(read).collect()
}
