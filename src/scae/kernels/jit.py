"""How inner loops are compiled, and the exponential that they use."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, no_type_check

import numpy as np
from numba import njit

# Sums may be reordered and multiply-adds contracted; infinities and NaN keep their meaning.
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
    "error_model": "numpy",
}
# Called from compiled code only, so they need no entry points of their own.
compiled: Any = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **_OPTIONS)  # type: ignore[call-overload]


def entry(function: Callable[..., Any]) -> Any:
    """Compile a function that Python calls, and keep it on disk where a folder is writable."""
    # numba's cache notices changes of the function's own file only, so its name carries the
    # state of the files that it calls into: its neighbours and this one.
    folders = {Path(__file__).parent, Path(function.__code__.co_filename).parent}
    sources = sorted(path for folder in folders for path in folder.glob("*.py"))
    state = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:8]
    function.__qualname__ = f"{function.__qualname__}_{state}"
    try:
        return njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no folder it may write: compile in every process
        return njit(**_OPTIONS)(function)


_LOG2E = np.float32(1.4426950408889634)
_LOWEST = np.float32(-126.0)
_HALF = np.float32(0.5)
# Interpolates 2^f at Chebyshev points of [-1/2, 1/2], to 1e-8: below float32's rounding.
_FIT = np.polynomial.Chebyshev.interpolate(np.exp2, 6, domain=[-0.5, 0.5])
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c) for c in _FIT.convert(kind=np.polynomial.Polynomial).coef
)


@compiled
@no_type_check
def exp(x):
    """exp(x) of a float32 x <= 0.

    math.exp is a library call per number; these are a dozen instructions on eight at a time.
    """
    t = max(x * _LOG2E, _LOWEST)
    n = np.int32(t - _HALF)
    f = t - np.float32(n)
    p = _C5 + f * _C6
    p = _C3 + f * (_C4 + f * p)
    p = _C0 + f * (_C1 + f * (_C2 + f * p))
    return p * np.int32((n + np.int32(127)) << np.int32(23)).view(np.float32)
