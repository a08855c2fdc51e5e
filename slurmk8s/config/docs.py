"""The configuration's reference page, made from the models' own docstrings."""

import types
import typing
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurmk8s.config import DEFAULT_PATH, Config, Mount, Partition

EXAMPLE = """\
cluster = "lab"

[images]
registry = "nas-hub.local:5407"
allowed = ["nas-hub.local:5407/"]

[intake]
language = "ko"

[partitions.gpu]
image = "nas-hub.local:5407/pytorch:2.0-cuda11.8"

[mounts.datasets]
source = "/mnt/datasets"
target = "/mnt/datasets"
read_only = true
require_mountpoint = true
"""

_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", Path: "path"}


def page() -> str:
    """The whole page in Markdown."""
    lines = [
        "# Configuration",
        "",
        f"One TOML file, `{DEFAULT_PATH}` (or the one that `SLURMK8S_CONFIG` names). Every key has a default;",
        "an unknown key is an error. `slurmk8s config check` tells whether the file is right, `slurmk8s config show`",
        "what is in force. This page is made by `slurmk8s config docs`.",
        "",
        "An example:",
        "",
        f"```toml\n{EXAMPLE}```",
        "",
    ]
    tables: list[tuple[str, type[BaseModel]]] = []
    lines += ["## Top level", ""]
    for name, field in Config.model_fields.items():
        section = _section(field)
        if section is None:
            lines += _entry(name, field)
        else:
            tables.append((name, section))
    for name, section in tables:
        lines += [f"## `[{name}]`", "", _sentence(section.__doc__), ""]
        for key, field in section.model_fields.items():
            lines += _entry(key, field)
    for title, section in (("partitions.<name>", Partition), ("mounts.<name>", Mount)):
        lines += [f"## `[{title}]`", "", _sentence(section.__doc__), ""]
        for key, field in section.model_fields.items():
            lines += _entry(key, field)
    return "\n".join(lines).rstrip() + "\n"


def _section(field: FieldInfo) -> type[BaseModel] | None:
    annotation = field.annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None


def _entry(name: str, field: FieldInfo) -> list[str]:
    default = "required" if field.is_required() else f"default `{_value(name, field.default)}`"
    return [f"- **`{name}`** ({_kind(field.annotation)}, {default})", f"  {_sentence(field.description)}", ""]


def _value(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_mode") and isinstance(value, int):
        return f"0o{value:o}"
    if isinstance(value, tuple):
        return "[" + ", ".join(f'"{item}"' for item in value) + "]"
    if value is None:
        return "none"
    return f'"{value}"' if isinstance(value, str | Path) else str(value)


def _kind(annotation: object) -> str:
    origin = typing.get_origin(annotation)
    if origin is typing.Literal:
        return " or ".join(f'"{word}"' for word in typing.get_args(annotation))
    if origin is tuple:
        return f"list of {_kind(typing.get_args(annotation)[0])}s"
    if origin is dict:
        return "tables"
    if origin in (types.UnionType, typing.Union):
        return _kind(next(part for part in typing.get_args(annotation) if part is not type(None)))
    return _WORDS.get(annotation, str(annotation))  # type: ignore[call-overload, no-any-return]


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())
