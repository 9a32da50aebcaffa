mod claims;
mod successor;
