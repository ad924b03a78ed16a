import { defineConfig } from 'vite';
import { compressed } from './build/compressed.ts';
import { licences } from './build/licences.ts';

const notices = licences();

export default defineConfig({
  // Relative addresses: the page is <prefix>/playground, its files are below it.
  base: './',
  plugins: [
    notices.plugin(),
    compressed(() => ({ 'playground/THIRD_PARTY_LICENSES.txt': notices.document() })),
  ],
  worker: { format: 'es', plugins: () => [notices.plugin()] },
  build: {
    assetsDir: 'playground/assets',
    // Files of their own instead of data: URLs, and no preload helper script.
    assetsInlineLimit: 0,
    modulePreload: false,
    target: 'es2022',
    // Monaco alone is larger than the default limit of the warning.
    chunkSizeWarningLimit: 4096,
    reportCompressedSize: false,
    rolldownOptions: {
      onLog(level, log, report) {
        // "use client" speaks to React servers; there is none here.
        if (log.code !== 'MODULE_LEVEL_DIRECTIVE') report(level, log);
      },
    },
  },
});
