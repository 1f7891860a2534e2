/** What makes a build fit to be shipped: the licences of what it bundles, and each file compressed once, not per request. */

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

import type { Plugin } from "vite";

interface Manifest {
  name: string;
  version: string;
  license?: string;
}

const LICENCE_FILE = /^(licen[cs]e|copying|notice)([.-].*)?$/i;
const COMPRESSED = /\.(js|css|svg|txt|json)$/;

const PACKAGE = /^.*\/node_modules\/(@[^/]+\/)?[^/]+/;

/** The folder of the package that a module comes from; undefined for our own modules. */
const packageOf = (id: string): string | undefined => PACKAGE.exec(id)?.[0].replace(/^\0/, "");

function manifestOf(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function licenceOf(folder: string): string {
  const { name, version, license } = manifestOf(folder);
  const texts = readdirSync(folder).filter((file) => LICENCE_FILE.test(file));
  if (texts.length === 0) throw new Error(`${name} has no licence text: it cannot be shipped`);
  const whole = texts.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n");
  return `${name} ${version} (${license ?? "see below"})\n\n${whole}\n`;
}

export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle() {
      const folders = new Set([...this.getModuleIds()].map(packageOf).filter((one) => one !== undefined));
      const source = [...folders].sort().map(licenceOf).join(`\n${"-".repeat(80)}\n\n`);
      this.emitFile({ type: "asset", fileName: "licenses.txt", source });
    },
  };
}

/** Writes `.gz` and `.br` beside what compresses well. Not for index.html, which the server completes. */
export function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    writeBundle(options, bundle) {
      for (const file of Object.keys(bundle).filter((name) => COMPRESSED.test(name))) {
        const path = join(options.dir ?? ".", file);
        const content = readFileSync(path);
        const quality = { params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY } };
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
        writeFileSync(`${path}.br`, brotliCompressSync(content, quality));
      }
    },
  };
}
