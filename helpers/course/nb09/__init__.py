"""The lesson code of notebook 09."""
