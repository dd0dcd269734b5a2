// The official TypeScript SDK as a client of /mcp, in both eras of the protocol. Prints what it was given as JSON.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const peers = createRequire(join(process.env.MCP_SDK, 'package.json'));
const sdk = await import(pathToFileURL(peers.resolve('@modelcontextprotocol/client')));

async function seen(mode) {
    const client = new sdk.Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
    const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
    const url = new URL(process.env.MCP_URL);
    await client.connect(new sdk.StreamableHTTPClientTransport(url, { requestInit: { headers } }));
    const progress = [];
    const tools = await client.listTools();
    const said = await client.callTool({ name: 'exec', arguments: { command: 'echo hi; exit 3' } });
    const missing = await client.callTool({ name: 'read', arguments: { path: 'none' } });
    const slow = await client.callTool(
        { name: 'exec', arguments: { command: 'sleep 6' } },
        { onprogress: (told) => progress.push(told.message) },
    );
    const result = {
        version: client.getNegotiatedProtocolVersion(),
        tools: tools.tools.length,
        said: said.content[0].text,
        missing: missing.isError ?? false,
        slow: slow.isError ?? false,
        progress: progress.length,
    };
    await client.close();
    return result;
}

console.log(JSON.stringify([await seen('legacy'), await seen({ pin: '2026-07-28' }), await seen('auto')]));
