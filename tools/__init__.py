"""Tools of those who work on the package: the words of its prose, and the tree of its packages in CONTRIBUTING.md."""
