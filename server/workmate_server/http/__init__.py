"""The HTTP API: endpoints translate (decode, one call, encode), one place answers problems."""
