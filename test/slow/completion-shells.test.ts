/** Three real shells offer what `postern complete` prints: bash, zsh and fish, each with the script that it is given. */
import { spawnSync } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { postern } from '#lab/cli.ts';
import { temporaryDirectory } from '#lab/evidence.ts';
import { testWithProgram } from '#lab/needing.ts';
import { startNames } from '#lab/scenes/cli-names.ts';
import { spawnTerminal } from '#lab/terminal.ts';
import { until } from '#lab/until.ts';

const has = (program: string) => spawnSync(program, ['--version']).status === 0;

/** The environment of a shell in which `postern` is a command. */
async function shellOf(t: ExecutionContext) {
  const { env, ...scene } = await startNames(t);
  const bin = await temporaryDirectory(t);
  await symlink(postern, join(bin, 'postern'));
  const home = await temporaryDirectory(t);
  return { ...scene, home, env: { ...env, PATH: `${bin}:${process.env.PATH}`, HOME: home, TERM: 'dumb' } };
}

testWithProgram(has('bash'))(
  'real bash completes words with spaces, at signs and hostile names',
  async (t) => {
    const { env, home } = await shellOf(t);
    const tries = [
      'postern que',
      'postern queue rule x.example ho',
      'postern domain list --org Tw',
      'postern domain show --org "Two Words" ',
      'postern suppression show ',
      'postern domain show acme.exa',
      'postern queue list --status="de',
      'postern $(touch pwned2) ',
    ];
    const script = `source <(postern completion bash)
try() { COMP_LINE=$1 COMP_POINT=\${#1}; COMPREPLY=(); _postern; echo "$1 => \${COMPREPLY[*]}"; }
${tries.map((line) => `try '${line}'`).join('\n')}
complete -p postern`;
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { env, cwd: home });
    t.is(stderr.toString(), '');
    t.deepEqual(stdout.toString().trim().split('\n'), [
      'postern que => queue',
      'postern queue rule x.example ho => hold',
      'postern domain list --org Tw => Two\\ Words',
      'postern domain show --org "Two Words"  => words.example',
      'postern suppression show  => \\`touch\\$IFS\\{\\}pwned\\`@x.example',
      'postern domain show acme.exa => acme.example',
      'postern queue list --status="de => ',
      'postern $(touch pwned2)  => ',
      'complete -F _postern postern',
    ]);
    t.is(spawnSync('ls', [home]).stdout.toString(), '', 'nothing was run');
  },
);

testWithProgram(has('fish'))('real fish completes, with descriptions', async (t) => {
  const { env, home } = await shellOf(t);
  const script = `postern completion fish | source
complete -C 'postern queue sl'
complete -C 'postern domain show --org "Two Words" '
complete -C 'postern queue list --status de'`;
  const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', script], { env, cwd: home });
  t.is(stderr.toString(), '');
  t.deepEqual(stdout.toString().trim().split('\n'), [
    'slow\tLimit the rate of a destination for one hour, or as long as --for says.',
    'words.example\tpending',
    'deferred',
    'delivered',
  ]);
});

testWithProgram(has('zsh') && has('script'))('real zsh completes at the press of Tab', async (t) => {
  const { env, home } = await shellOf(t);
  const zsh = spawnTerminal(t, 'zsh -f -i', { ...env, PS1: 'READY ' }, home);
  const say = async (text: string, what: string) => {
    zsh.press(text);
    await until(() => zsh.shown().includes(what), {
      what: () => `${what} in ${JSON.stringify(zsh.shown())}`,
    });
  };
  await say(
    'autoload -Uz compinit; compinit -u; source <(postern completion zsh); echo load""ed\r',
    'loaded',
  );
  await say('postern queue sl\t', 'postern queue slow ');
  await say('\u0015postern domain list --org Tw\t', 'Two\\ Words');
  await say('\u0015postern queue list --status de\t', 'delivered');
  t.true(zsh.shown().includes('deferred'));
});
