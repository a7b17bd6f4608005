"""Run trials on other machines: runs send requests to mailboxes or Ray, workers answer them."""
