"""The papers in the package, a folder for each."""
