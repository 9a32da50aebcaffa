mod applied;
mod facts;
