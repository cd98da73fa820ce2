/** A program on a pseudo-terminal, by util-linux's script(1). */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';

export function spawnTerminal(t: ExecutionContext, command: string, env: NodeJS.ProcessEnv, cwd: string) {
  const child = spawn('script', ['-qfec', `stty rows 24 cols 80; ${command}`, '/dev/null'], {
    env: { SHELL: '/bin/sh', ...env },
    cwd,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  t.teardown(() => child.kill());
  let shown = '';
  child.stdout.on('data', (bytes) => {
    shown += bytes;
  });
  return {
    gone: once(child, 'exit'),
    press: (keys: string) => child.stdin.write(keys),
    shown: () => shown,
  };
}
