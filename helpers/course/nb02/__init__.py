"""The lesson code of notebook 02."""
