"""What `ttmark up` needs to run both services on this machine."""
