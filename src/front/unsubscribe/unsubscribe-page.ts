/** The page of a link that unsubscribes: one sentence and one button, without scripts, in the stream's name and color. */
import { escapeHtml } from '#platform/base/sanitize.ts';

export interface UnsubscribeView {
  state: 'subscribed' | 'subscribed again' | 'unsubscribed';
  /** The name of the stream for people. */
  title: string;
  /** As #rrggbb; null: ours. */
  color: string | null;
  address: string;
  /** Of the style (Content-Security-Policy). */
  nonce: string;
}

const ownColor = '#0b57d0';

export function unsubscribePage({ state, title, color, address, nonce }: UnsubscribeView): string {
  const background = color ?? ownColor;
  const [name, who] = [title, address].map(escapeHtml) as [string, string];
  const heads = {
    subscribed: `Unsubscribe from ${name}?`,
    'subscribed again': `You have subscribed to ${name} again`,
    unsubscribed: `You are unsubscribed from ${name}`,
  };
  const texts = {
    subscribed: `${who} will get no more of it.`,
    'subscribed again': `This link is of an email from before that. If you want to leave again, confirm it: ${who} will get no more of it.`,
    unsubscribed: `${who} gets no more of it. You can close this page.`,
  };
  const form =
    state === 'unsubscribed'
      ? ''
      : `<form method="post"><input type="hidden" name="from" value="page" /><button>Unsubscribe</button></form>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width" />
<meta name="robots" content="noindex" />
<title>${heads[state]}</title>
<style nonce="${nonce}">
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 32rem; padding: 4rem 1.5rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; }
button { font: inherit; padding: 0.75rem 1.5rem; border: 0; border-radius: 0.5rem; background: ${background}; color: ${inkOn(background)}; }
button:focus-visible { outline: 3px solid currentColor; outline-offset: 3px; }
</style>
</head>
<body>
<main>
<h1>${heads[state]}</h1>
<p>${texts[state]}</p>
${form}
</main>
</body>
</html>
`;
}

/** Black or white, whichever is easier to read on the color (WCAG 2.2, relative luminance). */
function inkOn(color: string): string {
  const channels = [1, 3, 5].map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255);
  const [red, green, blue] = channels.map((part) =>
    part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4,
  ) as [number, number, number];
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000' : '#fff';
}
