//! What the lifecycle decides, as scenarios; `model` checks every decision that can occur.

mod defects_of_2019;
mod drain;
mod ended_with_manager;
mod exit;
mod held;
mod journal;
mod kept_config;
mod ladder;
mod model;
mod own_end;
mod resume;
mod scenario;
mod sequence;
mod start;
mod terminate;
mod upgrade;
mod world;
