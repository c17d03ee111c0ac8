"""The local web page: a face on the command line, every button a command that it shows."""
