import { defineConfig } from "vite";

// `base: "./"`: the page works below any path that a proxy puts before it.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/underlay/server/page/built",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0, // the content security policy allows no data: URLs
    modulePreload: { polyfill: false },
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
});
