"""The lesson code of notebook 04."""
