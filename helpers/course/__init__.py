"""What only the notebooks need; one folder for each notebook."""
