"""A tree of processes seen from outside: who is in it, what it holds, its budget, its line."""
