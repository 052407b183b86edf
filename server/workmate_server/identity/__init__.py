"""Who is who: principals, devices, sessions, tokens, and the keys that the server itself holds."""
