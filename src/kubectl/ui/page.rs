//! The page of a cluster, in regions that can be replaced one by one. Pure.

mod conditions;
mod debts;
pub(super) mod document;
mod history;
mod line;
mod nodes;
mod picture;
mod state;
mod summary;
mod text;

use std::collections::BTreeMap;

use serde::Serialize;

use super::page_model::PageModel;
use picture::Picture;

/// A part of the page, by the id of its element.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    id: &'static str,
    html: String,
}

/// The page of a cluster at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Page {
    regions: Vec<Region>,
    picture: PictureRegion,
}

/// The picture changes node by node, unless nodes come or go: there may be a thousand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct PictureRegion {
    /// The picture without the contents of the nodes.
    model: String,
    whole: String,
    /// Contents of the nodes, by the id of their element.
    tiles: BTreeMap<String, String>,
}

/// The new content of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Change<'a> {
    pub(super) id: &'a str,
    pub(super) html: &'a str,
}

/// The id of the element with the picture.
const PICTURE: &str = "picture";

impl Page {
    pub(super) fn new(model: &PageModel) -> Self {
        let picture = Picture::new(model);
        let regions = [
            ("title", summary::title(model)),
            ("fresh", line::fresh(model)),
            ("news", summary::news(model)),
            ("summary", summary::summary(model)),
            ("legend", picture.legend()),
            ("nodes", nodes::nodes(model)),
            ("lines", line::lines(model)),
            ("debts", debts::debts(&model.view)),
            ("conditions", conditions::conditions(&model.view)),
            ("history", history::history(&model.view)),
        ];
        let region = |(id, html): (_, maud::Markup)| Region { id, html: html.into_string() };
        Self {
            regions: regions.into_iter().map(region).collect(),
            picture: PictureRegion {
                model: picture.html(false).into_string(),
                whole: picture.html(true).into_string(),
                tiles: picture.tiles(),
            },
        }
    }

    /// Content of the element with this id.
    fn html(&self, id: &str) -> &str {
        let region = self.regions.iter().find(|region| region.id == id);
        region.map_or(self.picture.whole.as_str(), |region| &region.html)
    }
}

/// The changes since the page before, or everything without one.
pub(super) fn changes<'a>(before: Option<&Page>, now: &'a Page) -> Vec<Change<'a>> {
    let html_before = |id| before.map(|page: &Page| page.html(id));
    let regions = now.regions.iter().filter(|region| html_before(region.id) != Some(&region.html));
    let regions = regions.map(|region| Change { id: region.id, html: &region.html });
    let mut changed: Vec<Change<'_>> = regions.collect();
    match before.map(|page| &page.picture) {
        Some(before) if before.model == now.picture.model => {
            let tiles = now.picture.tiles.iter();
            let tiles = tiles.filter(|(id, html)| before.tiles.get(*id) != Some(html));
            changed.extend(tiles.map(|(id, html)| Change { id, html }));
        }
        Some(_) | None => changed.push(Change { id: PICTURE, html: &now.picture.whole }),
    }
    changed
}
