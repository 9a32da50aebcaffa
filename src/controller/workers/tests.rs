mod failed;
mod known;
mod progress;
