"""The tables of the doctor: which words in a log speak for which kind and which cause of death."""
