mod stops;
