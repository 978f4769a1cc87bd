"""Objects that hold key material and must not be written anywhere."""

from typing import Any, NoReturn, SupportsIndex


class Confidential:
    """Base of objects with secrets: no field in repr, str or format; not picklable, not copyable."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise TypeError(f"{type(self).__name__} holds key material and cannot be copied or pickled")

    def __getstate__(self) -> Any:
        raise TypeError(f"{type(self).__name__} holds key material and cannot be copied or pickled")
