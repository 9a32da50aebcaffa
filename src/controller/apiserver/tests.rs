mod connection;
