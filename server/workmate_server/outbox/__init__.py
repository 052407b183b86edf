"""What must follow an event: webhooks and the server's own rules, from rows written with it."""
