"""Find personal data and secrets in texts, and remove them before storing."""
