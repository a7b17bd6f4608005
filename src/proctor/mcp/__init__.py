"""`proctor mcp`: a Model Context Protocol server, so that coding agents can read results."""
