mod listed;
