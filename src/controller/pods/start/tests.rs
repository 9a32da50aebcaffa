mod unstarted;
