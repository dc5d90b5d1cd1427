"""The lesson code of notebook 06."""
