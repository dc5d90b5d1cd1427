"""The lesson code of notebook 01."""
