"""The official Python SDK as a client of /mcp, in both eras of the protocol. Prints what it was given as JSON."""

import asyncio
import json
import os

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client


async def seen(mode):
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    progress = []

    async def told(done, total, message):
        progress.append(message)

    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        async with Client(streamable_http_client(os.environ["MCP_URL"], http_client=http), mode=mode) as client:
            tools = await client.list_tools()
            said = await client.call_tool("exec", {"command": "echo hi; exit 3"})
            missing = await client.call_tool("read", {"path": "none"})
            slow = await client.call_tool("exec", {"command": "sleep 6"}, progress_callback=told)
            return {
                "version": client.protocol_version,
                "tools": len(tools.tools),
                "said": said.content[0].text,
                "missing": missing.is_error,
                "slow": slow.is_error,
                "progress": len(progress),
            }


async def main():
    print(json.dumps([await seen("legacy"), await seen("2026-07-28"), await seen("auto")]))


asyncio.run(main())
