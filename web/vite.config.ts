import { defineConfig } from "vite";

import { compressed, licences } from "./vite.shipping.ts";

// `base: "./"`: the page works below any path that a proxy puts before it.
export default defineConfig({
  base: "./",
  // The server puts a new nonce in its place with each answer: CodeMirror adds style elements, which the content
  // security policy allows by nonce only. The page finds it at `meta[property=csp-nonce]`, as its property `nonce`.
  html: { cspNonce: "NONCE-OF-THIS-ANSWER" },
  plugins: [licences(), compressed()],
  build: {
    outDir: "../src/underlay/server/page/built",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: URLs
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
});
