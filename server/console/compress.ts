import { readFile, readdir, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { Plugin } from "vite";

const brotli = promisify(brotliCompress);
const zip = promisify(gzip);

/** Files whose formats are not compressed already. */
const TEXTS = new Set([".css", ".html", ".ico", ".js", ".json", ".md", ".svg", ".txt", ".wasm", ".webmanifest"]);

/** Bytes of a file below which the headers of its answer weigh more than what would be saved. */
const SMALL_BYTES = 1024;

/**
 * Writes a `.br` and a `.gz` beside each built file that becomes smaller so. The server chooses one by the request's
 * `Accept-Encoding`, and compresses nothing itself.
 */
export function compress(): Plugin {
  let folder = "";
  return {
    name: "compress",
    apply: "build",
    configResolved(config) {
      folder = config.build.outDir;
    },
    async closeBundle() {
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile() && TEXTS.has(extname(entry.name)));
      await Promise.all(files.map((file) => compressFile(join(file.parentPath, file.name))));
    },
  };
}

async function compressFile(path: string): Promise<void> {
  const bytes = await readFile(path);
  if (bytes.length < SMALL_BYTES) {
    return;
  }
  const smallest = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
  for (const [ending, made] of [
    [".br", await brotli(bytes, smallest)],
    [".gz", await zip(bytes, { level: 9 })],
  ] as const) {
    if (made.length < bytes.length) {
      await writeFile(path + ending, made);
    }
  }
}
