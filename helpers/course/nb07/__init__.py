"""The lesson code of notebook 07."""
