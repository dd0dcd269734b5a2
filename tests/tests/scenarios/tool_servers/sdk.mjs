// A tool server made with the official TypeScript SDK. Its first argument is the folder where that is installed.
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const peers = createRequire(join(process.argv[2], 'package.json'));
const load = (name) => import(pathToFileURL(peers.resolve(name)));
const { McpServer, acceptedContent, fromJsonSchema, inputRequired } = await load('@modelcontextprotocol/server');
const { serveStdio } = await load('@modelcontextprotocol/server/stdio');

const where = {
    type: 'object',
    properties: { city: { type: 'string' }, nights: { type: 'integer', default: 2 } },
    required: ['city'],
};
const who = fromJsonSchema({ type: 'object', properties: { who: { type: 'string' } }, required: ['who'] });

serveStdio(() => {
    const server = new McpServer({ name: 'sdk', version: '1' });
    server.registerTool('book', { description: 'Books a room.' }, async (ctx) => {
        const said = acceptedContent(ctx.mcpReq.inputResponses, 'q');
        if (said === undefined) {
            const asked = inputRequired.elicit({ message: 'Where to?', requestedSchema: where });
            return inputRequired({ inputRequests: { q: asked } });
        }
        return { content: [{ type: 'text', text: `${said.city}, ${said.nights} nights` }] };
    });
    server.registerPrompt('greet', { description: 'Greets somebody', argsSchema: who }, ({ who }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${who}.` } }],
    }));
    server.registerResource('one', 'note://one', {}, async () => ({
        contents: [{ uri: 'note://one', text: 'the moon is far' }],
    }));
    return server;
});
