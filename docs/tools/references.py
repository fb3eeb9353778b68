"""The reference of the command line and of the HTTP API, made from the code whenever the site is built."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files
from typer.main import get_command

from askwise.web.api.docs import kind_in_words


def on_files(files: Files, config: Any) -> Files:
    """Add both pages."""
    files.append(File.generated(config, "reference-cli.md", content=cli_page()))
    files.append(File.generated(config, "reference-http.md", content=http_page()))
    return files


CLI = """# The command line

`askwise COMMAND --help` shows the same in a terminal. Every command that reads or changes a study takes the
study file by `--study FILE` (`-s`; by default `askwise.toml`), and `--json` makes it print one JSON document
and nothing else. `--import MODULE`, before or after the command, makes [plug-ins](plugins.md) known. Exit
codes: 0, done; 1, refused, with a message that says what to do; 2, not understood.

| command | |
|---|---|
{table}
"""


def cli_page() -> str:
    """Every command with its arguments and options."""
    from askwise.cli import main

    commands = list(_commands(get_command(main), "askwise"))  # type: ignore[arg-type]
    table = "\n".join(
        f"| [`{name}`](#{name.replace(' ', '-')}) | {_first(command.help)} |" for name, command in commands
    )
    return "\n\n".join([CLI.format(table=table), *(_section(name, command) for name, command in commands)])


def _commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    for key, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{name} {key}")  # type: ignore[arg-type]
        elif not command.hidden:
            yield f"{name} {key}", command


def _section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join([name, *(piece for piece in command.collect_usage_pieces(context))])
    rows = []
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            rows.append(f"| `{record[0].replace('|', 'or')}` | {_cell(record[1])} |")
    table = "| | |\n|---|---|\n" + "\n".join(rows) if rows else ""
    return f"## {name}\n\n{command.help or ''}\n\n```text\n{usage}\n```\n\n{table}"


def _first(text: str | None) -> str:
    return _cell((text or "").partition("\n\n")[0])


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


HTTP = """# HTTP

Every route of `askwise serve`, from the OpenAPI document that a running server has at `/api/v1/openapi.json`.
How to use them, with examples in curl, Python, R and others: [the HTTP API](http-api.md). Fields in bold must
be given.
"""


def http_page() -> str:
    """Every route with what it takes and gives."""
    from askwise.web.app import create
    from askwise.web.settings import Settings

    with tempfile.TemporaryDirectory() as folder:
        document = create(Settings(storage=str(Path(folder) / "askwise.db"))).openapi()
    schemas = document["components"]["schemas"]
    tagged: dict[str, list[str]] = {}
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            parts = [f"### {method.upper()} {path}", route.get("description", "")]
            parts.append(_parameters(route))
            parts.append(_fields("It takes", route.get("requestBody"), schemas))
            given = [one for status, one in route["responses"].items() if status.startswith("2")]
            parts.append(_fields("It gives", given[0] if given else None, schemas))
            tagged.setdefault(route["tags"][0], []).append("\n\n".join(part for part in parts if part))
    sections = [f"## {tag.capitalize()}\n\n" + "\n\n".join(routes) for tag, routes in tagged.items()]
    return "\n\n".join([HTTP, *sections])


def _parameters(route: dict[str, Any]) -> str:
    rows = [
        f"| `{one['name']}` | in the {one['in']} | {_cell(one.get('description', ''))} |"
        for one in route.get("parameters", ())
        if one["in"] != "path"
    ]
    return "| parameter | | |\n|---|---|---|\n" + "\n".join(rows) if rows else ""


def _fields(head: str, body: dict[str, Any] | None, schemas: dict[str, Any]) -> str:
    """The fields of the JSON in a request or a response as a table; nothing if it is no object."""
    content = (body or {}).get("content", {}).get("application/json", {}).get("schema", {})
    many = content.get("type") == "array"
    reference = (content.get("items", {}) if many else content).get("$ref", "")
    schema = schemas.get(reference.rpartition("/")[2])
    if schema is None or not schema.get("properties"):
        return ""
    rows = []
    for name, one in schema["properties"].items():
        shown = f"**`{name}`**" if name in schema.get("required", []) and "takes" in head else f"`{name}`"
        rows.append(f"| {shown} | {kind_in_words(one)} | {_cell(one.get('description', ''))} |")
    return f"{head}{' a list of' if many else ''}\n\n| field | type | |\n|---|---|---|\n" + "\n".join(rows)
