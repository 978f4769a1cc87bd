"""The stack of docker-compose.yml and of the manifests, run with Podman: `make stack-test`."""
