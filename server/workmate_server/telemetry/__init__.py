"""What the server has to do with its host: clock, entropy and files, metrics, health and logs."""
