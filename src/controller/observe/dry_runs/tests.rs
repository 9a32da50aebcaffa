mod patch_dry_runs;
mod undo_dry_runs;
