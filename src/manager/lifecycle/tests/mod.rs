//! What the lifecycle decides, in scenarios; and every decision it can come to, in `model`.

mod defects_of_2019;
mod held;
mod journal;
mod ladder;
mod model;
mod own_end;
mod scenario;
mod sequence;
mod start;
mod terminate;
mod world;
