"""The configuration's reference page, made from the models' own docstrings."""

import types
import typing
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from slurmk8s.config import DEFAULT_PATH, NAMED, Config

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
    lines += ["## Top level", ""]
    tables = _keys(Config, "", lines)
    for title, section in tables:  # grows while it is read: a table may hold tables
        lines += [f"## `{title}`", "", _sentence(section.__doc__), ""]
        tables += _keys(section, title.strip("[]") + ".", lines)
    return "\n".join(lines).rstrip() + "\n"


def _keys(section: type[BaseModel], prefix: str, lines: list[str]) -> list[tuple[str, type[BaseModel]]]:
    """Write a table's keys; the tables that it holds in turn."""
    tables: list[tuple[str, type[BaseModel]]] = []
    named: list[tuple[str, type[BaseModel]]] = []
    for name, field in section.model_fields.items():
        inner = _section(field)
        if inner is not None:
            tables.append((f"[{prefix}{name}]", inner))
            if not prefix:
                continue
        lines += _entry(name, field)
        if name == "tolerations":
            named += [(f"[[{prefix}{name}]]", NAMED[name])] if prefix == "kubernetes." else []
        elif name in NAMED:
            named.append((f"[{prefix}{name}.<name>]", NAMED[name]))
    return tables + named


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
        return "[" + ", ".join(_value("", item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_value('', item)}" for key, item in value.items()) + "}"
    if isinstance(value, BaseModel):
        return _value("", {key: item for key, item in value.model_dump().items() if item is not None})
    if value is None:
        return "none"
    return f'"{value}"' if isinstance(value, str | Path) else str(value)


def _kind(annotation: object) -> str:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _kind(typing.get_args(annotation)[0])
    if origin is typing.Literal:
        return " or ".join(f'"{word}"' for word in typing.get_args(annotation))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    if origin is tuple:
        return f"list of {_kind(typing.get_args(annotation)[0])}s"
    if origin is dict:
        held = typing.get_args(annotation)[1]
        return "tables" if isinstance(held, type) and issubclass(held, BaseModel) else "table"
    if origin in (types.UnionType, typing.Union):
        return _kind(next(part for part in typing.get_args(annotation) if part is not type(None)))
    return _WORDS.get(annotation, str(annotation))  # type: ignore[call-overload, no-any-return]


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split())
