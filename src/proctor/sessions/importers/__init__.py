"""Sessions that were recorded elsewhere: logs of chats and traces become sessions of ours."""
