"""The lesson code of notebook 03."""
