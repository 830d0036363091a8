"""Experiments as JSON and back, strictly: every field there, no other, each of its type."""

import dataclasses
import json
import math
import types
import typing
from dataclasses import MISSING
from typing import Any, Literal

from scae.config import ConstellationExperiment, Experiment, ImageExperiment
from scae.errors import ScaeError

_KINDS: dict[str, type[ImageExperiment] | type[ConstellationExperiment]] = {
    "images": ImageExperiment,
    "constellations": ConstellationExperiment,
}
_LARGEST_INT = 2**63 - 1
_LONGEST_TUPLE = 1000


def to_json(experiment: Experiment) -> dict[str, Any]:
    """An experiment as JSON-ready values; `kind` says which of the two classes it is."""
    kind = next(name for name, cls in _KINDS.items() if isinstance(experiment, cls))
    fields = dataclasses.asdict(experiment)
    return {"kind": kind, **typing.cast(dict[str, Any], _lists(fields))}


def from_json(value: object, where: str) -> Experiment:
    """The experiment that `to_json` wrote; `where` names the file in error messages."""
    if not isinstance(value, dict):
        raise ScaeError(f"{where} holds no experiment: expected a JSON object of its fields.")
    fields = dict(value)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ScaeError(
            f"{where}: field 'kind' is {_short(kind)}; expected 'images' or 'constellations'."
        )
    experiment: Experiment = _read_dataclass(_KINDS[kind], fields, "", where)
    return experiment


def parse(text: str | bytes, where: str) -> Experiment:
    """`from_json` of the text of a file."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise ScaeError(
            f"{where} is not valid JSON ({reason}); expected a config.json that scae wrote."
        ) from None
    return from_json(value, where)


def differences(a: Experiment, b: Experiment) -> list[str]:
    """Lines `field: value in a -> value in b`, one per field that differs."""
    old, new = _flat(to_json(a)), _flat(to_json(b))
    return [
        f"{key}: {_short(old.get(key))} -> {_short(new.get(key))}"
        for key in [*old, *(key for key in new if key not in old)]
        if old.get(key) != new.get(key)
    ]


def _lists(value: Any) -> Any:
    """Tuples as lists, as JSON returns them."""
    if isinstance(value, dict):
        return {key: _lists(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_lists(item) for item in value]
    return value


def _flat(value: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat.update(_flat(item, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = item
    return flat


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _read_dataclass(cls: Any, value: object, name: str, where: str) -> Any:
    prefix = f"{name}." if name else ""
    if not isinstance(value, dict):
        raise ScaeError(f"{where}: field '{name}' is {_short(value)}; expected a JSON object.")
    hints = typing.get_type_hints(cls)
    for key in value:
        if key not in hints:
            raise ScaeError(
                f"{where}: field '{prefix}{str(key)[:60]}' is unknown; remove it, or use the "
                "version of scae that wrote the file."
            )
    # A field with a default may be missing: weights stay readable when an option is added.
    for field in dataclasses.fields(cls):
        required = field.default is MISSING and field.default_factory is MISSING
        if required and field.name not in value:
            raise ScaeError(f"{where}: field '{prefix}{field.name}' is missing; add it.")
    present = {k: h for k, h in hints.items() if k in value}
    return cls(**{k: _read(h, value[k], f"{prefix}{k}", where) for k, h in present.items()})


def _read(hint: Any, value: object, name: str, where: str) -> Any:
    """`value` as the annotated type, or an error that names the field."""
    if dataclasses.is_dataclass(hint):
        return _read_dataclass(hint, value, name, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):  # only `X | None` occurs
        if value is None:
            return None
        inner = next(a for a in arguments if a is not types.NoneType)
        return _read(inner, value, name, where)
    if origin is Literal:
        if isinstance(value, str) and value in arguments:
            return value
        raise _ill_typed(name, value, "one of " + ", ".join(map(repr, arguments)), where)
    if origin is tuple:
        return _read_tuple(arguments, value, name, where)
    return _read_scalar(hint, value, name, where)


def _read_tuple(arguments: tuple[Any, ...], value: object, name: str, where: str) -> Any:
    if not isinstance(value, (list, tuple)) or len(value) > _LONGEST_TUPLE:
        raise _ill_typed(name, value, "a list", where)
    if arguments[-1] is Ellipsis:
        kinds = [arguments[0]] * len(value)
    elif len(value) == len(arguments):
        kinds = list(arguments)
    else:
        raise _ill_typed(name, value, f"a list of {len(arguments)} values", where)
    items = zip(kinds, value, strict=True)
    return tuple(_read(k, item, f"{name}[{i}]", where) for i, (k, item) in enumerate(items))


def _read_scalar(hint: Any, value: object, name: str, where: str) -> Any:
    if hint is bool:
        if isinstance(value, bool):
            return value
        raise _ill_typed(name, value, "true or false", where)
    if hint is int:
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST_INT:
            return value
        raise _ill_typed(name, value, "a whole number", where)
    if hint is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # Compared before converting: float() of a huge integer overflows.
        if number and -1e300 < typing.cast(float, value) < 1e300:
            result = float(typing.cast(float, value))
            if math.isfinite(result):
                return result
        raise _ill_typed(name, value, "a finite number", where)
    if isinstance(value, str):
        return value
    raise _ill_typed(name, value, "text", where)


def _ill_typed(name: str, value: object, expected: str, where: str) -> ScaeError:
    return ScaeError(f"{where}: field '{name}' is {_short(value)}; expected {expected}.")
