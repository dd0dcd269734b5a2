import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";
import { compress } from "./compress.ts";

// `GANTRY_SERVER=http://127.0.0.1:7000 npm run dev` serves the pages from the sources, with the API of that server.
const server = process.env["GANTRY_SERVER"] ?? "http://127.0.0.1:7000";

export default defineConfig({
  plugins: [react(), tailwindcss(), compress()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  build: {
    target: "es2023",
    // Those that have `light-dark()`: it is lowered to a media query otherwise, which knows of no chosen theme.
    cssTarget: ["chrome123", "firefox128", "safari17.5"],
    // Each file's name has the digest of its content, so that a browser may keep it for ever.
    assetsDir: "assets",
    // A data: address would be inline content, which the Content-Security-Policy refuses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    // The licences of all packages of which something is in the files; a release's LICENCES has them as well.
    license: { fileName: "licences.md" },
  },
  server: { proxy: { "/api": { target: server, ws: true } } },
});
