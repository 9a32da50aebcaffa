//! Lists of an answer with a limit of entries: an entry takes up to a hundred times more memory than `"":0,`.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Limit of the entries of a list by nodes: more nodes than any cluster has.
const NODES: usize = 10_000;
/// Limit of the entries of a list by indices: more indices than any cluster has.
const INDICES: usize = 100_000;

/// Deserializes an object with an entry for each node, by its id, or with entries of one node by name.
pub(super) fn by_node<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Map { most: NODES, entry: PhantomData })
}

/// Deserializes an object with an entry for each index, by its name.
pub(super) fn by_index<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Map { most: INDICES, entry: PhantomData })
}

/// Deserializes a list with an entry for each node.
pub(super) fn of_nodes<'de, D, L>(deserializer: D) -> Result<L, D::Error>
where
    D: Deserializer<'de>,
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    deserializer.deserialize_seq(List { most: NODES, list: PhantomData::<L> })
}

/// A setting that is a text or a list of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Texts(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextsVisitor)
    }
}

struct TextsVisitor;

impl<'de> Visitor<'de> for TextsVisitor {
    type Value = Texts;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<Texts, E> {
        Ok(Texts(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Texts, A::Error> {
        List { most: NODES, list: PhantomData }.visit_seq(entries).map(Texts)
    }
}

struct Map<T> {
    most: usize,
    entry: PhantomData<T>,
}

struct List<L> {
    most: usize,
    list: PhantomData<L>,
}

fn too_many<E: Error>(most: usize) -> E {
    E::custom(format_args!("a list has more than {most} entries"))
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Map<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "an object of at most {} entries", self.most)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some((key, value)) = entries.next_entry::<String, T>()? {
            all.insert(key, value);
            if all.len() > self.most {
                return Err(too_many(self.most));
            }
        }
        Ok(all)
    }
}

impl<'de, L> Visitor<'de> for List<L>
where
    L: Default + IntoIterator<Item: Deserialize<'de>> + Extend<L::Item>,
{
    type Value = L;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {} entries", self.most)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<L, A::Error> {
        let (mut all, mut number) = (L::default(), 0);
        while let Some(entry) = entries.next_element()? {
            all.extend([entry]);
            number += 1;
            if number > self.most {
                return Err(too_many(self.most));
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(Debug, Deserialize)]
    struct Lists {
        #[serde(default, deserialize_with = "by_node")]
        nodes: BTreeMap<String, u8>,
        #[serde(default, deserialize_with = "of_nodes")]
        names: BTreeSet<String>,
    }

    #[test] // proves RESTART-15
    fn what_no_cluster_has_is_refused_before_it_is_held() {
        let lists: Lists = serde_json::from_str(r#"{"nodes":{"a":1},"names":["b"]}"#).unwrap();
        assert_eq!((lists.nodes["a"], lists.names.contains("b")), (1, true));
        let nodes: Vec<String> = (0..=NODES).map(|at| format!("\"{at}\":0")).collect();
        let nodes = format!("{{\"nodes\":{{{}}}}}", nodes.join(","));
        let names = format!("{{\"names\":[{}\"a\"]}}", "\"a\",".repeat(NODES));
        for body in [nodes, names] {
            let error = serde_json::from_str::<Lists>(&body).unwrap_err().to_string();
            assert!(error.starts_with("a list has more than 10000 entries"), "{error}");
        }
    }
}
