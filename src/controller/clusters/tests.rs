mod object_version;
mod undecodable;
