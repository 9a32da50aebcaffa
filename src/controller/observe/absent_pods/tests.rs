mod missing;
mod ordered_ready;
mod unselected;
