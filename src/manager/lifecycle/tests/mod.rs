//! What the lifecycle decides, as scenarios; `model` checks every decision that can occur.

mod defects_of_2019;
mod exit;
mod held;
mod journal;
mod ladder;
mod model;
mod own_end;
mod resume;
mod scenario;
mod sequence;
mod start;
mod terminate;
mod world;
