"""The description of the API as a page: from the same OpenAPI document that programs read."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from askwise.web.templating import page

router = APIRouter()


@router.get("/docs")
def docs(request: Request) -> Response:
    """Every route, what it takes and what it gives."""
    document = request.app.openapi()
    schemas = document["components"]["schemas"]
    routes = [
        {
            "path": path,
            "method": method.upper(),
            "tag": route["tags"][0],
            "words": route.get("description", ""),
            "parameters": [one for one in route.get("parameters", ()) if one["in"] != "path"],
            "sends": _schema(route.get("requestBody"), schemas),
            "gives": _given(route["responses"], schemas),
        }
        for path, methods in document["paths"].items()
        for method, route in methods.items()
    ]
    return page(request, "docs.html", {"routes": routes, "root": request.scope.get("root_path", "")})


def _given(responses: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any] | None:
    return next((_schema(one, schemas) for status, one in responses.items() if status.startswith("2")), None)


def _schema(body: dict[str, Any] | None, schemas: dict[str, Any]) -> dict[str, Any] | None:
    """The fields of the JSON in a request or a response; None if it is no object."""
    content = (body or {}).get("content", {}).get("application/json", {}).get("schema", {})
    many = content.get("type") == "array"
    reference = (content.get("items", {}) if many else content).get("$ref", "")
    schema = schemas.get(reference.rpartition("/")[2])
    if schema is None:
        return None
    required = schema.get("required", [])
    fields = [
        (name, kind_in_words(one), name in required, one.get("description", ""))
        for name, one in schema.get("properties", {}).items()
    ]
    return {"many": many, "fields": fields}


def kind_in_words(schema: dict[str, Any]) -> str:
    """The type of a field in words."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(map(kind_in_words, schema["anyOf"])))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2]).removesuffix("Out").lower()
    if schema.get("type") == "array":
        return f"list of {kind_in_words(schema.get('items', {}))}"
    return str(schema.get("type", "anything"))
