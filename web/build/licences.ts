// Collects the licence texts of every package that has a module in the bundle, in
// the page or in a worker, and of what those packages say they contain themselves.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Plugin } from 'vite';

const modules = fileURLToPath(new URL('../node_modules', import.meta.url));
const noticeFile = /^(licen[cs]e|copying|notice|thirdpartynotices)([.-].*)?$/i;

// Packages published without a licence text, and the package of the same authors
// and licence whose text is theirs.
const textOf: Record<string, string> = {
  '@graphiql/plugin-doc-explorer': 'graphiql',
  '@graphiql/plugin-history': 'graphiql',
  'react-compiler-runtime': 'react',
  'react-remove-scroll-bar': 'react-remove-scroll',
};

// The fonts inside the style sheet of @graphiql/react, which carries no notice of them.
const fonts: Notice[] = [
  {
    name: 'Fira Code (font)',
    license: 'OFL-1.1',
    homepage: 'https://github.com/tonsky/FiraCode',
    text: readFileSync(new URL('notices/fira-code.txt', import.meta.url), 'utf8').trim(),
  },
  {
    name: 'Roboto 2.137 (font)',
    license: 'Apache-2.0',
    homepage: 'https://github.com/googlefonts/roboto-2',
    text: readFileSync(new URL('notices/roboto.txt', import.meta.url), 'utf8').trim(),
  },
];

interface Notice {
  /** Name and version. */
  name: string;
  license: string;
  homepage: string;
  text: string;
}

/** One collection for the whole build. */
export function licences() {
  const directories = new Set<string>();

  return {
    /** One for the page and one for each worker: they are bundled apart. */
    plugin(): Plugin {
      return {
        name: 'koine-licences',
        moduleParsed({ id }) {
          const directory = packageDirectory(id);
          if (directory) directories.add(directory);
        },
      };
    },

    /** The document of all notices, to be called when everything is bundled. */
    document(): string {
      const notices = new Map(fonts.map((font) => [font.name, font]));
      for (const directory of directories) {
        const notice = packageNotice(directory);
        notices.set(notice.name, notice);
      }
      return render([...notices.values()]);
    },
  };
}

/** The directory of the package that a module belongs to, if it is not our own. */
function packageDirectory(id: string): string | undefined {
  const path = id.replace(/^\0/, '').replace(/\?.*$/, '');
  if (!path.includes('/node_modules/')) return undefined;
  for (let directory = dirname(path); ; directory = dirname(directory)) {
    if (directory.endsWith('/node_modules')) throw new Error(`no package manifest above ${id}`);
    // Some packages keep nameless manifests in their folders, to set a module type.
    if (existsSync(join(directory, 'package.json')) && manifest(directory).version) return directory;
  }
}

function manifest(directory: string) {
  return JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8'));
}

function packageNotice(directory: string): Notice {
  const { name, version, license, repository, homepage } = manifest(directory);
  if (typeof license !== 'string') throw new Error(`${name} names no licence`);
  const source: string = repository?.url ?? repository ?? homepage ?? '';
  return {
    name: `${name} ${version}`,
    license,
    homepage: source.replace(/^git\+/, '').replace(/\.git$/, ''),
    text: texts(name in textOf ? join(modules, textOf[name]!) : directory),
  };
}

function texts(directory: string): string {
  const files = readdirSync(directory).filter((file) => noticeFile.test(file)).sort();
  if (files.length === 0) throw new Error(`no licence text in ${directory}`);
  return files
    .map((file) => readFileSync(join(directory, file), 'utf8').replace(/\r\n?/g, '\n').trim())
    .join(`\n\n${'-'.repeat(80)}\n\n`);
}

function render(notices: Notice[]): string {
  notices.sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1));
  const rule = '='.repeat(80);
  return [
    'The koine playground contains this software of others:',
    '',
    ...notices.map((n) => `  ${n.name} (${n.license})`),
    '',
    ...notices.flatMap((n) => [rule, n.name, n.homepage, n.license, rule, '', n.text, '']),
  ].join('\n');
}
