"""A log, an exit code or a command -> what killed it and what to try."""
