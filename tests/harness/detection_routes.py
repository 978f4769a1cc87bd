"""Where each mode of detection is asked."""


def route_of(mode: str) -> str:
    return "/v1/detect" if mode == "combined" else f"/v1/detect/{mode}"
