"""The lesson code of notebook 08."""
