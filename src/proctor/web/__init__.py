"""The viewer: a local web server for a history, and the client that it shares with the HTML report."""
