"""`run` one function on a budget in a process of its own."""
