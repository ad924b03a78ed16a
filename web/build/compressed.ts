// Replaces every file of the finished build by its gzipped form, the only one that
// is committed and embedded. fflate and not zlib: the bytes that zlib makes differ
// between its versions and between processors.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { gzipSync } from 'fflate';
import type { Plugin } from 'vite';

/** extra: further files, by their names in the output, asked for at the very end. */
export function compressed(extra: () => Record<string, string>): Plugin {
  let directory = '';
  return {
    name: 'koine-compressed',
    apply: 'build',
    configResolved(config) {
      directory = resolve(config.root, config.build.outDir);
    },
    closeBundle() {
      for (const [name, text] of Object.entries(extra())) {
        const file = join(directory, name);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
      }
      for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile()) continue;
        const file = join(entry.parentPath, entry.name);
        writeFileSync(`${file}.gz`, gzipSync(readFileSync(file), { level: 9, mtime: 0 }));
        rmSync(file);
      }
    },
  };
}
