mod descriptors;
