"""The local web page: each button runs a command of the command line, and the page shows that command."""
