"""One module per command of the command line; each names what it takes and connects an analysis with a renderer."""
