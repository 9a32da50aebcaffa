//! The cluster as a picture: its sets, in each its zones, in each its nodes.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::html::class;
use crate::view::live::{Location, PageModel, tier};
use crate::view::node::NodeState;
use crate::view::pod::PodView;

/// Number of nodes from which a set has small tiles, with their numbers alone.
const MANY: usize = 60;

/// One node.
struct Tile {
    pod: String,
    node: String,
    state: NodeState,
    /// Phase of the node, or the reason why it is down.
    detail: Option<String>,
    /// True if the table has a line about the node.
    is_listed: bool,
}

/// Tiles by zone; `None` for nodes whose zone is not known.
type ByZone = BTreeMap<Option<String>, Vec<Tile>>;

/// The sets, in the order of their tiers.
pub(crate) struct Picture {
    sets: BTreeMap<(Option<u8>, String), (String, ByZone)>,
}

impl Picture {
    pub(crate) fn new(model: &PageModel) -> Self {
        let mut sets: BTreeMap<_, (String, ByZone)> = BTreeMap::new();
        let nowhere = Location::default();
        for pod in &model.view.pods {
            let location = model.locations.get(&pod.name).unwrap_or(&nowhere);
            let rank = tier(&location.roles).map(|(rank, _)| rank);
            let (_, zones) = sets
                .entry((rank, location.set.clone()))
                .or_insert_with(|| (what_for(location), ByZone::new()));
            let node = model.view.node(&pod.node);
            zones.entry(location.zone.clone()).or_default().push(Tile {
                pod: pod.name.clone(),
                node: pod.node.clone(),
                state: node.state(),
                detail: node.report.and_then(|report| report.down.clone()).or_else(|| phase(pod)),
                is_listed: node.report.is_some(),
            });
        }
        for (_, zones) in sets.values_mut() {
            for tiles in zones.values_mut() {
                tiles.sort_by(|one, other| number(&one.node).cmp(&number(&other.node)));
            }
        }
        Self { sets }
    }

    fn all(&self) -> impl Iterator<Item = &Tile> {
        self.sets.values().flat_map(|(_, zones)| zones.values()).flatten()
    }

    /// Number of nodes in each state: the picture in words.
    pub(crate) fn legend(&self) -> Markup {
        let mut counts: BTreeMap<NodeState, usize> = BTreeMap::new();
        for tile in self.all() {
            *counts.entry(tile.state).or_default() += 1;
        }
        html! {
            ul.legend aria-label="Nodes by what they do" {
                @for (state, count) in counts {
                    li class=(class_of(state)) {
                        span.sign aria-hidden="true" { (sign_of(state)) }
                        (count) " " (state.word())
                    }
                }
            }
        }
    }

    /// The whole picture, or with `filled` false its frame without the contents of the nodes.
    pub(crate) fn html(&self, filled: bool) -> Markup {
        html! {
            @if self.sets.is_empty() { p { "No pods are selected." } }
            @for ((_, set), (what_for, zones)) in &self.sets {
                @let count: usize = zones.values().map(Vec::len).sum();
                section.set aria-label={ "Set " (name_of(set)) } {
                    h3 {
                        (name_of(set)) " "
                        span.muted { (what_for) (count) @if count == 1 { " node" } @else { " nodes" } }
                    }
                    div.zones {
                        @for (zone, tiles) in zones {
                            div.zone {
                                @match zone {
                                    Some(zone) => h4 { "zone " (zone) },
                                    None if zones.len() > 1 => h4 { "zone not known" },
                                    None => {}
                                }
                                ul.tiles.dense[count > MANY] {
                                    @for tile in tiles {
                                        li id=(tile.id()) { @if filled { (tile.html()) } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    pub(crate) fn tiles(&self) -> BTreeMap<String, String> {
        self.all().map(|tile| (tile.id(), tile.html().into_string())).collect()
    }
}

impl Tile {
    fn id(&self) -> String {
        format!("pod-{}", self.pod)
    }

    fn html(&self) -> Markup {
        let stem = stem(&self.node);
        let inner = html! {
            span.sign aria-hidden="true" { (sign_of(self.state)) }
            span.name { span.stem { (stem) } (&self.node[stem.len()..]) }
            " "
            span.word {
                (self.state.word()) @if let Some(detail) = &self.detail { ": " (detail) }
            }
        };
        let title = format!("{}: {}", self.node, self.state.word());
        let class = format!("tile {}", class_of(self.state));
        html! {
            @if self.is_listed {
                a class=(class) href={ "#why-" (self.node) } title=(title) { (inner) }
            } @else { span class=(class) title=(title) { (inner) } }
        }
    }
}

/// Phase of the pod, unless it only waits for its turn.
fn phase(pod: &PodView) -> Option<String> {
    pod.phase.clone().filter(|phase| !phase.starts_with("schedule"))
}

fn name_of(set: &str) -> &str {
    if set.is_empty() { "pods without an owner" } else { set }
}

/// Tier and roles of the node, where they are known.
fn what_for(location: &Location) -> String {
    let Some((_, tier)) = tier(&location.roles) else { return String::new() };
    let roles: Vec<&str> = location.roles.iter().map(String::as_str).collect();
    match roles.as_slice() {
        [only] if *only == tier => format!("{tier}, "),
        _ => format!("{tier} ({}), ", roles.join(", ")),
    }
}

/// The name without the number at its end.
fn stem(node: &str) -> &str {
    node.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// Parts of a name for sorting: `logs-10` comes after `logs-9`.
fn number(node: &str) -> (&str, Option<u64>, &str) {
    (stem(node), node[stem(node).len()..].parse().ok(), node)
}

/// Sign of a state, so that color is not needed to see it.
pub(crate) const fn sign_of(state: NodeState) -> &'static str {
    match state {
        NodeState::Down => "✕",
        NodeState::NotDone => "‼",
        NodeState::UnderWay => "↻",
        NodeState::Blocked => "■",
        NodeState::NotReady => "○",
        NodeState::Waiting => "…",
        NodeState::KeptStopped => "‖",
        NodeState::Pending => "△",
        NodeState::Done => "✓",
        NodeState::Ready => "●",
    }
}

/// CSS class of a state.
pub(crate) const fn class_of(state: NodeState) -> &'static str {
    if matches!(state, NodeState::UnderWay) { "active" } else { class(state.tone()) }
}
