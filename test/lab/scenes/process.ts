/** Postern as the process that an operator runs: started, killed and started again on the same data directory. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const main = join(import.meta.dirname, '../../../src/main.ts');

export interface PosternProcess {
  url: string;
  pid: number;
  /** All log lines so far. */
  lines: string[];
  /** Settles when it is gone. */
  gone: Promise<unknown>;
  /** Ends it and waits until it is gone; answers its exit code, null after SIGKILL. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/** Resolves when it serves; rejects with what it said when it ends before that, or hangs. `flags` are Node's. */
export async function startProcess(
  settings: Record<string, string>,
  flags: string[] = [],
): Promise<PosternProcess> {
  const child = spawn(process.execPath, [...flags, main], {
    env: { ...inheritedEnv(), POSTERN_LOG_FORMAT: 'json', POSTERN_HTTP_PORT: '0', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const gone = once(child, 'exit');
  const lines: string[] = [];
  const url = await serving(child, lines);
  return {
    url,
    pid: child.pid!,
    lines,
    gone,
    async end(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
      child.kill(signal);
      const [code] = await gone;
      return code;
    },
  };
}

/** The cache as scripts/start would have one. */
function inheritedEnv() {
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE && { NODE_COMPILE_CACHE }) };
}

/** A start that hangs is ended after this time: minutes, because a machine may be slow or have other work. */
const timeoutMs = 300_000;

function serving(child: ChildProcess, lines: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    createInterface({ input: child.stderr! }).on('line', (line) => lines.push(line));
    createInterface({ input: child.stdout! }).on('line', (line) => {
      lines.push(line);
      const url = /serves at (http:[^\s"]+)/.exec(line)?.[1];
      if (!url) return;
      clearTimeout(timer);
      resolve(url);
    });
    child.once('exit', (code) => {
      clearTimeout(timer);
      reject(new Error(`ended with ${code} before it served:\n${lines.join('\n')}`));
    });
  });
}
