/**
 * Every path that a comment names exists, and every relative link of the documents leads to a file or heading. A README
 * within src counts as a comment. A failure lists all misses with file and line.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import test from 'ava';
import { headingsOf } from '#lab/headings.ts';

const root = join(import.meta.dirname, '../..');

interface Line {
  file: string;
  line: number;
  text: string;
}

interface Mention extends Line {
  path: string;
}

const read = (file: string) => readFileSync(join(root, file), 'utf8');

const show = ({ file, line, path }: Mention) => `${file}:${line}: ${path}`;

/** Files of src/ by name: a name without a folder in a comment must be unique. */
const sourceFiles = globSync('src/**/*', { cwd: root });
const named = Map.groupBy(sourceFiles, (file) => basename(file));

/** Lines of C-like comments: blocks, whole lines, and ends of lines. */
function commentsIn(file: string): Line[] {
  let isInside = false;
  return read(file)
    .split('\n')
    .flatMap((text, index) => {
      const trimmed = text.trim();
      const isBlock = isInside || trimmed.startsWith('/*');
      isInside = isBlock && !trimmed.includes('*/');
      const comment = isBlock ? trimmed.replace(/\*\/.*/, '') : /(?:^|\s)\/\/ (.*)$/.exec(text)?.[1];
      return comment ? [{ file, line: index + 1, text: comment }] : [];
    });
}

/** Comment lines that begin with a mark, as in shell and SQL. */
function markedIn(mark: string): (file: string) => Line[] {
  return (file) => linesOf(file).filter(({ text }) => text.trimStart().startsWith(mark));
}

function linesOf(file: string): Line[] {
  return read(file)
    .split('\n')
    .map((text, index) => ({ file, line: index + 1, text }));
}

const readers: Record<string, (file: string) => Line[]> = {
  '.ts': commentsIn,
  '.js': commentsIn,
  '.css': commentsIn,
  '.jsonc': commentsIn,
  '.sql': markedIn('--'),
  '.sh': markedIn('#'),
  // Commands such as scripts/start.
  '': markedIn('#'),
};

function comments(): Line[] {
  const files = ['src', 'test', 'scripts'].flatMap((folder) =>
    globSync(`${folder}/**/*`, { cwd: root, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1)),
  );
  return files.flatMap((file) =>
    basename(file) === 'README.md' ? linesOf(file) : (readers[extname(file)]?.(file) ?? []),
  );
}

/** A word with one of these extensions is a file name. */
const kinds = 'ts|js|md|json|jsonc|css|eta|sql|sh|yaml|yml';
/** Below these folders every word with a slash is a path; elsewhere `text/html`, for example, is not. */
const tops = 'src|test|scripts|config|docs';

const notWithin = '(?<![\\w@./:<>$*{}-])';
const segments = '(?:\\.{1,2}/)*(?:[\\w@-][\\w@.-]*/)';
const patterns = [
  // A file behind folders; a file alone.
  `${segments}+[\\w@-][\\w@.-]*\\.(?:${kinds})(?![\\w/*<])`,
  '[\\w@-][\\w@.-]*\\.(?:ts|md|eta|sql)(?![\\w/*<])',
  // A folder, with the slash at its end.
  `${segments}+(?!\\.?[\\w@*<$\\[{…-])`,
  // Any name below a top folder.
  `(?:${tops})/(?:[\\w@-][\\w@.-]*/)*[\\w@-]+(?!\\.?[\\w@/*<-])`,
];
const mentionPattern = new RegExp(`${notWithin}(?:${patterns.join('|')})`, 'g');

function mentionsIn(line: Line): Mention[] {
  return [...line.text.matchAll(mentionPattern)].map(([path]) => ({ ...line, path }));
}

function leads({ file, path }: Mention): boolean {
  const isBare = !path.includes('/');
  const places = isBare && !path.endsWith('.md') ? [dirname(file)] : ['', 'src', dirname(file)];
  if (path === 'rows/' || places.some((place) => existsSync(join(root, place, path)))) return true;
  return isBare && named.get(path)?.length === 1;
}

test('every path that a comment names exists', (t) => {
  const mentions = comments().flatMap(mentionsIn);
  t.true(mentions.length > 100);
  t.deepEqual(mentions.filter((mention) => !leads(mention)).map(show), []);
});

const documents = globSync('{*,docs/*}.md', { cwd: root });

/** Removes code and keeps the line numbers of everything else. */
function withoutCode(markdown: string): string {
  return markdown.replace(/^```.*?^```/gms, (block) => block.replace(/[^\n]/g, '')).replace(/`[^`\n]*`/g, '');
}

function linksIn(file: string): Mention[] {
  return withoutCode(read(file))
    .split('\n')
    .flatMap((text, index) =>
      [...text.matchAll(/\]\(([^)\s]+)\)|\s(?:src|href|srcset)="([^"]+)"/g)].map(([, link, attribute]) => ({
        file,
        line: index + 1,
        text,
        path: (link ?? attribute)!,
      })),
    )
    .filter(({ path }) => !/^[a-z]+:/.test(path));
}

function arrives({ file, path }: Mention): boolean {
  const [page, anchor] = path.split('#', 2) as [string, string?];
  const target = page === '' ? file : join(dirname(file), page);
  if (!existsSync(join(root, target))) return false;
  return anchor === undefined || headingsOf(read(target)).some((heading) => heading.anchor === anchor);
}

test('every relative link and anchor of the documents leads somewhere', (t) => {
  const links = documents.flatMap(linksIn);
  t.true(links.length > 50);
  t.deepEqual(links.filter((link) => !arrives(link)).map(show), []);
});
