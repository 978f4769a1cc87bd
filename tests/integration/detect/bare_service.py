"""A service of one route that answers with a constant: what the framework alone costs a request.

python tests/integration/detect/bare_service.py PORT
"""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI

ANSWER = {"results": [{"id": "0", "verdict": "not_detected"}]}


def main() -> None:
    """Serves until it is ended."""
    app = FastAPI()

    @app.post("/v1/detect/direct")
    async def direct(body: dict[str, Any]) -> dict[str, Any]:
        return ANSWER

    @app.get("/readyz")
    async def readyz() -> None:
        return None

    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_config=None, access_log=False)


if __name__ == "__main__":
    main()
