mod background;
