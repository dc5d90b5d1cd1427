"""The lesson code of notebook 05."""
