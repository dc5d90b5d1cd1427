"""Draws plain figures and recordings in the look of the course; runs nothing."""
