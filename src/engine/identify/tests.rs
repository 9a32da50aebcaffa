mod version;
