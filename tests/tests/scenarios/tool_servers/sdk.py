"""A tool server made with the official Python SDK."""

from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel


class Where(BaseModel):
    city: str
    nights: int = 2


server = MCPServer("sdk")


def asked() -> Elicit[Where]:
    return Elicit("Where to?", Where)


@server.tool()
def book(where: Annotated[Where, Resolve(asked)]) -> str:
    """Books a room."""
    return f"{where.city}, {where.nights} nights"


@server.prompt()
def greet(who: str) -> str:
    """Greets somebody"""
    return f"Greet {who}."


@server.resource("note://one")
def note() -> str:
    return "the moon is far"


server.run()
