/**
 * `top` and `logs -f` on a terminal: a pseudo-terminal of util-linux's script(1). What is drawn is tested without it
 * (top.test.ts, log-filter.test.ts).
 */
import { execFileSync } from 'node:child_process';
import { appendFile, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ExecutionContext } from 'ava';
import { postern, startCli } from '#lab/cli.ts';
import { testWithProgram } from '#lab/needing.ts';
import { spawnTerminal } from '#lab/terminal.ts';
import { until } from '#lab/until.ts';
import { mailLogFile } from '#platform/values/mail-log.ts';

const hasScript = (() => {
  try {
    return execFileSync('script', ['--version'], { stdio: 'pipe' }).includes('util-linux');
  } catch {
    return false;
  }
})();

/** Runs the command line on a terminal of 80 by 24, and says what became of the terminal's settings. */
async function onTerminal(t: ExecutionContext, args: string, more: Record<string, string> = {}) {
  const { env, dataDir } = await startCli(t);
  const file = mailLogFile(dataDir);
  await mkdir(dirname(file), { recursive: true });
  const command = `before=$(stty -g); "${postern}" ${args}; echo "ended $?"; [ "$before" = "$(stty -g)" ] && echo "as it was"`;
  const terminal = spawnTerminal(t, command, { ...env, TERM: 'xterm-256color', ...more }, '/');
  return {
    ...terminal,
    file,
    shows: (text: string) =>
      until(() => terminal.shown().includes(text), {
        what: () => `${text} in ${JSON.stringify(terminal.shown().slice(-3000))}`,
      }),
  };
}

function logLine(event: string, reply: string | null): string {
  const line = { time: new Date().toISOString(), event, msg: `${event} mail`, emailId: 'e1' };
  const rest = { recipient: 'ann@d.example', destination: 'd.example', host: 'mx.d.example', reply, ms: 7 };
  return `${JSON.stringify({ ...line, ...rest })}\n`;
}

const onScript = testWithProgram(hasScript);

onScript('top takes the screen, shows what comes, obeys its keys, and gives the terminal back', async (t) => {
  const top = await onTerminal(t, 'top --every 200ms');
  await top.shows('Nothing waits.');
  t.regex(top.shown(), /\u001b\[\?1049h\u001b\[\?25l/);
  await appendFile(top.file, logLine('bounced', '550 5.1.1 Nobody'));
  await top.shows('1 \u001b[31mbounced');
  top.press('s');
  await top.shows('s sort by due');
  top.press('p');
  await top.shows('PAUSED');
  top.press('q');
  await top.shows('as it was');
  t.regex(top.shown(), /\u001b\[\?25h\u001b\[\?1049l.*ended 0\r\nas it was/s);
});

onScript('top ends with Ctrl-C too, and without colours where NO_COLOR is set', async (t) => {
  const top = await onTerminal(t, 'top', { NO_COLOR: '1' });
  await top.shows('Nothing waits.');
  top.press('\u0003');
  await top.shows('as it was');
  t.regex(top.shown(), /\u001b\[\?25h\u001b\[\?1049l.*ended 0\r\nas it was/s);
  t.notRegex(top.shown(), /\u001b\[[1-9]\d*m/);
});

onScript('logs -f shows a story in colours and columns as it happens', async (t) => {
  const logs = await onTerminal(t, 'logs -f');
  await logs.shows('no line matches');
  await appendFile(logs.file, logLine('accepted', null) + logLine('deferred', '451 later \u001b]0;x\u0007'));
  await logs.shows('deferred');
  await logs.shows('451 later \\x1b]0;x\\x07');
  t.regex(logs.shown(), /\u001b\[36maccepted/);
  logs.press('\u0003');
  await logs.gone;
});
