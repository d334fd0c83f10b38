"""How long work waits: classes of sites, users and tasks, and the rules that end waiting."""
