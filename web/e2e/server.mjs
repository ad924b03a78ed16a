// A koine that a walk starts, ends, kills and starts again: at the same address, with
// the same data.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

export class Server {
  #listen = '127.0.0.1:0';
  #process;

  /** program is koine; data, its data directory. */
  constructor(program, data) {
    this.program = program;
    this.data = data;
  }

  /** Starts it and returns its address. One whose port is taken for the moment tries again. */
  async start() {
    for (;;) {
      const flags = ['serve', '--demo', '--reserve-mib', '0', '--data', this.data, '--listen', this.#listen];
      const started = spawn(this.program, flags, { env: { ...process.env, KOINE_LOG_FORMAT: 'json' }, stdio: ['ignore', 'ignore', 'pipe'] });
      const url = await listening(started);
      if (url) {
        this.#process = started;
        this.#listen = new URL(url).host;
        return url;
      }
    }
  }

  /** Ends it with a signal and waits for that. */
  async end(signal) {
    const ended = this.#process;
    if (!ended) return;
    this.#process = undefined;
    const exit = new Promise((resolve) => ended.once('exit', resolve));
    ended.kill(signal);
    await exit;
  }
}

/** The address that a koine says it listens at; undefined when it ends without. */
function listening(started) {
  return new Promise((resolve, reject) => {
    started.once('error', reject);
    started.once('exit', () => resolve(undefined));
    createInterface({ input: started.stderr }).on('line', (line) => {
      if (!line.startsWith('{')) return;
      const { msg, url } = JSON.parse(line);
      if (msg === 'listening') resolve(url);
    });
  });
}
